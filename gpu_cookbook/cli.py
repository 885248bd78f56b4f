"""The command line. Each command's docstring is its help."""

import contextlib
import difflib
import enum
import importlib.metadata
import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from gpu_cookbook import catalogue, choosing, machine
from gpu_cookbook.render import format
from gpu_cookbook.results import Result, Size, Status, completed, grouped, of_lane, record
from gpu_cookbook.run import compare as comparing
from gpu_cookbook.run import family
from gpu_cookbook.sizes import size_of, sizes_of
from gpu_cookbook.store.selecting import require_some, select
from gpu_cookbook.terminal import (
    PIPE_WIDTH,
    TableFormat,
    cannot_show,
    cannot_write,
    complain,
    console,
    deliver,
    drawn,
    fail,
    prepare,
    progress,
    refusals_said,
    say,
    table_text,
    write_tables,
    written,
)
from gpu_cookbook.units import counted
from gpu_cookbook.words import plain


class Commands(TyperGroup):
    """The commands, and what is common to them."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:  # prints the help and the version
        with refusals_said():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        try:
            with refusals_said():
                return super().invoke(ctx)
        except Exception as error:  # such as Click's for an unknown option, whose class Typer does not export
            told = vars(error)
            if told.get("possibilities") and "option_name" in told:
                name = told["option_name"].lstrip("-")  # to Click, the dashes make '--stored' similar to '--cores'
                alike = [each for each in told["possibilities"] if difflib.get_close_matches(name, [each.lstrip("-")])]
                told["possibilities"] = alike
            raise


class OfOne(TyperCommand):
    """A command of one size or machine, where others take several: a second one is refused, while Click would take it
    and forget the first."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for option in given:
            name = max(option.opts, key=len)
            if name in ("--machine", "--size") and not option.multiple and given.count(option) > 1:
                fail(f"{self.name} takes only one {name}.")
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# In cores. With one of two cores taken by another program, PyTorch on both took 8 ms for what takes 6 µs on an idle
# machine.
BUSY = 0.3
EXAMPLE = ("multiply", "numpy")  # the recipe to look at first
GAPS = 8  # characters between the three columns of list, and beside them


class ListFormat(enum.StrEnum):
    """The formats of what is no table of results: one for people, and one for programs."""

    table = "table"
    json = "json"


class Lane(enum.StrEnum):
    """What a recipe aims at: to follow the documentation, or to be fast."""

    idiomatic = "idiomatic"
    tuned = "tuned"


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"gpu-cookbook {importlib.metadata.version('gpu-cookbook')}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The same workloads in many Python GPU frameworks: read them, check them, and measure them side by side."""
    prepare()


Workloads = Annotated[list[str] | None, typer.Argument(metavar="WORKLOAD", help="Workloads to use. All, if omitted.")]
OneWorkload = Annotated[str, typer.Argument(metavar="WORKLOAD", help="For example multiply.")]
Techniques = Annotated[
    list[str] | None, typer.Option("--technique", "-t", metavar="T", help="Only this technique. Can be repeated.")
]
OneLane = Annotated[
    Lane | None,
    typer.Option(
        "--lane", help="Only recipes written as the documentation teaches (idiomatic), or only those tuned for speed."
    ),
]
AnyForm = Annotated[TableFormat, typer.Option("--format", help="Output format.")]
ListForm = Annotated[ListFormat, typer.Option("--format", help="Output format.")]


def folder_named(text: str) -> Path:
    return _path("folder", text)


def file_named(text: str) -> Path:
    return _path("file", text)


def _path(what: str, text: str) -> Path:
    """What was typed. Path('') would be the current folder, and Path('-') a file of that name."""
    if not text:
        raise typer.BadParameter(f"it is empty: name a {what}.")
    if text == "-":
        raise typer.BadParameter(f"'-' does not stand for standard output here: name a {what}.")
    return Path(text)


def side(text: str) -> int:
    """The side of a chunk, written as a size is."""
    try:
        return size_of(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}. Write a positive integer such as 1_000, 1e3 or 2**10.") from None


def _loaded(load: Callable[[], tuple[list[Result], list[str]]]) -> tuple[list[Result], list[str]]:
    """What Store.load() returns; a terminal says meanwhile what takes a few seconds."""
    with Console(stderr=True).status("Reading the stored results …"):
        return load()


def choose(
    workloads: Sequence[str] | None, techniques: Sequence[str] | None, lane: str | None = None
) -> list[catalogue.Recipe]:
    try:
        return catalogue.choose(workloads or (), techniques or (), lane)
    except catalogue.UnknownName as error:
        fail(str(error))


