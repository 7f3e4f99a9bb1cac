"""Perfetto's trace processor (WebAssembly, version 52) in a page of headless Chromium, queried from Python."""
import base64
import pathlib
import sys

# Nobody asks for a data frame here: without pandas perfetto loads in a third of the time, in each process of the tests.
FRAMES = {name: sys.modules.pop(name, None) for name in ("pandas", "polars")}
sys.modules.update(dict.fromkeys(FRAMES))
from perfetto.common.exceptions import PerfettoException  # noqa: E402
from perfetto.common.query_result_iterator import QueryResultIterator  # noqa: E402
from perfetto.trace_processor.platform import PlatformDelegate  # noqa: E402
from perfetto.trace_processor.protos import ProtoFactory  # noqa: E402
from perfetto.trace_processor.rpc import TraceProcessorRpc  # noqa: E402
for name, module in FRAMES.items():
    del sys.modules[name]
    if module:
        sys.modules[name] = module

from tests.perfetto import browser
from tests.perfetto.server import Server, ui_folder

CHUNK = 16 << 20  # the engine takes at most 32 MiB a request
SMALL = 64 << 10  # so much goes with the call, more by way of the server
PROBLEMS = "SELECT name, idx, severity, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"


class TraceError(Exception):
    """Perfetto refused the trace as a whole, or a query."""


class _Pipe:
    """The transport perfetto's client asks for, through the page's send() and receive()."""

    def __init__(self, driver, server):
        self.driver, self.server, self.pending = driver, server, bytearray()

    def send(self, data):
        """Also takes the first bytes of the answer: each call of the browser costs milliseconds of three processes."""
        path = self.server.publish(data) if len(data) > SMALL else ""
        try:
            self._take(self.driver.execute_async_script("ask(...arguments);", base64.b64encode(data).decode() if not path else "", path))
        finally:
            if path:
                self.server.withdraw(path)

    def read(self, count):
        while len(self.pending) < count:
            self._take(self.driver.execute_async_script("receive(arguments[0]);"))
        data = bytes(self.pending[:count])
        del self.pending[:count]
        return data

    def _take(self, reply):
        if "error" in reply:
            raise TraceError(f"the trace processor: {reply['error']}")
        self.pending += base64.b64decode(reply["data"])

    def close(self):
        self.pending.clear()


class _Client(TraceProcessorRpc):
    """perfetto's client over the pipe, with the requests that load a trace; each of those is answered by one message."""

    def load(self, data):
        """The error in each answer; "" where there is none."""
        asked = [("TPM_RESET_TRACE_PROCESSOR", {})]
        asked += [("TPM_APPEND_TRACE_DATA", {"append_trace_data": data[at:at + CHUNK]}) for at in range(0, len(data), CHUNK)]
        asked += [("TPM_FINALIZE_TRACE_DATA", {})]
        # A trace of the usual size is one request.
        replies = self._ask(asked) if len(asked) == 3 else [reply for one in asked for reply in self._ask([one])]
        return [reply.append_result.error or reply.finalize_data_result.error for reply in replies]

    def _ask(self, asked):
        stream = self.protos.TraceProcessorRpcStream()
        for method, fields in asked:
            message = stream.msg.add()
            message.request = getattr(self.protos.TraceProcessorRpc, method)
            for name, value in fields.items():
                setattr(message, name, value)
        self.transport.send(stream.SerializeToString())
        return [self._reply() for _ in asked]

    def _reply(self):
        reply = self.protos.TraceProcessorRpc()
        reply.MergeFromString(self._read_payload())
        self._check_envelope(reply)
        return reply


class TraceProcessor:
    """One browser session with one trace processor; load() replaces the trace that is in it.

    >>> with TraceProcessor() as tp:
    ...     tp.load("trace.json")
    ...     tp.query("SELECT name, dur FROM slice")
    """

    def __init__(self):
        self.driver = None
        self.server = Server()
        self.protos = ProtoFactory(PlatformDelegate())
        try:
            self.driver = browser.start()
            self._start_engine()
        except BaseException:
            self.close()
            raise

    def _start_engine(self):
        self.driver.get(f"{self.server.url}/page/engine.html")
        self.driver.execute_script("start(arguments[0]);", f"/{ui_folder()}/engine_bundle.js")
        self.client = _Client(_Pipe(self.driver, self.server), self.protos)

    def load(self, trace):
        """Loads a trace (a path, or bytes) in place of the last. Raises TraceError when Perfetto refuses it as a whole."""
        data = trace if isinstance(trace, bytes) else pathlib.Path(trace).read_bytes()
        try:
            errors = [error for error in self.client.load(data) if error]
        except (TraceError, PerfettoException):
            self._start_engine()  # the worker may be gone; the next trace gets a new one
            raise
        if errors:
            raise TraceError(errors[0])

    def query(self, sql):
        """The rows of a query, a dict each."""
        result = self.client.execute_query(sql)
        if result.error:
            raise TraceError(result.error)
        return [dict(vars(row)) for row in QueryResultIterator(result.column_names, result.batch)]

    def value(self, sql):
        """The one value of a query with one row and one column."""
        (row,) = self.query(sql)
        (value,) = row.values()
        return value

    def close(self):
        if self.driver:
            self.driver.quit()
            self.driver = None
        if self.server:
            self.server.close()
            self.server = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def problems(tp):
    """What Perfetto could not import or lost, as 'name = value' lines; empty for a clean trace."""
    return [f"{r['name']}{'' if r['idx'] is None else '[%d]' % r['idx']} = {r['value']} ({r['severity']})" for r in tp.query(PROBLEMS)]


def assert_clean(tp):
    """Fails, naming the statistics, when Perfetto reported an error or lost data."""
    found = problems(tp)
    assert not found, "Perfetto reports: " + "; ".join(found)
