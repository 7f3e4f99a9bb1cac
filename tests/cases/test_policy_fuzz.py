"""Policy files that nobody would write: whatever the bytes are, the reader says "ok" or one line, and what it should, under the address sanitizer."""
import fnmatch
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.policyfile import Reader

MUCH = settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def reader(build):
    with Reader(build) as reader:
        yield reader


# ---- Bytes: what is JSON, by Python's reader ----

def is_json(data):
    def never(word):
        raise ValueError(word)

    try:
        json.loads(data.removeprefix(b"\xef\xbb\xbf").decode(), parse_constant=never)
        return True
    except (ValueError, RecursionError):
        return False


# What JSON allows and a policy doesn't: half a surrogate pair, an escaped NUL, a number of more than 40 characters; and depth.
REFUSED = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])|[-+.eE\d]{41}")


def judge(reader, data):
    said = reader(data)
    if is_json(data) and not REFUSED.search(data) and data.count(b"[") + data.count(b"{") <= 16:
        assert not re.search("not JSON|is empty", said), said
    elif not is_json(data):
        assert re.fullmatch(r"policy\.json: (is empty|line \d+, column \d+: not JSON: .+)", said), said
    if said != "ok":
        assert said.startswith("policy.json: ") and len(said) < 768
    return said


def place_of(said):
    return tuple(map(int, re.search(r"line (\d+), column (\d+)", said).groups()))


def rules(*listed, **options):
    return json.dumps({"rules": listed, **options})


WHOLE = rules({"match": {"library": "libé*", "thread": "a\\b", "device": 0, "context": "created", "nth": 12}, "set": {"priority": -5, "name": "\U0001f600\""}},
              {"match": {"nonblocking": True}, "set": {"record": False, "nonblocking": False}}, {"set": {"default_stream": "per-thread"}},
              trace_max="256M,rotate:4", buffer=1048576, priority="map:0=-1,-1=-2,strict", log="warn")
BASES = [WHOLE, json.dumps(json.loads(WHOLE), indent=2, ensure_ascii=False), "{}"]
SCRAPS = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\0", b"\n", b"\\u0000", b"\\ud83d", b"0", b"-", b"1e9", b"true", b"null", b"\xff", b"\xc3", b'"rules":', b"\x80"]


@MUCH
@given(st.binary(max_size=200))
def test_any_bytes(reader, data):
    judge(reader, data)


@MUCH
@given(st.lists(st.sampled_from([*SCRAPS, b" ", b'"trace"', b'"match"', b'"set"', b'"t.json"', b"1.5", b"{}"]), max_size=30).map(b"".join))
def test_any_scraps(reader, data):
    judge(reader, data)


@MUCH
@given(st.sampled_from(BASES), st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 3), st.sampled_from(SCRAPS)), min_size=1, max_size=4))
def test_valid_files_with_slips(reader, base, edits):
    data = base.encode()
    for at, removed, put in edits:
        at %= len(data) + 1
        data = data[:at] + put + data[at + removed:]
    judge(reader, data)


@pytest.mark.parametrize("base", BASES[:2])
def test_cut_anywhere(reader, base):
    """What is named is where the text ends, or the character, number or word that is cut."""
    data = base.encode()
    assert reader(data) == "ok"
    for end in range(1, len(data)):
        said, head = judge(reader, data[:end]), data[:end].decode(errors="replace")
        line, column = place_of(said)
        before = len("".join(head.splitlines(keepends=True)[:line - 1])) + column - 1
        assert 0 <= len(head) - before <= len("\\ud83d\\ude00"), said


# ---- Structure: any values in any places ----

VALUES = st.recursive(st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=5)
MATCH = ["library", "thread", "call", "name", "device", "nonblocking", "priority", "nth", "context"]
SET = ["priority", "nonblocking", "default_stream", "name", "record"]
OPTIONS = ["trace", "buffer", "trace_max", "default_stream", "default_handles", "priority", "streams", "jitter", "log"]


def some(keys):
    return st.dictionaries(st.sampled_from(keys), VALUES, max_size=3) | VALUES


@MUCH
@given(st.fixed_dictionaries({}, optional={"rules": st.lists(st.fixed_dictionaries({}, optional={"match": some(MATCH), "set": some(SET)}) | VALUES, max_size=4) | VALUES,
                                           **{key: VALUES for key in OPTIONS}}) | VALUES)
def test_any_structure(reader, tree):
    judge(reader, json.dumps(tree).encode())


