"""Writes pages from recipes/ and benchmarks/results before Sphinx reads them: one page per workload in recipes/, pages
of each machine in machines/ and of its past in history/, and the parts that other pages include in generated/. Git
ignores all four."""

import difflib
import html
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import choices
import choosing as advising  # benchmarks/choosing.py: conf.py puts its folder on the path
import notebooks
import stored
from figures import anchor, recipe_place
from rich.console import Console

from gpu_cookbook import catalogue, choosing, short, show
from gpu_cookbook.render import (
    advice,
    all_reduce,
    beside,
    charts,
    concepts,
    history,
    html_page,
    launches,
    limits,
    reach,
    scaling_charts,
    scaling_tables,
    speedups,
    tables,
    timelines,
    together,
)
from gpu_cookbook.render.abilities import abilities
from gpu_cookbook.render.format import STALE, UNKNOWN, ratio, stale, timing
from gpu_cookbook.render.html_page import Site
from gpu_cookbook.render.tables import Entry, Recipe, Table
from gpu_cookbook.results import Metric, Result, grouped, keyed
from gpu_cookbook.scaling import Row
from gpu_cookbook.units import counted, digits, seconds
from gpu_cookbook.words import markdown

HERE = Path(__file__).parent
ALIKE = 0.5  # similarity of two files; below it, the diff would be longer than the file
PICKS = (  # for the first page: a small product on the CPU, on the GPU, and with both transfers
    ("numpy", Metric.RESIDENT),
    ("cupy", Metric.RESIDENT),
    ("cupy", Metric.TRANSFER),
    ("torch", Metric.RESIDENT),
    ("torch", Metric.TRANSFER),
)
MOVES = (  # of docs/moving: before and after
    ("standardise_numpy", "standardise_cupy"),
    ("stencil_pycuda", "stencil_numba"),
    ("stencil_pycuda", "stencil_cupy"),
    ("fit_torch_cpu", "fit_torch_gpu"),
    ("standardise_numpy", "standardise_dask"),
)
ASKED = choosing.Question("multiply", 5_000_000, choosing.Data.HOST)  # in which.md
ESCAPED = str.maketrans({sign: f"\\{sign}" for sign in "*_<~"})  # characters to escape in prose that is not Markdown
UNSEARCHED = ["---", "nosearch: true", "---", ""]  # numbers: a search would name them before the pages that explain
written: set[Path] = set()  # in this run


def setup(app):
    app.connect("builder-inited", lambda app: write())
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write():
    stored.complain(catalogue.faults())
    for workload in catalogue.workloads():
        put(f"recipes/{workload}.md", workload_page(workload))
    put("recipes/index.md", recipes_index())
    for machine in stored.results():
        put(f"machines/{machine}.md", machine_page(machine))
        put(f"history/{machine}.md", history_page(machine))
    for table in abilities(stored.of(stored.GPU_MACHINE)):
        name = table.title.lower().replace(":", "").replace(" ", "-")
        put(f"generated/{name}.html", table_html(table, ""))
    for before, after in MOVES:
        difference, _ = changes(*(HERE / "moving" / f"{name}.py" for name in (before, after)))
        put(f"generated/{after}.diff", difference)
    put("generated/machines.md", machines_list())
    put("generated/beside.html", besides())
    put("generated/took.html", full_measurement())
    one_kind = beside.of_one_kind([*stored.results().values()])
    put("generated/one-kind.html", tables_html(one_kind, ""))
    put("generated/history.md", history_list())
    reached = limits.of_machine(stored.limited()[stored.GPU_MACHINE], stored.every_result())
    put("generated/limits.html", tables_html(reached, ""))
    put("generated/limits-apart.html", table_html(limits.apart(stored.limited()), ""))
    put("generated/reach.html", tables_html([reach.by_framework(stored.of(stored.GPU_MACHINE))], ""))
    put("generated/choose.txt", advice_printed())
    put("generated/choosing.html", tables_html(advising.tables(stored.every_result()), ""))
    command = [sys.executable, "-m", "typer", "gpu_cookbook.cli", "utils", "docs", "--name", "gpu-cookbook"]
    printed = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True).stdout
    said = dict(re.findall(r"^## `gpu-cookbook (\w+)`\n\n(.*?)\n\n", printed, re.MULTILINE | re.DOTALL))
    # The list of commands cuts each sentence after some words.
    printed = re.sub(r"^(\* `(\w+)`: ).*\.\.\.$", lambda cut: cut[1] + said[cut[2]], printed, flags=re.MULTILINE)
    put("generated/command.md", printed.partition("\n")[2])
    rows = stored.scaled()
    story, *others = scaling_tables.build_tables(rows)
    put("generated/story.html", table_html(story, ""))
    put("generated/scaling.html", tables_html(others, ""))
    put("generated/scaling-charts.html", charts_html(scaled(rows), ""))
    picture = charts_html([speedups.speedups(stored.of(stored.GPU_MACHINE))], "")
    wide = picture.replace("<svg", '<div class="scroll wide"><svg').replace("</svg>", "</svg></div>")
    put("generated/speedups.html", wide)
    put("generated/first.html", first_chart())
    machines = stored.compared()
    first = [machines[name] for name in sorted(machines, key=lambda name: name != stored.GPU_MACHINE)]
    shown = choices.choices(first, lambda table: table_html(table, ""))
    put("generated/choices.html", shown)
    write_transfers()
    write_launches()
    write_all_reduce()
    write_concepts()
    write_together()
    put("generated/story-chart.html", charts_html([scaling_charts.story(rows)], ""))
    for folder in ("recipes", "machines", "history", "generated"):
        for path in (HERE / folder).rglob("*.*"):
            if path not in written:  # left from a recipe or a machine that was removed
                path.unlink()


