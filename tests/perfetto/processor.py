"""Perfetto's trace processor, version 52, queried from Python."""
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

from tests.perfetto.engine import REQUEST, Engine, EngineError  # noqa: E402

CHUNK = REQUEST // 2
PROBLEMS = "SELECT name, idx, severity, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"


class TraceError(Exception):
    """Perfetto refused the trace as a whole, or a query."""


class _Pipe:
    """The transport that perfetto's client asks for."""

    def __init__(self):
        self.engine, self.pending = Engine(), bytearray()

    def send(self, data):
        try:
            self.pending += self.engine.ask(data)
        except EngineError as error:
            raise TraceError(f"the trace processor: {error}") from None

    def read(self, count):
        if len(self.pending) < count:
            raise TraceError(f"the trace processor does not answer: {self.engine.said}")
        data = bytes(self.pending[:count])
        del self.pending[:count]
        return data

    def close(self):
        self.engine.close()


class _Client(TraceProcessorRpc):
    """perfetto's client over the pipe, with the requests that load a trace; each of those is answered by one message."""

    def load(self, data):
        """The errors in the answers."""
        asked = [("TPM_APPEND_TRACE_DATA", {"append_trace_data": data[at:at + CHUNK]}) for at in range(0, len(data), CHUNK)]
        replies = [self._ask(*one) for one in [*asked, ("TPM_FINALIZE_TRACE_DATA", {})]]
        return [error for reply in replies if (error := reply.append_result.error or reply.finalize_data_result.error)]

    def _ask(self, method, fields):
        stream = self.protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.request = getattr(self.protos.TraceProcessorRpc, method)
        for name, value in fields.items():
            setattr(message, name, value)
        self.transport.send(stream.SerializeToString())
        reply = self.protos.TraceProcessorRpc()
        reply.MergeFromString(self._read_payload())
        self._check_envelope(reply)
        return reply


class TraceProcessor:
    """load() gives it a trace, in place of the last one.

    >>> with TraceProcessor() as tp:
    ...     tp.load("trace.json")
    ...     tp.query("SELECT name, dur FROM slice")
    """

    def __init__(self):
        self.protos, self.client = ProtoFactory(PlatformDelegate()), None

    def load(self, trace):
        """Takes a path, or bytes. Raises TraceError when Perfetto refuses the trace as a whole."""
        data = trace if isinstance(trace, bytes) else pathlib.Path(trace).read_bytes()
        self.close()
        self.client = _Client(_Pipe(), self.protos)
        try:
            errors = self.client.load(data)
        except PerfettoException as error:
            raise TraceError(str(error)) from None
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
        if self.client:
            self.client.transport.close()
            self.client = None

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
