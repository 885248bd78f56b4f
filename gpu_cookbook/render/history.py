"""How stored results moved from commit to commit: the steps that the samples support, in a table, and charts.

These are pure functions: all results of one machine go in, or those of one of its workloads. A line is one recipe at
one size in one environment; a step is a result that is faster or slower than an earlier one of its line.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpu_cookbook import catalogue
from gpu_cookbook.render import format, svg, tables
from gpu_cookbook.render.change import verdict_of
from gpu_cookbook.render.charts import Chart, chart, stale_note
from gpu_cookbook.render.svg import INK, NAME, Style
from gpu_cookbook.render.tables import COPYING, RUN, Entry, Table, metric_entry
from gpu_cookbook.results import TIMED, Metric, Result, grouped, metric_record, named, stored_record
from gpu_cookbook.units import counted, digits

if TYPE_CHECKING:  # listing recipes must not import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

METRICS = (*TIMED, Metric.FIRST, Metric.MEMORY, Metric.ERROR)  # a bandwidth is only another way to write a time
UPWARDS = {Metric.MEMORY: "more →", Metric.ERROR: "larger →"}  # beside the axis, turned; of the others: slower
VERDICT = ("faster", "slower", "same", "cannot tell")
NAMED, FAR = 6, 1.25  # so many lines of a panel have a name without a step: those that moved most, and so far
MOST_LABELS = 24  # commits that have room for their name
TICKS = (  # of the ratio axis: the span below which they are used
    (1.7, [tenth / 10 for tenth in range(1, 31)]),
    (12, [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10]),
    (100, [2.0**power for power in range(-20, 21)]),
    (math.inf, [10.0**power for power in range(-20, 21)]),
)
NOTHING = "Nothing changed by more than the samples support."
MACHINE = "another machine"  # of the same name
ONCE = "There is no line yet: each recipe was measured at one commit only."

Address = Callable[[str], str | None]  # of a commit; None if nobody knows one
RecipeChanged = Callable[[Result, Result], bool]


@dataclass(frozen=True, eq=False)
class Line:
    """``results``: one for each commit at which it was measured, in order of the commits."""

    name: str
    results: Sequence[Result]

    def measured(self, metric: Metric) -> list[Result]:
        return [each for each in self.results if each.value(metric) is not None]

    def parts(self, metric: Metric) -> list[list[tuple[Result, float]]]:
        """The results with their values relative to the first, in one part for each definition of the metric. A
        doubtful value is nobody's first if there is another. What was not measured, or went wrong, parts nothing."""
        found = []
        for mine in grouped(self.measured(metric), lambda each: each.stored.definition):
            sure = [each for each in mine if not each.doubt(metric)] or mine
            if base := sure[0].value(metric):
                values = ((each, each.value(metric)) for each in mine)
                found.append([(each, value / base) for each, value in values if value is not None])
        return found


@dataclass(frozen=True)
class Step:
    """Two results of a line and the verdict on the second: also "same" or "cannot tell", which is no step yet."""

    line: Line
    metric: Metric
    before: Result
    after: Result
    verdict: str

    @property
    def counts(self) -> bool:
        return self.verdict in ("faster", "slower")

    @property
    def ratio(self) -> float:
        before, after = (each.value(self.metric) for each in (self.before, self.after))
        assert before is not None and after is not None  # a verdict is given on values only
        return after / before if before else math.inf

    def changed_with(self, recipe_changed: "RecipeChanged") -> list[str]:
        """What else was not the same, of what is known on both sides."""
        old, new = (conditions(each) | ({"math": each.math} if each.math else {}) for each in (self.before, self.after))
        machines = {_instance(each, self.metric) for each in (self.before, self.after)} - {None}
        recipe = ["recipe"] * recipe_changed(self.before, self.after)
        return recipe + different(old, new) + [MACHINE] * (len(machines) > 1)

    def __str__(self) -> str:
        where = f"{self.line.name}, {self.after.label}"
        return f"{where}: {self.verdict} at {_short(self.after)} (×{digits(self.ratio)})"


# ---- What is known of the commits.


