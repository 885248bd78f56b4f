"""The command line. Each command's docstring is its help."""

import contextlib
import enum
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import format
from gpu_cookbook.results import Result, Size, Status, completed, of_lane, record
from gpu_cookbook.run import compare as comparing

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

BUSY = 0.3  # cores; with one of two taken, PyTorch on both was seen to take 8 ms for what takes 6 µs alone
EXAMPLE = ("multiply", "numpy")  # the recipe to look at first
PIPE_WIDTH = 160  # characters, where the output is not a terminal: a file has no edge


class TableFormat(enum.StrEnum):
    """How results are written: those of a comparison, and stored ones."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"
    html = "html"


class Lane(enum.StrEnum):
    """What a recipe is written for: to be read, or to be fast."""

    idiomatic = "idiomatic"
    tuned = "tuned"


@app.callback()
def main() -> None:
    """The same workloads in every Python GPU framework: see them, check them, measure them side by side."""
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)  # as Ctrl-C: what was measured is kept, no process left


Workloads = Annotated[
    list[str] | None, typer.Argument(metavar="[WORKLOAD]...", help="Which workloads. All, if left out.")
]
Techniques = Annotated[
    list[str] | None, typer.Option("--technique", "-t", metavar="T", help="Only this technique. Can be repeated.")
]
OneLane = Annotated[
    Lane | None,
    typer.Option("--lane", help="Only recipes as the documentation has them, or only those tuned to be fast."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def console() -> Console:
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def fail(message: str) -> NoReturn:
    """Bad input: what to do, on standard error, exit 2."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(message))
    raise typer.Exit(2)


def choose(
    workloads: Sequence[str] | None, techniques: Sequence[str] | None, lane: str | None = None
) -> list[catalogue.Recipe]:
    try:
        return catalogue.choose(workloads or (), techniques or (), lane)
    except (catalogue.UnknownName, catalogue.BrokenRecipe) as error:
        fail(str(error))


def progress() -> Progress:
    """On a terminal a bar on standard error; in a pipe nothing."""
    err = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


@app.command("list")
def list_recipes(lane: OneLane = None, as_json: AsJson = False) -> None:
    """Show every workload and technique, and what runs on this machine, in this environment."""
    recipes = choose((), (), lane)
    obstacles = {recipe: machine.obstacle(recipe) for recipe in recipes}
    if as_json:
        print(format.as_json([_listed(recipe, obstacle) for recipe, obstacle in obstacles.items()]), end="")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("technique", no_wrap=True)
    table.add_column("lane", no_wrap=True)
    for workload in catalogue.workloads():
        table.add_column(workload.replace("random_subset_mean", "random_\nsubset_mean"), justify="center", no_wrap=True)
    table.add_column("why not here")
    for technique in sorted({recipe.technique for recipe in recipes}, key=lambda name: (name != "numpy", name)):
        mine = {recipe.workload: obstacles[recipe] for recipe in recipes if recipe.technique == technique}
        marks = [
            "" if workload not in mine else "[red]no[/]" if mine[workload] else "[green]yes[/]"
            for workload in catalogue.workloads()
        ]
        reasons = "; ".join(dict.fromkeys(filter(None, mine.values())))
        table.add_row(technique, catalogue.lane_of(technique), *marks, Text(reasons, style="dim"))
    console().print(table)
    running = [recipe for recipe, obstacle in obstacles.items() if not obstacle]
    one = min(running or recipes, key=lambda recipe: (recipe.workload, recipe.technique) != EXAMPLE)
    others = [name for name in catalogue.environments() if name != machine.environment()]
    environment = f" in the environment {machine.environment()} (there is also: {', '.join(others)})" if others else ""
    console().print(
        f"{len(recipes)} recipes, {len(running)} of which run here{environment}. One of them: gpu-cookbook show"
        f" {one.workload} {one.technique}"
    )


