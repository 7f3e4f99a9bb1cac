"""The table of the runtime's functions against cuda_runtime_api.h itself: 12.0's and 13.5's; and against the toolkit's library."""
import copy
import json
import pathlib
import re
import subprocess

import pytest
from pycparser import c_ast, c_parser

from tests.calltable import inside, split
from tests.cudaheader import DEFINES, parameters_of

# 12.0's header files lie in two packages; the other has nothing that differs.
CRT = ["-idirafter", str(pathlib.Path(__file__).resolve().parents[2] / "build/cuda-headers/13.5")]
VERSIONS = {"12.0": 12000, "13.5": 13050}

# Functions with a row: by name, or because they take a stream or an event.
NAMED = re.compile(r"cuda(Stream|Event|Launch|Memcpy|Memset|Graph(?!ics))|cudaDeviceSynchronize$")
HANDLES = re.compile(r"\bcuda(Stream|Event)_t\b")

# CUDA 12 has second forms of functions that 13 has under the first name, with the same parameters. They are rare; their driver's calls are seen.
EXCLUDED = re.compile(r"cuda(StreamGetCaptureInfo|(Signal|Wait)ExternalSemaphoresAsync)_v2|cudaLaunchCooperativeKernelMultiDevice")
NOT_IN_THE_HEADER = {"__cudaLaunchKernel"}


class Header:
    """Function to (type, name) of its parameters, and to PTDS or PTSZ where it has a sibling."""

    def __init__(self, include):
        self.include = pathlib.Path(include)
        text = (self.include / "cuda_runtime_api.h").read_text(encoding="utf-8", errors="replace")
        self.version = int(re.search(r"#define CUDART_VERSION\s+(\d+)", text).group(1))
        self.siblings = {name: "PT" + kind for name, kind in re.findall(r"#\s*define\s+(\w+)\s+__CUDART_API_PT(DS|SZ)\(\1\)", text)}
        source = subprocess.run(["gcc", "-E", "-P", "-std=gnu11", "-xc", "-isystem", str(include), *CRT, *DEFINES, "-D__noinline__=", "-"], check=True,
                                input="#include <stddef.h>\n#include <cuda_runtime_api.h>\n", capture_output=True, text=True).stdout
        self.functions = {d.name: [(re.sub(r"\s", "", p.text), p.name) for p in parameters_of(d.type)] for d in c_parser.CParser().parse(source).ext
                          if isinstance(d, c_ast.Decl) and isinstance(d.type, c_ast.FuncDecl) and d.name.startswith("cuda")}

    def wanted(self):
        return {n: p for n, p in self.functions.items() if NAMED.match(n) or any(HANDLES.search(t) for t, _ in p)}


class Table:
    """One header and the rows that the table has under it."""

    def __init__(self, root, include, program):
        self.header = Header(include)
        subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{root}", "-isystem", str(include), *CRT, f"{root}/tests/dump_runtime.c",
                        "-o", str(program)], check=True)
        lines = [json.loads(line) for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()]
        self.version = lines[0]["version"]
        self.rows = {row["name"]: row for row in lines[1:]}
        assert len(self.rows) == len(lines) - 1, "a row is given twice"


@pytest.fixture(scope="module")
def tables(root, build, tmp_path_factory):
    place = tmp_path_factory.mktemp("tables")
    return {name: Table(root, build / "cuda-headers" / name, place / f"dump_runtime-{name}") for name in VERSIONS}


def check_complete(header, rows, newest):
    old = {name for name, row in newest.items() if row["versions"] == "CUDA13"} if header.version < 13000 else set()
    wrong = [f"{name}: has no row" for name in header.wanted() if name not in rows and name not in old and not EXCLUDED.fullmatch(name)]
    return wrong + [f"{name}: the header does not declare it" for name in rows if name not in header.functions and name not in NOT_IN_THE_HEADER]


def normal(parameters):
    """What a row says, as the header's parameters are: the name is what stands at the end of each."""
    found = [re.fullmatch(r"(.*?)(\w+)", p, re.S).groups() for p in split(inside(parameters)) if p != "void"]
    return [(re.sub(r"\s", "", kind), name) for kind, name in found]


