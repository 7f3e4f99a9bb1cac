"""What the documents say against what is there: options, links, commands."""
import re

import pytest

from tests.trace import CUTS, LOSSES


def options(root):
    """(id, default) of every row of the option table."""
    text = (root / "shim/base/options.def").read_text()
    return re.findall(r'^OPTION\((\w+), \w+, "([^"]*)"', text, flags=re.M)


def test_the_readme_has_every_option_with_its_default(root):
    rows = dict(re.findall(r"^\| `CUSTREAM_(\w+)` \|.*\| (?:`([^`]+)`|found|none) \|$", (root / "README.md").read_text(), flags=re.M))
    assert len(options(root)) >= 6 and rows == dict(options(root))


PLACES = ["README.md", "CONTRIBUTING.md", "docs", "docs/worked"]


def pages(root, name):
    place = root / name
    return sorted(place.glob("*.md")) if place.is_dir() else [place]


def prose(text):
    """(number, line) of the lines outside of code."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        if not code and not line.lstrip().startswith("```"):
            yield number, line


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    titles = [line.lstrip("#").strip() for _, line in prose(page.read_text()) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PLACES)
def test_links_lead_somewhere(root, name):
    for page in pages(root, name):
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", page.read_text()):
            place = page.parent / target if target else page
            assert place.exists(), f"{page.relative_to(root)}: {target}"
            assert not anchor or anchor in anchors(place), f"{page.relative_to(root)}: {target}#{anchor}"


@pytest.mark.parametrize("name", PLACES)
def test_lines_are_short(root, name):
    """At most 100 columns, but for tables, code, and what cannot be broken."""
    long = [f"{page.relative_to(root)}:{number}" for page in pages(root, name) for number, line in prose(page.read_text())
            if len(line) > 100 and not line.startswith(("|", "    ", "<!--")) and " " in line.strip()]
    assert not long


def test_commands_of_the_readme_are_make_targets(root):
    targets = set(re.findall(r"^(\w[\w-]*):", "\n".join(p.read_text() for p in [root / "Makefile", *root.glob("*/module.mk"), *root.glob("*/*/module.mk")]), flags=re.M))
    named = set(re.findall(r"\bmake ([a-z][a-z-]*)", (root / "README.md").read_text()))
    assert {"demo", "check"} <= named <= targets


def test_cases_run_with_the_users_default(root):
    """GPU times are on unless a case is about something else, and then its line says what."""
    off = re.compile(r"""CUSTREAM_GPU["']?\]?(: |, |=| = )["']off""")
    silent = [f"{path.name}:{n}" for path in sorted((root / "tests/cases").glob("*.py")) for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
              if off.search(line) and "  # " not in line]
    assert not silent, f"without GPU times for no reason that is given: {silent}"


@pytest.mark.parametrize("member, keys", [("cs.cut", CUTS), ("cs.loss", LOSSES)])
def test_the_tables_of_keys(root, member, keys):
    assert re.findall(r"^\| `(\w+)` \| (.*) \|$", (root / "docs/trace.md").read_text().partition(f"| `{member}` |")[2].partition("\n\n")[0], flags=re.M) == list(keys.items())


def test_layers_of_the_documents_are_folders(root):
    named = re.findall(r"^\| `(shim/\w+)/` \|", (root / "docs/architecture.md").read_text(), flags=re.M)
    folders = {f"shim/{p.name}" for p in (root / "shim").iterdir() if p.is_dir()}
    assert folders <= set(named)


def test_exported_names_of_effects_exist(root):
    """Every effect that a row names has its row and its steps."""
    rows = "".join(p.read_text() for p in (root / "shim/calls/table").glob("*.def"))
    effects = (root / "shim/wrap/effects.h").read_text()
    kept = set(re.findall(r"^EFFECT\((\w+),", (root / "shim/wrap/effects.def").read_text(), re.MULTILINE))
    named = set(re.findall(r"DO\((\w+)", rows))
    assert kept == named | {"nothing"}
    assert len(named) > 10
    for effect in named:
        for step in ("before", "after", "published"):
            assert f"STEP({step}, {effect}" in effects or re.search(rf"(?:NONE|HOLD)\({step}, {effect}\)", effects), f"{step} {effect}"
