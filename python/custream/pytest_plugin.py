"""pytest --custream: a trace for each test, and tests that fail by the report's rules.

    pytest --custream                                             # starts itself again under custream
    @pytest.mark.custream(fail_if="default_stream_work > 0")      # of `custream report --fail-if`

The process has one trace. Each test is a range in it, and is cut out when the test ends.
"""
import os
import pathlib
import re
import sys
import zlib

import pytest

from custream import _native, cut

OPTION = "--custream"


def pytest_addoption(parser):
    group = parser.getgroup("custream", "CUDA streams (custream)")
    group.addoption(OPTION, action="store_true", help="write a trace of each test's CUDA work, and judge tests by their custream mark")
    group.addoption("--custream-dir", default="custream-traces", metavar="FOLDER", help="where the traces go (default: custream-traces)")


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_load_initial_conftests(early_config):
    """Starts pytest again under custream, before it imports a test and before it captures its output."""
    options = early_config.known_args_namespace
    if getattr(options, "custream", False) and not _native.is_preloaded() and not hasattr(early_config, "workerinput"):
        start_again(early_config, options)
    yield


def start_again(config, options):
    if os.environ.get("CUSTREAM_PYTEST"):
        raise pytest.UsageError(f"{OPTION}: the preload library is not in this process; start it as: custream run -- pytest")
    folder = folder_of(options.custream_dir, config)
    trace = folder / "process-%p.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(f"{OPTION}: {folder}: {error.strerror}") from None
    words = getattr(sys, "orig_argv", [sys.executable, "-m", "pytest", *map(str, config.invocation_params.args)])[1:]
    os.environ["CUSTREAM_PYTEST"] = "1"
    chosen = [] if "CUSTREAM_TRACE" in os.environ else [f"--trace={trace}"]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(_native.COMMAND, ["custream", "run", *chosen, "--", sys.executable, *words])


def folder_of(given, config):
    return pathlib.Path(config.invocation_params.dir, given)


def pytest_configure(config):
    config.addinivalue_line("markers", "custream(fail_if=CONDITION or a list of them): with --custream, the test fails if one holds of its CUDA work, "
                                       "as in fail_if='default_stream_work > 0' (custream report --fail-if)")
    if config.getoption(OPTION):
        config.pluginmanager.register(Tracer(config), "custream-tracer")


def conditions(item):
    """What the marks of a test say. A wrong one is said before any test runs."""
    found = []
    for mark in item.iter_markers("custream"):
        wanted = mark.kwargs.get("fail_if", [])
        wanted = [wanted] if isinstance(wanted, str) else wanted
        if mark.args or set(mark.kwargs) - {"fail_if"} or not isinstance(wanted, (list, tuple)) or not all(isinstance(w, str) for w in wanted):
            raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.custream takes fail_if=, a condition or a list of them, and nothing else")
        found += wanted
    return found


def pytest_collection_modifyitems(config, items):
    for item in items:
        if conditions(item):
            config.stash[JUDGED] = config.stash.get(JUDGED, 0) + 1


JUDGED = pytest.StashKey[int]()
SAID = "custream"


def pytest_terminal_summary(terminalreporter, config):
    count = config.stash.get(JUDGED, 0)
    if not config.getoption(OPTION) and count:
        terminalreporter.write_line(f"custream: {count} test{'s have' if count > 1 else ' has'} conditions that nobody judged: pytest {OPTION}")
    if config.getoption(OPTION):
        said = [value for reports in terminalreporter.stats.values() for report in reports
                for key, value in getattr(report, "user_properties", []) if key == SAID and getattr(report, "when", "") == "call"]
        folder = folder_of(config.getoption("--custream-dir"), config)
        traces = [value for value in said if value.endswith(".json")]
        if traces or not said:  # of others it is not known whether they called CUDA
            terminalreporter.write_line(f"custream: {len(traces)} traces of tests in {folder}" if traces else "custream: no test called CUDA: no trace")
        for line in sorted({value for value in said if not value.endswith(".json")}):
            terminalreporter.write_line(f"custream: {line}")


class Tracer:
    """In each process that runs tests."""

    def __init__(self, config):
        self.folder = folder_of(config.getoption("--custream-dir"), config)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        name = cut.range_name(f"test {item.nodeid}")
        since = cut.mark()
        _native.annotate("range_push", name)
        try:
            outcome = yield
        finally:
            _native.annotate("range_pop")
        why = self.judge(item, name, since)
        if why and not outcome.excinfo:
            outcome.force_exception(pytest.fail.Exception(why, pytrace=False))

    def judge(self, item, name, since):
        """Writes the test's trace, if it called CUDA. Why the test is to fail, or None: a condition holds, or whether one does cannot be known."""
        wanted = conditions(item)
        path = self.folder / file_name(item)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not cut.stretch(name, path, since):
                return None
        except (cut.CannotCut, OSError) as error:
            item.user_properties.append((SAID, f"tests without a trace of their own: {error}"))
            return f"custream: the conditions of this test cannot be judged: {error}" if wanted else None
        item.user_properties.append((SAID, str(path)))
        why = held(path, wanted)
        return why and f"{why}\nIts trace: {path}"


def file_name(item):
    """tests/test_a.py::test_b[1-2] is tests.test_a.test_b-1-2. A name that has to be changed gets a number, so that no two tests have one."""
    path, _, rest = item.nodeid.partition("::")
    name = f"{path.removesuffix('.py').replace('/', '.')}.{rest.replace('::', '.')}"
    stem = re.sub(r"[^\w.+-]+", "-", name.replace("[", "-").removesuffix("]")).strip("-")[:150]
    plain = re.fullmatch(r"[\w.+-]{,150}(\[[\w.+-]*\])?", name) and len(name) < 150
    return f"{stem}.json" if plain else f"{stem}-{zlib.crc32(item.nodeid.encode()):08x}.json"


def held(trace, wanted):
    """What `custream report --fail-if` says of the trace: None, or the lines of the conditions that hold, or of a wrong one."""
    if not wanted:
        return None
    done = _native.run("report", *(f"--fail-if={condition}" for condition in wanted), trace)
    if done.returncode == 0:
        return None
    return done.stderr.strip() or f"custream report ended with {done.returncode}"
