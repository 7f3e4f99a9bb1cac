"""%%custream in Jupyter and IPython, and `python -m custream jupyter install`."""
import argparse
import json
import pathlib
import sys
import tempfile

from custream import _native, cut

KERNEL = "custream"
HOW = "custream: this kernel is not recorded. Type once: python -m custream jupyter install; then choose the kernel 'Python 3 (custream)'"
HOW_TERMINAL = "custream: this process is not recorded. Start it as: custream run -- ipython"


def load(shell):
    shell.register_magic_function(Magic(shell), "cell", "custream")


class Magic:
    """%%custream [-o FILE] [--fail-if CONDITION]...: runs the cell, and prints the report of its CUDA work."""

    def __init__(self, shell):
        self.shell = shell
        self.count = 0
        self.__doc__ = type(self).__doc__

    def __call__(self, line, cell):
        from IPython.core.error import UsageError
        from IPython.core.magic_arguments import MagicArgumentParser

        parser = MagicArgumentParser("%%custream")
        parser.add_argument("-o", metavar="FILE", dest="output", help="keep the cell's trace, a .json")
        parser.add_argument("--fail-if", metavar="CONDITION", action="append", default=[], help="as of custream report: the cell fails if it holds")
        wanted = parser.parse_argstring(line)
        wanted.fail_if = [condition.strip("'\"") for condition in wanted.fail_if]
        if wanted.output and not wanted.output.endswith(".json"):
            raise UsageError(f"-o {wanted.output}: a name that ends in .json")
        if not _native.is_preloaded():
            print(HOW if hasattr(self.shell, "kernel") else HOW_TERMINAL, file=sys.stderr)
            self.run(cell)
            if wanted.fail_if:
                raise Stop("custream: --fail-if cannot be judged: nothing is recorded")
            return
        self.count += 1
        name = f"cell {self.count}"
        since = cut.mark()
        _native.annotate("range_push", name)
        try:
            result = self.run(cell)
        finally:
            _native.annotate("range_pop")
        if result.success:
            self.tell(name, wanted, since)

    def run(self, cell):
        """As a cell without the magic runs: what it defines stays, its last value is shown, an error is its own."""
        result = self.shell.run_cell(cell)
        if not result.success:
            # It was shown. What comes after this cell is not to run.
            raise Stop from None
        return result

    def tell(self, name, wanted, since):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(wanted.output or pathlib.Path(folder, "cell.json"))
            try:
                if not cut.stretch(name, path, since):
                    print("custream: the cell called no CUDA: no trace")
                    return
            except cut.CannotCut as error:
                if wanted.fail_if:
                    raise Stop(f"custream: --fail-if cannot be judged: {error}") from None
                print(f"custream: no trace of the cell: {error}")
                return
            done = _native.run("report", "--brief", "--no-color", *(f"--fail-if={condition}" for condition in wanted.fail_if), path)
        print(done.stdout, end="")
        if wanted.output:
            print(f"custream: {path}")
        if done.returncode:
            raise Stop(done.stderr.strip())


class Stop(Exception):
    """Ends the cell without a traceback of ours."""

    def _render_traceback_(self):
        return [str(self)] if str(self) else []


def kernel_spec(trace):
    return {"argv": [str(_native.COMMAND), "run", f"--trace={trace}", "--", sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "Python 3 (custream)", "language": "python", "metadata": {"debugger": True}}


def command(words):
    """python -m custream jupyter install [--sys-prefix] [--trace FILE]"""
    parser = argparse.ArgumentParser("python -m custream jupyter", description="A Jupyter kernel that records CUDA: this Python under custream.")
    parser.add_argument("what", choices=["install"], help="adds the kernel 'Python 3 (custream)' to Jupyter's list")
    parser.add_argument("--sys-prefix", action="store_true", help="for this Python environment alone; otherwise for this user")
    parser.add_argument("--trace", default="custream-notebook-%p.json", metavar="FILE", help="where a kernel's trace goes (default: custream-notebook-%%p.json)")
    given = parser.parse_args(words)
    try:
        import ipykernel  # noqa: F401
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError as error:
        print(f"custream jupyter install: {error.name} is missing: pip install ipykernel", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "kernel.json").write_text(json.dumps(kernel_spec(given.trace), indent=1) + "\n", encoding="utf-8")
        place = KernelSpecManager().install_kernel_spec(folder, KERNEL, user=not given.sys_prefix, prefix=sys.prefix if given.sys_prefix else None)
    print(f"custream: 'Python 3 (custream)' is in {place}")
    return 0
