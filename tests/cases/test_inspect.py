"""`custream inspect`: programs and libraries that this file builds with the real CUDA runtime, what the loader would find, and files that lie."""
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys

import pytest

from tests.handmade import COMMAND, SHIM, custream

CODE = """
#include <cuda_runtime_api.h>
int main(void)
{
    cudaStream_t stream;
    cudaEvent_t event;
    char to[4];
    cudaStreamCreate(&stream);
    cudaEventCreate(&event);
    cudaEventRecord(event, stream);
    cudaMemcpyAsync(to, to, 4, cudaMemcpyDefault, stream);
    return cudaStreamSynchronize(stream);
}
"""
LEGACY = ["cudaEventCreate", "cudaEventRecord", "cudaMemcpyAsync", "cudaStreamCreate", "cudaStreamSynchronize"]
PER_THREAD = ["cudaEventCreate", "cudaEventRecord_ptsz", "cudaMemcpyAsync_ptsz", "cudaStreamCreate", "cudaStreamSynchronize_ptsz"]
PTDS = "-DCUDA_API_PER_THREAD_DEFAULT_STREAM"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("inspect")


@pytest.fixture(scope="module")
def compile_c(shared, root, real_cudart):
    """compile_c(name, code, flag...) is the path of what gcc makes of it, once for all tests. "static" and "shared" among the flags: with that runtime."""
    libraries = {"static": [real_cudart.parent / "libcudart_static.a", "-lpthread", "-ldl", "-lrt"], "shared": [real_cudart]}

    def make(name, code, *flags):
        path = shared / name
        if not path.exists():
            plain = [f for f in flags if f not in libraries]
            linked = [part for f in flags if f in libraries for part in libraries[f]]
            path.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-O1", "-I", root / "build/cuda-headers/13.5", *plain, *linked, "-o", path], input=code, text=True, check=True)
        return path
    return make


def inspect(path, **options):
    """What --json says; the text is there too."""
    done = custream("inspect", path, **options)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert max(map(len, done.stdout.splitlines())) <= 100 + len(str(path)) * 3
    done = custream("inspect", "--json", path, **options)
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def text(path, **options):
    """The text, without the breaks in its lines."""
    return re.sub(r"\s+", " ", custream("inspect", path, **options).stdout)


