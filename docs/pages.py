"""What is written from recipes/ and benchmarks/results before Sphinx reads the pages: a page a workload in recipes/, a
page a machine in machines/, and the parts that other pages include, in generated/. Git ignores all three."""

import ast
import difflib
import html
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import limits  # benchmarks/limits.py: conf.py puts its folder on the path
import nbformat
import stored
from figures import recipe_place

from gpu_cookbook import catalogue, show
from gpu_cookbook.render import charts, html_page, tables
from gpu_cookbook.render.report import digits, seconds, timing
from gpu_cookbook.run import scale

HERE = Path(__file__).parent
ALIKE = 0.5  # of two files' lines: below it a diff is longer than the file
PICKS = (  # of the first page: a small product on the CPU, on the GPU, and with both transfers
    ("numpy", "resident"),
    ("cupy", "resident"),
    ("cupy", "transfer"),
    ("torch", "resident"),
    ("torch", "transfer"),
)
MOVES = (  # of docs/moving: before and after
    ("standardise_numpy", "standardise_cupy"),
    ("stencil_pycuda", "stencil_numba"),
    ("stencil_pycuda", "stencil_cupy"),
    ("fit_torch_cpu", "fit_torch_gpu"),
    ("standardise_numpy", "standardise_dask"),
)
ESCAPED = str.maketrans({sign: f"\\{sign}" for sign in "*_<~"})  # in prose that is no Markdown
HEADER = re.compile(r'(<th scope="row">(?:<strong>)?)(\w+)')  # of a row
written = set()  # in this run


def setup(app):
    app.connect("builder-inited", lambda app: write())
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write():
    for workload in catalogue.workloads():
        put(f"recipes/{workload}.md", workload_page(workload))
    put("recipes/index.md", recipes_index())
    for machine in stored.results():
        put(f"machines/{machine}.md", machine_page(machine))
    frameworks, engines = tables.abilities()
    put("generated/frameworks.html", table_html(frameworks, ""))
    put("generated/engines.html", table_html(engines, ""))
    for before, after in MOVES:
        difference, _ = changes(*(HERE / "moving" / f"{name}.py" for name in (before, after)))
        put(f"generated/{after}.diff", difference)
    put("generated/machines.md", machines_list())
    shown = printed([sys.executable, HERE.parent / "benchmarks" / "limits.py", "--show"])
    shown = re.sub(r"(?<=\| )[^|\n]{,14}\d[^|\n]{,14}(?= \|)", lambda cell: unbroken(cell[0]), shown)
    put("generated/limits.md", shown)
    put("generated/command.md", printed([sys.executable, "-m", "typer", "gpu_cookbook.cli", "utils", "docs", "--name",
                                         "gpu-cookbook"]).partition("\n")[2])  # fmt: skip
    rows = stored.scaled()
    story, *others = scale.drawn(rows)
    put("generated/story.html", table_html(story, ""))
    put("generated/scaling.html", "".join(table_html(table, "", scale.WORKLOAD) for table in others))
    panels = [charts.scaling(rows, kind, mode) for kind in ("core", "GPU") for mode in ("strong", "weak")]
    put("generated/scaling-charts.html", "".join(chart_html(chart, "", scale.WORKLOAD) for chart in panels if chart))
    put("generated/first.html", first_chart())
    put("generated/story-chart.html", chart_html(charts.story(rows), ""))
    for folder in ("recipes", "machines", "generated"):
        for path in (HERE / folder).rglob("*.*"):
            if path not in written:  # of a recipe or a machine that is gone
                path.unlink()


def put(name, text):
    """Writes a file only where it differs, so that Sphinx reads only such pages again."""
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    written.add(path)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def printed(command):
    return subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True).stdout


def first_chart():
    cells = {c["technique"]: c for c in stored.of(stored.GPU_MACHINE, "matmul") if c["size"] == 200}
    picks = []
    for technique, figure in PICKS:
        cell = cells[technique]
        device = cell["device"].rpartition(", ")[2]  # of a processor: its cores
        words = (cell["framework"], device, *["with transfers"] * (figure == "transfer"))
        picks.append((", ".join(words), "matmul", technique, 200, figure))
    return chart_html(charts.bars(list(cells.values()), picks, "A 200 × 200 matrix product"), "")


