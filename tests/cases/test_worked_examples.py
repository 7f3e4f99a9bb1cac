"""examples/worked/run.sh, with a program of ours in Python's place: the real ones need a GPU and their libraries."""
import os
import subprocess

import pytest

TORCH = ["torch_transformer", "torch_transformer-mended", "torch_transformer-graphed"]
CUPY = ["cupy_filter", "cupy_filter-mended"]


@pytest.fixture
def run_sh(root, build, tmp_path):
    """run_sh(program, fails=variant): what the script left and said. The window is wide open: the stand-in has no profiler."""
    def run(program, fails="none", window="all"):
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\n[ "${{2:-}}" != {fails} ] || exit 3\nexport CUSTREAM_WINDOW={window} LD_LIBRARY_PATH={build}/fakecuda\n'
                          f'exec {build}/tests/demo\n')
        python.chmod(0o755)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUSTREAM_", "LD_"))} | {"PYTHON": str(python), "BUILD_DIR": str(build)}
        command = [root / "examples/worked/run.sh", tmp_path / "results", program]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=110, check=False)
        return done, {path.name for path in (tmp_path / "results").glob("*")}
    return run


@pytest.mark.parametrize("names", [TORCH, CUPY], ids=["two changes", "one change"])
def test_runs_by_turns_reports_and_comparisons(run_sh, names):
    done, left = run_sh(names[0])
    assert done.returncode == 0, done.stderr
    ran = [line.rpartition("/")[2].partition(":")[0] for line in done.stdout.splitlines() if "requests answered" in line]
    assert ran == [f"{n}.{i}" for i in (1, 2, 3) for n in names]
    assert left == {f"{n}.{i}.{end}" for n in names for i in (1, 2, 3) for end in ("json", "out")} | \
        {f"{n}.{end}" for n in names for end in ("report", "html")} | {f"{n}.diff" for n in names[1:]}


def test_a_variant_that_fails_is_left_out(run_sh, tmp_path):
    done, left = run_sh("torch_transformer", fails="mended")
    assert done.returncode == 1 and "torch_transformer-mended: left out" in done.stderr
    assert "torch_transformer-mended.report" not in left and {"torch_transformer-graphed.report", "torch_transformer-graphed.diff"} <= left
    assert "Before: 3 runs of demo" in (tmp_path / "results/torch_transformer-graphed.diff").read_text()


def test_a_program_that_opens_no_window_is_said(run_sh):
    done, left = run_sh("jax_train", window="profiler")
    assert done.returncode == 1 and "jax_train: left out, not all of its runs have a trace" in done.stderr
    assert not [name for name in left if name.endswith(".report")]


@pytest.mark.parametrize("words", [[], ["results"], ["results", "no_such_program"]], ids=["nothing", "no program", "an unknown program"])
def test_wrong_usage(root, tmp_path, words):
    done = subprocess.run([root / "examples/worked/run.sh", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr and not list(tmp_path.iterdir())
