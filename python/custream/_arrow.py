"""Arrow's arrays from and to values of this process, by their memory.

pyarrow's own ways (pyarrow.array, pyarrow.scalar, to_numpy) load pandas, where it is installed, to ask whether what they are given is pandas': that takes longer than
most exports.
"""
import array
import itertools

CODES = {"int64": "q", "int32": "i"}


def whole(pa, values, kind=None):
    """Of whole numbers; kind: pyarrow.int64() or pyarrow.int32()."""
    kind = kind or pa.int64()
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(array.array(CODES[str(kind)], values))])


def texts(pa, values):
    data = [value.encode(errors="replace") for value in values]
    ends = array.array("i", itertools.accumulate(map(len, data), initial=0))
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(ends), pa.py_buffer(b"".join(data)))


def numbers(np, column):
    """A numpy array of a column of numbers. What its memory alone does not tell, nulls and single bits, pyarrow says."""
    if column.null_count or column.type.bit_width < 8:
        return column.to_numpy()
    kind = column.type.to_pandas_dtype()  # numpy's
    parts = [np.frombuffer(chunk.buffers()[1], kind)[chunk.offset:chunk.offset + len(chunk)] for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.empty(0, kind)
