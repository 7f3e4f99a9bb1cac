"""Times beyond 2^53 nanoseconds, which a process reaches that has run for 104 days: what the library writes, the command reads to the nanosecond."""
import json
import re

import pytest

from tests.cases.test_recover import run_all

DAYS_150_US = 150 * 24 * 3600 * 10**6


def late(path):
    return [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ts", 0) > DAYS_150_US / 2]


def nanoseconds(path):
    return {int(whole) * 1000 + int(decimals.ljust(3, "0")) for whole, decimals in re.findall(r'"ts":(\d+)\.?(\d*)', path.read_text())}


@pytest.fixture
def trace(run_app, tmp_path):
    """Of a process that began 150 days before its first call."""
    path = run_app(["demo"]).check().trace
    moved = tmp_path / "days.json"
    moved.write_text(re.sub(r'"ts":(\d+)', lambda ts: f'"ts":{int(ts[1]) + DAYS_150_US}', path.read_text()))
    return moved


@pytest.mark.parametrize("blanks", ["", " ", "\t "], ids=["none", "one", "more"])
def test_check(trace, blanks):
    """As of a script that writes rows anew."""
    trace.write_text(re.sub(r'("(?:ph|ts|dur|name)"):', rf'\1{blanks}:{blanks}', trace.read_text()))
    assert len(late(trace)) > 200 and run_all("check", trace)[::2] == (0, [])


@pytest.mark.parametrize("what", ["convert", "merge", "recover"])
def test_written_anew(trace, tmp_path, what):
    """Each time is the same afterwards, to the nanosecond."""
    out = tmp_path / "out.json"
    if what == "convert":
        assert run_all("convert", trace, tmp_path / "t.pftrace")[::2] == (0, []) and run_all("check", tmp_path / "t.pftrace")[::2] == (0, [])
        assert run_all("convert", tmp_path / "t.pftrace", out)[::2] == (0, [])
    elif what == "merge":
        assert run_all("merge", "-o", out, trace)[0] == 0
    else:
        torn = tmp_path / "torn.json"
        text = trace.read_text()
        torn.write_text(text[:len(text) * 95 // 100])
        assert run_all("recover", "-o", out, torn)[0] == 0
    assert run_all("check", out)[::2] == (0, [])
    before, after = (nanoseconds(path) for path in (trace, out))
    late_ones = {time for time in after if time > DAYS_150_US * 1000 // 2}
    assert len(late_ones) > 150 and late_ones <= before


def test_what_check_still_refuses(trace, tmp_path):
    text = trace.read_text()
    (time,) = re.findall(r'"ts":(\d{13,15}\.\d+)', text)[200:201]
    for wrong in ("1296000000000000000.5", "12960000000000.0001", "1.296e13", "-12960000000000"):
        (tmp_path / "t.json").write_text(text.replace(f'"ts":{time}', f'"ts":{wrong}', 1))
        status, _, complaints = run_all("check", tmp_path / "t.json")
        assert status == 1, (wrong, complaints)
