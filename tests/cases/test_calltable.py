"""The call table against cuda.h itself: the newest, which the build takes, and that of CUDA 12.0, the oldest driver supported.

Wrappers and the simulated driver come from the same table, so that a wrong row would make both wrong together; here the header is the judge.
"""
import copy
import pathlib
import re

import pytest

from tests import calltable
from tests.cudaheader import Header, exported

VERSIONS = {"12.0": 12000, "13.5": 13050}


class Table:
    """One header, and the rows of calls that it has."""

    def __init__(self, header, rows):
        self.header = header
        self.rows = {name: row for name, row in rows.items() if name in header.calls or name in calltable.PROFILER}


@pytest.fixture(scope="module")
def tables(root, build, cuda_include, tmp_path_factory):
    headers = {name: Header(build / "cuda-headers" / name) for name in VERSIONS}
    version, rows = calltable.compile_rows(root, cuda_include, tmp_path_factory.mktemp("tables") / "dump_calls")
    assert version == VERSIONS["13.5"]
    return {name: Table(header, rows) for name, header in headers.items()}


def test_every_row_is_declared(tables, root, cuda_include, tmp_path):
    _, rows = calltable.compile_rows(root, cuda_include, tmp_path / "dump_calls")
    assert rows.keys() == tables["13.5"].rows.keys()


def report(wrong):
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_header_is_read(tables, version):
    """The header was understood: its version, and calls that every version has, old ones, siblings and nested structures among them."""
    header = tables[version].header
    assert header.version == VERSIONS[version]
    some = {"cuMemcpyHtoD", "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuEventRecord"}
    assert some <= set(header.functions)
    assert len(header.calls) > 400 and len(tables[version].rows) > 150
    config = header.calls["cuLaunchKernelEx"][0]
    assert header.reaches(config.node, {"CUstream"}) == "hStream"
    assert header.reaches(config.node, {"CUevent"}) == "attrs.value.programmaticEvent.event"
    assert header.reaches(header.calls["cuMemAlloc_v2"][0].node, calltable.HANDLES) is None
    assert header.sibling("cuMemcpy") == "PTDS" and header.sibling("cuStreamQuery") == "PTSZ" and header.sibling("cuEventQuery") == "ONE"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("check", calltable.CHECKS, ids=lambda check: check.__name__)
def test_table(tables, version, check):
    report(check(tables[version].header, tables[version].rows))


def test_exports(tables):
    """The toolkit's stub of libcuda exports the siblings that the table has; without a toolkit the headers alone are the judge."""
    for stub in list(pathlib.Path("/usr/local/cuda").glob("lib*/stubs/libcuda.so"))[:1]:
        symbols = exported(stub)
        assert len(symbols) > 400
        report(calltable.check_exports(symbols, tables["13.5"].rows))


def test_nothing_is_read_from_a_part_of_a_name(root):
    """What a call does is its kind and its `how`."""
    guess = re.compile(r"(strstr|strncmp|begins_with)\((info->name|cs_call_info\[\w+\]\.name|name, \"(cu|[A-Z]))")
    sources = [path for layer in ("policy", "audit", "trace", "gpu", "object", "calls") for path in sorted((root / "shim" / layer).glob("*.c"))]
    assert sources and [path.name for path in sources if guess.search(path.read_text(encoding="utf-8"))] == []


def test_excluded_calls_exist(tables):
    """A call that no header has any more leaves the list."""
    everything = set().union(*(table.header.calls for table in tables.values()))
    assert set(calltable.EXCLUDED) <= everything


