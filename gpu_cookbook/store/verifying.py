"""``gpu-cookbook verify``: what keeps a machine's folder from being accepted, and what a reviewer should know. The
folder may come from anybody: nothing in it is believed before it was looked at, and nothing of it is ever run."""

import itertools
import json
import math
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from packaging.utils import canonicalize_name

from gpu_cookbook import catalogue
from gpu_cookbook.machine import in_environment
from gpu_cookbook.results import TIMED, Metric, Result, Status, grouped, keyed
from gpu_cookbook.run import measure
from gpu_cookbook.store import door, limits, private, runs, scaling, sent, together, transfers
from gpu_cookbook.store.asv_files import METRICS, Store
from gpu_cookbook.store.commits import (
    CODE,
    UNSHALLOW,
    StoreError,
    UnknownCommit,
    changed_since,
    commit_named,
    git,
    is_shallow,
)
from gpu_cookbook.store.machines import MACHINE, are_among, gpus_in, gpus_of, named_gpus
from gpu_cookbook.store.selecting import select
from gpu_cookbook.store.sending import (
    CONTENTS,
    LINES,
    PROFILE,
    SHARED,
    default_base,
    machines_at,
    to_write_facts,
    unsent,
)
from gpu_cookbook.units import counted, digits
from gpu_cookbook.words import make_plain, plain

MOST_FILES = 200
MOST_TOTAL = 2**25  # bytes of all files together
MOST_ALIKE = 10  # findings of one kind that are shown one by one
# No two machines of one kind that are stored are as far apart in their times (tests/test_repeats.py), not even in their
# transfers, which depend on the host, but for a few resident times of small arrays, which are mostly those of the call
# in Python, and one device time of a small array in JAX, which is the host's. What a processor computes, and the start
# of a process, depend on the machine altogether.
FAR = {
    **{Metric.DEVICE: 1.3, Metric.PREPARED: 1.9, Metric.RESIDENT: 1.9, Metric.TRANSFER: 2.5, Metric.PINNED: 2.5},
    **{Metric.FIRST: 5, Metric.MEMORY: 1.5},
}
FAR_ON_HOST = 5
FAR_LIMITS = 1.5  # of what a device can do: a copy, its cache, its arithmetic; an empty kernel
MANY = 0.1  # of what can be compared: more of it far away is no accident
FEW = 10  # that few prove nothing
UNQUIET = 0.25  # noisy or doubtful metrics: on the machines stored so far, up to 0.16


@dataclass(frozen=True)
class Finding:
    """What is wrong with a folder, or worth knowing. ``grave``: it cannot be accepted as it is."""

    grave: bool
    place: str  # a file, or a part of the results
    what: str
    advice: str = ""

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class Verdict:
    """All findings about one folder."""

    name: str
    summary: str
    findings: tuple[Finding, ...]
    nothing: bool = False  # whether all that differs was left out

    def __post_init__(self) -> None:
        make_plain(self)

    @property
    def errors(self) -> int:
        return sum(each.grave for each in self.findings)


def error(place: str, what: str, advice: str = "") -> Finding:
    return Finding(True, place, what, advice)


def note(place: str, what: str, advice: str = "") -> Finding:
    return Finding(False, place, what, advice)


def verify(
    store: Store,
    folder: Path,
    base: str | None = None,
    source: str | None = None,
    every: Callable[[], Sequence[Result]] | None = None,
) -> Verdict:
    """The verdict on a machine's folder, wherever it is. ``base``: the commit that must have all commits that were
    measured; ``source``: the stored machine of which this folder was made; ``every``: all results that are stored, if
    they need not be read for this folder alone. StoreError if there is no such folder."""
    if not os.path.lexists(folder):
        raise StoreError(f"There is no folder {folder}. To write one: gpu-cookbook send MACHINE")
    found = list(_tree(folder))
    if any(each.grave for each in found):  # nothing of it is read
        return Verdict(door.shown(folder), "nothing of it was read", _gathered(found))
    base = base or default_base(store.root)
    folder = folder.resolve()
    results, complaints = store.load(folder)
    found += [_complaint(store.root, folder, each) for each in complaints]
    lines = runs.Lines(folder)
    files = dict(_files(folder))
    if not results and not complaints:
        found.append(error("results", "there are none", "Measure: gpu-cookbook compare --save --machine NAME"))
    if not files and not complaints:
        found.append(error("machine.json", "there are no results of asv beside it", "Send the folder as it was made."))
    stored, at_base = every() if every else store.load()[0], machines_at(store.root, base)
    # A machine that git does not have there is the sender's own: this one, under the name at which it was measured.
    own = [each for each in stored if each.stored.machine not in {folder.name, *at_base}]
    names = (source, *(name for name, _ in _same(results, own).most_common()), folder.name)
    name = next((each for each in names if each and MACHINE.fullmatch(each)), "NAME")
    found += _names(folder, files, name)
    found += _gpus(files, results)
    found += _private(folder, files)
    found += _sent(store, folder, base, results)
    shown, _ = select(results)
    found += _commits(store, base, results, shown, lines, files)
    found += _conditions(results, lines)
    save = f"gpu-cookbook compare --save --machine {name}"  # without it, the host's name would be taken
    found += _ends(shown, save)
    found += _complete(shown, save)
    found += _lines(store, folder, base)
    known = at_base - {folder.name, source}
    others = [each for each in stored if each.stored.machine in known]
    found += _copied(results, others)
    found += _plausible(shown, [*others, *results])
    return Verdict(door.shown(folder), f"{_summary(results)}; compared with {base}", _gathered(found))


