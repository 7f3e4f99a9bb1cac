"""Policy files read by the shim's own reader, in a process that stays: build/tests/unit/asan/tool_policy."""
import os
import subprocess


class Reader:
    """Reader(build)(file) is what the reader says: "ok", or the error of a file that is called policy.json. The address sanitizer watches."""

    def __init__(self, build):
        env = {name: value for name, value in os.environ.items() if not name.startswith("CUSTREAM_") and name != "LD_PRELOAD"}
        self.process = subprocess.Popen([build / "tests/unit/asan/tool_policy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Its end is the time at which leaks are told."""
        out, err = self.process.communicate()
        assert (self.process.returncode, out, err) == (0, b"", b"")

    def __call__(self, text):
        text = text.encode() if isinstance(text, str) else text
        self.process.stdin.write(b"%08x" % len(text) + text)
        self.process.stdin.flush()
        said = bytearray()
        while not said.endswith(b"\0"):
            byte = self.process.stdout.read1(4096)
            assert byte, self.process.stderr.read().decode()
            said += byte
        assert said.count(b"\0") == 1 and not any(c < 0x20 or c == 0x7F for c in said[:-1]), said
        return said[:-1].decode()
