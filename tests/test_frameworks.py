"""gpu_cookbook/render/frameworks.toml: every row answers every question once, and its claims about recipes are true."""

import dataclasses
import datetime
import re
import tomllib
from pathlib import Path

import pytest

import gpu_cookbook
from gpu_cookbook import catalogue
from gpu_cookbook.render.abilities import abilities

DATA = tomllib.loads((Path(gpu_cookbook.__file__).parent / "render" / "frameworks.toml").read_text(encoding="utf-8"))
TABLES = {name: DATA[name] for name in ("frameworks", "engines")}
RECIPES = {f"{recipe.workload}/{recipe.path.name}": recipe for recipe in catalogue.recipes()}
KINDS = ("recipes", "no", "documented", "text")

rows = [(name, table, row) for name, table in TABLES.items() for row in table["row"]]
answers = [
    pytest.param(row, question, answer, id=f"{name}-{row['name']}-{question}")
    for name, _, row in rows
    for question, answer in row["can"].items()
]
yes = [answer for answer in answers if "recipes" in answer.values[2]]


def code(recipe):
    """Without the docstring, and without the check at the end, which NumPy does."""
    source = recipe.path.read_text(encoding="utf-8")
    return source.split('"""', 2)[2].partition('if __name__ == "__main__":')[0]


def test_the_data_are_two_tables_and_the_day_of_checking():
    assert list(DATA) == ["checked", *TABLES]
    assert type(DATA["checked"]) is datetime.date
    assert all(set(table) == {"title", "questions", "row"} for table in TABLES.values())


def test_the_tables_have_at_least_the_rows_that_they_are_for():
    names = {name: {row["name"] for row in table["row"]} for name, table in TABLES.items()}
    arrays = {"PyCUDA", "PyOpenCL", "Numba", "CuPy", "PyTorch", "JAX", "Dask"}
    others = {"cuDF", "Modin", "cuML", "scikit-cuda"}
    assert names["frameworks"] >= arrays | others
    assert names["engines"] >= {"multiprocessing", "joblib", "Dask", "Ray"}


def test_a_framework_needs_no_row(monkeypatch):
    before = [table.records for table in abilities()]
    recipes = catalogue.recipes()
    new = dataclasses.replace(recipes[0], framework="Unheard", install="pip install unheard")
    monkeypatch.setattr(catalogue, "recipes", lambda: [*recipes, new])
    assert [table.records for table in abilities()] == before


@pytest.mark.parametrize(("name", "table", "row"), rows, ids=[f"{name}-{row['name']}" for name, _, row in rows])
def test_a_row_answers_every_question(name, table, row):
    answered = [question for question in table["questions"] if question in row["can"] or question != "install"]
    assert list(row["can"]) == answered
    assert set(row) - {"status"} == {"name", "module", "home", "can"}
    if "status" in row:
        assert set(row["status"]) == {"text", "sources"}
        check_words(row["status"])
    check_address(row["home"])


@pytest.mark.parametrize(("row", "question", "answer"), answers)
def test_an_answer_is_of_one_kind_and_has_its_proof(row, question, answer):
    if question == "install" and "text" not in answer:  # the recipes answer it, and the row adds a note
        kind = "note"
    else:
        (kind,) = [kind for kind in KINDS if kind in answer]
    proof = "evidence" if kind == "recipes" else "sources"
    assert set(answer) - {"note"} == {kind, proof} - {"note"}
    assert answer[kind] and answer[proof]
    check_words(answer)


def check_words(answer):
    for key in ("no", "documented", "text", "note"):
        assert len(answer.get(key, "")) <= 60
    for source in answer.get("sources", ()):
        check_address(source)


def check_address(url):
    assert re.fullmatch(r"https://[\w-]+(\.[\w-]+)+/\S*", url), url


@pytest.mark.parametrize(("row", "question", "answer"), yes)
def test_the_recipes_of_a_yes_prove_it(row, question, answer):
    for name in answer["recipes"]:
        assert RECIPES[name].framework == row["name"]
        assert re.search(rf"(?m)^(import|from) {row['module']}(_\w+)?\b", code(RECIPES[name])), (
            f"{name}: {row['module']}"
        )
        assert re.search(answer["evidence"], code(RECIPES[name])), f"{name}: {answer['evidence']}"


@pytest.mark.parametrize(("question", "suffix"), [("cuda_c", "cu"), ("opencl_c", "cl")])
def test_a_kernel_in_c_is_one_of_that_language(question, suffix):
    names = [name for row in TABLES["frameworks"]["row"] for name in row["can"][question].get("recipes", ())]
    assert names
    for name in names:
        assert re.search(rf'KERNEL = .* / "kernels" / "\w+\.{suffix}"', code(RECIPES[name])), name


@pytest.mark.parametrize("row", TABLES["frameworks"]["row"], ids=lambda row: row["name"])
def test_the_recipes_answer_how_to_install_or_the_row_does(row):
    commands = {recipe.install for recipe in RECIPES.values() if recipe.framework == row["name"]}
    assert commands or "text" in row["can"]["install"]
    (shown,) = [
        record
        for record in abilities()[0].records
        if (record["name"], record["question"]) == (row["name"], TABLES["frameworks"]["questions"]["install"])
    ]
    assert shown["text"] in (commands or {row["can"]["install"]["text"]})
    assert shown.get("note") == row["can"].get("install", {}).get("note")


def test_the_plainest_recipe_says_how_to_install():
    shown = {record["name"]: record["text"] for record in abilities()[0].records if record["question"] == "Install"}
    assert shown["Dask"] == 'pip install "dask[complete]"'
    assert shown["Numba"] == 'pip install "numba-cuda[cu13]" "numpy<2.5"'


def test_a_new_recipe_answers_how_to_install_a_framework_that_had_none(monkeypatch):
    recipes = catalogue.recipes()
    new = dataclasses.replace(recipes[0], framework="cuDF", install="pip install cudf-cu13 unheard")
    monkeypatch.setattr(catalogue, "recipes", lambda: [*recipes, new])
    shown = {record["name"]: record["text"] for record in abilities()[0].records if record["question"] == "Install"}
    assert shown["cuDF"] == new.install


def test_without_a_gpu_means_that_the_recipe_runs_on_a_cpu():
    names = [name for row in TABLES["frameworks"]["row"] for name in row["can"]["cpu"].get("recipes", ())]
    assert {RECIPES[name].runs_on for name in names} == {"CPU", "OpenCL device", "NVIDIA GPU or CPU"}
