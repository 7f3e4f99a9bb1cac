"""A trace told call by call, for cases that need to know what a report must say of it. Times are microseconds."""
import json

from tests.handmade import GPU, GPU_TOTALS, HOST, TOTALS, bound, custream, meta, render, slice_
from tests.trace import LIVES

MAIN, CALLBACKS = 4250, 4251
LEGACY = 7
WORK = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "memsets", "gpu_graph": "graphs"}


class Story:
    """What a process did. Streams are told first; calls and their work in any order."""

    def __init__(self):
        self.metas = [meta("process_name", HOST, HOST, "app"), meta("thread_name", HOST, MAIN, "main"), meta("process_name", GPU, LEGACY, "GPU 0")]
        self.streams, self.rows, self.correlation = [], [], 0
        self.device_of = {}
        self.totals, self.trailer, self.devices = {"leaked_events": 0}, {}, [{"id": GPU, "name": "GPU", "numSms": 2}]

    def stream(self, number, blocking=False, device=GPU, **args):
        """A stream that was there all the time. As LEGACY it is the legacy default stream. Of two devices, no streams have one number."""
        name = f"stream {number}"
        self.metas.append(meta("thread_name", device, number, name))
        self.device_of[number] = device
        origin = {"origin": "legacy default"} if number == LEGACY else {"origin": "created", "flags": "blocking" if blocking else "non-blocking", "priority": 0, **args}
        self.streams.append((number, name, {**origin, "thread": MAIN}))
        return number

    def on(self, stream):
        """How a call names a stream."""
        device = self.device_of[stream]
        return {"cs.stream": stream, **({"cs.device": device} if device else {})}

    def call(self, name, at, took=2, thread=MAIN, **args):
        """A call that enqueues nothing."""
        self.rows.append(slice_("cuda_driver", name, HOST, thread, at, took, **args))
        return at + took

    def work(self, call, stream, at, began, lasted, took=2, kind="kernel", name="k", thread=MAIN, args=None, **work):
        """A call at `at` and its work. When the work ended."""
        self.correlation += 1
        number, device = self.correlation, self.device_of[stream]
        both = {"correlation": number}
        self.rows += bound(slice_("cuda_driver", call, HOST, thread, at, took, **self.on(stream), **both, **(args or {})),
                           slice_(kind, name, device, stream, began, lasted, stream=stream, device=device, **both, **work))
        return began + lasted

    def kernel(self, stream, at, began, lasted, name="k", **more):
        return self.work("cuLaunchKernel", stream, at, began, lasted, name=name, **more)

    def copy(self, stream, at, began, lasted, way="HtoD", call=None, memory="Pinned", **more):
        ends = f"{memory} -> Device" if way == "HtoD" else f"Device -> {memory}"
        return self.work(call or f"cuMemcpy{way}Async_v2", stream, at, began, lasted, kind="gpu_memcpy", name=f"Memcpy {way} ({ends})", bytes=4096, **more)

    def callback(self, stream, at, began, lasted, thread=MAIN):
        """cuLaunchHostFunc at `at`, and its function."""
        self.call("cuLaunchHostFunc", at, thread=thread, **self.on(stream))
        if not any(row["tid"] == CALLBACKS for row in self.metas):
            self.metas.append(meta("thread_name", HOST, CALLBACKS, "app (callbacks)"))
        self.rows.append(slice_("cs_callback", "callback", HOST, CALLBACKS, began, lasted, **{**self.on(stream), "delay_us": round(began - at, 3)}))
        return began + lasted

    def life(self, number, mark, ts, **args):
        return {"ph": "i", "s": "t", "cat": "cs_stream", "name": mark, "pid": self.device_of[number], "tid": LIVES, "ts": ts, "args": {"cs.stream": number, **args}}

    def text(self):
        end = max(row["ts"] + row.get("dur", 0) for row in self.rows) + 1
        rows = self.metas + [meta("thread_name", device, LIVES, "streams") for device in sorted(set(self.device_of.values()))]
        rows += [self.life(number, f"{name} begins", 0, name=name, **args) for number, name, args in self.streams]
        rows += sorted(self.rows, key=lambda row: (row["ts"], row["ph"] != "X", -row.get("dur", 0)))
        rows += [self.life(number, f"{name} ends", end, name=name, destroyed=True) for number, name, _ in self.streams]
        cats = [row.get("cat") for row in self.rows if row["ph"] == "X"]
        gpu = {**GPU_TOTALS, **{total: cats.count(cat) for cat, total in WORK.items()}, "without_call": 0}
        recorded = cats.count("cuda_driver") + cats.count("cs_callback")
        totals = {**TOTALS, "recorded": recorded, "calls": cats.count("cuda_driver"), "lost_records": 0, "gpu": gpu, **self.totals}
        members = {"deviceProperties": self.devices, "totals": totals, **self.trailer}
        return render(dict(enumerate(rows)), trailer='],"traceName":"custream",' + json.dumps(members, separators=(",", ":"))[1:])

    def report(self, tmp_path):
        """The tables that the report makes of it, once `custream check` has found the trace good."""
        path = tmp_path / "story.json"
        path.write_text(self.text(), encoding="utf-8")
        checked = custream("check", path)
        assert checked.stdout.startswith(f"{path}: ok: "), checked.stdout + checked.stderr
        done = custream("report", "--json", path)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout)["tables"]