def put(name, text):
    """Writes a file only if its text has changed, so that Sphinx rereads only such pages."""
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    written.add(path)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def first_chart() -> str:
    results = {each.technique: each for each in stored.of(stored.GPU_MACHINE, "matmul") if each.size == 200}
    picks = []
    for technique, metric in PICKS:
        device = results[technique].device.rpartition(", ")[2]  # for a processor: its cores
        words = (results[technique].framework, device, *["with transfers"] * (metric == Metric.TRANSFER))
        picks.append((", ".join(words), "matmul", technique, 200, metric))
    return charts_html([charts.bars(list(results.values()), picks, "A 200 × 200 matrix product")], "")


def advice_printed() -> str:
    """What gpu-cookbook choose prints for ASKED and GPU_MACHINE."""
    known = choosing.Knowledge(stored.of(stored.GPU_MACHINE))
    out = Console(width=80, color_system=None)
    with out.capture() as captured:
        out.print(advice.advice(choosing.advise(ASKED, known), known, here=False, width=out.width))
    return "\n".join(map(str.rstrip, captured.get().splitlines())) + "\n"


# ---- Recipes.


def recipes_index():
    lines = ["# Recipes", "", "One page per workload, one tab per framework. Every script is checked. Each is also a"]
    lines += ["notebook, which installs what it needs: in Colab, choose *File*, then *Upload notebook*."]
    lines += [notebooks.CHARTS, ""]
    for workload, statement in catalogue.workloads().items():
        count = len(catalogue.of_workload(workload))
        lines.append(f"- [{workload}]({workload}.md): {statement.partition(': ')[2]} {count} recipes.")
    lines += ["", "Not there yet: a stencil, a scan, a sort, and a Fourier transform by itself. What people bring from"]
    lines += ["pandas, scikit-learn and SciPy came first: tables, regression, pca, convolution and norm."]
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *catalogue.workloads(), "```", ""])


def workload_page(workload):
    module = catalogue.workload_module(workload)
    frameworks = keyed(catalogue.of_workload(workload), lambda recipe: recipe.framework)
    sizes = ", ".join(map(module.label, module.SIZES))
    lines = [
        f"# {workload}",
        "",
        f"{catalogue.workloads()[workload]} Measured at {sizes}, and checked at the edge sizes, where kernels go"
        f" wrong (`EDGE_SIZES` in `recipes/{workload}/__init__.py`). All recipes are compared with this reference:",
        "",
        f"```{{literalinclude}} ../../recipes/{workload}/__init__.py",
        ":language: python",
        ":pyobject: reference",
        ":class: no-copybutton",  # it is not the recipe
        "```",
        "",
        "## Recipes",
        "",
        "Every script is self-contained: copy or download it, and run it. It makes its input, computes, and checks its"
        " own result. A short form that fits into 25 lines is beside it: what you would type in a notebook.",
        "",
        "::::::::{tab-set}",
        ":sync-group: framework",
        "",
    ]
    for framework, recipes in frameworks.items():
        lines += [f":::::::{{tab-item}} {framework}", f":sync: {stored.framework_key(framework)}", ""]
        if len(recipes) > 1:
            lines += ["::::::{tab-set}", ":sync-group: technique", ""]
            for recipe in recipes:
                lines += [f":::::{{tab-item}} {recipe.technique}", f":sync: {recipe.technique}", ""]
                lines += [*recipe_part(recipe), ":::::", ""]
            lines += ["::::::", ""]
        else:
            lines += recipe_part(recipes[0])
        lines += [":::::::", ""]
    lines += ["::::::::", ""]
    return "\n".join([*lines, *ladders(workload), *costs_of(workload)])


