"""Memory in the program's process does not grow with what comes and goes there. docs/architecture.md has the table of what is kept."""
import re

import pytest

from tests.remote import Remote

# What the first call costs, and how much the third of three equal batches may add, in KiB. Calls are kept in tables that fill up to their bound: 256 bytes each.
FIRST = 10000
THINGS = {"threads": 160, "streams": 600, "events": 600, "graphs": 300}


def resident(run):
    return [int(kib) for kib in re.findall(r"note rss_kib (\d+)", run.stderr)]


@pytest.mark.parametrize("kind", THINGS)
def test_equal_batches(run_app, kind):
    idle = resident(run_app(["grows", "waits", 1, 3]).check())
    first, second, third = resident(run_app(["grows", kind, THINGS[kind], 3]).check())
    assert third - second <= 100 + THINGS[kind] * 2 // 4, "grows with each batch"
    assert third - idle[-1] <= FIRST, "takes much more than nothing does"


def status_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])
