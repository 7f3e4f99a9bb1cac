"""The policy file: what it may say, and what is said of mistakes, in the process and by `custream run`. What policies do: test_policies.py."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.apprun import read, said
from tests.cases.conftest import ROOT
from tests.handmade import NO_CUDA
from tests.policyfile import Reader

WORK = ["burst", 1, 2]


@pytest.fixture(scope="module")
def reader(build):
    with Reader(build) as reader:
        yield reader


@pytest.fixture
def custream(build, tmp_path):
    def run(*words, env=None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CUSTREAM_") and name != "LD_PRELOAD"}
        return subprocess.run([build / "custream", "run", *map(str, words)], cwd=tmp_path, env=clean | (env or {}), capture_output=True, text=True, timeout=60,
                              check=False)
    return run


def rules(*listed, **options):
    return json.dumps({"rules": listed, **options})


def one(match=None, **changes):
    """A policy of one rule."""
    return rules({"match": match or {}, "set": changes or {"priority": -1}})


TABLE = re.findall(r'^OPTION\((\w+), \w+, "([^"]*)"', (ROOT / "shim/base/options.def").read_text(encoding="utf-8"), flags=re.M)
TOP = ", ".join([*(name.lower() for name, _ in TABLE if name != "POLICY"), "rules"])
MATCH = "library, thread, call, name, device, nonblocking, priority, nth, context"
SET = "priority, nonblocking, default_stream, name, record"
CREATING = "cuStreamCreate, cuStreamCreateWithPriority, cuGreenCtxStreamCreate"
NUMBER = "a whole number from"
MOST = 2**31 - 1

# What is wrong with a file's text, and what is said of it behind "policy.json: ".
SYNTAX = {
    "{": "line 1, column 2: not JSON: a text in quotes is missing",
    "{\n  \"trace\": \"t.json\"\n  \"full\": \"drop\"\n}": "line 3, column 3: not JSON: a comma or } is missing",
    '{"trace": "t.json",}': "line 1, column 20: not JSON: a text in quotes is missing",
    '{"rules": [{"set": {"priority": -1}},]}': "line 1, column 38: not JSON: a value is missing",
    '{"rules": [{} {}]}': "line 1, column 15: not JSON: a comma or ] is missing",
    '{"trace" "t.json"}': "line 1, column 10: not JSON: a colon is missing",
    "{trace: 1}": "line 1, column 2: not JSON: a text in quotes is missing",
    "{'trace': 1}": "line 1, column 2: not JSON: a text in quotes is missing",
    '{"trace": t.json}': "line 1, column 11: not JSON: a value is missing",
    '{"trace": "t.json': "line 1, column 18: not JSON: the quote that ends a text is missing",
    '{"buffer": 0100000}': "line 1, column 12: not JSON: a number begins with 0",
    '{"buffer": 1.}': "line 1, column 14: not JSON: a digit is missing",
    '{"buffer": -}': "line 1, column 13: not JSON: a digit is missing",
    '{"buffer": 1e}': "line 1, column 14: not JSON: a digit is missing",
    '{"buffer": +1}': "line 1, column 12: not JSON: a value is missing",
    '{"buffer": NaN}': "line 1, column 12: not JSON: a value is missing",
    '{"buffer": 1' + 40 * "0" + "}": "line 1, column 12: not JSON: a number is too long",
    '{"trace": "a\tb.json"}': "line 1, column 13: not JSON: a control character in a text",
    '{"tr\\ace": 1}': "line 1, column 5: not JSON: no escape of JSON's",
    '{"trace": "\\u12x4"}': "line 1, column 12: not JSON: no character that may be in a string",
    '{"trace": "t\\u0000.json"}': "line 1, column 13: not JSON: no character that may be in a string",
    '{"trace": "\\ud83d.json"}': "line 1, column 12: not JSON: no character that may be in a string",
    '{"trace": "\\ud83d\\u0041"}': "line 1, column 12: not JSON: no character that may be in a string",
    '{"trace": "\\ude00"}': "line 1, column 12: not JSON: no character that may be in a string",
    '{"trace": "é\xff"}'.encode("latin-1"): "line 1, column 12: not JSON: not UTF-8",
    '{"tracé": "é", x}': "line 1, column 16: not JSON: a text in quotes is missing",  # columns are characters
    '{"trace": "off"} {}': "line 1, column 18: not JSON: something stands behind the end",
    '{"trace": "off"}\n\n}': "line 3, column 1: not JSON: something stands behind the end",
    '{"trace": "off"}\0': "line 1, column 17: not JSON: a NUL byte",
    '{"tr\0ace": "off"}': "line 1, column 5: not JSON: a NUL byte",
    '{"rules": ' + 16 * "[" + 16 * "]" + "}": "line 1, column 26: not JSON: nested too deeply",
    "{}//": "line 1, column 3: not JSON: something stands behind the end",
    "trace=off": "line 1, column 1: not JSON: a value is missing",
    "": "is empty",
    " \n\t\r\n": "is empty",
    "\ufeff": "is empty",
}

KEYS = {
    '["rules"]': "a list is not valid: allowed is an object",
    '"x"': '"x" is not valid: allowed is an object',
    "3": "3 is not valid: allowed is an object",
    "null": "null is not valid: allowed is an object",
    '{"defualt_stream": "keep"}': "defualt_stream: no such key; did you mean default_stream?",
    '{"TRACE": "off"}': "TRACE: no such key; did you mean trace?",
    '{"trace-max": "1M"}': "trace-max: no such key; did you mean trace_max?",
    '{"rule": []}': "rule: no such key; did you mean rules?",
    '{"policy": "other.json"}': f"policy: no such key; there are {TOP}",
    '{"": 1}': f'"": no such key; there are {TOP}',
    '{"//": "why"}': f"//: no such key; there are {TOP}",
    '{"comment": "why"}': f"comment: no such key; there are {TOP}",
    json.dumps({"x" * 100: 1}): f"{'x' * 62}...: no such key; there are {TOP}",
    '{"a\\n\\u009b\\u007fb": 1}': f"a???b: no such key; there are {TOP}",
    rules({"match": {}, "sets": {}}): "rules[0].sets: no such key; did you mean set?",
    rules({"when": {}}): "rules[0].when: no such key; there are match, set",
    one({"libary": "x"}): "rules[0].match.libary: no such key; did you mean library?",
    one({"stream": "x"}): f"rules[0].match.stream: no such key; there are {MATCH}",
    rules({"match": {}, "set": {"priority": -1}}, {"set": {"prority": -1}}): "rules[1].set.prority: no such key; did you mean priority?",
    one(device=1): f"rules[0].set.device: no such key; there are {SET}",
    '{"trace": "off", "trace": "off"}': "trace: stands there twice",
    '{"rules": [], "rules": []}': "rules: stands there twice",
    '{"rules": [{"match": {"nth": 1, "device": 0, "nth": 1}, "set": {"priority": 0}}]}': "rules[0].match.nth: stands there twice",
    '{"rules": [{"set": {"priority": 0, "priority": -1}}]}': "rules[0].set.priority: stands there twice",
    '{"rules": [{"set": {"priority": 0}, "set": {"priority": 0}}]}': "rules[0].set: stands there twice",
    '{"rules": [{"match": {"nope": 1}, "match": {}}], "nope": 1}': f"rules[0].match.nope: no such key; there are {MATCH}",  # the first of three
}

LIMIT = "a size from 1M to 1024G, alone or with ,rotate or ,rotate:PARTS (2 to 9999)"
VALUES = {
    '{"full": "Drop"}': 'full: "Drop" is not valid: allowed is drop|block',
    '{"full": true}': "full: true is not valid: allowed is drop|block",
    '{"full": ["drop"]}': "full: a list is not valid: allowed is drop|block",
    '{"full": null}': "full: null is not valid: allowed is drop|block",
    '{"default_stream": "perthread"}': 'default_stream: "perthread" is not valid: allowed is keep|per-thread|legacy|audit',
    '{"trace_max": 256}': f"trace_max: 256 is not valid: allowed is {LIMIT}",
    '{"trace_max": 2097152.5}': f"trace_max: 2.09715e+06 is not valid: allowed is {LIMIT}",
    '{"trace_max": -2097152}': f"trace_max: -2097152 is not valid: allowed is {LIMIT}",
    '{"trace_max": 1e300}': f"trace_max: 1e+300 is not valid: allowed is {LIMIT}",
    '{"trace_max": {"rotate": 4}}': f"trace_max: an object is not valid: allowed is {LIMIT}",
    '{"buffer": "1K"}': 'buffer: "1K" is not valid: allowed is a size from 64K to 1G',
    '{"trace": 5}': "trace: 5 is not valid: allowed is a path ending in .json or .pftrace, each also with .gz (%p pid, %e executable, %h host, %r rank, %% percent), or off",
    '{"trace": ""}': 'trace: "" is not valid: allowed is a path ending in .json or .pftrace, each also with .gz (%p pid, %e executable, %h host, %r rank, %% percent), or off',
    '{"priority": -1}': "priority: -1 is not valid: allowed is keep, 0:GREATEST, set:N, shift:N or map:FROM=TO,...; each with ,strict behind it to "
                        "refuse what is out of range",
    '{"streams": "pool"}': 'streams: "pool" is not valid: allowed is keep, pool:N, serial or sync',
    '{"window": 5}': "window: 5 is not valid: allowed is all, profiler, ctl, delay=S and duration=S (or one of them), or every=S,for=S with for below every (S: seconds)",
    '{"cupti": "a\\nb"}': 'cupti: "a?b" is not valid: allowed is the path of a libcupti',
    json.dumps({"log": "é" * 50}, ensure_ascii=False): f'log: "{"é" * 43}..." is not valid: allowed is error|warn|info|debug',
    '{"rules": {}}': 'rules: an object is not valid: allowed is a list of rules, {"match": {...}, "set": {...}}',
    '{"rules": [1]}': "rules[0]: 1 is not valid: allowed is an object",
    '{"rules": [{"match": []}]}': "rules[0].match: a list is not valid: allowed is an object",
    '{"rules": [{"set": "priority"}]}': 'rules[0].set: "priority" is not valid: allowed is an object',
    one({"library": 5}): "rules[0].match.library: 5 is not valid: allowed is a glob of 1 to 255 bytes",
    one({"library": ""}): 'rules[0].match.library: "" is not valid: allowed is a glob of 1 to 255 bytes',
    one({"thread": "t" * 256}): f'rules[0].match.thread: "{"t" * 86}..." is not valid: allowed is a glob of 1 to 255 bytes',
    one({"name": "a\x1b[31m"}): 'rules[0].match.name: "a?[31m" is not valid: allowed is a glob of 1 to 255 bytes',
    one({"device": -1}): f"rules[0].match.device: -1 is not valid: allowed is {NUMBER} 0 to {MOST}",
    one({"device": "0"}): f'rules[0].match.device: "0" is not valid: allowed is {NUMBER} 0 to {MOST}',
    one({"device": 1.5}): f"rules[0].match.device: 1.5 is not valid: allowed is {NUMBER} 0 to {MOST}",
    one({"device": 2**31}): f"rules[0].match.device: 2147483648 is not valid: allowed is {NUMBER} 0 to {MOST}",
    one({"nonblocking": 1}): "rules[0].match.nonblocking: 1 is not valid: allowed is true or false",
    one({"nonblocking": "true"}): 'rules[0].match.nonblocking: "true" is not valid: allowed is true or false',
    one({"priority": -(2**31)}): f"rules[0].match.priority: -2147483648 is not valid: allowed is {NUMBER} -{MOST} to {MOST}",
    one({"priority": 0.5}): f"rules[0].match.priority: 0.5 is not valid: allowed is {NUMBER} -{MOST} to {MOST}",
    one({"nth": 0}): f"rules[0].match.nth: 0 is not valid: allowed is {NUMBER} 1 to {MOST}",
    one({"context": "Primary"}): 'rules[0].match.context: "Primary" is not valid: allowed is primary|created|green',
    one({"context": "primary|created"}): 'rules[0].match.context: "primary|created" is not valid: allowed is primary|created|green',
    one({"context": ""}): 'rules[0].match.context: "" is not valid: allowed is primary|created|green',
    one({"context": 0}): "rules[0].match.context: 0 is not valid: allowed is primary|created|green",
    one(priority="high"): f'rules[0].set.priority: "high" is not valid: allowed is {NUMBER} -100 to 0',
    one(priority=1): f"rules[0].set.priority: 1 is not valid: allowed is {NUMBER} -100 to 0",
    one(priority=-101): f"rules[0].set.priority: -101 is not valid: allowed is {NUMBER} -100 to 0",
    one(nonblocking=None): "rules[0].set.nonblocking: null is not valid: allowed is true or false",
    one(default_stream="audit"): 'rules[0].set.default_stream: "audit" is not valid: allowed is keep|per-thread|legacy',
    one(name=""): 'rules[0].set.name: "" is not valid: allowed is a text of 1 to 255 bytes',
    one(record=0): "rules[0].set.record: 0 is not valid: allowed is true or false",
    rules(*[{"match": {"nth": n}, "set": {"priority": 0}} for n in range(1, 258)]): "rules: 257 rules; at most 256 are allowed",
}

NO_CREATION = "never does anything: a default stream is not created, so match.{} never matches one"
EARLIER = "never matches: rules[{}] comes before it and matches all that it would"
A, B = {"set": {"priority": -1}}, {"set": {"name": "b"}}


def behind(earlier, later):
    return rules({"match": earlier, **A}, {"match": later, **B})


EFFECTS = {
    rules({}): "rules[0].set: sets nothing",
    rules({"match": {"device": 0}}): "rules[0].set: sets nothing",
    rules({"match": {}, "set": {}}): "rules[0].set: sets nothing",
    one({"call": "cuMemcpy*"}): f'rules[0].match.call: "cuMemcpy*" matches no call that makes a stream: {CREATING}',
    one({"call": "custreamcreate"}): f'rules[0].match.call: "custreamcreate" matches no call that makes a stream: {CREATING}',
    one({"call": "cuStreamCreate?"}): f'rules[0].match.call: "cuStreamCreate?" matches no call that makes a stream: {CREATING}',
    one({"context": "green", "call": "cuStreamCreate*"}):
        'rules[0].match.call: "cuStreamCreate*" matches no call that makes a stream in a green context: cuGreenCtxStreamCreate',
    one({"call": "cuGreen*", "context": "primary"}):
        'rules[0].match.call: "cuGreen*" matches no call that makes a stream in such a context: cuStreamCreate, cuStreamCreateWithPriority',
    one({"call": "cuGreenCtxStreamCreate", "context": "created"}):
        'rules[0].match.call: "cuGreenCtxStreamCreate" matches no call that makes a stream in such a context: cuStreamCreate, cuStreamCreateWithPriority',
    **{one({key: value}, default_stream="per-thread"): f"rules[0].set.default_stream: {NO_CREATION.format(key)}"
       for key, value in {"call": "*", "nonblocking": False, "priority": 0, "nth": 1, "name": "comm*"}.items()},
    one({"context": "green"}, default_stream="keep", priority=-1): "rules[0].set.default_stream: never does anything: match.context is green, and only streams "
                                                                   "that are created are known to be of a green context",
    one({"name": "comm*"}, nonblocking=True): "rules[0].set.nonblocking: never does anything: a stream gets its name (match.name) once it has been made",
    **{one(match, nonblocking=False): "rules[0].set.nonblocking: never does anything: streams in a green context are always non-blocking"
       for match in ({"context": "green"}, {"call": "cuGreen*"})},
    rules(A, B): f"rules[1]: {EARLIER.format(0)}",
    rules(A, {"match": {"library": "l", "nth": 3}, **B}): f"rules[1]: {EARLIER.format(0)}",
    rules({"match": {"library": "a"}, **A}, {"match": {"library": "b"}, **A}, {"match": {"device": 0, "library": "b"}, **B}): f"rules[2]: {EARLIER.format(1)}",
    behind({"library": "l*", "device": 0}, {"device": 0, "library": "l*"}): f"rules[1]: {EARLIER.format(0)}",
    behind({"nonblocking": True}, {"nonblocking": True, "priority": -1, "thread": "t"}): f"rules[1]: {EARLIER.format(0)}",
    behind({"nth": 2, "thread": "t"}, {"thread": "t", "nth": 2}): f"rules[1]: {EARLIER.format(0)}",
    behind({"thread": "t"}, {"thread": "t", "nth": 2}): f"rules[1]: {EARLIER.format(0)}",
    behind({"thread": "t", "name": "n"}, {"device": 0, "thread": "t", "name": "n"}): f"rules[1]: {EARLIER.format(0)}",
    behind({"context": "green"}, {"context": "green", "name": "n"}): f"rules[1]: {EARLIER.format(0)}",
}

SERIAL = "everything runs on one stream"
CONTRADICTIONS = {
    '{"streams": "serial", "default_stream": "per-thread"}': f'default_stream: "per-thread" contradicts streams "serial": {SERIAL}',
    '{"default_handles": "all"}': 'default_handles: "all" contradicts default_stream "keep": no default stream is changed',
    '{"default_handles": "all", "default_stream": "keep"}': 'default_handles: "all" contradicts default_stream "keep": no default stream is changed',
    '{"default_stream": "audit", "default_handles": "all"}': 'default_handles: "all" contradicts default_stream "audit": no default stream is changed',
    rules({"set": {"default_stream": "keep"}}, default_handles="all"): 'default_handles: "all" contradicts default_stream "keep": no default stream is changed',
    rules({"match": {"nth": 1}, **A}, {"set": {"default_stream": "keep"}}, default_stream="audit"):
        'rules[1].set.default_stream: contradicts default_stream "audit": an audit changes nothing',
    rules({"set": {"default_stream": "per-thread"}}, streams="serial"): f'rules[0].set.default_stream: contradicts streams "serial": {SERIAL}',
    rules({"set": {"priority": -3}}, priority="0:-2"): 'rules[0].set.priority: contradicts priority "0:-2": it lies outside of that range',
    rules({"set": {"priority": -1}}, priority="0:0,strict"): 'rules[0].set.priority: contradicts priority "0:0,strict": it lies outside of that range',
}

MISTAKES = {**SYNTAX, **KEYS, **VALUES, **EFFECTS, **CONTRADICTIONS}

GOOD = [
    "{}", " {\r\n\t} \n", "\ufeff{}", '{"rules": []}', '{"trace_max": 1048576, "buffer": 65536.0}', '{"buffer": 1e5}', '{"trace_max": "1M,rotate"}',
    '{"cupti": ""}',
    '{"trace": "\\u00e9\\ud83d\\ude00\\/\\"\\\\.json"}', '{"trace": "é😀.json"}', '{"buffer": 1' + 5 * "0" + "." + 30 * "0" + "}",
    one({"library": "*"}), one({"library": "[", "thread": "[!a]\\"}), one({"library": "l" * 255}), one({"device": 0}), one({"device": MOST}),
    one({"priority": -MOST}),
    one({"priority": MOST, "nth": MOST}), one(priority=0), one(priority=-100), one(name="n" * 255), one(name="é😀 a"), one({"priority": 0.0}), one({"device": 1e0}),
    one({"call": "cuStreamCreate"}), one({"call": "cuGreen*", "context": "green"}), one({"call": "*Create*", "context": "primary"}, nonblocking=False),
    one({"context": "green"}, nonblocking=True), one({"call": "cu*"}, nonblocking=False), one({"call": "cu*", "context": "green"}),
    one({"context": "primary", "library": "l", "thread": "t", "device": 0}, default_stream="per-thread"), one({"context": "created"}, default_stream="legacy"),
    one({"name": "comm*"}, priority=-1, name="c", record=False), one({"name": "comm*", "nonblocking": True, "nth": 2, "call": "*"}, record=True),
    behind({"library": "a*"}, {"library": "b*"}), behind({"library": "ab*"}, {"library": "a*"}), behind({"nth": 1}, {"nth": 2}), behind({"nth": 1}, {}),
    behind({"nth": 1}, {"nth": 1, "device": 0}), behind({"device": 0}, {"device": 1}), behind({"nonblocking": False}, {"nonblocking": True}),
    behind({"context": "green"}, {"context": "created"}), behind({"device": 0, "thread": "t"}, {"device": 0}), behind({"name": "n"}, {}),
    behind({"thread": "t"}, {"thread": "t", "name": "n"}), behind({"thread": "t", "name": "n"}, {"thread": "t"}),
    rules(*[{"match": {"nth": n}, "set": {"priority": 0}} for n in range(1, 257)]), '{"streams": "serial", "default_stream": "legacy"}',
    '{"default_handles": "all", "default_stream": "legacy"}', rules({"set": {"default_stream": "legacy"}}, default_handles="all"),
    rules({"set": {"default_stream": "legacy"}}, streams="serial"), rules({"set": {"priority": -2}}, priority="0:-2"),
    rules({"set": {"priority": -9}}, priority="set:-1"),
    '{"default_stream": "audit", "streams": "serial"}', '{"default_handles": "zero", "default_stream": "keep"}',
]


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_mistake(reader, text):
    expected = MISTAKES[text]
    assert reader(text) == "policy.json: " + expected


@pytest.mark.parametrize("text", GOOD, ids=range(len(GOOD)))
def test_good(reader, text):
    assert reader(text) == "ok"


def test_every_kind_of_mistake_is_among_them(root):
    """Each error text of the sources is one that is expected somewhere here."""
    sources = "".join((root / "shim/policy" / name).read_text() for name in ("syntax.c", "reading.c", "file.c", "rules_read.c", "rules_check.c", "settle.c"))
    texts = re.findall(r'(?:fail\(s, |s\.what = )"([^"]+)"', sources) + re.findall(r'cs_reading_fail\([^"]*?"((?:[^"\\]|\\.)+)"', sources)
    here = "\n".join([*MISTAKES.values(), *(text for text, _ in FILES.values())])
    elsewhere = {"no memory", "libcjson.so.1 is missing, which reading a policy takes", "cannot change in a running process", "%s", "%.300s: %s%s"}  # tests/unit/policy.c
    missing = [text for text in texts if text not in elsewhere
               and not re.search(re.escape(text.replace('\\"', '"')).replace("%s", ".*").replace("%d", r"\d+").replace(r"%\.64s", ".*").replace(r"%\.60s", ".*"), here)]
    assert len(texts) > 20 and missing == []


# ---- The same lines from the command and from a program ----

@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_the_command_refuses(custream, tmp_path, text):
    (tmp_path / "policy.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    for done in (custream("--policy", "policy.json", "touch", "ran"), custream("touch", "ran", env={"CUSTREAM_POLICY": "policy.json"})):
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"custream run: policy.json: {MISTAKES[text]}\n")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_the_program_runs_on_without(run_app, tmp_path, text):
    path = tmp_path / "policy.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    run = run_app(WORK, env={"CUSTREAM_POLICY": path, "CUSTREAM_BUFFER": "1M"}).check()
    assert run.stderr.splitlines() == [f"custream: warning: {path}: {MISTAKES[text]}; the policy is not applied"]
    trace = read(run.trace)
    assert trace.metadata["options"] == read(run_app(WORK, env={"CUSTREAM_BUFFER": "1M"}).trace).metadata["options"] | {"CUSTREAM_TRACE": str(run.trace)}


@pytest.mark.parametrize("text", GOOD, ids=range(len(GOOD)))
def test_the_command_takes(custream, tmp_path, text):
    (tmp_path / "é😀").mkdir()  # which one of them names for the trace
    done = custream("--policy", text, "printenv", "CUSTREAM_POLICY", env={"LC_ALL": "C.UTF-8", "CUSTREAM_QUIET": "1"}) if not text.startswith("\ufeff") else None
    assert not done or (done.returncode, done.stdout, done.stderr) == (0, text.replace("\r\n", "\n") + "\n", "")


def test_json_given_itself_has_the_variables_name(run_app, custream):
    for text in ('{"full": 1}', '\n {"full": 1}'):
        done = custream("--policy", text, "true")
        assert (done.returncode, done.stderr) == (2, "custream run: CUSTREAM_POLICY: full: 1 is not valid: allowed is drop|block\n")
        run = run_app(WORK, env={"CUSTREAM_POLICY": text}).check()
        assert run.stderr == "custream: warning: CUSTREAM_POLICY: full: 1 is not valid: allowed is drop|block; the policy is not applied\n"


# ---- Files that can't be read ----

def nothing(path):
    pass


def file(text):
    return lambda path: path.write_bytes(text)


# (what is said, how to make it)
FILES = {
    "missing": ("No such file or directory", nothing),
    "folder": ("Is a directory", lambda path: path.mkdir()),
    "pipe": ("not a file that can be read at once", lambda path: os.mkfifo(path)),
    "device": ("not a file that can be read at once", lambda path: path.symlink_to("/dev/zero")),
    "dangling": ("No such file or directory", lambda path: path.symlink_to("nowhere")),
    "empty": ("is empty", file(b"")),
    "long": ("is longer than 1 MiB", file(b"{}" + b" " * (2**20 - 1))),
    "endless": ("is longer than 1 MiB", file(b"[" * 2**21)),
    "binary": ("line 1, column 1: not JSON: a value is missing", file(b"\x7fELF\x02\x01\x01")),
}


@pytest.mark.parametrize("what", FILES)
def test_file_that_is_none(run_app, custream, tmp_path, what):
    text, make = FILES[what]
    make(tmp_path / "p.json")
    done = custream("--policy", "p.json", "true")
    assert (done.returncode, done.stderr) == (2, f"custream run: p.json: {text}\n")
    run = run_app(WORK, env={"CUSTREAM_POLICY": tmp_path / "p.json"}).check()
    assert run.stderr == f"custream: warning: {tmp_path}/p.json: {text}; the policy is not applied\n"


def test_unreadable_file(build, tmp_path):
    path = tmp_path / "p.json"
    path.write_text("{}")
    path.chmod(0)
    without_override = "import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, c, 0, 0, 0) for c in (1, 2)]; os.execv(sys.argv[1], sys.argv[1:])"  # root may read anything
    done = subprocess.run([sys.executable, "-c", without_override, build / "custream", "run", "--policy", path, "true"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"custream run: {path}: Permission denied\n")


def test_longest_file(custream, tmp_path):
    (tmp_path / "p.json").write_bytes(b"{}" + b" " * (2**20 - 2))
    assert custream("--policy", "p.json", "true").returncode == 0


def test_a_long_name_is_one_line(run_app, custream, tmp_path):
    name = "n\n\x1b" + "é" * 120 + "/" + "m" * 200
    done = custream("--policy", name, "true")
    assert done.returncode == 2 and re.fullmatch(r"custream run: n\?\?é+/m+: No such file or directory\n", done.stderr)
    run = run_app(WORK, env={"CUSTREAM_POLICY": name}).check()
    assert re.fullmatch(r"custream: warning: n\?\?é+/m+: No such file or directory; the policy is not applied\n", run.stderr)


# ---- What is applied ----

def test_options_and_precedence(run_app, custream, tmp_path):
    path = tmp_path / "policy.json"
    path.write_text('{"trace": "from-file.json", "full": "block", "buffer": 131072, "trace_max": "3M,rotate:3", "log": "info", "graph": "node"}')
    run = run_app(WORK, env={"CUSTREAM_POLICY": path, "CUSTREAM_TRACE": None, "CUSTREAM_BUFFER": "1M", "CUSTREAM_GRAPH": ""}).check()
    options = read(tmp_path / "from-file.json").metadata["options"]
    assert {name: options[f"CUSTREAM_{name}"] for name in ("TRACE", "FULL", "BUFFER", "TRACE_MAX", "LOG", "GRAPH", "GPU", "POLICY")} == {
        "TRACE": "from-file.json", "FULL": "block", "BUFFER": "1M", "TRACE_MAX": "3M,rotate:3", "LOG": "info", "GRAPH": "node", "GPU": "auto", "POLICY": str(path)}
    assert not run.trace.exists()
    shown = custream("--full=drop", "--policy", path, "printenv", "CUSTREAM_FULL", "CUSTREAM_POLICY", "CUSTREAM_BUFFER", env={"CUSTREAM_BUFFER": "1M"})
    assert shown.stdout == f"drop\n{path}\n1M\n"


def test_a_size_of_the_file_is_the_ring_s(run_app):
    """A small ring loses calls of a burst that a big one holds."""
    def lost(size, calls):
        run = run_app(["burst", 1, calls], env={"CUSTREAM_POLICY": json.dumps({"buffer": size})}).check()
        assert not said(run)
        return read(run.trace).totals["lost_records"]

    assert lost("64K", 20000) > 0 and lost("64M", 70000) == 0


def test_a_wrong_variable_is_as_its_line_says(run_app):
    """The default stands in for it, not what the file gives."""
    run = run_app(WORK, env={"CUSTREAM_POLICY": '{"full": "block", "graph": "node"}', "CUSTREAM_FULL": "x"}).check()
    assert run.stderr == "custream: warning: CUSTREAM_FULL=x is not valid: allowed is drop|block; using drop\n"
    options = read(run.trace).metadata["options"]
    assert (options["CUSTREAM_FULL"], options["CUSTREAM_GRAPH"]) == ("drop", "node")


def test_every_option_may_stand_in_a_file(reader):
    assert len(TABLE) > 15
    for name, preset in TABLE:
        assert reader(json.dumps({name.lower(): preset})) == ("ok" if name != "POLICY" else f"policy.json: policy: no such key; there are {TOP}")


UNCHANGED = "DEFAULT_HANDLES=all contradicts CUSTREAM_DEFAULT_STREAM={}: no default stream is changed"
VARIABLES = {
    ("DEFAULT_STREAM", "per-thread", "STREAMS", "serial"): (f"DEFAULT_STREAM=per-thread contradicts CUSTREAM_STREAMS=serial: {SERIAL}", "keep", "keep"),
    ("DEFAULT_HANDLES", "all", "DEFAULT_STREAM", "keep"): (UNCHANGED.format("keep"), "zero", "keep"),
    ("DEFAULT_HANDLES", "all", "DEFAULT_STREAM", ""): (UNCHANGED.format("keep"), "zero", "keep"),
    ("DEFAULT_HANDLES", "all", "DEFAULT_STREAM", "audit"): (UNCHANGED.format("audit"), "zero", "keep"),
}


@pytest.mark.parametrize("given", VARIABLES)
def test_variables_that_contradict_each_other(run_app, custream, given):
    a, first, b, second = given
    text, a_default, b_default = VARIABLES[given]
    env = {f"CUSTREAM_{a}": first, f"CUSTREAM_{b}": second}
    done = custream("true", env=env)
    assert (done.returncode, done.stderr) == (2, f"custream run: CUSTREAM_{text}\n")
    flags = [f"--{name.lower().replace('_', '-')}={value}" for name, value in ((a, first), (b, second)) if value]
    assert custream(*flags, "true").stderr == done.stderr
    run = run_app(WORK, env=env).check()
    assert run.stderr == f"custream: warning: CUSTREAM_{text}; using CUSTREAM_{a}={a_default} and CUSTREAM_{b}={b_default}\n"
    options = read(run.trace).metadata["options"]
    assert (options[f"CUSTREAM_{a}"], options[f"CUSTREAM_{b}"]) == (a_default, b_default)


MIXED = [
    ({"CUSTREAM_STREAMS": "serial"}, '{"full": "block", "default_stream": "per-thread"}',
     f'default_stream: "per-thread" contradicts CUSTREAM_STREAMS=serial: {SERIAL}'),
    ({"CUSTREAM_DEFAULT_STREAM": "per-thread"}, '{"streams": "serial"}', f'streams: "serial" contradicts CUSTREAM_DEFAULT_STREAM=per-thread: {SERIAL}'),
    ({"CUSTREAM_DEFAULT_STREAM": "audit"}, one(default_stream="legacy"),
     "rules[0].set.default_stream: contradicts CUSTREAM_DEFAULT_STREAM=audit: an audit changes nothing"),
    ({"CUSTREAM_PRIORITY": "0:-1"}, one(priority=-2), "rules[0].set.priority: contradicts CUSTREAM_PRIORITY=0:-1: it lies outside of that range"),
    ({"CUSTREAM_STREAMS": "serial"}, one(default_stream="per-thread"), f"rules[0].set.default_stream: contradicts CUSTREAM_STREAMS=serial: {SERIAL}"),
]


@pytest.mark.parametrize("env, text, error", MIXED)
def test_a_file_that_contradicts_the_environment(run_app, custream, env, text, error):
    done = custream("--policy", text, "true", env=env)
    assert (done.returncode, done.stderr) == (2, f"custream run: CUSTREAM_POLICY: {error}\n")
    run = run_app(WORK, env=env | {"CUSTREAM_POLICY": text}).check()
    lines = [line for line in run.stderr.splitlines() if not line.startswith("custream: audit: ")]
    assert lines == [f"custream: warning: CUSTREAM_POLICY: {error}; the policy is not applied"]
    options = read(run.trace).metadata["options"]
    assert {name: options[name] for name in env} == env and (options["CUSTREAM_FULL"], options["CUSTREAM_POLICY"]) == ("drop", "")


def test_an_option_that_beats_the_file_takes_its_contradiction_away(custream):
    assert custream("--default-stream=legacy", "--policy", '{"streams": "serial", "default_stream": "per-thread"}', "true").returncode == 0
    assert custream("--policy", '{"default_stream": "legacy"}', "--default-handles=all", "true").returncode == 0


def test_relative_paths_become_absolute(custream, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "p.json").write_text("{}")
    show = ["sh", "-c", "cd /; printenv CUSTREAM_POLICY"]
    assert custream("--policy=p.json", *show).stdout == f"{tmp_path}/p.json\n"
    assert custream("--policy=sub/../p.json", *show).stdout == f"{tmp_path}/sub/../p.json\n"
    assert custream(*show, env={"CUSTREAM_POLICY": "p.json"}).stdout == f"{tmp_path}/p.json\n"
    assert custream(f"--policy={tmp_path}/p.json", *show, env={"CUSTREAM_POLICY": "none.json"}).stdout == f"{tmp_path}/p.json\n"
    assert custream("--policy=", *show, env={"CUSTREAM_POLICY": "none.json"}).stdout == "\n"
    shown = custream("--policy", "{}", *show)
    assert (shown.stdout, shown.stderr) == ("{}\n", NO_CUDA)


# ---- cJSON ----

MAPPED = """
import ctypes
ctypes.CDLL("libcuda.so.1").cuStreamQuery(None)
paths = sorted({line.split()[-1] for line in open("/proc/self/maps") if "libcjson" in line})
print(paths, hasattr(ctypes.CDLL(None), "cJSON_Delete"))
"""


def mapped(run_app, **options):
    run = run_app([sys.executable, "-c", MAPPED], **options).check()
    return run.stdout.strip(), said(run)


def test_the_library_is_opened_for_a_policy_alone_and_for_nobody_else(run_app):
    assert mapped(run_app) == ("[] False", [])
    assert mapped(run_app, env={"CUSTREAM_PRIORITY": "0:-1"}) == ("[] False", [])
    paths, lines = mapped(run_app, env={"CUSTREAM_POLICY": "{}"})
    assert re.fullmatch(r"\['\S+/libcjson\.so\.1\S*'\] False", paths) and lines == []


def spoilt(folder):
    """A folder with libraries of that name that are none."""
    folder.mkdir()
    for name in ("libcjson.so.1", "libcjson.so"):
        (folder / name).write_text("no library\n")
    return folder


def test_missing_library(run_app, build, tmp_path):
    search = f"{spoilt(tmp_path / 'spoilt')}:{build / 'fakecuda'}"
    run = run_app(WORK, env={"CUSTREAM_POLICY": '{"full": "block"}', "LD_LIBRARY_PATH": search}).check()
    assert run.stderr == "custream: warning: CUSTREAM_POLICY: libcjson.so.1 is missing, which reading a policy takes; the policy is not applied\n"
    assert read(run.trace).metadata["options"]["CUSTREAM_FULL"] == "drop"
    assert not said(run_app(WORK, env={"LD_LIBRARY_PATH": search}).check())


@pytest.fixture(scope="module")
def cjson(build):
    """The system's library."""
    shown = subprocess.run(["ldd", build / "custream"], capture_output=True, text=True, check=True).stdout
    return re.search(r"libcjson\S* => (\S+)", shown)[1]


