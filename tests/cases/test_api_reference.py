"""The table of functions behind docs/api.md (dev/api-doc/functions.txt), against the header and the sources of shim/api."""
import re

import pytest

PROSE = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
FUNCTION = re.compile(r"^(CS_EXPORT |static )?[\w *]*?\b(\w+)\([^;{}]*\)(?:\s*\{ ([^\n]*) \}$|\s*\{\n(.*?)^\})", re.MULTILINE | re.DOTALL)
STATUS = re.compile(r"\bCUSTREAM_([A-Z_]+)\b")
# What the page says once for all functions.
COMMON = {"SUCCESS", "INVALID_VALUE", "INVALID_HANDLE", "CLOSED", "DRIVER", "NO_CONTEXT"}


@pytest.fixture(scope="module")
def rows(root):
    lines = [line for line in (root / "dev/api-doc/functions.txt").read_text().splitlines() if not line.startswith("#")]
    return [[cell.strip() for cell in line.split("|")] for line in lines]


class Sources:
    """The functions of shim/api, and what each comes to."""

    def __init__(self, root):
        self.bodies, self.shared, self.enders = {}, {}, set()
        statuses = re.search(r"typedef enum custream_status \{(.*?)\}", (root / "include/custream.h").read_text(), re.DOTALL)[1]
        self.statuses = set(STATUS.findall(statuses))
        for file in sorted((root / "shim/api").glob("*.c")):
            for kind, name, line, body in FUNCTION.findall(PROSE.sub("", file.read_text())):
                self.bodies[file.stem, name] = line or body
                if kind != "static ":
                    self.shared[name] = file.stem, name
            self.enders |= {(file.stem, name) for name in re.findall(r"api_object_new\(\w+, sizeof \*\w+, (\w+)\)", file.read_text())}

    def calls(self, at):
        """The calls of CUDA that stand in a function."""
        return set(re.findall(r"\bCUDA(?:_ENDS)?\((\w+)", self.bodies[at])) | set(re.findall(r"\bapi_driver\.(cu\w+)\(", self.bodies[at]))

    def answers(self, at):
        return set(STATUS.findall(self.bodies[at])) & self.statuses

    def reached(self, at):
        """The function and all that it comes to."""
        seen, left = set(), [at]
        while left:
            here = left.pop()
            if here in seen:
                continue
            seen.add(here)
            for name in set(re.findall(r"\w+", self.bodies[here])):
                name = {"USABLE_STREAM": "api_stream_usable", "USABLE_EVENT": "api_event_usable", "READY_STREAM": "api_stream_ready"}.get(name, name)
                left += [found for found in ((here[0], name), self.shared.get(name)) if found in self.bodies]
                left += self.enders if name == "api_release" else []
        return seen


@pytest.fixture(scope="module")
def sources(root):
    return Sources(root)


def listed(cell):
    return set() if cell == "-" else set(cell.split(", "))


def test_each_function_has_a_whole_row(root, rows, build):
    declared = re.findall(r"^(?!typedef)\w[\w *]*\b(custream_\w+)\(", (root / "include/custream.h").read_text(), re.MULTILINE)
    assert [row[0] for row in rows] == declared and len(declared) > 90
    assert [row for row in rows if len(row) != 5 or not all(row)] == []
    assert {row[2].split(";")[0].split(",")[0] for row in rows} == {"any", "own"}


def test_the_calls_of_cuda_are_made(rows, sources):
    """A row names a call by CUDA's plain name. The function comes to it in the sources; and what stands in the function itself is named, but for undoing."""
    plain = re.compile(r"_v\d$")
    wrong = []
    for name, _, _, cuda, _ in rows:
        at = sources.shared[name]
        made = {plain.sub("", call) for here in sources.reached(at) for call in sources.calls(here)}
        made |= {"cuInit"} if any("found.cuInit" in sources.bodies[here] for here in sources.reached(at)) else set()
        own = {plain.sub("", call) for call in sources.calls(at) if not re.search(r"Destroy|GetCurrent|GetCaptureInfo|BeginCaptureToGraph", call)}
        wrong += [(name, "never calls", call) for call in listed(cuda) - made]
        wrong += [(name, "does not say that it calls", call) for call in own - listed(cuda)]
    assert wrong == []


def test_the_answers_are_given(rows, sources):
    """Each further answer stands in what the function comes to; and each that stands in the function itself is named."""
    wrong = []
    for name, _, _, _, answers in rows:
        at = sources.shared[name]
        given = {answer for here in sources.reached(at) for answer in sources.answers(here)} | ({"NO_MEMORY", "NOT_SUPPORTED"} if "api_link->" in sources.bodies[at] else set())
        assert listed(answers) <= sources.statuses - COMMON, name
        wrong += [(name, "never answers", answer) for answer in listed(answers) - given]
        wrong += [(name, "does not say that it answers", answer) for answer in sources.answers(at) - COMMON - listed(answers)]
    assert wrong == []


def test_each_call_of_the_driver_is_in_a_row_or_asks(root, rows):
    """What the library calls only for itself is about contexts and captures, as the page says, or gives back what it made."""
    named = {call for row in rows for call in listed(row[3])}
    wanted = re.findall(r"(?:NEEDED|WANTED)\((cu\w+?)(?:_v\d)?\)", (root / "shim/api/driver.def").read_text())
    assert [call for call in wanted if call not in named and not re.search(r"Ctx|DeviceGetCount|IsCapturing|Release$", call)] == []
