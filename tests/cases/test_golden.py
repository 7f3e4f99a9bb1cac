"""Outputs of every command over a corpus of traces are what they were, byte for byte (tests/golden/golden.py). `make bless` renews them."""
import difflib

import pytest

from tests.golden.golden import EXPECTED, ROWS, TRACES, expected, files_expected, result

WIDTH = 140  # columns of a line of a difference
LINES = 40


def folded(text):
    """Lines, long ones in several pieces, so that a difference shows the piece that differs."""
    return [line[at:at + WIDTH] for line in text.splitlines() for at in range(0, max(len(line), 1), WIDTH)]


def difference(wanted, found):
    """The begin of a unified diff, of what is between the common begin and the common end of both."""
    sides, same = [folded(wanted), folded(found)], 0
    while same < min(map(len, sides)) and sides[0][same] == sides[1][same]:
        same += 1
    begin = max(0, same - 3)
    lines = difflib.unified_diff(*(side[begin:begin + 400] for side in sides), "expected", "found", f"from line {begin + 1}", "", lineterm="")
    return "\n".join(list(lines)[:LINES]) or "only ends of lines differ"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_output(row):
    found, wanted = result(row), expected(row)
    assert wanted is not None, f"{row.name} has no expected file: make bless"
    if found != wanted:
        pytest.fail(f"{row.name}: if this is as it is to be: make bless\n{difference(wanted, found)}", pytrace=False)


def test_differences_are_shown():
    """Also of one digit far out in a long line, and of an output that has become longer."""
    text = "a\n" + "x" * 1000 + "7" + "y" * 1000 + "\nz\n"
    lines = difference(text, text.replace("7", "8")).splitlines()
    assert len(lines) < 12 and [line[0] for line in lines if "x7y" in line or "x8y" in line] == ["-", "+"]
    assert difference("a\n", "a\nb\n").splitlines()[-1] == "+b"
    assert difference("a\n", "a\r\n") == "only ends of lines differ"


def test_expected_files_are_those_of_rows():
    """None is left over, no row has two, and they stay small enough to be kept."""
    there, wanted = files_expected()
    assert there <= wanted and len(there) == len(ROWS) == len({row.name for row in ROWS})
    assert sum(path.stat().st_size for path in EXPECTED.rglob("*.txt*")) < 690_000
    assert sum(path.stat().st_size for path in TRACES.iterdir()) < 275_000


def test_every_trace_is_read():
    words = {word for row in ROWS for word in row.words.replace("=", " ").split()}
    assert {path.name for path in TRACES.iterdir()} <= words