def refused(path, words):
    done = custream("inspect", path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith(f"custream inspect: {path}: ") and words in done.stderr, done.stderr


# --- how it reaches CUDA ---

@pytest.mark.parametrize("mode, flags, calls", [("legacy", [], LEGACY), ("per-thread", [PTDS], PER_THREAD)])
@pytest.mark.parametrize("linked", ["static", "shared"])
def test_the_runtime_and_its_calls(compile_c, mode, flags, calls, linked, real_cudart):
    path = compile_c(f"{linked}-{mode}", CODE, linked, *flags)
    said = inspect(path, env={"LD_LIBRARY_PATH": str(real_cudart.parent)})
    own, *others = said["files"]
    assert (said["kind"], said["obstacle"], own["machine"], own["bits"], own["static"]) == ("program", None, "x86-64", 64, False)
    assert own["default_stream"] == mode and own["calls_known"]
    assert own["calls"]["runtime"]["called" if linked == "static" else "imported"] == calls
    if linked == "static":
        assert (own["cudart"], own["cudart_version"]) == ("static", "13.0")
        assert own["reaches_cuda"] == ["the CUDA runtime 13.0 is linked into it (static), and opens libcuda.so.1"]
    else:
        assert own["cudart"] is None and own["reaches_cuda"] == ["linked to the shared CUDA runtime 13.0, libcudart.so.13"]
        assert [(f["cudart"], f["cudart_version"]) for f in others if f["soname"] == "libcudart.so.13"] == [("shared", "13.0")]
    assert said["run"] == [f"custream run -- {path}"] + ([f"custream run --default-stream=audit -- {path}"] if mode == "legacy" else [])


def test_both_default_streams(compile_c):
    shared = compile_c("both.so", CODE.replace("int main", "extern int cudaStreamQuery_ptsz(cudaStream_t); int f") .replace("return cuda", "cudaStreamQuery_ptsz(0); return cuda"),
                       "shared", "-shared", "-fPIC")
    assert inspect(shared)["files"][0]["default_stream"] == "both"
    assert "the thread's own by cudaStreamQuery_ptsz" in text(shared) and "the legacy one by cudaEventRecord, cudaMemcpyAsync, cudaStreamSynchronize" in text(shared)


def test_a_stripped_program_hides_its_calls(compile_c, shared):
    path = shared / "stripped"
    subprocess.run(["strip", "-o", path, compile_c("static-legacy", CODE, "static")], check=True)
    own = inspect(path)["files"][0]
    assert (own["cudart"], own["cudart_version"], own["default_stream"], own["calls_known"]) == ("static", "13.0", None, False)
    assert "default stream not known: the file is stripped" in text(path)


@pytest.mark.parametrize("name, words", [("driver_linked", "linked to the driver, libcuda.so.1"), ("demo", "may open libcuda.so while it runs")])
def test_the_driver_itself(build, name, words, compile_c):
    if name == "demo":
        path = build / "tests/demo"
    else:
        path = compile_c(name, "int cuStreamCreate(); int cuStreamSynchronize_ptsz(); int main(void) { return cuStreamCreate() + cuStreamSynchronize_ptsz(); }",
                         str(build / "fakecuda/libcuda.so.1"))
    said = inspect(path, env={"LD_LIBRARY_PATH": str(build / "fakecuda")})
    assert any(words in way for way in said["files"][0]["reaches_cuda"])
    driver = said["files"][0]["calls"]["driver"]
    if name == "demo":
        assert driver["imported"] == [] and {"cuStreamCreateWithPriority", "cuLaunchKernel"} <= set(driver["named"]) and said["files"][0]["dlopen"]
    else:
        assert driver["imported"] == ["cuStreamCreate", "cuStreamSynchronize_ptsz"] and said["files"][0]["default_stream"] == "per-thread"
        assert [f["reaches_cuda"] for f in said["files"] if f["soname"] == "libcuda.so.1"] == [["it is the driver's library"]]


def test_a_program_without_cuda():
    said = inspect("/bin/true")
    assert said["files"][0]["reaches_cuda"] == [] and said["run"] == ["custream run -- /bin/true"]
    assert said["sees"] == ["no CUDA as far as these files tell; what it opens while it runs is seen then"]


def test_the_command_itself():
    """It knows what to look for in others, and has no CUDA runtime in it."""
    own = inspect(COMMAND)["files"][0]
    assert (own["cudart"], own["calls"]["runtime"]["called"]) == (None, [])
    assert not any("linked" in way for way in own["reaches_cuda"])


def test_what_it_says_of_a_program_is_what_happens(run_app, build):
    """The line that it prints is run, and the trace has the calls that it names."""
    (line,) = inspect(build / "tests/demo")["run"]
    words = line.split()
    assert words[:3] == ["custream", "run", "--"]
    run = run_app([COMMAND, *words[1:]], shim=False).check()
    named = set(inspect(build / "tests/demo")["files"][0]["calls"]["driver"]["named"])
    called = {name for name in run.load().count() if name.startswith("cu")}
    assert called and called <= named


def test_a_program_with_pointers_of_its_own(compile_c):
    """Loaders in the manner of cuew: a preloaded function would take the place of their variable."""
    path = compile_c("cuew", "int (*cuInit)(unsigned); int (*cuStreamCreate)(void **, unsigned); int main(void) { return 0; }", "-rdynamic")
    assert inspect(path)["run"] == [f"LD_PRELOAD=libcustream_shim_dlsym.so {path}"]


def test_both_runtimes_take_cupti(compile_c, real_cudart):
    library = compile_c("libinner.so", CODE.replace("main", "inner"), "static", "-shared", "-fPIC")
    path = compile_c("outer", CODE.replace("int main(void)\n{", "int inner(void);\nint main(void)\n{\n inner();"), str(library), "shared", f"-Wl,-rpath,{real_cudart.parent}")
    said = inspect(path, env={"LD_LIBRARY_PATH": str(library.parent)})
    assert said["run"][0] == f"custream run --runtime=cupti -- {path}"
    assert {(f["cudart"], f["cudart_version"]) for f in said["files"]} == {(None, None), ("static", "13.0"), ("shared", "13.0")}


def test_libraries_and_objects(compile_c):
    library = compile_c("libf.so", CODE.replace("main", "f"), "shared", "-shared", "-fPIC")
    said = inspect(library)
    assert (said["kind"], said["run"]) == ("library", ["custream run -- PROGRAM"])
    thing = compile_c("f.o", CODE, "-c")
    said = inspect(thing)
    assert (said["kind"], said["run"]) == ("object file", []) and "inspect the program" in said["obstacle"]
    assert said["files"][0]["calls"]["runtime"]["imported"] == LEGACY


def test_the_wheels_own_runtime(real_cudart):
    said = inspect(real_cudart)
    assert (said["kind"], said["files"][0]["cudart"], said["files"][0]["cudart_version"]) == ("library", "shared", "13.0")
    assert text(real_cudart).startswith(f"{real_cudart}: library for x86-64, 64 bits reaches CUDA it is the CUDA runtime 13.0, shared")


def test_python_extensions():
    """Of cuda.bindings: they open the driver by name."""
    bindings = sorted(pathlib.Path(sys.prefix).glob("lib/python*/site-packages/cuda/bindings/*driver*.so"))
    assert bindings
    for path in bindings:
        said = inspect(path)
        assert said["kind"] == "library" and said["obstacle"] is None


# --- GPU code ---

def fatbin(*entries, size=None, magic=0xba55ed50):
    """As nvcc writes it: (kind, gpu, content)."""
    body = b"".join(struct.pack("<HHIQIIHHIIIQQQ", kind, 257, 64, len(content), 0, 0, 8, 1, gpu, 0, 0, 17, 0, 0) + content for kind, gpu, content in entries)
    return struct.pack("<IHHQ", magic, 1, 16, len(body) if size is None else size) + body


@pytest.fixture
def with_fatbins(tmp_path, compile_c):
    def make(content, section=".nv_fatbin"):
        (tmp_path / "fatbin").write_bytes(content)
        path = tmp_path / "program"
        subprocess.run(["objcopy", f"--add-section={section}={tmp_path}/fatbin", f"--set-section-flags={section}=alloc,readonly,data",
                        compile_c("plain", "int main(void) { return 0; }"), path], check=True, stderr=subprocess.DEVNULL)
        return path
    return make


def test_gpu_code(with_fatbins):
    content = fatbin((2, 90, b"x" * 24), (1, 75, b"y" * 40)) + b"\0" * 8 + fatbin((2, 120, b"z" * 13), (2, 90, b""))
    own = inspect(with_fatbins(content))["files"][0]
    assert (own["gpu_code"], own["gpu_code_broken"]) == (["compute_75", "sm_90", "sm_120"], False)
    assert inspect(with_fatbins(fatbin((2, 120, b"")), "__nv_relfatbin"))["files"][0]["gpu_code"] == ["sm_120"]


@pytest.mark.parametrize("content", [fatbin((2, 90, b"x" * 24), size=1 << 60), fatbin((2, 90, b"x" * 24))[:-10], fatbin((2, 1 << 31, b"")), fatbin()[:7],
                                     fatbin((2, 90, b"x" * 24)).replace(struct.pack("<IQ", 64, 24), struct.pack("<IQ", 64, (1 << 64) - 64)),
                                     fatbin((2, 90, b"x")).replace(struct.pack("<IQ", 64, 1), struct.pack("<IQ", 0, 0))],
                         ids=["size", "cut", "gpu", "header", "entry size", "no length"])
def test_gpu_code_that_lies(with_fatbins, content):
    own = inspect(with_fatbins(content))["files"][0]
    assert own["gpu_code"] in ([], ["sm_90"]) and own["gpu_code_broken"]


# --- libraries that it needs ---

@pytest.fixture
def chain(tmp_path):
    """chain(folder, flag...) is a program that needs libx.so, which lies in that folder; with the linker's flags."""
    def make(folder, *flags):
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", place / "libx.so", "-Wl,-soname,libx.so"], input="int x(void) { return 0; }", text=True, check=True)
        program = tmp_path / "bin/program"
        program.parent.mkdir(exist_ok=True)
        subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-o", program, place / "libx.so", *flags], input="int x(void); int main(void) { return x(); }", text=True, check=True)
        return program
    return make


@pytest.mark.parametrize("how", ["$ORIGIN/../lib", "${ORIGIN}/../lib", "absolute"])
@pytest.mark.parametrize("tags", ["--enable-new-dtags", "--disable-new-dtags"])
def test_libraries_are_found_as_the_loader_finds_them(chain, tmp_path, how, tags):
    program = chain("lib", f"-Wl,{tags},-rpath,{tmp_path / 'lib' if how == 'absolute' else how}")
    ldd = dict(re.findall(r"^\s*(\S+) => (\S+)", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout, re.M))
    files = inspect(program)["files"][1:]
    assert {os.path.realpath(f["path"]) for f in files if "/ld-linux" not in f["path"]} == {os.path.realpath(p) for p in ldd.values()}


def test_the_environment_and_the_two_kinds_of_paths(chain, tmp_path):
    """LD_LIBRARY_PATH comes behind DT_RPATH and in front of DT_RUNPATH; a library for another machine is passed over."""
    (tmp_path / "other").mkdir()
    for tags, winner in (("--enable-new-dtags", "other"), ("--disable-new-dtags", "lib")):
        program = chain("lib", f"-Wl,{tags},-rpath,{tmp_path}/lib")
        shutil.copy(tmp_path / "lib/libx.so", tmp_path / "other/libx.so")
        env = {"LD_LIBRARY_PATH": f"/no/such:{tmp_path}/other"}
        assert str(tmp_path / winner / "libx.so") in [f["path"] for f in inspect(program, env=env)["files"]], tags
    program = chain("lib", f"-Wl,--enable-new-dtags,-rpath,{tmp_path}/lib")
    for other in (b"no library", b"\x7fELF\x01\x01\x01" + b"\0" * 13, b""):
        (tmp_path / "other/libx.so").write_bytes(other)
        assert str(tmp_path / "lib/libx.so") in [f["path"] for f in inspect(program, env=env)["files"]]
    os.unlink(tmp_path / "other/libx.so")
    os.mkfifo(tmp_path / "other/libx.so")  # which nobody writes to
    assert str(tmp_path / "lib/libx.so") in [f["path"] for f in inspect(program, env=env)["files"]]


def test_a_file_with_runpath_has_no_use_of_the_programs_rpath(chain, tmp_path):
    program = chain("lib", f"-Wl,--disable-new-dtags,-rpath,{tmp_path}/lib")
    assert inspect(program)["not_found"] == []
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-shared", "-fPIC", "-o", tmp_path / "lib/libmiddle.so", tmp_path / "lib/libx.so", "-Wl,--enable-new-dtags,-rpath,/no/such"],
                   input="int x(void); int middle(void) { return x(); }", text=True, check=True)
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-o", program, f"-L{tmp_path}/lib", "-l:libmiddle.so", f"-Wl,--disable-new-dtags,-rpath,{tmp_path}/lib,-rpath-link,{tmp_path}/lib"],
                   input="int middle(void); int main(void) { return middle(); }", text=True, check=True)
    assert inspect(program)["not_found"] == ["libx.so"]


