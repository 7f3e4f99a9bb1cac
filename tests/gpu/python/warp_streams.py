"""Warp's streams and events as its documentation uses them; prints what any run gives."""
import numpy as np
import warp as wp

wp.config.quiet = True
wp.init()
device = wp.get_device("cuda:0")


def main():
    a, b = wp.Stream(device), wp.Stream(device, priority=-1)
    print("priorities", a.priority, b.priority, "blocking", a.is_blocking if hasattr(a, "is_blocking") else "-")
    host = wp.array(np.arange(1 << 16, dtype=np.float32), device="cpu", pinned=True)
    x = wp.zeros(1 << 16, dtype=wp.float32, device=device)
    with wp.ScopedStream(a):
        wp.copy(x, host)
        event = a.record_event()
    b.wait_event(event)
    with wp.ScopedStream(b):
        y = wp.clone(x)
    wp.synchronize_stream(b)
    print("by an event", float(y.numpy()[1000]))

    a.wait_stream(b)
    with wp.ScopedStream(a):
        z = wp.clone(y)
    wp.synchronize_stream(a)
    print("by a stream", float(z.numpy()[-1]))

    wp.set_stream(b, device)
    print("current", wp.get_stream(device) == b)
    wp.set_stream(device.null_stream if hasattr(device, "null_stream") else a, device)

    begin, end = (wp.Event(device, enable_timing=True) for _ in range(2))
    a.record_event(begin)
    with wp.ScopedStream(a):
        z.zero_()
    a.record_event(end)
    print("timed", wp.get_event_elapsed_time(begin, end) >= 0)

    with wp.ScopedStream(b):
        with wp.ScopedCapture(device, force_module_load=False) as capture:
            y.zero_()
        wp.capture_launch(capture.graph)
        wp.synchronize_stream(b)
    print("graph", float(y.numpy().sum()))
    print("done", flush=True)


if __name__ == "__main__":
    main()