def recipe_part(recipe):
    """The content of a recipe's tab."""
    script = show.script(recipe)
    name = f"{recipe.workload}_{recipe.technique}"
    put(f"recipes/{recipe.workload}/{name}.py", script)
    forms, few = shown(f"{recipe.workload}/{name}.py"), short.short(recipe)
    if len(few.splitlines()) <= 25:  # a page has many, and may have a megabyte
        put(f"recipes/{recipe.workload}/{name}_short.py", few)
        tabs = {"safe": forms, "short": shown(f"{recipe.workload}/{name}_short.py")}
        forms = ["::::{tab-set}", ":sync-group: form", ""]
        for label, lines in tabs.items():
            forms += [f":::{{tab-item}} {label}", f":sync: {label}", "", *lines, ":::", ""]
        forms.append("::::")
    put(f"recipes/{recipe.workload}/{name}.ipynb", notebooks.notebook(recipe, name, script))
    facts = [f"Runs on: {recipe.runs_on}.", f"Install: `{recipe.install}`."]
    facts += [f"Needs `{recipe.needs}`."] * bool(recipe.needs) + [f"Arithmetic: {recipe.math}."] * bool(recipe.math)
    lines = [
        recipe.summary,
        "",
        " ".join(facts),
        "",
        recipe.notes.translate(ESCAPED),
        "",
        *forms,
        "",
        f"{{download}}`{name}.py <{recipe.workload}/{name}.py>`,"
        f" {{download}}`{name}.ipynb <{recipe.workload}/{name}.ipynb>`",
        "",
        *measured_of(recipe),
    ]
    neighbour = neighbour_of(recipe)
    difference, alike = changes(neighbour.path, recipe.path) if neighbour else ("", 0)
    if alike >= ALIKE:
        lines += [
            f":::{{dropdown}} What is different from {neighbour.technique}",
            "",
            "```diff",
            difference,
            "```",
            "",
            ":::",
            "",
        ]
    return lines


def shown(file):
    return [f"```{{literalinclude}} {file}", ":language: python", "```"]


def neighbour_of(recipe):
    """The recipe with which to compare it: the one whose name lacks its last words, or NumPy's."""
    there = {other.technique: other for other in catalogue.of_workload(recipe.workload) if other is not recipe}
    words = recipe.technique.split("_")
    names = ["_".join(words[:count]) for count in range(len(words) - 1, 0, -1)]
    return next((there[name] for name in (*names, "numpy") if name in there), None)


def changes(before, after):
    """(a unified diff of two files, the similarity of their lines, from 0 to 1)."""
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
    lines = difflib.unified_diff(old, new, before.name, after.name, n=2, lineterm="")
    return "\n".join(lines), difflib.SequenceMatcher(None, old, new).ratio()


