"""The products as files, and what they are to programs that have nothing to do with CUDA: nothing."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests import calltable
from tests.cudaheader import Header

PRODUCTS = ["libcustream_shim.so", "libcustream_shim_dlsym.so"]
OWN = {"cuGetProcAddress", "cuGetProcAddress_v2", "dlsym", "dlvsym", "_exit", "_Exit", "execve", "execv", "execvp", "execvpe", "fexecve", "execveat", "execl", "execlp",
       "execle", "getenv", "__tsan_default_suppressions", "InitializeInjectionNvtx2", "dlclose", "libcustream_link"}
RUNTIME = re.compile(r"(__)?cuda[A-Z]")


def out(*argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=True, **options).stdout


@pytest.fixture(scope="session")
def clang_build(build):
    """Both products made by clang: `make other-compilers`."""
    return build / "clang"


@pytest.fixture(params=["build", "clang_build"])
def folder(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=PRODUCTS)
def product(request, folder):
    return folder / request.param


def symbols(library, *flags):
    """(type, name, version) of dynamic symbols; the absolute symbol that stands for a version itself is none."""
    found = [line.split()[-2:] for line in out("nm", "-D", *flags, library).splitlines()]
    return [(kind, *name.partition("@")[::2]) for kind, name in found if kind != "A"]


def test_needs_the_c_library_alone(product):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", out("readelf", "-d", product))
    assert "libc.so.6" in needed and set(needed) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert not re.search(r"\((RPATH|RUNPATH|SYMBOLIC|TEXTREL)\)", out("readelf", "-d", product))
    assert "SYMBOLIC" not in re.sub(r".*\(FLAGS_1\).*", "", out("readelf", "-d", product))

def test_the_loader_writes_to_few_pages(build):
    """Each page that has an address to fill in costs every process of the preload a page fault, also those without CUDA."""
    pages = {int(line.split()[0], 16) >> 12 for line in out("readelf", "-rW", build / "libcustream_shim.so").splitlines() if " R_X86_64_" in line}
    assert 0 < len(pages) <= 19, "put what is constant next to cs_call_info, and pointers that start as NULL into .bss"


@pytest.mark.parametrize("call", ["cuLaunchKernel", "cuStreamCreate", "cuMemcpyAsync", "cudaLaunchKernel"])
def test_on_aarch64_the_mode_is_read_before_what_it_stands_for(build, call):
    """Its loads may pass each other. A thread that saw that the driver is there, and not where, would tell the program that there is no device."""
    library = build / "aarch64/libcustream_shim.so"
    (begin,) = {int(line.split()[0], 16) for line in out("nm", "-D", library).splitlines() if line.partition("@")[0].endswith(f" {call}")}
    code = out("aarch64-linux-gnu-objdump", "-d", f"--start-address={begin}", f"--stop-address={begin + 128}", library)
    assert re.search(r"\sldap?r\s", code), code


@pytest.mark.parametrize("name", [*PRODUCTS, "libcustream.so.0", "custream", "aarch64/libcustream_shim.so"])
def test_runs_with_glibc_2_28(build, name):
    newer = [f"{symbol} {version}" for _, symbol, version in symbols(build / name, "--undefined-only")
             if version.startswith("GLIBC_") and tuple(map(int, version[6:].split("."))) > (2, 28)]
    assert newer == [], "tools/glibc says how a product does without them"
    versions = out("readelf", "-V", build / name)
    assert "GLIBC_2." in versions and not re.search(r"GLIBC_PRIVATE|GCC_|CXXABI", versions)


def test_what_an_old_glibc_lacks_is_no_symbol_of_the_products(build):
    """Functions that are linked in, such as stat, serve the product alone."""
    for name in [*PRODUCTS, "libcustream.so.0", "custream"]:
        assert not {"stat", "fstat", "lstat", "fstatat", "__libc_start_main"} & {symbol for _, symbol, _ in symbols(build / name, "--defined-only")}


def test_takes_no_driver_symbol_from_elsewhere(product):
    undefined = [name for _, name, _ in symbols(product, "--undefined-only")]
    assert "malloc" in undefined and [n for n in undefined if n.startswith(("cu", "cupti", "nv", "dlsym", "dlvsym"))] == []


def test_takes_little_of_the_static_tls(product):
    tls = re.findall(r"^\s+TLS\s+\S+ \S+ \S+\s+\S+ (\S+)", out("readelf", "-lW", product), re.M)
    assert len(tls) == 1 and 0 < int(tls[0], 16) <= 64
    # initial-exec: no call for the address of a thread's variable, which might allocate
    assert "__tls_get_addr" not in [name for _, name, _ in symbols(product)]


def test_no_stack_that_can_be_executed(product):
    assert re.search(r"GNU_STACK.* RW +0x", out("readelf", "-lW", product))
    assert re.search(r"GNU_RELRO", out("readelf", "-lW", product)) and "BIND_NOW" in out("readelf", "-d", product)


@pytest.mark.parametrize("name", [*PRODUCTS, "libcustream.so.0", *(f"clang/{product}" for product in PRODUCTS)])
def test_leaves_the_shadow_stack_on(build, name):
    """The loader turns it off for a process with a library that is not marked."""
    assert re.search(r"x86 feature:.*SHSTK", out("readelf", "-nW", build / name))


def table_symbols(build):
    rows = [json.loads(line) for line in out(build / "tests/dump_calls").splitlines()[1:]]
    suffix = {"ONE": [""], "PTDS": ["", "_ptds"], "PTSZ": ["", "_ptsz"]}
    return {row["name"] + s for row in rows for s in suffix[row["sibling"]]}


def runtime_symbols(build):
    """(name, version) of what the table of the runtime's functions exports."""
    rows = [json.loads(line) for line in out(build / "tests/dump_runtime").splitlines()[1:]]
    suffix = {"ONE": [""], "PTDS": ["", "_ptds"], "PTSZ": ["", "_ptsz"]}
    versions = {"BOTH": ["libcudart.so.12", "libcudart.so.13"], "CUDA13": ["libcudart.so.13"]}
    return {(row["name"] + s, v) for row in rows for s in suffix[row["sibling"]] for v in versions[row["versions"]]}


