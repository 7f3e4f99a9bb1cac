"""How many steps a run had, where its steps hold layers, batches, logs and evaluations: told rightly, or not at all."""
import json

import pytest

from tests.handmade import custream
from tests.nestedsteps import Nested

PLAIN = dict(steps=10, layers=12, in_layer=6, before=1, behind=1, trains=True, optimizer=2, inputs=1, ends="item", pause=0, micro=1,
             log=0, log_first=True, eval=0, warm_up="none", noise=0, host=3, kernel=20)


def steps_of(tmp_path, program):
    path = tmp_path / "nested.json"
    path.write_text(program.told().text(), encoding="utf-8")
    steady, = json.loads(custream("report", "--json", path).stdout)["tables"]["steady"]
    return steady["steps"]


@pytest.mark.parametrize("other", [
    {}, {"steps": 3}, {"steps": 40, "layers": 24}, {"layers": 2}, {"trains": False}, {"behind": 0}, {"before": 0}, {"optimizer": 5}, {"inputs": 2},
    {"inputs": 0, "ends": "nothing"}, {"inputs": 0, "ends": "nothing", "trains": False}, {"ends": "wait", "pause": 3000}, {"in_layer": 9, "behind": 0, "before": 0},
    {"warm_up": "slow"}, {"warm_up": "other"}, {"steps": 30, "log": 5}, {"steps": 40, "noise": 0.1}, {"host": 12, "kernel": 5},
], ids=lambda other: ", ".join(f"{key} {value}" for key, value in other.items()) or "plain")
def test_layers_are_no_steps(tmp_path, other):
    program = Nested(1, **{**PLAIN, **other})
    assert steps_of(tmp_path, program) == program.about["steps"]


@pytest.mark.parametrize("micro", [2, 4])
def test_batches_whose_gradients_are_added_up_are_no_steps(tmp_path, micro):
    assert steps_of(tmp_path, Nested(1, **{**PLAIN, "micro": micro, "ends": "nothing"})) == 10


def test_equal_layers_and_a_wait_for_each_step(tmp_path):
    assert steps_of(tmp_path, Nested(1, **{**PLAIN, "before": 0, "behind": 0, "trains": False, "inputs": 0, "ends": "wait"})) == 10


@pytest.mark.parametrize("epochs", [2, 3])
def test_epochs_of_many_kernels_are_no_steps(tmp_path, epochs):
    """Each kernel comes in a burst for each epoch."""
    assert steps_of(tmp_path, Nested(1, **{**PLAIN, "steps": 24 * epochs, "epoch": 24, "before": 60, "layers": 0})) == 24 * epochs


@pytest.mark.parametrize("ends", ["wait", "item"])
@pytest.mark.parametrize("variants", [2, 4])
def test_a_kernel_that_varies_makes_no_steps_of_steps(tmp_path, variants, ends):
    """A language model's kernels vary with the length of the text."""
    assert steps_of(tmp_path, Nested(1, **{**PLAIN, "steps": 40, "trains": False, "variants": variants, "ends": ends})) == 40


@pytest.mark.parametrize("other", [{}, {"ends": "item"}, {"layers": 0}, {"eval_batches": 1}], ids=str)
def test_steps_with_an_evaluation_behind_a_few(tmp_path, other):
    assert steps_of(tmp_path, Nested(1, **{**PLAIN, "steps": 40, "eval": 4, "eval_batches": 2, "ends": "wait", "behind": 0, **other})) == 40


@pytest.mark.parametrize("other", [
    {"before": 0, "behind": 0, "trains": False, "inputs": 0, "ends": "nothing"},
    {"steps": 40, "layers": 0, "before": 0, "behind": 0, "trains": False, "inputs": 0, "ends": "nothing", "log": 5, "log_first": False},
    {"steps": 40, "micro": 4, "ends": "item"},
], ids=["nothing but equal layers", "a look at results of kernels alone", "an optimizer, or a look at results behind a few batches"])
def test_what_may_be_steps_or_layers_is_not_told(tmp_path, other):
    assert steps_of(tmp_path, Nested(1, **{**PLAIN, **other})) is None


def test_random_programs(tmp_path):
    """Of 60 programs most are told rightly. A wrong number is rare: an evaluation right before the end of a run counts as a step."""
    told = [(steps_of(tmp_path, program), program.about["steps"]) for program in map(Nested, range(60))]
    wrong = [pair for pair in told if pair[0] not in (None, pair[1])]
    assert len(wrong) <= 1, wrong
    assert sum(steps is not None for steps, _ in told) >= 40