def measured_of(recipe: catalogue.Recipe) -> list[str]:
    """The recipe's own results on every machine, as Markdown."""
    mine = [
        each
        for machine in stored.results()
        for each in stored.over_one_numpy(machine, recipe.workload)
        if each.technique == recipe.technique and each.ok
    ]
    if not mine:
        return ["There are no stored results for this recipe.", ""]
    rows = []
    for each in mine:
        machine = each.stored.machine
        device = each.value(Metric.DEVICE)
        rows.append(
            [
                f"[{markdown(machine)}](../machines/{machine}/{recipe.workload}.md)",
                each.label,
                stale(each) + markdown(timing(each, Metric.RESIDENT)),
                speedup(each, Metric.RESIDENT),
                markdown(timing(each, Metric.PREPARED)),
                markdown(timing(each, Metric.TRANSFER)),
                speedup(each, Metric.TRANSFER),
                markdown(timing(each, Metric.PINNED)),
                UNKNOWN if device is None else seconds(device),
            ]
        )
    head = ("machine", "size", "resident", "× NumPy", "prepared", "transfer", "× NumPy", "pinned", "device")
    # A recipe has no more columns than it has metrics: on a CPU, most of the others would be empty.
    columns = [column for column in zip(head, *rows, strict=True) if set(column[1:]) != {UNKNOWN}]
    lines = [f"| {' | '.join(line)} |" for line in zip(*columns, strict=True)]
    lines.insert(1, "| --- |" + " ---: |" * (len(columns) - 1))
    origins = dict.fromkeys(str(each.stored) for each in mine)
    changed = f" {STALE} The recipe has changed since it was measured." if any(each.stale for each in mine) else ""
    return [*lines, "", f"{markdown('; '.join(origins))}.{changed} [What the metrics mean](../how-we-measure.md).", ""]


def speedup(result: Result, metric: Metric) -> str:
    return UNKNOWN if result.is_numpy else ratio(result, metric)


@cache
def steps() -> list[limits.Step]:
    return list(limits.ladders(stored.every_result(), stored.GPU_MACHINE))


def ladders(workload: str) -> list[str]:
    """A table for each ladder of a workload."""
    mine = grouped((step for step in steps() if step.recipe.workload == workload), lambda step: step.ladder)
    if not mine:
        return []
    words = f"On {stored.GPU_MACHINE}. Each gain is relative to the step before."
    if any(step.result.stale for ladder in mine for step in ladder):
        words += f" {STALE} The recipe has changed since it was measured."
    lines = ["## Step by step", "", words, ""]
    for ladder in mine:
        lines += [f"| {ladder[0].ladder} | description | time | gain |", "| --- | --- | ---: | ---: |"]
        for step in ladder:
            time, gain = (unbroken(markdown(entry.text)) for entry in step.entries[-2:])
            lines.append(f"| {{recipe}}`{workload} {step.recipe.technique}` | {step.what} | {time} | {gain} |")
        lines.append("")
    return lines


def unbroken(text):
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def costs_of(workload: str) -> list[str]:
    """The charts below the recipes."""
    found = [drawn(chart, stored.GPU_MACHINE, workload) for chart in (charts.by_size, charts.costs)]
    return ["## What it costs", "", *fragment(workload, "", [], found, "../")]


def scaled(rows: list[Row]) -> list[charts.Chart | None]:
    return [scaling_charts.scaling(rows, kind, mode) for kind in ("core", "GPU") for mode in ("strong", "weak")]


@cache  # those of GPU_MACHINE are on two pages
def drawn(chart, machine, workload):
    return chart(stored.of(machine, workload))


# ---- The ways from host to host.


def write_transfers():
    """What docs/transfers.md includes: the tables, and the drawings of each step."""
    every = stored.transferred()
    shown = {name: tables_html([timelines.ladder(kept), timelines.copies(kept)], "") for name, kept in every.items()}
    put("generated/transfers.md", by_machine(shown))
    small = {name: timelines.small(kept) for name, kept in every.items()}
    there = {name: table_html(table, "") for name, table in small.items() if table.rows}
    put("generated/transfers-small.md", by_machine(there))
    for step in timelines.DRAWN:
        drawn, reasons = {}, {}
        for name, kept in every.items():
            chart, about = timelines.timeline(kept, step), kept.steps.get(step)
            if chart:
                drawn[name] = charts_html([chart], "")
            elif about and about.reason:
                reasons[name] = f"<p>Not measured on {html.escape(name)}: {html.escape(about.reason)}.</p>\n"
        put(f"generated/transfers-{step}.md", by_machine(drawn or reasons))


def write_launches():
    """What docs/launches.md includes: a chart of each machine, with its numbers, that with most frameworks first."""
    drawn = {name: chart for name, ways in stored.launched().items() if (chart := launches.launches(ways))}
    first = sorted(drawn, key=lambda name: -len({each["framework"] for each in drawn[name].table.records}))
    put("generated/launches.md", by_machine({name: charts_html([drawn[name]], "") for name in first}, "launches.py"))