# ---- Recipes.


def recipes_index():
    lines = ["# Recipes", "", "One page a workload, one tab a framework. Every script is checked against NumPy.", ""]
    for workload, statement in catalogue.workloads().items():
        count = sum(recipe.workload == workload for recipe in catalogue.recipes())
        lines.append(f"- [{workload}]({workload}.md): {statement.partition(': ')[2]} {count} recipes.")
    lines += ["", "## What goes wrong when one is not written so", ""]
    lines += ["Each of these is a recipe in `tests/wrong`: it must be rejected, or cost its own cells only.", ""]
    for path in sorted((HERE.parent / "tests" / "wrong").glob("*/with_*.py")):
        what = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).partition("\n")[0]
        lines.append(f"- `{path.parent.name}/{path.name}`: {what.removeprefix('Wrong: ')}")
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *catalogue.workloads(), "```", ""])


def workload_page(workload):
    module = catalogue.workload_module(workload)
    mine = catalogue.choose([workload])
    frameworks = {}
    for recipe in mine:
        frameworks.setdefault(recipe.framework, []).append(recipe)
    sizes = ", ".join(map(module.label, module.SIZES))
    lines = [
        f"# {workload}",
        "",
        f"{catalogue.workloads()[workload]} Measured at {sizes}; checked at sizes where kernels go wrong"
        f" (`EDGE_SIZES` in `recipes/{workload}/__init__.py`). The reference that all are held against:",
        "",
        f"```{{literalinclude}} ../../recipes/{workload}/__init__.py",
        ":language: python",
        ":pyobject: reference",
        ":class: no-copybutton",  # it is not the recipe
        "```",
        "",
        "## Recipes",
        "",
        "Every script stands alone: copy it, or download it, and run it. It makes its input, computes, and checks"
        " itself.",
        "",
        ":::::::{tab-set}",
        ":sync-group: framework",
        "",
    ]
    for framework, recipes in frameworks.items():
        lines += [f"::::::{{tab-item}} {framework}", f":sync: {stored.framework_key(framework)}", ""]
        if len(recipes) > 1:
            lines += [":::::{tab-set}", ":sync-group: technique", ""]
            for recipe in recipes:
                lines += [f"::::{{tab-item}} {recipe.technique}", f":sync: {recipe.technique}", ""]
                lines += [*recipe_part(recipe), "::::", ""]
            lines += [":::::", ""]
        else:
            lines += recipe_part(recipes[0])
        lines += ["::::::", ""]
    lines += [":::::::", ""]
    return "\n".join([*lines, *ladders(workload), *costs_of(workload)])


def recipe_part(recipe):
    """What stands in a recipe's tab."""
    script = show.script(recipe)
    name = f"{recipe.workload}_{recipe.technique}"
    put(f"recipes/{recipe.workload}/{name}.py", script)
    put(f"recipes/{recipe.workload}/{name}.ipynb", notebook(recipe, name, script))
    facts = [f"Runs on: {recipe.runs_on}.", f"Install: `{recipe.install}`."]
    facts += [f"Needs `{recipe.needs}`."] * bool(recipe.needs) + [f"Arithmetic: {recipe.math}."] * bool(recipe.math)
    lines = [
        recipe.summary,
        "",
        " ".join(facts),
        "",
        recipe.notes.translate(ESCAPED),
        "",
        f"```{{literalinclude}} {recipe.workload}/{name}.py",
        ":language: python",
        "```",
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
            f":::{{dropdown}} What changed from {neighbour.technique}",
            "",
            "```diff",
            difference,
            "```",
            "",
            ":::",
            "",
        ]
    return lines


