"""Words for the flags of calls: the table has every enumerator of cuda.h, and the trace shows them with their number."""
import collections
import re

import pytest

from tests import calltable
from tests.cudaheader import Header

# The type in cuda.h of which a set has all enumerators; None: macros that have the set's prefix.
TYPES = {"STREAM": "CUstream_flags", "EVENT": "CUevent_flags", "EVENT_RECORD": "CUevent_record_flags", "EVENT_WAIT": "CUevent_wait_flags", "CONTEXT": "CUctx_flags",
         "GREEN_CONTEXT": "CUgreenCtxCreate_flags", "WAIT_VALUE": "CUstreamWaitValue_flags", "WRITE_VALUE": "CUstreamWriteValue_flags", "ATTACH": "CUmemAttach_flags",
         "INSTANTIATE": "CUgraphInstantiate_flags", "DEPENDENCIES": "CUstreamUpdateCaptureDependencies_flags", "ATTRIBUTE": "CUlaunchAttributeID", "SEVERAL_DEVICES": None,
         "HOST_ALLOC": None, "HOST_REGISTER": None}
NO_FLAG = re.compile(r"_MASK$|ATTRIBUTE_MAX$|^CU_CTX_BLOCKING_SYNC$")  # the last is another name of CU_CTX_SCHED_BLOCKING_SYNC


@pytest.fixture(scope="module")
def sets(root):
    """The table: each set's prefix and its words."""
    found = {}
    for line in (root / "shim/calls/words.def").read_text().splitlines():
        if begin := re.match(r'WORDS\((\w+), \w+, "(\w+)"\)', line):
            found[begin[1]] = (begin[2], words := [])
        elif word := re.match(r"WORD\((\w+)\)", line):
            words.append(word[1])
    return found


@pytest.fixture(scope="module")
def header(build):
    return Header(build / "cuda-headers/13.5")


def enumerators(header, name):
    body = re.search(r"\{([^{}]*)\}\s*" + name + ";", header.source)[1]
    return {word for word in re.findall(r"(\w+)\s*(?:=[^,}]*)?(?:,|$)", body.strip())}


def test_each_set_has_all_words_of_its_type(sets, header):
    assert sets.keys() == TYPES.keys()
    for name, (prefix, words) in sets.items():
        known = enumerators(header, TYPES[name]) if TYPES[name] else set(re.findall(rf"#define ({prefix}\w+)", header.text))
        assert set(words) == {word for word in known if not NO_FLAG.search(word)}, name
        assert all(word.startswith(prefix) for word in words) and len(set(words)) == len(words), name


def test_all_flags_of_the_call_table_have_words(root, cuda_include, sets, header, tmp_path):
    """Only flags of which cuda.h says that they must be 0 are without."""
    _, rows = calltable.compile_rows(root, cuda_include, tmp_path / "dump_calls")
    shown = {(name, value[1]): value for name, row in rows.items() for value in row.values if value[0] in ("flags", "attribute")}
    used = {form[len("WORDS("):-1] for _, form in shown if form.startswith("WORDS(")}
    assert used == sets.keys() and {form for _, form in shown if not form.startswith("WORDS(")} == {"RESERVED"}
    for name, form in shown:
        said = header.comments.get(re.sub(r"_v\d$", "", name), {}).get(shown[name, form][2])
        if said and form == "RESERVED":
            assert re.search(r"must be (0|zero)", said, re.I), (name, said)
        if said and (kind := re.search(r"::(CU\w+_flags)\b", said)) and kind[1] in TYPES.values():
            assert TYPES[form[len("WORDS("):-1]] == kind[1], (name, said)


def test_flags_in_a_trace(run_app):
    run = run_app(["demo"]).check()
    flags = collections.defaultdict(set)
    for e in run.load().host(cat="cuda_driver"):
        flags[e["name"]].add(e["args"].get("flags"))
    assert flags["cuStreamWaitEvent"] == {"DEFAULT (0)"} and flags["cuStreamCreateWithPriority"] == {"NON_BLOCKING (1)"}
    assert flags["cuEventCreate"] == {"DISABLE_TIMING (2)"} and flags["cuGraphInstantiateWithFlags"] == {"0"}
    assert {name for name in flags if flags[name] != {None}} == {"cuStreamWaitEvent", "cuStreamCreateWithPriority", "cuEventCreate", "cuGraphInstantiateWithFlags"}


@pytest.mark.parametrize("flags, external", [("0x1", True), ("EXTERNAL (1)", True), ("0x0", False), ("DEFAULT (0)", False), (None, False)])
def test_the_report_reads_flags_of_all_versions(tmp_path, flags, external):
    """An external record is of a graph, and is done again at each launch."""
    from tests.cases.test_report_attacks import replayed, report
    text = replayed(True).text().replace('"flags":"0x1"', f'"flags":"{flags}"') if flags else replayed(False).text()
    assert ("CS108" in {row["id"] for row in report(tmp_path, text)["findings"]}) == (not external)