# Errors that the checks must find: what to change in which row, and which check names the call then.
MISTAKES = [
    ("cuLaunchKernelEx", "check_complete", None),
    ("cuMemcpyHtoD_v2", "check_complete", None),
    ("cuGraphAddEventWaitNode", "check_complete", None),
    ("cuMemcpyAsync", "check_siblings", {"sibling": "PTDS"}),
    ("cuMemcpy", "check_siblings", {"sibling": "ONE"}),
    ("cuEventRecord", "check_parameters", {"arguments": ["hStream", "hEvent"]}),
    ("cuMemcpyDtoDAsync_v2", "check_parameters",
     {"parameters": "(CUdeviceptr srcDevice, CUdeviceptr dstDevice, size_t ByteCount, CUstream hStream)"}),
    ("cuMemcpyHtoD", "check_parameters", {"parameters": "(CUdeviceptr_v1 dstDevice, const void *srcHost, size_t ByteCount)"}),
    ("cuStreamCopyAttributes", "check_streams", {"stream": "ON(srcStream)"}),
    ("cuLaunchKernelEx", "check_streams", {"stream": "NO_STREAM"}),
    ("cuMemcpyHtoD", "check_streams", {"stream": "NO_STREAM"}),
    ("cuEventElapsedTime", "check_events", {"values": [("start", "EVENT", "EVENT_ID(hEnd)"), ("end", "EVENT", "EVENT_ID(hStart)")]}),
    ("cuStreamWaitEvent", "check_events", {"values": []}),
    ("cuMemsetD32Async", "check_bytes", {"values": [("bytes", "SIZE", "(cs_u64)N * 2")]}),
    ("cuMemsetD2D16_v2", "check_bytes", {"values": [("bytes", "SIZE", "(cs_u64)Width * 2")]}),
    ("cuMemcpy3D_v2", "check_bytes", {"values": [("bytes", "SIZE", "GIVEN((cs_u64)pCopy->WidthInBytes * pCopy->Height)")]}),
    ("cuMemcpyDtoA_v2", "check_bytes", {"values": [("bytes", "SIZE", "dstOffset")]}),
    ("cuMemPrefetchAsync", "check_bytes", {"values": []}),
    ("cuLaunchKernel", "check_launches",
     {"launch": ("LAUNCHED", "f", "gridDimY", "gridDimX", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ", "sharedMemBytes")}),
    ("cuMemAllocAsync", "check_values", {"values": [("address", "PTR", "*dptr")]}),
    ("cuGraphLaunch", "check_values", {"values": [("graph_exec", "INT", "hGraph")]}),
    ("cuCtxRecordEvent", "check_hooks", {"hook": None}),
    ("cuStreamBeginCaptureToGraph", "check_hooks", {"hook": None}),
    ("cuMemsetD8", "check_hooks", {"hook": None}),
    ("cuStreamQuery", "check_hooks", {"hook": "SYNCHRONIZE"}),
    ("cuMemcpyHtoD_v2", "check_how", {"how": {"HtoD"}}),
    ("cuMemcpyAtoHAsync_v2", "check_how", {"how": {"HtoA"}}),
    ("cuMemcpyPeer", "check_how", {"how": {"BLOCKS"}}),
    ("cuMemsetD2D8Async", "check_how", {"how": set()}),
    ("cuStreamBeginRecaptureToGraph", "check_how", {"how": set()}),
    ("cuStreamEndCaptureToCig", "check_how", {"how": set()}),
    ("cuGraphExecUpdate_v2", "check_how", {"how": set()}),
    ("cuCtxRecordEvent", "check_how", {"how": {"RECORDS"}}),
    ("cuMemPrefetchBatchAsync", "check_how", {"how": set()}),
    ("cuGreenCtxStreamCreate", "check_how", {"how": {"CREATES"}}),
]


@pytest.mark.parametrize("name, check, change", MISTAKES, ids=[f"{m[1][6:]}-{m[0]}-{i}" for i, m in enumerate(MISTAKES)])
def test_mistakes_are_found(tables, name, check, change):
    """Each check names the call when its row is missing (None) or changed for the worse, and says no more than before about the others."""
    table = tables["13.5"]
    rows = copy.deepcopy(table.rows)
    if change is None:
        del rows[name]
    else:
        for column, value in change.items():
            setattr(rows[name], column, value)
    before, after = (getattr(calltable, check)(table.header, r) for r in (table.rows, rows))
    new = set(after) - set(before)
    assert new and all(line.startswith(f"{name}:") for line in new)
