"""`custream recover` when it is not the first, or not alone, and where rings have unusual names or are damaged: it never takes back what was saved, and says what it goes without."""
import fcntl
import os
import re
import shutil
import struct

import pytest

from tests.cases.test_recover import recovered, run_all
from tests.cases.test_rings import begin, calls_of, folder, has_begun, judge, kill, numbers, only_ring, rows_of  # noqa: F401 (folder: a fixture)
from tests.cases.test_rings_damage import WORD
from tests.remote import ctl, until

BUFFER_AT = 96


def killed(build, tmp_path, folder, name="t.json", buffered=0, **env):  # noqa: F811
    """A trace that was flushed once, at least, and whose process was killed when it had made more calls, and the buffer had so many bytes."""
    process = begin(build, tmp_path, name, folder, "paced", threads=2, CUSTREAM_BUFFER="64K", **env)
    has_begun(tmp_path, 2)
    until(lambda: ctl(process.pid, "flush")[0] == 0)
    flushed = numbers(tmp_path / "counts")[1]
    until(lambda: numbers(tmp_path / "counts")[1] > flushed + 1000)
    until(lambda: not buffered or buffer_of(only_ring(folder).read_bytes())[1] > buffered)
    kill(process)
    return tmp_path / name


def tear(path):
    """In its trailer, as a kill does that comes while it is written."""
    data, totals = path.read_bytes(), b'"totals":'
    if data[:2] == b"\x1f\x8b" or totals in data:
        os.truncate(path, len(data) - 100 if data[:2] == b"\x1f\x8b" else data.rindex(totals))
    return path


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_second_time(build, tmp_path, folder, name):  # noqa: F811
    """The rings are gone then, and the whole file that has what they had stays."""
    path = tear(killed(build, tmp_path, folder, name))
    assert run_all("recover", path)[::2] == (0, [])
    judge(tmp_path, name, recovered(path), 2)
    before = recovered(path).read_bytes()
    status, said, complaints = run_all("recover", path)
    assert (status, complaints) == (0, []) and said[0] == f"{path}: {recovered(path)} has it, with what the rings of its process added, which are gone", said
    assert recovered(path).read_bytes() == before
    assert run_all("recover", "-o", recovered(path), path)[0] == 0 and recovered(path).read_bytes() == before
    (other := tmp_path / f"other{name[1:]}").write_bytes(path.read_bytes())  # without the whole file there is nothing better
    assert run_all("recover", other)[0] == 0 and "rows" not in rows_of(recovered(other))["totals"]["recovered"]


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.pftrace"])
def test_a_second_time_by_name(build, tmp_path, folder, name):  # noqa: F811
    """The trace was whole up to its last flush: a copy of that does not take the place of what has more."""
    path, whole = killed(build, tmp_path, folder, name), tmp_path / f"whole{name[1:]}"
    assert run_all("recover", "-o", whole, path)[::2] == (0, [])
    before = whole.read_bytes()
    assert run_all("recover", "-o", whole, path)[0] == 0 and whole.read_bytes() == before
    judge(tmp_path, name, whole, 2)


def test_what_stands_there_is_of_another_process(build, tmp_path, folder):  # noqa: F811
    """It gives way, as ever."""
    first = tear(killed(build, tmp_path, folder))
    assert run_all("recover", first)[0] == 0
    shutil.move(recovered(first), tmp_path / "first.json")
    (tmp_path / "counts").unlink()
    second = tear(killed(build, tmp_path, folder))
    shutil.copy(tmp_path / "first.json", recovered(second))
    only_ring(folder).unlink()
    assert run_all("recover", second)[0] == 0 and recovered(second).read_bytes() != (tmp_path / "first.json").read_bytes()


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a b", "ä"])
def test_names_of_folders(build, tmp_path, folder, name):  # noqa: F811
    (folder / name).mkdir()
    path = killed(build, tmp_path, folder / name)
    assert run_all("recover", path)[::2] == (0, [])
    judge(tmp_path, "t.json", recovered(path) if recovered(path).exists() else path, 2)
    assert not list((folder / name).iterdir())


def test_a_relative_folder(build, tmp_path, monkeypatch):
    """Found from elsewhere too."""
    (tmp_path / "rel").mkdir()
    path = killed(build, tmp_path, "rel")
    monkeypatch.chdir("/")
    assert run_all("recover", path)[::2] == (0, [])
    judge(tmp_path, "t.json", recovered(path) if recovered(path).exists() else path, 2)
    assert not list((tmp_path / "rel").iterdir())


