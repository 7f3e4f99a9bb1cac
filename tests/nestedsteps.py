"""Random programs of steps that hold layers, as traces: how many steps there were is known by construction."""
import random

from tests.tracestory import Story

STREAM = 13


class Nested:
    """A training or inference program: its steps, what each holds, and what comes now and then."""

    def __init__(self, seed, **fixed):
        draw = random.Random(seed)
        self.draw = draw
        self.about = {
            "steps": draw.randint(3, 40),
            "layers": draw.choice([0, 0, *range(2, 25)]),
            "in_layer": draw.randint(2, 9),
            "before": draw.choice([0, 1, 2]),  # kernels of a step alone, before the layers
            "behind": draw.choice([0, 1, 3]),
            "trains": draw.random() < 0.6,  # the layers come again, backwards, and then an optimizer
            "optimizer": draw.choice([1, 2, 5]),
            "inputs": draw.choice([0, 0, 1, 2]),
            "ends": draw.choice(["nothing", "wait", "item"]),
            "pause": draw.choice([0, 0, 0, 400, 3000]),
            "micro": draw.choice([1, 1, 1, 1, 2, 4]),  # batches of which the gradients are added up
            "log": draw.choice([0, 0, 0, 5, 10]),
            "log_first": draw.random() < 0.7,
            "eval": draw.choice([0, 0, 0, 0, 4, 7]),
            "eval_batches": draw.randint(1, 4),
            "warm_up": draw.choice(["none", "none", "slow", "other"]),
            "noise": draw.choice([0, 0, 0.1]),
            "host": draw.choice([3, 12]),  # us of own code before a launch
            "kernel": draw.choice([5, 40]),
            "epoch": 0,  # after so many steps the host does something else for 20 ms
            "variants": 0,  # a kernel that there is in so many variants, one in each step
            **fixed}
        if not self.about["trains"]:
            self.about.update(micro=1, eval=0)
        self.names = [draw.choice("abcdefghij") for _ in range(self.about["in_layer"])]
        self.takes = {}
        self.story, self.at, self.end = Story(), 0.0, 0.0
        self.story.stream(STREAM)

    def launch(self, *names):
        for name in names:
            takes = self.takes.setdefault(name, self.about["kernel"] * self.draw.uniform(0.3, 2))
            self.at = round(self.at + self.about["host"] * self.draw.uniform(0.7, 1.5), 3)
            self.end = round(self.story.kernel(STREAM, self.at, max(self.at + 4, self.end + 1), round(takes * self.draw.uniform(0.95, 1.1), 3), name), 3)
            self.at += 2

    def copy(self, way):
        self.at = round(self.at + self.about["host"], 3)
        self.end = round(self.story.copy(STREAM, self.at, max(self.at + 4, self.end + 1), 6, way), 3)
        self.at += 2

    def wait(self):
        self.at = round(self.at + 2, 3)
        took = round(max(self.end - self.at, 0) + 3, 3)
        self.at = self.story.call("cuStreamSynchronize", self.at, took, **self.story.on(STREAM))

    def item(self):
        self.copy("DtoH")
        self.wait()

    def forward(self):
        about = self.about
        for _ in range(about["inputs"]):
            self.copy("HtoD")
        self.launch(*(f"embed{i}" for i in range(about["before"])))
        for _ in range(about["layers"]):
            self.launch(*self.names)
        if not about["layers"]:
            self.launch(*sorted({*self.names}))

    def step(self, number):
        about = self.about
        for _ in range(about["micro"]):
            self.forward()
            self.launch(*(f"loss{i}" for i in range(about["behind"])))
            if about["trains"]:
                for _ in range(about["layers"] or 1):
                    self.launch(*(f"d{name}" for name in reversed(self.names)))
        if about["trains"]:
            self.launch(*(["adam"] * about["optimizer"]))
        if about["variants"]:
            self.launch(f"aligned{number % about['variants']}")
        if self.draw.random() < about["noise"]:
            self.launch(self.draw.choice(["resize", "fill"]))
        if about["ends"] != "nothing":
            getattr(self, about["ends"])()
        if about["log"] and number % about["log"] == (0 if about["log_first"] else about["log"] - 1):
            self.item()
        if about["eval"] and (number + 1) % about["eval"] == 0:
            for _ in range(about["eval_batches"]):
                self.forward()
            self.launch("metric")
            self.item()
        if about["epoch"] and (number + 1) % about["epoch"] == 0:
            self.at += 20_000
        self.at += about["pause"] * self.draw.uniform(0.8, 1.2)

    def told(self):
        about = self.about
        if about["warm_up"] == "slow":
            self.forward()
            self.at += 400_000
        elif about["warm_up"] == "other":
            for i in range(3):
                self.launch(*(f"tune{i}{n}" for n in range(30)))
            self.at += 100_000
        for number in range(about["steps"]):
            self.step(number)
        self.wait()
        return self.story

    def shape(self):
        """Whether what repeats can be told from a trace, in a word."""
        about = self.about
        own = about["before"] or about["behind"] or about["trains"]
        if about["eval"] and about["eval"] * 2 <= about["steps"]:
            return "eval"
        if about["micro"] > 1:
            return "micro"
        marks = about["inputs"] or about["ends"] != "nothing" or about["pause"] >= 400
        if about["layers"] and not own:
            return "equal layers, a host pattern" if marks else "nothing but equal layers"
        logs = " logs" if about["log"] else ""
        return ("layers" if about["layers"] else "no layers") + ("" if marks else ", no host pattern") + logs
