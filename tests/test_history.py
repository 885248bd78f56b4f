"""The history: what counts as a step, what is drawn of it, and that it is there for whatever is stored."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from cloning import ROOT, git, rewrite
from making import result, timing, without
from test_hostile import HOSTILE, OBEYED, is_harmless_html

from gpu_cookbook import catalogue
from gpu_cookbook.render import history, html_page, svg
from gpu_cookbook.results import FirstResult, Metric, Origin, Result, Run, Status, Timing
from gpu_cookbook.store import asv_files, commits

SIZE = 40_000
COMMITS = [f"{number}" * 40 for number in range(1, 10)]


def at(number, seconds=1.0, technique="cupy", half=0.01, **changes):
    """A result of the commit with this number."""
    known = {key: changes.pop(key) for key in ("machine", "environment", "stale", "definition") if key in changes}
    first = Origin("box", COMMITS[number], "existing", f"2026-11-0{number + 1}", (number * 10**8, number * 10**8))
    origin = replace(first, **{"definition": "2"} | known)
    return result(technique, changes.pop("size", SIZE), seconds, half, **{"origin": origin} | changes)


def steps(results):
    """(from, to, verdict) of each step, oldest first, with the numbers of the commits."""
    found = [step for step in history.every(results) if step.counts]
    numbers = [[COMMITS.index(each.stored.commit) for each in (step.before, step.after)] for step in found]
    return [(*pair, step.verdict) for pair, step in zip(numbers, found, strict=True)]


def texts(chart):
    return [element.text for element in ElementTree.fromstring(chart.svg).iter("{http://www.w3.org/2000/svg}text")]


def words(table):
    return [[entry.text for entry in row] for row in table.rows]


def notes(table):
    return " ".join(note.text for note in table.notes)


# ---- Steps.


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([1.0, 1.0, 2.0, 2.0], [(1, 2, "slower")]),
        ([1.0, 2.0, 1.0], [(0, 1, "slower"), (1, 2, "faster")]),
        ([1.0, 1.05, 1.02], []),  # not by enough
        ([1.0, 1.06, 1.12, 1.18], [(0, 2, "slower")]),  # a drift
        ([1.0, None, 2.0], [(0, 2, "slower")]),  # not measured in between
        ([2.0], []),
    ],
)
def test_a_step_is_what_the_samples_support(seconds, expected):
    assert steps([at(number, each) for number, each in enumerate(seconds)]) == expected


def test_the_order_is_that_of_the_commits_not_that_of_the_files():
    results = [at(number, 1.0 + number) for number in (2, 0, 1)]
    assert history.commits_of(results) == COMMITS[:3]
    assert steps(results) == [(0, 1, "slower"), (1, 2, "slower")]


def test_wide_intervals_make_no_step():
    found = history.every([at(0, 1.0, half=0.9), at(1, 1.5, half=0.9)])
    assert [step.verdict for step in found] == ["cannot tell"]


def test_a_single_sample_makes_no_step():
    single = {"count": 1, "ci99": None}
    one = at(0, timings={Metric.RESIDENT: timing(1.0, **single)})
    other = at(1, timings={Metric.RESIDENT: timing(9.0, **single)})
    assert not steps([one, other])
    alone = [at(0, None, first=FirstResult(1.0), peak_memory=1e9), at(1, None, first=FirstResult(9.0), peak_memory=9e9)]
    assert not history.every(alone)
    for metric in (Metric.FIRST, Metric.MEMORY):
        chart = history.moved(alone, metric)
        assert "none of their changes counts as a step" in chart.text and "factor of 9.00" in chart.text


def test_a_doubtful_result_is_marked_and_compared_with_none():
    busy = {"doubts": {Metric.RESIDENT: "other programs"}}
    results = [at(0), at(1, 5.0, **busy), at(2, 1.0), at(3, 2.0)]
    assert steps(results) == [(2, 3, "slower")]
    assert texts(history.moved(results, Metric.RESIDENT)).count("?") == 1
    # Nor is it what the others are drawn relative to.
    (part,) = history.lines_of([at(0, 5.0, **busy), at(1)])[0].parts(Metric.RESIDENT)
    assert [ratio for _, ratio in part] == [5.0, 1.0]


def test_nothing_is_compared_across_another_definition():
    results = [at(0, definition="1"), at(1, 3.0), at(2, 3.0)]
    assert not steps(results)
    assert history.turns(history.lines_of(results)) == {COMMITS[1]: ["definition of the metrics 1 → 2"]}
    parts = history.lines_of(results)[0].parts(Metric.RESIDENT)
    assert [[ratio for _, ratio in part] for part in parts] == [[1.0], [1.0, 1.0]]


def test_each_environment_has_a_line_of_its_own():
    results = [at(0), at(1, 2.0, environment="other"), replace(at(1, 3.0, "numpy"), environment="rapids")]
    assert [line.name for line in history.lines_of(results)] == ["numpy (rapids)", "cupy (existing)", "cupy (other)"]
    assert not history.every(results)


def test_of_a_commit_that_was_measured_twice_the_latest_counts():
    first, again = at(0), at(0, 3.0)
    again = replace(again, origin=replace(again.origin, order=(0, 5)))
    assert steps([again, at(1, 3.0), first]) == []


# ---- Tables.


def test_a_step_says_from_where_to_where_and_what_changed_with_it():
    results = [at(0), at(1, 2.0, driver="590.2", versions="Python 3.12.3, numpy 2.5.0", math="TF32"), at(2, 1.0)]
    table = history.steps_table(results, lambda before, after: after is results[1])
    back = "driver 590.2 → 580.1; numpy 2.5.0 → 2.4.6; math TF32 → IEEE"
    there = "recipe; driver 580.1 → 590.2; numpy 2.4.6 → 2.5.0; math IEEE → TF32"
    assert words(table) == [  # the newest first
        ["cupy", "40,000", "resident", "faster", "×0.500", "22222222", "33333333", "2.00 s", "1.00 s", back],
        ["cupy", "40,000", "resident", "slower", "×2.00", "11111111", "22222222", "1.00 s", "2.00 s", there],
    ]
    assert [record["ratio_x"] for record in table.records] == [0.5, 2.0]
    assert table.rows[0][0].recipe == ("multiply", "cupy")


def test_a_step_from_one_machine_to_another_of_the_name_says_so():
    def on(instance, number, seconds):
        return replace(at(number, seconds), runs={Metric.RESIDENT: {Run("2026-11-01T00:00:00Z", instance): seconds}})

    results = [on("a", 0, 1.0), on("a", 1, 2.0), on("b", 2, 1.0), on(None, 3, 2.0)]
    assert [row[-1] for row in words(history.steps_table(results))] == ["–", "another machine", "–"]


def test_what_is_not_known_on_one_side_has_not_changed():
    unknown = {"driver": None, "versions": None}
    assert words(history.steps_table([at(0, **unknown), at(1, 2.0)]))[0][-1] == "–"
    # Nor is it forgotten what was known before.
    lines = history.lines_of([at(0), at(1, **unknown), at(2, driver="590.2")])
    assert history.turns(lines) == {COMMITS[2]: ["driver 580.1 → 590.2"]}


def test_nothing_changed_is_said():
    results = [at(0), at(1)]
    table = history.steps_table(results)
    assert not table.rows and history.NOTHING in notes(table) and "Of 1 comparison, 1 say same" in notes(table)
    assert history.NOTHING in history.moved(results, Metric.RESIDENT).text


def test_one_commit_has_a_page_without_charts():
    results = [at(0), at(0, 2.0, "numpy")]
    assert notes(history.steps_table(results)) == history.ONCE
    assert not any(history.moved(results, metric) for metric in history.METRICS)
    assert words(history.commits_table(results)) == [["11111111", "1970-01-01", "2026-11-01", "existing", "2", "–"]]
    assert words(history.summary(results, str))[0][1:] == ["1", "0", "0", "0", "0"]


def test_workloads_whose_sizes_are_numbers_or_tuples_share_a_table():
    results = [at(0), replace(at(0), workload="matmul", size=(200, 200, 200))]
    assert len(words(history.commits_table(results))) == 1
    assert [line.results[0].workload for line in history.lines_of(results)] == ["matmul", results[0].workload]


def test_no_results_have_empty_tables():
    for table in (
        history.steps_table([]),
        history.turns_table([]),
        history.commits_table([]),
        history.summary([], str),
    ):
        assert not table.rows and html_page.html_of(table)
    assert history.moved([], Metric.RESIDENT) is None


def test_a_commit_is_a_link_only_if_there_is_an_address():
    results = [at(0), at(1, 2.0)]
    for table in (history.steps_table(results), history.commits_table(results)):
        assert "<a " not in html_page.html_of(table)
    for make in (history.steps_table, history.commits_table):
        written = html_page.html_of(make(results, address=lambda commit: f"https://example.org/{commit}"))
        assert f'<a href="https://example.org/{COMMITS[1]}">22222222</a>' in written


# ---- Charts.


def test_lines_with_a_step_have_names_and_the_others_their_numbers():
    results = [at(0), at(1, 2.0), at(0, 1.0, "numpy"), at(1, 1.01, "numpy"), at(0, 1.0, "dask", half=0.9)]
    results += [
        at(1, 1.9, "dask", half=0.9),
        at(0, 1.0, "ray"),
        without("ray", SIZE, "failed", "it crashed", origin=at(1).origin),
    ]
    chart = history.moved(results, Metric.RESIDENT)
    assert "cupy" in texts(chart) and "numpy" not in texts(chart)
    assert "dask" in texts(chart), "it moved far, although the samples cannot tell"
    assert "1 step: cupy, 40,000: slower at 22222222 (×2.00)." in chart.text
    assert {row[0]: row[3:] for row in words(chart.table)} == {
        "numpy": ["1.00 s", "1.01 s"],
        "cupy": ["1.00 s", "2.00 s"],
        "dask": ["~1.00 s", "~1.90 s"],
        "ray": ["1.00 s", "failed"],
    }
    assert [text for text in texts(chart) if text in ("11111111", "22222222")] == ["11111111", "22222222"]


def test_a_stale_line_is_marked():
    results = [at(0, stale=True), at(1, 2.0, stale=True)]
    chart = history.moved(results, Metric.RESIDENT)
    assert "† cupy" in texts(chart) and words(chart.table)[0][3:] == ["†1.00 s", "†2.00 s"]
    assert notes(chart.table).startswith("† ") and "†1.00 s" in words(history.steps_table(results))[0]


def test_what_changed_beside_has_a_numbered_line():
    results = [at(0), at(1), at(2, driver="590.2"), at(3, driver="590.2", device="NVIDIA H100")]
    table = history.turns_table(results)
    assert words(table) == [
        ["1", "33333333", "driver 580.1 → 590.2"],
        ["2", "44444444", "device NVIDIA H200 → NVIDIA H100"],
    ]
    chart = history.moved(results, Metric.RESIDENT)
    assert [text for text in texts(chart) if text in ("1", "2", "3")] == ["1", "2"]
    assert words(history.commits_table(results))[1][-1] == "driver 580.1 → 590.2"


def test_what_is_zero_or_wide_is_drawn_all_the_same():
    endless = timing(1.0, ci99=(-1.0, 5.0))
    results = [at(0, timings={Metric.RESIDENT: endless}, error=0.0), at(1, 2.0, error=1e-7), at(2, 4.0, error=0.0)]
    assert "nan" not in history.moved(results, Metric.RESIDENT).svg
    assert history.moved(results, Metric.ERROR) is None, "nothing is relative to zero"
    falling = [at(0, error=1e-7), at(1, error=0.0), at(2, error=2e-7)]
    chart = history.moved(falling, Metric.ERROR)
    assert "nan" not in chart.svg and words(chart.table)[0][3:] == ["1.0e-07", "0", "2.0e-07"]


@pytest.mark.slow
def test_many_commits_still_fit_on_a_page_and_are_named():
    results = [
        replace(each, origin=replace(each.origin, commit=f"{number:08x}" + 32 * "0", order=(number, 0)))
        for number in range(60)
        for technique in [f"t{which}" for which in range(30)]
        for each in [at(0, 1.0 + number % 7, technique, size=SIZE)]
    ]
    chart = history.moved(results, Metric.RESIDENT)
    shown = [text for text in texts(chart) if re.fullmatch("[0-9a-f]{8}", text)]
    assert 1 < len(shown) <= history.MOST_LABELS and shown[-1] == f"{59:08x}"
    assert len(html_page.figure(chart)) < 500_000


def test_a_chart_is_an_image_with_a_sentence_in_the_pages_colours():
    chart = history.moved([at(0), at(1, 2.0), at(0, 1.0, "numpy"), at(1, 3.0, "numpy")], Metric.RESIDENT)
    root = ElementTree.fromstring(chart.svg)
    assert root.get("role") == "img" and root.get("aria-label") == chart.text and chart.text.endswith(".")
    assert set(re.findall(r"#[0-9a-f]{6}\b", chart.svg)) <= set(svg.COLOURS) and "currentColor" in chart.svg
    assert len(chart.table.head) == len(chart.table.align) == len(chart.table.rows[0])


@pytest.mark.parametrize("name", ["device", "driver", "versions", "framework", "math", "reason", "of the origin"])
def test_no_text_of_a_stored_file_is_obeyed(name):
    for value in ("".join(HOSTILE[:-1]), HOSTILE[0]):
        pair = [at(0, timings={Metric.RESIDENT: timing(1.0)}), at(1, 2.0)]
        if name == "of the origin":
            texts = {key: value for key in ("machine", "commit", "environment", "date", "definition")}
            results: list[Result] = [replace(each, origin=replace(each.origin, **texts)) for each in pair]
            results[0] = replace(results[0], origin=replace(results[0].origin, commit=COMMITS[0], environment=value))
        else:
            results = [pair[0], replace(pair[1], **{name: f"{value} 1"})]
        made = [history.steps_table(results), history.turns_table(results), history.commits_table(results)]
        made.append(history.summary(results, str))
        chart = history.moved(results, Metric.RESIDENT)
        page = "".join(map(html_page.html_of, made)) + (html_page.figure(chart) if chart else "")
        assert len(made[0].rows) == 1 or name == "of the origin"
        is_harmless_html(page)
        assert not OBEYED.search(page)


# ---- The pages.


def test_what_changed_between_two_commits_is_the_code_not_the_comments(clone):
    path = clone / "recipes" / "multiply" / "with_numpy.py"
    before = git(clone, "rev-parse", "HEAD")
    rewrite(path, path.read_text() + '# a comment\n"""and text"""\n')
    git(clone, "commit", "-qam", "two")
    same = git(clone, "rev-parse", "HEAD")
    rewrite(path, path.read_text() + "MORE = 1\n")
    git(clone, "commit", "-qam", "three")
    after = git(clone, "rev-parse", "HEAD")
    git(clone, "rm", "-q", path)
    git(clone, "commit", "-qm", "four")
    name = "recipes/multiply/with_numpy.py"
    assert not commits.changed_since(clone, before, same)
    assert commits.changed_since(clone, same, after) == {name}
    assert commits.changed_since(clone, after, git(clone, "rev-parse", "HEAD")) == {name}


GENERATE = """
import sys
sys.path[:0] = ["docs", "benchmarks"]
import pages, stored
pages.put("generated/history.md", pages.history_list())
for machine in stored.results():
    pages.put(f"history/{machine}.md", pages.history_page(machine))
