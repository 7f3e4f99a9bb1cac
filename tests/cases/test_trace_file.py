"""Whose file a trace may take: one that is new, empty or an earlier trace. Files of others stay as they are, whatever name leads to them."""
import contextlib
import errno
import gzip
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

from tests.apprun import BUILD, calls_in, calls_of, read, said
from tests.cases.conftest import app_environment
from tests.handmade import NO_CUDA

COMMAND = BUILD / "custream"
APP = ["burst", "1", "50"]
GPU = {"CUSTREAM_GPU": None}  # as users have it
NOBODY = 65534

HEAD = (b'{"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":1700000000000000000%s,\n"distributedInfo": {"rank": 0, "world_size": 1},\n'
        b'"metadata":{"tool":"custream 0.0.1","gpu_time_source":"none"},\n"traceEvents":[\n')
TRACE, PART = HEAD % b"", HEAD % b',"part":7'

# What a trace may take.
FREE = {"empty": b"", "trace": TRACE + b"]}\n", "torn": TRACE[:-4], "part": PART + b"]}\n"}
PACKED = {"packed": gzip.compress(TRACE + b" " * 9000 + b"]}\n"), "packed-torn": gzip.compress(TRACE + os.urandom(9000))[:4000], "not-packed": TRACE}

# What it may not.
NOTES = b'{"name": "my-app", "version": "1.0.0"}\n'
OTHERS = {
    "package": NOTES, "text": b"mine\n", "a-byte": b"\0", "zeros": bytes(5000), "an-array": b"[]\n", "long": b'{"a": "' + b"x" * 100000 + b'"}',
    "profiler": b'{\n  "schemaVersion": 1,\n  "deviceProperties": [\n', "another-tool": TRACE.replace(b"custream", b"whatever"), "quoting": b"[" + TRACE, "torn-early": TRACE[:60],
    "packed": gzip.compress(NOTES), "packed-trace": gzip.compress(TRACE), "packed-garbage": b"\x1f\x8b\x08\0" + bytes(range(256)), "packed-head": b"\x1f\x8b",
}


def refused(run, path, words=""):
    """One line that has the file and the reason, and a program that did not notice."""
    (line,) = said(run.check())
    assert line.startswith(f"custream: error: cannot write the trace {path} (CUSTREAM_TRACE): ") and line.endswith("; nothing is recorded") and words in line, line
    assert calls_of(run.stdout)["cuLaunchKernel"] == 50


def recorded(run, path):
    assert not said(run.check()), run.stderr
    assert calls_in(read(path)) == calls_of(run.stdout)


def old(path, content):
    """A file from before the run."""
    path.write_bytes(content)
    os.utime(path, (1.6e9, 1.6e9))
    return path


def names(folder):
    return sorted(p.name for p in folder.iterdir())


# ---- What is in it ----

@pytest.mark.parametrize("name, content", [pytest.param("t.json", c, id=i) for i, c in OTHERS.items()] +
                         [pytest.param("t.json.gz", OTHERS[i], id=f"gz-{i}") for i in ("package", "packed", "packed-garbage", "packed-head")])
def test_a_file_of_others_stays(run_app, tmp_path, name, content):
    path = old(tmp_path / name, content)
    refused(run_app(APP, env=GPU, trace=path), path, "a new file, an empty one or an earlier trace")
    assert path.read_bytes() == content and path.stat().st_mtime == 1.6e9 and names(tmp_path) == [name]


@pytest.mark.parametrize("name, content", [pytest.param("t.json", c, id=i) for i, c in FREE.items()] +
                         [pytest.param("t.json.gz", c, id=f"gz-{i}") for i, c in (PACKED | {"empty": b""}).items()])
def test_a_trace_takes_what_is_free(run_app, tmp_path, name, content):
    path = old(tmp_path / name, content)
    recorded(run_app(APP, env=GPU, trace=path), path)
    assert names(tmp_path) == [name]


def test_the_default_and_a_relative_name(run_app, tmp_path):
    old(tmp_path / "package.json", NOTES)
    refused(run_app(APP, env=GPU | {"CUSTREAM_TRACE": "package.json"}), "package.json")
    assert names(tmp_path) == ["package.json"] and (tmp_path / "package.json").read_bytes() == NOTES


def test_a_file_that_the_program_made(run_app, tmp_path):
    """In the same run: it is as much another's as an older one."""
    path = tmp_path / "t.json"
    run = run_app(["/bin/sh", "-c", f"echo mine > {path}; exec {BUILD}/tests/burst 1 50"], env=GPU, trace=path)
    refused(run, path)
    assert path.read_text() == "mine\n"


