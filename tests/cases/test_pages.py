"""The table of commands: what it says is taken and shown, and nothing else; and the manual page and the completions that come from it."""
import functools
import json
import re
import string
import subprocess

import pytest

from tests import BUILD
from tests.handmade import custream

MADE = BUILD / "pages"
COMPLETIONS = {"bash": "custream.bash", "zsh": "_custream", "fish": "custream.fish"}
PATH = {"PATH": f"{BUILD}:/usr/bin:/bin"}
WORDS_ONLY = {"ctl", "help", "version"}  # commands that read no options


@functools.cache
def table():
    """{command: its rows}."""
    found = {}
    for row in json.loads(custream("help", "--json").stdout)["rows"]:
        if row["kind"] == "command":
            rows = found[row["name"]] = []
        rows.append(row)
    return found


def options_of(command, shown=True):
    return {row["name"]: row for row in table()[command] if row["kind"] == "option" and (row["text"] is not None or not shown)}


def run(*argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=60, check=False, **options)


def refusal(command, word):
    """What is said of an option that a command does not know, in its line on stderr."""
    done = custream(command, word, "--no-such-option")
    match = re.match(rf'custream {command}: (there is no option|"[^"]*" takes no value|"[^"]*" needs a value)', done.stderr)
    return match[1].split('" ')[-1] if match and f'"{word.split("=")[0]}"' in done.stderr else None


# ---- The table ----

def test_the_rows_are_well_formed():
    for command, rows in table().items():
        options = [row for row in rows if row["kind"] == "option"]
        assert all(re.fullmatch(r"|\[=[^=]+\]|=[^=]+", row["argument"]) and re.fullmatch(r"[a-z][a-z-]*", row["name"]) for row in options)
        for names in ([row["name"] for row in options], [row["letter"] for row in options if row["letter"]]):
            assert len(names) == len(set(names)), command
        assert rows[0]["argument"] in ("file", "pid", "program", "command", "") and [row["kind"] for row in rows].count("usage") >= 1


@pytest.mark.parametrize("command", table())
def test_each_option_is_taken(command):
    for name, row in options_of(command, shown=False).items():
        words = [f"--{name}"] * (row["argument"][:1] != "=") + [f"--{name}=x"] * bool(row["argument"])
        words += [f"-{row['letter']}" + "x" * bool(row["argument"])] * bool(row["letter"])
        if name == "help":
            assert all(custream(command, word).returncode == 0 for word in ("--help", "-h"))
        else:
            assert [refusal(command, word) for word in words] == [None] * len(words), (name, words)


@pytest.mark.parametrize("command", sorted(set(table()) - WORDS_ONLY))
def test_no_other_option_is_taken(command):
    own = options_of(command, shown=False)
    letters = {row["letter"] for row in own.values()}
    every = {name for other in table() for name in options_of(other)}
    for name in every:
        if not any(known.startswith(name) for known in own):
            assert refusal(command, f"--{name}") == "there is no option", name
    for letter in set(string.ascii_letters) - letters:
        assert refusal(command, f"-{letter}") == "there is no option", letter
    for name, row in own.items():
        if not row["argument"]:
            assert custream(command, f"--{name}=x").stderr == f'custream {command}: "--{name}" takes no value\n'


@pytest.mark.parametrize("command", table())
def test_each_row_is_shown(command):
    shown = custream("help", command).stdout
    text = " ".join(shown.split())
    assert all(len(line) <= 100 or line.startswith("usage:") for line in shown.splitlines())
    for row in table()[command][1:]:
        if row["text"] is None:
            continue
        assert " ".join(row["text"].split()) in text, row
        if row["kind"] == "option":
            assert f"--{row['name']}{row['argument']} " in text, row


