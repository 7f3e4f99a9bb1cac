"""`custream fleet DIR`: questions over the tables of many ranks (docs/fleet.md). Needs duckdb and numpy, of the extra "fleet", or Spark, of the extra "spark".

tables.py reads the tables with an engine, relations.py has what questions share, clocks.py and together.py relate ranks to each other, questions.py, causes.py
and against.py answer, page.py draws.
"""
import json
import pathlib
import sys

from custream._native import Given
from custream.fleet.tables import Refused, Tables

NAME = "custream fleet"


def ask(folder, run=None, wanted=(), engine=None, master=None, other=None):
    """(tables, together, answers). `other`: a folder with the tables of a run that this one is compared with."""
    tables = Tables(pathlib.Path(folder), run, engine, master)  # says first what is missing
    from custream.fleet import against, questions, together
    of = together.Together(tables)
    answers = [questions.QUESTIONS[name](tables, of) for name in wanted or questions.QUESTIONS]
    if other is not None:
        before = Tables(pathlib.Path(other), None, engine, master)
        answers.insert(0, against.against((before, together.Together(before)), (tables, of)))
    return tables, of, answers


# ---- Text ----

def table(rows, most=10):
    """Lines of text; the first rows."""
    if not rows:
        return []
    shown = [list(rows[0])] + [["-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows[:most]]
    shown = [[word if len(word) <= 60 else word[:57] + "..." for word in line] for line in shown]
    widths = [max(len(line[i]) for line in shown) for i in range(len(shown[0]))]
    lines = ["    " + "  ".join(word.rjust(width) for word, width in zip(line, widths)).rstrip() for line in shown]
    return lines + ([f"    ... {len(rows) - most} more: --json"] if len(rows) > most else [])


def text(answer):
    return "\n".join([answer.name.upper(), *("  " + line for line in answer.says), *table(answer.rows)])


# ---- The command ----

def answer(given, folder, wanted):
    tables, together, answers = ask(folder, given.run, wanted, given.engine, given.master, given.against)
    if given.clocks:
        from custream.fleet import clocks
        if tables.moved():
            raise Refused(f"{folder}: its times are by the clocks of an earlier --clocks already; export the traces without it to find clocks")
        clocks.write(pathlib.Path(given.clocks), tables.run, together.clocks, tables.hosts, together.sets)
    if given.html:
        from custream.fleet import page
        pathlib.Path(given.html).write_text(page.page(tables, together, answers), encoding="utf-8")
    if given.json:
        print(json.dumps({"custream_fleet": 1, "run": tables.run, "ranks": len(tables.ranks), "answers": {a.name: {"says": a.says, "rows": a.rows} for a in answers}}, indent=1))
    else:
        print(f"run {tables.run}: {len(tables.ranks)} ranks on {len(set(tables.hosts.values()))} hosts\n")
        print("\n\n".join(text(a) for a in answers))
    tables.engine.close()


def command(_, options, words):
    """What the command (tools/custream/fleet.c) has read."""
    try:
        answer(Given(options), words[0], words[1:])
    except Refused as refused:
        print(f"{NAME}: {refused}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{NAME}: {error.filename or words[0]}: {error.strerror}", file=sys.stderr)
        return 2
    return 0
