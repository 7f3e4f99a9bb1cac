"""%%custream: in a notebook that a real kernel runs, and without the preload library."""
import json
import os
import re
import subprocess
import sys

import nbclient
import nbformat
import pytest

from tests import wheelroot
from tests.cases.conftest import app_environment
from tests.cases.test_pytest_plugin import CUDA
from tests.patience import patience
from tests.trace import Trace

CELLS = ["%load_ext custream",
         "%%custream\nx = 5\nx",
         "%%custream\nwork(3)\nx + 1",
         "%%custream -o cell.json --fail-if 'default_stream_work > 0'\nwork(2)",
         "%%custream --fail-if 'default_stream_work > 0'\nwork(4, default=False)\nx + 2",
         "%%custream -o cell.txt\nx = 6",
         "%%custream\nundefined",
         "x"]


@pytest.fixture
def notebook(build, tmp_path, monkeypatch):
    """notebook(kernel, cells, NAME=VALUE...): the outputs of the cells, a list of texts each."""
    package = wheelroot.unpack(wheelroot.wheel_of(build), tmp_path / "package")
    env = app_environment(build, tmp_path / "unused.json", None, {})
    del env["CUSTREAM_TRACE"]
    env |= {"PYTHONPATH": str(package), "JUPYTER_DATA_DIR": str(tmp_path / "jupyter"), "IPYTHONDIR": str(tmp_path / "ipython"), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}

    def install(*words):
        return subprocess.run([sys.executable, "-m", "custream", "jupyter", *words], env=env, capture_output=True, text=True, check=False)

    def run(kernel, cells=CELLS, **more):
        for name in os.environ.keys() - env.keys():
            monkeypatch.delenv(name)
        for name, value in (env | more).items():
            monkeypatch.setenv(name, value)
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in [CUDA, *cells]])
        nbclient.NotebookClient(book, kernel_name=kernel, allow_errors=True, timeout=int(patience(60)), resources={"metadata": {"path": str(tmp_path)}}).execute()
        return [[str(out.get("text") or out.get("data", {}).get("text/plain") or out.get("evalue")) for out in cell.outputs] for cell in book.cells[1:]]

    run.install = install
    return run


def test_a_cell_without_gpu_times_gets_no_tables_either(notebook):
    assert notebook.install("install").returncode == 0
    _, work = notebook("custream", ["%load_ext custream", "%%custream\nwork(3)"], CUSTREAM_GPU="off")  # the report is another one then
    assert "no GPU times" in work[0] and len(work[0].splitlines()) < 20, work


def test_a_kernel_under_custream(notebook, tmp_path):
    done = notebook.install("install")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"custream: 'Python 3 (custream)' is in {tmp_path}/jupyter/kernels/custream\n", "")
    loaded, idle, work, failed, passed, named, error, last = notebook("custream")
    assert loaded == [] and idle == ["5", "custream: the cell called no CUDA: no trace\n"]
    assert work[0] == "6" and "its GPU work, from its first call on, took" in " ".join(work[1].split()) and "Where the GPU was idle" not in work[1]
    assert failed[-1] == "custream report: --fail-if='default_stream_work > 0' holds: default_stream_work is 2" and "custream: cell.json\n" in failed[0]
    assert passed[0] == "7" and len(passed) == 2
    assert "-o cell.txt: a name that ends in .json" in "".join(named)
    assert "name 'undefined' is not defined" in error[0] and last == ["5"]
    trace = Trace(tmp_path / "cell.json")
    assert re.fullmatch(r"ok, a cut of \d+\.\d{3} s out of a trace", trace.verdict) and trace.count()["cuMemsetD8Async"] == 2
    (whole,) = tmp_path.glob("custream-notebook-*.json")
    assert Trace(whole).count()["cuMemsetD8Async"] == 9


def test_a_kernel_of_its_own_says_how(notebook, tmp_path):
    _, idle, work, *judgements, _, _, last = notebook("python3")
    how = "custream: this kernel is not recorded. Type once: python -m custream jupyter install; then choose the kernel 'Python 3 (custream)'\n"
    assert idle == [how, "5"] and work == [how, "6"] and last == ["5"]
    for judged in judgements:  # those with --fail-if: none passes that nobody could judge
        assert judged[0] == how and judged[-1] == "custream: --fail-if cannot be judged: nothing is recorded"
    assert not list(tmp_path.glob("*.json"))


def test_a_kernel_s_trace_that_cannot_be_cut(notebook):
    """A condition that cannot be judged fails the cell. Without one the cell is as it was, and it is said why there is no report."""
    assert notebook.install("install").returncode == 0
    cells = ["%load_ext custream", "%%custream\nwork(20000)\nx = 5", "%%custream\nwork(1)\nx", "%%custream --fail-if 'default_stream_work > 0'\nwork(1)\nx"]
    _, _, work, judged = notebook("custream", cells, CUSTREAM_TRACE_MAX="1M,rotate")
    why = r"\S*custream-notebook-\d+\.json rotates: take CUSTREAM_TRACE_MAX without rotate"
    assert work[0] == "5" and re.fullmatch(f"custream: no trace of the cell: {why}\n", work[1]), work
    assert re.fullmatch(f"custream: --fail-if cannot be judged: {why}", judged[-1]), judged


def test_a_kernel_that_records_nothing(notebook):
    """Of a cell whose calls are not recorded nobody knows whether it called CUDA."""
    assert notebook.install("install").returncode == 0
    cells = ["%load_ext custream", "%%custream\nwork(3)\nx = 5", "%%custream --fail-if 'calls > 0'\nwork(1)\nx"]
    _, work, judged = notebook("custream", cells, CUSTREAM_WINDOW="ctl")
    why = "recording is off (nobody has asked for it: CUSTREAM_WINDOW=ctl)"
    assert work[-1] == f"custream: no trace of the cell: {why}\n" and judged[-1] == f"custream: --fail-if cannot be judged: {why}", (work, judged)


def test_the_kernel_s_line(notebook, tmp_path):
    assert notebook.install("install", "--trace=other-%p.json.gz").returncode == 0
    spec = json.loads((tmp_path / "jupyter/kernels/custream/kernel.json").read_text())
    assert spec["argv"][1:] == ["run", "--trace=other-%p.json.gz", "--", sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    assert notebook.install("remove").returncode == 2


def test_ipython_without_a_kernel_says_another_line(build, tmp_path):
    package = wheelroot.unpack(wheelroot.wheel_of(build), tmp_path / "package")
    env = app_environment(build, tmp_path / "t.json", None, {}) | {"PYTHONPATH": str(package), "IPYTHONDIR": str(tmp_path)}
    words = [sys.executable, "-m", "IPython", "--colors=nocolor", "-c", "get_ipython().run_line_magic('load_ext', 'custream')\nget_ipython().run_cell('%%custream\\nprint(3)')"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert "3\n" in done.stdout and done.stderr == "custream: this process is not recorded. Start it as: custream run -- ipython\n"
    done = subprocess.run([package / "custream/native/custream", "run", "--", *words], env=env, capture_output=True, text=True, check=False)
    assert "3\n" in done.stdout and "custream: the cell called no CUDA: no trace\n" in done.stdout
