"""The answers as one HTML page that needs nothing from the network: sentences, plots as SVG (matplotlib draws them), tables."""
import html
import io

from custream.fleet import questions
from custream.fleet.tables import Refused

COLUMNS_MOST = 200  # of a heat map
ROWS_MOST = 200     # of a table
# The colours of Okabe and Ito, for the causes as `custream report --html` has them (tools/custream/report/page.c); all others are grey.
COLOURS = {"host: own code": "#e69f00", "host: blocked": "#f0e442", "host: in a call": "#cc79a7", "host: waiting outside CUDA": "#0072b2", "launch": "#56b4e9", "event": "#009e73", "legacy": "#d55e00", "unknown": "#999999"}
STYLE = """:root{color-scheme:light dark;--text:#1b1b1b;--back:#fff;--line:#d4d4d4;--row:#f5f5f5}
@media (prefers-color-scheme:dark){:root{--text:#ececec;--back:#16181a;--line:#3c4043;--row:#212427}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);max-width:78rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}.wide{overflow-x:auto}figure{margin:1rem 0;background:#fff;color:#000}figure svg{max-width:100%;height:auto}
table{border-collapse:collapse;font-size:.9rem}th{border-bottom:2px solid var(--line);text-align:left;padding:.2rem .6rem}
td{border-bottom:1px solid var(--line);padding:.2rem .6rem;overflow-wrap:break-word;max-width:40rem}.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
tbody tr:hover{background:var(--row)}"""


