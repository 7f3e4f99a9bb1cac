"""Programs of threads that compute, sleep, hold locks, hand each other items and use the GPU, as a small simulation: it leaves a trace with the threads' clocks,
and can run the same program with one thing changed. Times are microseconds."""
import heapq
import random

from tests.tracestory import MAIN, Story

CALL, LAUNCH, WAKE, EDGE = 2, 5, 30, 200
SMALL_SHAPE = {"grid": [1, 1, 1], "block": [32, 1, 1], "registers per thread": 16, "shared memory": 0}


class Change:
    """What takes no time, of one thread or of all: "compute", "sleep", "sync" (but for a thread's last wait), "lock" (also what waits for an item)."""

    def __init__(self, kind=None, thread=None):
        self.kind, self.thread = kind, thread

    def of(self, kind, thread):
        return kind == self.kind and self.thread in (None, thread)


class Sim:
    def __init__(self, seed, change=None, spins=True):
        self.change, self.rng, self.spins = change or Change(), random.Random(seed), spins
        self.story, self.queue, self.order = Story(), [], 0
        self.tails, self.items, self.locks, self.threads = {}, {}, {}, []
        self.end, self.left = 0, 0

    def stream(self, number):
        self.tails[number] = 0
        return self.story.stream(number)

    def thread(self, steps, endless=False):
        """`steps` yields what the thread does next. An endless thread ends with the others."""
        thread = {"tid": MAIN + 10 * len(self.threads), "steps": steps, "cpu": 0, "ended": None, "endless": endless, "number": len(self.threads)}
        self.threads.append(thread)
        self.left += not endless
        self.at(len(self.threads) - 1, thread)

    def at(self, time, thread):
        self.order += 1
        heapq.heappush(self.queue, (time, self.order, thread))

    def called(self, thread, at, took, used, args):
        """A call's arguments, with the readings of the thread's clock that the library makes."""
        args = dict(args)
        if thread["ended"] is None or at - thread["ended"] >= EDGE:
            args["cpu_us"] = round(thread["cpu"], 3)
        thread["cpu"] += used
        if took > EDGE:
            args["cpu_end_us"] = round(thread["cpu"], 3)
        thread["ended"] = at + took
        return args

    def wake(self, who, now):
        self.at(now + WAKE * self.rng.uniform(0.5, 2), who)

    def run(self):
        while self.queue and self.left:
            now, _, thread = heapq.heappop(self.queue)
            step = next(thread["steps"], None)
            if step is None:
                self.left -= not thread["endless"]
                continue
            getattr(self, "do_" + step[0])(thread, round(now, 3), *step[1:])
            if not thread["endless"]:
                self.end = max(self.end, now, *self.tails.values())
        return self.end

    def do_compute(self, thread, now, us):
        us = 0 if self.change.of("compute", thread["number"]) else us
        thread["cpu"] += us
        self.at(now + us, thread)

    def do_sleep(self, thread, now, us):
        self.at(now + (0 if self.change.of("sleep", thread["number"]) else us), thread)

    def do_launch(self, thread, now, stream, us):
        begin = round(max(now + LAUNCH, self.tails[stream]), 3)
        args = self.called(thread, now, CALL, CALL, {})
        self.tails[stream] = self.story.kernel(stream, now, begin, round(us, 3), thread=thread["tid"], args=args, **SMALL_SHAPE)
        self.at(now + CALL, thread)

    def do_query(self, thread, now, stream):
        self.story.call("cuStreamQuery", now, CALL, thread["tid"], **self.called(thread, now, CALL, CALL, {"cs.stream": stream}))
        self.at(now + CALL, thread)

    def do_sync(self, thread, now, stream, last=False):
        if self.change.of("sync", thread["number"]) and not last:
            self.at(now, thread)
            return
        took = round(max(CALL, self.tails[stream] + CALL - now), 3)
        args = self.called(thread, now, took, took if self.spins else CALL, {"cs.stream": stream})
        self.story.call("cuStreamSynchronize", now, took, thread["tid"], **args)
        self.at(now + took, thread)

    def do_put(self, thread, now, name, room):
        queue = self.items.setdefault(name, {"count": 0, "getters": [], "putters": []})
        if self.change.of("lock", None):
            self.at(now, thread)
            return
        if queue["count"] >= room:
            queue["putters"].append(thread)
            return
        self.at(now, thread)
        if queue["getters"]:
            self.wake(queue["getters"].pop(0), now)
        else:
            queue["count"] += 1

    def do_get(self, thread, now, name):
        queue = self.items.setdefault(name, {"count": 0, "getters": [], "putters": []})
        if self.change.of("lock", None):
            self.at(now, thread)
            return
        if queue["putters"]:
            self.wake(queue["putters"].pop(0), now)  # its item goes in
            self.at(now, thread)
        elif queue["count"]:
            queue["count"] -= 1
            self.at(now, thread)
        else:
            queue["getters"].append(thread)

    def do_lock(self, thread, now, name):
        lock = self.locks.setdefault(name, {"held": False, "waiters": []})
        if self.change.of("lock", None) or not lock["held"]:
            lock["held"] = True
            self.at(now, thread)
        else:
            lock["waiters"].append(thread)

    def do_unlock(self, thread, now, name):
        lock = self.locks[name]
        if lock["waiters"]:
            self.wake(lock["waiters"].pop(0), now)
        else:
            lock["held"] = False
        self.at(now, thread)


# --- shapes of programs: each puts threads into a simulation. All numbers are drawn before, so a changed program has the same ones ---

