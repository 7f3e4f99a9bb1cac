"""Look-ups through the shim's dlsym and dlvsym: the answers, errors and errno of a process without it; on the driver's handle, our wrappers.

Each program is there at -O0 and -O2, since a C compiler decides about tail calls, and for aarch64 under qemu.
"""
import os
import re
import shutil
import subprocess

import pytest



class Machine:
    """Where programs run: what stands before the command, and where the products are."""

    def __init__(self, build, level, prefix=()):
        self.build, self.prefix = build, list(prefix)
        self.programs = build / "tests/dlsym" / level
        self.shim = build / "libcustream_shim.so"
        self.shim_dlsym = build / "libcustream_shim_dlsym.so"
        self.driver = build / "fakecuda"

    def run(self, program, *args, preload=(), driver=False, cwd=None, **env):
        child = {k: v for k, v in os.environ.items() if not k.startswith(("CUSTREAM_", "LD_", "QEMU_"))}
        path = [str(self.driver)] if driver else []
        guest = {"LD_PRELOAD": ":".join(map(str, preload)), "LD_LIBRARY_PATH": ":".join([*path, str(self.programs)])} | env
        if self.prefix:  # the machine's own loader must not see what is meant for the guest's
            child["QEMU_SET_ENV"] = ",".join(f"{k}={v}" for k, v in guest.items() if v)
            child.update({k: v for k, v in guest.items() if not k.startswith("LD_")})
        else:
            child.update({k: v for k, v in guest.items() if v})
        done = subprocess.run([*self.prefix, self.programs / program, *args], env=child, capture_output=True, text=True, check=False, timeout=100, cwd=cwd)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(params=["O0", "O2", "aarch64-O0", "aarch64-O2"])
def machine(request, build):
    arch, _, level = request.param.rpartition("-")
    if not arch:
        return Machine(build, level)
    return Machine(request.getfixturevalue("aarch64_build"), level, request.getfixturevalue("qemu"))


NAMES = ["cuLaunchKernel", "cuStreamCreate", "cuInit", "cuGetProcAddress", "cuNoSuchCall", "strtod", "dlsym_sample", "no_such_symbol", "cudaMalloc"]


def questions(who, hows, names=None):
    return [word for how in hows for name in names or NAMES for word in (who, how, name)]


