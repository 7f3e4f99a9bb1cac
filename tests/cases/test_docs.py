"""What the documents say against what is there: options, links, commands."""
import re

import pytest


def options(root):
    """(id, default) of every row of the option table."""
    text = (root / "shim/base/options.def").read_text()
    return re.findall(r'^OPTION\((\w+), \w+, "([^"]*)"', text, flags=re.M)


def test_the_readme_has_every_option_with_its_default(root):
    rows = dict(re.findall(r"^\| `CUSTREAM_(\w+)` \|.*\| (?:`([^`]+)`|found|none) \|$", (root / "README.md").read_text(), flags=re.M))
    assert len(options(root)) >= 6 and rows == dict(options(root))


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs", "docs/worked"])
def test_links_lead_somewhere(root, name):
    place = root / name
    for page in sorted(place.glob("*.md")) if place.is_dir() else [place]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(root)}: {target}"


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


def test_layers_of_the_documents_are_folders(root):
    named = re.findall(r"^\| `(shim/\w+)/` \|", (root / "docs/architecture.md").read_text(), flags=re.M)
    folders = {f"shim/{p.name}" for p in (root / "shim").iterdir() if p.is_dir()}
    assert folders <= set(named)


def test_exported_names_of_effects_exist(root):
    """Every effect that a row names has its three halves."""
    rows = "".join(p.read_text() for p in (root / "shim/calls/table").glob("*.def"))
    effects = (root / "shim/hook/effects.h").read_text()
    named = set(re.findall(r"DO\((\w+),", rows))
    assert len(named) > 10
    for effect in named:
        for half in ("BEFORE", "AFTER", "PUBLISHED"):
            assert f"#define {half}_{effect}(" in effects, f"{half}_{effect}"
