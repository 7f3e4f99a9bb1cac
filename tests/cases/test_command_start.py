"""What `custream run` refuses to start: runs of which it is clear beforehand that they will not give what was asked for."""
import os
import subprocess
import sys

import pytest

from tests.handmade import COMMAND, NO_CUDA, SHIM, custream


def refused(tmp_path, *args, env=None):
    """One line, exit status 2, and the program was not started. Returns the line."""
    ran = tmp_path / "ran"
    result = custream("run", *args, "touch", ran, cwd=tmp_path, env=env or {})
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1), (args, env, result.stderr)
    assert result.stderr.startswith("custream run: ") and not ran.exists()
    return result.stderr


def started(tmp_path, *args, env=None):
    ran = tmp_path / "ran"
    result = custream("run", *args, "touch", ran, cwd=tmp_path, env=env or {})
    off = {"off", "--trace=off"} & set(args) and "--ctl=on" not in args
    assert (result.returncode, result.stderr) == (0, "" if off else NO_CUDA) and ran.exists(), (args, env, result.stderr)
    ran.unlink()


# The trace's folder

@pytest.mark.parametrize("trace, missing", [
    ("none/t.json", "none"), ("a/none/t-%p.json.gz", "a/none"), ("a/none/%h/t.json", "a/none"), ("none/%h-%p/t.json", "none"), ("link.json", "gone"),
    ("file/t.json", "file"), ("file/t-%p.json", "file"), ("file/%p/t.json", "file"), ("none%%/t.json", "none%"), ("none%%/%p/t.json", "none%"),
])
def test_a_folder_that_is_not_there(tmp_path, trace, missing):
    (tmp_path / "a").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link.json").symlink_to("gone/t.json")
    for where, shown in [(trace, missing), (tmp_path / trace, missing if trace == "link.json" else tmp_path / missing)]:
        shown = tmp_path / missing if trace == "link.json" and where != trace else shown
        why = "Not a directory" if missing == "file" else "No such file or directory"
        wanted = (f"custream run: cannot write the trace {where} (CUSTREAM_TRACE): folder {shown}: {why}; "
                  "a trace needs a folder that is there and can be written to\n")
        assert refused(tmp_path, "-o", where) == wanted
        assert refused(tmp_path, env={"CUSTREAM_TRACE": str(where)}) == wanted
        assert refused(tmp_path, "--policy", '{"trace": "%s"}' % where) == wanted


@pytest.mark.parametrize("trace", ["t.json", "./t.json", "a/t-%p.json", "a/%h/t.json", "%e/t.json", "%h/a/%p/t.json", "a%p/t.json", "a%%%p/t.json", "link.json",
                                   "deep.json", "off"])
def test_a_folder_that_may_be_there(tmp_path, trace):
    """Behind a pattern only the process knows the folder."""
    (tmp_path / "a").mkdir()
    (tmp_path / "link.json").symlink_to("a/new.json")
    (tmp_path / "deep.json").symlink_to("link.json")
    started(tmp_path, "-o", trace)
    started(tmp_path, "-o", trace if trace == "off" else tmp_path / trace)
    assert not [path for path in tmp_path.rglob("*.json") if not path.is_symlink()], "none is made ahead"


# Root may write everywhere, unless it gives that up before.
WITHOUT_OVERRIDE = "import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, n, 0, 0, 0) for n in (1, 2)]; os.execv(sys.argv[1], sys.argv[1:])"