@app.command("list")
def list_recipes(workloads: Workloads = None, lane: OneLane = None, form: ListForm = ListFormat.table) -> None:
    """Show every workload and technique, and what runs on this machine, in this environment."""
    with Console(stderr=True).status("Reading the recipes …"), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(machine.lacks_opencl)  # of a process, while the recipes are read
        recipes = choose(workloads, (), lane)
        asked.result()
        obstacles = {recipe: machine.obstacle(recipe) for recipe in recipes}
    if form is ListFormat.json:
        print(format.as_json([_listed(recipe, obstacle) for recipe, obstacle in obstacles.items()]), end="")
        return
    rows = []
    for technique in sorted({recipe.technique for recipe in recipes}, key=lambda name: (name != "numpy", name)):
        mine = {recipe: obstacle for recipe, obstacle in obstacles.items() if recipe.technique == technique}
        running = ", ".join(recipe.workload for recipe, obstacle in mine.items() if not obstacle)
        reasons = [
            f"{', '.join(recipe.workload for recipe, _ in those)}: {those[0][1]}"
            for those in grouped(mine.items(), lambda item: item[1])
            if those[0][1]
        ]
        lines = [*[Text(running, style="green")] * bool(running), *(Text(plain(line), style="dim") for line in reasons)]
        rows.append((Text(plain(technique)), catalogue.lane_of(technique), Text("\n").join(lines)))
    # Only the last column folds in a narrow terminal: gpu-cookbook show takes the techniques' names. Where there is no
    # room for it beside both others, it stands below, beside the names.
    out = console()
    least = max(len(recipe.workload) for recipe in recipes) + len(",")
    narrow = max(len(technique) for technique, *_ in rows) + len("idiomatic") + GAPS + least > out.width
    for columns in ((0, 1), (0, 2)) if narrow else ((0, 1, 2),):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            head = ("technique", "lane", "runs here, or why not")[column]
            table.add_column(head, no_wrap=column < 2, overflow="fold")
        for row in rows:
            table.add_row(*(row[column] for column in columns))
        out.print(table)
    here = [recipe for recipe, obstacle in obstacles.items() if not obstacle]
    one = min(here or recipes, key=lambda recipe: (recipe.workload, recipe.technique) != EXAMPLE)
    others = [name for name in catalogue.environments() if name != machine.environment()]
    environment = f" in the environment {machine.environment()} (there is also: {', '.join(others)})" if others else ""
    run = "runs" if len(here) == 1 else "run"
    last = f"{counted(len(recipes), 'recipe')}, {len(here)} of which {run} here{environment}. To print one of them:"
    out.print(Text(plain(last)))
    out.print(Text(plain(f"    gpu-cookbook show {one.workload} {one.technique}")), soft_wrap=True)


def _listed(recipe: catalogue.Recipe, obstacle: str | None) -> dict[str, object]:
    return {
        "workload": recipe.workload,
        "technique": recipe.technique,
        "framework": recipe.framework,
        "lane": recipe.lane,
        "environment": recipe.environment,
        "runs_on": recipe.runs_on or None,
        "runs_here": obstacle is None,
        "reason": obstacle,
        "summary": recipe.summary,
    }


@app.command()
def doctor(form: ListForm = ListFormat.table) -> None:
    """Examine this machine (GPUs, driver, compilers, OpenCL, frameworks), and say how to fix what does not work.

    Exits with 1 if something that is installed does not work.
    """
    from gpu_cookbook import doctor as examination  # imported here because it is slow, and 'list' must stay fast

    findings = examination.examine()
    if form is ListFormat.json:
        print(format.as_json(examination.as_json(findings)), end="")
    else:
        console().print(examination.table(findings))
    if any(finding.status == "broken" for finding in findings):
        raise typer.Exit(1)


@app.command()
def show(
    workload: OneWorkload,
    technique: Annotated[
        str | None,
        typer.Argument(metavar="TECHNIQUE", help="For example cupy_raw. If omitted, names them all."),
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Only the lines that one would type in a notebook, without checks.")
    ] = False,
) -> None:
    """Print a recipe as one script that needs nothing from this project, ready to paste or to redirect into a file."""
    from gpu_cookbook.short import short as shorten
    from gpu_cookbook.show import script

    if technique is None:
        names = ", ".join(recipe.technique for recipe in choose([workload], ()) if recipe.technique)
        fail(f"Name a technique: gpu-cookbook show {workload} TECHNIQUE. There are: {names}.")
    (recipe,) = choose([workload], [technique])
    if recipe.fault:
        fail(recipe.fault)
    sys.stdout.write(shorten(recipe) if short else script(recipe))


@app.command()
def check(
    workloads: Workloads = None,
    techniques: Techniques = None,
    lane: OneLane = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also exit with 1 if a recipe was skipped. Meant for a machine with a GPU.")
    ] = False,
    form: ListForm = ListFormat.table,
) -> None:
    """Check every recipe that runs here against NumPy, at the sizes, layouts and values where kernels go wrong.

    Exits with 1 if an answer is wrong.
    """
    from gpu_cookbook.render import tables

    recipes = choose(workloads, techniques, lane)
    require_folder()
    with progress() as bar:
        task = bar.add_task("checking", total=len(recipes))
        outcome = comparing.check(recipes, lambda: bar.advance(task))
    if form is ListFormat.json:
        deliver(format.as_json([record(each) for each in outcome.results]))
    else:
        deliver(drawn([tables.checked(outcome.results)], console()))
    if outcome.stopped:
        fail(f"Stopped: {outcome.stopped}")
    leave(outcome, strict)


