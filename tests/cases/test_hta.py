"""HolisticTraceAnalysis reads our traces, and its sums are those of the slices in them (tests/gpu/hta_check.py)."""
import subprocess
import sys

import pytest

SIMULATED = {"CUSTREAM_FAKE_COPY_NS": 20000, "CUSTREAM_FAKE_KERNEL_NS": 3000}


@pytest.mark.parametrize("source, graph", [("cupti", "graph"), ("cupti", "node"), ("events", "graph")])
def test_hta_agrees_with_the_trace(run_app, root, source, graph):
    run = run_app(["demo"], env=dict(SIMULATED, CUSTREAM_GPU=source, CUSTREAM_GRAPH=graph)).check()
    assert len(run.load().gpu(cat="gpu_memcpy")) == 24
    check = [sys.executable, root / "tests" / "gpu" / "hta_check.py", run.trace]
    done = subprocess.run(check, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("hta_")}
    assert figures["hta_kernel_time"] >= figures["hta_compute_time"] > 1000 and figures["hta_names"] >= 3


@pytest.mark.parametrize("argv, source, rows", [(["demo"], "off", 150), (["burst", 1, 20000, 0], "auto", 33000)], ids=["no-gpu-times", "beyond-15-bits"])
def test_hta_reads_a_trace_of_any_size(run_app, root, argv, source, rows):
    """It stores row numbers in a column of the type that holds the correlation numbers. Without GPU times it has nothing to say, and does not fail."""
    run = run_app(argv, env={"CUSTREAM_GPU": source}).check()
    code = "import sys; sys.path.insert(0, sys.argv[1]); import hta_check; print(len(hta_check.analyse(sys.argv[2]).t.get_trace(0)), 'rows')"
    done = subprocess.run([sys.executable, "-c", code, root / "tests" / "gpu", run.trace], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split(" rows")[0].split()[-1]) >= rows