def write_all_reduce():
    """What docs/all-reduce.md includes: for each machine, a chart and a table for each number of GPUs."""
    drawn = {name: all_reduce.all_reduces(ways) for name, ways in stored.reduced().items()}
    parts = {name: charts_html(charts, "") for name, charts in drawn.items() if charts}
    put("generated/all-reduce.md", by_machine(parts, "all_reduce.py"))


def write_concepts():
    """What docs/concepts.md includes: a drawing of the memories with their numbers, and the table of each machine."""

    def shown(number):
        if number is None:
            return "not measured yet", ""
        return STALE * number.stale + number.text, str(number.origin)

    rungs = {"registers": (None, None)}
    for name, label in (("shared", "shared memory, L1"), ("l2", "L2"), ("device", "device memory")):
        numbers = (stored.concept(f"memories_{name}_{what}") for what in ("latency", "read rate"))
        rungs[label] = tuple(map(shown, numbers))
    rungs["host memory"] = (None, shown(stored.moved("limit_up rate")))
    put(
        "generated/memories.md",
        "\n".join(["```{raw} html", f'<div class="scroll wide">{concepts.ladder(rungs)}</div>', "```", ""]),
    )
    parts = {name: table_html(concepts.stored(run), "") for name, run in stored.conceptual().items()}
    put("generated/concepts.md", by_machine(parts, "concepts.py"))


def write_together():
    """What docs/together.md includes: the tables of each machine, and what allocates from one pool there."""
    found = stored.handed_over()
    shown = {name: tables_html(together.stored(those), "") for name, those in found.items()}
    put("generated/together.md", by_machine(shown, "together.py"))
    pools = {name: together.pool(those) for name, those in found.items()}
    there = {name: table_html(table, "") for name, table in pools.items() if table}
    put("generated/together-pool.md", by_machine(there, "together.py"))


def by_machine(parts: dict[str, str], script: str = "transfers.py") -> str:
    """HTML of one or several machines, in tabs; or that there is none, and which of the benchmarks makes it."""
    if not parts:
        return f"Not measured yet: `python benchmarks/{script} --save NAME` does so on a machine with a GPU.\n"
    raw = {name: ["```{raw} html", text, "```"] for name, text in parts.items()}
    if len(raw) == 1:
        (lines,) = raw.values()
        return "\n".join([*lines, ""])
    lines = ["::::{tab-set}", ":sync-group: machine", ""]
    for name, text in raw.items():
        lines += [f":::{{tab-item}} {markdown(name)}", f":sync: {name}", "", *text, ":::", ""]
    return "\n".join([*lines, "::::", ""])


# ---- Machines.


def machines_list() -> str:
    lines = []
    for machine, results in stored.results().items():
        devices = " and ".join(sorted({each.device for each in results if each.device}))
        link = f"[{markdown(machine)}](machines/{machine}.md)"
        ending = f", {sender}" if (sender := sent_by(machine)) else ""
        lines.append(f"- {link}: {markdown(devices)}, {sum(each.ok for each in results)} results{ending}")
    return "\n".join(
        [*lines, "", "```{toctree}", ":hidden:", "", *(f"machines/{name}" for name in stored.results()), "```", ""]
    )


def besides() -> str:
    """The other GPUs beside GPU_MACHINE, each in a table; or that there are none."""
    every = stored.compared()
    mine = every.get(stored.GPU_MACHINE, [])
    found = [beside.beside(mine, other) for machine, other in every.items() if machine != stored.GPU_MACHINE]
    return tables_html(found, "") or "<p>No two GPUs have results of today's recipes.</p>\n"


def full_measurement() -> str:
    """How long the results that are shown of GPU_MACHINE took, by workload."""

    def row(name: str, mine: list[Result]) -> tuple[Entry, ...]:
        known = [each.took for each in mine if each.took]
        minutes = digits(sum(known) / 60) if known else UNKNOWN
        return Entry(name), Entry(str(len(mine))), Entry(str(len(known))), Entry(minutes)

    every = stored.of(stored.GPU_MACHINE)
    rows = [row(mine[0].workload, mine) for mine in grouped(every, lambda each: each.workload)]
    title = f"What it took to measure the results of {stored.GPU_MACHINE}"
    head = ("workload", "results", "with a known time", "minutes of these")
    return table_html(Table(title, head, "lrrr", [*rows, row("all", every)], [], []), "")