def drawn(height, draw, title):
    """A figure as SVG; draw(axes) fills it."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif", "font.size": 9}):
        figure = Figure(figsize=(10, height), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title)
        draw(figure, axes)
        out = io.StringIO()
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
    return f'<figure role="img" aria-label="{html.escape(title)}">{out.getvalue()[out.getvalue().index("<svg"):]}</figure>'


def heat_map(title, ranks, matrix, across, unit, what="step", colours="viridis"):
    def draw(figure, axes):
        image = axes.imshow(matrix, aspect="auto", interpolation="nearest", cmap=colours, extent=(0, across, len(ranks), 0))
        ticks = range(0, len(ranks), max(1, len(ranks) // 16))
        axes.set_yticks([place + 0.5 for place in ticks], [str(ranks[place]) for place in ticks])
        axes.set(xlabel=what, ylabel="rank")
        figure.colorbar(image, label=unit)
    return drawn(2 + min(5, 0.12 * len(ranks)), draw, title)


def bars(title, ranks, layers, unit):
    """layers: (name, colour, values), each on top of the one before."""
    def draw(_figure, axes):
        below = [0.0] * len(ranks)
        for name, colour, values in layers:
            axes.bar(range(len(ranks)), values, bottom=below, color=colour, label=name, width=1.0)
            below = [a + b for a, b in zip(below, values)]
        ticks = range(0, len(ranks), max(1, len(ranks) // 16))
        axes.set_xticks(list(ticks), [str(ranks[place]) for place in ticks])
        axes.set(xlabel="rank", ylabel=unit, xlim=(-0.5, len(ranks) - 0.5))
        if len(layers) > 1:
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return drawn(3, draw, title)


def columns_of(matrix, most):
    """The greatest of what shares a column."""
    import numpy as np
    each = max(1, -(-matrix.shape[1] // most))
    wide = np.full((matrix.shape[0], -(-matrix.shape[1] // each) * each), -np.inf)
    wide[:, :matrix.shape[1]] = np.where(np.isnan(matrix), -np.inf, matrix)
    found = wide.reshape(matrix.shape[0], -1, each).max(axis=2)
    return np.where(np.isinf(found), np.nan, found)


# ---- A picture for each answer that has one ----

def of_steps(tables, answer):
    if not answer.picture.get("step"):
        return ""
    ranks, each, matrix = questions.step_columns(tables, COLUMNS_MOST)
    return heat_map("How long each step takes, by rank", ranks, matrix, each * matrix.shape[1], "ms")


def of_stragglers(_tables, answer):
    import numpy as np
    of = answer.picture.get("matrix")
    if not of:
        return ""
    order = np.argsort(of.ranks)
    behind = np.maximum(of.starts - questions.middle_rank(np, of.starts), 0) / 1e6
    return heat_map(f"How far behind the middle rank each arrives at collectives (communicator of {len(of.ranks)} ranks)", [of.ranks[i] for i in order],
                    columns_of(behind, COLUMNS_MOST)[order], behind.shape[1], "ms", "collective", "inferno")


def of_idle(tables, answer):
    if not answer.rows:
        return ""
    ranks, by = tables.ranks, {}
    for row in answer.rows:
        name = row["cause"] + (f": {row['doing']}" if row["doing"] else "")
        by.setdefault(name, dict.fromkeys(ranks, 0.0))[row["rank"]] += row["share"] * 100
    return bars("Why each rank's GPU is idle", ranks, [(name, COLOURS.get(name, "#999999"), list(by[name].values())) for name in sorted(by, key=[*COLOURS, *by].index)], "% of the time")


def of_hidden(tables, answer):
    if not answer.rows:
        return ""
    by, ranks = {row["rank"]: row for row in answer.rows}, [rank for rank in tables.ranks if any(row["rank"] == rank for row in answer.rows)]
    layers = [("hidden", "#009e73", [by[rank]["hidden_ms"] for rank in ranks]), ("not hidden", "#d55e00", [by[rank]["communication_ms"] - by[rank]["hidden_ms"] for rank in ranks])]
    return bars("Communication behind computation", ranks, layers, "ms")


def of_clocks(_tables, answer):
    rows = sorted((row for row in answer.rows if row["error_us"] is not None), key=lambda row: row["rank"])
    if not rows:
        return ""

    def draw(_figure, axes):
        axes.errorbar([row["rank"] for row in rows], [row["offset_us"] for row in rows], yerr=[row["error_us"] for row in rows], fmt=".", color="#0072b2", ecolor="#56b4e9")
        axes.set(xlabel="rank", ylabel="us")
    return drawn(3, draw, "How far each rank's clock is ahead of the middle one")


def of_kernels(_tables, answer):
    rows = [row for row in answer.rows[:20] if row["middle_us"] > 0][::-1]
    if not rows:
        return ""

    def draw(_figure, axes):
        for place, row in enumerate(rows):
            axes.plot([row["fastest_us"] / row["middle_us"], row["slowest_us"] / row["middle_us"]], [place, place], color="#56b4e9", linewidth=4, solid_capstyle="butt")
        axes.set_yticks(range(len(rows)), [row["kernel"][:40] for row in rows])
        axes.axvline(1, color="#999999", linewidth=1)
        axes.set(xlabel="mean on the fastest and on the slowest rank, over that on the middle one")
    return drawn(1 + 0.25 * len(rows), draw, "How kernels differ across ranks")


def of_collectives(_tables, answer):
    rows = sorted(answer.rows, key=lambda row: row["communicator"])
    if not rows:
        return ""
    return bars("A collective once all ranks are there (blue), and what a rank waits before that (orange), by communicator", [row["communicator"] for row in rows],
                [("takes", "#0072b2", [row["median_ms"] for row in rows]), ("waits", "#e69f00", [row["waiting_ms"] for row in rows])], "ms").replace(">rank<", ">communicator<")


PICTURES = {"steps": of_steps, "stragglers": of_stragglers, "idle": of_idle, "hidden": of_hidden, "clocks": of_clocks, "kernels": of_kernels, "collectives": of_collectives}


# ---- The page ----

def cell(value):
    if isinstance(value, float):
        return f'<td class="n">{value:,.3f}</td>'
    return f'<td class="n">{value}</td>' if isinstance(value, int) else f"<td>{html.escape('' if value is None else str(value))}</td>"


def table(rows):
    if not rows:
        return ""
    lines = "\n".join(f"<tr>{''.join(cell(value) for value in row.values())}</tr>" for row in rows[:ROWS_MOST])
    more = f"<p>and {len(rows) - ROWS_MOST} more: --json has all</p>" if len(rows) > ROWS_MOST else ""
    head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in rows[0])
    shown = f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>\n{lines}\n</tbody></table></div>{more}'
    return f"<details><summary>{len(rows)} rows</summary>{shown}</details>"


def page(tables, together, answers):
    del together
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise Refused(f"{error}: install the wheel with its extra \"fleet\"") from None
    title = f"Run {tables.run}: {len(tables.ranks)} ranks on {len(set(tables.hosts.values()))} hosts"
    parts = []
    for answer in answers:
        says = "".join(f"<p>{html.escape(line)}</p>" for line in answer.says)
        picture = PICTURES[answer.name](tables, answer) if answer.name in PICTURES else ""
        parts.append(f'<section id="{answer.name}"><h2>{answer.name.capitalize()}</h2>{says}{picture}{table(answer.rows)}</section>')
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title><style>{STYLE}</style></head>\n'
            f"<body><h1>{html.escape(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n")