def test_the_library_beside_the_shim_comes_first(run_app, build, tmp_path, cjson):
    beside = tmp_path / "beside"
    beside.mkdir()
    shutil.copy(build / "libcustream_shim.so", beside)
    shutil.copy(cjson, beside / "libcjson.so.1")
    search = f"{spoilt(tmp_path / 'spoilt')}:{build / 'fakecuda'}"
    options = {"shim": beside / "libcustream_shim.so", "env": {"CUSTREAM_POLICY": "{}", "LD_LIBRARY_PATH": search}}
    assert mapped(run_app, **options) == (f"['{beside}/libcjson.so.1'] False", [])
    (beside / "libcjson.so.1").write_text("no library\n")  # then as the loader finds it
    options["env"]["LD_LIBRARY_PATH"] = build / "fakecuda"
    assert mapped(run_app, **options) == (f"['{os.path.realpath(cjson)}'] False", [])


def test_the_library_is_none_that_was_loaded_with_the_program(run_app, build, tmp_path, cjson):
    """Whatever else it defines: calls of the driver do not pass it by, since they never went there."""
    beside = tmp_path / "beside"
    beside.mkdir()
    shutil.copy(build / "libcustream_shim.so", beside)
    source = f'''#include <dlfcn.h>
                 #define REAL(name) ((__typeof__(&name))dlsym(dlopen("{cjson}", RTLD_NOW), #name))
                 void *cJSON_ParseWithOpts(const char *text, const char **end, int whole) {{ return REAL(cJSON_ParseWithOpts)(text, end, whole); }}
                 void cJSON_Delete(void *item) {{ REAL(cJSON_Delete)(item); }}
                 int cuInit(unsigned flags) {{ return flags ? 1 : 0; }}
                 int cuStreamSynchronize(void *stream) {{ return stream ? 1 : 0; }}'''
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", beside / "libcjson.so.1", "-Wl,-soname,libcjson.so.1"], input=source, text=True, check=True)
    run = run_app(WORK, shim=beside / "libcustream_shim.so", env={"CUSTREAM_POLICY": '{"full": "block"}'}).check()
    assert not said(run) and read(run.trace).metadata["options"]["CUSTREAM_FULL"] == "block"