def lines_of(results: Iterable[Result]) -> list[Line]:
    """Sorted by workload, size and name, NumPy's first. A line's name has asv's environment only if the same recipe was
    measured in another one as well."""
    ordered = sorted(results, key=_order)
    places: dict[Any, set[str]] = {}
    for each in ordered:
        places.setdefault((each.workload, each.technique, each.environment), set()).add(each.stored.environment)
    found = []
    for those in grouped(ordered, lambda each: (each.key, each.stored.environment)):
        mine = list({each.stored.commit: each for each in those}.values())  # the latest of each commit
        first = mine[0]
        several = len(places[first.workload, first.technique, first.environment]) > 1
        found.append(Line(named(first.technique, first.stored.environment) if several else first.name, mine))
    # Sizes have an order within a workload only: one's are numbers, another's are tuples.
    return sorted(
        found,
        key=lambda line: (line.results[0].workload, line.results[0].size, not line.results[0].is_numpy, line.name),
    )


def commits_of(results: Iterable[Result]) -> list[str]:
    """The commits, in order of the times at which they were made."""
    return list(dict.fromkeys(each.stored.commit for each in sorted(results, key=_order)))


def _order(result: Result) -> tuple[int, str, int]:
    made, measured = result.stored.order
    return made, result.stored.commit, measured


def _instance(result: Result, metric: Metric) -> str | None:
    """Which of the machines of one name measured this; None if it is not known."""
    runs = result.runs.get(metric)
    return max(runs, key=lambda run: run.started).instance if runs else None


def _short(result: Result) -> str:
    return result.stored.commit[:8]


def judged(line: Line, metric: Metric) -> Iterator[Step]:
    """The verdict on each result but the first, as `gpu-cookbook tables` decides it for two commits.

    Each result is compared with the one before it, and so that a slow drift is seen, with the first since the last
    step. Doubtful results are left out, and nothing is compared across another definition of the metric."""
    for part in line.parts(metric):
        sure = [each for each, _ in part if not each.doubt(metric)]
        since = sure[0] if sure else None
        for before, after in pairwise(sure):
            verdict, _ = verdict_of(before, after, metric)
            step = Step(line, metric, before, after, verdict)
            if not step.counts and since and since is not before:
                drift = Step(line, metric, since, after, verdict_of(since, after, metric)[0])
                step = drift if drift.counts else step
            if step.counts:
                since = after
            yield step


def every(results: Iterable[Result]) -> list[Step]:
    """The verdicts on all timed metrics."""
    return [step for line in lines_of(results) for metric in TIMED for step in judged(line, metric)]


def conditions(result: Result) -> dict[str, str]:
    """What is known of them: versions, driver, device, the definition of the metrics."""
    known = {name: value for name, value in tables.facts([result]).items() if name not in (*RUN, COPYING, "date")}
    definition = result.stored.definition
    return known | ({"definition of the metrics": definition} if definition else {})