@app.command(cls=OfOne)
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
            help="Only this size, as a number of elements, the side of a square, rows and keys of a table, rows and"
            " columns, or the lengths of a signal and a kernel: 40000, 1_000_000, 1e6, 2**28, 1e6x1000. Can be"
            " repeated. If omitted, the published sizes; without a GPU, the two smallest of them.",
        ),
    ] = None,
    form: AnyForm = TableFormat.table,
    output: Annotated[
        Path | None,
        typer.Option(parser=file_named, metavar="FILE", help="Write to this file instead of standard output."),
    ] = None,
    save: Annotated[
        bool,
        typer.Option(
            "--save", help="Save each result, as soon as it is measured, under benchmarks/results, in asv's files."
        ),
    ] = False,
    machine_name: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="M",
            help="With --save: the name of this machine in the results. If omitted, the host name.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="With --save: measure only what no commit has stored of the same code, versions and driver.",
        ),
    ] = False,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Measure every recipe and size. If omitted, and if nothing is chosen and nothing saved, what takes "
            f"about {comparing.MINUTES} minutes, or {comparing.MINUTES_ON_GPU} with a GPU.",
        ),
    ] = False,
    repeat: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Measure everything N times, one run after another. From three runs on, ties are decided by the "
            "ratios within the runs; with --save, 'tables' says how far another run or machine may be from them.",
        ),
    ] = 1,
) -> None:
    """Check every recipe that runs here, then measure them side by side.

    NumPy is measured too, because the speedups are relative to it; if it is not among what you name, not where it takes
    minutes. Each recipe runs in its own process, so one that crashes or hangs loses only its own results. What was
    measured is kept and shown after Ctrl-C. Exits with 1 if a result failed or was refused, or if nothing that you name
    could be measured.
    """
    if resume and repeat > 1:
        fail("--resume completes one run: repeat the others afterwards, with --repeat and without --resume.")
    asked = choose(workloads, techniques, lane)
    recipes = comparing.with_numpy(asked)
    writer = writer_for(save, machine_name, resume, sizes)
    chosen = {workload: sizes_of(workload, sizes) for workload in dict.fromkeys(r.workload for r in recipes)}
    choice = comparing.Choice(recipes, chosen, repeat)
    limit = math.inf
    if not (workloads or techniques or lane or sizes or save or everything):
        choice, limit = comparing.brief(choice), comparing.most()
    if output:
        try:
            output.open("a", encoding="utf-8").close()  # fail now, not after minutes of measuring
        except OSError as error:
            fail(cannot_write(output, error))
    require_folder()
    warn_of_others()
    beside = () if everything else set(recipes) - set(asked)
    comparison = comparing.Comparison(choice.recipes, choice.sizes, writer.done() if resume else {}, beside, limit)
    unusable = writer.unusable if resume else []
    for each in unusable:  # before the measuring, as it may measure again what is in them
        say(each)
    if comparison.found:
        from gpu_cookbook.render.tables import already_stored

        print(already_stored(comparison.found), file=sys.stderr)
    outcome = measured(comparison, writer and writer.add, repeat)
    results = outcome.results
    unwritten = None
    try:
        text = written(completed(results), form, Console(width=PIPE_WIDTH, color_system=None) if output else console())
    except Exception as error:  # nothing that goes wrong in a table or a chart may cost what took minutes to measure
        unwritten = cannot_show(form, error)
        text = format.as_json([record(each) for each in results])
    if output:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            deliver(text, form)
            fail(f"Cannot write {output}: {error.strerror}. Its contents were printed above instead.")
        print(f"{counted(len(results), 'result')} written to {output}", file=sys.stderr)
    else:
        deliver(text, form)
    if unwritten:
        say(unwritten)
        raise typer.Exit(1)
    if choice.left_out:
        print(f"Left out, to end in time: {'; '.join(choice.left_out)}. --all measures them as well.", file=sys.stderr)
    if outcome.late:
        late = [
            f"{mine[0].workload} in {', '.join(each.technique for each in mine)}"
            for mine in grouped(dict.fromkeys(outcome.late), lambda each: each.workload)
        ]
        say(f"Not begun, as {limit / 60:.0f} minutes were over: {'; '.join(late)}. --all measures them as well.")
    if comparison.left_out:
        works = (
            f"{each.workload} ({catalogue.workload_module(each.workload).label(size)})"
            for each, size in comparison.left_out
        )
        print(
            f"Without NumPy, which takes minutes: {'; '.join(works)}. -t numpy measures it there, too.", file=sys.stderr
        )
    if outcome.stopped:
        fail(f"Stopped: {outcome.stopped}")
    named = {(recipe.workload, recipe.technique) for recipe in asked}  # not NumPy, which only stands beside them
    mine = [each for each in results if (each.workload, each.technique) in named]
    skipped = all(each.status == Status.SKIPPED for each in mine)
    nothing = bool(mine) and skipped and not outcome.interrupted
    if nothing:
        what = "Nothing was measured: every result"
        if mine != results:
            what = "Nothing that you named was measured: each of these results"
        print(f"{what} was skipped, with the reason above.", file=sys.stderr)
    leave(outcome)
    if nothing or unusable:
        raise typer.Exit(1)


