#!/usr/bin/env python3
"""All of tests/gpu on a machine that is at hand for minutes and has no network: packed on one machine, run on the other, in the background.

    tests/gpu/lanes.py pack FOLDER               # what the tests need of build/, in pieces FOLDER/build.tar.xz.00, .01, ... of 45 MiB at most
    tests/gpu/lanes.py unpack FOLDER             # over there, in the same tree
    tests/gpu/lanes.py start RESULTS [ROW ...]   # starts the rows (all without names) and returns
    tests/gpu/lanes.py wait RESULTS SECONDS      # until they have ended, at most so long; prints how far each is, and what failed

Build first what is to be packed: make all test-programs gpu-programs gpu-hta gpu-warp.
"""
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PIECE = 45 << 20
PACKED = ["libcustream*.so*", "custream", "fakecuda", "gpu", "tests/api", "tests/null_stream", "tests/demo", "carry", "carry-hta", "warp"]

# Rows of a lane run one after the other; the last lane's when all others are through. What measures times has the first GPU to itself, and what compares
# times to a tenth the whole machine, at the end. On the other GPU, programs run beside each other. With one GPU they begin when the quiet lane is through,
# and rows for two are left out. Seconds are a limit.
SAME = "priorities or results_are_the_same or nccl"  # tests of policies that measure no times
ROWS = {
    # name: (lane, GPUs, seconds, file, what pytest's -k picks; "": all)
    "times": ("quiet", "0", 200, "test_gpu_times.py", ""),
    "policy": ("quiet", "0", 400, "test_gpu_policy.py", f"not ({SAME})"),
    "sample": ("quiet", "0", 100, "test_gpu_sample.py", ""),
    "warp": ("first", "1", 500, "test_gpu_warp.py", "test_async"),
    "programs": ("second", "1", 300, "test_gpu.py", ""),
    "runtime": ("second", "1", 200, "test_gpu_runtime.py", ""),
    "policy-same": ("third", "1", 400, "test_gpu_policy.py", SAME),
    "hard": ("third", "1", 300, "test_gpu_hard.py", ""),
    "graphs": ("fourth", "1", 300, "test_gpu_graphs.py", ""),
    "profilers": ("fourth", "1", 300, "test_gpu_profilers.py", ""),
    "warp-rest": ("fifth", "1", 300, "test_gpu_warp.py", "not test_async"),
    "api": ("fifth", "1", 300, "test_gpu_api.py", ""),
    "two": ("last", "0,1", 200, "test_gpu_hard.py", "stands_on_its_gpu or nccl"),
    "two-graphs": ("last", "0,1", 200, "test_gpu_graphs.py", "2] or copies_between"),
    "two-report": ("last", "0,1", 200, "test_gpu_report.py", "blocked_copy or event_device or event_chain"),
    "two-policy": ("last", "0,1", 200, "test_gpu_policy.py", "nccl"),
    "report": ("alone", "0", 300, "test_gpu_report.py", ""),
}


def pack(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("build.tar.xz.*"):
        old.unlink()
    carry = BUILD / "carry"
    carry.mkdir(exist_ok=True)
    for line in subprocess.check_output(["ldd", BUILD / "custream"], text=True).splitlines():
        name, _, path = line.strip().partition(" => ")
        if name.startswith(("libcjson", "libelf")):
            (carry / name).write_bytes(pathlib.Path(path.split()[0]).read_bytes())
    there = [str(path.relative_to(ROOT)) for pattern in PACKED for path in sorted(BUILD.glob(pattern))]
    tar = subprocess.Popen(["tar", "-C", ROOT, "-cf", "-", "--exclude=build/gpu/traces", "--exclude=*.o", *there], stdout=subprocess.PIPE)
    subprocess.run(["bash", "-c", f"xz -T0 -3 | split -d -b {PIECE} - build.tar.xz."], stdin=tar.stdout, cwd=folder, check=True)
    assert tar.wait() == 0
    for piece in sorted(folder.glob("build.tar.xz.*")):
        print(piece, piece.stat().st_size >> 20, "MiB")


def gpus():
    return len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())