def _gathered(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors first; of many findings with the same advice in the same file, the first ones."""
    kept = []
    for those in grouped(found, lambda each: (each.grave, each.place.partition(",")[0], each.advice)):
        kept += those[:MOST_ALIKE]
        if len(those) > MOST_ALIKE:
            more = f"and {len(those) - MOST_ALIKE:,} more like these"
            kept.append(Finding(those[0].grave, those[0].place.partition(",")[0], more, those[0].advice))
    return tuple(sorted(kept, key=lambda each: not each.grave))


def _summary(results: Sequence[Result]) -> str:
    if not results:
        return "no results"
    newest = max(results, key=lambda each: each.stored.order).stored
    ok = sum(each.ok for each in results)
    workloads = ", ".join(dict.fromkeys(each.workload for each in results))
    devices = " and ".join(sorted({each.device for each in results if each.device})) or "an unknown device"
    by = f", sent by {newest.contributor}" if newest.contributor else ""
    return f"{ok} results on {devices}: {workloads}; newest commit {newest.commit[:8]}{by}"


# ---- Files.


def _tree(folder: Path) -> Iterator[Finding]:
    """Whether there is anything in the folder that must not even be opened."""
    if folder.is_symlink() or not folder.is_dir():
        yield error(str(folder), "is not a folder", "Name the folder that gpu-cookbook send wrote.")
        return
    total = 0
    try:
        with os.scandir(folder) as scanned:
            entries = list(itertools.islice(scanned, MOST_FILES + 1))
        if any(entry.is_dir(follow_symlinks=False) and Path(entry.path, "machine.json").is_file() for entry in entries):
            yield error(str(folder), "has folders of machines", "Name one of them.")
            return
        if not any(entry.name == "machine.json" or _is_results(entry.name) for entry in entries):
            yield error(str(folder), "is not a machine's folder: name one that gpu-cookbook send wrote")
            return
        if len(entries) > MOST_FILES:
            yield error(str(folder), f"has more than {MOST_FILES} files", "Send only what gpu-cookbook send wrote.")
        for entry in sorted(entries[:MOST_FILES], key=lambda entry: entry.name):
            status = entry.stat(follow_symlinks=False)
            total += status.st_size
            if not stat.S_ISREG(status.st_mode):
                kind = "a link" if entry.is_symlink() else "a folder" if entry.is_dir() else "no regular file"
                yield error(entry.name, f"is {kind}", "Remove it: a machine's folder has plain files only.")
            elif entry.name not in CONTENTS and not _is_results(entry.name):
                yield error(entry.name, "is not a file of results", f"Remove it: there are {', '.join(CONTENTS)} and "
                            "asv's files, such as 88c7b72c-existing-py3.12.json.")  # fmt: skip
            elif status.st_size > door.MOST_BYTES:
                most = f"{door.MOST_BYTES / 2**20:.0f} MiB"
                yield error(entry.name, f"is larger than {most}", "Send the newest commits only, in fewer lines.")
    except OSError as fault:
        yield error(str(folder), f"cannot be read: {fault.strerror}", "Make it readable.")
    if total > MOST_TOTAL:
        yield error(
            str(folder), f"is larger than {MOST_TOTAL / 2**20:.0f} MiB", "Send the results of the newest commits only."
        )


def _is_results(name: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}-[!-~]{1,200}\.json", name) is not None


def _complaint(root: Path, folder: Path, complaint: str) -> Finding:
    """A line of Store.load about a file, or a line of a file, that cannot be used."""
    text = complaint.removeprefix(f"{door.shown(folder)}/")
    place, _, what = text.partition(": ")
    if UNSHALLOW in what:
        advice = "" if is_shallow(root) else "Measure at a commit of the project's repository."
    else:
        advice = "Send the folder as gpu-cookbook send wrote it; what was edited by hand cannot be repaired here."
    return error(place, what, advice)


def _files(folder: Path) -> Iterator[tuple[str, Any]]:
    """(name, content) of each file of asv that fits its schema; store.load() has named the others."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield path.name, door.read_file(path)
        except (door.Unfit, OSError):
            continue


def _names(folder: Path, files: Mapping[str, Any], measured_as: str) -> Iterator[Finding]:
    """Whether all files are of this machine, and have the names that asv gives them. ``measured_as``: its name where it
    was measured."""
    again = "Write the folder anew: gpu-cookbook send MACHINE --as NAME"
    if not MACHINE.fullmatch(folder.name):
        yield error("the folder", f"'{folder.name}' is no name of a machine", again)
    if "machine.json" not in files and not (folder / "machine.json").exists():
        yield error("machine.json", "is missing: asv skips a folder without it", to_write_facts(measured_as))
    for name, data in files.items():
        if name == "machine.json":
            if data["machine"] != folder.name:  # of the others, store.load() has said so
                yield error(name, f"belongs to the machine {data['machine']}, not to {folder.name}", again)
            continue
        commit, environment = data["commit_hash"], data["env_name"]
        if len(environment) < 128 and name != f"{commit[:8]}-{environment}.json":
            yield error(name, f"is of commit {commit[:8]} and environment {environment}: asv would not find it", again)
        if private.names_a_place(data):
            yield error(
                name,
                f"its environment is named {environment}, its Python {data['python']}: this may be a path",
                "Delete it, and measure again in a clone, whose asv.conf.json names environments by their version.",
            )
        for benchmark, columns in data["results"].items():
            _, workload, kind = (f".{benchmark}".rsplit(".", 2) + ["", ""])[:3]
            if any(columns[PROFILE:]):
                yield error(name, f"has a profile of {benchmark}, with paths of files, which no rule can find", again)
            if workload not in catalogue.workloads() or kind not in METRICS:
                yield note(name, f"{benchmark} is not of this suite: it is not shown", "Leave it, or measure again.")
            elif columns[2] not in measure.VERSIONS:
                yield error(
                    name,
                    f"{benchmark} was measured in version {columns[2]} of the metrics; there are"
                    f" {', '.join(measure.VERSIONS)}",
                    "Measure again with this repository's newest commit.",
                )


def _gpus(files: Mapping[str, Any], results: Sequence[Result]) -> Iterator[Finding]:
    """Whether all was measured on the same GPUs, those of machine.json if it names any: what asv writes names none."""
    places = {name: gpus_in(data if name == "machine.json" else data["params"]) for name, data in files.items()}
    named = {name: gpus for name, gpus in (places | {runs.FILE: gpus_of(results)}).items() if gpus}
    first = "machine.json" if "machine.json" in named else next(iter(named), "")
    for name, gpus in named.items():
        if not are_among(gpus, named[first]) if name == runs.FILE else gpus != named[first]:
            yield error(
                name,
                f"has results of {named_gpus(gpus)}, {first} has {named_gpus(named[first])}",
                "Two machines need two names. Delete what is of the other one, and measure that under its own name.",
            )


def _private(folder: Path, files: Mapping[str, Any]) -> Iterator[Finding]:
    advice = (
        "Write the folder anew with gpu-cookbook send, which takes such texts out; or measure again under another name."
    )
    known: list[tuple[str, Any]] = list(files.items())
    for name, kind in LINES.items():
        known += [(f"{name}, line {number}", line) for number, line in door.read_lines(folder / name, kind)[0]]
    seen = set()
    for place, data in known:
        for key, text in private.texts(data):
            if text not in seen:  # conditions are the same in hundreds of lines
                for what, piece in dict.fromkeys(private.found(text, key)):
                    yield error(place, f"has {what}: {_cut(piece)}", advice)
            seen.add(text)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


# ---- Who sent it, and what was installed.


def _sent(store: Store, folder: Path, base: str, results: Sequence[Result]) -> Iterator[Finding]:
    lines, complaints = sent.lines(folder)
    write = "gpu-cookbook send writes it."
    if not lines and not complaints:
        what = "is missing: nobody can install the same versions, or ask who sent it"
        old = git(store.root, "cat-file", "-t", f"{base}:benchmarks/results/{folder.name}/machine.json")
        yield note(sent.FILE, what, write) if old and _in_place(store, folder) else error(sent.FILE, what, write)
    if not lines or not results:
        return
    for unknown in grouped(unsent(store, folder.name, base, results, lines), lambda each: each[1]):
        which = f"commit{'s' * (len(unknown) > 1)} {', '.join(commit[:8] for commit, _ in unknown)}"
        environment = unknown[0][1]
        how = f"Where it was measured: {in_environment(environment, 'gpu-cookbook send …')}"
        yield note(sent.FILE, f"has no line of the environment {environment} about {which}", how)
    last = lines[-1]
    for broken in (each for each in last["doctor"] if each["status"] == "broken"):
        yield note(
            sent.FILE,
            f"doctor found {broken['name']} {broken['value']} broken".replace("  ", " "),
            "Mend it (gpu-cookbook doctor says how) and measure again, or say in the pull request why not.",
        )
    of_line = {(line["commit"], line["environment"]): line for line in lines}  # the last of each
    devices = {each.device for each in results if each.ok and each.driver and each.device}
    elsewhere = set()
    for line in of_line.values():
        there = {gpu["name"] for gpu in line["facts"]["gpus"]}
        if devices and not any(name in device for name in there for device in devices):
            elsewhere.add(" and ".join(sorted(there)) or "no NVIDIA GPU")
    for gpus in sorted(elsewhere):
        what = f"was written on a computer with {gpus}, the results come from {' and '.join(sorted(devices))}"
        yield note(sent.FILE, what, "Run gpu-cookbook send where it was measured.")
    locks = {place: dict(each.split("==", 1) for each in line["packages"]) for place, line in of_line.items()}
    differ = set()
    for each in results:
        if each.ok and (locked := locks.get((each.stored.commit, each.environment))):
            for version in filter(None, (each.versions or "").split(", ")):
                name, _, number = version.rpartition(" ")
                now = locked.get(canonicalize_name(name), "")
                if now and now.partition("+")[0] != number.partition("+")[0]:
                    differ.add(f"{name} {number}, not {now}")
    for text in sorted(differ):
        yield note(sent.FILE, f"a result was measured with {text}", "Measure again, or send before you upgrade.")


def _in_place(store: Store, folder: Path) -> bool:
    return folder.parent == store.folder.resolve()


# ---- Commits.


def _commits(
    store: Store,
    base: str,
    results: Sequence[Result],
    shown: Sequence[Result],
    lines: runs.Lines,
    files: Mapping[str, Any],
) -> Iterator[Finding]:
    mine = {data["commit_hash"]: name for name, data in files.items() if name != "machine.json"}
    for commit, name in mine.items():
        yield from _commit(store, base, commit, name)
    for name, data in files.items():
        made = git(store.root, "show", "--no-patch", "--format=%at", data.get("commit_hash", "HEAD"))
        if name != "machine.json" and made and data["date"] != 1000 * int(made):
            yield error(
                name,
                "has another date of its commit than git: asv would order it wrongly",
                "Send the folder as gpu-cookbook send wrote it.",
            )
    stray = {line.commit for line in lines.lines} - mine.keys()
    if stray:
        what = f"has lines of commits without results: {', '.join(sorted(commit[:8] for commit in stray))}"
        yield note(runs.FILE, what, "They do no harm, and are not shown.")
    for commit, those in ((those[0].stored.commit, those) for those in grouped(results, lambda r: r.stored.commit)):
        there = _recipes_at(store.root, commit)
        for technique in grouped((r for r in those if r.ok), lambda each: (each.workload, each.technique)):
            path = f"recipes/{technique[0].workload}/with_{technique[0].technique}.py"
            if there and path not in there:
                yield error(
                    mine.get(commit, "results"),
                    f"has results of {path}, which its commit, {commit[:8]}, does not have",
                    "Commit the recipe, in a pull request of its own, and measure it at that commit.",
                )
        yield from _dates(store, commit, those)
    version = {
        commit: match[1]
        for commit in mine
        if (match := re.search(r'^VERSION = "(.*)"', _text_at(store.root, commit), re.MULTILINE))
    }
    for name, data in files.items():
        if name != "machine.json" and (meant := version.get(data["commit_hash"])):
            wrong = {str(columns[2]) for columns in data["results"].values()} - {meant}
            if wrong:
                yield error(
                    name,
                    f"its commit measures in version {meant} of the metrics, the file says {', '.join(sorted(wrong))}",
                    "Measure with the code of the commit: pip install --editable .",
                )
    stale = [each for each in shown if each.ok and each.stale]
    if stale:
        names = ", ".join(sorted({f"{each.workload} {each.technique}" for each in stale}))
        yield note(
            "staleness",
            f"{len(stale)} of {len(shown)} results that are shown {_are(stale)} of code that has changed since:"
            f" {_cut(names)}",
            "They are shown with †. Measuring again at the newest commit takes the mark away.",
        )


def _commit(store: Store, base: str, commit: str, place: str) -> Iterator[Finding]:
    try:
        changed_since(store.root, commit)
    except UnknownCommit:
        return  # store.load has said so
    except StoreError as fault:
        yield error(place, str(fault))
        return
    if git(store.root, "merge-base", commit, base) != commit:
        yield error(
            place,
            f"its commit, {commit[:8]}, is not part of {base}'s history: nobody else could measure it again",
            "Measure at a commit of the project's main branch, with nothing of your own in recipes, kernels and"
            " gpu_cookbook.",
        )


@cache
def _recipes_at(root: Path, commit: str) -> frozenset[str]:
    return frozenset(git(root, "ls-tree", "-r", "--name-only", commit, "--", "recipes").splitlines())


@cache
def _text_at(root: Path, commit: str) -> str:
    return git(root, "show", f"{commit}:gpu_cookbook/run/measure.py")


def _dates(store: Store, commit: str, results: Sequence[Result]) -> Iterator[Finding]:
    """A day has 24 hours in UTC, but clocks are wrong: a day of grace."""
    made = results[0].stored.order[0] / 1000 - 86_400
    first, last = (time.strftime("%Y-%m-%d", time.gmtime(each)) for each in (made, time.time() + 86_400))
    days = {each.stored.date.removeprefix("by ") for each in results}
    if any(day > last for day in days):
        yield error(
            "dates", f"a result was measured on {max(days)}, which is in the future", "Set the clock, and measure."
        )
    if any(day < first for day in days):
        yield error(
            "dates",
            f"a result of commit {commit[:8]} was measured on {min(days)}, before there was that commit",
            "Set the clock, and measure again.",
        )


# ---- Each result.


def _conditions(results: Sequence[Result], lines: runs.Lines) -> Iterator[Finding]:
    """Whether a result has the line that says how it was measured, and the same numbers as that line."""
    bare, unjudged, parts = [], [], []
    firsts: dict[Any, list[float]] = {}
    for line in lines.lines:
        if Metric.FIRST in line.values:
            firsts.setdefault(line.place[:4], []).append(line.values[Metric.FIRST])
    for each in results:
        known = lines.of((each.stored.commit, each.stored.environment, *each.work))
        if known is None:
            bare += [each] * each.ok
            continue
        if each.ok and not each.device:
            bare.append(each)
        if each.ok and not each.copy_bandwidth and catalogue.workload_module(each.workload).bytes_moved(each.size):
            unjudged.append(each)
        if each.status == Status.REFUSED and known.status == Status.OK:
            yield error(_of(each), f"cannot be true: {each.reason}", "Measure it again, with nothing else running.")
            continue
        measured = [line.values for line in lines.every[known.place] if line.values]
        if each.ok and any(each.value(metric) is None for values in measured for metric in map(Metric, values)):
            parts.append(each)
        if each.ok and (differ := list(_different(each, measured, firsts.get(known.place[:4], ())))):
            yield error(
                _of(each),
                f"asv's file and {runs.FILE} have different numbers: {', '.join(differ)}",
                "One of them was edited: measure it again.",
            )
    if parts:
        yield note(
            "completeness",
            f"asv's file has not all metrics that were measured of {counted(len(parts), 'result')}: {_some(parts)}",
            "asv run stores what --bench names; gpu-cookbook compare --save stores all.",
        )
    if bare:
        yield error(
            "conditions",
            f"nothing says on which device and with which versions {counted(len(bare), 'result')} came about:"
            f" {_some(bare)}",
            "Measure with gpu-cookbook compare --save, or with asv in a clone that has this asv.conf.json.",
        )
    if unjudged:
        yield note(
            "ceilings",
            f"what the device can do was not measured beside {counted(len(unjudged), 'result')}, so nobody knows what"
            f" can be true: {_some(unjudged)}",
            "gpu-cookbook compare --save measures both.",
        )


def _different(result: Result, every: Sequence[Mapping[str, float]], firsts: Sequence[float]) -> Iterator[str]:
    """The metrics of asv's file whose value is not that of the newest line of the result that has this metric: asv may
    have been asked for one later than for another. ``firsts``: of all lines of its recipe, since the first result
    belongs to no size. A line from before there were values has none."""
    for metric in (*TIMED, Metric.MEMORY, Metric.ERROR) if every else ():
        value = result.value(metric)
        known = [values[metric] for values in every if metric in values][-1:]
        if value is not None and not any(math.isclose(value, other, rel_tol=runs.ROUNDED) for other in known):
            yield metric
    first = result.value(Metric.FIRST)
    if every and first is not None and not any(math.isclose(first, other, rel_tol=runs.ROUNDED) for other in firsts):
        yield Metric.FIRST


def _of(result: Result) -> str:
    return f"{result.workload} {result.technique} {result.label}, {result.stored.commit[:8]}"


def _are(those: Sequence[Any]) -> str:
    """The verb after '1 of 6 times'."""
    return "is" if len(those) == 1 else "are"


def _some(results: Sequence[Result]) -> str:
    names = list(dict.fromkeys(f"{each.workload} {each.technique}" for each in results))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _ends(shown: Sequence[Result], save: str) -> Iterator[Finding]:
    """How the measurements ended, and how quiet the machine was. ``save``: the command that measures again."""
    for each in shown:
        if each.wrong:
            reason = each.reason or "no reason was stored"
            yield note(_of(each), f"{each.status}: {reason}", "Say in the pull request what you know of it.")
    known = [(each, metric) for each in shown if each.ok for metric in TIMED if each.value(metric) is not None]
    for mine in grouped(known, lambda time: time[0].environment):
        again = in_environment(mine[0][0].environment, f"{save} -t TECHNIQUE")
        advice = f"Stop other work, and measure these again: {again}."
        for each, metric in mine:
            if doubt := each.doubt(metric):
                yield note("doubts", f"? {_of(each)} {metric}: {doubt}", advice)
        if noisy := [each for each, metric in mine if each.noisy(metric)]:
            yield note("noise", f"{len(noisy)} of {len(mine)} times {_are(noisy)} noisy (~): {_some(noisy)}", advice)
    unquiet = sum(bool(each.noisy(metric) or each.doubt(metric)) for each, metric in known)
    if unquiet > UNQUIET * len(known) and len(known) >= FEW:
        yield error(
            "noise",
            f"{unquiet} of {len(known)} times are noisy or doubtful; at most a quarter may be",
            "Measure again on a machine that does nothing else.",
        )


def _complete(shown: Sequence[Result], save: str) -> Iterator[Finding]:
    """What is missing of all that there is to measure, in each environment. ``save``: the command that measures it."""
    for mine in grouped(shown, lambda each: each.environment):
        there = {each.work: each for each in mine}
        advice = f"{in_environment(mine[0].environment, save)} --resume measures what is missing."
        missing: dict[str, list[str]] = {}
        at_all = {each.workload for each in mine}
        measured = {(each.workload, each.size) for each in mine}
        for workload in catalogue.workloads():
            recipes = [each for each in catalogue.of_workload(workload) if each.environment == mine[0].environment]
            if workload not in at_all:
                if recipes:
                    missing.setdefault("not measured at all", []).append(workload)
                continue
            for recipe in recipes:
                # Without a GPU, compare takes the smaller sizes only: what no recipe was measured at is not missing.
                sizes = [size for size in catalogue.workload_module(workload).SIZES if (workload, size) in measured]
                lacking = [size for size in sizes if (workload, recipe.technique, size) not in there]
                if lacking:
                    label = catalogue.workload_module(workload).label
                    where = "" if len(lacking) == len(sizes) else f" at {', '.join(map(label, lacking))}"
                    missing.setdefault("not measured", []).append(f"{workload} {recipe.technique}{where}")
        for why, names in missing.items():
            more = f" and {len(names) - 6} more" if len(names) > 6 else ""
            yield note(
                "completeness",
                f"{why}: {', '.join(names[:6])}{more}",
                advice,
            )
        skipped = [each for each in mine if each.status == Status.SKIPPED]
        for those in grouped(skipped, lambda each: each.reason):
            reason = those[0].reason or "no reason was stored"
            yield note("completeness", f"skipped, {_some(those)}: {reason}")
        for workload in sorted(at_all):
            ok = [each for each in mine if each.workload == workload and each.ok]
            if bare := {each.size for each in ok} - {each.size for each in ok if each.is_numpy}:
                yield note(
                    "completeness",
                    f"{workload} was not measured in NumPy at {_sizes(bare)}: there are no speedups",
                    advice,
                )
            if odd := {each.size for each in ok} - set(catalogue.workload_module(workload).SIZES):
                yield note("completeness", f"{workload} was measured at sizes that are not published: {_sizes(odd)}")


def _sizes(sizes: Iterable[Any]) -> str:
    return ", ".join(map(catalogue.option_of, sorted(sizes, key=str)))


# ---- Other files.


# How each other file of lines is read.
KEPT_IN: Mapping[str, Callable[[Path, Path, str], tuple[Sequence[Any], list[str]]]] = {
    scaling.FILE: scaling.kept_in,
    limits.FILE: limits.kept_in,
    **dict.fromkeys(transfers.FILES, transfers.kept_in),
    together.FILE: together.kept_in,
}


def _lines(store: Store, folder: Path, base: str) -> Iterator[Finding]:
    """The lines of KEPT_IN, each of which has a commit of its own."""
    for file, kept_in in KEPT_IN.items():
        kept, complaints = kept_in(folder / file, store.root, folder.name)
        for complaint in complaints:
            yield _complaint(store.root, folder, complaint)
        for run in kept:
            yield from _commit(store, base, run.origin.commit, file)
            for row in scaling.judged(run.rows) if file == scaling.FILE else ():
                if row.status in (Status.FAILED, Status.REFUSED):
                    what = f"{row.technique} on {row.on}: {row.status}: {row.reason}"
                    yield note(file, what, "Say in the pull request what you know of it.")


# ---- Machines that are alike.


def _copied(results: Sequence[Result], others: Sequence[Result]) -> Iterator[Finding]:
    for name, count in sorted(_same(results, others).items()):
        if count >= FEW:
            yield error(
                "plausibility",
                f"{count} times are those of {name} to the last digit",
                "Send what was measured on this machine.",
            )


def _same(results: Sequence[Result], others: Sequence[Result]) -> Counter[str]:
    """{machine: how many of its times are these}. No two measurements agree in every digit."""
    known: dict[Any, set[str]] = {}
    for each in others:
        for metric, timing in each.timings.items():
            known.setdefault((*each.work, metric, timing.median), set()).add(each.stored.machine)
    same = (
        name
        for each in results
        for metric, timing in each.timings.items()
        for name in known.get((*each.work, metric, timing.median), ())
    )
    return Counter(same)


def _plausible(shown: Sequence[Result], stored: Sequence[Result]) -> Iterator[Finding]:
    """How far the results are from those of the same code on the same kind of device: of other machines, and of this
    machine's earlier commits. Where there are none, those of older code give a hint, but prove nothing."""
    ok = [each for each in shown if each.ok]
    mine = {(each.stored.machine, each.stored.commit, *each.work) for each in ok}
    rest = (r for r in stored if r.ok and (r.stored.machine, r.stored.commit, *r.work) not in mine)
    others = keyed(rest, lambda each: (each.device, *each.work))
    compared, far = 0, []
    for each in ok:
        alike = others.get((each.device, *each.work), [])
        same = [other for other in alike if other.stored.commit == each.stored.commit or not other.stale | each.stale]
        for name, value, values, most in _pairs(each, same or alike):
            compared += bool(same)
            ratio = value / median(values)
            if not 1 / most <= ratio <= most:
                far.append((each, name, ratio, most, bool(same)))
    known = {device for device, *_ in others}
    if unknown := sorted({each.device for each in ok if each.device} - known):
        yield note(
            "plausibility",
            f"nothing else was measured on {' or '.join(unknown)}: there is nothing to compare it with",
            "A reviewer compares its copy bandwidth with the data sheet.",
        )
    for each, name, ratio, most, same_code in sorted(far, key=lambda one: -abs(math.log(one[2]))):
        where = f"on {each.device} elsewhere" + " by older code" * (not same_code)
        yield note(
            "plausibility",
            f"{_of(each)}: {name} is {digits(ratio)} × that {where}; up to {digits(most)} × is usual",
            "Measure it again, or say in the pull request why this machine differs.",
        )
    outside = sum(same_code for *_, same_code in far)
    if outside > MANY * compared and compared >= FEW:
        yield error(
            "plausibility",
            f"{outside} of {compared} numbers are far from those of the same code on the same device",
            "Measure again on an idle machine at default clocks; if its clocks are not, say so in its name.",
        )
    elif compared:
        are = "is" if compared - outside == 1 else "are"
        yield note("plausibility", f"{compared - outside} of {compared} numbers {are} near those of machines alike")


def _pairs(result: Result, alike: Sequence[Result]) -> Iterator[tuple[str, float, list[float], float]]:
    """(name, value, values elsewhere, how far apart they may be) of all that two machines have in common."""
    for metric, most in FAR.items():
        values = [value for each in alike if (value := each.value(metric))]
        if values and (value := result.value(metric)):
            yield str(metric), value, values, most if result.on_gpu else FAR_ON_HOST
    for name in ("copy_bandwidth", "cache_bandwidth", "arithmetic", "empty_kernel"):
        values = [value for each in alike if (value := getattr(each, name))]
        if values and (value := getattr(result, name)):
            yield name.replace("_", " "), value, values, FAR_LIMITS if result.on_gpu else FAR_ON_HOST


# ---- What a pull request touches.


def touched(store: Store, ref: str) -> tuple[list[Path], list[Finding], bool]:
    """The machines' folders that differ from what they were where this branch left ``ref``, findings about all else
    that differs under benchmarks/results, and whether all of it was left out. StoreError if there is no such commit."""
    commit = commit_named(store.root, ref)
    start = commit and git(store.root, "merge-base", commit, "HEAD")
    if not start:
        raise StoreError(f"'{plain(ref)}' is no commit with which this branch shares history: git fetch it first.")
    changed = git(store.root, "-c", "core.quotePath=false", "diff", "--name-only", "--no-renames", "-z", start)
    new = git(store.root, "ls-files", "--others", "--exclude-standard", "-z", "--", "benchmarks/results")
    names = sorted({*changed.split("\0"), *new.split("\0")} - {""})
    results = [name.removeprefix("benchmarks/results/") for name in names if name.startswith("benchmarks/results/")]
    found = []
    own = {name.partition("/")[0] for name in results if "/" in name} - machines_at(store.root, start)
    for machine in sorted(own):
        if not (store.folder / machine / sent.FILE).exists() and not git(
            store.root, "ls-files", "--", f"benchmarks/results/{machine}"
        ):
            found.append(note(machine, "was left out: git does not track it, and it was not written by send"))
            results = [name for name in results if name.partition("/")[0] != machine]
    machines = sorted({name.partition("/")[0] for name in results if "/" in name})
    for machine in machines:
        if not os.path.lexists(store.folder / machine):
            found.append(error(machine, "was removed", "Leave stored results as they are, or say why they must go."))
        elif machine in machines_at(store.root, start):
            what = "is stored already: this adds to its results, or replaces some"
            found.append(note(machine, what, "If it is another machine, send it under another name."))
    found += _lost(store, start, results)
    for name in (name for name in results if "/" not in name):
        path = store.folder / name
        if path.is_symlink() or name not in (*SHARED, "benchmarks.json"):
            found.append(error(name, "is not a file of results", "Remove it."))
        elif name in SHARED:
            found += [error(name, each, "Restore the line.") for each in door.read_lines(path, SHARED[name])[1]]
            advice = f"git checkout {ref} -- benchmarks/results/{name}"
            found.append(note(name, "has changed, but a machine's lines belong into its own folder", advice))
        else:
            advice = f"git checkout {ref} -- benchmarks/results/{name}"
            found.append(note(name, "has changed: asv writes it, and it belongs to no machine", advice))
    if len(machines) > 1:
        found.append(note("machines", f"{len(machines)} at once: {', '.join(machines)}", "Send one at a time."))
    if machines and (code := sorted({name for name in names if name.partition("/")[0] in CODE})):
        found.append(
            note(code[0], "has changed as well: results belong to a commit that is there already", "Send it by itself.")
        )
    there = [store.folder / machine for machine in machines if os.path.lexists(store.folder / machine)]
    return there, found, not results


def _lost(store: Store, start: str, names: Sequence[str]) -> Iterator[Finding]:
    """What the commit ``start`` has of these files and they no longer have."""
    there = git(store.root, "ls-tree", "-r", "-z", "--name-only", f"{start}:benchmarks/results").split("\0")
    for name in sorted({*names} & {*there}):
        path = store.folder / name
        advice = f"git checkout {start[:8]} -- benchmarks/results/{name}"
        kind = LINES.get(path.name)
        if not os.path.lexists(path):
            if os.path.lexists(path.parent):  # otherwise the whole machine is gone
                yield error(name, "was removed", advice)
        elif kind and not path.is_symlink():
            before = git(store.root, "show", f"{start}:benchmarks/results/{name}").encode()
            now = {_key(line) for _, line in door.read_lines(path, kind)[0]}
            missing = sum(_key(line) not in now for _, line in door.fit_lines(before, kind)[0])
            if missing:
                yield error(
                    name, f"lacks {counted(missing, 'line')} of those that were there: lines may only be added", advice
                )


def _key(line: Any) -> str:
    return json.dumps(line, sort_keys=True)


def verify_all(store: Store, folders: Sequence[Path], since: str | None) -> list[Verdict]:
    """The verdicts on these folders, and on what differs since the commit ``since``."""
    verdicts = []
    if since is not None:
        changed, found, nothing = touched(store, since)
        folders = [*folders, *changed]
        if found:
            verdicts = [Verdict("benchmarks/results", f"what differs since {since}", _gathered(found), nothing)]
    every = cache(lambda: store.load()[0])
    return [*verdicts, *(verify(store, folder, since, every=every) for folder in folders)]


def as_json(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """The verdicts as plain data."""
    return [
        {
            "folder": each.name,
            "summary": each.summary,
            "accepted": not (each.errors or each.nothing),
            "findings": [
                {
                    "severity": "error" if one.grave else "note",
                    "place": one.place,
                    "finding": one.what,
                    "advice": one.advice,
                }
                for one in each.findings
            ],
        }
        for each in verdicts
    ]
