"""custream open, ended by a signal while it makes the copy that it hands out."""
import signal
import subprocess
import time

import pytest

from tests.cases.test_open import environment
from tests.handmade import COMMAND
from tests.patience import patience
from tests.tracestory import Story


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_copy_is_made(tmp_path, number):
    """It ends the child that writes, too, and nothing stays in TMPDIR; also if the copy is ready by then."""
    own, story = tmp_path / "own", Story()
    own.mkdir()
    story.stream(13)
    for n in range(60_000):
        story.kernel(13, 20 * n, 20 * n + 5, 10)
    (tmp_path / "t.json").write_text(story.text(), encoding="utf-8")
    with subprocess.Popen([COMMAND, "open", "--print-url", "--port=0", tmp_path / "t.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment(TMPDIR=str(own))) as process:
        while process.poll() is None and not list(own.glob("*/*")):
            time.sleep(0.001)
        process.send_signal(number)
        _, said = process.communicate(timeout=patience(60))  # both have ended: nobody has the pipes
    assert process.returncode in (-number, 2) and (number == signal.SIGINT or process.returncode == -number), said
    assert list(own.iterdir()) == []
