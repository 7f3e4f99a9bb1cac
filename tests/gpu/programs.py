"""The programs that run on a GPU: what each is, how it is started, and what it needs."""
import os
import sys
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD_DIR", os.path.join(ROOT, "build")))
GPU = os.path.join(BUILD, "gpu")


@dataclass
class Program:
    name: str
    command: list
    timeout: int = 60
    modules: tuple = ()  # Python modules without which it is skipped
    env: dict = field(default_factory=dict)


def driver(name, *sections, build="driver"):
    return Program(f"{build}-{name}", [os.path.join(GPU, build), *sections])


def streams(build):
    return Program(f"streams-{build}", [os.path.join(GPU, f"streams-{build}")])


def python(script, *modules, **env):
    return Program(script.replace("_", "-"), [sys.executable, os.path.join(HERE, "python", script + ".py")], 150, modules, env)


PROGRAMS = [
    driver("streams", "stream", "launch", "memop", "thread"),
    driver("memory", "copy", "set", "memory", "batch"),
    driver("graphs", "capture", "graph"),
    driver("contexts", "context", "green"),
    driver("lookup", "lookup"),
    driver("odd", "before", "odd"),
    driver("legacy", "legacy"),
    # The same with every call replaced by its per-thread sibling.
    driver("streams", "stream", "launch", "memop", build="driver-ptds"),
    driver("memory", "copy", "set", "memory", "batch", build="driver-ptds"),
    driver("graphs", "capture", "graph", build="driver-ptds"),
    driver("rest", "context", "green", "odd", build="driver-ptds"),
    streams("static"),
    streams("shared"),
    streams("static-ptds"),
    streams("shared-ptds"),
    python("torch_streams", "torch", CUBLAS_WORKSPACE_CONFIG=":4096:8"),
    python("triton_kernel", "torch", "triton"),
    python("cupy_streams", "cupy"),
    python("cuda_core_streams", "cuda.core"),
    # Without preallocation and tuning: both cost seconds, and tuning makes the choice of kernels a matter of timing.
    python("jax_small", "jax", XLA_PYTHON_CLIENT_PREALLOCATE="false", XLA_FLAGS="--xla_gpu_autotune_level=0", TF_CPP_MIN_LOG_LEVEL="3"),
]

# Differences between our record and CUPTI's that are understood: (program or "*", call) -> why. The report lists them; they do not fail a test.
# Empty is the goal: a row stands for something that a user of the trace would have to know too.
EXPLAINED = {}
