"""A comparison as one page that needs nothing else: machine, tables, charts with their numbers."""

import html
import time
from pathlib import Path

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import charts, tables


def comparison(cells, facts):
    """The page of complete cells of one machine. ``facts``: (name, value) of where and when they were measured."""
    parts = ["<h1>GPU Cookbook: a comparison</h1>\n"]
    lines = (f"{html.escape(name)}: {html.escape(value)}" for name, value in facts if value)
    parts.append(f"<p>{'<br>'.join(lines)}</p>\n")
    names = list(dict.fromkeys(cell["workload"] for cell in cells))
    if len(names) > 1:
        links = " · ".join(f'<a href="#{name}">{name}</a>' for name in names)
        parts.append(f"<nav><p>{links}</p></nav>\n")
    for name in names:
        mine = [cell for cell in cells if cell["workload"] == name]
        parts.append(f'<h2 id="{name}">{name}</h2>\n{tables.html_of(tables.side_by_side(mine))}')
        parts += [figure(chart) for chart in _charts(mine) if chart]
    overall = [chart for chart in (charts.share_of_limit(cells), charts.roofline(cells)) if chart]
    if overall:
        parts += ["<h2>All workloads</h2>\n", *map(figure, overall)]
    notes = [f"<p>{html.escape(note.text)}</p>\n" for note in tables.explained(cells)]
    parts += ["<h2>How it was measured</h2>\n"] * bool(notes) + notes
    return tables.page("GPU Cookbook: a comparison", "".join(parts))


def facts_here():
    """What a comparison says of this machine and of the recipes' state."""
    nvidia = machine.nvidia()
    gpus = ", ".join(f"{gpu.name} ({gpu.memory_bytes / 2**30:.0f} GiB)" for gpu in machine.gpus())
    commit = _commit()
    return [
        ("Processor", machine.processor()),
        ("GPUs", gpus or "no NVIDIA GPU"),
        ("Driver", nvidia and f"{nvidia.driver}, for CUDA up to {'.'.join(map(str, nvidia.cuda))}"),
        ("Date", time.strftime("%Y-%m-%d %H:%M %Z")),
        ("Commit", commit),
    ]


def figure(chart):
    """The chart under its title, and its numbers, folded."""
    return (
        f"<figure>\n<figcaption><strong>{html.escape(chart.title)}</strong><br>{html.escape(chart.text)}</figcaption>\n"
        f"{chart.svg}\n<details><summary>Numbers</summary>\n{tables.html_of(chart.table)}</details>\n</figure>\n"
    )


def _commit():
    """Of the clone that this package belongs to; None where it is installed elsewhere."""
    from gpu_cookbook.store import asv_files as store  # only here: it is asv's side

    package = Path(__file__).resolve().parents[1]
    root = store.git(package, "rev-parse", "--show-toplevel")
    commit = store.git(package, "rev-parse", "HEAD")
    # A virtual environment may lie in somebody else's clone.
    if not commit or Path(root).resolve() / "gpu_cookbook" != package:
        return None
    changed = store.git(package.parent, "status", "--porcelain", "--", *store.CODE)
    return commit + ", with changes" * bool(changed)


def _charts(mine):
    """Of one size there are no lines: its times as bars."""
    ok = [cell for cell in mine if cell["status"] == "ok"]
    if len({cell["size"] for cell in ok}) > 1:
        yield charts.by_size(mine)
        yield charts.by_size(mine, "transfer")
    elif len(ok) > 1:
        picks = [(c["technique"], c["workload"], c["technique"], c["size"], "resident") for c in ok]
        label = catalogue.workload_module(ok[0]["workload"]).label(ok[0]["size"])
        yield charts.bars(mine, picks, f"{ok[0]['workload']}, {label}: resident")
    yield charts.costs(mine)
    yield charts.cold_start(mine)
