"""Perfetto's trace processor, the WebAssembly that its UI runs, in this process: wasmtime runs it, and here is the little that it asks of its host."""
import fcntl
import importlib.metadata
import os
import struct
import time

import wasmtime

from tests import BUILD
from tests.perfetto.server import ui_folder, web_dist

REQUEST = 32 << 20  # the most that it takes at once


class EngineError(Exception):
    """It gave up, or asked for what it does not get here; it is of no more use."""


def module(engine):
    """The compiled module, from the build folder; made the first time, which takes eight seconds of processor time."""
    path = BUILD / "perfetto" / f"{ui_folder()}-wasmtime-{importlib.metadata.version('wasmtime')}.cwasm"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w", encoding="utf-8") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if path.exists():
            try:
                return wasmtime.Module.deserialize_file(engine, str(path))
            except wasmtime.WasmtimeError:
                pass  # of another machine
        made = wasmtime.Module.from_file(engine, str(web_dist() / ui_folder() / "trace_processor.wasm"))
        path.with_suffix(".part").write_bytes(made.serialize())
        os.replace(path.with_suffix(".part"), path)
        return made


class Engine:
    """One trace processor with a memory of its own. ask() takes bytes of its protocol and returns those of the answers."""
    ENGINE = MODULE = None

    def __init__(self):
        if Engine.MODULE is None:
            Engine.ENGINE = wasmtime.Engine()
            Engine.MODULE = module(Engine.ENGINE)
        self.store, self.said, self.answers = wasmtime.Store(Engine.ENGINE), "", bytearray()
        imports = [wasmtime.Func(self.store, one.type, self._import(one.name)) for one in Engine.MODULE.imports]
        exports = wasmtime.Instance(self.store, Engine.MODULE, imports).exports(self.store)
        self.memory, self.request = exports["memory"], exports["trace_processor_on_rpc_request"]
        answer = wasmtime.Func(self.store, wasmtime.FuncType([wasmtime.ValType.i32()] * 2, []), self._answer)
        # As the UI starts it.
        exports["emscripten_stack_init"](self.store)
        exports["__wasm_call_ctors"](self.store)
        exports["__main_argc_argv"](self.store, 0, 0)
        self.buffer = exports["trace_processor_rpc_init"](self.store, exports["__indirect_function_table"].grow(self.store, 1, answer), REQUEST)

    def ask(self, data):
        self.memory.write(self.store, data, self.buffer)
        try:
            self.request(self.store, len(data))
        except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
            raise EngineError(f"{self.said}{error}") from None
        answers, self.answers = bytes(self.answers), bytearray()
        return answers

    def close(self):
        self.store.close()

    def _answer(self, at, size):
        self.answers += self._read(at, size)

    def _read(self, at, size):
        at &= 0xffffffff
        return self.memory.read(self.store, at, at + size)

    def _write(self, at, form, *values):
        self.memory.write(self.store, struct.pack(form, *values), at & 0xffffffff)
        return 0

    # ---- What it asks of its host, by the names that Emscripten has for that ----

    def _import(self, name):
        def missing(*_):
            raise EngineError(f"{self.said}the trace processor asks for {name}")
        return getattr(self, f"_host_{name}", missing)

    def _host_emscripten_get_now(self):
        return time.monotonic() * 1e3

    def _host_emscripten_date_now(self):
        return time.time() * 1e3

    def _host_clock_time_get(self, _clock, _precision, at):
        return self._write(at, "<Q", time.time_ns())

    def _host_environ_sizes_get(self, count, size):
        return self._write(count, "<I", 0) or self._write(size, "<I", 0)

    def _host_environ_get(self, _at, _text):
        return 0

    def _host_emscripten_get_heap_max(self):
        return -1 << 16  # 4 GiB but a page, as the signed number that wasmtime takes

    def _host_emscripten_resize_heap(self, size):
        pages = ((size & 0xffffffff) + 0xffff >> 16) - self.memory.size(self.store)
        try:
            self.memory.grow(self.store, max(pages, 0))
        except wasmtime.WasmtimeError:
            return 0
        return 1

    def _host_fd_write(self, _file, parts, count, written):
        parts = [struct.unpack("<II", self._read(parts + 8 * i, 8)) for i in range(count)]
        self.said += "".join(self._read(*part).decode(errors="replace") for part in parts)
        return self._write(written, "<I", sum(size for _, size in parts))

    def _host_emscripten_err(self, text):
        line = bytearray()
        while (byte := self._read(text + len(line), 1)) != b"\0":
            line += byte
        self.said += line.decode(errors="replace") + "\n"