def sent_by(machine: str) -> str:
    """'sent by Ada', as Markdown; nothing if nobody is named."""
    senders = {each.stored.contributor for each in stored.of(machine)} - {None}
    return f"sent by {markdown(' and '.join(sorted(senders)))}" if senders else ""


def machine_page(machine: str) -> str:
    """What all workloads have in common on a machine; below it, a page for each workload."""
    results = stored.of(machine)
    workloads = [name for name in catalogue.workloads() if any(each.workload == name for each in results)]
    for name in workloads:
        put(f"machines/{machine}/{name}.md", measured_page(machine, name))
    links = [f"[{name}]({machine}/{name}.md)" for name in workloads]
    lines = [*UNSEARCHED, f"# {markdown(machine)}", ""]
    lines += [
        f"What is shown of each recipe. How its times moved from commit to commit: [history](../history/{machine}.md).",
        "",
    ]
    lines += [f"These results were {sent_by(machine)}.", ""] * bool(sent_by(machine))
    lines += [f"Every size and metric, and the charts, by workload: {', '.join(links)}.", ""]
    overall = [charts.share_of_limit(results), charts.roofline(results)]
    lines += [*legend(), "## All workloads", ""]
    lines += fragment(f"{machine}-all", filters(results), tables.overviews(results), overall, "../")
    if rows := stored.scaled_of(machine):
        found = [table for table in scaling_tables.build_tables(rows) if table.rows]
        lines += ["## From one core to every GPU", ""]
        lines += fragment(f"{machine}-scaling", "", found, scaled(rows), "../")
    if machine in stored.limited():
        reached, _ = limits.of_machine(stored.limited()[machine], stored.every_result())
        lines += ["## The fastest recipes and their targets", ""]
        lines += fragment(f"{machine}-limits", "", [reached], [], "../")
    lines += ["```{toctree}", ":hidden:", "", *(f"{name} <{machine}/{name}>" for name in workloads), "```", ""]
    return "\n".join(lines)


def measured_page(machine: str, workload: str) -> str:
    """What was measured of one workload on one machine."""
    mine = stored.of(machine, workload)
    panels = [
        drawn(charts.by_size, machine, workload),
        charts.by_size(mine, Metric.TRANSFER),
        charts.by_size(mine, Metric.PINNED),
        drawn(charts.costs, machine, workload),
        charts.cold_start(mine),
    ]
    lines = [*UNSEARCHED, f"# {workload} on {markdown(machine)}", ""]
    lines += [f"The results of [its recipes](../../recipes/{workload}.md). How they moved from commit to commit:"]
    lines += [f"[history](../../history/{machine}/{workload}.md).", "", *legend()]
    name, root = f"{machine}-{workload}", "../../"
    lines += fragment(name, filters(mine), [], [], root)
    found = tables.measured(mine, known=stored.of(machine))
    for metric in Metric:  # one heading for all environments, whose notes follow the tables
        if its := [replace(table, notes=()) for table in found if table.metric == metric]:
            lines += [f"## {metric.capitalize()}", "", *fragment(f"{name}-{anchor(metric)}", "", its, [], root)]
    notes = dict.fromkeys(note for table in found for note in table.notes if note.text not in tables.legend())
    lines += ["## How it was measured", "", *fragment(f"{name}-notes", html_page.below(notes), [], [], root)]
    if any(panels):
        lines += ["## Charts", "", *fragment(f"{name}-charts", "", [], panels, root)]
    return "\n".join(lines)


def legend() -> list[str]:
    return [":::{dropdown} What the marks mean", markdown(tables.legend()), ":::", ""]


def fragment(name: str, form: str, found: Iterable[Table], drawn: list[charts.Chart | None], root: str) -> list[str]:
    """The lines that include the file of these tables and charts."""
    put(f"generated/{name}.html", form + tables_html(found, root) + charts_html(drawn, root))
    return ["```{raw} html", f":file: {root}generated/{name}.html", "```", ""]


def filters(results: list[Result]) -> str:
    """The form that hides rows: site.js acts on it."""
    frameworks = sorted({each.framework for each in results}, key=str.lower)
    parts = ['<form class="filters" aria-label="Rows to show">']
    for name, options in (("framework", frameworks), ("lane", ("idiomatic", "tuned"))):
        choices = "".join(f"<option>{html.escape(option)}</option>" for option in options)
        parts.append(f'<label>{name} <select name="{name}"><option value="">all</option>{choices}</select></label>')
    return "".join([*parts, "</form>\n"])