def test_exports_are_the_tables(folder, build, root):
    exported = symbols(folder / PRODUCTS[0], "--defined-only")
    runtime = [(name, version) for _, name, version in exported if RUNTIME.match(name)]
    assert len(runtime) == len(set(runtime)) > 300 and set(runtime) == runtime_symbols(build)
    exported = [symbol for symbol in exported if not RUNTIME.match(symbol[1])]
    names = [name for _, name, _ in exported]
    assert len(names) == len(set(names)) and len(names) > 250
    shared = {n for n in names if n.startswith("cupti")}
    assert {n for n in names if not n.startswith("custream_")} - shared == table_symbols(build) | OWN
    assert shared == set(re.findall(r"F\((cupti\w+),", (root / "shim/gpu/share.h").read_text())) and len(shared) > 8
    assert "custream_version" in names


def test_every_call_of_the_newest_headers_is_wrapped(folder, build):
    """Whatever toolkit the machine has: a call that has no wrapper escapes the policies and the trace."""
    header = Header(build / "cuda-headers/13.5")
    exported = {name for _, name, _ in symbols(folder / PRODUCTS[0], "--defined-only")}
    assert header.version == 13050 and calltable.check_complete(header, {name: None for name in exported if name in header.calls}) == []


def test_the_build_takes_no_header_of_an_installed_toolkit(root, tmp_path):
    """Only what nvcc compiles has the toolkit's."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include/cuda.h").write_text("#error an installed toolkit's\n")
    planned = out("make", "-n", f"B={tmp_path}/b", f"CUDA_HOME={tmp_path}", "all", cwd=root, env={**os.environ, "CUDA_HOME": str(tmp_path)})
    compiled = [line for line in planned.splitlines() if re.search(r" -c \S+\.c ", line)]
    assert len(compiled) > 100 and all(re.findall(r"-isystem (\S+)", line) == ["build/cuda-headers/cupti", "build/cuda-headers/13.5", "build/cuda-headers/yyjson"] for line in compiled)
    assert f"{tmp_path}/include" not in planned and "/usr/local/cuda" not in planned


def test_nothing_of_the_library_is_left_to_link_time_optimization(root, tmp_path):
    """Distributions ask for it in CFLAGS. Wrappers are named in assembly alone, so it takes them for unused: 132 exports instead of 905."""
    planned = out("make", "-n", f"B={tmp_path}/b", f"{tmp_path}/b/libcustream_shim.so", cwd=root, env={**os.environ, "CFLAGS": "-O2 -flto=auto", "BY_FILE": ""})
    compiled = [line for line in planned.splitlines() if re.search(r" -c shim/\S+\.[cS] ", line)]
    ours = [line for line in compiled if not line.split()[-1].startswith(f"{tmp_path}/b/obj/writer/")]
    assert len(ours) > 50 and all(re.search(r" -flto=auto .*-fno-lto ", line) for line in ours)
    # What the writer goes through is compiled as one, and is machine code before the library is linked: nothing of it is named in assembly.
    assert len(compiled) > len(ours) + 50 and {"wrap", "process", "policy", "api"} <= {line.split(" -c shim/")[1].split("/")[0] for line in ours}
    assert any("-flinker-output=nolto-rel" in line and line.endswith(f"{tmp_path}/b/obj/writer/writer.o") for line in planned.splitlines())


def test_the_library_can_be_built_file_by_file(root, tmp_path):
    """As tools that change or mark single files need it; said in the environment, it also holds for a make that a test calls."""
    planned = out("make", "-n", f"B={tmp_path}/b", f"{tmp_path}/b/libcustream_shim.so", cwd=root, env={**os.environ, "BY_FILE": "1"})
    linked = [line for line in planned.splitlines() if line.endswith(f" -o {tmp_path}/b/libcustream_shim.so")]
    assert len(linked) == 1 and f"{tmp_path}/b/obj/shim/match/op.o" in linked[0]
    assert "/obj/writer/" not in planned and "-flto" not in planned.replace("-fno-lto", "")


def test_exports_of_the_second_product(folder):
    assert {n for _, n, _ in symbols(folder / PRODUCTS[1], "--defined-only") if not n.startswith("custream_")} == {
        "dlsym", "dlclose", "__tsan_default_suppressions", "libcustream_link"}


def test_the_loader_takes_dlsym_for_any_version(product):
    """A version on it would silently end the interposition. The driver's names have a hidden one: linked programs meet them, look-ups do not."""
    for kind, name, version in symbols(product, "--defined-only"):
        assert kind in "TW"
        if RUNTIME.match(name):
            continue
        assert version == ("CUSTREAM" if name.startswith("cu") and not name.startswith(("custream_", "cupti")) else ""), name


