"""Which of the stored results are meant: what the tables show of each machine, or those of what is named."""

from collections import Counter
from collections.abc import Mapping, Sequence

from gpu_cookbook import catalogue, repeats
from gpu_cookbook.results import Result, Status, completed, grouped
from gpu_cookbook.store.commits import StoreError


def select(
    results: Sequence[Result],
    machines: Sequence[str] | None = None,
    commits: Sequence[str] | None = None,
    environments: Sequence[str] | None = None,
) -> tuple[list[Result], list[tuple[list[Result], list[Result]]]]:
    """(of each machine, environment and recipe, the newest results, []); or ([], [(before, after), …]) if two
    machines, commits or environments are named: one pair per machine, because two machines are only compared if both
    are named. Each has the runs of those that it repeats, and one of these may stand for it: see repeats.together().

    A StoreError names the known ones if nothing matches.
    """
    named = _named(machines, commits, environments)
    _require_known(named, results, results)
    # Of each commit, before some of its results give way to newer ones: NumPy's may.
    measured = grouped(results, lambda each: (each.stored.machine, each.stored.commit, each.stored.environment))
    wanted = _sides(named)
    results = [each for mine in measured if any(_fitting(mine, side) for side in wanted) for each in completed(mine)]
    fitting = [_fitting(results, side) for side in wanted]
    sides = [repeats.together(_newest(those), those) for those in fitting]
    double = [key for key, wanted in named.items() if len(wanted) == 2]
    if not double:
        return sides[0], []
    (option,) = double
    pairs = [(sides[0], sides[1])]
    if option != "machine":
        both = sorted({each.stored.machine for each in sides[0]} & {each.stored.machine for each in sides[1]})
        if not both:
            raise StoreError(f"No machine has results for both {option}s.")
        before, after = ([[each for each in side if each.stored.machine == name] for name in both] for side in sides)
        pairs = list(zip(before, after, strict=True))
    pairs = [(before, after) for before, after in pairs if before != after]  # two names may be of the same results
    if not pairs:
        names = " and ".join(f"--{option} {word}" for word in named[option])
        raise StoreError(f"{names} select the same results: name two that differ, or one to see its results.")
    return [], pairs


def require_some(
    every: Sequence[Result],
    asked: Sequence[Result],
    what: str,
    machines: Sequence[str] | None = None,
    commits: Sequence[str] | None = None,
    environments: Sequence[str] | None = None,
) -> None:
    """StoreError if one of these machines, commits and environments is unknown, or if all of them together leave
    nothing of what is asked for. ``what``: that, as words of the command."""
    named = _named(machines, commits, environments)
    _require_known(named, every, asked)
    workloads = {each.workload for each in asked}
    for key, wanted in named.items():
        for word in wanted:
            if not _fitting(asked, {key: word}):
                others = sorted({each.workload for each in _fitting(every, {key: word})})
                there = "" if workloads & {*others} else f"; it has {', '.join(others)}"
                raise StoreError(f"{word} has no results of {what}{there}.")
    for side in filter(None, _sides(named)):
        if not _fitting(asked, side):
            options = " ".join([what, *(f"--{key} {word}" for key, word in side.items())]).strip()
            raise StoreError(f"No result fits all of these: {options}. Omit one of them.")


def _named(
    machines: Sequence[str] | None, commits: Sequence[str] | None, environments: Sequence[str] | None
) -> dict[str, Sequence[str]]:
    """What is named, by the option that names it."""
    named = {"machine": machines, "environment": environments, "commit": commits}
    return {key: wanted for key, wanted in named.items() if wanted}


def _sides(named: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """The names of the one side of a comparison, and of the other: the same unless an option is given twice."""
    return [{key: wanted[side * (len(wanted) - 1)] for key, wanted in named.items()} for side in range(2)]


def _require_known(named: Mapping[str, Sequence[str]], every: Sequence[Result], asked: Sequence[Result]) -> None:
    """StoreError if there is nothing for a name in ``every``, or if the names make no sense together. Commits are
    suggested from what the other names leave of ``asked``."""
    for key, wanted in named.items():
        if len(wanted) > 2:
            raise StoreError(f"--{key} can be given at most twice, to compare two.")
        for word in wanted:
            meant = {_of(each, key) for each in every if fits(each, key, word)}
            if not meant:
                left = every
                if key == "commit":
                    others = {other: words for other, words in named.items() if other != key}
                    left = [each for side in _sides(others) for each in _fitting(asked, side)]
                known = _instead(left, key, word) if left or not every else ""
                raise StoreError(f"There are no results for {key} '{word}'. {known}".strip())
            if key == "commit" and len(meant) > 1:
                names = ", ".join(sorted(commit[:12] for commit in meant))
                raise StoreError(f"'{word}' may be any of these commits: {names}.")
    double = [key for key, wanted in named.items() if len(wanted) == 2]
    if len(double) > 1:
        raise StoreError(f"Only one option may be given twice: --{' and --'.join(double)} both were.")


def _instead(results: Sequence[Result], key: str, word: str) -> str:
    """What to ask for in place of a machine, a commit or an environment without results."""
    if not results:
        return "Nothing is stored yet. To store results: gpu-cookbook compare --save"
    known = sorted({_of(each, key) for each in results})
    if key == "commit":  # similar ones have nothing to do with each other
        return f"There are: {', '.join(each[:8] for each in known)}."
    return catalogue.similar(word, known)


def _of(result: Result, key: str) -> str:
    return getattr(result.stored, key)


def fits(result: Result, key: str, word: str) -> bool:
    """Whether the result is of this machine or environment, or of a commit that begins so."""
    if key == "commit":
        return bool(word) and result.stored.commit.startswith(word)
    return word == _of(result, key) or (key == "environment" and word == result.environment)


def _fitting(results: Sequence[Result], wanted: Mapping[str, str]) -> list[Result]:
    return [each for each in results if all(fits(each, key, word) for key, word in wanted.items())]


def _newest(mine: Sequence[Result]) -> list[Result]:
    """For each machine, environment, recipe and size, the newest result, but none that was skipped if it was measured
    before; of a recipe that was removed, only what the newest commit of its workload has. All of a workload are of one
    of asv's environments: if the newest commit has several, of the one with the most results, and among equals the
    latest."""

    def place(each: Result) -> tuple[str, str, str]:
        return each.stored.machine, each.environment, each.workload

    def run(each: Result) -> tuple[str, ...]:
        return *place(each), each.stored.commit, each.stored.environment

    counts = Counter(run(each) for each in mine if each.ok)
    best: dict[tuple[str, str, str], tuple] = {}
    for each in mine:
        commit_date, measured = each.stored.order
        rank = (commit_date, counts[run(each)], measured, run(each))
        best[place(each)] = max(rank, best.get(place(each), rank))
    there = {(each.workload, each.technique) for each in catalogue.recipes()}
    shown = [
        each
        for each in mine
        if each.stored.environment == best[place(each)][-1][-1]
        and ((each.workload, each.technique) in there or run(each) == best[place(each)][-1])
    ]
    shown.sort(key=lambda each: (each.status != Status.SKIPPED, each.stored.order))
    newest = {id(each) for each in {(place(each), each.technique, each.size): each for each in shown}.values()}
    return [each for each in mine if id(each) in newest]
