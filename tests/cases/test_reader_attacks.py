"""What an adversary made the readers of traces say: each was false, or a crash, and has a truth by construction here."""
import gzip
import json
import os
import re

import pytest

from tests.golden.golden import TRACES
from tests.handmade import GOOD, HEADER, HOST, check, custream, render, slice_
from tests.tracestory import Story

READERS = (["check"], ["report"], ["diff"])


def whole(launches=400):
    story = Story()
    story.stream(13)
    for n in range(launches):
        story.kernel(13, 10 * n, 10 * n + 3, 5)
    return story.text()


@pytest.mark.parametrize("command", ["check", "report"])
def test_newest_of_parts_in_packets(tmp_path, command):
    """Ended by a signal: what stands in a header of packets has no text."""
    for name in ("rotated.1", "rotated.2", "rotated"):
        assert custream("convert", TRACES / f"{name}.json.gz", tmp_path / f"{name}.pftrace").returncode == 0
    done = custream(command, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr.splitlines()[0] == f"custream {command}: newest trace here: rotated.pftrace, in 3 parts"


@pytest.mark.parametrize("command", ["check", "report"])
def test_newest_is_of_a_newer_format(tmp_path, command):
    """It was passed by, and an older trace taken."""
    for name, text in (("old", whole()), ("new", whole().replace('"schemaVersion":2', '"schemaVersion":3', 1))):
        (tmp_path / f"{name}.json").write_text(text)
    os.utime(tmp_path / "old.json", (1, 1))
    done = custream(command, cwd=tmp_path)
    assert done.returncode == 2 and "newest trace here: new.json\n" in done.stderr and "its format is 3" in done.stderr


@pytest.mark.parametrize("format_, said", [("4294967298", "no number"), ("2.9", "no number"), ("-1", "no number"), ("7", "7")])
def test_formats_that_are_no_number_of_one(tmp_path, format_, said):
    result, path = check(tmp_path, whole().replace('"schemaVersion":2', f'"schemaVersion":{format_}', 1))
    assert (result.returncode, result.stdout) == (2, "") and result.stderr.startswith(f"custream check: {path}: its format is {said}, and custream ")


@pytest.mark.parametrize("zeros", [2, 3000], ids=["its first bytes", "all of it"])
def test_a_member_that_is_zeroed(tmp_path, zeros):
    """All behind it was taken for a torn end: recover --in-place cut it off."""
    lines = whole(4000).encode().split(b"\n")
    members = [gzip.compress(b"\n".join(lines[at:at + 400]) + b"\n") for at in range(0, len(lines), 400)]
    at = sum(map(len, members[:4]))
    data = bytearray(b"".join(members))
    zeros = min(zeros, len(members[4]))
    data[at:at + zeros] = bytes(zeros)
    path = tmp_path / "t.json.gz"
    path.write_bytes(data)
    for words in (["check"], ["report"], ["recover", "--in-place"]):
        done = custream(*words, path)
        assert (done.returncode, done.stdout) == (2, "") and f"damaged gzip data: no member begins at byte {at}" in done.stderr
    assert path.read_bytes() == data


def test_packets_whose_gzip_stream_is_cut(tmp_path):
    (tmp_path / "t.json").write_text(whole())
    path = tmp_path / "t.pftrace.gz"
    assert custream("convert", tmp_path / "t.json", path).returncode == 0
    path.write_bytes(path.read_bytes()[:-4])
    done = custream("check", path)
    assert done.returncode == 2 and "truncated" in done.stderr


@pytest.mark.parametrize("words", READERS)
@pytest.mark.parametrize("at", ["value", "comma", "member"])
def test_a_zero_byte_is_told(tmp_path, words, at):
    """Nothing was said behind the colon."""
    text = whole()
    place = {"value": text.index('\n{"ph":"X"') + 1, "comma": text.index('},\n{"ph":"X"') + 1, "member": text.index('"baseTime')}[at]
    path = tmp_path / "t.json"
    path.write_text(text[:place] + "\0" + text[place:])
    done = custream(*words, *[path] * (1 + (words == ["diff"])))
    assert done.returncode in (1, 2) and re.search(r"no JSON: \w", done.stdout + done.stderr), done


def test_members_behind_the_rows(tmp_path):
    """Whose they are, and from when their times count, is known once all of the file was read."""
    text = whole()
    members = json.loads(text)
    rows = members.pop("traceEvents")
    path, turned = tmp_path / "t.json", tmp_path / "turned.json"
    path.write_text(text)
    turned.write_text(json.dumps({"traceEvents": rows, **members}))
    said = [custream("report", "--json", name) for name in (path, turned)]
    assert said[0].returncode == 0 and said[1].stdout.replace("turned.json", "t.json") == said[0].stdout


def test_recover_is_promised_only_where_it_helps(tmp_path):
    text = json.dumps(json.loads(whole()), indent=1)
    result, path = check(tmp_path, text[:text.index('"traceName"')].rpartition("{")[0])
    assert result.returncode == 2 and "truncated" in result.stderr and "custream recover" not in result.stderr


def test_a_part_that_is_torn_before_its_first_row(tmp_path):
    path, out = tmp_path / "t.2.json", tmp_path / "out.json"
    lines = gzip.decompress((TRACES / "rotated.2.json.gz").read_bytes()).decode().split("\n")
    first = next(i for i, line in enumerate(lines) if line.endswith('"traceEvents":['))
    path.write_text("\n".join(lines[:first + 1]) + '\n{"ph":"X","na')
    assert custream("recover", "-o", out, path).returncode == 0
    done = custream("check", out)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("time", ["1E400", "9999999999999999999", '"nan"'])
def test_a_time_of_ours_that_is_none(tmp_path, time):
    """It became 73 years."""
    text = whole(3)
    path = tmp_path / "t.json"
    path.write_text(re.sub(r'("name":"cuLaunchKernel".*?"ts":)[0-9.]+', rf"\g<1>{time}", text, count=1))
    done = custream("report", path)
    assert done.returncode == 0 and "without a usable time" in done.stdout + done.stderr
    assert not re.search(r"ran for \d{4,}", done.stdout)


def test_times_as_texts_with_more_behind_them(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents":[{"ph":"X","name":"k","cat":"kernel","pid":0,"tid":7,"ts":"1x","dur":"1 2"}]}')
    assert custream("convert", path, tmp_path / "o.pftrace").returncode == 2


def test_an_event_of_very_many_members(tmp_path):
    """They were compared each with each."""
    many = dict.fromkeys((f"m{n}" for n in range(50_000)), 1)
    rows = dict(GOOD, many=slice_("cs_policy", "delay", HOST, 4250, 900, 1, **many))
    result, _ = check(tmp_path, render(rows, HEADER))
    assert "twice" not in result.stdout
    text = render(rows, HEADER).replace('"m49999":1', '"m1":1')
    assert "rule 0: \"m1\" stands twice in one object" in check(tmp_path, text)[0].stdout


def test_the_newest_range_by_its_end(tmp_path):
    """Rings are written one by one: a later range may stand first in the file."""
    step = [slice_("user_annotation", "step", HOST, 4250, ts, 20) for ts in (500, 100)]
    calls = [slice_("cuda_driver", name, HOST, 4250, ts, 1) for name, ts in (("cuCtxSynchronize", 505), ("cuCtxGetDevice", 105))]
    names = [row for row in GOOD.values() if row["ph"] == "M"]
    path, out = tmp_path / "t.json", tmp_path / "o.json"
    path.write_text(render(dict(enumerate([*names, calls[0], step[0], calls[1], step[1]]))))
    assert custream("merge", "--range=step", "-o", out, path).returncode == 0
    assert [row["name"] for row in json.loads(out.read_text())["traceEvents"] if row.get("cat") == "cuda_driver"] == ["cuCtxSynchronize"]
    path.write_text(path.read_text()[:-250])
    done = custream("merge", "--range=step", "-o", out, path)
    assert done.returncode == 0 and "truncated" in done.stderr


def test_a_range_that_cannot_be_cut(tmp_path):
    """It is there: neither was recording off, nor is the file full."""
    names = [row for row in GOOD.values() if row["ph"] == "M"]
    span = {"cat": "user_annotation", "name": "step", "id2": {"local": 7}, "pid": HOST, "tid": 4250}
    path = tmp_path / "t.json"
    path.write_text(render(dict(enumerate([*names, {"ph": "b", "ts": 100, **span}, {"ph": "e", "ts": 120, **span}]))))
    for name, said in (("step", "has a range of that name that is the process's or crosses another one, which cannot be cut out"),
                       ("stop", "does not have the range: it has another name, recording was off, or the file is full")):
        done = custream("merge", f"--range={name}", "-o", tmp_path / "o.json", path)
        assert (done.returncode, done.stderr) == (2, f"custream merge: {path} {said}\n")