def _listed(recipe: catalogue.Recipe, obstacle: str | None) -> dict[str, object]:
    return {
        "workload": recipe.workload,
        "technique": recipe.technique,
        "framework": recipe.framework,
        "lane": recipe.lane,
        "environment": recipe.environment,
        "runs_on": recipe.runs_on,
        "runs_here": obstacle is None,
        "reason": obstacle,
        "summary": recipe.summary,
    }


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Examine this machine: GPUs, driver, compilers, OpenCL, frameworks; and how to mend what does not fit.

    Exits with 1 if something that is installed does not work.
    """
    from gpu_cookbook import doctor as examination  # imports more than 'list' can afford

    findings = examination.examine()
    if as_json:
        print(format.as_json(examination.as_json(findings)), end="")
    else:
        console().print(examination.table(findings))
    if any(finding.status == "broken" for finding in findings):
        raise typer.Exit(1)


@app.command()
def show(
    workload: Annotated[str, typer.Argument(help="For example multiply.")],
    technique: Annotated[str, typer.Argument(help="For example cupy_raw.")],
) -> None:
    """Print a recipe as one script that needs nothing of this project: ready to paste, or to redirect into a file."""
    from gpu_cookbook.show import script

    (recipe,) = choose([workload], [technique])
    sys.stdout.write(script(recipe))


@app.command()
def check(
    workloads: Workloads = None,
    techniques: Techniques = None,
    lane: OneLane = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 also for a recipe that was skipped: for a GPU machine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every recipe that runs here against NumPy, at the sizes, layouts and values where kernels go wrong.

    Exits with 1 on a wrong answer.
    """
    from gpu_cookbook.render import tables, text

    recipes = choose(workloads, techniques, lane)
    results: list[Result] = []
    interrupted = False
    with progress() as bar:
        task = bar.add_task("checking", total=len(recipes))
        try:
            for found in comparing.check(recipes):
                results += found
                bar.advance(task)
        except KeyboardInterrupt:
            interrupted = True
    order = {(recipe.workload, recipe.technique): number for number, recipe in enumerate(recipes)}
    results.sort(key=lambda each: order[each.workload, each.technique])
    if as_json:
        print(format.as_json([record(each) for each in results]), end="")
    else:
        out = console()
        out.print(text.terminal([tables.checked(results)], out.width))
    leave(results, interrupted, strict)


@app.command()
def compare(
    workloads: Workloads = None,
    techniques: Techniques = None,
    lane: OneLane = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            "-s",
            metavar="S",
            help="Only this size: elements, or the side of a square: 40000, 1_000_000, 2**28. Can be repeated. "
            "Without it the headline sizes; without a GPU the two smaller ones.",
        ),
    ] = None,
    form: Annotated[TableFormat, typer.Option("--format", help="How to write the result.")] = TableFormat.table,
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the results in asv's files, under benchmarks/results, as they come.")
    ] = False,
    machine_name: Annotated[
        str | None,
        typer.Option("--machine", metavar="M", help="With --save: this machine's name there. Else the host's."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --save: measure only what is not stored yet for this commit.")
    ] = False,
) -> None:
    """Check every recipe that runs here, then measure them side by side.

    NumPy is always measured too, since the speedups are against it. Each recipe runs in a process of its own: one that
    crashes or hangs costs its own results only. Ctrl-C keeps and shows what was measured. Exits with 1 if a result
    failed or was refused.
    """
    recipes = comparing.with_numpy(choose(workloads, techniques, lane))
    writer = writer_for(save, machine_name, resume, sizes)
    chosen = {workload: sizes_of(workload, sizes) for workload in dict.fromkeys(r.workload for r in recipes)}
    if output:
        try:
            output.open("a", encoding="utf-8").close()  # now, not after minutes of measuring
        except OSError as error:
            fail(cannot_write(output, error))

    warn_of_others()
    comparison = comparing.Comparison(recipes, chosen, writer.done() if resume else {})
    results = comparison.found()
    if results:
        print(f"{len(results)} results are stored already", file=sys.stderr)
    interrupted = False
    unsaved: OSError | None = None
    with progress() as bar:
        total = sum(len(left) for _, left in comparison.left())
        task = bar.add_task("measuring the copy bandwidth", total=total)

        def started(recipe: catalogue.Recipe, size: Size) -> None:
            label = catalogue.workload_module(recipe.workload).label(size)
            bar.update(task, description=f"{recipe.workload}, {recipe.technique}, {label}")

        try:
            for recipe, result in comparison.measure(started):
                results.append(result)
                if writer:
                    writer.add(recipe, result)
                bar.advance(task)
        except KeyboardInterrupt:
            interrupted = True
        except OSError as error:  # StoreError is one; or the disk is full
            unsaved = error
    text = written(completed(results), form, Console(width=PIPE_WIDTH, color_system=None) if output else console())
    if output:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            sys.stdout.write(text)
            fail(f"Cannot write {output}: {error.strerror}. What it should have is above.")
        print(f"{len(results)} results written to {output}", file=sys.stderr)
    else:
        sys.stdout.write(text)
    if unsaved:
        fail(f"Stopped: {unsaved}")
    leave(results, interrupted)