def work(rng, us, computed):
    """A time of about `us`, computed for that share of it and slept for the rest, in an order that is drawn."""
    us *= rng.uniform(0.85, 1.15)
    steps = [("compute", us * computed), ("sleep", us * (1 - computed))]
    return [step for step in (steps if rng.random() < 0.5 else steps[::-1]) if step[1]]


def producer(rng, stream, count, us, computed, queue, room, source=None, also=("query",)):
    steps = []
    for _ in range(count):
        steps += [("get", source)] if source else []
        steps += work(rng, us, computed)
        steps += [("query", stream)] if "query" in also else []
        steps += [("launch", stream, us * 0.1)] if "launch" in also else []
        steps += [("sync", stream)] if "sync" in also else []
        steps += [("compute", rng.uniform(5, 60)), ("put", queue, room)]
    return steps


def trainer(rng, stream, count, us, queue, waits, own=(0, 0)):
    steps = []
    for i in range(count):
        steps += [("compute", own[0] + rng.uniform(1, 20)), ("get", queue), ("compute", own[1] + rng.uniform(1, 40)), ("launch", stream, us * rng.uniform(0.9, 1.1))]
        steps += [("sync", stream, i == count - 1)] if waits or i == count - 1 else []
    return steps


def heartbeat(rng, stream, period):
    while True:
        yield ("sleep", period * rng.uniform(0.98, 1.02))
        yield ("query", stream)
        if rng.random() < 0.2:
            yield ("query", stream)


def loader(rng, computed):
    us, count, room = rng.uniform(1500, 9000), rng.randint(30, 60), rng.choice([1, 2, 100])
    own = rng.choice([(0, 0), (0, 0), (us * 0.1, 0), (0, us * 0.15), (us * 0.1, us * 0.1)])
    return [producer(rng, 14, count, us, computed, "q", room, also=rng.choice([("query",), ("launch",), ("query", "launch")])),
            trainer(rng, 13, count, us * rng.uniform(0.1, 0.7), "q", rng.random() < 0.6, own)]


def loaders(rng, computed):
    us, count, room = rng.uniform(3000, 9000), rng.randint(20, 35), rng.choice([1, 2, 100])
    return [producer(rng, 14, count, us, computed, "q", room), producer(rng, 15, count, us, computed, "q", room),
            trainer(rng, 13, 2 * count, us * rng.uniform(0.1, 0.3), "q", rng.random() < 0.6)]


def convoy(rng, computed):
    """Threads that hold one lock from the launch to the end of the wait, and then do something for themselves."""
    us, count = rng.uniform(800, 3000), rng.randint(25, 40)
    threads = []
    for i in range(rng.choice([2, 3, 4, 8])):
        steps = [("compute", rng.uniform(0, us / 2))]
        for j in range(count):
            steps += [("lock", "l"), ("compute", rng.uniform(5, 30)), ("launch", 13 + i, us), ("sync", 13 + i, j == count - 1), ("unlock", "l")]
            steps += work(rng, us * 0.2, computed)
        threads.append(steps)
    return threads


def pipeline(rng, computed):
    us, count, room = rng.uniform(1500, 6000), rng.randint(30, 60), rng.choice([1, 2, 100])
    slow = rng.random() < 0.5
    return [producer(rng, 14, count, us * (1 if slow else 0.4), computed, "p", room), producer(rng, 15, count, us * (0.4 if slow else 1), computed, "q", room, "p"),
            trainer(rng, 13, count, us * rng.uniform(0.1, 0.4), "q", rng.random() < 0.6)]


def gpu_producer(rng, computed):
    """The producer launches, and waits for the GPU before it hands on."""
    us, count, room, steps = rng.uniform(1500, 6000), rng.randint(30, 60), rng.choice([1, 2, 100]), []
    for _ in range(count):
        steps += [*work(rng, us * 0.3, computed), ("launch", 14, us), ("sync", 14), ("compute", rng.uniform(5, 60)), ("put", "q", room)]
    return [steps, trainer(rng, 13, count, us * rng.uniform(0.1, 0.4), "q", rng.random() < 0.6)]


def turns(rng, computed):
    """One thread computes under a lock and asks the GPU now and then; another one needs the lock for each launch. As with an interpreter's lock."""
    us, count = rng.uniform(2000, 6000), rng.randint(30, 60)
    first = []
    for _ in range(count):
        first += [("lock", "l"), *work(rng, us, computed), ("query", 14), ("unlock", "l"), ("compute", rng.uniform(1, 10))]
    second = []
    for _ in range(count):
        second += [("lock", "l"), ("compute", rng.uniform(10, 60)), ("launch", 13, us * 0.3), ("unlock", "l"), ("compute", 5)]
    return [first, [*second, ("sync", 13, True)]]


SHAPES = {"loader": loader, "loaders": loaders, "convoy": convoy, "pipeline": pipeline, "gpu_producer": gpu_producer, "turns": turns}
SHARES = (0, 0.3, 0.6, 0.88, 1)


def program(number, shape=None, computed=None, beat=None):
    """A function that makes the program's simulation with a change, and the program's shape."""
    rng = random.Random(number)
    shape = shape or rng.choice(list(SHAPES))
    computed = rng.choice(SHARES) if computed is None else computed
    beat = rng.choice([0, 0, 300, 700, 1000, 3300, 10000, 37000]) if beat is None else beat
    threads, spins = SHAPES[shape](rng, computed), rng.random() < 0.5

    def simulate(change=None):
        sim = Sim(number, change, spins)
        for stream in range(13, 22):
            sim.stream(stream)
        for steps in threads:
            sim.thread(iter(steps))
        if beat:
            sim.thread(heartbeat(random.Random(number), 21, beat), endless=True)
        return sim, sim.run()
    return simulate, len(threads), {"shape": shape, "computed": computed, "beat": beat}