def test_the_library_without_a_number_in_its_name(run_app, build, tmp_path, cjson):
    """Where the one that has it is none."""
    folder = spoilt(tmp_path / "spoilt")
    shutil.copy(cjson, folder / "libcjson.so")
    options = {"env": {"CUSTREAM_POLICY": "{}", "LD_LIBRARY_PATH": f"{folder}:{build / 'fakecuda'}"}}
    assert mapped(run_app, **options) == (f"['{folder}/libcjson.so'] False", [])


@pytest.mark.parametrize("policy", ['{"full": "drop"}', one(priority=-1), '{"full": 1}'])
def test_errno_and_dlerror(run_app, policy):
    run = run_app("keeps", env={"CUSTREAM_POLICY": policy}).check()
    assert run.stdout == "errno kept 30 lost 0, dlerror kept 30 lost 0\n"


def test_in_a_constructor(run_app, build):
    """The loader is at work and holds its lock: nobody else can open a library meanwhile."""
    argv = ["hostile", "constructor", build / "tests" / "libin_constructor.so"]
    bare = run_app(argv, shim=False)
    run = run_app(argv, env={"CUSTREAM_POLICY": '{"full": "block"}'})
    assert (run.rc, run.stdout) == (bare.rc, bare.stdout) and not said(run)
    assert read(run.trace).metadata["options"]["CUSTREAM_FULL"] == "block"