PSEUDO = ["default", "next", "self"]
# Without CUDA: what is asked, and what is preloaded in front of and behind the shim.
CASES = {
    "program": ([*questions("program", PSEUDO)], [], []),
    "library": (["-l", "liblocal.so", *questions("local", PSEUDO), *questions("program", PSEUDO)], [], []),
    "library-for-all": (["-g", "liblocal.so", *questions("local", PSEUDO), *questions("program", PSEUDO)], [], []),
    "library-deeply-bound": (["-d", "liblocal.so", *questions("local", PSEUDO), *questions("program", PSEUDO)], [], []),
    "library-by-handle": ([*questions("program", ["liblocal.so", "libdep.so"]), *questions("program", ["self"])], [], []),
    "behind": ([*questions("behind", PSEUDO), *questions("program", PSEUDO)], [], ["libbehind.so"]),
    "behind-that-defines": ([*questions("behind", PSEUDO), *questions("program", PSEUDO)], [], ["libbehind.so", "libdep.so"]),
    "in-front": ([*questions("front", PSEUDO), *questions("program", PSEUDO)], ["libfront.so"], []),
    "in-front-that-defines": ([*questions("front", PSEUDO), *questions("program", PSEUDO)], ["libdep.so", "libfront.so"], []),
    "constructor": (["-l", "libload.so"], [], []),
    "constructor-of-a-preload": ([], [], ["libload.so"]),
    "system-libraries": (questions("program", ["libc.so.6", "libm.so.6"], ["strtod", "cos", "cuInit", "cuLaunchKernel", "no_such_symbol"]), [], []),
    "no-such-library": (questions("program", ["libnosuch.so"], ["strtod", "cuInit"]), [], []),
    "versions": (questions("program", ["default", "next", "self", "libc.so.6"],
                           ["strtod@GLIBC_2.2.5", "strtod@GLIBC_2.17", "strtod@NONE_1", "cuLaunchKernel@GLIBC_2.17", "cuLaunchKernel@NONE_1",
                            "cudaMalloc@NONE_1", "pthread_create@GLIBC_2.34", "no_such@GLIBC_2.17"]), [], []),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("product", ["shim", "shim_dlsym"])
def test_answers_are_those_without_the_shim(machine, tmp_path, case, product):
    args, front, behind = CASES[case]
    front, behind = ([machine.programs / name for name in names] for names in (front, behind))
    alone = machine.run("program", *args, preload=[*front, *behind], cwd=tmp_path)
    under = machine.run("program", *args, preload=[*front, getattr(machine, product), *behind], cwd=tmp_path)
    assert alone[0] == 0 and alone[2] == ""
    assert (len(alone[1].splitlines()) >= 10 and " errno 33; " in alone[1]) or case == "no-such-library"
    assert under == alone
    assert not list(tmp_path.iterdir())


def test_a_driver_name_is_not_there_without_cuda(machine):
    args = [w for who in (["program"]) for how in PSEUDO for name in ("cuInit", "cuLaunchKernel", "cuStreamCreate", "cuGetProcAddress_v2")
            for w in (who, how, name)]
    rc, out, err = machine.run("program", *args, preload=[machine.shim])
    assert (rc, err) == (0, "") and len(out.splitlines()) == 12
    for line in out.splitlines():
        assert re.fullmatch(r"program (default|next|self) (\w+): NULL; errno 33; .*undefined symbol: \2; then no error", line)


def test_a_program_started_through_the_loader(build):
    """The process's entry point is then the loader's, not the program's."""
    machine = Machine(build, "O2")
    loader = re.search(r"interpreter: (.*)\]", subprocess.run(["readelf", "-l", machine.programs / "program"], capture_output=True, text=True, check=True).stdout)[1]
    args = [machine.programs / "program", *questions("program", PSEUDO)]
    machine.prefix = []
    runs = []
    for preload in ([], ["--preload", machine.shim]):
        done = subprocess.run([loader, *preload, *args], capture_output=True, text=True, check=False, env={"LD_LIBRARY_PATH": str(machine.programs)})
        runs.append((done.returncode, done.stdout, done.stderr))
    assert runs[0][0] == 0 and runs[1] == runs[0]


def table_symbols(build):
    """Symbols of the call table, with those of cuGetProcAddress."""
    import json
    rows = [json.loads(line) for line in subprocess.run([build / "tests/dump_calls"], capture_output=True, text=True, check=True).stdout.splitlines()[1:]]
    suffix = {"ONE": [""], "PTDS": ["", "_ptds"], "PTSZ": ["", "_ptsz"]}
    return {row["name"] + s for row in rows for s in suffix[row["sibling"]]} | {"cuGetProcAddress", "cuGetProcAddress_v2"}


DRIVER_NAMES = ["cuLaunchKernel", "cuLaunchKernel_ptsz", "cuStreamCreate", "cuEventRecord_ptsz", "cuMemcpyHtoD_v2_ptds", "cuGetProcAddress", "cuGetProcAddress_v2",
                "cuDriverGetVersion", "cuGetErrorName", "cuNoSuchCall", "cuStreamCreate_ptsz", "cu", "custream_fakecuda_version"]


def expected_of(alone, wrapped, product):
    """The lines of a run without the shim, with the driver's entry points of the table replaced by ours."""
    lines = []
    for line in alone.splitlines():
        match = re.match(r"(\w+ \S+ \S+: )libcuda\.so\.1\+\S+ (\w+)(;.*)", line)
        lines.append(f"{match[1]}{product} {match[2]}{match[3]}" if match and match[2] in wrapped else line)
    return lines


@pytest.mark.parametrize("hows", [["libcuda.so.1"], ["libcuda.so.1", "default", "next", "self"]], ids=["handle", "then-others"])
def test_the_drivers_handle_gives_our_wrappers(machine, build, tmp_path, hows):
    args = questions("program", hows, DRIVER_NAMES)
    alone = machine.run("program", *args, driver=True)
    under = machine.run("program", *args, driver=True, preload=[machine.shim], cwd=tmp_path)
    assert alone[0] == under[0] == 0 and alone[2] == under[2] == ""
    assert under[1].splitlines() == expected_of(alone[1], table_symbols(build), "libcustream_shim.so")
    assert sum("libcustream_shim" in line for line in under[1].splitlines()) == 7
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag, who, library", [("-l", "local", "liblocal.so"), ("-g", "behind", "libbehind.so")])
def test_a_librarys_look_up_on_the_handle(machine, build, flag, who, library):
    args = [flag, library, *questions(who, ["libcuda.so.1"], DRIVER_NAMES)]
    alone, under = machine.run("program", *args, driver=True), machine.run("program", *args, driver=True, preload=[machine.shim])
    assert under[0] == 0 and under[1].splitlines() == expected_of(alone[1], table_symbols(build), "libcustream_shim.so")


def test_a_driver_open_for_all(machine, build):
    """RTLD_DEFAULT finds the driver then, with and without the shim, which answers with its wrapper."""
    args = ["-g", "libcuda.so.1", *questions("program", PSEUDO, DRIVER_NAMES)]
    alone, under = machine.run("program", *args, driver=True), machine.run("program", *args, driver=True, preload=[machine.shim])
    assert alone[0] == under[0] == 0 and "libcuda.so.1" in alone[1]
    assert under[1].splitlines() == expected_of(alone[1], table_symbols(build), "libcustream_shim.so")


@pytest.mark.parametrize("flag", ["-l", "-g"])
def test_a_functions_version_of_the_runtime(machine, flag):
    """Ours have it too, and nobody gets them who asks for it: the answer is the runtime's own, or none. Only whom the error names differs."""
    args = [flag, "libcudart.so.13", *questions("program", [*PSEUDO, "libcudart.so.13"], [f"cudaMemsetAsync@libcudart.so.{n}" for n in (13, 12)])]
    runs = (machine.run("program", *args, driver=True, preload=preload, CUSTREAM_TRACE="off") for preload in ([], [machine.shim]))
    alone, under = ((rc, re.sub(r"\S+: undefined", "undefined", out), err) for rc, out, err in runs)
    assert alone[0] == 0 and "libcudart.so.13+" in alone[1] and under == alone


def test_a_driver_that_only_the_caller_depends_on(machine, build, tmp_path):
    """It is in nobody's global scope, and RTLD_DEFAULT finds it from that library all the same. No look-up keeps the library in the process."""
    shutil.copy(machine.programs / "liblocal.so", tmp_path)
    (tmp_path / "libdep.so").symlink_to(machine.driver / "libcuda.so.1")
    args = ["-l", tmp_path / "liblocal.so", *questions("local", ["default"], DRIVER_NAMES), *questions("program", ["default"], DRIVER_NAMES)]
    alone, under = (machine.run("program", *args, preload=preload, cwd=tmp_path, LD_LIBRARY_PATH=str(tmp_path)) for preload in ([], [machine.shim]))
    alone, under = ((rc, out.replace(" libdep.so+", " libcuda.so.1+"), err) for rc, out, err in (alone, under))
    assert alone[0] == under[0] == 0 and alone[2] == under[2] == ""
    assert under[1].splitlines() == expected_of(alone[1], table_symbols(build), "libcustream_shim.so")
    assert sum("libcustream_shim" in line for line in under[1].splitlines()) == 7
    assert under[1].splitlines()[-1].endswith("liblocal.so is gone")


def test_a_deeply_bound_library_escapes(machine):
    """RTLD_DEEPBIND puts the C library's dlsym before ours for that library: what it looks up is not seen, and is right."""
    args = ["-d", "liblocal.so", *questions("local", ["libcuda.so.1"], DRIVER_NAMES)]
    alone, under = machine.run("program", *args, driver=True), machine.run("program", *args, driver=True, preload=[machine.shim])
    assert under == alone and alone[0] == 0


TOOLS = ["libcuda.so.99", "libcupti.so.99", "libnvidia-ml.so.1", "libnvperf_host.so", "libcudadebugger.so.1", "libcheckpoint.so", "libpcsamplingutil.so", "libToolsInjection64.so"]


@pytest.mark.parametrize("name", TOOLS)
def test_tools_of_nvidia_get_the_drivers_own(machine, tmp_path, name):
    library = tmp_path / name
    shutil.copy(machine.programs / "libcupti.so.99", library)
    args = ["-l", library, *questions("cupti", ["libcuda.so.1"], DRIVER_NAMES)]
    alone, under = machine.run("program", *args, driver=True), machine.run("program", *args, driver=True, preload=[machine.shim])
    assert under == alone and f"{name}+" not in alone[1] and alone[1].count("libcuda.so.1+") > 7


@pytest.mark.parametrize("product", ["libcustream_shim.so", "libcustream_shim_dlsym.so"])
def test_get_proc_address_is_swapped_by_identity(machine, build, tmp_path, product):
    alone = machine.run("getproc", driver=True)
    under = machine.run("getproc", driver=True, preload=[machine.build / product], cwd=tmp_path)
    assert alone[0] == under[0] == 0 and under[2] == ""
    wrapped = table_symbols(build)
    expected = [re.sub(r"driver (\w+)$", lambda m: f"shim {m[1]}" if m[1] in wrapped else m[0], line) for line in alone[1].splitlines()]
    if product == "libcustream_shim.so":
        assert under[1].splitlines() == expected
    else:  # its wrappers have no names that dladdr could tell
        assert [re.sub(r"shim .*", "shim", line) for line in under[1].splitlines()] == [re.sub(r"shim .*", "shim", line) for line in expected]
    assert expected[-2:] == ["refused: 1, left alone"] * 2
    assert sum("shim cuGetProcAddress" in line for line in expected) >= 5 and sum(" shim " in line for line in expected) > 40
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["4", "5"])
def test_a_process_may_begin_by_asking_for_an_entry_point(run_app, form):
    run = run_app(["asks_linked", form]).check()
    assert run.stdout.startswith("asked: 0\nmade: 0\n")
    assert run.load().count()["cuStreamCreate"] == 1