def check_parameters(header, rows, _):
    wrong = []
    for name, row in rows.items():
        mine, theirs = normal(row["parameters"]), header.functions.get(name)
        if theirs is not None and [t for t, _ in mine] != [t for t, _ in theirs]:
            wrong.append(f"{name}: takes {theirs}, the row says {mine}")
        if [n for _, n in mine] != split(inside(row["arguments"])):
            wrong.append(f"{name}: the arguments are not its parameters")
        of = re.fullmatch(r"OF\((\w+)\)", row["caller"])
        host = [n for t, n in mine if n in ("func", "symbol") and t == "constvoid*"]
        if host != ([of.group(1)] if of else []):
            wrong.append(f"{name}: {host} is what was registered, and the row says {row['caller']}")
    return wrong


def check_siblings(header, rows, _):
    return [f"{name}: has the sibling {header.siblings.get(name, 'ONE')}" for name, row in rows.items()
            if name in header.functions and row["sibling"] != header.siblings.get(name, "ONE")]


CHECKS = [check_complete, check_parameters, check_siblings]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_table(tables, version, check):
    table = tables[version]
    assert table.version == table.header.version == (VERSIONS[version] or table.version) and len(table.rows) > 130
    assert {"cudaStreamCreate", "cudaMemcpy", "cudaGraphLaunch", "cudaMallocAsync"} <= set(table.header.wanted())
    assert not (wrong := check(table.header, table.rows, tables["13.5"].rows)), "\n".join(wrong)


def test_functions_that_changed_are_not_wrapped_for_both(tables):
    """One wrapper cannot pass both kinds of parameters on. What 12.0 has not declared is left to the eye."""
    old, rows = tables["12.0"].header, tables["13.5"].rows
    new = tables["13.5"].header
    changed = {n for n in old.functions if n in new.functions and [t for t, _ in old.functions[n]] != [t for t, _ in new.functions[n]]}
    assert "cudaGraphAddDependencies" in changed
    assert {n for n in rows if n in changed and rows[n]["versions"] == "BOTH"} == set()
    assert {n for n in rows if n in old.functions and n not in changed and rows[n]["versions"] != "BOTH"} == set()


def test_the_library_has_them(tables, root, real_cudart):
    """The real one, of CUDA 13.0, exports the rows and their siblings, under the version that ours have."""
    later = set(re.findall(r"^RUNTIME\((\w+)", "".join(re.findall(r"^#if CUDART_VERSION >= 13050\n(.*?)^#endif", (root / "shim/calls/runtime.def").read_text(), re.M | re.S)), re.M))
    listing = subprocess.run(["nm", "-D", "--defined-only", str(real_cudart)], capture_output=True, text=True, check=True).stdout
    exported = dict(re.findall(r" T (\w+)(@\S+)?$", listing, re.M))
    rows = {name: row for name, row in tables["13.5"].rows.items() if name not in later}
    assert len(later) > 3
    names = {n + s for n, row in rows.items() for s in ([""] if row["sibling"] == "ONE" else ["", "_" + row["sibling"].lower()])}
    assert {n: exported.get(n) for n in names} == dict.fromkeys(names, "@@libcudart.so.13")
    assert {n for n in exported if NAMED.match(n)} - names == {"cudaEventCreateFromEGLSync"}  # of cuda_egl_interop.h


@pytest.mark.parametrize("change", ["missing", "swapped", "sibling", "arguments", "caller"])
def test_mistakes_are_found(tables, change):
    rows = copy.deepcopy(tables["13.5"].rows)
    row = rows["cudaMemcpyToSymbolAsync"]
    if change == "missing":
        del rows["cudaMemcpyToSymbolAsync"]
    elif change == "swapped":
        row["parameters"] = row["parameters"].replace("size_t count, size_t offset, enum cudaMemcpyKind kind", "size_t count, enum cudaMemcpyKind kind, size_t offset")
        row["arguments"] = row["arguments"].replace("offset, kind", "kind, offset")
    elif change == "sibling":
        row["sibling"] = "PTDS"
    elif change == "arguments":
        row["arguments"] = row["arguments"].replace("count, offset", "offset, count")
    else:
        row["caller"] = "CALLER"
    wrong = [line for check in CHECKS for line in check(tables["13.5"].header, rows, rows)]
    assert len(wrong) == 1 and wrong[0].startswith("cudaMemcpyToSymbolAsync: ")
