"""How long what may hang is waited for. The only place that knows how slow the machine is; pytest.ini's `timeout`, every subprocess of the cases and `until` ask it.

A limit is written as an idle machine needs it, with much to spare. It is stretched by how many tasks wait for each processor, as the kernel counts them
(those that wait for a disk too), and for programs that are slow by themselves. Nothing is judged by it: it only ends what would never end.
"""
import os
import subprocess

from tests import variants

SLOW_BY_THEMSELVES = {"": 1, "asan": 2, "tsan": 2, "qemu": 3}


def patience(seconds):
    """The limit for now, seconds."""
    return seconds * max(1, os.getloadavg()[0] / os.cpu_count()) * SLOW_BY_THEMSELVES[variants.NAME]


class PatientPopen(subprocess.Popen):
    """Each timeout of a subprocess is such a limit."""

    def wait(self, timeout=None):
        return super().wait(None if timeout is None else patience(timeout))

    def __exit__(self, kind, value, trace):
        if kind:
            self.kill()  # of a test that has failed: the program may never end by itself
        return super().__exit__(kind, value, trace)

    def communicate(self, input=None, timeout=None):  # pylint: disable=redefined-builtin
        return super().communicate(input, None if timeout is None else patience(timeout))


def be_patient():
    """From now on in this process: subprocess.run() and subprocess.Popen()."""
    subprocess.Popen = PatientPopen
