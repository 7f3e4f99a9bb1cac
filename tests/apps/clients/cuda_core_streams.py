"""cuda.core: devices, streams with options, events, buffers, host memory and graph capture. Prints the same lines with and without the shim."""

import ctypes

from cuda.core import Device, EventOptions, LegacyPinnedMemoryResource, StreamOptions

device = Device()
device.set_current()
print("devices", len(Device.get_all_devices()) >= 1)

first = device.create_stream(options=StreamOptions(nonblocking=True, priority=-1))
second = device.create_stream(options=StreamOptions(nonblocking=False, priority=0))
print("options", first.is_nonblocking, first.priority, second.is_nonblocking, second.priority)
print("device of stream", first.device.device_id == device.device_id, first.context == second.context)

timed = EventOptions(timing_enabled=True)
start = first.record(options=timed)
end = first.record(options=timed)
end.sync()
print("events", end.is_done, end - start >= 0)

# Recording on one stream and waiting on the other.
second.wait(end)
second.wait(first)
second.sync()

N = 1024
host = LegacyPinnedMemoryResource()
source, target = host.allocate(N), host.allocate(N)
ctypes.memset(int(source.handle), 5, N)
ctypes.memset(int(target.handle), 0, N)
a = device.allocate(N, stream=first)
b = device.allocate(N, stream=first)
print("sizes", a.size, b.size, a.is_device_accessible, target.is_host_accessible)
a.copy_from(source, stream=first)
a.copy_to(b, stream=first)
second.wait(first)
b.copy_to(target, stream=second)
second.sync()
print("bytes", set(ctypes.string_at(int(target.handle), N)) == {5})

# A graph of one copy, captured, then run after the source has changed.
builder = first.create_graph_builder().begin_building()
b.copy_from(source, stream=builder)
graph = builder.end_building().complete()
ctypes.memset(int(source.handle), 6, N)
graph.upload(first)
graph.launch(first)
b.copy_to(target, stream=first)
first.sync()
print("graph", set(ctypes.string_at(int(target.handle), N)) == {6})
graph.close()
builder.close()

for buffer in (a, b):
    buffer.close(first)
for buffer in (source, target):
    buffer.close()
first.close()
second.close()
print("ok")
