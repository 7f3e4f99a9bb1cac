"""What `custream check` reads besides files as custream writes them: standard input, and copies with other lines."""
import gzip
import json
import resource
import subprocess

import pytest

from tests import variants
from tests.handmade import COMMAND, GOOD, HEADER, HOST, assert_breach, changed, check, custream, good_trace, line_of, render, slice_

SUMMARY = "incomplete: events 20, slices 9, flows 2, threads 1, lanes 3, lost records 7, 3 GPU operations without their calls\n"
WHOLE = render(GOOD)


def piped(text, *args):
    """Through a pipe, which knows no way back."""
    done = subprocess.run([COMMAND, *args], input=text if isinstance(text, bytes) else text.encode(), capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("pack", [str.encode, lambda text: gzip.compress(text.encode())], ids=["plain", "gzip"])
def test_standard_input(tmp_path, pack):
    assert piped(pack(WHOLE), "check", "-") == (0, "standard input: " + SUMMARY, "")
    broken = WHOLE.replace('"lost_records":7', '"lost_records":6')
    status, said, complaint = piped(pack(broken), "check", "-")
    assert (status, complaint) == (1, "") and said.startswith(f"standard input:{len(HEADER) + len(GOOD) + 1}: rule 10: ")
    path = tmp_path / "t.json"
    path.write_bytes(pack(WHOLE))
    assert piped(pack(WHOLE), "check", path, "-") == (0, f"{path}: {SUMMARY}standard input: {SUMMARY}", "")
    with path.open() as file:
        assert custream("check", "-", stdin=file).stdout == "standard input: " + SUMMARY


@pytest.mark.parametrize("pack", [str.encode, lambda text: gzip.compress(text.encode())], ids=["plain", "gzip"])
def test_what_is_wrong_with_standard_input(pack):
    status, said, complaint = piped(pack(WHOLE[:WHOLE.index('"k(float*)')]), "check", "-")
    assert (status, said) == (2, "") and complaint.startswith("custream check: standard input: truncated: it ends inside an event") and "'custream recover'" in complaint
    assert piped(b"", "check", "-") == (2, "", "custream check: standard input: empty\n")
    assert piped(pack(WHOLE), "check", "-", "-") == (2, "standard input: " + SUMMARY, "custream check: standard input: standard input can be read once\n")


def test_a_file_whose_name_is_a_dash(tmp_path):
    (tmp_path / "-").write_text(WHOLE)
    assert custream("check", "./-", cwd=tmp_path).stdout == "./-: " + SUMMARY


def test_a_closed_standard_input():
    done = subprocess.run(["bash", "-c", 'exec "$0" check - <&-', COMMAND], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "custream check: standard input: Bad file descriptor\n")
    done = subprocess.run(["bash", "-c", 'exec "$0" check - </', COMMAND], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "custream check: standard input: Is a directory\n")


def test_a_report_of_standard_input(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(WHOLE)
    of_file = custream("report", "--json", path)
    assert of_file.returncode == 0
    assert piped(gzip.compress(WHOLE.encode()), "report", "--json", "-") == (0, of_file.stdout.replace(str(path), "-"), "")
    status, said, complaint = piped(WHOLE, "diff", "-", path)
    assert (status, complaint) == (0, "") and "Nothing changed." in said
    assert piped(WHOLE, "diff", "-", "-") == (2, "", "custream diff: -: standard input can be read once\n")
    assert piped(WHOLE, "diff", path, "-", "--after", path) == (2, "", "custream diff: standard input: no regular file; of several files on a side each is read twice\n")


COPIES = {
    "indented": json.dumps(json.loads(WHOLE), indent=1), "sorted": json.dumps(json.loads(WHOLE), indent=4, sort_keys=True), "one line": json.dumps(json.loads(WHOLE)),
    "bracket below": json.dumps(json.loads(WHOLE), indent=2).replace('"traceEvents": [', '"traceEvents":\n['),
    "brace behind": json.dumps(json.loads(WHOLE), indent=2).replace('"traceEvents": [\n    {', '"traceEvents": [{'),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_with_other_lines(tmp_path, name):
    """It is judged like the file that it was made of, and a breach has the line on which its event begins."""
    result, path = check(tmp_path, COPIES[name])
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{path}: {SUMMARY}", "")
    text = COPIES[name].replace('"ph": "X"', '"ph": "?"', 1)
    result, path = check(tmp_path, text)
    begin, depth = text.index('"?"'), 1
    while depth:
        begin -= 1
        depth += {"{": -1, "}": 1}.get(text[begin], 0)
    line = text[:begin].count("\n") + 1
    assert (result.returncode, result.stdout) == (1, f"{path}:{line}: rule 0: no known ph\n")


def test_another_tools_trace(tmp_path):
    """The rules are of custream's files: nothing is said of another tool's but that."""
    result, path = check(tmp_path, '{"traceEvents":[{"ph":"X","name":"k","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":2}]}')
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"custream check: {path}: another tool's trace, and the rules are of custream's; 'custream report' reads it\n"


@pytest.mark.parametrize("args", [[], [1, 2], [{"name": "a"}, {"name": "b"}], 5, "text", True])
@pytest.mark.parametrize("row", ["kernel", "launch", "process", "loss", "counter"])
def test_arguments_that_are_no_object(tmp_path, row, args):
    """A list of two ended the command by a signal."""
    assert_breach(tmp_path, render(changed(**{row: {"args": args}})), line_of(GOOD, row), 0, "args is no object")


@pytest.mark.parametrize("depth", [450, 100000])
def test_values_in_values_need_no_stack(tmp_path, depth):
    """Wherever they stand, as deep as cJSON reads them and deeper: each command ends by itself, also with a stack of 256 KiB."""
    def small():
        if not variants.NAME:
            resource.setrlimit(resource.RLIMIT_STACK, (256 << 10, resource.RLIM_INFINITY))

    nested, text = '"x":' + '[{"a":' * depth + "1" + "}]" * depth + ",", render(GOOD)
    last = text.rindex('"args":{') + 8
    files = {"header": text.replace('"metadata":{', '"metadata":{' + nested, 1), "row": text.replace('"args":{', '"args":{' + nested, 1), "totals": text.replace('"totals":{', '"totals":{' + nested, 1),
             "trailer": text.replace('],"traceName"', "]," + nested + '"traceName"', 1), "torn": text[:last] + nested, "cut": text[:last] + nested[:len(nested) // 2], "bare": nested[4:-1]}
    other = tmp_path / "other.json"
    other.write_text(text)
    for name, content in files.items():
        path = tmp_path / f"{name}.json"
        path.write_text(content)
        for words in (["check", path], ["report", path], ["convert", path, tmp_path / "t.pftrace"], ["convert", "--whole", path, tmp_path / "t.json"], ["merge", "-o", tmp_path / "m.json", path],
                      ["recover", "-o", tmp_path / "r.json", path], ["diff", path, other]):
            assert custream(*words, preexec_fn=small).returncode in (0, 1, 2), words


# ts, processor time at the call's begin, and at its end: of calls of 400 us. Calls without readings end where the first begins, and begin where the last ends.
CLOCKS = [
    ([(1000, 500, None), (2000, 1490, 1890)], None), ([(1000, 500, None), (2000, 2101, None)], None), ([(1000, 500, None), (2000, 2103, None)], "passes by 203 us more"),
    ([(1000, 500, 1150)], "passes by 250 us more"), ([(1000, 5000, 4900)], "goes back by 100 us"), ([(1000, 5000, 5400), (9000, 4000, None)], None),
    ([(1000, 5000, None), (2000, 1100, None)], None), ([(1000, 5000, None), (2000, 1700, None)], "goes back by 3300 us"), ([(1000, -1, None)], "is no time"),
    ([(1000, 500, None), (2_001_000, 2_002_600, None)], None), ([(1000, "x", None)], "is no time")]


@pytest.mark.parametrize("readings, words", CLOCKS)
def test_clocks_of_threads(tmp_path, readings, words):
    rows = dict(GOOD)
    for i, (ts, begin, end) in enumerate(readings):
        args = {"cpu_us": begin, **({} if end is None else {"cpu_end_us": end})}
        rows[f"clock {i}"] = slice_("cs_stream", "o", HOST, 4299, ts, 400, **args)
    rows["before"] = slice_("cs_stream", "o", HOST, 4299, readings[0][0] - 1, 1)
    rows["behind"] = slice_("cs_stream", "o", HOST, 4299, readings[-1][0] + 400, 1)
    if words:
        assert_breach(tmp_path, render(rows), line_of(rows, f"clock {len(readings) - 1}"), 13, words)
    else:
        good_trace(tmp_path, render(rows))
