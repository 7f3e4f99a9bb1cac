"""The readers of other people's files, and what writes texts, under libFuzzer: the committed corpus, and a short search that is the same each time."""
import os
import re
import subprocess

import pytest

# The target, the folder of its corpus, and how many inputs are made from it.
TARGETS = [("policy", "policy", 3000), ("check", "trace", 600), ("report", "trace", 300), ("convert", "trace", 300), ("recover", "trace", 300), ("inspect", "inspect", 200),
           ("clocks", "clocks", 2000),
           ("writer", "writer", 5000)]


@pytest.mark.parametrize("target, corpus, runs", TARGETS, ids=[target for target, _, _ in TARGETS])
def test_a_short_search(root, build, tmp_path, target, corpus, runs):
    env = {**os.environ, "FUZZ": target, "ASAN_OPTIONS": "detect_leaks=0"}  # the command leaves that to its end
    done = subprocess.run([build / "tests/fuzz", f"-runs={runs}", "-seed=1", "-max_len=16384", "-timeout=60", "-close_fd_mask=3", tmp_path, root / "tests/fuzz/corpus" / corpus],
                          env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(re.search(r"Done (\d+) runs", done.stderr)[1]) >= runs


def test_every_target_is_here(root):
    text = (root / "tests/fuzz/fuzz.c").read_text()
    names = re.findall(r'\{"(\w+)", \w+\}', text)
    assert names == [target for target, _, _ in TARGETS] == re.search(r"FUZZ_TARGETS := (.*)", (root / "tests/fuzz/module.mk").read_text())[1].split()


def test_a_target_that_is_none(build):
    done = subprocess.run([build / "tests/fuzz"], env={**os.environ, "FUZZ": "nothing"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "FUZZ=nothing is no target\n")