def test_the_runtimes_versions_are_hidden_and_not_the_first(product):
    """A look-up by name, and a reference without a version, pass by hidden symbols that stand behind the first version (glibc, check_match)."""
    listing = out("readelf", "-W", "-V", product)
    numbers = {name: int(i) for i, name in re.findall(r"Index: (\d+) .*Name: (\S+)", listing)}
    assert numbers["CUSTREAM"] == 2 and numbers["libcudart.so.12"] > 2 and numbers["libcudart.so.13"] > 2
    assert not re.search(r"@@libcudart", out("nm", "-D", product))


def test_no_source_file_outgrows_600_lines(root):
    files = [f for f in out("git", "ls-files", "-co", "--exclude-standard", cwd=root).splitlines() if re.search(r"\.(c|h|S|def|py|sh|mk|awk)$", f)]
    lines = {f: len((root / f).read_text(encoding="utf-8").splitlines()) for f in files if (root / f).exists()}
    assert len(lines) > 100 and {f: n for f, n in lines.items() if n > 600} == {}


def test_no_run_leaves_files_in_the_source_tree(root):
    """A unit test makes a folder where it is run, which is not to be committed with a change."""
    files = out("git", "ls-files", "-co", "--exclude-standard", cwd=root).splitlines()
    folders = {f.split("/")[0] for f in files if "/" in f}
    assert folders == {".ci", ".github", "dev", "docs", "examples", "include", "python", "shim", "tests", "tools", "traces"}


