"""What a call finds and leaves in the processor and its thread, besides arguments and results. test_gates.py has signals at each instruction of a call."""
import pytest

from tests.apprun import calls_in, calls_of, notes_of, read, said

MODES = {
    "default": {}, "events": {"CUSTREAM_GPU": "events"}, "gz": {"CUSTREAM_TRACE": "trace.json.gz"},
    "policies": {"CUSTREAM_POLICY": '{"rules":[{"match":{"thread":"*"},"set":{"priority":-2}}]}', "CUSTREAM_JITTER": "seed=1,us=10,percent=50"},
}


# ---- Floating point ----

@pytest.mark.parametrize("how", ["look", "trap", "up"])
@pytest.mark.parametrize("mode", MODES)
def test_floating_point(run_app, tmp_path, mode, how):
    """Our own calculations leave no marks on the program's threads, and are neither trapped nor rounded as the program has asked for its own."""
    path = tmp_path / MODES[mode].get("CUSTREAM_TRACE", "trace.json")
    run = run_app(["floats", how], env=MODES[mode] | {"CUSTREAM_TRACE": path}).check()
    assert run.stdout == run_app(["floats", how], shim=False).check().stdout and not said(run)
    assert calls_in(read(path)) == calls_of(run.stdout)


# ---- Stacks ----

@pytest.mark.parametrize("env", [{}, {"CUSTREAM_GPU": "events"}, {"CUSTREAM_STREAMS": "serial"}, MODES["policies"]], ids=["default", "events", "serial", "policies"])
def test_calls_take_little_of_a_small_stack(run_app, env):
    """Fibers have stacks of 16 KiB. The first call of the process may take half of that more than alone, all others a quarter."""
    more, alone = (notes_of(run_app(["stacks"], **how).check().stderr) for how in ({"env": env}, {"shim": False}))
    took = {what: int(more[what]) - int(bytes_) for what, bytes_ in alone.items()}
    assert took.keys() == {"process", "thread", "launch", "create", "range", "wide"}
    assert took.pop("process") < 8192 and max(took.values()) < 4096
