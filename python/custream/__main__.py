"""`python -m custream ...`, and the console script `custream`: the command that comes with the package."""
import os
import sys

from custream import _native


def main():
    if sys.argv[1:2] == ["jupyter"]:
        from custream import jupyter

        return jupyter.command(sys.argv[2:])
    if sys.argv[1:2] in (["export"], ["fleet"], ["open"]):
        os.environ["CUSTREAM_PYTHON"] = sys.executable  # what they need is beside this package
    try:
        os.execv(_native.COMMAND, ["custream", *sys.argv[1:]])
    except OSError as error:
        print(f"custream: {_native.COMMAND} cannot be started: {error.strerror}. Install the package again for this kind of machine.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