@app.command()
def tables(
    machines: Annotated[
        list[str] | None, typer.Option("--machine", metavar="M", help="Only this machine. Twice: what differs.")
    ] = None,
    commits: Annotated[
        list[str] | None,
        typer.Option("--commit", metavar="C", help="This commit, not each machine's newest. Twice: what has changed."),
    ] = None,
    environments: Annotated[
        list[str] | None,
        typer.Option("--environment", metavar="E", help="Only this one of asv's environments. Twice: what differs."),
    ] = None,
    workloads: Annotated[
        list[str] | None, typer.Option("--workload", metavar="W", help="Only this workload. Can be repeated.")
    ] = None,
    lane: OneLane = None,
    form: Annotated[TableFormat, typer.Option("--format", help="How to write the tables.")] = TableFormat.table,
) -> None:
    """Show what is stored under benchmarks/results, and what frameworks and parallel engines can do.

    With two machines, commits or environments: the first beside the second, and whether they really differ. With
    --lane, NumPy stays, to compare with. Exits with 1 if a result file cannot be used.
    """
    from gpu_cookbook.render.abilities import abilities
    from gpu_cookbook.render.change import change
    from gpu_cookbook.render.tables import measured
    from gpu_cookbook.store import asv_files as store  # asv takes longer to import than 'list' may

    choose(workloads, (), lane)
    complaints: list[str] = []
    try:
        stored = store.Store()
        results, complaints = stored.load()
        results = [each for each in results if not workloads or each.workload in workloads]
        shown, pairs = store.select(results, machines, commits, environments)
    except store.StoreError as error:
        fail("\n".join([*complaints, str(error)]))
    if lane and results and not any(each.lane == lane for each in results):
        fail("\n".join([*complaints, f"No results of the {lane} lane are stored yet: compare --lane {lane} --save."]))
    found = [table for pair in pairs for table in change(*(of_lane(side, lane) for side in pair))]
    if not pairs:
        found = [*measured(shown, lane), *abilities()]
    write_tables(found, form)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if complaints:
        raise typer.Exit(1)


