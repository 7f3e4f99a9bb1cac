"""Includes point down the layers (dev/check-layers), and the script sees it when one does not."""
import re
import shutil
import subprocess
import sys

import pytest

from tests.trace import CUTS


def check(root, tree):
    done = subprocess.run([sys.executable, root / "dev/check-layers", tree], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    assert (done.returncode == 1) == bool(done.stdout)
    return done.stdout.splitlines()


def test_tree_keeps_its_layers(root):
    assert check(root, root) == []


def test_texts_are_joined_in_one_place(root):
    """snprintf returns what it would have put: whoever adds that up writes behind the room some day. base/append.h does not."""
    adds = re.compile(r"\+=[^;=]*\bv?snprintf\(")
    joins = {path.name for top in ("shim", "tools", "dev") for path in (root / top).rglob("*.[ch]") if adds.search(path.read_text(encoding="utf-8"))}
    assert joins == set()


def test_records_are_put_in_one_place(root):
    """Who claims a slot of a ring and fills it where a signal handler can come in between: the wrappers, which are inside then, and cs_record_put."""
    claiming = {path.name for path in (root / "shim").rglob("*.[ch]") if "cs_record_claim(" in path.read_text(encoding="utf-8")}
    assert claiming == {"record.h", "record.c", "wrapped.h"}


def test_the_mode_word_has_one_owner(root):
    """Whoever wants it changed calls a function of process/mode.c; all others only read it."""
    write = re.compile(r"(?:cs_store\w*|cs_add|atomic_(?!load)\w+)\(&cs_mode\b|\bcs_mode\s*(?:[-+|&^]?=(?!=))")
    writing = {path.relative_to(root).as_posix() for path in (root / "shim").rglob("*.[ch]") if write.search(path.read_text(encoding="utf-8"))}
    assert writing == {"shim/process/mode.c"}


def test_the_gpu_side_has_two_owners(root, build):
    """What is known of the GPU side of a trace is one object, and what of it stands in the file another: no other file there keeps anything.

    Only what event.h keeps by itself for a key is there too: the number that the key has in a file of packets."""
    kept = {}
    for source in [*(root / "shim/match").glob("*.c"), *(root / "shim/trace").glob("gpu*.c")]:
        made = build / "obj" / source.relative_to(root).with_suffix(".o")
        symbols = subprocess.run(["objdump", "-t", made], capture_output=True, text=True, check=True).stdout
        kept[source.name] = {line.split()[-1] for line in symbols.splitlines() if re.search(r" O \.t?(bss|data)\b(?!\.rel\.ro)", line)}
        kept[source.name] = {name for name in kept[source.name] if not re.fullmatch(r"cs_kept(\.\d+)?", name)}
    assert {name: owned for name, owned in kept.items() if owned} == {"match.c": {"cs_match"}, "gpu.c": {"cs_gpu_shown"}}


def test_words_of_cuts_are_for_people(root):
    """What cs.note says stands in its table, and for older traces in that of older formats. Nothing else compares with it."""
    said = {path.relative_to(root).as_posix() for top in ("shim", "tools", "python") for path in (root / top).rglob("*") if path.suffix in {".c", ".h", ".def", ".py"}
            and any(f'"{text}"' in path.read_text(encoding="utf-8") for text in CUTS.values())}
    assert said == {"shim/base/cut.def", "tools/custream/trace/format.c"}


SPELLS_EVENTS = {"shim/trace/event.c"}


def test_events_are_spelled_in_one_place(root):
    """How an event looks in the file is known to one file: others say what it is. Looking for our own pid in a trace that is there is no writing."""
    keys = [f'\\"{key}\\":' for key in ("ph", "pid", "tid", "ts", "dur", "cat", "args")]
    spelling = set()
    for path in (root / "shim").rglob("*.[ch]"):
        text = path.read_text(encoding="utf-8").replace('snprintf(own, sizeof own, "\\"pid\\":%d,", (int)getpid());', "")
        if any(key in text for key in keys):
            spelling.add(path.relative_to(root).as_posix())
    assert spelling == SPELLS_EVENTS


@pytest.fixture
def tree(root, tmp_path):
    """A copy of the sources, to plant violations in."""
    for folder in ("include", "shim", "tools", "dev", "tests", "python"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "corpus"))
    return tmp_path


