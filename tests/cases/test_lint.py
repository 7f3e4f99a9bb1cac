"""The tree as the linters want it, and C as clang-format writes it; tools from tests/requirements.txt."""
import subprocess

import pytest

C_FOLDERS = ["tools", "dev", "tests"]
NOT_TEXT = ("tests/golden/", "tests/policies/", "tests/fuzz/corpus/", "traces/", "docs/images/")


def files(root, *patterns):
    done = subprocess.run(["git", "ls-files", "--", *patterns], cwd=root, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if not name.startswith(NOT_TEXT)]


def scripts(root, interpreter):
    """Files without an ending whose first line names the interpreter."""
    def begins(name):
        with (root / name).open("rb") as file:
            line = file.readline()
        return line.startswith(b"#!") and interpreter in line
    return [name for name in files(root) if "." not in name.rpartition("/")[2] and begins(name)]


def c_files(root):
    return files(root, *(f"{folder}/**/*.{ending}" for folder in C_FOLDERS for ending in "ch"))


def run(root, venv, program, *words):
    done = subprocess.run([venv / "bin" / program, *words], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{program}:\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def venv(build):
    return build / "venv"


def test_clang_format(root, venv):
    """`make format` writes them so."""
    run(root, venv, "clang-format", "--dry-run", "--Werror", *c_files(root))


def test_ruff(root, venv):
    run(root, venv, "ruff", "check", "--no-cache", *files(root, "*.py"), *scripts(root, b"python"))


def test_shellcheck(root, venv):
    run(root, venv, "shellcheck", "--severity=warning", ".ci/run", *files(root, "*.sh"), *scripts(root, b"bash"))


def test_codespell(root, venv):
    run(root, venv, "codespell", *files(root, "*.[ch]", "*.def", "*.py", "*.md", "*.sh", "*.mk", "*.in"))