def test_what_is_not_found_is_said(chain):
    said = inspect(chain("lib"))
    assert said["not_found"] == ["libx.so"]
    assert "not found libx.so" in text(chain("lib"))


def test_nothing_is_run(tmp_path):
    """Neither the program, nor its interpreter, nor a constructor of a library."""
    library, program = tmp_path / "libx.so", tmp_path / "program"
    code = f'__attribute__((constructor)) static void begin(void) {{ fclose(fopen("{tmp_path}/ran", "w")); }}\n'
    subprocess.run(["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", library], input="#include <stdio.h>\n" + code, text=True, check=True)
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", f"-Wl,-rpath,{tmp_path},--no-as-needed", "-o", program, library], input="#include <stdio.h>\n" + code + "int main(void) { return 0; }",
                   text=True, check=True)
    inspect(program)
    inspect(library)
    assert not (tmp_path / "ran").exists()


# --- what cannot be traced ---

def test_programs_that_the_loader_does_not_preload_into(compile_c, shared):
    static = compile_c("static", "int main(void) { return 0; }", "-static")
    said = inspect(static)
    assert said["files"][0]["static"] and "statically linked" in said["obstacle"] and said["run"] == []
    assert "static program for x86-64" in text(static) and "custream sees nothing: it is statically linked" in text(static)
    assert "statically linked" in inspect(compile_c("static-pie", "int main(void) { return 0; }", "-static-pie"))["obstacle"]
    raised = shared / "raised"
    shutil.copy(compile_c("plain", "int main(void) { return 0; }"), raised)
    os.chown(raised, 1, 1)
    os.chmod(raised, 0o4755)
    assert "raised privileges" in inspect(raised)["obstacle"]
    musl = shared / "musl"
    musl.write_bytes(compile_c("plain", "").read_bytes().replace(b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-musl-x86_64.so.1\0\0\0"))
    assert "musl" in inspect(musl)["obstacle"]


def test_another_machine(shared):
    path = shared / "arm"
    subprocess.run(["aarch64-linux-gnu-gcc", "-x", "c", "-", "-o", path], input="int main(void) { return 0; }", text=True, check=True)
    said = inspect(path)
    assert said["files"][0]["machine"] == "aarch64" and "another architecture" in said["obstacle"]


def test_32_bits(shared):
    """A header is enough: nothing here makes such files."""
    path = shared / "small"
    header = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01", 2, 3, 1, 0x8048000, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    path.write_bytes(header + struct.pack("<8I", 1, 0, 0x8048000, 0x8048000, 84, 84, 5, 4096))
    said = inspect(path)
    assert (said["files"][0]["machine"], said["files"][0]["bits"]) == ("i386", 32) and "32-bit" in said["obstacle"]


# --- scripts ---

def test_names_that_are_no_utf_8(tmp_path):
    script = tmp_path / os.fsdecode(b"script \xff.sh")
    script.write_bytes(b"#!/bin/s\xc3\nx\n")
    script.chmod(0o755)
    said, name = inspect(script), f"{tmp_path}/script \ufffd.sh"
    assert (said["path"], said["interpreter"], said["run"]) == (name, "/bin/s\ufffd", [f"custream run -- '{name}'"])
    program = tmp_path / os.fsdecode(b"program \xe2\x82")
    shutil.copy("/bin/true", program)
    assert inspect(program)["files"][0]["path"] == f"{tmp_path}/program \ufffd\ufffd"


def test_a_script_whose_interpreter_is_a_pipe(tmp_path):
    """Nobody writes to it, so whoever opens it to read waits."""
    script, pipe = tmp_path / "script", tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o755)
    script.write_text(f"#!{pipe}\n")
    script.chmod(0o755)
    said = inspect(script)
    assert (said["kind"], said["interpreter"], said["obstacle"]) == ("script", str(pipe), None)
    for program in (script, pipe):
        done = custream("run", program)
        assert done.returncode == 126 and done.stderr.endswith("Permission denied\n"), done


@pytest.mark.parametrize("name, first, mode, starts, line", [
    ("train", "#!/usr/bin/env python3", 0o755, "python3", "{}"), ("train.sh", "#!/bin/sh -e", 0o755, "/bin/sh -e", "{}"),
    ("train.py", "import torch", 0o644, "python3", "python3 {}"), ("train.py", "#!/usr/bin/env -S python3 -u", 0o644, "python3 -u", "python3 -u {}")])
def test_scripts(tmp_path, name, first, mode, starts, line):
    path = tmp_path / name
    path.write_text(f"{first}\nx\n")
    path.chmod(mode)
    said = inspect(path)
    assert (said["kind"], said["interpreter"], said["files"]) == ("script", starts, [])
    assert said["run"] == ["custream run -- " + line.format(path)]


def test_names(tmp_path, compile_c):
    """Without a slash: a file here, or a program on PATH; and what a shell needs around a name."""
    odd = tmp_path / "it's a program"
    shutil.copy(compile_c("plain", "int main(void) { return 0; }"), odd)
    (line,) = inspect(odd)["run"]
    assert subprocess.run(["sh", "-c", line.replace("custream run --", "exec")], check=False).returncode == 0
    assert inspect(odd.name, cwd=tmp_path)["run"] == ["custream run -- ./'it'\\''s a program'"]
    assert inspect("ldd", env={"PATH": "/usr/bin"})["path"] == "/usr/bin/ldd"


# --- files that are nothing, or lie ---

def test_no_program(tmp_path):
    for name, content, words in [("empty", b"", "empty"), ("text", b"hello\n", "no ELF file"), ("short", b"\x7fELF", "ELF"), ("ident", b"\x7fELF\x02\x01\x01" + b"\0" * 9, "")]:
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, words)
    refused(tmp_path / "none", "No such file")
    refused(tmp_path, "a folder")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "no regular file")
    subprocess.run(["ar", "rc", tmp_path / "a.a", tmp_path / "text"], check=True)
    refused(tmp_path / "a.a", "archive")


