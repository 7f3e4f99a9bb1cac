"""What others can reach: the files of a trace, and the socket for `custream ctl`. docs/security.md names the other tests."""
import os
import re
import socket
import stat
import subprocess

import pytest

from tests.cases.conftest import app_environment
from tests.remote import Remote
from tests.patience import patience
from tests.cases.test_ctl import address_of, say


@pytest.mark.parametrize("name, env", [("t.json", {}), ("t.json.gz", {}), ("t.pftrace", {}), ("t.json", {"CUSTREAM_TRACE_MAX": "1M,rotate:3", "CUSTREAM_GPU": "off"})],  # faster
                         ids=["json", "gz", "pftrace", "parts"])
def test_a_trace_is_its_users_alone(build, tmp_path, name, env):
    """Whatever the umask allows, or takes away."""
    argv = [build / "tests/burst", "1", "14000" if "CUSTREAM_GPU" in env else "100"]
    for umask in (0, 0o777):
        folder = tmp_path / oct(umask)
        folder.mkdir()
        subprocess.run(argv, env=app_environment(build, folder / name, True, env), cwd=folder, umask=umask, check=True, capture_output=True)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert name in modes and set(modes.values()) == {0o600}, modes
        assert len(modes) == (3 if "CUSTREAM_GPU" in env else 1)


def test_what_the_command_makes_of_it_too(build, run_app, tmp_path):
    run = run_app(["burst", 1, 100]).check()
    for words in (["convert", run.trace, tmp_path / "c.pftrace"], ["merge", run.trace, "-o", tmp_path / "m.json"]):
        subprocess.run([build / "custream", *words], umask=0, check=True, capture_output=True)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("c.pftrace", "m.json")} == {0o600}


def test_an_earlier_trace_keeps_its_mode(run_app, tmp_path):
    """Whoever has opened it to others has done so on purpose."""
    first = run_app(["burst", 1, 100], trace=tmp_path / "t.json").check()
    first.trace.chmod(0o644)
    os.utime(first.trace, (1, 1))
    run_app(["burst", 1, 200], trace=tmp_path / "t.json").check()
    assert stat.S_IMODE(first.trace.stat().st_mode) == 0o644


def connections(pid, count):
    found = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
    for one in found:
        one.connect(address_of(pid))  # waits for a place; the test's time limit holds
        one.settimeout(patience(30))
    return found


def test_clients_that_say_nothing_are_dropped(tmp_path):
    """More of them than there are places: each is closed by the process, and who asks is answered meanwhile."""
    with Remote(tmp_path) as program:
        program.do("create 1")
        idle = connections(program.pid, 48)
        assert say(program.pid, b"status").startswith(b"ok")
        assert {one.recv(100) for one in idle} == {b""}
        program.do("launch 1 3")
    program.load()


def test_clients_that_never_read_keep_nobody_waiting(tmp_path):
    """They ask for long answers and read none; some for a recording. The program goes on, and ends."""
    with Remote(tmp_path) as program:
        program.do("create 1")
        deaf = connections(program.pid, 24)
        for n, one in enumerate(deaf):
            one.send(b"record" if n < 12 else b"about")
        program.do("launch 1 3")
        assert say(program.pid, b"status").startswith(b"ok")
        program.do("launch 1 3", "all")
    assert program.rc == 0
    program.load()


def test_user_ids_are_compared_in_one_place(root):
    """The number of an unmapped user is everybody's (shim/base/owner.h)."""
    compares = re.compile(r"\bgete?uid\(\)|SO_PEERCRED|_uid\s*[!=]=|[!=]=\s*\w+(?:\.|->)\w*uid\b")
    found = {f"{path.relative_to(root)}: {line.strip()}" for top in ("shim", "tools/custream") for path in sorted((root / top).rglob("*.[ch]"))
             if path.stem != "owner" for line in path.read_text().splitlines() if compares.search(line)}
    allowed = {  # no permission hangs on these
        "shim/base/claim.c: static bool is_own_group(const struct stat *folder) { return folder->st_uid && folder->st_gid == folder->st_uid && folder->st_gid == getegid(); }",
        "shim/base/claim.c: const bool known = cs_file_is_ours(claim->fd, file.st_uid) || (file.st_uid == folder->st_uid && cs_owner_is_one(file.st_uid));",
        "tools/custream/live/listener.c: if (geteuid() || !users_name(command, found) || choice->yes || !isatty(STDIN_FILENO) ||",
        "tools/custream/live/peer.c: if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &its, &size) || its.pid == peer->pid ||",
        "tools/custream/program.c: ((about.st_mode & S_ISUID && about.st_uid != getuid()) ||",
        "tools/custream/program.c: (getuid() && getxattr(path, \"security.capability\", NULL, 0) > 0)))",
    }
    assert found == allowed, found ^ allowed


def test_the_page_names_tests_that_exist(root):
    text = (root / "docs/security.md").read_text()
    for name in set(re.findall(r"`(test_\w+\.py)`", text)):
        assert (root / "tests/cases" / name).exists(), name
    for target in set(re.findall(r"`make (\w+)`", text)):
        assert re.search(rf"^{target}:", "".join((root / name).read_text() for name in ("Makefile", "tests/module.mk", "tests/fuzz/module.mk")), re.M), target