def test_a_folder_whose_name_is_too_long(build, tmp_path):
    """No name is cut off: the file would be another process's."""
    deep = tmp_path / ("n" * 150) / ("n" * 150)
    assert len(str(deep)) < 450
    deep /= "n" * (512 - 15 - len(f"{deep}//rel"))  # which leaves no room for a number behind "custream-rings-"
    (deep / "rel").mkdir(parents=True)
    path = killed(build, deep, "rel")
    assert rows_of(path)["metadata"]["rings"] == "not kept: the folder of CUSTREAM_KEEP has no room, cannot be read or written, or has too long a name"
    assert not list((deep / "rel").iterdir())


def test_none_were_kept(build, tmp_path):
    path = killed(build, tmp_path, "off")
    status, said, complaints = run_all("recover", path)
    assert status == 0 and complaints == [f"custream recover: {path}: without the rings of its process: not kept: CUSTREAM_KEEP=off"]
    assert said == [f"{path}: is whole; what was not flushed is not in it"] or re.search(r"\d+ events; ", said[0])


def buffer_of(data):
    """Where in the file of rings what was not written begins, and how long it is."""
    return struct.unpack_from("=Q", data, BUFFER_AT)[0], struct.unpack_from("=Q", data, WORD)[0] & 0xffffff


def killed_with_a_buffer(build, tmp_path, folder, name):  # noqa: F811
    for _ in range(50):
        path = killed(build, tmp_path, folder, name, buffered=8000)
        if buffer_of(only_ring(folder).read_bytes())[1] > 8000:
            return path
        (tmp_path / "counts").unlink()
        only_ring(folder).unlink()
    raise AssertionError("the buffer was empty each time")


def damage(rings, at):
    """So far from the buffer's begin, or its end: in a row a byte is another; in packets, which have no checksum, 1500."""
    data = bytearray(rings.read_bytes())
    begin_, used = buffer_of(data)
    place = begin_ + at % used
    if (row := data.find(b'"ph"', place, begin_ + used)) >= 0:
        data[row] = 1
    else:
        data[place:place + 1500] = b"\xff" * 1500
    rings.write_bytes(data)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.pftrace"])
@pytest.mark.parametrize("at", [-4000, 2000])
def test_a_damaged_buffer(build, tmp_path, folder, name, at):  # noqa: F811
    """Near its end rows are missing, and nothing claims that all calls are there. Elsewhere it is no use, and the trace is recovered without."""
    path, whole = killed_with_a_buffer(build, tmp_path, folder, name), tmp_path / f"whole{name[1:]}"
    damage(only_ring(folder), at)
    status, said, complaints = run_all("recover", "-o", whole, path)
    assert status == 0, complaints
    assert not any("all calls" in line for line in [*said, *run_all("check", whole)[1]]), said
    assert any("damaged" in line for line in [*said, *complaints]), (said, complaints)
    assert calls_of([whole])[0] <= numbers(tmp_path / "counts")[1] + 2


def test_two_at_once(build, tmp_path, folder):  # noqa: F811
    """One that puts a file in the trace's place is alone with it."""
    path = killed(build, tmp_path, folder)
    before = path.read_bytes()
    with open(path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        status, _, complaints = run_all("recover", "--in-place", path)
        assert status == 2 and "still writes to it" in complaints[0] and path.read_bytes() == before and only_ring(folder)
        assert run_all("recover", "-o", tmp_path / "copy.json", path)[0] == 0


def test_the_whole_file_is_the_trace_itself(build, tmp_path, folder):  # noqa: F811
    """By a link: it does not change."""
    path = killed(build, tmp_path, folder)
    before = path.read_bytes()
    recovered(path).symlink_to(path)
    status, _, complaints = run_all("recover", path)
    assert status == 2 and "is the trace itself" in complaints[0] and path.read_bytes() == before and only_ring(folder)


def test_parts_that_were_deleted(build, tmp_path, folder):  # noqa: F811
    """The last flush knew of them, and the whole file does."""
    for _ in range(3):
        process = begin(build, tmp_path, "t.json", folder, CUSTREAM_TRACE_MAX="1M,rotate:3")
        has_begun(tmp_path)
        until(lambda: len(list(tmp_path.glob("t.*.json"))) >= 2 and not (tmp_path / "t.1.json").exists())
        kill(process)
        gone = min(int(path.name.split(".")[1]) for path in tmp_path.glob("t.*.json")) - 1
        flushed = re.findall(rb'"parts_deleted":(\d+)[^\n]*\}\s*$', (tmp_path / "t.json").read_bytes())  # of a trailer that is whole
        assert run_all("recover", "--in-place", tmp_path / "t.json")[0] == 0
        found = rows_of(tmp_path / "t.json")["totals"]
        assert found["parts_deleted"] >= int((flushed or [b"0"])[-1]) and gone - 1 <= found["parts_deleted"] <= gone
        for path in tmp_path.glob("[ct]*"):
            path.unlink()