"""


def generated(folder):
    """(what is complained of, {page: its text}) when the pages of a clone's history are generated."""
    for path in (ROOT / "docs").glob("*.py"):
        (folder / "docs").mkdir(exist_ok=True)
        shutil.copy(path, folder / "docs")
    done = subprocess.run([sys.executable, "-c", GENERATE], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    paths = [*(folder / "docs" / "generated").rglob("*history*"), *(folder / "docs" / "history").rglob("*.md")]
    return done.stderr, {path.relative_to(folder / "docs").as_posix(): path.read_text() for path in paths}


def measured(clone, seconds, machine="somebody-elses-box"):
    """Stores a result of the newest commit."""
    recipe = catalogue.choose(["multiply"], ["numpy"])[0]
    timings = {Metric.RESIDENT: Timing.of([seconds * (1 + 0.001 * number) for number in range(15)])}
    made = replace(Result.of(recipe, SIZE, Status.OK), device="AMD EPYC, 2 cores", timings=timings)
    asv_files.Writer(asv_files.Store(), machine).add(recipe, made)
    return git(clone, "rev-parse", "HEAD")[:8]


def commit(clone, line):
    """Another version of a recipe, committed later."""
    path = clone / "recipes" / "multiply" / "with_numpy.py"
    rewrite(path, path.read_text().replace("import numpy as np\n", f"import numpy as np\n\n{line}\n", 1))
    date = int(git(clone, "show", "--no-patch", "--format=%ct")) + 10
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message=next", GIT_COMMITTER_DATE=f"@{date} +0000")


def test_without_results_the_page_says_so(clone):
    complaints, pages = generated(clone)
    assert not complaints and pages == {"generated/history.md": "Nothing is stored yet.\n"}


@pytest.mark.slow
@pytest.mark.slow
def test_a_machine_that_came_in_has_its_pages_and_a_lost_commit_is_only_left_out(clone, tmp_path, monkeypatch):
    # The recipe is another in the clone, and that is the clone's alone.
    monkeypatch.setattr(asv_files.Writer, "_refuse_another_installation", lambda self: None)
    first = measured(clone, 1e-3)
    complaints, pages = generated(clone)
    assert not complaints and "1 commit; no step" in pages["generated/history.md"]
    assert history.ONCE in pages["generated/somebody-elses-box-multiply-history.html"]
    commit(clone, "MORE = 1")
    second = measured(clone, 2e-3)
    complaints, pages = generated(clone)
    assert not complaints
    assert "(history/somebody-elses-box.md): 2 commits; steps: 1 slower" in pages["generated/history.md"]
    assert {"history/somebody-elses-box.md", "history/somebody-elses-box/multiply.md"} <= set(pages)
    (row,) = re.findall("<tr data.*</tr>", pages["generated/somebody-elses-box-multiply-history.html"])
    assert first in row and second in row and ">recipe</td>" in row
    assert "<svg" in pages["generated/somebody-elses-box-multiply-history-charts.html"]

    git(clone, "add", "--all", "--force", "benchmarks/results")
    git(clone, "commit", "--quiet", "--message=results")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "2", clone.as_uri(), shallow)
    complaints, pages = generated(shallow)
    assert f"does not have ({first})" in complaints and second not in complaints
    assert "1 commit; no step" in pages["generated/history.md"]
