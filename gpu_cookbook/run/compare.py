"""Checks and measures many recipes: several at once if nothing is timed, otherwise one after another."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from gpu_cookbook import catalogue
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.results import Result, Size
from gpu_cookbook.run import runner


def check(recipes: Sequence[Recipe]) -> Iterator[list[Result]]:
    """Yields the results of each recipe at its edge sizes as soon as they are known. Nothing is timed, so several run
    at once."""

    def one(recipe: Recipe) -> list[Result]:
        return list(runner.run(recipe, "check", list(catalogue.workload_module(recipe.workload).EDGE_SIZES)))

    with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)) // 2)) as pool:
        futures = [pool.submit(one, recipe) for recipe in recipes]
        try:
            for future in as_completed(futures):
                yield future.result()
        except (KeyboardInterrupt, GeneratorExit):
            pool.shutdown(wait=False, cancel_futures=True)
            runner.stop_all()
            raise


@dataclass(frozen=True)
class Comparison:
    """The recipes and sizes that are to be measured. ``known``: results that need not be measured again."""

    recipes: Sequence[Recipe]
    sizes: Mapping[str, Sequence[Size]]  # of each workload
    known: Mapping[tuple[str, str, Size], Result] = field(default_factory=dict)  # by Result.key

    def found(self) -> list[Result]:
        """The requested results that are already known."""
        keys = ((each.workload, each.technique, size) for each in self.recipes for size in self.sizes[each.workload])
        return [self.known[key] for key in keys if key in self.known]

    def left(self) -> list[tuple[Recipe, list[Size]]]:
        """The recipes that are still to be measured, each with its sizes."""
        jobs = [
            (
                each,
                [size for size in self.sizes[each.workload] if (each.workload, each.technique, size) not in self.known],
            )
            for each in self.recipes
        ]
        return [(recipe, sizes) for recipe, sizes in jobs if sizes]

    def measure(self, started: Callable[[Recipe, Size], None]) -> Iterator[tuple[Recipe, Result]]:
        """Measures what is left, one recipe after another. KeyboardInterrupt leaves no process behind."""
        jobs = self.left()
        try:
            probes = runner.probe([recipe for recipe, _ in jobs])
            for recipe, sizes in jobs:
                for result in runner.run(recipe, "measure", sizes, probes, started):
                    yield recipe, result
        except KeyboardInterrupt:
            runner.stop_all()
            raise


def with_numpy(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The recipes, preceded in each workload by NumPy's, to which speedups are relative."""
    workloads = dict.fromkeys(recipe.workload for recipe in recipes)
    numpy = [recipe for name in workloads if (recipe := catalogue.find(name, "numpy"))]
    return sorted(
        {*recipes, *numpy}, key=lambda recipe: (recipe.workload, recipe.technique != "numpy", recipe.technique)
    )