# --- programs without CUDA ---

PROGRAMS = {
    "bash": ["bash", "-c", "x=$(echo a | tr a b); (exit 4); echo $x $?; echo oops >&2; exit 7"],
    "sh-children": ["sh", "-c", "cat /dev/null; ls / >/dev/null; true | sort; sh -c 'exit 5'"],
    "git": ["git", "--version"],
    "gcc": ["gcc", "--version"],
    "gcc-compiles": ["gcc", "-x", "c", "-fsyntax-only", "/dev/null"],
    "python": [sys.executable, "-c", "import json, threading, ctypes; print(json.dumps([1])); raise SystemExit(9)"],
    "python-threads-and-fork": [sys.executable, "-c", "import os, threading, subprocess\nt = threading.Thread(target=print, args=('t',)); t.start(); t.join()\n"
                                "print(subprocess.run(['true']).returncode, flush=True)\npid = os.fork()\nif not pid: os._exit(6)\n"
                                "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"],
    "killed": ["sh", "-c", "kill -SEGV $$"],
    "not-found": ["sh", "-c", "no-such-program-here"],
}


def observe(build, tmp_path, argv, preload):
    """What can be seen of a run: status, output, and of each of its processes that ended by itself the threads and libraries."""
    work, seen = tmp_path / "work", tmp_path / "seen"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    seen.unlink(missing_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUSTREAM_", "LD_"))}
    env |= {"LD_PRELOAD": " ".join(map(str, [*preload, build / "tests/dlsym/libprobe.so"])), "PROBE_OUT": str(seen)}
    done = subprocess.run(list(map(str, argv)), cwd=work, env=env, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    processes = sorted(seen.read_text().splitlines()) if seen.exists() else []
    return {"rc": done.returncode, "stdout": done.stdout, "stderr": done.stderr, "files": sorted(p.name for p in work.rglob("*")), "processes": processes}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shim", PRODUCTS)
def test_a_program_without_cuda_is_left_alone(build, tmp_path, name, shim):
    alone = observe(build, tmp_path, PROGRAMS[name], [])
    under = observe(build, tmp_path, PROGRAMS[name], [build / shim])
    assert all(f" {shim}" in line for line in under["processes"])
    under["processes"] = sorted(line.replace(f" {shim}", "") for line in under["processes"])
    assert under == alone
    assert alone["files"] == [] and (alone["processes"] or name in ("killed", "not-found"))
    assert all(line.startswith("1 ") for line in alone["processes"])


@pytest.mark.parametrize("shim", PRODUCTS)
def test_a_static_program_is_not_reached(build, tmp_path, shim):
    run = observe(build, tmp_path, [build / "tests/dlsym/static", "word"], [build / shim])
    assert run == {"rc": 3, "stdout": "static word\n", "stderr": "", "files": [], "processes": []}


@pytest.mark.parametrize("shim", PRODUCTS)
def test_options_are_not_even_read_without_cuda(build, tmp_path, shim):
    """A wrong value is told by the process that uses it, not by every shell on the way."""
    done = subprocess.run(["bash", "-c", "echo a"], cwd=tmp_path, capture_output=True, text=True, check=False,
                          env={**os.environ, "LD_PRELOAD": str(build / shim), "CUSTREAM_FULL": "wrong", "CUSTREAM_NONSENSE": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\n", "") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_wrappers_are_small(build, name):
    """Programs load all of them, and use few: 160 KiB in all."""
    sizes = dict(re.findall(r"^(cs_wrappers\w*)\s+(\d+)", out("size", "-A", build / name), re.M))
    assert set(sizes) == {"cs_wrappers", "cs_wrappers_long"} and sum(map(int, sizes.values())) <= 160 << 10