def different(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What is not the same, of what is known on both sides."""
    return [f"{name} {old[name]} → {new[name]}" for name in old if name in new and old[name] != new[name]]


def turns(lines: Iterable[Line]) -> dict[str, list[str]]:
    """{commit: the conditions that were not the same from it on}. What a result does not say is still as it was."""
    found: dict[str, dict[str, None]] = {}
    for line in lines:
        known: dict[str, str] = {}
        for each in line.results:
            now = conditions(each)
            found.setdefault(each.stored.commit, {}).update(dict.fromkeys(different(known, now)))
            known |= now
    commits = commits_of(each for line in lines for each in line.results)
    return {commit: sorted(found[commit]) for commit in commits if found.get(commit)}


# ---- Tables.


def commits_table(results: Sequence[Result], address: Address = lambda commit: None) -> Table:
    """The commits and what was not the same from each on, the newest first; below it, what the newest was measured
    with."""
    changed = turns(lines_of(results))
    newest = sorted(results, key=_order, reverse=True)
    rows, records = [], []
    for mine in grouped(newest, lambda each: (each.stored.commit, each.stored.environment)):
        origin, known = mine[0].stored, tables.facts(mine)
        made = time.strftime("%Y-%m-%d", time.gmtime(origin.order[0] / 1000))
        texts = (made, known["date"], origin.environment, str(sum(each.ok for each in mine)))
        words = "; ".join(changed.get(origin.commit, [])) or format.UNKNOWN
        rows.append((_commit(mine[0], address), *map(Entry, (*texts, words))))
        records.append({"table": "commits", "results": len(mine)} | known)
    head = ("commit", "made", "measured", "environment", "results", "changed")
    first = [each for each in newest if each.stored.commit == newest[0].stored.commit]
    notes = [tables.provenance("The newest commit", first)]
    return Table("Commits that were measured", head, "llllrl", rows, notes, records)


def summary(results: Sequence[Result], page: Callable[[str], str]) -> Table:
    """How often the verdicts were given, one row per workload. ``page``: the address of a workload's page."""
    rows, records = [], []
    order = list(catalogue.workloads())
    results = sorted(results, key=lambda each: order.index(each.workload))
    for mine in grouped(results, lambda each: each.workload):
        counts = Counter(step.verdict for step in every(mine))
        name, commits = mine[0].workload, len(commits_of(mine))
        numbers = (str(commits), *(str(counts[verdict]) for verdict in VERDICT))
        rows.append((Entry(links=((name, page(name)),)), *map(Entry, numbers)))
        records.append({"table": "history", "workload": name, "commits": commits} | dict(counts))
    return Table("Verdicts on all timed metrics", ("workload", "commits", *VERDICT), "lrrrrr", rows, [], records)


def steps_table(
    results: Sequence[Result],
    recipe_changed: RecipeChanged = lambda before, after: False,
    address: Address = lambda commit: None,
) -> Table:
    """Every step, the newest commit first and its largest step first; or a line which says that there is none."""
    found = every(results)
    steps = [step for step in found if step.counts]
    order = commits_of(results)
    steps.sort(key=lambda step: (-order.index(step.after.stored.commit), -abs(math.log(step.ratio))))
    rows, records = [], []
    for step in steps:
        before, after = step.before, step.after
        rows.append(
            (
                Entry(step.line.name, recipe=(after.workload, after.technique)),
                Entry(after.label),
                Entry(step.metric),
                Entry(step.verdict, step.verdict),
                Entry(f"×{digits(step.ratio)}"),
                _commit(before, address),
                _commit(after, address),
                metric_entry(before, step.metric),
                metric_entry(after, step.metric),
                Entry("; ".join(step.changed_with(recipe_changed)) or format.UNKNOWN),
            )
        )
        record = {"table": "steps", "metric": step.metric, "before_commit": before.stored.commit}
        records.append(record | stored_record(after) | {"ratio_x": step.ratio, "verdict": step.verdict})
    counts = Counter(step.verdict for step in found)
    others = (
        f"Of {counted(len(found), 'comparison')}, {counts['same']} say same, and {counts['cannot tell']} cannot tell."
    )
    says = [*[Entry(NOTHING)] * (not steps), Entry(others, "note")] if found else [Entry(ONCE)]
    notes = [*says, *stale_note(each for step in steps for each in (step.before, step.after))]
    head = ("technique", "size", "metric", "verdict", "ratio", "from", "to", "before", "after", "changed with it")
    workload = results[0].workload if results else None
    return Table("Steps, the newest commit first", head, "lrllrllrrl", rows, notes, records, workload)


def _commit(result: Result, address: Address) -> Entry:
    found = address(result.stored.commit)
    return Entry(links=((_short(result), found),)) if found else Entry(_short(result))


def turns_table(results: Sequence[Result]) -> Table:
    """What the numbers above the charts stand for; without rows if there are none."""
    found = turns(lines_of(results))
    rows = [
        (Entry(str(number)), Entry(commit[:8]), Entry("; ".join(words)))
        for number, (commit, words) in enumerate(found.items(), 1)
    ]
    records = [{"table": "turns", "commit": commit, "changed": words} for commit, words in found.items()]
    return Table("Dotted lines in the charts", ("line", "from", "changed"), "rll", rows, [], records)


# ---- Charts.


def moved(results: Sequence[Result], metric: Metric) -> Chart | None:
    """Lines: a metric of one workload over the commits, relative to each line's first result, with one panel per size.
    None if nothing was measured twice.

    Lines with a step have a colour, a name and the intervals that decide it; the others are thin. A metric of single
    measurements has no steps: there, the lines that moved most have a name."""
    lines = [line for line in lines_of(results) if line.measured(metric)]
    drawn = [line for line in lines if any(len(part) > 1 for part in line.parts(metric))]
    if not drawn:
        return None
    commits = commits_of(results)
    steps = [step for line in drawn for step in judged(line, metric) if step.counts]
    panels = grouped(drawn, lambda line: line.results[0].size)
    chosen = [_chosen(panel, metric, steps) for panel in panels]
    coloured = [step.line for step in steps] if metric in TIMED else drawn
    heights = [max(96 if names else 48, NAME * (len(names) + 1)) for names in chosen]  # of the axes
    turned = len(commits) > 4
    around = 88 if turned else 54  # points that a panel's heading and the commits below it take
    marks = list(turns(lines_of(results)))

    def draw(figure: "Figure") -> None:
        ratios = [height + around for height in heights]
        every_axes = figure.subplots(len(panels), squeeze=False, height_ratios=ratios)[:, 0]
        for axes, height, panel, names in zip(every_axes, heights, panels, chosen, strict=True):
            for number, commit in enumerate(marks, 1):
                place = commits.index(commit) - 0.5
                axes.axvline(place, color=INK, linestyle=":", linewidth=1)
                at = axes.get_xaxis_transform()
                axes.text(place, 1.01, str(number), transform=at, ha="center", va="bottom", fontsize=9)
            svg.name_ends(axes, _draw_lines(axes, panel, names, coloured, metric, commits), height)
            axes.set_ylabel(UPWARDS.get(metric, "slower →"), loc="top", fontsize=9)
            _commit_axis(axes.xaxis, commits, turned)
            if len(panels) > 1:
                axes.set_title(panel[0].results[0].label, loc="left")

    title = f"{drawn[0].results[0].workload}, {metric}: from commit to commit. {results[0].stored.machine}"
    text = _told(drawn, metric, steps, len(commits))
    return chart(draw, sum(heights) + around * len(panels), text, _numbers(title, lines, metric, commits))


def _chosen(panel: Sequence[Line], metric: Metric, steps: Sequence[Step]) -> list[Line]:
    """The lines of a panel that have a name."""
    stepped = [line for line in panel if any(step.line is line for step in steps)]
    others = sorted((line for line in panel if line not in stepped), key=lambda line: -_span(line, metric))[:NAMED]
    far = [line for line in others if _span(line, metric) > FAR]
    return [line for line in panel if line in stepped or line in far]


def _span(line: Line, metric: Metric) -> float:
    """The largest value of a part relative to its smallest."""
    ratios = [[ratio for _, ratio in part if ratio > 0] for part in line.parts(metric)]
    return max(max(mine) / min(mine) for mine in ratios if mine)


def _told(drawn: Sequence[Line], metric: Metric, steps: Sequence[Step], commits: int) -> str:
    """A sentence without its full stop."""
    text = f"{counted(len(drawn), 'line')} over {commits} commits. "
    if metric not in TIMED:
        most = max(drawn, key=lambda line: _span(line, metric))
        text += "These are single measurements, so none of their changes counts as a step. "
        of = f"{most.name}, {most.results[0].label}"
        return f"{text}No line spans more than a factor of {digits(_span(most, metric))} ({of})"
    if not steps:
        return text + NOTHING.rstrip(".")
    largest = sorted(steps, key=lambda step: -abs(math.log(step.ratio)))[:3]
    text += f"{counted(len(steps), 'step')}{', the largest' * (len(steps) > len(largest))}: "
    return text + "; ".join(map(str, largest))


def _draw_lines(
    axes: "Axes",
    panel: Sequence[Line],
    names: Sequence[Line],
    coloured: Sequence[Line],
    metric: Metric,
    commits: Sequence[str],
) -> dict[str, Any]:
    """Draws the lines of a panel and returns {name: its last part}, for those that have a name. Of those, the
    ``coloured`` ones have their framework's style, and the others are thin."""
    handles = {}
    ratios = [1.0]
    axes.set_yscale("log")
    axes.axhline(1, color=INK, linewidth=0.8)
    for line in panel:
        number = names.index(line) if line in names and line in coloured else None
        # So far beside the commit that the intervals of two lines do not hide each other.
        aside = 0.0 if number is None else (number + 1 - (len(names) + 1) / 2) * min(0.08, 0.4 / len(names))
        style: Style = {"color": INK, "linewidth": 0.7, "alpha": 0.35}
        if number is not None:
            style = svg.line_style(line.results[-1], number) | {"zorder": 3}
            style["markersize"] = min(style["markersize"], max(2, 60 / len(commits)))
        for part in line.parts(metric):
            places = [commits.index(each.stored.commit) + aside for each, _ in part]
            heights = [ratio or math.nan for _, ratio in part]
            ratios += [height for height in heights if height > 0]
            stale = f"{format.STALE} " * part[-1][0].stale
            (drawn,) = axes.plot(places, heights, label=f"{stale}{line.name}", **style)
            for place, (each, ratio) in zip(places, part, strict=True):
                if each.doubt(metric):
                    above: Style = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center", "fontsize": 9}
                    axes.annotate(format.DOUBT, (place, ratio), **above, fontweight="bold", zorder=5)
            if line in names:
                handles[line.name] = drawn
            if number is not None:
                bars = [_interval(each, ratio, metric) for each, ratio in part]
                broken = [(place, end) for place, bar in zip(places, bars, strict=True) for end in (*bar, math.nan)]
                # All bars of a line are one path, which takes a tenth of the text of one path each.
                axes.plot(*zip(*broken, strict=True), color=style["color"], linewidth=1.2, alpha=0.6, zorder=2)
    low, high = min(*ratios, 1 / 1.15) / 1.05, max(*ratios, 1.15) * 1.05
    axes.set_ylim(low, high)  # an interval may reach to zero
    axes.set_xlim(-0.5, len(commits) - 0.5)
    _ratio_axis(axes.yaxis, low, high)
    return handles


def _interval(result: Result, ratio: float, metric: Metric) -> tuple[float, float]:
    """The 99 % interval in the same proportion as the median; NaN if there is none."""
    timing = result.timings.get(metric)
    if timing is None or timing.interval is None:
        return math.nan, math.nan
    low, high = timing.interval
    # asv's interval may begin at or below zero, which has no place on the axis.
    return max(low / timing.median, 1e-3) * ratio, high / timing.median * ratio


def _ratio_axis(axis: "Axis", low: float, high: float) -> None:
    from matplotlib import ticker

    ticks = next(ticks for span, ticks in TICKS if high / low < span)
    axis.set_major_locator(ticker.FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_major_formatter(lambda value, _: f"×{value:g}")
    axis.set_minor_locator(ticker.NullLocator())


def _commit_axis(axis: "Axis", commits: Sequence[str], turned: bool) -> None:
    """Names the commits, or, of very many, every second or third up to the newest."""
    step = math.ceil(len(commits) / MOST_LABELS)
    places = list(range(len(commits)))[::-1][::step][::-1]
    axis.set_ticks(places, [commits[place][:8] for place in places])
    axis.set_tick_params(labelsize=9, labelrotation=90 if turned else 0)
    axis.grid(False)


def _numbers(title: str, lines: Sequence[Line], metric: Metric, commits: Sequence[str]) -> Table:
    rows, records = [], []
    shown: list[Result] = []
    for line in lines:
        first = line.results[0]
        at = {each.stored.commit: each for each in line.results if each.value(metric) is not None or each.wrong}
        shown += at.values()
        entries = [metric_entry(at.get(commit), metric) for commit in commits]
        words = (Entry(line.name, recipe=(first.workload, first.technique)), Entry(first.label))
        rows.append((*words, Entry(first.peers), *entries))
        about = {"table": "moved", "metric": metric}
        records += [about | stored_record(each) | metric_record(each, metric) for each in at.values()]
    head = ("technique", "size", "lane", *(commit[:8] for commit in commits))
    workload = lines[0].results[0].workload
    return Table(title, head, "lrl" + "r" * len(commits), rows, stale_note(shown), records, workload, metric)