def unpack(folder):
    pieces = " ".join(str(piece.resolve()) for piece in sorted(folder.glob("build.tar.xz.*")))
    subprocess.run(["bash", "-o", "pipefail", "-c", f"cat {pieces} | tar -C '{ROOT}' -xJf -"], check=True)


def run_row(name, results):
    _, devices, seconds, file, pick = ROWS[name]
    env = dict(os.environ, CUDA_VISIBLE_DEVICES=devices if gpus() > 1 else "0", BUILD_DIR=str(BUILD), CUSTREAM_GPU_REPORT=str(results / f"{name}.md"), PYTHONUNBUFFERED="1",
               WARP_CACHE_PATH=str(results / f"{name}.warp"), LD_LIBRARY_PATH=":".join(filter(None, [str(BUILD / "carry"), os.environ.get("LD_LIBRARY_PATH")])))
    began = time.time()
    pytest = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-ra", "--durations=10", file, *["-k", pick] * bool(pick)]
    argv = ["timeout", "-s", "INT", "-k", "10", str(seconds), *pytest]
    with open(results / f"{name}.txt", "w") as out:
        status = subprocess.run(argv, cwd=ROOT / "tests/gpu", env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    (results / f"{name}.status").write_text(f"{status} {time.time() - began:.0f}\n")


def lane(which, results, names):
    first = {"quiet": [], "last": [name for name in names if ROWS[name][0] not in ("last", "alone")], "alone": [name for name in names if ROWS[name][0] != "alone"]}
    quiet = [name for name in names if ROWS[name][0] == "quiet"]
    before = first.get(which, quiet if gpus() == 1 else [])
    while not all((results / f"{name}.status").exists() for name in before):
        time.sleep(0.5)
    for name in names:
        if ROWS[name][0] == which:
            run_row(name, results)


def start(results, names):
    results.mkdir(parents=True, exist_ok=True)
    names = [name for name in names or ROWS if gpus() > 1 or ROWS[name][0] != "last"]
    for old in [results / f"{name}.{kind}" for name in names for kind in ("txt", "status", "md")]:
        old.unlink(missing_ok=True)
    (results / "rows").write_text("\n".join(names) + "\n")
    for which in sorted({ROWS[name][0] for name in names}):
        subprocess.Popen([sys.executable, __file__, "lane", which, results, *names], start_new_session=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait(results, seconds):
    names, until = (results / "rows").read_text().split(), time.time() + seconds
    while not all((results / f"{name}.status").exists() for name in names) and time.time() < until:
        time.sleep(1)
    failed = False
    for name in names:
        status, text = results / f"{name}.status", results / f"{name}.txt"
        lines = text.read_text(errors="replace").splitlines() if text.exists() else []
        if not status.exists():
            print(f"{name}: {'runs: ' + lines[-1][-100:] if lines else 'waits'}")
            failed = True
            continue
        code, took = status.read_text().split()
        print(f"{name}: status {code}, {took} s: {lines[-1] if lines else ''}")
        if code != "0":
            failed = True
            print("\n".join(line for line in lines if line.startswith(("E  ", "FAILED", "ERROR")))[:6000])
    return failed


def main(what=None, folder=None, *more):
    if what not in ("pack", "unpack", "start", "wait", "lane") or (folder is None) or (what == "wait" and not more):
        sys.exit(__doc__)
    if what == "lane":
        return lane(folder, pathlib.Path(more[0]), more[1:])
    folder = pathlib.Path(folder).absolute()
    unknown = [name for name in more if what == "start" and name not in ROWS]
    if unknown:
        sys.exit(f"no row {unknown[0]}; rows: {', '.join(ROWS)}")
    return {"pack": pack, "unpack": unpack}[what](folder) if what.endswith("pack") else start(folder, more) if what == "start" else wait(folder, int(more[0]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
