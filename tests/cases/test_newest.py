"""`report`, `open` and `check` without a file take the newest trace of the current folder."""
import json
import os
import shutil

import pytest

from tests.golden.golden import TRACES
from tests.handmade import custream

COMMANDS = {"report": ["--section=calls"], "check": []}


def put(folder, source, to=None, age=0):
    path = folder / (to or source)
    shutil.copyfile(TRACES / source, path)
    os.utime(path, ns=(0, 1_700_000_000_000_000_000 - age * 1_000))
    return path


def taken(command, folder, *words):
    """The line that names the trace; what follows is as if it had been named."""
    done = custream(command, *COMMANDS[command], cwd=folder)
    named = custream(command, *COMMANDS[command], *words, cwd=folder)
    first, _, rest = done.stderr.partition("\n")
    assert (done.returncode, done.stdout, rest) == (named.returncode, named.stdout, named.stderr)
    return first.removeprefix(f"custream {command}: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_takes_the_newest(command, tmp_path):
    put(tmp_path, "demo.json.gz", age=1)
    put(tmp_path, "leaks.pftrace", age=2)
    assert taken(command, tmp_path, "demo.json.gz") == "newest trace here: demo.json.gz"
    put(tmp_path, "streams.pftrace.gz")
    assert taken(command, tmp_path, "streams.pftrace.gz") == "newest trace here: streams.pftrace.gz"


@pytest.mark.parametrize("command", COMMANDS)
def test_passes_by_what_is_no_trace_of_ours(command, tmp_path):
    put(tmp_path, "remote.json", "-o.json", age=9)
    for name in ("kineto_2024.json", "chrome_plain.json", "perfetto.pftrace", "no_trace.json", "empty.json"):
        put(tmp_path, name)
    put(tmp_path, "leaks.json", "leaks.txt")
    put(tmp_path, "leaks.json", ".leaks.json")
    (tmp_path / "package.json").write_text(json.dumps({"schemaVersion": 1, "metadata": {"tool": "custream 1"}}))
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "gone.json").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.json")
    assert taken(command, tmp_path, "--", "-o.json") == "newest trace here: -o.json"


@pytest.mark.parametrize("command", COMMANDS)
def test_takes_all_parts_of_the_run(command, tmp_path):
    """Those that are there, in their order, of an older copy none, and no other run's."""
    parts = ["rotated.1.json.gz", "rotated.2.json.gz", "rotated.json.gz"]
    for age, name in enumerate(reversed(parts)):
        put(tmp_path, name, age=age)
    put(tmp_path, parts[0], "copy.json.gz", age=9)
    put(tmp_path, "demo.json.gz", age=4)
    assert taken(command, tmp_path, *parts) == "newest trace here: rotated.json.gz, in 3 parts"
    (tmp_path / parts[0]).unlink()
    (tmp_path / "copy.json.gz").unlink()
    assert taken(command, tmp_path, *parts[1:]) == "newest trace here: rotated.json.gz, in 2 parts"


@pytest.mark.parametrize("command", COMMANDS)
def test_takes_a_trace_that_is_torn(command, tmp_path):
    put(tmp_path, "torn_event.json")
    assert taken(command, tmp_path, "torn_event.json") == "newest trace here: torn_event.json"


@pytest.mark.parametrize("command", [*COMMANDS, "open"])
def test_says_that_there_is_none(command, tmp_path):
    put(tmp_path, "kineto_2024.json")
    done = custream(command, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f"custream {command}: which file? There is no trace of custream's in this folder; "
                           "'custream run -- PROGRAM' writes one\n")


def test_open_serves_the_newest(tmp_path):
    """It says so before it looks for the UI."""
    put(tmp_path, "demo.json.gz")
    done = custream("open", "--offline=/no/such", cwd=tmp_path)
    assert done.stderr.startswith("custream open: newest trace here: demo.json.gz\n") and done.returncode == 2


def test_a_report_is_not_written_over_the_trace(tmp_path):
    put(tmp_path, "remote.json")
    done = custream("report", "--json=remote.json", cwd=tmp_path)
    assert done.returncode == 2 and "is the trace itself" in done.stderr
