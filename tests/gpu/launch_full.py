"""What a launch costs beside what it costs otherwise: under the shim, and in other profilers.

    python3 tests/gpu/launch_full.py [PAIRS [TORCH_ROUNDS]]

CUPTI slows every launch of the process, so no two kinds can share one: processes of all kinds take turns, and the medians are compared. Printed as
`name value unit`:

    gpu_launch_*    a launch by the driver API: plain, host_only (the shim, CUSTREAM_GPU=off), full (with GPU times), events (with those of
                    events), cupti_client (a plain client of CUPTI that asks for kernels, copies and memsets, without the shim), nsys (where installed)
    torch_add_*     an operation of PyTorch's (where that is installed): plain, host_only, full, profiler_cuda, profiler_cpu_cuda (torch.profiler)

and of each but `plain` its ratio to it; `gpu_launch_ratio_full` is the figure that is to stay small. TORCH_ROUNDS 0 leaves PyTorch out.
"""
import glob
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("CUSTREAM_GPU_BUILD", os.path.join(ROOT, "build"))
LAUNCH = [os.path.join(BUILD, "gpu", "launch_ratio"), "linked", "5", "20000"]
TORCH = [sys.executable, os.path.join(HERE, "python", "launch_loop.py")]
NSYS = ["profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true", "-o"]


def one_run(command, figure, extra=None):
    """The figure of that name in what the command prints; None where it fails, which is said once."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_") and k != "LD_PRELOAD"}
    env.update(extra or {})
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=120, check=False)
    found = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(figure + " ")]
    if found:
        return float(found[0])
    said = (done.stderr or done.stdout).strip()[-300:]
    print(f"launch_full: {os.path.basename(command[0])} printed no {figure} (status {done.returncode}): {said}", file=sys.stderr)
    return None


def shim(folder, source):
    return {"LD_PRELOAD": os.path.join(BUILD, "libcustream_shim.so"), "CUSTREAM_GPU": source, "CUSTREAM_TRACE": os.path.join(folder, "launch.json")}


def nsys():
    """The command of Nsight Systems, None where it is not installed."""
    found = [path for folder in os.environ.get("PATH", "").split(os.pathsep) for path in glob.glob(os.path.join(folder, "nsys"))]
    for place in ("nsight-systems/*/bin/nsys", "nsight-compute/*/host/target-linux-x64/nsys"):
        found += sorted(glob.glob(os.path.join("/opt/nvidia", place)))
    return found[0] if found else None


def launch_kinds(folder):
    """name -> a run of that kind."""
    figure, source = "gpu_driver_launch_ns_linked", os.environ.get("CUSTREAM_GPU", "cupti")
    kinds = {"plain": lambda: one_run(LAUNCH, figure), "host_only": lambda: one_run(LAUNCH, figure, shim(folder, "off")),
             "full": lambda: one_run(LAUNCH, figure, shim(folder, source)), "events": lambda: one_run(LAUNCH, figure, shim(folder, "events"))}
    client = os.path.join(BUILD, "gpu", "libcupti_client.so")
    kinds["cupti_client"] = lambda: one_run(LAUNCH, figure, {"LD_PRELOAD": client, "CUPTI_CLIENT_EARLY": "1", "CUPTI_CLIENT_OUT": os.devnull})
    if nsys():
        kinds["nsys"] = lambda: one_run([nsys(), *NSYS, os.path.join(folder, "report"), *LAUNCH], figure)
    return kinds


def torch_kinds(folder):
    def loop(kind, extra=None):
        return lambda: one_run(TORCH + [kind], "torch_add_us", extra)
    return {"plain": loop("none"), "host_only": loop("none", shim(folder, "off")), "full": loop("none", shim(folder, "cupti")), "profiler_cuda": loop("cuda"),
            "profiler_cpu_cuda": loop("both")}


def measure(kinds, rounds):
    """The median of each kind; rounds begin with the kinds in turn. A kind that fails once is left out."""
    names, values = list(kinds), {name: [] for name in kinds}
    for number in range(rounds):
        for name in names[number % len(names):] + names[:number % len(names)]:
            if values[name] is None:
                continue
            value = kinds[name]()
            values[name] = None if value is None else values[name] + [value]
    return {name: statistics.median(v) for name, v in values.items() if v}


def show(prefix, unit, medians):
    for name, value in medians.items():
        print(f"{prefix}_{unit}_{name} {value:.3f} {unit}" if unit == "us" else f"{prefix}_{unit}_{name} {value:.1f} {unit}")
    for name, value in medians.items():
        if name != "plain" and "plain" in medians:
            print(f"{prefix}_ratio_{name} {value / medians['plain']:.4f} ratio")


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    torch_rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    with tempfile.TemporaryDirectory() as folder:
        launches = measure(launch_kinds(folder), pairs)
        show("gpu_launch", "ns", launches)
        if torch_rounds and importlib.util.find_spec("torch"):
            show("torch_add", "us", measure(torch_kinds(folder), torch_rounds))
    return 0 if {"plain", "host_only", "full"} <= set(launches) else 1


if __name__ == "__main__":
    sys.exit(main())
