"""gpu_launch_ratio_full: a kernel launch under the shim with GPU times, over the same without the shim.

CUPTI slows every launch of the process, so the two cannot share one: processes of both kinds alternate, and the medians are compared.

    python3 tests/gpu/launch_full.py [PAIRS]
"""
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CUSTREAM_GPU_BUILD", os.path.join(ROOT, "build"))


def one_run(extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_") and k != "LD_PRELOAD"}
    env.update(extra)
    done = subprocess.run([os.path.join(BUILD, "gpu", "launch_ratio"), "linked", "5", "20000"], env=env, stdout=subprocess.PIPE, text=True,
                          timeout=60, check=True)
    return float(done.stdout.split()[1])


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    plain, full = [], []
    with tempfile.TemporaryDirectory() as folder:
        shim = {"LD_PRELOAD": os.path.join(BUILD, "libcustream_shim.so"), "CUSTREAM_GPU": os.environ.get("CUSTREAM_GPU", "cupti"),
                "CUSTREAM_TRACE": os.path.join(folder, "full.json")}
        for pair in range(pairs):
            for kind in ((0, 1) if pair % 2 == 0 else (1, 0)):
                (full if kind else plain).append(one_run(shim if kind else {}))
    a, b = statistics.median(plain), statistics.median(full)
    print(f"gpu_launch_ratio_full {b / a:.4f} ratio")
    print(f"gpu_launch_ns_plain {a:.1f} ns")
    print(f"gpu_launch_ns_full {b:.1f} ns")


if __name__ == "__main__":
    main()