# ---- History.


def history_list() -> str:
    """The machines, newest results first; or that there are none."""
    lines = []
    for machine in stored.results():
        mine = stored.past(machine)
        steps = [step for step in history.every(mine) if step.counts]
        verdicts = Counter(step.verdict for step in steps)
        found = " and ".join(f"{verdicts[verdict]} {verdict}" for verdict in ("faster", "slower") if verdicts[verdict])
        commits = len(history.commits_of(mine))
        words = f"{counted(commits, 'commit')}; {f'steps: {found}' if found else 'no step'}"
        if alone := sum(step.changed_with(stored.recipe_changed) == [history.MACHINE] for step in steps):
            words += f"; at {alone} of them, nothing is known to have changed but the machine"
        lines.append(f"- [{markdown(machine)}](history/{machine}.md): {words}")
    if not lines:
        return "Nothing is stored yet.\n"
    return "\n".join(
        [*lines, "", "```{toctree}", ":hidden:", "", *(f"history/{name}" for name in stored.results()), "```", ""]
    )


def history_page(machine: str) -> str:
    """The commits of a machine, and how often which verdict was given; below it, a page for each workload."""
    mine = stored.past(machine)
    workloads = [name for name in catalogue.workloads() if any(each.workload == name for each in mine)]
    for name in workloads:
        put(f"history/{machine}/{name}.md", moves_page(machine, name))
    found = [
        history.summary(mine, lambda workload: f"{machine}/{workload}.html"),
        history.commits_table(mine, stored.commit_address),
    ]
    lines = [*UNSEARCHED, f"# {markdown(machine)}, history", ""]
    lines += [f"What is shown of each recipe is in the [tables](../machines/{machine}.md). Each verdict compares a"]
    lines += ["result with an earlier one of the same recipe: [how steps are found](../history.md#the-steps)."]
    lines += ["", *fragment(f"{machine}-history", "", found, [], "../"), "```{toctree}", ":hidden:"]
    return "\n".join([*lines, "", *(f"{name} <{machine}/{name}>" for name in workloads), "```", ""])


def moves_page(machine: str, workload: str) -> str:
    """How one workload moved on one machine."""
    mine = stored.past(machine, workload)
    name, root = f"{machine}-{workload}-history", "../../"
    turned = history.turns_table(mine)
    found = [history.steps_table(mine, stored.recipe_changed, stored.commit_address), *[turned] * bool(turned.rows)]
    moved = [history.moved(mine, metric) for metric in history.METRICS]
    lines = [*UNSEARCHED, f"# {workload} on {markdown(machine)}, history", ""]
    lines += ["How [steps are found](../../history.md#the-steps), and how to"]
    lines += ["[read the charts](../../history.md#the-charts).", "", "## Steps", ""]
    lines += [*fragment(name, filters(mine), found, [], root), "## Charts", ""]
    return "\n".join([*lines, *fragment(f"{name}-charts", "", [], moved, root)])


# ---- HTML.


def table_html(table: Table, root: str) -> str:
    """``root``: the relative path to the root of the site."""
    # In an overview, numbers name their recipes only so that their rows can be filtered: they are not linked.
    return html_page.html_of(table, site(root, links=not table.workloads))


def tables_html(found: Iterable[Table | None], root: str) -> str:
    return "".join(table_html(table, root) for table in found if table)


def charts_html(drawn: list[charts.Chart | None], root: str) -> str:
    return "".join(html_page.figure(chart, site(root)) for chart in drawn if chart)


def site(root: str, links: bool = True) -> Site:
    """Recipes link to their tabs, and rows name their framework and their lane, so that they can be filtered."""

    def address(recipe: Recipe) -> str | None:
        if not links or catalogue.find(*recipe) is None:
            return None
        page, query = recipe_place(*recipe)
        return f"{root}{page}.html{query}"

    def about(recipe: Recipe) -> dict[str, str]:
        found, technique = catalogue.find(*recipe), recipe[1]
        # The framework of a removed recipe is not known: its Results have the technique instead.
        return {"framework": found.framework if found else technique, "lane": catalogue.lane_of(technique)}

    return Site(address, about)
