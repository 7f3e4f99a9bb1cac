"""`custream open`: what it says, and the browser that it starts."""
import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import urllib.parse

import pytest

from tests.cases.test_open import environment, of_another_tool, refused
from tests.handmade import COMMAND
from tests.remote import until


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(of_another_tool(), encoding="utf-8")
    return path


def test_without_a_browser_the_link_and_the_ssh_line(trace):
    process = subprocess.Popen([COMMAND, "open", "--port=0", "--offline", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    lines = [process.stdout.readline().rstrip("\n") for _ in range(5)]
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == -signal.SIGTERM and process.stderr.read() == ""
    port = urllib.parse.urlsplit(lines[1].strip()).port
    assert lines[0] == "Open this link in a browser:"
    assert lines[2:] == ["If the browser is on another machine, run this there first:", f"  ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}",
                         "Serving the trace until Ctrl-C."]


def test_another_port_takes_a_tunnel(trace):
    """ui.perfetto.dev reads from 9001 alone."""
    process = subprocess.Popen([COMMAND, "open", "--port=0", trace], stdout=subprocess.PIPE, text=True, env=environment())
    lines = [process.stdout.readline().rstrip("\n") for _ in range(5)]
    process.kill()
    process.wait()
    assert "url=http://127.0.0.1:9001/" in lines[1] and re.fullmatch(rf"  ssh -L 9001:127\.0\.0\.1:(?!9001)\d+ {re.escape(socket.gethostname())}", lines[3])


@pytest.fixture
def stand_in(tmp_path):
    """A browser that writes down how it was called, by whom, and fetches nothing."""
    path = tmp_path / "bin/stand-in"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/called.part\nps -o sid= -p $$ >{tmp_path}/session\nmv {tmp_path}/called.part {tmp_path}/called\n')
    path.chmod(0o755)
    return path


def called(tmp_path):
    until((tmp_path / "called").exists)
    return (tmp_path / "called").read_text().splitlines()


@pytest.mark.parametrize("how", ["BROWSER", "BROWSER with %s", "BROWSER, the second", "xdg-open"])
def test_the_browser_is_started_with_the_link(tmp_path, trace, stand_in, how):
    more = {"BROWSER": {"BROWSER": str(stand_in), "BROWSER with %s": f"{stand_in} --new %s --last", "BROWSER, the second": f"/no/such:{stand_in}:false"}.get(how, "")}
    if how == "xdg-open":
        stand_in.rename(stand_in.with_name("xdg-open"))
        more.update(DISPLAY=":0", PATH=f"{stand_in.parent}:{environment()['PATH']}")
    process = subprocess.Popen([COMMAND, "open", "--offline", "--port=0", trace], stdout=subprocess.PIPE, text=True, env=environment(**more))
    words = called(tmp_path)
    first, link = process.stdout.readline(), process.stdout.readline().strip()
    process.kill()
    process.wait()
    assert first.startswith("Opened in your browser (")
    assert words == (["--new", link, "--last"] if "%s" in how else [link])
    assert int((tmp_path / "session").read_text()) != os.getsid(0)


@pytest.mark.parametrize("option", ["--no-browser", "--print-url"])
def test_no_browser_if_told_so(tmp_path, trace, stand_in, option):
    process = subprocess.Popen([COMMAND, "open", option, "--offline", "--port=0", trace], stdout=subprocess.PIPE, text=True, env=environment(BROWSER=str(stand_in)))
    line = process.stdout.readline()
    assert line.startswith("http" if option == "--print-url" else "Open this link")
    assert not select.select([process.stdout], [], [], 0)[0] or option == "--no-browser"
    process.kill()
    process.wait()
    assert not (tmp_path / "called").exists()


def test_9001_is_taken(trace, stand_in):
    """The browser may be elsewhere, where it is free; here only another copy of the UI helps."""
    with contextlib.closing(socket.socket()) as taken:
        with contextlib.suppress(OSError):  # somebody has it already
            taken.bind(("127.0.0.1", 9001))
            taken.listen()
        refused(trace, words="port 9001 is taken by another program; end that, or add --offline", BROWSER=str(stand_in))
        process = subprocess.Popen([COMMAND, "open", trace], stdout=subprocess.PIPE, text=True, env=environment())
        lines = [process.stdout.readline() for _ in range(4)]
        process.kill()
        process.wait()
    assert "127.0.0.1:9001/" in lines[1] and re.match(r"  ssh -L 9001:127\.0\.0\.1:(?!9001\b)\d+ ", lines[3])
