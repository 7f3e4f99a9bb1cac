"""Memory, threads and descriptors of a program in which everything comes and goes: short forms of what `make soak` runs (tests/soak.py)."""
from tests import soak
from tests.remote import until

CALLS = 250000
# KiB. Of what stays 70 MiB are the program's and the driver's. The rest is as docs/architecture.md has it, if the writer fell far behind: 36 MiB for calls, 104 for work,
# 8 for CUPTI. GOES: what there is of 64 threads, at least, on a machine where it does not: their rings, and the buffers that the profiler filled for them.
STAYS, GOES = 240 << 10, 64 << 10


def test_a_mixture(tmp_path):
    """By so many calls the tables are not full yet: they may grow, by so much for each call, and nothing else may."""
    run = soak.mix(tmp_path, 60, until=lambda sample: sample.calls > CALLS or sample.seconds > 60)
    assert not list(soak.wrong_with(run)) and len(run.samples) > 2


def test_what_busy_threads_had_goes_with_them(tmp_path):
    """64 threads with 10,000 launches each. What stays are the tables of calls and work, in their first sizes."""
    with soak.Soak(tmp_path, ["hold", "threads", 64, 1], env={"CUSTREAM_TRACE_MAX": "64M,rotate", "CUSTREAM_FULL": "block"}) as run:
        while run.process.stdout.peek(1):
            soak.settled(run.process.pid, True)
            run.sample()
            most = min([STAYS] + [sample.anon - GOES for sample in run.samples if sample.what == "there"])
            until(lambda: run.samples[-1].what == "there" or soak.anon_of(run.process.pid) < most, 20)
            run.go_on()
    assert run.rc == 0 and [sample.what for sample in run.samples] == ["gone", "there", "gone"]


def test_a_leak_is_seen():
    """The judge itself: one byte in two of the calls is too much, and so are a descriptor or a thread that stay."""
    def run(grows, files=20, threads=10):
        samples = [soak.Sample(i, int(i * 1e5), "mix", int(90000 + grows * i * 1e5 / 1024), 10, threads + i // 10, files + i // 10, 30000) for i in range(480)]
        return type("Run", (), {"rc": 0, "stderr": "", "samples": samples})
    flat = run(0.01)
    for sample in flat.samples:
        sample.files = sample.threads = 20
    assert not list(soak.wrong_with(flat))
    assert len(list(soak.wrong_with(run(0.5)))) == 3
