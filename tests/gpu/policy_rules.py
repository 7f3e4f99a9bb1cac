"""What the tests of policies expect, apart from any GPU: what libraries say that they make of priorities, and figures out of what programs print."""
import json


def lines_of(text, what=None):
    """The lines of JSON of a program's output, of one kind."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if what in (None, line.get("what"))]


def only(text, what):
    """The one line of that kind."""
    (line,) = lines_of(text, what)
    return line


# --- priorities: what each library documents ---

def clamped(asked, least, greatest):
    return min(least, max(greatest, asked))


def documented(library, asked, least, greatest):
    """(the stream's priority, None) or (None, the exception's type), on a device with that range."""
    if library in ("torch", "warp") and asked is None:
        return None, "TypeError"
    if asked is None:
        return 0, None
    if library == "cuda_core":
        return (asked, None) if greatest <= asked <= least else (None, "ValueError")
    if library == "torch":
        greatest = max(greatest, -3)  # as many levels as it is compiled for
    if library == "warp":
        asked = clamped(asked, 0, -1)
    return clamped(asked, least, greatest), None


def narrowed(policy, device_range):
    """The range that programs are told under a policy 0:GREATEST."""
    least, greatest = device_range
    return [least, max(greatest, int(policy.partition(":")[2]))]


def wrong_priorities(library, stdout, alone, device_range):
    """What a run under a narrowed range shows otherwise than the library's rule says; `alone`: the output of the run without a policy, on that device.

    A library of a version whose rule is another one, as the run alone shows, is held to the range only.
    """
    ours, theirs = only(stdout, "range"), only(alone, "range")
    wrong = [] if ours["driver"] == device_range else [f"the range is {ours['driver']} and not {device_range}"]
    for row, before in zip(lines_of(stdout, "stream"), lines_of(alone, "stream"), strict=True):
        by_rule = (before["given"], before["error"]) == documented(library, before["asked"], *theirs["driver"])
        expected = documented(library, row["asked"], *device_range)
        if by_rule and (row["given"], row["error"]) != expected:
            wrong.append(f"{row['asked']} became {row['given'] if row['error'] is None else row['error']} and not {expected}")
        if row["driver"] is not None and not device_range[1] <= row["driver"] <= device_range[0]:
            wrong.append(f"{row['asked']} became {row['driver']}, which is out of the range")
        if row["driver"] != row["given"]:
            wrong.append(f"{row['asked']}: the library says {row['given']}, the driver {row['driver']}")
    return wrong


# --- times ---

def best_round(stdout):
    """(milliseconds of one thread, of all together): of each the least, which nothing else has disturbed."""
    rounds = lines_of(stdout, "round")
    return min(r["one_ms"] for r in rounds), min(r["all_ms"] for r in rounds)


def right(stdout):
    return only(stdout, "result")["right"] is True
