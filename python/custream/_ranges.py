"""custream.range: a context manager and a decorator."""
import functools
import inspect

from custream import _native


class range:  # noqa: A001 - the name that users know it by
    """A range of the calling thread in the timeline, as NVTX's. Ranges nest; an object can be used again, and within itself."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = _native.text(name)

    def __enter__(self):
        _native.annotate("range_push", self.name)
        return self

    def __exit__(self, *error):
        _native.annotate("range_pop")
        return False

    def __call__(self, function):
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"custream.range: {function.__qualname__} can be left in the middle, and a range belongs to its thread; use `with custream.range(...)` inside")

        @functools.wraps(function)
        def ranged(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return ranged
