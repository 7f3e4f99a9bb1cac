"""Traces as they were before slices carried their arrows: each bound slice has rows `s` and `f` of its own instead."""
import json

FURTHER = 1 << 41  # numbers of arrows to further work of a call, since each arrow had a number of its own


def _row(ph, number, slice_):
    row = {"ph": ph, "id": number, **{key: slice_[key] for key in ("pid", "tid", "ts")}, "cat": "ac2g", "name": "ac2g"}
    return {**row, "bp": "e"} if ph == "f" else row


def with_arrow_rows(lines):
    """The lines of a trace of ours with those rows: the arrows of each call follow its work."""
    starts, seen, further = {}, set(), FURTHER
    for line in lines:
        if '"bind_id":' not in line:
            yield line
            continue
        slice_ = json.loads(line.rstrip().rstrip(","))
        number, begins = slice_.pop("bind_id"), slice_.pop("flow_out", False)
        rows = [slice_]
        if begins:
            starts[number] = slice_
        else:
            del slice_["flow_in"]
            further += number in seen
            own = further if number in seen else number
            rows += [_row("s", own, starts[number]), _row("f", own, slice_)]
            seen.add(number)
        end = "," if line.rstrip().endswith(",") else ""
        yield ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows) + end + "\n"


def write_arrow_rows(trace, path):
    """The trace with such rows, at `path`."""
    with open(trace, encoding="utf-8") as lines, open(path, "w", encoding="utf-8") as file:
        file.writelines(with_arrow_rows(lines))
    return path