def test_wrong_usage():
    for arguments, words in [([], "which program"), (["a", "b"], "one file at a time"), (["--jsno", "a"], 'did you mean "--json"')]:
        done = custream("inspect", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and words in done.stderr
    assert "--json" in custream("help", "inspect").stdout


def test_truncated_files(tmp_path):
    """Cut anywhere, in what is loaded or behind it: said in one line."""
    whole = SHIM.read_bytes()
    path = tmp_path / "cut"
    for n in (5, 16, 63, 64, 65, 200, 1000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n])
        refused(path, "")


@pytest.mark.parametrize("seed", range(4))
def test_headers_that_lie(tmp_path, build, seed):
    """Bytes of the headers changed by chance: read, or refused in one line."""
    chance = random.Random(seed)
    whole = (build / "tests/demo").read_bytes()
    places = list(range(16, 64)) + list(range(64, 64 + 13 * 56)) + list(range(len(whole) - 40 * 64, len(whole)))
    path = tmp_path / "lies"
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 8])):
            data[chance.choice(places)] = chance.choice([0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)])
        path.write_bytes(data)
        done = custream("inspect", path)
        assert done.returncode in (0, 2) and done.stderr.count("\n") == (done.returncode == 2), done


def test_names_in_a_file_cannot_reach_the_terminal(compile_c, shared):
    path = shared / "escape"
    subprocess.run(["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", shared / "libevil.so", "-Wl,-soname,lib\033[31m\n.so"], input="int x;", text=True, check=True)
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-Wl,--no-as-needed", "-o", path, shared / "libevil.so"], input="int main(void) { return 0; }", text=True, check=True)
    done = custream("inspect", path)
    assert done.returncode == 0 and "\033" not in done.stdout and "not found" in done.stdout