# What is planted: the file, its text, and the file:line that must be named; None where nothing must be.
PLANTED = [
    ("shim/base/planted.c", '#include <stdio.h>\n#include "shim/trace/ring.h"\n', "shim/base/planted.c:2"),
    ("shim/calls/planted.h", '  #  include "shim/object/vstream.h" /* spaces */\n', "shim/calls/planted.h:1"),
    ("shim/policy/planted.c", '#include "shim/wrap/effects.h"\n', "shim/policy/planted.c:1"),
    ("shim/trace/planted.c", '#include <shim/api/object.h>\n', "shim/trace/planted.c:1"),
    ("shim/trace/planted.c", '#include "shim/audit/audit.h"\n', "shim/trace/planted.c:1"),
    ("shim/audit/planted.c", '#include "shim/policy/policy.h"\n', "shim/audit/planted.c:1"),
    ("shim/audit/planted.c", '#include "shim/trace/listener.h"\n', None),
    ("shim/calls/table/planted.def", '#include "shim/gpu/gpu.h"\n', "shim/calls/table/planted.def:1"),
    ("shim/base/planted.c", '#include "../wrap/effects.h"\n', "shim/base/planted.c:1"),
    ("shim/wrap/planted.c", '#include "tests/fakecuda/fake.h"\n', "shim/wrap/planted.c:1"),
    ("shim/wrap/planted.c", '#include "tools/custream/command.h"\n', "shim/wrap/planted.c:1"),
    ("shim/wrap/planted.c", '#include "shim/process/inside.h"\n', "shim/wrap/planted.c:1"),
    ("shim/wrap/planted.c", '#include "shim/process/process.h"\n#include "shim/wrap/inside.h"\n', None),
    ("shim/process/planted.c", '#include "shim/wrap/wrap.h"\n', "shim/process/planted.c:1"),
    ("shim/other/planted.c", "int planted;\n", "shim/other/planted.c:1"),
    ("tools/custream/planted.c", '#include "shim/trace/ring.h"\n', "tools/custream/planted.c:1"),
    ("tools/custream/trace/planted.c", '#include "tools/custream/model/model.h"\n', "tools/custream/trace/planted.c:1"),
    ("tools/custream/model/planted.c", '#include "tools/custream/report/report.h"\n', "tools/custream/model/planted.c:1"),
    ("tools/custream/export/planted.c", '#include "tools/custream/report/report.h"\n', "tools/custream/export/planted.c:1"),
    ("tools/custream/diff/planted.c", '#include "tools/custream/report/inside.h"\n', "tools/custream/diff/planted.c:1"),
    ("tools/custream/diff/planted.c", '#include "tools/custream/report/report.h"\n', None),
    ("tools/custream/export/planted.c", '#include "tools/custream/model/model.h"\n#include "tools/custream/command.h"\n', None),
    ("tools/custream/other/planted.c", "int planted;\n", "tools/custream/other/planted.c:1"),
    ("tools/custream/planted.c", '#include "tools/custream/trace/json.h"\n#include <yyjson.h>\n', None),
    ("tools/custream/planted.c", '#include "tools/custream/trace/reader.h"\n', "tools/custream/planted.c:1"),
    ("tools/custream/live/planted.c", '#include "tools/custream/trace/torn.h"\n', "tools/custream/live/planted.c:1"),
    ("tools/custream/mend/planted.h", '#include "tools/custream/mend/inside.h"\n', None),
    ("tools/custream/merge/planted.c", "void *p(char *t) { return yyjson_read_opts(t, 1, 0, 0, 0); }\n", "tools/custream/merge/planted.c:1"),
    ("tools/custream/report/planted.c", "\nvoid *p(char *t) { return gzopen(t, \"rb\"); }\n", "tools/custream/report/planted.c:2"),
    ("tools/custream/open/planted.c", "int p(void *z) { return inflate(z, 0); }\n", "tools/custream/open/planted.c:1"),
    ("tools/custream/planted.c", "void *p(char *t) { return cJSON_Parse(t); }\n", "tools/custream/planted.c:1"),
    ("tools/custream/planted.c", "/* gzread yyjson_read */ // inflate()\n", None),
    ("tools/custream/trace/planted.c", '#include "tools/custream/trace/reader.h"\nint p(void *z) { return inflate(z, 0); }\n', None),
    ("shim/process/planted.c", '#include "shim/base/control.h"\n\nint p(char *t) { return strcmp(t, "record"); }\n', "shim/process/planted.c:3"),
    ("shim/process/planted.c", '#include "shim/base/control.h"\nint p(char *t) { return strcmp(t, "recorded") || strcmp(t, cs_ask_record); }\n', None),
    ("shim/base/planted.c", '#include "shim/base/watch.h"\nvoid p(int fd) { write(fd, "hello quiet", 11); }\n', "shim/base/planted.c:2"),
    ("tools/custream/live/planted.c", '#include "tools/custream/live/live.h"\nvoid p(struct peer *t) { peer_ask(t, "about"); }\n', "tools/custream/live/planted.c:2"),
    ("tools/custream/planted.c", '#include "tools/custream/live/peer.h"\nint p(char *t) { return strncmp(t, "ok ", 3); }\n', "tools/custream/planted.c:2"),
    ("tools/custream/planted.c", 'int p(char *t) { return strcmp(t, "record"); }\n', None),
    ("dev/policy-doc/planted.c", '#include "shim/object/stream.h"\n', "dev/policy-doc/planted.c:1"),
    ("tests/fakecuda/planted.c", '#include "shim/object/vstream.h"\n', "tests/fakecuda/planted.c:1"),
    ("tests/apps/planted.c", '#include "shim/base/log.h"\n', "tests/apps/planted.c:1"),
    ("python/custream/fleet/planted.py", "import socket\npeer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n", "python/custream/fleet/planted.py:1"),
    ("include/planted.h", '#include "shim/base/log.h"\n', "include/planted.h:1"),
    ("shim/wrap/planted.c", '#include "custream.h"\n#include "shim/base/compiler.h"\n#include <cuda.h>\n', None),
    ("shim/base/planted.c", '// #include "shim/api/object.h"\n', None),
    ("tools/custream/planted.c", '#include "shim/base/options.h"\n#include "shim/policy/file.h"\n', None),
]


