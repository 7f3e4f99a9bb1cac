"""Traces in Perfetto's own format, as tests look at them."""
import gzip
import json
import subprocess

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from tests import BUILD


def custream(*words):
    return subprocess.run([BUILD / "custream", *map(str, words)], capture_output=True, text=True, check=False)


def convert(source, to, *options):
    done = custream("convert", *options, source, to)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
    return to


def events_of(path):
    data = path.read_bytes()
    whole = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return whole.pop("traceEvents"), whole


def packets_of(data):
    """(its end in the file, the packet) for each packet that is there as a whole."""
    at = 0
    while at < len(data):
        assert data[at] == 0x0a
        length, shift, body = 0, 0, at + 1
        while body < len(data) and data[body] >= 128:
            length |= (data[body] & 127) << shift
            shift, body = shift + 7, body + 1
        if body >= len(data) or (end := body + 1 + (length | data[body] << shift)) > len(data):
            return
        yield end, protos.TracePacket.FromString(data[body + 1:end])
        at = end