@app.command("choose", cls=OfOne)
def choose_recipe(
    workload: OneWorkload,
    size: Annotated[
        str,
        typer.Option(
            "--size",
            "-s",
            metavar="S",
            help="Any number of elements, or side of a square: 40000, 5_000_000, 5e6, 2**28. Of a table, rows and keys"
            " that were measured, of convolution, the lengths of the signal and the kernel, of pca and regression, rows"
            " and columns, and of training, images and the batch: 1e6x1000.",
        ),
    ],
    data: Annotated[
        choosing.Data,
        typer.Option(
            help="What the arrays are. host: ordinary host arrays. pinned: page-locked host arrays, which the framework"
            " allocates. device: arrays on the device already. A GPU fetches what is on the host, and brings the result"
            " there."
        ),
    ] = choosing.Data.HOST,
    machine_name: Annotated[
        str | None,
        typer.Option("--machine", metavar="M", help="Advise for this stored machine. If omitted, for this one."),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Measure the most promising recipes here first, which takes about a minute."),
    ] = False,
) -> None:
    """Say which recipe to take for a piece of work, on this machine or a stored one, with the reason in numbers.

    The times are those of the stored machine that is most like this one: with the same GPU, or without any. At sizes
    that were not measured, they are estimated. With --measure, they are taken here and now.
    """
    from gpu_cookbook.render import advice as shown

    choose([workload], ())
    if fault := catalogue.workload_fault(workload):
        fail(fault)
    if measure and machine_name is not None:
        fail("--measure measures this machine: omit --machine.")
    question = choosing.Question(workload, sizes_of(workload, [size])[0], data)
    outcome = comparing.Outcome()
    complaints: list[str] = []
    try:
        choosing.require_pinned(question)
        useless = choosing.useless_here(question) if machine_name is None else set()
        if measure:
            outcome = measured_for(question, useless, complaints)
            known = choosing.Knowledge(outcome.results)
        else:
            known = stored_for(workload, machine_name, complaints)
            if machine_name is not None and known.room:
                useless = choosing.useless_for_lack_of_memory(question, known.room)
        found = choosing.advise(question, known, useless, here=machine_name is None)
    except choosing.NoAdvice as error:
        elsewhere = of_scale(machine_name, [workload]) if machine_name is not None else []
        fail("\n".join([*complaints, str(error), *elsewhere]))
    out = console()
    out.print(shown.advice(found, known, machine_name is None, out.width), crop=False)
    if outcome.interrupted:
        say("Stopped early: of other recipes nothing is known.")
    complain(complaints)
    if outcome.interrupted:
        raise typer.Exit(130)


def stored_for(workload: str, machine_name: str | None, complaints: list[str]) -> choosing.Knowledge:
    """What is stored of a machine, or of the one that is most like this one. What cannot be used is added to the
    complaints."""
    from gpu_cookbook.store import asv_files as store  # slow to import, because of asv

    try:
        stored = store.Store()
        results, unusable = _loaded(stored.load)
        complaints += unusable
        if unusable and not results:
            fail("\n".join(unusable))
        names = sorted({each.stored.machine for each in results})
        if machine_name is not None and machine_name not in names:
            refuse_other_files(stored, "choose", machine_name, workload, names, complaints)
        name = choosing.alike(results, workload) if machine_name is None else machine_name
        newest, _ = select(results, [name])
    except store.StoreError as error:
        told = f"{error} To do without stored results: --measure" if machine_name is None else str(error)
        fail("\n".join([*complaints, told]))
    return choosing.Knowledge(newest, choosing.Room(name, *stored.memory_of(name)))


def refuse_other_files(
    stored: Any, command: str, name: str, workload: str, names: Sequence[str], complaints: Sequence[str]
) -> None:
    """Fails if this machine has results of compare, none of which can be used, as the complaints say; or only lines of
    other measurements: of scaling, for example."""
    from gpu_cookbook.store import scaling, sending

    if name in stored.machines():
        if complaints:
            fail("\n".join(complaints))
        return
    if files := sending.shared_files_of(stored, name):
        there = ", and ".join(sending.CONTENTS[file] for file in files)
        shown = f" To see it: gpu-cookbook scale --machine {name}." if scaling.FILE in files else ""
        others = f" For another machine: {', '.join(names)}." if names else ""
        what = f"compare {workload}".strip()
        fail(
            f"{command} takes results of compare, and of {name} there is only {there}.{shown}{others}"
            f" To measure there: gpu-cookbook {what} --save --machine {name}"
        )


