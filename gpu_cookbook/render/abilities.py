"""The tables of what frameworks and parallel engines can do, from frameworks.toml and the recipes' Install lines.

What frameworks can do fills several tables, each narrow enough for a page.
"""

import ast
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpu_cookbook import catalogue, show
from gpu_cookbook.render.format import STALE, UNKNOWN
from gpu_cookbook.render.tables import Entry, Recipe, Table, below, legend, metric_entry
from gpu_cookbook.results import KEYS, Metric, Result, grouped, of_one_environment

ANSWERS = {"recipes": "✓", "no": "✗", "documented": "○", "unfound": "? not found in", "text": ""}
EXAMPLE = "multiply"  # the workload by whose plainest recipes frameworks are compared


def abilities(results: Iterable[Result] = ()) -> list[Table]:
    """What frameworks can do, their plainest recipes with the first ``results``, and what parallel engines can use.
    Each ✓ links to its recipes, and every other answer to its source."""
    facts = tomllib.loads(Path(__file__).with_name("frameworks.toml").read_text(encoding="utf-8"))
    signs = (
        "✓: recipes here do it, and they are checked; gpu-cookbook show WORKLOAD TECHNIQUE prints one. ○: no recipe "
        "here does it, but the framework's own documentation says that it can. ✗: no. ?: its documentation was "
        f"searched, and says neither that it can nor that it cannot. The sources were read by {facts['checked']}."
    )
    tables = {name: _tables(name, facts[name], facts["checked"]) for name in ("frameworks", "engines")}
    for found in tables.values():
        below(found, [Entry(signs, "note")])
    return [*tables["frameworks"], plainest(results), *tables["engines"]]


def _tables(name: str, facts: Mapping[str, Any], checked: object) -> list[Table]:
    """One table for each group of questions; what became of a project is below the last."""
    tables = []
    for title, questions in facts["questions"].items():
        rows, records = [], []
        for row in facts["row"]:
            answers = {key: _answer(row, key) for key in questions}
            rows.append((Entry(links=((row["name"], row["home"]),)), *map(_entry, answers.values())))
            for key, answer in answers.items():
                record = {"table": name, "name": row["name"], "question": questions[key], "checked": f"{checked}"}
                records.append(record | {"answer": _entry(answer).mark} | answer)
        head = (name.removesuffix("s"), *questions.values())
        tables.append(Table(title, head, "l" * len(head), rows, [], records))
    ended = [(row["name"], row["status"]) for row in facts["row"] if "status" in row]
    below(tables, (Entry(f"{who}: {status['text']}", "note", _sources(status)) for who, status in ended))
    return tables


def plainest(results: Iterable[Result]) -> Table:
    """The plainest recipe of each framework: how long it is, and when it has its first result, on the machine that has
    the most of them."""
    timed = [each for each in results if each.workload == EXAMPLE and each.value(Metric.FIRST) is not None]
    machines = grouped(timed, lambda each: each.origin and each.origin.machine)
    most = max(machines, key=len) if machines else []
    mine = {each.technique: each for each in of_one_environment(most)}
    rows, records = [], []
    frameworks = grouped(catalogue.of_workload(EXAMPLE), lambda recipe: recipe.framework)
    for recipes in sorted(frameworks, key=lambda recipes: recipes[0].framework.lower()):
        recipe = _plainest(recipes)
        result = mine.get(recipe.technique)
        first = metric_entry(result, Metric.FIRST) if result else Entry(UNKNOWN)
        technique = Entry(links=((recipe.technique, (EXAMPLE, recipe.technique)),))
        place = Entry(result.place if result else "")
        lines = _lines(recipe)
        rows.append((Entry(recipe.framework), technique, Entry(f"{lines}"), first, place))
        record: dict[str, Any] = {
            "table": "plainest",
            "name": recipe.framework,
            "technique": recipe.technique,
            "lines": lines,
        }
        if result:
            seconds = {KEYS[Metric.FIRST]: result.value(Metric.FIRST)}
            record |= seconds | {"device": result.place, "stale": result.stale}
        records.append(record)
    machine = next((f", on {each.origin.machine}" for each in mine.values() if each.origin), "")
    note = (
        f"The recipe of {EXAMPLE} with the shortest name. Lines: with the kernel, and without the docstring, the check "
        "at the end and empty lines. First result: that of a fresh process with empty caches"
        f"{machine}; {UNKNOWN} was not measured there."
    )
    notes = [Entry(note, "note"), *[Entry(legend([STALE]), "note")] * any(each.stale for each in mine.values())]
    head = ("framework", "technique", "lines", "first result", "on")
    return Table("Frameworks: the plainest recipe", head, "llrrl", rows, notes, records, EXAMPLE)


def _plainest(recipes: Iterable[catalogue.Recipe]) -> catalogue.Recipe:
    """The one with the shortest technique."""
    return min(recipes, key=lambda recipe: len(recipe.technique))


def _lines(recipe: catalogue.Recipe) -> int:
    text = show.script(recipe)
    docstring, *_, main = ast.parse(text).body
    return sum(bool(line.strip()) for line in text.splitlines()[docstring.end_lineno : main.lineno - 1])


def _answer(row: Mapping[str, Any], key: str) -> dict[str, Any]:
    """What the row answers. How to install a framework is what its plainest recipe says, if it has one."""
    if key != "install":
        return dict(row["can"][key])
    recipes = [recipe for recipe in catalogue.recipes() if recipe.framework == row["name"]]
    return {"text": UNKNOWN} | row["can"].get(key, {}) | ({"text": _plainest(recipes).install} if recipes else {})


def _entry(answer: Mapping[str, Any]) -> Entry:
    kind = next(kind for kind in ANSWERS if kind in answer)
    words = [answer[key] for key in (kind, "note") if key in answer and key != "recipes"]
    links = [(" ".join(recipe), recipe) for recipe in map(_recipe, answer.get("recipes", ()))]
    return Entry(f"{ANSWERS[kind]} {'; '.join(words)}".strip(), kind, (*links, *_sources(answer)))


def _recipe(path: str) -> Recipe:
    """'multiply/with_cupy.py' → ('multiply', 'cupy')"""
    workload, technique = path.removesuffix(".py").split("/with_")
    return workload, technique


def _sources(answer: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(("source" if n == 1 else str(n), address) for n, address in enumerate(answer.get("sources", ()), 1))