def notebook(recipe, name, script):
    """The script as a notebook: what it installs, its functions, and its run."""
    made, _, run = script.partition('\nif __name__ == "__main__":\n')
    cells = [nbformat.v4.new_markdown_cell(recipe.summary), nbformat.v4.new_code_cell(f"%{recipe.install}")]
    if "import multiprocessing" in script:  # its processes import the functions, which a notebook does not let them
        cells += [f"%%writefile {name}.py\n{script.rstrip()}", f"!python {name}.py"]
    else:
        cells += [made.rstrip(), f'if __name__ == "__main__":\n{run.rstrip()}']
    cells[2:] = map(nbformat.v4.new_code_cell, cells[2:])
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # else a random one
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells)) + "\n"


def neighbour_of(recipe):
    """The recipe that it is best read against: of the name without its last words, or NumPy's."""
    there = {other.technique: other for other in catalogue.choose([recipe.workload]) if other is not recipe}
    words = recipe.technique.split("_")
    names = ["_".join(words[:count]) for count in range(len(words) - 1, 0, -1)]
    return next((there[name] for name in (*names, "numpy") if name in there), None)


def changes(before, after):
    """(a unified diff of two files, the share of their lines that both have)."""
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
    lines = difflib.unified_diff(old, new, before.name, after.name, n=2, lineterm="")
    return "\n".join(lines), difflib.SequenceMatcher(None, old, new).ratio()


def measured_of(recipe):
    """The recipe's own cells on every machine, as Markdown."""
    mine = [
        cell
        for machine in stored.results()
        for cell in stored.of(machine, recipe.workload)
        if cell["technique"] == recipe.technique and cell["status"] == "ok"
    ]
    if not mine:
        return ["Not measured on a stored machine.", ""]
    head = ("machine", "size", "resident", "× NumPy", "with transfers", "× NumPy, resident", "device")
    lines = [f"| {' | '.join(head)} |", "| --- | ---: |" + " ---: |" * (len(head) - 2)]
    for cell in mine:
        texts = [
            f"[{cell['machine']}](../machines/{cell['machine']}.md)",
            stored.size_label(cell),
            "†" * cell["stale"] + timing(cell, "resident").translate(ESCAPED),
            speedup(cell, "resident"),
            timing(cell, "transfer").translate(ESCAPED),
            speedup(cell, "transfer"),
            seconds(cell["device_s"]) if "device_s" in cell else "–",
        ]
        lines.append(f"| {' | '.join(texts)} |")
    origins = dict.fromkeys(map(stored.origin, mine))
    stale = " † the recipe has changed since." if any(cell["stale"] for cell in mine) else ""
    return [*lines, "", f"{'; '.join(origins)}.{stale} [What the figures are](../how-we-measure.md).", ""]


def speedup(cell, figure):
    value = cell.get(f"speedup_{figure}_x")
    return digits(value) if value and cell["technique"] != "numpy" else "–"


@cache
def steps():
    """{ladder: its steps}, of all workloads."""
    found = {}
    for ladder, *step in limits.ladders(stored.GPU_MACHINE):
        found.setdefault(ladder, []).append(step)
    return found


def ladders(workload):
    """A table a ladder."""
    rungs = {ladder: mine for ladder, mine in steps().items() if ladder.startswith(f"{workload} ")}
    if not rungs:
        return []
    lines = ["## Step by step", "", f"On {stored.GPU_MACHINE}; the gain is over the step before.", ""]
    for ladder, mine in rungs.items():
        lines += [f"| {ladder} | what it is | time | gain |", "| --- | --- | ---: | ---: |"]
        for technique, what, time, gain in mine:
            lines.append(f"| {{recipe}}`{workload} {technique}` | {what} | {unbroken(time)} | {unbroken(gain)} |")
        lines.append("")
    return lines


def unbroken(text):
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def costs_of(workload):
    """The charts below the recipes."""
    cells = stored.of(stored.GPU_MACHINE, workload)
    drawn = [charts.by_size(cells), charts.costs(cells)]
    name = f"generated/{workload}.html"
    put(name, "".join(chart_html(chart, "../", workload) for chart in drawn if chart))
    return ["## What it costs", "", "```{raw} html", f":file: ../{name}", "```", ""]