def measured_for(question: choosing.Question, useless: Container[str], complaints: list[str]) -> comparing.Outcome:
    """The most promising recipes, measured here. What went wrong, or is doubtful, is said on standard error. What is
    stored and cannot be used is added to the complaints."""
    from gpu_cookbook.store import asv_files as store  # slow to import, because of asv

    stored: list[Result] = []
    with contextlib.suppress(store.StoreError):  # without a clone, nothing says which recipes are promising
        results, unusable = store.Store().load()
        complaints += unusable
        stored, _ = select(results)
    others = [choosing.Knowledge(mine) for mine in choosing.by_likeness(stored, question.workload)]
    candidates = choosing.candidates(question, others, useless)
    few = comparing.within_a_minute(candidates, question.size)
    if len(few) < 2:
        names = "".join(f" -t {each.technique}" for each in [*candidates][:3])
        raise choosing.NoAdvice(
            f"That takes longer than a minute: gpu-cookbook compare {question.workload}"
            f" -s {catalogue.option_of(question.size)}{names}"
            if len(candidates) > 1
            else "Nothing to choose from runs here: 'gpu-cookbook list' says what is missing."
        )
    ranked = [*candidates]
    skipped = [each for each in ranked[: ranked.index(few[-1])] if each not in few]
    if skipped:
        told = [f"{each.technique} (about {candidates[each]:.2g} s a call)" for each in skipped]
        say(f"Not measured, as they take longer than what the others leave of a minute: {', '.join(told)}.")
    require_folder()
    warn_of_others()
    outcome = measured(comparing.Comparison(few, {question.workload: [question.size]}))
    for each in outcome.results:
        if not each.ok:
            said = "failed" if each.status == Status.FAILED else f"was {each.status}"
            say(f"{each.technique} {said}: {each.reason}")
        elif doubt := each.doubt(question.metric(each)):
            say(f"{each.technique} is doubtful, and not counted: {doubt}")
    if outcome.stopped:
        fail(f"Stopped: {outcome.stopped}")
    if not any(question.seconds(each) for each in outcome.results):
        if outcome.interrupted:
            raise typer.Exit(130)
        failed = ", or the recipe failed" * any(not each.ok for each in outcome.results)
        there = any(each.workload == question.workload for each in stored)
        ask = ", or omit --measure to ask the stored results" * there
        raise choosing.NoAdvice(
            f"Every time was disturbed{failed}, as said above. Stop other programs and repeat this{ask}."
        )
    return outcome


@app.command()
def tables(
    workloads: Workloads = None,
    machines: Annotated[
        list[str] | None,
        typer.Option("--machine", metavar="M", help="Only this machine. Give it twice to compare two machines."),
    ] = None,
    commits: Annotated[
        list[str] | None,
        typer.Option(
            "--commit",
            metavar="C",
            help="Only this commit, instead of what is shown otherwise. Give it twice to compare two commits.",
        ),
    ] = None,
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "--environment", metavar="E", help="Only this asv environment. Give it twice to compare two environments."
        ),
    ] = None,
    techniques: Techniques = None,
    lane: OneLane = None,
    form: AnyForm = TableFormat.table,
) -> None:
    """Show the results stored under benchmarks/results, and what frameworks and parallel engines can do.

    Given two machines, commits or environments, show them side by side and say whether they really differ. With --lane
    and --technique, NumPy is kept for comparison. If no workload and no technique is named, a table is an overview of
    each machine; the other formats get everything, and what frameworks can do. Exits with 1 if a result file cannot be
    used.
    """
    from gpu_cookbook.render.abilities import abilities
    from gpu_cookbook.render.change import change
    from gpu_cookbook.render.tables import in_brief, measured
    from gpu_cookbook.store import asv_files as store  # slow to import, because of asv

    asked = choose(workloads, techniques, lane)
    options = options_of(workloads, techniques, lane)
    complaints: list[str] = []
    try:
        stored = store.Store()
        every, complaints = _loaded(stored.load)
        if complaints and not every and (options or machines or commits or environments):
            fail("\n".join(complaints))
        commits = [stored.commit_of(word, every) for word in commits or ()]
        names = sorted({each.stored.machine for each in every})
        for name in machines or ():
            if name not in names:
                refuse_other_files(stored, "tables", name, " ".join(workloads or ()), names, complaints)
        results = [each for each in every if not workloads or each.workload in workloads]
        results = [each for each in results if not techniques or each.technique in techniques or each.is_numpy]
        wanted = [each for each in results if not techniques or each.technique in techniques]
        wanted = [each for each in wanted if lane in (None, each.lane)]
        if every and not wanted:
            raise store.StoreError(f"No results of these are stored yet. {to_store(asked, options)}")
        require_some(every, wanted, options, machines, commits, environments)
        shown, pairs = select(results, machines, commits, environments)
    except store.StoreError as error:
        elsewhere = [line for name in machines or () for line in of_scale(name, workloads or ())]
        fail("\n".join([*complaints, str(error), *elsewhere]))
    found = [table for pair in pairs for table in change(*(of_lane(side, lane) for side in pair))]
    if not pairs and (workloads or techniques):
        known, _ = select(every, machines, commits, environments)
        found = measured(shown, lane, known)
    elif not pairs:
        short = form is TableFormat.table
        found = (short and in_brief(shown, lane)) or [*measured(shown, lane), *abilities(shown)]
    write_tables(found, form)
    there = {(each.workload, each.technique) for side in (shown, *itertools.chain(*pairs)) for each in side}
    for name in [*(workloads or ()), *(techniques or ())]:
        mine = [each for each in asked if name in (each.workload, each.technique)]
        if mine and not any((each.workload, each.technique) in there for each in mine):
            of_one = (workloads, [name]) if name == mine[0].technique else ([name], techniques)
            say(f"None of these results is of {name}. {to_store(mine, options_of(of_one[0], of_one[1], lane))}")
    for fault in catalogue.faults():
        say(fault)
    complain(complaints)


