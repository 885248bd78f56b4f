"""gpu_cookbook/render/frameworks.toml: every row answers every question once, and its claims about recipes are true."""

import dataclasses
import datetime
import re
import tomllib
from pathlib import Path

import pytest

import gpu_cookbook
from gpu_cookbook import catalogue, show
from gpu_cookbook.render.abilities import abilities, plainest
from gpu_cookbook.results import FirstResult, Origin, Result, Status

DATA = tomllib.loads((Path(gpu_cookbook.__file__).parent / "render" / "frameworks.toml").read_text(encoding="utf-8"))
TABLES = {name: DATA[name] for name in ("frameworks", "engines")}
RECIPES = {f"{recipe.workload}/{recipe.path.name}": recipe for recipe in catalogue.recipes()}
KINDS = ("recipes", "no", "documented", "unfound", "text")

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
    assert all(set(table) == {"questions", "row"} for table in TABLES.values())


def test_the_tables_have_at_least_the_rows_that_they_are_for():
    names = {name: {row["name"] for row in table["row"]} for name, table in TABLES.items()}
    arrays = {"PyCUDA", "PyOpenCL", "Numba", "CuPy", "PyTorch", "JAX", "Warp", "Dask"}
    kernels = {"cuda.core", "Triton", "CUTLASS DSL", "TileLang", "Helion", "Taichi", "Quadrants", "Mojo", "HIP Python"}
    others = {"cuDF", "Modin", "cuML", "scikit-cuda", "cuPyNumeric", "dpnp", "tinygrad", "MLX", "wgpu-py"}
    assert names["frameworks"] >= arrays | kernels | others
    assert names["engines"] >= {"multiprocessing", "joblib", "Dask", "Ray", "PyTorch"}


def test_a_framework_needs_no_row(monkeypatch):
    before = [table.records for table in abilities()]
    recipes = catalogue.recipes()
    new = dataclasses.replace(recipes[0], framework="Unheard", install="pip install unheard")
    monkeypatch.setattr(catalogue, "recipes", lambda: [*recipes, new])
    assert [table.records for table in abilities()] == before


@pytest.mark.parametrize(("name", "table", "row"), rows, ids=[f"{name}-{row['name']}" for name, _, row in rows])
def test_a_row_answers_every_question(name, table, row):
    questions = [question for group in table["questions"].values() for question in group]
    answered = [question for question in questions if question in row["can"] or question != "install"]
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
    more = {"note"} | ({"sources"} if kind == "recipes" else set())
    assert set(answer) - more == {kind, proof} - {"note"}
    assert answer[kind] and answer[proof]
    check_words(answer)


def installing():
    return [record for table in abilities() for record in table.records if record.get("question") == "Install"]


def check_words(answer):
    for key in ("no", "documented", "unfound", "text", "note"):
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
    (shown,) = [record for record in installing() if record["name"] == row["name"]]
    assert shown["text"] in (commands or {row["can"]["install"]["text"]})
    assert shown.get("note") == row["can"].get("install", {}).get("note")


def test_the_plainest_recipe_says_how_to_install():
    shown = {record["name"]: record["text"] for record in installing()}
    assert shown["Dask"] == 'pip install "dask[complete]"'
    assert shown["Numba"] == 'pip install "numba-cuda[cu13]" "numpy<2.5"'


def test_a_new_recipe_answers_how_to_install_a_framework_that_had_none(monkeypatch):
    recipes = catalogue.recipes()
    new = dataclasses.replace(recipes[0], framework="Taichi", install="pip install taichi unheard")
    monkeypatch.setattr(catalogue, "recipes", lambda: [*recipes, new])
    shown = {record["name"]: record["text"] for record in installing()}
    assert shown["Taichi"] == new.install


def test_without_a_gpu_means_that_the_recipe_runs_on_a_cpu():
    names = [name for row in TABLES["frameworks"]["row"] for name in row["can"]["cpu"].get("recipes", ())]
    assert {RECIPES[name].runs_on for name in names} == {"CPU", "OpenCL device", "NVIDIA GPU or CPU"}


def test_what_was_not_found_is_no_no():
    table = next(table for table in abilities() if "DLPack, in and out" in table.head)
    column = list(table.head).index("DLPack, in and out")
    (entry,) = [row[column] for row in table.rows if row[0].links[0][0] == "wgpu-py"]
    assert entry.text == "? not found in its reference" and entry.mark == "unfound"
    assert entry.links == (("source", "https://wgpu-py.readthedocs.io/en/stable/wgpu.html"),)


def test_the_plainest_recipe_of_each_framework_is_counted():
    table = plainest([])
    assert {row[0].text for row in table.rows} == {r.framework for r in RECIPES.values() if r.workload == "multiply"}
    rows = {row[0].text: row for row in table.rows}
    assert rows["CuPy"][1].links == (("cupy", ("multiply", "cupy")),)
    assert [entry.text for entry in rows["CuPy"][3:]] == ["–", ""]
    # CuPy's has no kernel.
    assert int(rows["PyCUDA"][2].text) > int(rows["CuPy"][2].text) > int(rows["NumPy"][2].text) > 10


def test_lines_are_those_of_the_functions_and_their_kernel(monkeypatch):
    text = '"""Docstring.\n\nOf it.\n"""\n\nimport numpy\n\n# why\nx = 1\n\nif __name__ == "__main__":\n    print(x)\n'
    monkeypatch.setattr(show, "script", lambda recipe: text)
    assert {row[2].text for row in plainest([]).rows} == {"3"}


def test_first_results_are_of_the_machine_with_the_most():
    def made(technique, machine, seconds, **more):
        origin = Origin(machine, "c0ffee", "env", "2026-11-23", **more)
        kind = {"workload": "multiply", "technique": technique, "framework": "", "size": 40_000, "lane": "idiomatic"}
        return Result(**kind, status=Status.OK, device="NVIDIA H200", first=FirstResult(seconds), origin=origin)

    results = [made("cupy", "one", 9.0), made("cupy", "two", 1.0), made("torch", "two", 2.0, stale=True)]
    table = plainest([*results, made("cupy_raw", "two", 0.1)])
    firsts = {row[0].text: (row[3].text, row[4].text) for row in table.rows if row[3].text != "–"}
    assert firsts == {"CuPy": ("1.00 s", "NVIDIA H200"), "PyTorch": ("†2.00 s", "NVIDIA H200")}
    records = {record["name"]: record for record in table.records}
    assert [record["name"] for record in table.records] == [row[0].text for row in table.rows]
    assert records["PyTorch"].items() >= {"first_result_s": 2.0, "device": "NVIDIA H200", "stale": True}.items()
    assert records["CuPy"]["stale"] is False and "first_result_s" not in records["NumPy"]
    assert {row[0].text: int(row[2].text) for row in table.rows} == {name: it["lines"] for name, it in records.items()}
    assert "on two" in table.notes[0].text and "stale" in table.notes[1].text
    assert len(plainest(results[:1]).notes) == 1
