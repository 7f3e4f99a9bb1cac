"""Runs a module of Warp's own tests and writes what became of each test, one line a test, to a file: warp_tests.py MODULE FILE.

It gives up after ten that failed: with the GPU's context gone the others would fail too.
"""
import sys
import unittest

MOST = 10


class Outcomes(unittest.TestResult):
    def __init__(self, file):
        super().__init__()
        self.file, self.bad = file, 0

    def say(self, test, outcome, error=None):
        self.file.write(f"{test.id()} {outcome}\n")
        self.file.flush()
        if error:
            self.bad += 1
            print(f"{test.id()} {outcome}\n{self._exc_info_to_string(error, test)}", file=sys.stderr, flush=True)
            if self.bad >= MOST:
                self.stop()

    def addSuccess(self, test):
        self.say(test, "ok")

    def addSkip(self, test, reason):
        self.say(test, "skipped")

    def addError(self, test, err):
        self.say(test, "error", err)

    def addFailure(self, test, err):
        self.say(test, "failed", err)

    def addSubTest(self, test, subtest, err):
        if err:
            self.say(test, "failed in part", err)

    def addExpectedFailure(self, test, err):
        self.say(test, "failed as expected")

    def addUnexpectedSuccess(self, test):
        self.say(test, "ok against expectation")


def main(module, path):
    with open(path, "w", encoding="utf-8") as file:
        unittest.defaultTestLoader.loadTestsFromName("warp.tests.cuda." + module).run(Outcomes(file))


if __name__ == "__main__":
    main(*sys.argv[1:])
