"""The policy file at its limits: lengths of texts, sizes of numbers, depth, and how much of them an error shows."""
import json

import pytest

from tests.cases.test_policy_file import TOP, one
from tests.policyfile import Reader


@pytest.fixture(scope="module")
def reader(build):
    with Reader(build) as reader:
        yield reader


def of_top(key, whole=True):
    return f"{key}{'' if whole else '...'}: no such key; there are {TOP}"


def of_log(text, whole=True):
    return f'log: "{text}{"" if whole else "..."}" is not valid: allowed is error|warn|info|debug'


def of_buffer(shown):
    return f"buffer: {shown} is not valid: allowed is a size from 64K to 1G"


def test_limits(reader):
    """Each length and number on both sides of its limit: how much of a text is shown, what is taken for a slip, what is too long or too deep."""
    for sign in "x", "é", "€", "😀":
        width = len(sign.encode())
        for before in range(4):
            for most, room, of in (62, "key", of_top), (86, "value", of_log):
                fits = (most - before) // width
                for count in fits, fits + 1, fits + 2, 2 * fits, 100 * fits:
                    text, shown = "b" * before + sign * count, "b" * before + sign * min(count, fits)
                    tree = {text: 1} if room == "key" else {"log": text}
                    assert reader(json.dumps(tree, ensure_ascii=False)) == "policy.json: " + of(shown, whole=text == shown), (room, before, sign, count)
    for code, shown in {0x1F: "?", 0x20: " ", 0x7E: "~", 0x7F: "?", 0x80: "?", 0x9F: "?", 0xA0: "\xa0", 0xBF: "\xbf", 0x100: "Ā", 0x2028: "\u2028"}.items():
        assert reader(f'{{"log": "a\\u{code:04x}b"}}') == "policy.json: " + of_log(f"a{shown}b"), hex(code)
        assert reader(f'{{"a\\u{code:04x}b": 1}}') == "policy.json: " + of_top(f"a{shown}b"), hex(code)
        assert (reader(f'{{"rules": [{{"set": {{"name": "a\\u{code:04x}b"}}}}]}}') == "ok") == (code not in (0x1F, 0x7F)), hex(code)
    for key, meant in {"lg": None, "gu": None, "lgo": None, "lot": "log", "fulll": "full", "fll": "full", "xlog": "log", "xxlog": "log", "xxxlog": None, "xxxfull": "full",
                       "xxxxfull": None, "prioXXXy": "priority", "priXXXXy": None, "xxxxdefault_stream": None, "xxxdefault_stream": "default_stream"}.items():
        assert reader(json.dumps({key: 1})) == "policy.json: " + (f"{key}: no such key; did you mean {meant}?" if meant else of_top(key)), key
    for number, shown in {"65535": "65535", "65536": None, "1073741824": None, "1073741825": "1073741825", "65536.5": "65536.5", "-65536": "-65536", "-1": "-1",
                          "999999999999999": "999999999999999", "1000000000000000": "1e+15", "-999999999999999": "-999999999999999", "-1000000000000000": "-1e+15",
                          "4503599627370496": "4.5036e+15", "4503599627370497": "4.5036e+15", "1e40": "1e+40", "-1e300": "-1e+300", "0.5": "0.5"}.items():
        assert reader(f'{{"buffer": {number}}}') == (f"policy.json: {of_buffer(shown)}" if shown else "ok"), number
    for value, shown in {"true": None, "false": "false", "null": "null", "[]": "a list", "[1]": "a list", "{}": "an object", '{"a": 1}': "an object", "0": "0",
                         '"a"': '"a"', '"\\""': '"""'}.items():
        assert reader(f'{{"log": {value}}}') == f"policy.json: log: {shown or value} is not valid: allowed is error|warn|info|debug", value
    assert reader('{"rules": ' + 15 * "[" + 15 * "]" + "}") == "policy.json: rules[0]: a list is not valid: allowed is an object"
    assert reader('{"buffer": 65536.' + 34 * "0" + "}") == "ok"
    assert reader('{"buffer": 65536.' + 35 * "0" + "}") == "policy.json: line 1, column 12: not JSON: a number is too long"
    for length in 1, 254, 255, 256, 257, 1000:
        for policy in one({"library": "l" * length}), one({"thread": "t" * length}), one(name="n" * length):
            assert (reader(policy) == "ok") == (length <= 255), policy
