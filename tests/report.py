"""`custream report` as data."""
import collections
import json

from tests.handmade import custream


class Report:
    """The tables of one report: report["idle"] is a list of rows."""

    def __init__(self, *paths):
        done = custream("report", "--json", *paths)
        assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)
        self.tables = json.loads(done.stdout)["tables"]

    def __getitem__(self, key):
        return self.tables[key]

    def rows(self, key, **where):
        return [row for row in self[key] if all(row[name] == value for name, value in where.items())]

    def sums(self, key, by, what, **where):
        """Of the rows of a table: `what` summed up by the column `by`."""
        found = collections.Counter()
        for row in self.rows(key, **where):
            found[row[by]] += row[what]
        return found

    def idle_ns(self, device):
        """Idle time of a device by cause."""
        return self.sums("idle", "cause", "idle_ns", device=device)