@app.command()
def scale(
    context: typer.Context,
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", metavar="E", help="Only this engine: dask, ray, …, or a technique. Can be repeated."),
    ] = None,
    lane: OneLane = None,
    cores: Annotated[
        str | None, typer.Option(metavar="N,…", help="Numbers of cores: 1,2,8. One and all, if left out. 0: none.")
    ] = None,
    gpus: Annotated[
        str | None, typer.Option(metavar="N,…", help="Numbers of GPUs. 1, 2, 4, … and all, if left out. 0: none.")
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--size", "-s", metavar="S", help="The side of the array: 100_000; without a GPU 20_000."),
    ] = None,
    chunk: Annotated[
        int | None, typer.Option(metavar="C", min=1, help="The side of a chunk, where there are any: 10_000 or less.")
    ] = None,
    weak: Annotated[bool, typer.Option("--weak", help="Also with a whole array for each core or GPU.")] = False,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Use Dask's workers behind it: tcp://127.0.0.1:8786.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Use the Ray that runs there: 127.0.0.1:6379.")
    ] = None,
    form: Annotated[TableFormat, typer.Option("--format", help="How to write the tables.")] = TableFormat.table,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the scaling into it: .png, .svg or .pdf.")
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the rows in benchmarks/results.")] = False,
    machine_name: Annotated[
        str | None,
        typer.Option("--machine", metavar="M", help="With --save: this machine's name there. Else the host's."),
    ] = None,
    stored: Annotated[
        str | None, typer.Option(metavar="M", help="Measure nothing: show what is kept of this machine.")
    ] = None,
) -> None:
    """Run random_subset_mean on one core, all cores, one GPU, all GPUs, with every parallel engine.

    One array for all workers, the same whatever their number (strong scaling). Each recipe and number of workers has a
    process of its own. A recipe that loses a worker says so, or fails with the reason: the other rows stay. Ctrl-C
    stops all workers, shows what was measured, and keeps it with --save. Exits with 1 if a row failed.
    """
    from gpu_cookbook import scaling  # all of this imports more than 'list' can afford
    from gpu_cookbook.render import scaling_tables
    from gpu_cookbook.run import scale as experiment
    from gpu_cookbook.store import asv_files as store
    from gpu_cookbook.store import scaling as kept

    if machine_name is not None and not save:
        fail("--machine belongs to --save: gpu-cookbook scale --save --machine …")
    addresses = {name: at for name, at in (("Dask", scheduler), ("Ray", address)) if at is not None}
    if addresses and (cores or gpus or weak):
        fail("--cores, --gpus and --weak do not apply to a running cluster: leave them out.")
    try:
        if plot:
            experiment.require_drawable(plot)
            from gpu_cookbook.render import scaling_charts
        if stored is not None:
            given = [option for option in context.command.params if context.params.get(option.name)]
            useless = [option.opts[0] for option in given if option.name not in ("stored", "form", "plot")]
            if useless:
                fail(f"--stored shows what is kept, and measures nothing: leave {', '.join(useless)} out.")
            rows = kept.kept_of(store.Store().folder, stored)
            write_tables(scaling_tables.build_tables(rows), form)
            if plot:
                scaling_charts.plot_scaling(rows, plot, scaling_tables.source(rows).strip(". "))
            return
        writer = store.Writer(store.Store(), machine_name) if save else None
        sizes = sizes_of(scaling.WORKLOAD, [size]) if size else catalogue.default_sizes(scaling.WORKLOAD)
        work = experiment.Work(sizes[-1], weak, chunk)
        on_cores = counts("--cores", cores, len(os.sched_getaffinity(0)), "core") if cores else None
        on_gpus = counts("--gpus", gpus, len(machine.gpus()), "GPU") if gpus else None
        runs, rows = experiment.prepare(work, engine or (), lane, on_cores, on_gpus, addresses)
        warn_of_others()
    except (catalogue.UnknownName, catalogue.BrokenRecipe, scaling.BadInput) as error:
        fail(str(error))
    except (scaling.ScaleError, OSError) as error:  # StoreError is one
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None

    interrupted = unkept = undrawn = False
    with progress() as bar:
        task = bar.add_task("scaling", total=len(runs))

        def started(run: experiment.Run) -> None:
            bar.update(task, completed=runs.index(run), description=f"{run.recipe.technique}, {run.on}")

        try:
            with contextlib.closing(experiment.measure_all(runs, work, started, bar.console.print)) as measured:
                for row in measured:
                    rows.append(row)
        except KeyboardInterrupt:
            interrupted = True
    if writer:  # first: whoever reads the tables may be gone
        try:
            writer.refuse_what_is_not_committed()
            kept.keep(writer.store.folder, rows, writer.machine.machine, writer.commit)
        except OSError as error:
            print(f"The rows are not kept: {error}", file=sys.stderr)
            unkept = True
    rows = scaling.completed(scaling.judged(rows))
    write_tables(scaling_tables.build_tables(rows), form)
    failed = sum(row.status == "failed" for row in rows)
    print(f"{len(rows)} rows, {failed} failed{'; stopped early' if interrupted else ''}", file=sys.stderr)
    if plot:
        try:
            scaling_charts.plot_scaling(rows, plot, machine.processor())
        except (scaling.ScaleError, OSError) as error:
            print(error, file=sys.stderr)
            undrawn = True
    if interrupted:
        raise typer.Exit(130)
    if failed or unkept or undrawn:
        raise typer.Exit(1)


