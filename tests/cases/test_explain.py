"""`custream explain`: the page of a finding, as docs/findings.md has it, and nothing else."""
import re

import pytest

from tests.handmade import custream


def sections(root):
    """Title and text by id, of the page."""
    parts = re.split(r"^## ", (root / "docs/findings.md").read_text(encoding="utf-8"), flags=re.M)[1:]
    return {part[:5]: part for part in parts if part.startswith("CS")}


def test_each_page_is_that_of_the_documentation(root):
    pages = sections(root)
    assert len(pages) > 20
    for id_, section in pages.items():
        done = custream("explain", id_)
        assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", section.strip())


def test_all_are_listed(root):
    done = custream("explain")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [section.splitlines()[0] for section in sections(root).values()]


def test_an_id_in_small_letters():
    assert custream("explain", "cs104").stdout == custream("explain", "CS104").stdout != ""


@pytest.mark.parametrize("arguments, said", [
    (["CS99"], "'CS99': no such finding; 'custream explain' lists them"),
    (["CS1040"], "'CS1040': no such finding; 'custream explain' lists them"),
    ([""], "'': no such finding; 'custream explain' lists them"),
    (["CS104", "CS105"], "takes one finding, as CS104"),
])
def test_what_is_wrong_is_one_line(arguments, said):
    done = custream("explain", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"custream explain: {said}\n")