# ---- Machines.


def machines_list():
    lines = []
    for machine in stored.results():
        cells = stored.of(machine)
        devices = " and ".join(sorted({cell["device"] for cell in cells if cell["device"]}))
        lines.append(
            f"- [{machine}](machines/{machine}.md): {devices}, {sum(cell['status'] == 'ok' for cell in cells)} figures"
        )
    return "\n".join(
        [*lines, "", "```{toctree}", ":hidden:", "", *(f"machines/{name}" for name in stored.results()), "```", ""]
    )


def machine_page(machine):
    cells = stored.of(machine)
    found = tables.measured(cells)
    lines = [
        f"# {machine}",
        "",
        tables.LEGEND.translate(ESCAPED),
        "",
        "```{raw} html",
        f":file: ../generated/{machine}-filter.html",
        "```",
        "",
    ]
    put(f"generated/{machine}-filter.html", filters(cells))
    # Where there is one workload only, there is no table of all; where two environments were used, there are two.
    of_all = [table for table in found if not table.title.startswith(tuple(f"{w}, " for w in catalogue.workloads()))]
    overall = [charts.share_of_limit(cells), charts.roofline(cells)]
    lines += fragment(f"{machine}-all", of_all, overall, "## All workloads")
    for workload in catalogue.workloads():
        own = [table for table in found if table.title.startswith(f"{workload}, ")]
        mine = stored.of(machine, workload)
        drawn = [charts.by_size(mine), charts.by_size(mine, "transfer"), charts.costs(mine), charts.cold_start(mine)]
        if own:
            lines += fragment(f"{machine}-{workload}", own, drawn, f"## {workload}", workload)
    return "\n".join(lines)


def fragment(name, found, drawn, heading, workload=None):
    parts = [table_html(table, "../", workload) for table in found]
    parts += [chart_html(chart, "../", workload) for chart in drawn if chart]
    put(f"generated/{name}.html", "".join(parts))
    return [heading, "", "```{raw} html", f":file: ../generated/{name}.html", "```", ""]


def filters(cells):
    """The form that hides rows: site.js acts on it."""
    frameworks = sorted({cell["framework"] for cell in cells}, key=str.lower)
    parts = ['<form class="filters" aria-label="Rows to show">']
    for name, options in (("framework", frameworks), ("lane", ("idiomatic", "tuned"))):
        choices = "".join(f"<option>{html.escape(option)}</option>" for option in options)
        parts.append(f'<label>{name} <select name="{name}"><option value="">all</option>{choices}</select></label>')
    return "".join([*parts, "</form>\n"])


# ---- HTML.


def table_html(table, root, workload=None):
    return on_the_site(tables.html_of(table), root, workload)


def chart_html(chart, root, workload=None):
    return on_the_site(html_page.figure(chart), root, workload)


def on_the_site(text, root, workload):
    """The tool's HTML with what the site adds: recipes link to their tabs, so do the techniques of a workload's table,
    and rows that can be filtered say of which framework and lane they are. ``root``: the way to the site's folder."""
    techniques = {recipe.technique: recipe for recipe in catalogue.recipes()}
    own = {recipe.technique for recipe in catalogue.recipes() if recipe.workload == workload}

    def row(found):
        recipe = next((techniques[name] for name in re.findall(r">(\w+)<", found[1]) if name in techniques), None)
        about = f' data-framework="{recipe.framework}" data-lane="{recipe.lane}"' if recipe else ""
        return f"<tr{about}>{re.sub(HEADER, named, found[1])}</tr>"

    def named(found):
        before, technique = found.groups()
        return f'{before}<a href="{place(workload, technique)}">{technique}</a>' if technique in own else found[0]

    def place(*words):
        name, query = recipe_place(*words)
        return f"{root}{name}.html{html.escape(query)}"

    def link(found):
        return f'href="{place(*found.groups())}"'

    text = re.sub(r"<tr>(.*?)</tr>", row, text, flags=re.DOTALL)
    return re.sub(r'href="recipes/(\w+)/with_(\w+)\.py"', link, text)
