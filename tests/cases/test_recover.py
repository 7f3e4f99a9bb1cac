"""Traces whose process was killed while it wrote: what `custream recover` makes of them, and what the other commands read of them."""
import gzip
import json
import pathlib
import random
import re
import signal
import subprocess
import time
import zlib

import pytest

from tests.cases.test_watch import begin, environment, has_calls, until
from tests.handmade import COMMAND, GOOD, HEADER, TRAILER, custream, launches, render, good_trailer
from tests.perfetto.processor import assert_clean
from tests.trace import Trace

WHOLE = render(GOOD)
ROWS = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in GOOD.values()]
FIRST = "\n".join(HEADER) + "\n"
FLUSHED = good_trailer({"complete": False}) + " " * 1024 + "\n"  # the trailer of a flush has room to spare


def rows_of(text):
    return json.loads(text)["traceEvents"]


def whole_rows(length):
    """How many rows of WHOLE end in its first bytes; None: not even the header does."""
    data, at, count = WHOLE.encode(), len(FIRST.encode()), 0
    if length < at:
        return None
    for row in ROWS:
        if (end := at + len(row.encode())) > length:
            break
        count, at = count + 1, end + 2
    assert data.startswith(FIRST.encode())
    return count


def run_all(*args):
    done = subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


def recovered(path):
    ending = ".json.gz" if path.name.endswith(".gz") else ".json"
    return path.with_name(path.name.removesuffix(ending) + ".recovered" + ending)


