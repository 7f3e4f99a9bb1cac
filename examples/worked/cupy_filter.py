"""Pictures are filtered by their spectrum, one after the other, and each comes back to the host.

    python3 cupy_filter.py            # as it was written first
    python3 cupy_filter.py mended     # as `custream report` made us write it: docs/worked/cupy.md

The profiler's window (CUSTREAM_WINDOW=profiler) has the pictures after the first few.
"""
import contextlib
import sys

import cupy as cp
import cupyx
import cupyx.profiler
import numpy as np
from cupyx.scipy.fftpack import get_fft_plan

MENDED = sys.argv[1:] == ["mended"]
WARM_UP, PICTURES, SIZE, STREAMS = 6, 24, 2048, 3


def filtered(picture, keep, there=contextlib.nullcontext(), back=contextlib.nullcontext()):
    """The low frequencies of a picture, from 0 to 1. `there` and `back` are plans of its transforms; without them CuPy takes those that it keeps."""
    with there:
        spectrum = cp.fft.rfft2(picture)
    with back:
        smooth = cp.fft.irfft2(spectrum * keep, s=picture.shape)
    smooth -= smooth.min()
    return smooth / smooth.max()


def low_frequencies():
    y, x = cp.fft.fftfreq(SIZE)[:, None], cp.fft.rfftfreq(SIZE)[None, :]
    return (x * x + y * y < 0.01).astype(cp.float32)


def one_after_the_other(pictures, keep):
    return [cp.asnumpy(filtered(cp.asarray(picture), keep)) for picture in pictures]


class Lane:
    """A stream, and plans that it alone uses: a plan has memory to work in, and those that CuPy keeps are one for all streams of a thread."""

    def __init__(self):
        self.stream = cp.cuda.Stream(non_blocking=True)
        with self.stream:
            self.there = get_fft_plan(cp.empty((SIZE, SIZE), cp.float32), value_type="R2C")
            self.back = get_fft_plan(cp.empty((SIZE, SIZE // 2 + 1), cp.complex64), (SIZE, SIZE), value_type="C2R")


class SideBySide:
    """Each picture on one of a few streams, in memory that the GPU can copy from and to by itself. It is made once: pinning a page takes time."""

    def __init__(self, most):
        self.lanes = [Lane() for _ in range(STREAMS)]
        self.results = [cupyx.empty_pinned((SIZE, SIZE), np.float32) for _ in range(most)]

    def __call__(self, pictures, keep):
        for i, (picture, result) in enumerate(zip(pictures, self.results)):
            lane = self.lanes[i % STREAMS]
            with lane.stream as stream:
                on_gpu = cp.empty((SIZE, SIZE), cp.float32)
                on_gpu.set(picture, stream=stream)
                filtered(on_gpu, keep, lane.there, lane.back).get(stream=stream, out=result, blocking=False)
        for lane in self.lanes:
            lane.stream.synchronize()
        return self.results[:len(pictures)]


def pinned(picture):
    copy = cupyx.empty_pinned(picture.shape, picture.dtype)
    copy[...] = picture
    return copy


def main():
    random = np.random.default_rng(0)
    pictures = [random.random((SIZE, SIZE), dtype=np.float32) for _ in range(WARM_UP + PICTURES)]
    work, keep = one_after_the_other, low_frequencies()
    if MENDED:
        pictures, work = [pinned(picture) for picture in pictures], SideBySide(PICTURES)
    cp.cuda.Device().synchronize()  # `keep` is there: streams that are non-blocking do not wait for it
    work(pictures[:WARM_UP], keep)
    cp.cuda.Device().synchronize()
    cp.cuda.profiler.start()
    with cupyx.profiler.time_range("pictures"):
        results = work(pictures[WARM_UP:], keep)
    cp.cuda.Device().synchronize()
    cp.cuda.profiler.stop()
    print("sum of the means:", f"{sum(float(result.mean()) for result in results):.4f}")


if __name__ == "__main__":
    main()