# ---- Meaning: valid keys and values, against a second account of what can be true at once ----

CREATING = ["cuStreamCreate", "cuStreamCreateWithPriority", "cuGreenCtxStreamCreate"]
CONDITIONS = {"library": st.sampled_from(["a*", "b*"]), "thread": st.sampled_from(["t", "u"]), "call": st.sampled_from([*CREATING, "cu*", "cuStream*", "cuMem*"]),
              "name": st.just("n"), "device": st.integers(0, 1), "nonblocking": st.booleans(), "priority": st.integers(-1, 0), "nth": st.integers(1, 2),
              "context": st.sampled_from(["primary", "created", "green"])}
CHANGES = {"priority": st.integers(-3, 0), "nonblocking": st.booleans(), "default_stream": st.sampled_from(["keep", "per-thread", "legacy"]), "name": st.just("n"),
           "record": st.booleans()}
CHOSEN = {"default_stream": st.sampled_from(["keep", "per-thread", "legacy", "audit"]), "default_handles": st.sampled_from(["zero", "all"]),
          "streams": st.sampled_from(["keep", "serial", "sync"]), "priority": st.sampled_from(["keep", "0:-1", "0:-2,strict", "set:-1"])}


def few(of):
    return st.dictionaries(st.sampled_from(list(of)), st.none(), max_size=2).flatmap(lambda chosen: st.fixed_dictionaries({key: of[key] for key in chosen}))


def covers(earlier, later):
    if "name" in later and "name" not in earlier and "thread" in earlier:
        return False
    return earlier.items() <= later.items() and ("nth" not in earlier or earlier == later)


def wrong_with_rule(listed, at):
    """The place and the kind of the first mistake of a rule; None."""
    match, change = listed[at]["match"], listed[at]["set"]
    green = match.get("context") == "green"
    allowed = [call for call in CREATING if "context" not in match or green == ("Green" in call)]
    unseen = [key for key in ("call", "name", "nonblocking", "priority", "nth") if key in match]
    if not change:
        return ".set: sets nothing"
    if "call" in match and not any(fnmatch.fnmatchcase(call, match["call"]) for call in allowed):
        return f'.match.call: "{match["call"]}" matches no call that makes a stream'
    if "default_stream" in change and (unseen or green):
        return f".set.default_stream: never does anything: {f'a default stream is not created, so match.{unseen[0]} ' if unseen else 'match.context is green'}"
    if change.get("nonblocking") is False and (green or all("Green" in call for call in CREATING if fnmatch.fnmatchcase(call, match.get("call", "*")))):
        return ".set.nonblocking: never does anything: streams in a green context are always"
    if "name" in match and "nonblocking" in change:
        return ".set.nonblocking: never does anything: a stream gets its name"
    for i in range(at):
        if covers(listed[i]["match"], match):
            return f": never matches: rules[{i}] comes before it"
    return None


def wrong(options, listed):
    for at in range(len(listed)):
        if wrong_with_rule(listed, at):
            return f"rules[{at}]{wrong_with_rule(listed, at)}"
    mode, streams, greatest = options.get("default_stream", "keep"), options.get("streams"), re.match(r"0:(-\d)", options.get("priority", ""))
    if streams == "serial" and mode == "per-thread":
        return 'default_stream: "per-thread" contradicts streams "serial"'
    if options.get("default_handles") == "all" and mode in ("keep", "audit") and not any(rule["set"].get("default_stream") in ("per-thread", "legacy") for rule in listed):
        return f'default_handles: "all" contradicts default_stream "{mode}"'
    for at, rule in enumerate(listed):
        if greatest and rule["set"].get("priority", 0) < int(greatest[1]):
            return f"rules[{at}].set.priority: contradicts priority"
        if "default_stream" in rule["set"] and mode == "audit":
            return f'rules[{at}].set.default_stream: contradicts default_stream "audit"'
        if rule["set"].get("default_stream") == "per-thread" and streams == "serial":
            return f'rules[{at}].set.default_stream: contradicts streams "serial"'
    return None


@settings(MUCH)
@given(few(CHOSEN), st.lists(st.fixed_dictionaries({"match": few(CONDITIONS), "set": few(CHANGES)}), max_size=4))
def test_meaning(reader, options, listed):
    said, expected = reader(json.dumps({**options, "rules": listed})), wrong(options, listed)
    assert said.startswith(f"policy.json: {expected}") if expected else said == "ok", (said, expected)
