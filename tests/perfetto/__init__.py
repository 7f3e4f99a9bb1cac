"""Perfetto as the judge of our traces: the real trace processor of version 52, and the real UI in headless Chromium.

TraceProcessor loads a trace and answers SQL about it; assert_clean fails on anything Perfetto could not import; screenshot.screenshot shows
the timeline. Imported as tests.perfetto: plain `perfetto` is the PyPI package whose protocol client this one builds on.
"""
from tests.perfetto.processor import TraceError, TraceProcessor, assert_clean, problems

__all__ = ["TraceError", "TraceProcessor", "assert_clean", "problems"]
