"""The manual page and the completions: made from what the command says of itself, in order, and what they complete."""
import re
import subprocess

import pytest

from tests.handmade import COMMAND, custream

PAGES = {"man": "custream.1", "bash": "custream.bash", "zsh": "_custream", "fish": "custream.fish"}


def commands():
    return re.findall(r"^  (\w+) ", custream("help").stdout, flags=re.M)


def options_of(command):
    return set(re.findall(r"^  (?:-\w, )?--([\w-]+)", custream("help", command).stdout, flags=re.M))


def run(*argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.mark.parametrize("kind", PAGES)
def test_is_as_made(root, kind):
    """`make pages` makes them anew."""
    made = run(root / "tools/pages/pages", COMMAND, kind, root / "tools/pages/custream.1.in")
    assert (made.returncode, made.stderr) == (0, "") and made.stdout == (root / "tools/pages" / PAGES[kind]).read_text(encoding="utf-8")


def test_every_option_that_is_taken_has_a_line_of_help(root):
    """The tables that options are read by hold nothing else."""
    taken = set()
    for source in (root / "tools/custream").rglob("*.[ch]"):
        taken |= set(re.findall(r'\{"([\w-]+)", (?:no|required|optional)_argument', source.read_text(encoding="utf-8")))
    helped = set().union(*(options_of(command) for command in commands()))
    assert taken >= {"json", "duration", "last", "fail-if", "align"} and taken - helped - {"help"} == set()


@pytest.mark.parametrize("kind", PAGES)
def test_has_every_command_and_option(root, kind):
    page = (root / "tools/pages" / PAGES[kind]).read_text(encoding="utf-8").replace("\\-", "-")
    for command in commands():
        assert re.search(rf"\b{command}\b", page)
        for option in options_of(command):
            wanted = {"man": f"Fl -{option}", "fish": f"__fish_seen_subcommand_from {command}'(?: -s .)? -l {option}\\b"}.get(kind, f"--{option}")
            assert re.search(wanted, page), (command, option)


def test_the_manual_page_renders(root):
    page = root / "tools/pages/custream.1"
    lint = run("mandoc", "-Tlint", "-W", "style", page).stdout
    assert not [line for line in lint.splitlines() if "outdated mandoc.db" not in line and "STYLE: no such" not in line]
    rendered = run("man", "--warnings", "-E", "UTF-8", "-l", page, env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
    assert (rendered.returncode, rendered.stderr) == (0, "")
    text = re.sub(r".\x08|\x1b\[[0-9;]*m", "", rendered.stdout)
    for words in ("custream record -p PID|--all", "--trace=FILE", "CUSTREAM_WINDOW", "ctl: tell a process", "policy"):
        assert words in text, words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_takes_it(root, shell):
    done = run(shell, "-n", root / "tools/pages" / PAGES[shell])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def bash_completes(root, *words):
    script = (f"source {root}/tools/pages/custream.bash; compopt() {{ :; }}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _custream; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = run("bash", "-c", script, "bash", *words, cwd=root)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize("words, found", [
    (("custream", "re"), {"report", "record", "recover"}), (("custream", "run", "--fo"), {"--force"}), (("custream", "run", "--gpu", "=", "c"), {"cupti"}),
    (("custream", "run", "--gpu", "="), {"auto", "cupti", "events", "off"}), (("custream", "run", "--gpu", "ev"), {"events"}),
    (("custream", "run", "--force", "=", "o"), {"on", "off"}), (("custream", "run", "--force", "zs"), {"zsh"}), (("custream", "run", "-o", "READ"), {"README.md"}),
    (("custream", "run", "true", "READ"), {"README.md"}), (("custream", "merge", "--align", "=", ""), {"clock", "start"}),
    (("custream", "record", "--pr"), {"--program="}), (("custream", "dump", "-l", ""), set()), (("custream", "ctl", "1", "o"), {"on", "off"}),
    (("custream", "ctl", "1", "policy", "READ"), {"README.md"}), (("custream", "help", "me"), {"merge"}), (("custream", "check", "READ"), {"README.md"}),
    (("custream", "options", "-"), {"--json"}),
])
def test_bash_completes(root, words, found):
    completed = bash_completes(root, *words)
    assert completed == found if found != {"zsh"} else "zsh" in completed


@pytest.mark.parametrize("line, found", [
    ("custream re", {"report", "record", "recover"}), ("custream run --gpu=", {"--gpu=auto", "--gpu=cupti", "--gpu=events", "--gpu=off"}), ("custream record --pr", {"--program"}),
    ("custream merge --align=", {"--align=clock", "--align=start"}), ("custream help mer", {"merge"}),
])
def test_fish_completes(root, tmp_path, line, found):
    done = run("fish", "--no-config", "-c", f"source {root}/tools/pages/custream.fish; complete -C '{line}'", cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert {row.split("\t")[0] for row in done.stdout.splitlines()} == found


def test_zsh_finds_the_function(root, tmp_path):
    script = f"fpath=({root}/tools/pages $fpath); autoload -Uz compinit; compinit -u -D; print -r -- $_comps[custream]; autoload +X _custream && print there"
    done = run("zsh", "-fc", script, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert (done.stdout, done.stderr) == ("_custream\nthere\n", "")
