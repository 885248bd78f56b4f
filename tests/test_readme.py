"""README is short, its picture shows the stored results, its recipe is real, and what it says of transfers is so."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from cloning import gpu_machine, require_clone

from gpu_cookbook import catalogue, short
from gpu_cookbook.render import speedups
from gpu_cookbook.store import asv_files, transfers

ROOT = Path(__file__).parents[1]
WORDS = 800


def test_the_picture_shows_the_stored_results():
    require_clone()
    readme = runpy.run_path(str(ROOT / "docs" / "readme.py"))
    described = speedups.described(readme["results"]())
    assert "all CPU cores, multiply: " in described and described.count("\n") > 30
    assert readme["drawn"]() == described, "make readme draws it anew"


def test_outside_of_a_clone_the_picture_stays_and_it_says_why(tmp_path):
    command = [sys.executable, str(ROOT / "docs" / "readme.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "run this command inside a clone" in done.stderr


def test_a_picture_that_cannot_be_written_is_said(tmp_path):
    require_clone()
    shutil.copy(ROOT / "docs" / "readme.py", tmp_path)
    (tmp_path / "speedups.png").symlink_to(tmp_path / "nowhere" / "speedups.png")
    command = [sys.executable, str(tmp_path / "readme.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("Cannot go on: [Errno 2] No such file or directory: ")


def test_a_picture_is_not_drawn_without_what_cannot_be_read(monkeypatch, capsys):
    monkeypatch.setattr(asv_files, "Store", lambda: SimpleNamespace(load=lambda: ([], ["m/x.json: is not JSON"])))
    with pytest.raises(typer.Exit):
        runpy.run_path(str(ROOT / "docs" / "readme.py"))["results"]()
    assert capsys.readouterr().err == "m/x.json: is not JSON\n"


def test_the_short_recipe_is_what_the_tool_prints():
    printed = short.short(catalogue.find("multiply", "cupy"))
    assert f"```python\n{printed}```\n" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_can_be_read_in_five_minutes():
    assert len(words_of("README.md").split()) <= WORDS


@pytest.fixture(scope="module")
def run():
    """The newest stored run of benchmarks/transfers.py on the GPU of README's picture."""
    require_clone()
    found, complaints = transfers.kept(ROOT / "benchmarks" / "results")
    assert not complaints
    return found[gpu_machine()]


def words_of(path):
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("words", "over", "under", "least", "most"),
    [
        ("takes at best about as long as NumPy on one core", "pageable", "numpy", 0.8, 1.25),
        ("it is several times as fast", "numpy", "both_ways", 4, 15),
        ("about as fast as 16 CPU cores", "both_ways", "torch_cpu", 0.8, 1.25),
    ],
)
def test_the_verdict_on_transfers_is_that_of_the_newest_run(words, over, under, least, most, run):
    assert words in words_of("README.md")
    assert least <= run.seconds(over) / run.seconds(under) <= most


def test_no_recipe_with_plain_copies_is_better_than_at_best():
    require_clone()
    described = speedups.described(runpy.run_path(str(ROOT / "docs" / "readme.py"))["results"]())
    lower = dict(re.findall(r"^(.+), multiply: .+ and ([\d.]+)$", described, re.MULTILINE))
    assert float(lower.pop("all CPU cores")) > 1 and len(lower) > 10
    speeds = sorted(map(float, lower.values()))
    assert speeds[-1] <= 1.25 and speeds[len(speeds) // 2] < 0.5  # "often more than twice as long"


def test_the_gpu_of_the_figures_is_named_and_so_is_what_is_stale():
    require_clone()
    found = runpy.run_path(str(ROOT / "docs" / "readme.py"))["results"]()
    (device,) = {each.device for each in found if each.driver}
    assert f"on an {device} with 16 cores" in words_of("README.md")
    assert "†" not in speedups.described(found) or "† has changed since" in words_of("README.md")
    page = words_of("docs/which.md")
    assert f"every time here was measured on an {device} and the processor of the same machine" in page
    assert f"choose multiply --size 5_000_000 --machine {gpu_machine()}" in page  # what is printed below it


def test_the_page_says_what_keeps_a_small_product_behind_numpy(run):
    assert "with the copies in and out they take longer than NumPy" in words_of("docs/transfers.md")
    parts = [run.seconds(f"small_torch_{part}") for part in ("copy_in", "kernels", "copy_out")]
    assert parts[1] < run.seconds("small_numpy") < sum(parts)