def test_driver_names_as_data_of_the_program(machine, tmp_path):
    """The second product leaves them alone, and the pointers that such a program fetches are ours."""
    args = questions("program", ["default", "self", "libcuda.so.1"], ["cuLaunchKernel", "cuStreamCreate"])
    alone = machine.run("data", *args, driver=True, CUSTREAM_TRACE="off")
    under = machine.run("data", *args, driver=True, preload=[machine.shim_dlsym], cwd=tmp_path, CUSTREAM_TRACE="off")
    assert alone[0] == under[0] == 0 and under[2] == ""
    assert "own variable: yes" in under[1] and "launched without a context: " in under[1]
    changed = [(a, b) for a, b in zip(alone[1].splitlines(), under[1].splitlines(), strict=True) if a != b]
    assert len(changed) == 2 and all(a.startswith("program libcuda.so.1 ") and "libcustream_shim_dlsym.so" in b for a, b in changed)


@pytest.mark.parametrize("driver", [False, True])
@pytest.mark.parametrize("product", [None, "libcustream_shim.so", "libcustream_shim_dlsym.so"])
def test_look_ups_of_many_threads(machine, driver, product):
    done = machine.run("threads", *(["libcuda.so.1"] if driver else []), driver=driver, preload=[machine.build / product] if product else [])
    assert done == (0, "done\n", "")
