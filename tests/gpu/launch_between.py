"""What a launch costs between two windows of CUSTREAM_WINDOW=every=S,for=S, over CUSTREAM_TRACE=off: processes of both kinds by turns, some 15 s.

    python3 tests/gpu/launch_between.py [PAIRS]

Printed as `name value unit`: gpu_launch_ratio_between is the figure that is to stay near 1; gpu_launch_ratio_within is what the windows cost.
"""
import os
import statistics
import sys
import tempfile

from launch_full import BUILD, one_run

PROGRAM = [os.path.join(BUILD, "gpu", "between")]
EVERY, PART = "1.5", "0.6"


def run(folder, figure, **options):
    env = {"LD_PRELOAD": os.path.join(BUILD, "libcustream_shim.so"), "CUSTREAM_TRACE": os.path.join(folder, "between.json"), "CUSTREAM_TRACE_MAX": "64M,rotate"}
    return one_run([*PROGRAM, "3", EVERY, PART], figure, env | options)


def main(pairs):
    every = {"CUSTREAM_WINDOW": f"every={EVERY},for={PART}"}
    found = {"between": [], "within": [], "off": []}
    with tempfile.TemporaryDirectory() as folder:
        for n in range(pairs):
            for kind in ("between", "off") if n % 2 else ("off", "between"):
                found[kind].append(run(folder, "gpu_launch_ns_between", **({"CUSTREAM_TRACE": "off"} if kind == "off" else every)))
        found["within"].append(run(folder, "gpu_launch_ns_within", **every))
    medians = {kind: statistics.median([ns for ns in values if ns] or [float("nan")]) for kind, values in found.items()}
    for kind, ns in medians.items():
        print(f"gpu_launch_ns_{kind} {ns:.1f} ns")
    for kind in ("between", "within"):
        print(f"gpu_launch_ratio_{kind} {medians[kind] / medians['off']:.4f} ratio")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
