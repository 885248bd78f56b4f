"""Checks and measures many recipes: several at once if nothing is timed, otherwise one after another."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property

from gpu_cookbook import catalogue, machine
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.results import Key, Result, Run, Size, Status
from gpu_cookbook.run import answers, family, runner

Save = Callable[[Recipe, Result, Run], None]

# Minutes that a comparison of which nothing was chosen is to take, and about how many seconds a recipe takes for its
# check and its start, and each of its results. On two idle cores: 8.1 and 4.5.
MINUTES, PER_RECIPE, PER_RESULT = 8, 8.1, 4.5
# With a GPU, and at the largest published size, which takes most of the time. From what nvidia-h200 has stored of the
# commits 73fad72c and 6e4d8358: runs.jsonl says when each run began, and asv's files when the last result of each
# workload was stored. From one run to the next, those of four recipes or more took 779 s, and 4.5 s for the check and
# the start of each recipe gave 788 s. On a machine that had just been started, with an H100 and 16 cores, 33 recipes of
# what is measured by default took 580 s (922c953a), which makes 5.7 s of the 4.5. The 22 s are a mean of twelve
# recipes: NumPy's takes 150 s (96cc8e4c), and the others 10 s. Fourteen recipes of norm took 227 s (e7e0d727). A
# workload of which no GPU has stored a run is taken for multiply.
MINUTES_ON_GPU, PER_RECIPE_ON_GPU, PER_RESULT_ON_GPU = 10, 5.7, 2.5
PER_LARGEST_ON_GPU = dict(increment=12, multiply=14, matmul=11, norm=7, subset_mean=30, random_subset_mean=22)
# Of a result of training, which takes eight passes or nine, for each image. On two cores, a pass over 6,000 images took
# 5 s in PyTorch, and 15 s in NumPy and in JAX. With a GPU it is an estimate: NumPy's passes take most of the time.
PER_IMAGE, PER_IMAGE_ON_GPU = 0.015, 0.002
# Of a result on tables, for each row; no result takes less than PER_RESULT. NumPy's and pandas' calls take most of it.
# On 16 cores with an H100, all sizes of a recipe took 54 s of group_mean, 21 s of group_mean_strings and 22 s of
# read_parquet (75d649d2, 45213f01).
PER_ROW = dict(group_mean=5e-7, group_mean_strings=8e-7, read_parquet=3e-7)
# From this first number of a size on, NumPy takes minutes for a result. On 16 cores, a call for 100,000² takes 150 s,
# and a pass over 60,000 images 130 s.
MINUTES_IN_NUMPY = dict(random_subset_mean=100_000, training=60_000)
LONG = 20  # seconds of a result: the workload's next smaller size says nearly as much
CALLS = 10  # of a recipe, at the least, until all metrics of a result are known


@dataclass
class Outcome:
    """What is known when the work has ended, by itself or not."""

    results: list[Result] = field(default_factory=list)
    interrupted: bool = False  # by Ctrl-C; no process is left behind
    measured: int = 0  # results, each as often as it was measured
    spent: dict[str, float] = field(default_factory=dict)  # seconds of each phase of measuring
    stopped: OSError | None = None  # what ended it: a result cannot be saved, or no process can be started
    late: list[Recipe] = field(default_factory=list)  # not begun, since the time was over


def check(recipes: Sequence[Recipe], finished: Callable[[], None]) -> Outcome:
    """The results of each recipe at its edge sizes, in the order of the recipes; ``finished`` is called after each
    recipe. Nothing is timed, so several run at once."""

    def one(recipe: Recipe) -> list[Result]:
        return list(runner.run(recipe, "check", list(catalogue.workload_module(recipe.workload).EDGE_SIZES)))

    outcome = Outcome()
    known: dict[Recipe, list[Result]] = {}
    machine.distribution_names("numpy")  # what all packages are is read here, once, and not by each thread
    # On three quarters of the cores, rounded up: each waits for its device, and some start processes of their own.
    with ThreadPoolExecutor(-(-machine.cores() * 3 // 4)) as pool:
        # Those with an engine first, which take longest: so none runs alone at the end.
        first = sorted(recipes, key=lambda recipe: "engine" not in recipe.functions)
        try:
            futures = {pool.submit(one, recipe): recipe for recipe in first}
            for future in as_completed(futures):
                known[futures[future]] = future.result()
                finished()
        except (KeyboardInterrupt, OSError) as error:
            outcome.interrupted = isinstance(error, KeyboardInterrupt)
            outcome.stopped = error if isinstance(error, OSError) else None
            pool.shutdown(wait=False, cancel_futures=True)
            runner.stop_all()
    outcome.results = [each for recipe in recipes for each in known.get(recipe, ())]
    return outcome


@dataclass(frozen=True)
class Comparison:
    """The recipes and sizes that are to be measured. ``known``: results that need not be measured again. ``beside``:
    NumPy's recipes that nobody has asked for, which are measured for the speedups unless that takes minutes.
    ``limit``: the seconds after which no further recipe is begun."""

    recipes: Sequence[Recipe]
    sizes: Mapping[str, Sequence[Size]]  # of each workload
    known: Mapping[Key, Result] = field(default_factory=dict)
    beside: Collection[Recipe] = ()
    limit: float = math.inf

    @cached_property
    def found(self) -> list[Result]:
        """The requested results that are already known."""
        keys = [_key(each, size) for each in self.recipes for size in self.sizes[each.workload]]
        return [self.known[key] for key in keys if key in self.known]

    @cached_property
    def left(self) -> list[tuple[Recipe, list[Size]]]:
        """The recipes that are still to be measured, each with its sizes."""
        jobs = [(each, [size for size in self._open(each) if not self._slow(each, size)]) for each in self.recipes]
        return [(recipe, sizes) for recipe, sizes in jobs if sizes]

    @property
    def left_out(self) -> list[tuple[Recipe, Size]]:
        """What nobody has asked for, and would take minutes."""
        return [(each, size) for each in self.recipes for size in self._open(each) if self._slow(each, size)]

    def _open(self, recipe: Recipe) -> list[Size]:
        return [size for size in self.sizes[recipe.workload] if _key(recipe, size) not in self.known]

    def _slow(self, recipe: Recipe, size: Size) -> bool:
        first = size[0] if isinstance(size, tuple) else size
        return recipe in self.beside and first >= MINUTES_IN_NUMPY.get(recipe.workload, math.inf)

    def measure(
        self,
        started: Callable[[Recipe, Size], None],
        finished: Callable[[], None],
        save: Save | None,
        repeat: int = 1,
        checked: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """The known results and, measured one recipe after another, those that are left; each is saved as soon as it is
        measured. Before that, all recipes are checked: what fails is not measured, and its results have failed.
        ``checked`` is called after the check of each recipe, ``started`` and ``finished`` before and after each result.
        ``repeat``: how often everything is measured; the outcome has the last result of each, with the values of all
        runs."""
        last = time.monotonic()
        end = last + self.limit
        outcome = Outcome()
        newest: dict[Key, Result] = {}

        def spent(phase: str) -> None:
            nonlocal last
            outcome.spent[phase] = outcome.spent.get(phase, 0) + time.monotonic() - last
            last = time.monotonic()

        checks = check([recipe for recipe, _ in self.left], checked)
        spent("checking")
        if checks.interrupted or checks.stopped:
            return replace(checks, results=self.found)
        try:
            for _ in range(repeat):
                run = Run.now()
                for recipe, sizes in self.left:
                    failed = _failed(recipe, sizes, checks.results)
                    if time.monotonic() > end and not failed and not machine.obstacle(recipe):
                        outcome.late.append(recipe)
                        continue
                    alone = sum(each.workload == recipe.workload for each, _ in self.left) == 1
                    folder = answers.place(recipe)  # without what is there of the workload before it
                    results = failed or runner.run(
                        recipe, "measure", sizes, started, spent=spent, answers=None if alone else folder
                    )
                    for result in results:
                        outcome.measured += result.status != Status.SKIPPED
                        newest[result.key] = result.again(run, newest.get(result.key))
                        if save:
                            save(recipe, result, run)
                        finished()
        except KeyboardInterrupt:
            outcome.interrupted = True
        except OSError as error:  # a StoreError, or a full disk
            outcome.stopped = error
        finally:
            runner.stop_all()
            answers.clear(family.in_memory())
        outcome.results = [*self.found, *newest.values()]
        return outcome


def _failed(recipe: Recipe, sizes: Sequence[Size], checks: Sequence[Result]) -> list[Result]:
    """The results of these sizes if the recipe has failed its check, otherwise none."""
    own = [each for each in checks if _key(recipe, each.size) == each.key]
    first = next((each for each in own if each.status == Status.FAILED), None)
    if not first:
        return []
    everywhere = len({each.reason for each in own}) == 1
    where = "" if everywhere else f" at {catalogue.workload_module(recipe.workload).label(first.size)}"
    reason = f"failed its check{where}: {first.reason}"
    return [replace(first, size=size, reason=reason) for size in sizes]


def _key(recipe: Recipe, size: Size) -> Key:
    return recipe.workload, recipe.technique, size, recipe.environment


@dataclass(frozen=True)
class Choice:
    """What is to be measured, and what is left out so that this ends in time."""

    recipes: Sequence[Recipe]
    sizes: Mapping[str, Sequence[Size]]  # of each workload
    repeat: int = 1
    left_out: Sequence[str] = ()

    def seconds(self) -> float:
        """About what this takes here."""
        here = [each.workload for each in self.recipes if not machine.obstacle(each)]
        results = {name: sum(_seconds_of(name, size) for size in sizes) for name, sizes in self.sizes.items()}
        per_recipe = PER_RECIPE_ON_GPU if machine.gpus() else PER_RECIPE
        return sum(per_recipe + self.repeat * results[name] for name in here)


def most() -> float:
    """The seconds that a comparison of which nothing was chosen may take here."""
    return 60 * (MINUTES_ON_GPU if machine.gpus() else MINUTES)


def _seconds_of(workload: str, size: Size) -> float:
    """About what a result takes here."""
    if workload == "training" and isinstance(size, tuple):
        return size[0] * (PER_IMAGE_ON_GPU if machine.gpus() else PER_IMAGE)
    if workload in PER_ROW:
        rows = size[0] if isinstance(size, tuple) else size
        return max(PER_RESULT_ON_GPU if machine.gpus() else PER_RESULT, rows * PER_ROW[workload])
    if not machine.gpus():
        return PER_RESULT
    if size != catalogue.workload_module(workload).SIZES[-1]:
        return PER_RESULT_ON_GPU
    return PER_LARGEST_ON_GPU.get(workload, PER_LARGEST_ON_GPU["multiply"])


def brief(choice: Choice) -> Choice:
    """What of it takes most() seconds: what one can best do without is left out first, until it fits."""
    plainest: dict[tuple[str, str, str], Recipe] = {}
    for each in sorted(choice.recipes, key=lambda recipe: len(recipe.technique)):
        plainest.setdefault((each.workload, each.framework, each.runs_on), each)
    engines = catalogue.engines()

    def kept(recipes: Callable[[Recipe], bool]) -> Choice:
        return replace(choice, recipes=[each for each in choice.recipes if recipes(each)])

    def shortened(sizes: Callable[[Sequence[Size]], Sequence[Size]], names: Collection[str] = choice.sizes) -> Choice:
        return replace(
            choice, sizes={name: sizes(every) if name in names else every for name, every in choice.sizes.items()}
        )

    def without(workload: str) -> Choice:
        return kept(lambda recipe: recipe.workload != workload)

    long = [name for name, sizes in choice.sizes.items() if _seconds_of(name, sizes[-1]) > LONG and name != "training"]
    ways: dict[str, Callable[[], Choice]] = {
        "tuned recipes": lambda: kept(lambda recipe: recipe.lane == "idiomatic"),
        "variants of a framework's plainest recipe": lambda: kept(lambda recipe: recipe in plainest.values()),
        "training, which takes minutes": lambda: without("training"),
        f"the largest size of {' and '.join(long)}": lambda: shortened(lambda sizes: sizes[:-1], long),
        "sizes between the smallest and the largest": lambda: shortened(lambda sizes: sizes[:: max(1, len(sizes) - 1)]),
        "increment, which is much like multiply": lambda: without("increment"),
        "convolution, which is on signals": lambda: without("convolution"),
        "read_parquet, which reads a file": lambda: without("read_parquet"),
        "group_mean_strings, which is much like group_mean": lambda: without("group_mean_strings"),
        "pca, which takes products as regression does": lambda: without("pca"),
        "group_mean, which is on tables": lambda: without("group_mean"),
        "regression, which takes products as matmul does": lambda: without("regression"),
        "norm, which is a reduction as subset_mean is": lambda: without("norm"),
        ", ".join(sorted(engines, key=str.lower)): lambda: kept(lambda recipe: recipe.framework not in engines),
        "random_subset_mean, which gpu-cookbook scale measures": lambda: without("random_subset_mean"),
        f"all but the smallest size of {' and '.join(long)}": lambda: shortened(lambda sizes: sizes[:1], long),
        "the smallest sizes": lambda: shortened(lambda sizes: sizes[-1:]),
    }
    for what, way in ways.items():
        if choice.seconds() <= most():
            break
        shorter = way()
        if shorter.seconds() < choice.seconds():
            choice = replace(shorter, left_out=(*choice.left_out, what))
    return choice


def within_a_minute(recipes: Mapping[Recipe, float], size: Size) -> list[Recipe]:
    """Of these recipes, all of one workload, as many as are checked and measured at this size in a minute; the first
    have precedence. Beside each is about how many seconds a call takes."""
    few: list[Recipe] = []
    spent = 0.0
    for recipe, seconds in recipes.items():
        own = Choice([recipe], {recipe.workload: [size]}).seconds() + CALLS * seconds
        if spent + own <= 60:
            few.append(recipe)
            spent += own
    return few


def with_numpy(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The recipes, preceded in each workload by NumPy's, to which speedups are relative."""
    workloads = list(dict.fromkeys(recipe.workload for recipe in recipes))
    numpy = [recipe for recipe in catalogue.choose(workloads) if recipe.technique == "numpy"]
    return sorted(
        {*recipes, *numpy}, key=lambda recipe: (recipe.workload, recipe.technique != "numpy", recipe.technique)
    )