def options_of(workloads: Sequence[str] | None, techniques: Sequence[str] | None, lane: str | None) -> str:
    """What is asked for, as words of the command."""
    words = [*(workloads or ()), *(f"-t {technique}" for technique in techniques or ())]
    return " ".join([*words, f"--lane {lane}"] if lane else words)


def to_store(recipes: Sequence[catalogue.Recipe], options: str) -> str:
    """How to store results of these recipes: in this environment, if one of them runs in it."""
    name = min((each.environment for each in recipes), key=lambda name: name != machine.environment())
    return f"To store some: {machine.in_environment(name, f'gpu-cookbook compare {options} --save')}"


def of_scale(name: str, workloads: Sequence[str]) -> list[str]:
    """Where to see what scale has measured on this machine, if it has, and one of the workloads is that of scale."""
    from gpu_cookbook import scaling
    from gpu_cookbook.store import asv_files as store  # slow to import, because of asv
    from gpu_cookbook.store import scaling as kept

    if scaling.WORKLOAD not in workloads:
        return []
    try:
        runs, _ = kept.kept(store.Store().folder)
    except store.StoreError:  # which is said already
        return []
    there = any(run.origin.machine == name for run in runs)
    return [f"To see what scale has measured there: gpu-cookbook scale --machine {name}"] * there


@app.command()
def send(
    machine_name: Annotated[
        str, typer.Argument(metavar="MACHINE", help="The machine, as its results are stored under benchmarks/results.")
    ],
    contributor: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="NAME", help="Who sends them: a name or a handle, which is shown beside the results."
        ),
    ] = None,
    new_name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="The machine's name from then on: what it is, not whose it is."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            parser=folder_named, metavar="FOLDER", help="Put the folder in there. If omitted, into build/send."
        ),
    ] = None,
) -> None:
    """Prepare the results of a machine for a pull request, in one folder. Nothing is sent: you do that.

    The folder has the stored results with their conditions, what doctor finds, and the installed versions, without
    paths, users, computers and addresses. It is verified at once. Exits with 1 if it could not be accepted as it is.
    """
    from gpu_cookbook import doctor as examination
    from gpu_cookbook.doctor import facts
    from gpu_cookbook.render.verdict import Shown
    from gpu_cookbook.store import asv_files as store  # slow to import, because of asv
    from gpu_cookbook.store import sending, verifying

    def gather() -> tuple[facts.Facts, list[examination.Finding]]:
        with Console(stderr=True).status("Trying every installed framework …"):
            known = facts.gather()
        return known, examination.judge(known)

    try:
        stored = store.Store()
        place = output.resolve() if output else sending.default_folder(stored)
        renamed = machine_name if new_name is None else new_name
        files = sending.send(stored, machine_name, renamed, place, contributor, gather)
        folder = files[0].parent
        verdict = verifying.verify(stored, folder, source=machine_name)
    except store.StoreError as error:
        fail(str(error))
    out = console()
    out.print(Shown(verdict), crop=False)
    if verdict.errors:
        these = "this error" if verdict.errors == 1 else "these errors"
        print(f"Mend {these}, then run send again.", file=sys.stderr)
        raise typer.Exit(1)
    for line in sending.described(stored, folder, files):
        out.print(Text(plain(line)), soft_wrap=True)


@app.command()
def verify(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=folder_named,
            metavar="FOLDER",
            help="Folders of machines: sent ones, or those of benchmarks/results.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="COMMIT",
            help="Verify every machine whose results differ since this branch left COMMIT, such as origin/main. Only"
            " commits that COMMIT has can have been measured.",
        ),
    ] = None,
    form: ListForm = ListFormat.table,
) -> None:
    """Look at results that were sent, as a pull request is looked at: can they be accepted?

    An error keeps the folder from being accepted; a note is for the reviewer. Each says what to do. Nothing in the
    folder is run or changed. Exits with 1 if there is an error.
    """
    from gpu_cookbook.render.verdict import Shown
    from gpu_cookbook.store import asv_files as store  # slow to import, because of asv
    from gpu_cookbook.store import verifying

    if not folders and since is None:
        fail("Name a folder: gpu-cookbook verify FOLDER. For a pull request: gpu-cookbook verify --since origin/main")
    try:
        stored = store.Store()
        verdicts = verifying.verify_all(stored, folders or (), since)
    except store.StoreError as error:
        fail(str(error))
    if form is ListFormat.json:
        print(format.as_json(verifying.as_json(verdicts)), end="")
    else:
        out = console()
        for verdict in verdicts:
            out.print(Shown(verdict), crop=False)
            out.print()
        if not verdicts:
            print(f"No results differ since {plain(since or '')}.")
    if any(verdict.errors for verdict in verdicts):
        raise typer.Exit(1)