def test_a_folder_that_cannot_be_written_to(tmp_path):
    closed, old = tmp_path / "closed", tmp_path / "closed/old.json"
    closed.mkdir()
    old.touch()
    (tmp_path / "mine.json").symlink_to("closed/new.json")
    (closed / "dir").mkdir()
    closed.chmod(0o555)

    def run(trace, cwd=tmp_path):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_")}
        given = ["-o", trace] if trace else []
        return subprocess.run([sys.executable, "-c", WITHOUT_OVERRIDE, COMMAND, "run", *given, "echo", "ran"], cwd=cwd, env=env,
                              capture_output=True, text=True, timeout=60, check=False)
    hopeless = [("closed/t.json", tmp_path), ("closed/t-%p.json", tmp_path), ("mine.json", tmp_path), (None, closed), (closed / "t.json", tmp_path)]
    for trace, cwd in hopeless:
        done = run(trace, cwd)
        assert (done.returncode, done.stdout) == (2, "") and "Permission denied; a trace needs a folder" in done.stderr and done.stderr.count("\n") == 1, trace
    for trace in ("closed/old.json", "closed/dir/t.json", "closed/%h/t.json", "off"):  # a file that is there is written to, not its folder
        assert run(trace).stdout == "ran\n", trace
    old.chmod(0o444)
    done = run("closed/old.json")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr == "custream run: cannot write the trace closed/old.json (CUSTREAM_TRACE): Permission denied\n"
    closed.chmod(0o755)


# Libraries

@pytest.mark.parametrize("flag", ["plugin", "cupti"])
def test_a_library_that_is_not_there(tmp_path, flag):
    variable = "CUSTREAM_" + flag.upper()
    (tmp_path / "folder").mkdir()
    for path, why in [("./none.so", "No such file or directory"), (tmp_path / "none.so", "No such file or directory"), (tmp_path / "folder", "Is a directory"),
                      ("/dev/null", "not a file")]:
        for args, env in [([f"--{flag}={path}"], {}), ([], {variable: str(path)}), (["--policy", '{"%s": "%s"}' % (flag, path)], {})]:
            line = refused(tmp_path, *args, env=env)
            assert line.startswith(f"custream run: {variable}: {path}: {why}; allowed is "), line
    for path in (SHIM, "libby.so", "$ORIGIN/none.so"):  # the loader finds a name without a slash, or does not
        started(tmp_path, f"--{flag}={path}")


def test_each_of_several_plugins(tmp_path):
    assert "./none.so: No such" in refused(tmp_path, f"--plugin={SHIM}::libby.so:./none.so")
    started(tmp_path, f"--plugin=:{SHIM}::libby.so:")


# Options that cancel each other

CANCEL = [
    ("default-stream", "audit", "trace", "off", "an audit reads what is recorded"), ("window", "profiler", "trace", "off", "nothing is recorded"),
    ("window", "delay=1", "trace", "off", "nothing is recorded"), ("runtime", "cupti", "gpu", "events", "CUPTI is not used"),
    ("runtime", "cupti", "gpu", "off", "CUPTI is not used"), ("cupti", "./none.so", "gpu", "off", "CUPTI is not used"),
    ("cupti", "libx.so", "gpu", "events", "CUPTI is not used"), ("graph", "node", "gpu", "events", "single nodes"), ("graph", "node", "gpu", "off", "no GPU times"),
]


@pytest.mark.parametrize("one, value, other, setting, why", CANCEL)
def test_options_that_cancel_each_other(tmp_path, one, value, other, setting, why):
    name, by = ("CUSTREAM_" + flag.upper().replace("-", "_") for flag in (one, other))
    wanted = f"custream run: {name}={value} does nothing beside {by}={setting}: "
    line = refused(tmp_path, f"--{one}={value}", f"--{other}={setting}")
    assert line.startswith(wanted) and why in line
    assert refused(tmp_path, f"--{one}", value, env={by: setting}) == line
    assert refused(tmp_path, env={name: value, by: setting}) == line
    key = one.replace("-", "_")
    line = refused(tmp_path, "--policy", '{"%s": "%s"}' % (key, value), f"--{other}={setting}")
    assert f'{key} "{value}" does nothing beside {by}={setting}: ' in line
    if value != "./none.so":
        started(tmp_path, f"--{one}={value}")
    started(tmp_path, f"--{other}={setting}")


def test_what_the_command_ctl_can_still_bring_about(tmp_path):
    for one in ("--default-stream=audit", "--window=profiler"):
        started(tmp_path, one, "--trace=off", "--ctl=on")
        refused(tmp_path, one, "--trace=off", "--ctl=off")
