"""HolisticTraceAnalysis reads our traces, and its sums are those of the slices in them (tests/gpu/hta_check.py)."""
import collections
import subprocess
import sys

SIMULATED = {"CUSTREAM_FAKE_COPY_NS": 20000, "CUSTREAM_FAKE_KERNEL_NS": 3000}


def test_hta_agrees_with_the_trace(run_app, root):
    """One process reads them all: loading HTA takes longer than a trace."""
    runs = [run_app(["demo"], env=dict(SIMULATED, CUSTREAM_GPU=source, CUSTREAM_GRAPH=graph)).check() for source, graph in (("cupti", "graph"), ("cupti", "node"), ("events", "graph"))]
    for run in runs:
        assert len(run.load().gpu(cat="gpu_memcpy")) == 24
    check = [sys.executable, root / "tests" / "gpu" / "hta_check.py", *[run.trace for run in runs]]
    done = subprocess.run(check, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        if line.startswith("hta_"):
            figures[line.split()[0]].append(float(line.split()[1]))
    assert len(figures["hta_names"]) == len(runs) and min(figures["hta_names"]) >= 3
    assert all(whole >= compute > 1000 for whole, compute in zip(figures["hta_kernel_time"], figures["hta_compute_time"], strict=True))


def test_hta_reads_a_trace_of_any_size(run_app, root):
    """It stores row numbers in a column of the type that holds the correlation numbers. Without GPU times it has nothing to say, and does not fail."""
    cases = [(["demo"], "off", 150), (["burst", 1, 20000, 0], "auto", 33000)]  # no GPU times; beyond 15 bits
    paths = [run_app(argv, env={"CUSTREAM_GPU": source}).check().trace for argv, source, _ in cases]
    code = "import sys; sys.path.insert(0, sys.argv[1]); import hta_check; print('rows', *[len(hta_check.analyse(path).t.get_trace(0)) for path in sys.argv[2:]])"
    done = subprocess.run([sys.executable, "-c", code, root / "tests" / "gpu", *paths], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    read = [int(word) for word in done.stdout.split("rows ")[-1].split()]
    assert len(read) == len(cases) and all(rows >= least for rows, (_, _, least) in zip(read, cases))