def test_policies_go_on(run_app, tmp_path):
    """Without a file the process is steered all the same: every stream has the priority that the policy gives."""
    path = old(tmp_path / "t.json", NOTES)
    env = GPU | {"CUSTREAM_PRIORITY": "set:-3", "CUSTREAM_FAKE_JOURNAL": tmp_path / "journal"}
    refused(run_app(APP, env=env, trace=path), path)
    assert re.search(r"cuStreamCreateWithPriority .* priority=-3 ", (tmp_path / "journal").read_text()) and path.read_bytes() == NOTES


def test_a_name_beside_is_not_taken_either(run_app, tmp_path):
    """Where a living process has the path, the other one's is path-PID: if that is somebody's, the next."""
    path = tmp_path / "t.json"
    with subprocess.Popen([BUILD / "tests/unit/plain/tool_open", path, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == f"{path}\n"
        run = run_app(["/bin/sh", "-c", f"echo mine > {tmp_path}/t-$$.json; exec {BUILD}/tests/burst 1 50"], env=GPU, trace=path).check()
        holder.stdin.close()
    (mine,) = [p for p in tmp_path.iterdir() if re.fullmatch(r"t-\d+\.json", p.name)]
    (beside,) = [p for p in tmp_path.iterdir() if re.fullmatch(r"t-\d+-2\.json", p.name)]
    assert mine.read_text() == "mine\n" and calls_in(read(beside))["cuLaunchKernel"] == 50 and not said(run)


# ---- Force ----

def test_force(run_app, tmp_path):
    path = old(tmp_path / "t.json", NOTES)
    recorded(run_app(APP, env=GPU | {"CUSTREAM_FORCE": "on"}, trace=path), path)
    path = old(tmp_path / "t.json.gz", NOTES)
    recorded(run_app(APP, env=GPU | {"CUSTREAM_POLICY": '{"force": "on"}'}, trace=path), path)


@pytest.mark.parametrize("value", ["yes", "2", "ON"])
def test_force_with_a_wrong_value(run_app, tmp_path, value):
    path = old(tmp_path / "t.json", NOTES)
    run = run_app(APP, env=GPU | {"CUSTREAM_FORCE": value}, trace=path).check()
    assert len(said(run)) == 2 and "on|off" in said(run)[0] and path.read_bytes() == NOTES


# ---- The command ----

def command(*args, env=None, cwd=None):
    child = app_environment(BUILD, "unused", False, {"CUSTREAM_TRACE": None, "CUSTREAM_GPU": None, **(env or {})})
    return subprocess.run([COMMAND, "run", *map(str, args)], env=child, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("how", ["-o", "--trace", "variable", "policy"])
@pytest.mark.parametrize("name", ["notes.json", "notes.json.gz"])
def test_the_command_refuses_before_it_starts_the_program(tmp_path, how, name):
    path, ran = old(tmp_path / name, gzip.compress(NOTES) if name.endswith("gz") else NOTES), tmp_path / "ran"
    given = {"-o": ["-o", path], "--trace": [f"--trace={path}"], "variable": [], "policy": ["--policy", '{"trace": "%s"}' % path]}[how]
    env = {"CUSTREAM_TRACE": path} if how == "variable" else {}
    before = path.read_bytes()
    done = command(*given, "touch", ran, env=env)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not ran.exists() and path.read_bytes() == before
    assert str(path) in done.stderr and "an earlier trace" in done.stderr and "--force" in done.stderr
    assert command(*given, "--force", "touch", ran, env=env).returncode == 0 and ran.exists()
    assert command(*given, "touch", ran, env=env | {"CUSTREAM_FORCE": "on"}).returncode == 0
    assert command(*given, "--force=off", "touch", ran, env=env | {"CUSTREAM_FORCE": "on"}).returncode == 2
    assert path.read_bytes() == before, "the command itself writes nothing"


def test_the_command_starts_the_program_where_the_file_is_free(tmp_path):
    old(tmp_path / "trace.json", TRACE)
    old(tmp_path / "packed.json.gz", PACKED["packed"])
    (tmp_path / "empty.json").touch()
    old(tmp_path / "%p.json", NOTES)  # which no process takes
    for name in ("trace.json", "packed.json.gz", "empty.json", "new.json", "%h/t.json", "%p.json", "off"):
        done = command("-o", name, "printenv", "CUSTREAM_TRACE", cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{name}\n", "" if name == "off" else NO_CUDA), name
    assert names(tmp_path) == ["%p.json", "empty.json", "packed.json.gz", "trace.json"], "none is made ahead"
    done = command("-o", tmp_path, "true")
    assert done.returncode == 2


def test_force_on_the_command_line(tmp_path):
    """Alone it takes no word from the program's."""
    path = old(tmp_path / "t.json", NOTES)
    done = command("--force", "-o", path, BUILD / "tests/burst", "1", "50")
    assert done.returncode == 0 and said(done) == [line for line in said(done) if "nothing lost" in line] and calls_in(read(path)) == calls_of(done.stdout)
    assert command("--force", "printenv", "CUSTREAM_FORCE").stdout == "on\n"
    done = command("--force=perhaps", "true")
    assert done.returncode == 2 and "on|off" in done.stderr
    done = subprocess.run([COMMAND, "help", "run"], capture_output=True, text=True, check=True)
    assert "--force[=on|off|1|0]   (CUSTREAM_FORCE)" in done.stdout


# ---- Links ----

def open_folder(tmp_path, how):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(how if isinstance(how, int) else 0o755)
    if how == "another's":
        os.chown(folder, NOBODY, -1)
    return folder


ROOT_USER = os.getuid() == 0  # may give files away
SHARED = [0o1777, 0o777] + ([0o775, "another's"] if ROOT_USER else [])


@pytest.mark.parametrize("force", ["off", "on"])
@pytest.mark.parametrize("target", ["notes", "empty", "trace", "missing"])
@pytest.mark.parametrize("how", SHARED, ids=str)
def test_a_planted_link(run_app, tmp_path, how, target, force):
    """Where others can make files no link is followed, not to a file that a trace might take either."""
    folder, victim = open_folder(tmp_path, how), tmp_path / "victim.json"
    content = {"notes": NOTES, "empty": b"", "trace": TRACE, "missing": None}[target]
    if content is not None:
        old(victim, content)
    path = folder / "t.json"
    path.symlink_to("../victim.json")
    refused(run_app(APP, env=GPU | {"CUSTREAM_FORCE": force}, trace=path), path, "symbolic link")
    assert (victim.read_bytes() == content if content is not None else not victim.exists()) and os.readlink(path) == "../victim.json" and names(folder) == ["t.json"]
    assert command("-o", path, f"--force={force}", "true").returncode == 2


@pytest.mark.parametrize("how", SHARED, ids=str)
def test_files_in_a_folder_of_many(run_app, tmp_path, how):
    """Without links it is a folder like any other: a new file, and our own trace again."""
    path = open_folder(tmp_path, how) / "t.json"
    recorded(run_app(APP, env=GPU, trace=path), path)
    os.utime(path, (1.6e9, 1.6e9))
    recorded(run_app(APP, env=GPU, trace=path), path)
    assert names(path.parent) == ["t.json"]


@pytest.mark.parametrize("content", [b"", TRACE], ids=["empty", "trace"])
def test_a_planted_hard_link_and_a_planted_file(run_app, tmp_path, content):
    folder, victim = open_folder(tmp_path, 0o1777), old(tmp_path / "victim.json", content)
    os.link(victim, folder / "linked.json")
    for force in ("off", "on"):
        refused(run_app(APP, env=GPU | {"CUSTREAM_FORCE": force}, trace=folder / "linked.json"), folder / "linked.json", "hard links")
    assert victim.read_bytes() == content and victim.stat().st_mtime == 1.6e9
    if not ROOT_USER:
        return
    other = old(folder / "other.json", content)
    os.chown(other, NOBODY, -1)
    refused(run_app(APP, env=GPU, trace=other), other, "somebody else's")
    assert other.read_bytes() == content
    recorded(run_app(APP, env=GPU | {"CUSTREAM_FORCE": "on"}, trace=other), other)


@pytest.mark.parametrize("content", [None, b"", TRACE], ids=["missing", "empty", "trace"])
def test_a_link_of_ones_own(run_app, tmp_path, content):
    """In a folder where only we write, links lead on, over several and from folder to folder, to a file that is free."""
    (tmp_path / "data/deep").mkdir(parents=True)
    target = tmp_path / "data/deep/t.json"
    if content is not None:
        old(target, content)
    (tmp_path / "data/next.json").symlink_to("deep/../deep/t.json")
    (tmp_path / "there").symlink_to("data")
    (tmp_path / "link.json").symlink_to(tmp_path / "there/next.json")
    run = run_app(APP, env=GPU | {"CUSTREAM_TRACE": "link.json"})
    recorded(run, target)
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "data/next.json").is_symlink() and names(tmp_path / "data/deep") == ["t.json"]
    again = run_app(APP, env=GPU | {"CUSTREAM_TRACE": "link.json"})
    assert not said(again.check()) and names(tmp_path / "data/deep") == ["t.json"]


@pytest.mark.skipif(not ROOT_USER, reason="needs root to become somebody else")
@pytest.mark.parametrize("owner, group, led_to", [(1000, 1000, "new.json"), (1000, 50, None), (1000, 1001, None), (1001, 1000, None)])
def test_a_folder_that_a_group_can_write_to(owner, group, led_to):
    """It is the user's own if the group is his own, as where umask is 002; then links in it lead on."""
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top) / "project"
        os.chmod(top, 0o755)
        folder.mkdir()
        shutil.copy(BUILD / "tests/unit/plain/tool_open", top)
        (folder / "t.json").symlink_to("new.json")
        os.chown(folder, owner, group)
        folder.chmod(0o775)
        done = subprocess.run(["../tool_open", "t.json"], cwd=folder, user=1000, group=1000, extra_groups=[group], capture_output=True, text=True, check=False)
        assert done.stdout == (f"{led_to}\n" if led_to else "t.json: it is a symbolic link, in a folder that others can write to; give the name of its target\n")
        assert names(folder) == (["new.json", "t.json"] if led_to else ["t.json"])


def test_a_link_to_a_file_of_others(run_app, tmp_path):
    victim, path = old(tmp_path / "victim.json", NOTES), tmp_path / "link.json"
    path.symlink_to("victim.json")
    refused(run_app(APP, env=GPU, trace=path), path, "an earlier trace")
    assert victim.read_bytes() == NOTES and path.is_symlink()
    recorded(run_app(APP, env=GPU | {"CUSTREAM_FORCE": "on"}, trace=path), victim)
    assert path.is_symlink()


def test_a_link_into_a_folder_of_many(run_app, tmp_path):
    """Our own link leads there, a planted one from there on."""
    folder, path = open_folder(tmp_path, 0o1777), tmp_path / "link.json"
    path.symlink_to("shared/t.json")
    recorded(run_app(APP, env=GPU, trace=path), folder / "t.json")
    (folder / "t.json").unlink()
    (folder / "t.json").symlink_to("../victim.json")
    refused(run_app(APP, env=GPU, trace=path), path, "symbolic link")
    assert names(tmp_path) == ["link.json", "shared"]


def test_a_folder_that_is_a_link(run_app, tmp_path):
    """Wherever the way to the folder leads: what a trace may take there is decided there."""
    folder = open_folder(tmp_path, 0o1777)
    (tmp_path / "home").mkdir()
    (folder / "way").symlink_to("../home")
    victim = old(tmp_path / "home/notes.json", NOTES)
    refused(run_app(APP, env=GPU, trace=folder / "way/notes.json"), folder / "way/notes.json")
    assert victim.read_bytes() == NOTES
    recorded(run_app(APP, env=GPU, trace=folder / "way/t.json"), tmp_path / "home/t.json")


def test_links_in_a_circle(run_app, tmp_path):
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")
    refused(run_app(APP, env=GPU, trace=tmp_path / "a.json"), tmp_path / "a.json", os.strerror(40))
    assert names(tmp_path) == ["a.json", "b.json"]


def test_a_link_and_a_full_disk(run_app, tmp_path):
    """Not even the head can be written: what was made goes, the link stays."""
    (tmp_path / "far").mkdir()
    path = tmp_path / "link.json"
    path.symlink_to("far/t.json")
    run = run_app(["/bin/sh", "-c", f"trap '' XFSZ; ulimit -f 0; exec {BUILD}/tests/burst 1 50"], env=GPU, trace=path).check()
    assert len(said(run)) == 1 and path.is_symlink() and names(tmp_path / "far") == []


@pytest.mark.parametrize("kinds", [3, 1], ids=["all", "hard links"])
def test_a_name_that_changes_all_the_time(tmp_path, kinds):
    """Somebody makes the name now a link to our own file, now another, now none, as fast as he can: what the link leads to stays."""
    folder, victim = open_folder(tmp_path, 0o777), old(tmp_path / "victim.json", TRACE)
    other, path, over = old(tmp_path / "trace.json", TRACE), folder / "t.json", threading.Event()

    def plant():
        for i in range(10**9):
            if over.is_set():
                return
            name = folder / "next"
            if i % kinds == 1:
                name.symlink_to("../victim.json")
            elif i % kinds == 0:
                os.link(other, name)
            else:
                name.write_bytes(TRACE)
            os.rename(name, path)
            if kinds == 1 or i % 2:
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()

    planter = threading.Thread(target=plant)
    planter.start()
    try:
        for _ in range(150):
            subprocess.run([BUILD / "tests/unit/plain/tool_open", path], stdout=subprocess.DEVNULL, timeout=20, check=False)
    finally:
        over.set()
        planter.join()
    assert victim.read_bytes() == other.read_bytes() == TRACE and victim.stat().st_mtime == other.stat().st_mtime == 1.6e9


# ---- What is no regular file ----

@pytest.mark.parametrize("what", ["pipe", "pipe-with-a-reader", "socket", "null", "stdout", "fd", "directory", "link-to-directory"])
def test_what_is_no_regular_file(run_app, tmp_path, what):
    """Nobody waits for it, nothing is written into it, and it stays."""
    path, words = tmp_path / "t.json", "regular file"
    reader = None
    if what.startswith("pipe"):
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if what != "pipe" else None
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    elif what == "null":
        path.symlink_to("/dev/null")
    elif what in ("stdout", "fd"):
        path.symlink_to({"stdout": "/dev/stdout", "fd": "/proc/self/fd/2"}[what])
        words = "open file of a process"
    else:
        folder = path if what == "directory" else tmp_path / "folder"
        folder.mkdir()
        if what != "directory":
            path.symlink_to("folder/")
        words = "it is a directory"
    before = names(tmp_path)
    for force in ("off", "on"):
        refused(run_app(APP, env=GPU | {"CUSTREAM_FORCE": force}, trace=path), path, words)
        done = command("-o", path, f"--force={force}", "true")
        assert done.returncode == 2 and words in done.stderr
    assert names(tmp_path) == before
    if reader is not None:
        assert os.read(reader, 10) == b""
        os.close(reader)


# ---- What the system does not allow ----

# Denies one system call with an error and becomes the program: seccomp's filter is {load number, equal: errno, allow}.
DENY = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = b"".join(struct.pack("HBBI", *row) for row in [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (6, 0, 0, 0x00050000 + int(sys.argv[2])), (6, 0, 0, 0x7fff0000)])
room = ctypes.create_string_buffer(code, len(code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(room)), 16)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""
FTRUNCATE, RENAMEAT2 = (77, 316) if os.uname().machine == "x86_64" else (46, 276)


@pytest.mark.parametrize("content", [None, b"", TRACE], ids=["new", "empty", "trace"])
def test_ftruncate_is_denied(run_app, tmp_path, content):
    """One try, one line; what was there stays, and nothing else is left."""
    path = tmp_path / "t.json"
    if content is not None:
        old(path, content)
    run = run_app([sys.executable, "-c", DENY, FTRUNCATE, errno.EPERM, BUILD / "tests/burst", 1, 50], env=GPU, trace=path)
    refused(run, path, os.strerror(1))
    assert names(tmp_path) == ([] if content is None else ["t.json"]) and (content is None or path.read_bytes() == content)


# ---- Parts ----

ROTATE = GPU | {"CUSTREAM_TRACE_MAX": "1M,rotate:9999", "CUSTREAM_FULL": "block"}


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_parts_keep_the_rules(run_app, tmp_path, name):
    path = old(tmp_path / name, NOTES)
    refused(run_app(APP, env=ROTATE, trace=path), path)
    assert path.read_bytes() == NOTES and names(tmp_path) == [name]


def test_left_over_parts(run_app, tmp_path):
    """Those that are the part of that number of some trace go, also of older versions; links, other numbers and empty files stay."""
    packed = gzip.compress(PART + b"]}\n")
    kept = {"t.8.json": PART, "t.9.json": b"", "t.10.json": TRACE, "t.11.json": NOTES}
    for name, content in (kept | {"t.7.json": PART, "far.json": PART, "far.json.gz": packed}).items():
        old(tmp_path / name, content)
    (tmp_path / "t.07.json").symlink_to("far.json")
    run_app(APP, env=ROTATE, trace=tmp_path / "t.json").check()
    assert names(tmp_path) == sorted([*kept, "far.json", "far.json.gz", "t.07.json", "t.json"])
    (tmp_path / "t.7.json").symlink_to("far.json")
    for number in (7, 8):
        old(tmp_path / f"t.{number}.json.gz", packed)
    run_app(APP, env=ROTATE, trace=tmp_path / "t.json.gz").check()
    run_app(APP, env=ROTATE | {"CUSTREAM_FORCE": "on"}, trace=tmp_path / "t.json").check()
    assert names(tmp_path) == sorted([*kept, "far.json", "far.json.gz", "t.07.json", "t.7.json", "t.8.json.gz", "t.json", "t.json.gz"])
    assert all((tmp_path / name).read_bytes() == content for name, content in kept.items()) and (tmp_path / "far.json").read_bytes() == PART


@pytest.mark.parametrize("error", [errno.EINVAL, errno.ENOSYS])
def test_parts_where_two_names_cannot_be_swapped(run_app, tmp_path, error):
    """Names of others stay there too."""
    old(tmp_path / "t.1.json", NOTES)
    (tmp_path / "t.2.json").symlink_to("nowhere")
    run = run_app([sys.executable, "-c", DENY, RENAMEAT2, error, BUILD / "tests/parts", "all", 3000], env=ROTATE, trace=tmp_path / "t.json").check()
    assert not said(run) and (tmp_path / "t.1.json").read_bytes() == NOTES and os.readlink(tmp_path / "t.2.json") == "nowhere"
    traces = [read(p) for p in tmp_path.iterdir() if p.name not in ("t.1.json", "t.2.json")]
    assert len(traces) > 2 and {trace.json["part"] for trace in traces} == set(range(1, len(traces) + 1)) and not (tmp_path / "nowhere").exists()


def test_many_at_once(tmp_path):
    """An earlier trace at the path: one takes it, each of the others has a file of its own."""
    old(tmp_path / "t.json", TRACE)
    running = [subprocess.Popen([BUILD / "tests/unit/plain/tool_open", "t.json", "hold"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for _ in range(12)]
    got = [process.stdout.readline().strip() for process in running]
    for process in running:
        process.communicate("")
    assert sorted(got) == names(tmp_path) and "t.json" in got and all((tmp_path / name).read_bytes().count(b"schemaVersion") == 1 for name in got)


def test_compressed_traces_tell_whose_they_are(run_app, tmp_path):
    """As plain ones do: a run right behind the last one takes its file again, and a program that becomes another leaves the first one's alone."""
    path = tmp_path / "t.json.gz"
    for _ in range(5):
        recorded(run_app(APP, env=GPU, trace=path), path)
    assert names(tmp_path) == ["t.json.gz"]
    (tmp_path / "again").mkdir()
    run_app(["again", 2], env=GPU, trace=tmp_path / "again/t.json.gz").check()
    assert sorted(calls_in(read(p))["cuLaunchKernel"] for p in (tmp_path / "again").iterdir()) == [10, 11, 12]


# ---- The source: files are opened for writing in one place ----

WRITES = re.compile(r"\b(?:cs_make_file|f?open(?:at|64)?|creat|freopen|mkstemps?|mkostemps?|tmpfile)\s*\(([^;]*);")


def test_nothing_else_opens_files_for_writing(root):
    """In the library and the command: a file is made with O_EXCL or without a name, opened for writing without following a link, and never truncated by open."""
    found = {}
    for source in [*root.glob("shim/**/*.c"), *root.glob("tools/custream/*.c")]:
        text = re.sub(r"/\*.*?\*/", "", source.read_text(encoding="utf-8"), flags=re.S)
        text = text.replace("OPEN_MODE,", "").replace("OPEN_MODE)", "O_RDWR | O_NOFOLLOW)").replace("OPEN_MODE |", "O_RDWR | O_NOFOLLOW |")
        for match in WRITES.finditer(text):
            call = match[0]
            if re.search(r"O_RDWR|O_WRONLY|O_CREAT|O_TRUNC|O_APPEND|creat|temp|tmpfile", call) or ("fopen" in call and not re.search(r'"re?"', call)):
                found.setdefault(source.relative_to(root).as_posix(), []).append(call)
    assert {"shim/base/claim.c", "shim/out/part.c"} <= set(found), "the pattern finds nothing any more"
    for path, calls in found.items():
        for call in calls:
            fresh = "O_EXCL" in call or "O_TMPFILE" in call
            assert "O_TRUNC" not in call and (fresh or ("O_CREAT" not in call and "O_NOFOLLOW" in call)), f"{path}: {call}"
    assert set(found) <= {"shim/base/claim.c", "shim/base/rings.c", "shim/out/part.c", "shim/out/output.c"}