def counts(option: str, text: str, most: int, kind: str) -> list[int]:
    """The numbers in '1,2,8', in order; those that there are not are bad input."""
    from gpu_cookbook.scaling import amount

    found = set()
    if not most and text != "0":
        fail(f"There are no {kind}s here: leave {option} out.")
    example = f" For example {option} {','.join(map(str, sorted({1, most})))}."
    for word in text.split(","):
        if not word.strip().isdecimal():
            fail(f"{option} expects numbers of {kind}s, not '{word.strip()}'.{example}")
        if int(word) > most:
            fail(f"{option} {word.strip()}: only {amount(most, kind)} available.{example}")
        found.add(int(word))
    return sorted(found - {0})


def write_tables(found: Sequence[Any], form: TableFormat) -> None:
    from gpu_cookbook.render import html_page, text

    if form is TableFormat.table:
        out = console()
        out.print(text.terminal(found, out.width))
    else:
        write = {"markdown": text.as_markdown, "csv": text.as_csv, "json": text.as_json}
        sys.stdout.write(write.get(form, html_page.as_html)(found))


def writer_for(save: bool, machine_name: str | None, resume: bool, sizes: Sequence[str] | None) -> Any:
    """Where the results are kept, if they are."""
    if not save:
        if machine_name or resume:
            fail("--machine and --resume belong to --save: gpu-cookbook compare --save …")
        return None
    if sizes:
        fail("--save keeps the headline sizes only, which the suite in benchmarks/ has: leave --size out.")
    from gpu_cookbook.store import asv_files as store  # asv takes longer to import than 'list' may

    try:
        return store.Writer(store.Store(), machine_name, resume)
    except store.StoreError as error:
        fail(str(error))


def written(results: Sequence[Result], form: TableFormat, out: Console) -> str:
    """The comparison as text; a table as wide and in as many colours as the console ``out``."""
    from gpu_cookbook.render import html_page, tables, text  # more imports than 'list' can afford

    if form is TableFormat.table:
        with out.capture() as captured:
            out.print(text.terminal(tables.compared(results), out.width))
        return captured.get()
    if form is TableFormat.markdown:
        return text.as_markdown(tables.compared(results))
    if form is TableFormat.html:
        return html_page.comparison(results, html_page.facts_here())
    return {"csv": format.as_csv, "json": format.as_json}[form]([record(each) for each in results])


def cannot_write(path: Path, error: OSError) -> str:
    return f"Cannot write {path}: {error.strerror}. Name a file that you may write to, in a folder that exists."


def warn_of_others() -> None:
    busy = machine.cores_in_use()
    if busy > BUSY:
        print(f"Other programs keep {busy:.1f} cores busy: CPU timings will be inflated.", file=sys.stderr)


def sizes_of(workload: str, words: Sequence[str] | None) -> list[int]:
    """The sizes that the words name, or those that suit this machine; in order."""
    if not words:
        return list(catalogue.default_sizes(workload))
    known = catalogue.workload_module(workload).SIZES
    sizes = set()
    for word in words:
        match = re.fullmatch(r"(\d+)(?:(?:\*\*|\^)(\d+))?", word.replace("_", "").replace(",", ""))
        size = int(match[1]) ** min(int(match[2] or 1), 64) if match else 0
        if not 0 < size < 2**63:
            examples = ", ".join(map(str, known))
            fail(f"'{word}' is an invalid size: expected a positive integer, such as {examples}, 1_000_000 or 2**28.")
        sizes.add(size)
    return sorted(sizes)


def leave(results: Sequence[Result], interrupted: bool, strict: bool = False) -> None:
    """Ends with the exit code that the results ask for, after a line of totals on standard error.

    ``strict``: a recipe of this environment that was skipped counts as a failure."""
    counts = Counter(each.status for each in results)
    totals = ", ".join(f"{counts[status]} {status}" for status in Status)
    print(f"{len(results)} results: {totals}{'; stopped early' if interrupted else ''}", file=sys.stderr)
    if interrupted:
        raise typer.Exit(130)
    here = machine.environment()
    missed = strict and any(each.status == Status.SKIPPED and each.environment == here for each in results)
    if counts[Status.FAILED] or counts[Status.REFUSED] or missed:
        raise typer.Exit(1)