def read(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def assert_recovered(paths, counts):
    """Each file with that many rows becomes a whole one, with these rows and none else, which check accepts. None: nothing can be made of it."""
    status, said, complaints = run_all("recover", *paths)
    good = [path for path, count in zip(paths, counts, strict=True) if count is not None]
    bad = [path for path, count in zip(paths, counts, strict=True) if count is None]
    assert status == (2 if bad else 0)
    assert [line.split(": ")[1] for line in complaints] == [str(path) for path in bad]
    assert [line.split(":")[0] for line in said] == [str(recovered(path)) for path in good]
    assert not any(recovered(path).exists() for path in bad)
    status, said, complaints = run_all("check", *map(recovered, good))
    assert (status, complaints) == (0, []), [line for line in said + complaints if ": incomplete: " not in line][:3]
    assert all(": incomplete: recovered up to the last whole event: events " in line for line in said)
    rows = rows_of(WHOLE)
    for path, count in zip(paths, counts, strict=True):
        if count is None:
            continue
        found = read(recovered(path))
        assert found["traceEvents"] == rows[:count], path
        assert found["totals"]["complete"] is False and found["totals"]["recovered"]["cut_bytes"] >= 0


def test_every_prefix(tmp_path):
    data = WHOLE.encode()
    paths, counts = [], []
    for length in range(len(data) - 1):
        paths.append(tmp_path / f"{length}.json")
        paths[-1].write_bytes(data[:length])
        counts.append(whole_rows(length))
    assert_recovered(paths, counts)
    for length in (len(data) - 1, len(data)):  # the last newline is not missed
        (whole := tmp_path / "whole.json").write_bytes(data[:length])
        assert run_all("recover", whole) == (0, [f"{whole}: is whole; nothing to recover"], [])


def members(*texts):
    return [gzip.compress(text.encode(), 1) for text in texts]


def unpacked(data):
    """The text of the members, and of one that is cut as far as it goes."""
    text = b""
    while data[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(31)
        text += member.decompress(data)
        data = member.unused_data
    return text


def packed_trace():
    texts = [FIRST + ",\n".join(ROWS[:7]), "".join(",\n" + row for row in ROWS[7:15]), "".join(",\n" + row for row in ROWS[15:]), "\n" + TRAILER + "\n"]
    data = b"".join(gzip.compress(text.encode(), 1) for text in texts)
    assert gzip.decompress(data).decode() == WHOLE
    return data


def test_every_prefix_of_a_packed_trace(tmp_path):
    data = packed_trace()
    paths, counts = [], []
    for length in range(len(data)):
        paths.append(tmp_path / f"{length}.json.gz")
        paths[-1].write_bytes(data[:length])
        counts.append(whole_rows(len(unpacked(data[:length]))))
    assert_recovered(paths, counts)


def spliced(old_rows, new_rows, at):
    """A file in which new rows and a trailer were written over the trailer behind the old ones, up to there."""
    first = FIRST + ",\n".join(ROWS[:old_rows])
    before = (first + "\n" + FLUSHED).encode()
    after = (first + "".join(",\n" + row for row in ROWS[old_rows:new_rows]) + "\n" + FLUSHED.replace("\"recorded\":3", "\"recorded\":4")).encode()
    start = len(first.encode())
    return after[:start + at] + before[start + at:], start


@pytest.mark.parametrize("new", [1, 3])
def test_the_rest_of_the_old_trailer(tmp_path, new):
    """No row is made of two. One that was whole before the flush is given up where nothing tells whether it is."""
    size = len(spliced(5, 5 + new, 0)[0])
    rows, paths = rows_of(WHOLE), []
    for at in range(1, size, 1):
        data, start = spliced(5, 5 + new, at)
        if start + at > len(data):
            break
        try:
            json.loads(data)
        except ValueError:
            paths.append(tmp_path / f"{at}.json")
            paths[-1].write_bytes(data)
    assert len(paths) > 300
    status, _, complaints = run_all("recover", *paths)
    assert (status, complaints) == (0, [])
    for path in paths:
        found = read(recovered(path))["traceEvents"]
        assert 4 <= len(found) <= 5 + new and found == rows[:len(found)], path
    status, said, complaints = run_all("check", *map(recovered, paths))
    assert (status, complaints) == (0, []) and len(said) == len(paths)


@pytest.mark.parametrize("at", range(20, 700, 9))
def test_the_rest_of_an_old_packed_trailer(tmp_path, at):
    """What the rest of it unpacks to is no row."""
    first = gzip.compress((FIRST + ",\n".join(ROWS[:5])).encode(), 1)
    new = [gzip.compress(text.encode(), 1) for text in ("".join(",\n" + row for row in ROWS[5:]), "\n" + FLUSHED)]
    old = gzip.compress(("\n" + FLUSHED + "".join(random.Random(at).choices("abcdef0123456789", k=2000))).encode(), 1)
    data = first + (b"".join(new)[:at] + old[at:])[:len(old)]
    (path := tmp_path / "t.json.gz").write_bytes(data)
    for command in (["report"], ["merge", "-o", tmp_path / "merged.json"]):
        status, _, complaints = run_all(*command, path)
        assert status == 0 and len(complaints) == 1 and "truncated" in complaints[0], complaints
    assert run_all("recover", path)[0] == 0
    found = read(recovered(path))["traceEvents"]
    assert 5 <= len(found) and found == rows_of(WHOLE)[:len(found)]
    assert run_all("check", recovered(path))[0] == 0


def with_room(text):
    """A gzip member with 1 KiB of room in its header, as the trailer of a flush has."""
    member = gzip.compress(text.encode(), 1)
    return member[:3] + b"\x04" + member[4:10] + (1024).to_bytes(2, "little") + bytes(1024) + member[10:]


def written_over(at):
    """What is read of a file that is flushed meanwhile: up to there the old trailer, then the rest of new rows and their trailer, and of more of them."""
    dice = random.Random(at)
    first = gzip.compress((FIRST + ",\n".join(ROWS[:5])).encode(), 1)
    old = with_room("\n" + FLUSHED + "".join(dice.choices("abcdef0123456789", k=2000)))
    more = [",\n" + json.dumps({**json.loads(ROWS[0]), "args": {"name": dice.randbytes(size).hex()}}) for size in (3000, 200_000)]
    return first + old[:at] + b"".join([*members(*more), with_room("\n" + FLUSHED)])[at:]


@pytest.mark.parametrize("at", [4, 9, 11, 12, 100, 1000, 1033, 1034, 1040, 1100, 1500])
def test_a_trailer_that_is_written_over_while_it_is_read(tmp_path, at):
    (path := tmp_path / "t.json.gz").write_bytes(written_over(at))
    for command in (["check"], ["report"], ["merge", "-o", tmp_path / "merged.json"]):
        status, _, complaints = run_all(*command, path)
        assert status == (2 if command == ["check"] else 0) and len(complaints) == 1 and "truncated" in complaints[0], complaints
    assert run_all("recover", path)[0] == 0
    found = read(recovered(path))["traceEvents"]
    assert 4 <= len(found) <= 5 and found == rows_of(WHOLE)[:len(found)] and run_all("check", recovered(path))[0] == 0


def test_room_in_every_member_says_nothing(tmp_path):
    """Some who pack a file anew leave some. What is damaged there is damaged."""
    data = bytearray(b"".join(map(with_room, [FIRST + ",\n".join(ROWS[:5]), "".join(",\n" + row for row in ROWS[5:]), "\n" + TRAILER + "\n"])))
    (path := tmp_path / "t.json.gz").write_bytes(data)
    assert run_all("check", path)[0] == 0
    at = data.index(b"\x1f\x8b\x08", 3) + 1034
    data[at:at + 40] = b"\xff" * 40
    path.write_bytes(data)
    status, _, complaints = run_all("report", path)
    assert status == 2 and "damaged gzip data" in complaints[0]


def torn(tmp_path, name="t.json"):
    (path := tmp_path / name).write_bytes(WHOLE.encode()[:WHOLE.encode().index(b'"gpu_memset"') + 5])
    return path


def test_what_the_other_commands_say(tmp_path):
    """One line each, and what is before the tear."""
    path, rows = torn(tmp_path), list(GOOD).index("memset")
    status, said, complaints = run_all("check", path)
    assert (status, said) == (2, []) and complaints == [
        f"custream check: {path}: truncated: it ends inside an event, as when a process is killed while it writes. The {rows} events before that keep the rules; "
        "'custream recover' makes a whole file of them"]
    for command in (["report"], ["diff", path], ["merge", "-o", tmp_path / "merged.json"]):
        status, said, complaints = run_all(*command, path)
        assert status == 0 and said and {line.split(",")[0].split(": ", 2)[2] for line in complaints} == {"truncated"}, complaints
    assert len(rows_of((tmp_path / "merged.json").read_text())) >= rows - 1


def test_a_torn_file_that_breaks_a_rule(tmp_path):
    path = torn(tmp_path)
    path.write_text(path.read_text().replace('"ts":14.5', '"ts":null'))
    status, said, complaints = run_all("check", path)
    assert (status, complaints) == (1, []) and ": rule 1: " in said[0]
    status, said, complaints = run_all("recover", path)
    assert (status, said) == (2, []) and len(complaints) == 1 and "breaks rule 1" in complaints[0] and not recovered(path).exists()


def test_where_the_whole_file_goes(tmp_path):
    path = torn(tmp_path)
    before, rows = path.read_bytes(), list(GOOD).index("memset")
    said = "; {0} bytes behind the last whole one left out. Next: custream report {1}; custream open {1}"
    cut = len(before) - len(before[:before.rindex(b",\n")])
    done = custream("recover", "t.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"t.recovered.json: {rows} events of t.json" + said.format(cut, "t.recovered.json") + "\n")
    assert path.read_bytes() == before and read(recovered(path))["totals"]["recovered"] == {"cut_bytes": cut}
    done = custream("recover", "-o", "o.json", "t.json", cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "o.json").read_bytes() == recovered(path).read_bytes()
    path.chmod(0o640)
    done = custream("recover", "--in-place", "t.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"t.json: {rows} events" + said.format(cut, "t.json") + "\n")
    assert path.read_bytes() == recovered(path).read_bytes() and path.stat().st_mode & 0o777 == 0o640
    assert custream("recover", "--in-place", path).stdout == f"{path}: is whole; nothing to recover\n"
    assert custream("recover", "-o", tmp_path / "copy.json", path).stdout == f"{path}: is whole; {tmp_path}/copy.json is a copy\n"
    assert (tmp_path / "copy.json").read_bytes() == path.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.json", "o.json", "t.json", "t.recovered.json"]


def test_files_of_others(tmp_path):
    """Nothing is written over what is no trace, and the torn file stays."""
    path = torn(tmp_path)
    before = path.read_bytes()
    recovered(path).write_text("my notes")
    status, said, complaints = run_all("recover", path)
    assert (status, said) == (2, []) and "the file is no trace" in complaints[0] and recovered(path).read_text() == "my notes"
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("args, words", [
    ([], "which trace?"), (["-o", "o.json", "--in-place", "t.json"], "one of the two"), (["-o", "o.json", "t.json", "t.json"], "one file for 2 traces"),
    (["-o", "t.json", "t.json"], "is the trace itself"), (["-o", "o.json.gz", "t.json"], "needs the ending of the trace: .json"), (["-o", "", "t.json"], "is missing"),
    (["none.json"], "No such file"), (["."], "Is a directory"), (["--in-plac", "t.json", "--x"], "--x"), (["/dev/null"], "no regular file")])
def test_wrong_usage(tmp_path, args, words):
    path = torn(tmp_path)
    before = path.read_bytes()
    done = custream("recover", *args, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and done.stderr.startswith("custream recover: ") and words in done.stderr and not done.stdout, done.stderr
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


KINETO = json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1}] * 50}, indent=2)


@pytest.mark.parametrize("content", ["", "\n\n", "hello\n", "{", "[1]", FIRST[:70], FIRST[:-5], KINETO[:900], "\x7fELF", FIRST + "[", '{"traceEvents":[\n{"ph":"M"},\n{"ph'])
def test_no_trace(tmp_path, content):
    (path := tmp_path / "t.json").write_text(content)
    status, said, complaints = run_all("recover", path)
    if content != FIRST + "[":
        assert (status, said, len(complaints)) == (2, [], 1) and complaints[0].startswith(f"custream recover: {path}: ") and not recovered(path).exists()
    assert path.read_text() == content


@pytest.mark.parametrize("packed", [False, True])
def test_garbage(tmp_path, packed):
    """Whatever is in the file, there is one line for it, and what comes out has rows of the trace and is accepted."""
    dice, data, paths = random.Random(11), packed_trace() if packed else WHOLE.encode(), []
    for i in range(400):
        content = bytearray(data[:dice.randrange(len(data))])
        for _ in range(dice.randrange(4)):
            at = dice.randrange(len(content) + 1)
            content[at:at + dice.choice([0, 1, 50])] = dice.choice([b"", bytes(9), b"}", b"]", b"\n", b"\"", dice.randbytes(30), data[at:at + 99], b"\xff\xfe"])
        paths.append(tmp_path / (f"{i}.json.gz" if packed else f"{i}.json"))
        paths[-1].write_bytes(content)
    status, said, complaints = run_all("recover", *paths)
    assert status in (0, 2) and len(said) + len(complaints) == len(paths)
    made = [path for path in map(recovered, paths) if path.exists()]
    assert len(made) > 50
    for path in made:
        read(path)


@pytest.mark.parametrize("ending", [".pftrace", ".pftrace.gz"])
def test_packets_that_end_too_early(tmp_path, ending):
    """Perfetto opens them as they are. Whole, they also say what they add up to."""
    def rows_in(path):
        assert run_all("convert", path, tmp_path / "back.json")[0] == 0
        return rows_of((tmp_path / "back.json").read_text())

    (tmp_path / "t.json").write_text(launches(20))
    whole = tmp_path / "whole.pftrace"
    assert run_all("convert", tmp_path / "t.json", whole)[0] == 0
    data, rows, counts = whole.read_bytes(), rows_in(whole), []
    for length in [*range(len(data) // 3, len(data), len(data) // 9), len(data) - 1]:
        path = tmp_path / f"{length}{ending}"
        path.write_bytes(gzip.compress(data[:length]) if ending.endswith(".gz") else data[:length])
        status, said, complaints = run_all("recover", path)
        made = path.with_name(f"{length}.recovered{ending}")
        assert (status, complaints) == (0, []) and said[0].startswith(f"{made}: "), (said, complaints)
        status, said, complaints = run_all("check", made)
        assert (status, complaints) == (0, []) and ": incomplete: recovered up to the last whole event: " in said[0]
        found = rows_in(made)
        assert found == rows[:len(found)]
        counts.append(len(found))
        before = made.read_bytes()
        assert run_all("recover", "--in-place", path)[0] == 0 and path.read_bytes() == before
    assert counts == sorted(counts) and counts[0] < counts[-1] == len(rows)
    assert run_all("recover", whole) == (0, [f"{whole}: is whole; nothing to recover"], [])


def test_packets_under_another_name(tmp_path):
    (tmp_path / "t.json").write_text(launches(20))
    assert run_all("convert", tmp_path / "t.json", tmp_path / "t.pftrace")[0] == 0
    (path := tmp_path / "cut.json").write_bytes((tmp_path / "t.pftrace").read_bytes()[:-9])
    status, _, complaints = run_all("recover", path)
    assert status == 2 and "under a name that ends in .pftrace it can be recovered" in complaints[0]


def test_a_tail_of_zeros(tmp_path):
    """As after a machine that lost its power."""
    path = torn(tmp_path)
    with path.open("ab") as file:
        file.write(bytes(5000))
    assert run_all("recover", path)[0] == 0
    assert len(read(recovered(path))["traceEvents"]) == list(GOOD).index("memset")


def test_perfetto_opens_them(tmp_path, trace_processor):
    for name, cut in (("a.json", 2000), ("b.json.gz", 700), ("c.json", len(WHOLE.encode()) - 30), ("d.json", len(FIRST.encode()))):
        (path := tmp_path / name).write_bytes((packed_trace() if name.endswith("gz") else WHOLE.encode())[:cut])
        assert run_all("recover", path)[0] == 0
        trace_processor.load(recovered(path))
        assert_clean(trace_processor)


def test_a_merged_trace(tmp_path):
    (one := tmp_path / "a.json").write_text(WHOLE)
    (two := tmp_path / "b.json").write_text(WHOLE.replace("4242", "4300"))
    assert run_all("merge", "-o", tmp_path / "m.json", one, two)[0] == 0
    data = (tmp_path / "m.json").read_bytes()
    paths = []
    for cut in range(data.index(b'"traceEvents":[') + 20, len(data) - 1, 97):
        paths.append(tmp_path / f"{cut}.json")
        paths[-1].write_bytes(data[:cut])
    assert run_all("recover", *paths)[::2] == (0, [])
    assert run_all("check", *map(recovered, paths))[::2] == (0, [])


# ---- traces of programs ----

def cuts_of(path, tmp_path, count=40):
    """Copies of the trace that end somewhere, and what `custream recover` makes of them."""
    data, dice, paths = path.read_bytes(), random.Random(path.name), []
    for i in range(count):
        paths.append(tmp_path / "cut" / f"{i}{path.name[path.name.index('.json'):]}")
        paths[-1].parent.mkdir(exist_ok=True)
        paths[-1].write_bytes(data[:dice.randrange(len(data) // 2, len(data) - 1)])
    assert run_all("recover", *paths)[::2] == (0, [])
    return list(map(recovered, paths))


@pytest.mark.parametrize("app", [["demo"], ["callbacks"]])
@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_traces_of_programs(run_app, tmp_path, app, name):
    run = run_app(app, env={"CUSTREAM_TRACE": str(tmp_path / name)}).check()
    rows = Trace(tmp_path / name).events
    for path in cuts_of(tmp_path / name, tmp_path):
        trace = Trace(path)
        assert trace.verdict == "incomplete: recovered up to the last whole event" and trace.events == rows[:len(trace.events)]
    assert run.rc == 0


@pytest.mark.parametrize("path", sorted((pathlib.Path(__file__).parents[2] / "traces").glob("*.gz"), key=lambda path: path.stat().st_size)[:4], ids=lambda path: path.name)
def test_traces_of_earlier_versions(tmp_path, path):
    rows = rows_of(gzip.decompress(path.read_bytes()))
    for cut in cuts_of(path, tmp_path, 4):
        trace = Trace(cut)
        assert trace.verdict.startswith("incomplete: recovered") and trace.events == rows[:len(trace.events)]


def tear(path, packed=False):
    """As a kill in the middle of a write leaves it: an event is cut, and behind it stands the rest of the old trailer."""
    data = path.read_bytes()
    if packed:
        last = data.rindex(b"\x1f\x8b\x08")
        data = data[:last - 20]
    else:
        end = data.rindex(b'\n],"traceName"')
        at = data.rindex(b',\n{"ph"', 0, end) + 40
        data = data[:at] + data[end + 30:]
    with path.open("r+b") as file:  # the same file
        file.write(data)
        file.truncate()


BY = "incomplete: ended by {}, and what came in the last half second may be missing; recovered up to the last whole event"


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT"])
def test_the_watcher_recovers(build, tmp_path, how, name):
    """The torn file of the process gets its end, and the closing line tells."""
    run = begin(build, tmp_path, "burst", 1, 1000, 60000, options=["-o", name])
    has_calls(tmp_path / name)
    run.send_signal(signal.SIGSTOP)
    until(lambda: pathlib.Path(f"/proc/{run.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
    inode = (tmp_path / name).stat().st_ino
    tear(tmp_path / name, name.endswith(".gz"))
    assert run_all("recover", tmp_path / name)[2] == [f"custream recover: {tmp_path / name}: a process still writes to it; its file gets a whole end when it ends"]
    run.send_signal(getattr(signal, how))
    run.send_signal(signal.SIGCONT)
    _, err = run.communicate(timeout=60)
    assert re.fullmatch(rf"custream: {name}: \d+ calls, \d+ GPU operations; {BY.format(how)}\. Next: custream report {name}; custream open {name}", err.splitlines()[-1]), err
    trace = Trace(tmp_path / name)
    assert trace.verdict == BY.format(how) and trace.totals["ended_by"] == how and trace.totals["calls"] > 100
    assert (tmp_path / name).stat().st_ino != inode and sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_the_watcher_leaves_another_file_alone(build, tmp_path):
    """A torn file that has come to the name meanwhile."""
    run = begin(build, tmp_path, "burst", 1, 1000, 60000, options=["-o", "t.json"])
    has_calls(tmp_path / "t.json")
    (tmp_path / "t.json").unlink()
    path = torn(tmp_path)
    before = path.read_bytes()
    run.kill()
    _, err = run.communicate(timeout=60)
    assert path.read_bytes() == before and "the file of the trace has another name, was removed" in err


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("name, limit", [("t.json", "1G"), ("t.json.gz", "1G"), ("t.json", "1M,rotate:99"), ("t.json.gz", "1M,rotate:99")])
def test_kills_at_full_speed(build, tmp_path, name, limit, watched):
    """Whatever a kill leaves is recovered: by the watcher, or by the command."""
    options = {"CUSTREAM_TRACE": name, "CUSTREAM_FULL": "block", "CUSTREAM_TRACE_MAX": limit}
    dice = random.Random(name + limit)
    for _ in range(4):
        if watched:
            run = begin(build, tmp_path, "burst", 2, 100000000, env=options)
        else:
            env = environment(build, **options, LD_PRELOAD=str(build / "libcustream_shim.so"))
            run = subprocess.Popen([build / "tests" / "burst", "2", "100000000"], cwd=tmp_path, env=env, stderr=subprocess.DEVNULL)
        until((tmp_path / name).exists)
        time.sleep(dice.uniform(0, 0.05))
        run.kill()
        run.communicate(timeout=60)
        for path in sorted(tmp_path.glob("t*.json*")):
            if not watched and path.stat().st_size:
                assert run_all("recover", "--in-place", path)[::2] == (0, []), path
            if path.stat().st_size:
                assert run_all("check", path)[::2] == (0, []), path
            path.unlink()


def test_parts(build, tmp_path):
    """The newest part is torn. What all parts have together is known from the one before it."""
    run = begin(build, tmp_path, "burst", 1, 30000, 60000, options=["-o", "t.json", "--trace-max=1M,rotate:99", "--full=block", "--keep=off"])
    until(lambda: len(list(tmp_path.glob("t.*.json"))) > 1)
    until(lambda: (tmp_path / "t.json").read_text().count(',\n{"ph"') > 20)

    def stopped_between_writes():
        run.send_signal(signal.SIGSTOP)
        until(lambda: pathlib.Path(f"/proc/{run.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
        between = '\n],"traceName"' in (tmp_path / "t.json").read_text(errors="replace")
        if not between:
            run.send_signal(signal.SIGCONT)
        return between
    until(stopped_between_writes)
    tear(tmp_path / "t.json")
    run.kill()
    _, err = run.communicate(timeout=60)
    assert BY.format("SIGKILL") in err
    newest = Trace(tmp_path / "t.json").totals
    before = [Trace(tmp_path / f"t.{part}.json").totals for part in range(1, newest["part"])]
    for number, name in (("calls_in_all_parts", "calls"), ("recorded_in_all_parts", "recorded")):
        assert newest[number] == sum(totals[name] for totals in [*before, newest])