# ---- docs/policy.md ----

def page(root):
    return (root / "docs/policy.md").read_text()


def test_the_page_is_what_is_generated(root, build):
    made = subprocess.run([build / "policy-doc", root / "docs/policy.md"], capture_output=True, text=True, check=True).stdout
    assert page(root) == made, "make docs"


def test_whole_files_of_the_page_are_valid(root, reader, run_app):
    files = re.findall(r"^```json\n(.*?)^```$", page(root), flags=re.M | re.S)
    assert len(files) == 4 and [reader(text) for text in files] == 4 * ["ok"]
    for text in files:
        run = run_app(WORK, env={"CUSTREAM_POLICY": text}).check()
        assert not said(run) and read(run.trace).metadata["options"]["CUSTREAM_POLICY"] == text
    inline = re.findall(r"CUSTREAM_POLICY='([^']+)'", page(root))
    assert inline and all(reader(text) == "ok" for text in inline)


def test_examples_of_the_page_are_valid(root, reader):
    """The last cell of each row is an example of the key in the first; each key of the tables has one."""
    sections = re.split(r"^## ", page(root), flags=re.M)
    keys = {}
    for name, wrap in (("Options", '{%s}'), ("Rules: match", '{"rules": [{"match": {%s}, "set": {"priority": -1}}]}'), ("Rules: set", '{"rules": [{"set": {%s}}]}')):
        (section,) = [s for s in sections if s.startswith(name + "\n")]
        rows = re.findall(r"^\| `(\w+)` \|.* \| `([^`]+)` \|$", section, flags=re.M)
        keys[name] = [key for key, example in rows if example.startswith('"')]
        for key, example in rows:
            if example.startswith('"'):
                assert f'"{key}": ' in example and reader(wrap % example) == "ok", example
    assert keys == {"Options": ["default_stream", "default_handles", "priority", "streams", "jitter"], "Rules: match": MATCH.split(", "), "Rules: set": SET.split(", ")}


def test_the_help_names_the_option(custream):
    done = custream("--help")
    assert "--policy=FILE   (CUSTREAM_POLICY)" in done.stdout and "--default-stream=keep|per-thread|legacy|audit" in done.stdout
