"""cuda.core and cuda.bindings: streams, events, buffers, launches, capture.

cuda.core moved out of `experimental` and made arguments keyword-only between 0.x and 1.x; what differs is in the few helpers on top.
"""
import ctypes

from parts import checksum, in_threads, part

try:
    import cuda.core as core
    assert core.Device
except (ImportError, AttributeError):
    import cuda.core.experimental as core

N = 1 << 12
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 a0, .param .u32 a1, .param .u32 a2) {
    .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [a0]; ld.param.u32 %r3, [a1]; ld.param.u32 %r2, [a2];
    mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x;
    mad.lo.s32 %r1, %r4, %r5, %r6;
    setp.ge.u32 %p1, %r1, %r3;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r7, [%rd4]; add.s32 %r8, %r7, %r2; st.global.u32 [%rd4], %r8;
DONE: ret;
}
"""


def sync_device(device):
    device.sync()


def allocate(device, size, stream):
    return device.allocate(size, stream=stream)


def pinned(size, stream):
    memory = core.LegacyPinnedMemoryResource()
    try:
        return memory.allocate(size, stream=stream)
    except TypeError:
        return memory.allocate(size)


def words(buffer):
    """The pinned buffer's memory as a ctypes array."""
    return (ctypes.c_uint32 * (buffer.size // 4)).from_address(int(buffer.handle))


def fill(buffer, value, stream):
    try:
        buffer.fill(value, stream=stream)
    except TypeError:
        buffer.fill(value, 1, stream=stream)


def new_stream(device, **options):
    return device.create_stream(options=core.StreamOptions(**options))


def add(stream, kernel, buffer, k):
    core.launch(stream, core.LaunchConfig(grid=N // 256, block=256), kernel, int(buffer.handle), ctypes.c_uint32(N), ctypes.c_uint32(k))


def get_kernel():
    return core.ObjectCode.from_ptx(PTX).get_kernel("add")


def streams(device):
    kernel = get_kernel()
    first, second = new_stream(device), new_stream(device, priority=-1)
    buffer, host = allocate(device, N * 4, first), pinned(N * 4, first)
    fill(buffer, 1, first)
    add(first, kernel, buffer, 5)
    done = first.record()
    second.wait(done)
    add(second, kernel, buffer, 6)
    buffer.copy_to(host, stream=second)
    second.sync()
    result = checksum(words(host)[:256]), done.is_done, second.priority, first.is_nonblocking
    buffer.close(first)
    first.sync()
    return result


def events(device):
    stream = new_stream(device, nonblocking=False)
    kernel = get_kernel()
    buffer = allocate(device, N * 4, stream)
    # The options that every version has under this name; timing was called enable_timing before 1.0.
    try:
        options = core.EventOptions(timing_enabled=True)
    except TypeError:
        options = core.EventOptions(enable_timing=True)
    begin = stream.record(options=options)
    add(stream, kernel, buffer, 1)
    end = stream.record(options=options)
    end.sync()
    return (end - begin) >= 0, end.is_done


def default_streams(device):
    kernel = get_kernel()
    stream = device.default_stream
    buffer, host = allocate(device, N * 4, stream), pinned(N * 4, stream)
    fill(buffer, 0, stream)
    for default in (core.LEGACY_DEFAULT_STREAM, core.PER_THREAD_DEFAULT_STREAM):
        add(default, kernel, buffer, 2)
        default.sync()
    buffer.copy_to(host, stream=stream)
    stream.sync()
    return checksum(words(host)[:256])


def capture(device):
    kernel = get_kernel()
    stream = new_stream(device)
    buffer, host = allocate(device, N * 4, stream), pinned(N * 4, stream)
    fill(buffer, 0, stream)
    stream.sync()
    builder = stream.create_graph_builder()
    builder.begin_building()
    add(builder, kernel, buffer, 3)
    graph = builder.end_building().complete()
    graph.upload(stream)
    for _ in range(3):
        graph.launch(stream)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    return checksum(words(host)[:256])


def bindings(_device):
    """Plain cuda.bindings, with calls that fail."""
    from cuda.bindings import driver

    codes = []
    error, stream = driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
    codes.append(int(error))
    error, event = driver.cuEventCreate(0)
    codes.append(int(error))
    codes.append(int(driver.cuEventRecord(event, stream)[0]))
    codes.append(int(driver.cuStreamWaitEvent(stream, event, 0)[0]))
    codes.append(int(driver.cuStreamSynchronize(stream)[0]))
    codes.append(int(driver.cuStreamQuery(stream)[0]))
    codes.append(int(driver.cuStreamCreate(0xFF00)[0]))
    error, pointer = driver.cuMemAllocAsync(1 << 12, stream)
    codes.append(int(error))
    codes.append(int(driver.cuMemsetD32Async(pointer, 7, 1 << 10, stream)[0]))
    back = bytearray(1 << 12)
    codes.append(int(driver.cuMemcpyDtoHAsync(back, pointer, 1 << 12, stream)[0]))
    codes.append(int(driver.cuMemFreeAsync(pointer, stream)[0]))
    codes.append(int(driver.cuStreamSynchronize(stream)[0]))
    codes.append(int(driver.cuEventDestroy(event)[0]))
    codes.append(int(driver.cuStreamDestroy(stream)[0]))
    return codes, sum(back)


def work(number):
    device = core.Device()
    device.set_current()
    kernel = get_kernel()
    stream = new_stream(device)
    buffer, host = allocate(device, N * 4, stream), pinned(N * 4, stream)
    fill(buffer, 0, stream)
    for _ in range(50):
        add(stream, kernel, buffer, number)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    return sum(words(host))


def main():
    device = core.Device()
    device.set_current()
    part("streams", streams, device)
    part("events", events, device)
    part("default streams", default_streams, device)
    part("capture", capture, device)
    part("bindings", bindings, device)
    part("threads", in_threads, 4, work)
    sync_device(device)


if __name__ == "__main__":
    main()