def test_options_are_read_in_one_place(root):
    """By getopt's tables, which come from the rows; and no flag is without a row."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in (root / "tools/custream").rglob("*.[ch]")}
    assert {name for name, text in sources.items() if re.search(r"\bstruct option\b|\bgetopt(_long)?\(", text)} == {"flags.c"}
    flags = set(re.findall(r"_\((\w+)\)", re.search(r"#define FLAGS.*?\nenum", sources["commands.h"], re.DOTALL)[0]))
    assert flags == set(re.findall(r"\bFLAG\((\w+), [0']", (root / "tools/custream/commands.def").read_text(encoding="utf-8")))


def test_the_wheel_s_modules_read_no_options(root):
    """The command hands over what it has read, and the questions of a fleet are those of its table."""
    modules = [root / "python/custream/export.py", *(root / "python/custream/fleet").glob("*.py")]
    assert not [path.name for path in modules if re.search(r"argparse|sys\.argv", path.read_text(encoding="utf-8"))]
    questions = re.search(r"^QUESTIONS = \{(.*)\}$", (root / "python/custream/fleet/questions.py").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert re.findall(r'"(\w+)"', questions) == [row["name"] for row in table()["fleet"] if row["kind"] == "word"]


def test_the_page_has_each_request(root):
    shown = set(re.findall(r"^\| `(?:custream ctl PID )?(\w+)(?: FILE)?` \|", (root / "docs/command.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert {row["name"] for row in table()["ctl"] if row["kind"] == "word" and row["text"]} <= shown


# ---- The pages ----

def completed(*words):
    done = custream("--complete", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_has_every_command_and_option():
    page = (MADE / "custream.1").read_text(encoding="utf-8").replace("\\-", "-")
    assert completed("") == completed("help", "") == list(table())
    for command in table():
        assert re.search(rf"\b{command}\b", page)
        assert completed(command, "-") == [f"--{name}{'=' * (row['argument'][:1] == '=')}" for name, row in options_of(command).items()]
        for option, row in options_of(command).items():
            assert re.search(f"Fl -{option}", page), (command, option)
            words = [word for word in row["argument"].strip("[=]").split("|") if word == word.lower()] if "|" in row["argument"] else []
            if words:
                assert completed(command, f"--{option}=") == [f"--{option}={word}" for word in words]


@pytest.mark.parametrize("words, found", [
    (("run", "--trace", ""), [":file"]), (("run", "--trace", "x", ""), [":program 4"]), (("run", "-o", "x", "app", "--json", ""), [":program 4"]), (("run", "app", ""), [":program 2"]),
    (("run", "--force", ""), [":program 3"]), (("fleet", ""), [":file"]), (("fleet", "a", "b", ""), [":file"]), (("merge", "--align", ""), ["clock", "start"]), (("nothing", ""), []),
    (("version", ""), []), (("report", "x", "y", ""), [":file"]), (("dump", "--last", ""), []),
])
def test_completes(words, found):
    assert completed(*words) == found


def test_the_manual_page_renders():
    page = MADE / "custream.1"
    lint = run("mandoc", "-Tlint", "-W", "style", page).stdout
    assert not [line for line in lint.splitlines() if "outdated mandoc.db" not in line and "STYLE: no such" not in line]
    rendered = run("man", "--warnings", "-E", "UTF-8", "-l", page, env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
    assert (rendered.returncode, rendered.stderr) == (0, "")
    text = re.sub(r".\x08|\x1b\[[0-9;]*m", "", rendered.stdout)
    for words in ("custream record -p PID|--all", "--trace=FILE", "CUSTREAM_WINDOW", "ctl: tell a process", "policy"):
        assert words in text, words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_takes_it(root, shell):
    done = run(shell, "-n", root / "tools/pages" / COMPLETIONS[shell])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def bash_completes(root, *words):
    script = ("source tools/pages/custream.bash; compopt() { :; }; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _custream; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = run("bash", "-c", script, "bash", *words, cwd=root, env=PATH)
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
    ("custream re", {"report", "record", "recover"}), ("custream run --gpu=", {"--gpu=auto", "--gpu=cupti", "--gpu=events", "--gpu=off"}), ("custream record --pr", {"--program="}),
    ("custream merge --align=", {"--align=clock", "--align=start"}), ("custream help mer", {"merge"}),
])
def test_fish_completes(root, tmp_path, line, found):
    done = run("fish", "--no-config", "-c", f"source {root}/tools/pages/custream.fish; complete -C '{line}'", cwd=tmp_path, env={"HOME": str(tmp_path), **PATH})
    assert {row.split("\t")[0] for row in done.stdout.splitlines()} == found


def test_zsh_finds_the_function(root, tmp_path):
    script = f"fpath=({root}/tools/pages $fpath); autoload -Uz compinit; compinit -u -D; print -r -- $_comps[custream]; autoload +X _custream && print there"
    done = run("zsh", "-fc", script, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert (done.stdout, done.stderr) == ("_custream\nthere\n", "")
