"""The tables of what frameworks and parallel engines can do, from frameworks.toml and the recipes' Install lines."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpu_cookbook import catalogue
from gpu_cookbook.render.format import UNKNOWN
from gpu_cookbook.render.tables import Entry, Recipe, Row, Table

ANSWERS = {"recipes": "✓", "no": "✗", "documented": "○", "text": ""}


def abilities() -> list[Table]:
    """What a framework can do, and what a parallel engine can use. Each ✓ links to its recipes, and each ✗ gives its
    reason."""
    facts = tomllib.loads(Path(__file__).with_name("frameworks.toml").read_text(encoding="utf-8"))
    checked = f"{facts['checked']}"
    legend = (
        "✓: recipes here do it, and they are checked; gpu-cookbook show WORKLOAD TECHNIQUE prints one. ○: no recipe "
        "here does it, but the framework's own documentation says that it can. ✗: no. The sources were read on "
        f"{checked}."
    )
    tables = []
    for name in ("frameworks", "engines"):
        questions = facts[name]["questions"]
        rows: list[Row] = []
        notes, records = [], []
        for row in facts[name]["row"]:
            answers = row["can"]
            if "install" in questions:
                installing = {"text": UNKNOWN} | answers.get("install", {}) | _installing(row["name"])
                answers = answers | {"install": installing}
            rows.append((Entry(links=((row["name"], row["home"]),)), *(_answer(answers[key]) for key in questions)))
            for key, question in questions.items():
                record = {"table": name, "name": row["name"], "question": question, "checked": checked}
                records.append(record | {"answer": _answer(answers[key]).mark} | answers[key])
            if "status" in row:
                notes.append(Entry(f"{row['name']}: {row['status']['text']}", "note", _sources(row["status"])))
        notes.append(Entry(legend, "note"))
        head = (name.removesuffix("s"), *questions.values())
        tables.append(Table(facts[name]["title"], head, "l" * len(head), rows, notes, records))
    return tables


def _installing(framework: str) -> dict[str, str]:
    """The Install line of the framework's plainest recipe, the one with the shortest technique; {} if it has none."""
    recipes = [recipe for recipe in catalogue.recipes() if recipe.framework == framework]
    return {"text": min(recipes, key=lambda recipe: len(recipe.technique)).install} if recipes else {}


def _answer(answer: Mapping[str, Any]) -> Entry:
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
