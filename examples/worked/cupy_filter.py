"""Pictures are filtered by their spectrum, one after the other, and each comes back to the host.

    python3 cupy_filter.py            # as it was written first
    python3 cupy_filter.py mended     # as `custream report` made us write it: docs/worked/cupy.md

The profiler's window (CUSTREAM_WINDOW=profiler) has the pictures after the first few.
"""
import sys

import cupy as cp
import cupyx
import cupyx.profiler
import numpy as np

MENDED = sys.argv[1:] == ["mended"]
WARM_UP, PICTURES, SIZE, STREAMS = 4, 24, 2048, 3


def filtered(picture, keep):
    """The low frequencies of a picture, from 0 to 1."""
    smooth = cp.fft.irfft2(cp.fft.rfft2(picture) * keep, s=picture.shape)
    smooth -= smooth.min()
    return smooth / smooth.max()


def low_frequencies():
    y, x = cp.fft.fftfreq(SIZE)[:, None], cp.fft.rfftfreq(SIZE)[None, :]
    return (x * x + y * y < 0.01).astype(cp.float32)


def one_after_the_other(pictures, keep):
    return [cp.asnumpy(filtered(cp.asarray(picture), keep)) for picture in pictures]


def side_by_side(pictures, keep):
    """Each picture on one of a few streams, in memory that the GPU can copy from and to by itself."""
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    results = [cupyx.empty_pinned((SIZE, SIZE), np.float32) for _ in pictures]
    for i, (picture, result) in enumerate(zip(pictures, results)):
        with streams[i % STREAMS] as stream:
            on_gpu = cp.empty((SIZE, SIZE), cp.float32)
            on_gpu.set(picture, stream=stream)
            filtered(on_gpu, keep).get(stream=stream, out=result, blocking=False)
    for stream in streams:
        stream.synchronize()
    return results


def main():
    random = np.random.default_rng(0)
    pictures = [random.random((SIZE, SIZE), dtype=np.float32) for _ in range(WARM_UP + PICTURES)]
    if MENDED:
        for i, picture in enumerate(pictures):
            pictures[i] = cupyx.empty_pinned(picture.shape, picture.dtype)
            pictures[i][...] = picture
    work, keep = side_by_side if MENDED else one_after_the_other, low_frequencies()
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