@app.command(cls=OfOne)
def scale(
    context: typer.Context,
    techniques: Annotated[
        list[str] | None,
        typer.Option(
            "--technique",
            "-t",
            metavar="T",
            help="Only this technique, or those whose name begins with this engine (dask, ray, …). Can be repeated.",
        ),
    ] = None,
    lane: OneLane = None,
    cores: Annotated[
        str | None,
        typer.Option(metavar="N,…", help="Numbers of cores, such as 1,2,8. If omitted, one and all. 0 means none."),
    ] = None,
    gpus: Annotated[
        str | None,
        typer.Option(metavar="N,…", help="Numbers of GPUs, such as 1,2. If omitted, 1, 2, 4, … and all. 0 means none."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size", "-s", metavar="S", help="Side of the array. If omitted, 100_000; without a GPU, 20_000."
        ),
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            parser=side, metavar="C", help="Side of a chunk, for recipes that use chunks. If omitted, 10_000 or less."
        ),
    ] = None,
    weak: Annotated[
        bool, typer.Option("--weak", help="Also measure weak scaling: each core or GPU gets a whole array of its own.")
    ] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Use the Dask workers of this running scheduler, such as tcp://127.0.0.1:8786."
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Use the Ray cluster that runs at this address, such as 127.0.0.1:6379."),
    ] = None,
    form: AnyForm = TableFormat.table,
    plot: Annotated[
        Path | None,
        typer.Option(parser=file_named, metavar="FILE", help="Draw the scaling into this file: .png, .svg or .pdf."),
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Save the rows, after the last one, under benchmarks/results.")
    ] = False,
    machine_name: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="M",
            help="With --save: the name of this machine in the results. If omitted, the host name. Without --save:"
            " measure nothing, and show what is stored for this machine.",
        ),
    ] = None,
) -> None:
    """Run random_subset_mean on one core, all cores, one GPU, all GPUs, with every parallel engine.

    All workers share one array, whose size does not depend on their number (strong scaling). Each recipe and number of
    workers runs in its own process. A recipe that loses a worker says so, or fails and gives the reason; the other rows
    are kept. Ctrl-C stops all workers and shows what was measured (and saves it, with --save). Exits with 1 if a row
    failed.
    """
    from gpu_cookbook import scaling  # imported here because it is slow, and 'list' must stay fast
    from gpu_cookbook.render import scaling_tables
    from gpu_cookbook.run import scale as experiment
    from gpu_cookbook.store import asv_files as store
    from gpu_cookbook.store import scaling as kept

    addresses = {name: at for name, at in (("Dask", scheduler), ("Ray", address)) if at is not None}
    if addresses and (cores is not None or gpus is not None or weak):
        fail("--cores, --gpus and --weak do not apply to a running cluster: omit them.")
    try:
        if fault := catalogue.workload_fault(scaling.WORKLOAD):
            raise scaling.ScaleError(fault)
        if plot:
            experiment.require_drawable(plot)
        if machine_name is not None and not save:
            given = [each for each in context.command.params if context.params.get(each.name) not in (None, False, ())]
            useless = [option.opts[0] for option in given if option.name not in ("machine_name", "form", "plot")]
            if useless:
                fail(
                    "--machine without --save shows what is stored and measures nothing: omit"
                    f" {', '.join(useless)}, or add --save."
                )
            rows, complaints = kept.kept_of(store.Store().folder, machine_name)
            write_tables(scaling_tables.build_tables(rows), form)
            undrawn = plot and not drawn_into(plot, rows, scaling_tables.source(rows).strip(". "))
            complain(complaints)
            if undrawn:
                raise typer.Exit(1)
            return
        writer = store.Writer(store.Store(), machine_name) if save else None
        sizes = sizes_of(scaling.WORKLOAD, [size]) if size is not None else catalogue.default_sizes(scaling.WORKLOAD)
        work = experiment.Work(sizes[-1], weak, chunk)
        on_cores = counts("--cores", cores, machine.cores(), "core") if cores is not None else None
        on_gpus = counts("--gpus", gpus, len(machine.gpus()), "GPU") if gpus is not None else None
        require_folder()
        runs, rows = experiment.prepare(work, techniques or (), lane, on_cores, on_gpus, addresses, bool(plot))
        warn_of_others()
    except (catalogue.UnknownName, scaling.BadInput, store.StoreError) as error:
        fail(str(error))
    except scaling.ScaleError as error:
        say(str(error))
        raise typer.Exit(1) from None

    unkept = undrawn = False
    with progress() as bar:
        task = bar.add_task("scaling", total=len(runs))

        def started(run: experiment.Run) -> None:
            bar.update(task, completed=runs.index(run), description=f"{run.recipe.technique}, {run.on}")

        def told(text: str) -> None:
            bar.console.print(Text(plain(text)))

        measured, ended = experiment.measure_all(runs, work, started, told)
    rows += measured
    if writer:  # before printing: the reader of the pipe may be gone
        try:
            kept.keep(writer, rows)
        except OSError as error:
            say(f"The rows were not saved: {error}")
            unkept = True
    try:
        rows = scaling.completed(scaling.judged(rows))
        text = table_text(scaling_tables.build_tables(rows), form)
    except Exception as error:  # as in compare
        say(cannot_show(form, error))
        text, undrawn = format.as_json([scaling.record(row) for row in rows]), True
    deliver(text, form)
    numbers = Counter(row.status for row in rows)
    totals = ", ".join(f"{numbers[status]} {status}" for status in (Status.OK, Status.FAILED, Status.SKIPPED))
    print(f"{counted(len(rows), 'row')}: {totals}{'; stopped early' if ended else ''}", file=sys.stderr)
    if plot and not drawn_into(plot, rows, machine.processor()):
        undrawn = True
    if isinstance(ended, KeyboardInterrupt):
        raise typer.Exit(130)
    if ended:
        fail(f"Stopped: {ended}")
    if numbers[Status.FAILED] or unkept or undrawn:
        raise typer.Exit(1)


