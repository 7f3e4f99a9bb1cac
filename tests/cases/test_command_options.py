"""`custream options`: what can be set, from the library's own table."""
import json
import re
import subprocess

import pytest

from tests.handmade import COMMAND, custream
from tests.cases.test_docs import options as rows_of


def listed(*args):
    result = custream("options", *args)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_json_has_every_row_of_the_table(root):
    found = json.loads(listed("--json"))
    version = (root / "VERSION").read_text().strip()
    assert (found["custream_options"], found["tool"], list(found)) == (1, f"custream {version}", ["custream_options", "tool", "options"])
    rows = found["options"]
    assert [(row["variable"], row["default"]) for row in rows] == [("CUSTREAM_" + id_, preset or None) for id_, preset in rows_of(root)]
    for row in rows:
        id_ = row["variable"].removeprefix("CUSTREAM_")
        assert row["flag"] == "--" + id_.lower().replace("_", "-") and row["key"] == (None if id_ == "POLICY" else id_.lower())
        assert row["meaning"] and (row["words"] is None or row["allowed"] == "|".join(row["words"]))
    words = {row["variable"]: row["words"] for row in rows}
    assert words["CUSTREAM_COUNTERS"] == ["gpu", "streams", "off"] and words["CUSTREAM_GPU"] is None and words["CUSTREAM_FORCE"] == ["on", "off", "1", "0"] and words["CUSTREAM_BUFFER"] is None


def test_run_takes_what_is_listed():
    """Every flag with each of its words, or with its default."""
    for row in json.loads(listed("--json"))["options"]:
        for value in row["words"] or [row["default"]]:
            result = custream("run", f"{row['flag']}={value}", "printenv", row["variable"]) if value else None
            settled = result and "contradicts" not in result.stderr and "does nothing beside" not in result.stderr
            assert not settled or (result.returncode, result.stdout) == (0, f"{value}\n"), (row, value, result.stderr)
        if row["words"]:
            assert custream("run", f"{row['flag']}=no-such-word", "true").returncode == 2


def test_text_has_what_json_has():
    text = listed()
    pieces = text.split("\n\n")
    rows = json.loads(listed("--json"))["options"]
    assert len(pieces) == len(rows)
    for piece, row in zip(pieces, rows):
        key = f'   "{row["key"]}"' if row["key"] else ""
        values = ", ".join(row["words"]) if row["words"] else row["allowed"]
        assert piece.rstrip("\n").split("\n") == [f"{row['variable']}   {row['flag']}{key}", f"    {row['meaning']}", f"    values: {values}",
                                                  f"    default: {row['default'] or 'none'}"]


def test_the_document_has_every_member(root):
    page = (root / "docs/command.md").read_text().split("## options: ")[1].split("\n## ")[0]
    found = json.loads(listed("--json"))
    assert set(re.findall(r"^\| `(\w+)` \|", page, flags=re.M)) == set(found) | set(found["options"][0])
    assert page.split("$ custream options\n")[1].startswith(listed().split("\n\n")[0] + "\n...\n")


@pytest.mark.parametrize("args, said", [
    (["--jsno"], 'there is no option "--jsno"; did you mean "--json"?'), (["trace"], "takes nothing but --json"), (["--json=x"], '"--json" takes no value'),
])
def test_wrong_usage(args, said):
    result = custream("options", *args)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"custream options: {said}\n")


@pytest.mark.parametrize("args", [[], ["--json"]])
def test_output_that_does_not_arrive(args):
    with open("/dev/full", "w", encoding="ascii") as full:
        result = subprocess.run([COMMAND, "options", *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (2, "custream: cannot write the output: No space left on device\n")


def test_help():
    assert custream("help", "options").stdout == listed("--help") and "options" in custream("help").stdout
