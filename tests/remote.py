"""A program that does what it is told, line by line (tests/apps/remote.c), and `custream ctl` beside it."""
import pathlib
import subprocess
import tempfile
import time

from tests import BUILD
from tests.apprun import read
from tests.cases.conftest import app_environment
from tests.patience import patience


def read_of(path):
    """A file of /proc, whose process may have ended since it was listed: nothing."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def until(what, seconds=30):
    """Waits for what is certain to come, and returns it."""
    begun = time.monotonic()
    while not (found := what()):
        assert time.monotonic() - begun < patience(seconds), "it has not come about"
        time.sleep(0.01)
    return found


def ctl(*words, text="", timeout=60, **options):
    """What the command does: (exit status, standard output, standard error), without the newline at the end."""
    done = subprocess.run([BUILD / "custream", "ctl", *map(str, words)], input=text, capture_output=True, text=True, timeout=timeout, check=False, **options)
    return done.returncode, done.stdout.rstrip("\n"), done.stderr.rstrip("\n")


class Remote:
    """The program under the shim. Leaving the block ends it: with `rc` and `stderr` set, and `trace` where its trace belongs."""

    def __init__(self, folder, env=None, argv=(), preload=None, trace="remote.json", executable=BUILD / "tests" / "remote"):
        self.folder = pathlib.Path(folder)
        self.trace = self.folder / trace
        env = app_environment(BUILD, self.trace, True, {"CUSTREAM_LOG": "info", **(env or {})})
        if preload:
            env["LD_PRELOAD"] = str(preload)
        self._errors = tempfile.TemporaryFile(mode="w+", errors="replace")
        self.process = subprocess.Popen([executable, *argv], env=env, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self._errors, text=True)
        self.pid = int(self._answer()[0])
        self.rc = self.stderr = None

    def _answer(self):
        line = self.process.stdout.readline()
        if not line.startswith("ok"):
            self.end()
            raise AssertionError(f"the program answered {line!r}, ended with {self.rc}\n{self.stderr}")
        return line.split()[1:]

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def do(self, *lines):
        """Has each line done; what the last one answered, as words."""
        answer = []
        for line in lines:
            self.send(line)
            answer = self._answer()
        return answer

    def ctl(self, *words, **options):
        """A request that succeeds; what it answered. A flush that takes more than ten seconds is asked for again."""
        while (rc := (answer := ctl(self.pid, *words, **options))[0]) and "not all of the trace could be written" in answer[2]:
            pass
        _, out, err = answer
        assert (rc, err) == (0, ""), (rc, out, err)
        return out

    def status(self):
        """What `status` says, as a dict."""
        return dict(part.split(": ", 1) for part in self.ctl("status").split("; "))

    def end(self):
        """Ends its input, so that it returns, and waits for it."""
        if self.rc is None:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
            try:
                self.rc = self.process.wait(30)
            finally:
                self.process.kill()
                self.process.stdout.close()
                self._errors.seek(0)
                self.stderr = self._errors.read()
                self._errors.close()
        return self

    def load(self):
        """Its trace, which is in order, after it has ended well and said nothing."""
        self.end()
        assert self.rc == 0 and not self.said(), (self.rc, self.stderr)
        return read(self.trace)

    def said(self):
        return [line for line in self.stderr.splitlines() if line.startswith(("custream: error", "custream: warning"))]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, where):
        if kind:
            self.process.kill()
        self.end()