def drawn_into(path: Path, rows: Sequence[Any], title: str) -> bool:
    """Whether the rows of scale could be drawn into the file. Otherwise it is said why not."""
    from gpu_cookbook.render import scaling_charts

    try:
        scaling_charts.plot_scaling(rows, path, title)
    except OSError as error:
        say(cannot_write(path, error))
    except Exception as error:  # matplotlib may raise anything
        say(f"Cannot draw into {path}: {error}")
    else:
        return True
    return False


def counts(option: str, text: str, most: int, kind: str) -> list[int]:
    """The numbers in '1,2,8', sorted. A number larger than what the machine has is bad input."""
    from gpu_cookbook.scaling import amount

    found = set()
    if not most and text != "0":
        fail(f"This machine has no {kind}s: omit {option}.")
    example = f" For example {option} {','.join(map(str, sorted({1, most})))}."
    for word in text.split(","):
        if not re.fullmatch("[0-9]+", word.strip()):
            fail(f"{option} expects numbers of {kind}s, not '{word.strip()}'.{example}")
        if float(word) > most:  # int() takes no more than 4,300 digits
            fail(f"{option} {word.strip()}: only {amount(most, kind)} available.{example}")
        found.add(int(word))
    return sorted(found - {0})


def measured(
    comparison: comparing.Comparison, save: comparing.Save | None = None, repeat: int = 1
) -> comparing.Outcome:
    """What a comparison gives, while a progress bar says what it is at."""
    with progress() as bar:
        total = sum(len(left) for _, left in comparison.left)
        checks = bar.add_task("checking", total=len(comparison.left))
        task = bar.add_task("measuring", total=repeat * total)

        def started(recipe: catalogue.Recipe, size: Size) -> None:
            label = catalogue.workload_module(recipe.workload).label(size)
            run = f"run {bar.tasks[task].completed // total + 1:.0f} of {repeat}: " if repeat > 1 else ""
            bar.update(task, description=f"{run}{recipe.workload}, {recipe.technique}, {label}")

        return comparison.measure(started, lambda: bar.advance(task), save, repeat, checked=lambda: bar.advance(checks))


def writer_for(save: bool, machine_name: str | None, resume: bool, sizes: Sequence[str] | None) -> Any:
    """The writer that stores the results, or None."""
    if not save:
        if machine_name is not None or resume:
            fail("--machine and --resume only work with --save: gpu-cookbook compare --save …")
        return None
    if sizes:
        fail("--save stores only the published sizes, which the suite in benchmarks/ has: omit --size.")
    from gpu_cookbook.store import asv_files as store  # slow to import, because of asv

    try:
        return store.Writer(store.Store(), machine_name, resume)
    except store.StoreError as error:
        fail(str(error))


def require_folder() -> None:
    """Fails now, not after minutes, if there is no place for the files of the recipes' processes."""
    try:
        family.home()
    except OSError as error:
        fail(str(error))


def warn_of_others() -> None:
    busy = machine.cores_in_use()
    if busy > BUSY:
        print(f"Other programs keep {busy:.1f} cores busy: CPU timings will be inflated.", file=sys.stderr)


def leave(outcome: comparing.Outcome, strict: bool = False) -> None:
    """Print a line of totals on standard error and exit with the code that the results call for.

    ``strict``: a recipe of this environment that was skipped counts as a failure."""
    counts = Counter(each.status for each in outcome.results)
    totals = ", ".join(f"{counts[status]} {status}" for status in Status)
    early = "; stopped early" * outcome.interrupted
    print(f"{counted(len(outcome.results), 'result')}: {totals}{early}", file=sys.stderr)
    if outcome.interrupted:
        raise typer.Exit(130)
    if outcome.measured:
        total = sum(outcome.spent.values())
        phases = sorted(outcome.spent.items(), key=lambda each: -each[1])
        shares = ", ".join(f"{seconds / total:.0%} {phase}" for phase, seconds in phases)
        print(f"{total:,.0f} s, {total / outcome.measured:.1f} s per result: {shares}", file=sys.stderr)
    here = machine.environment()
    missed = strict and sum(each.status == Status.SKIPPED and each.environment == here for each in outcome.results)
    if missed:
        print(f"--strict: {counted(missed, 'result')} of this environment skipped: counted as failed", file=sys.stderr)
    if counts[Status.FAILED] or counts[Status.REFUSED] or missed:
        raise typer.Exit(1)