def test_planted_violations(root, tree):
    """All at once, each in a file of its own: a copy of the sources and a look at all of them for each would take half a minute."""
    (tree / "shim/wrap").mkdir(parents=True, exist_ok=True)
    (tree / "shim/wrap/effects.h").touch()
    wanted = set()
    for number, (path, text, named) in enumerate(PLANTED):
        file = tree / path.replace("planted", f"planted{number}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if named:
            wanted.add(named.replace("planted", f"planted{number}"))
    found = [":".join(line.split(":")[:2]) for line in check(root, tree) if "planted" in line]
    assert len(found) == len(set(found)) and set(found) == wanted and len(wanted) >= 15


def test_a_permit_that_nobody_needs(root, tree):
    """Who may open something else than a trace by these functions stands in a list, which does not outlive its reason."""
    (tree / "tools/custream/merge/clocks.c").write_text("int nothing;\n")
    assert check(root, tree) == ["tools/custream/merge/clocks.c:1: does not use yyjson_read_file, which MAY_OPEN in dev/check-layers permits"]


def test_rows_that_python_says_get_other_names(root, tree):
    table, python = tree / "shim/base/control.def", "python/custream/_native.py"
    rows = table.read_text()
    for row, other in (("REQUEST(about,", "REQUEST(tell,"), ("TEXT(trace)", "TEXT(file)"), ('(ok, "ok")', '(ok, "good")')):
        assert row in rows
        rows = rows.replace(row, other)
    table.write_text(rows)
    (number,) = (n for n, line in enumerate((root / python).read_text().splitlines(), 1) if line.startswith("ASK, "))
    assert sorted(check(root, tree)) == [f'{python}:{number}: says "{word}", for which shim/base/control.def has no row' for word in ("about", "ok", "trace")]


# What is added to a file of shim/api, and what must be said of that line; None where nothing must be.
UPWARD = [
    ("object.c", '#include "shim/api/stream.h"', "needs shim/api/stream.h, which stands later in the order of shim/api"),
    ("event.h", '#include "current.h"', "needs shim/api/current.h, which stands later in the order of shim/api"),
    ("context.c", "void end(custream_t s) { custream_release(s); }", "needs shim/api/stream.c, which stands later in the order of shim/api"),
    ("event.c", "static void *later(void) { return (void *)custream_end_capture; }", "needs shim/api/capture.c, which stands later in the order of shim/api"),
    ("context.c", '/* custream_release */ // custream_release "custream_release"', None),
    ("context.c", 'const char *text(void) { return "custream_release(s)"; }', None),
    ("order.c", '#include "shim/api/stream.h"\nvoid end(custream_t s) { custream_release(s); }', None),
]


def test_the_order_inside_the_api(root, tree):
    """A file needs only what stands before it, so that there is no circle: not by an include, and not by a function of custream.h."""
    wanted = set()
    for name, text, said in UPWARD:
        file = tree / "shim/api" / name
        file.write_text(file.read_text(encoding="utf-8") + text + "\n", encoding="utf-8")
        if said:
            wanted.add(f"shim/api/{name}:{len(file.read_text(encoding='utf-8').splitlines())}: {said}")
    assert set(check(root, tree)) == wanted and len(wanted) == 4


def test_the_order_has_each_file_of_the_api(root, tree):
    (tree / "shim/api/planted.c").write_text("int planted;\n")
    (tree / "shim/api/fork.c").unlink()
    assert sorted(check(root, tree)) == ["shim/api/fork:1: is no file, and has a place in the order (ORDER in dev/check-layers)",
                                         "shim/api/planted.c:1: has no place in the order of shim/api (ORDER in dev/check-layers)"]
