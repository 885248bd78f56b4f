"""No text that somebody else wrote is obeyed by a terminal, a browser, a Markdown reader or a spreadsheet."""

import csv
import dataclasses
import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from making import BOX, result, without
from markdown_it import MarkdownIt
from scaling import built, row

from gpu_cookbook import doctor, machine, terminal
from gpu_cookbook.doctor import facts
from gpu_cookbook.render import advice, change, charts, html_page, scaling_charts, tables, text
from gpu_cookbook.render import format as fmt
from gpu_cookbook.results import Metric, Origin, Probe, Result, Status, record
from gpu_cookbook.scaling import completed, judged
from gpu_cookbook.words import csv_cell, markdown, plain, substitute

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "[click](javascript:alert(1)) ![x](https://evil.example/x.png)",
    "| a | b |\n| --- | --- |\n\n# heading\n\n```{raw} html\n<b>\n```",
    "https://evil.example www.evil.example me@evil.example @someone `code` {raw}`x` $x$ &lt;b&gt;",
    "\x1b[31mred\x1b]0;title\x07\x1b]8;;https://evil.example\x1b\\link",
    "\x9b31m \x85 \x00 \x08\x08 \x7f \r over",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe\N{POP DIRECTIONAL ISOLATE}\N{ZERO WIDTH SPACE}\N{LINE SEPARATOR}",
    "\ud800 half a character",
    "=HYPERLINK(1)",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1",
    "- a\n- b",
    "1. a",
    ":::{raw} html",
    "(target)=",
    "% comment",
    "[bold red]markup[/]",
    "x" * 100_000,
)
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = [  # of a result: the technique and the workload name files, and must be those of a recipe
    field.name for field in dataclasses.fields(Result) if field.type in ("str", str, str | None, "str | None")
    and field.name not in ("workload", "technique", "lane")
]  # fmt: skip


class Page(HTMLParser):
    """The tags and the attributes of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}


def is_harmless_html(page):
    found = Page(page)
    assert not found.tags & {"script", "img", "b", "iframe"}
    assert not [name for name in found.attributes if name.startswith("on")]
    assert not OBEYED.search(page)


def is_harmless_markdown(written):
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(written)
    inner = [child for token in tokens for child in token.children or ()]
    assert {token.type for token in tokens} & {"html_block", "fence", "code_block", "bullet_list_open", "hr"} == set()
    assert {token.type for token in inner} & {"html_inline", "image", "code_inline"} == set()
    for address in (child.attrGet("href") for child in inner if child.type == "link_open"):
        assert address.startswith("recipes/")
    assert {token.tag for token in tokens if token.type == "heading_open"} <= {"h3"}
    assert not OBEYED.search(written)


def results_with(name, value):
    """A comparison, one of whose results has this value as the text of that field."""
    ok, bad = result("numpy", 40_000, 1e-5, origin=BOX), without("torch", 40_000, "failed", "wrong", origin=BOX)
    device = {Metric.DEVICE: ok.timings[Metric.RESIDENT]}
    other = result("torch", 1_000_000, 2e-5, origin=BOX, timings=device)
    return [replace(each, **{name: value}) for each in (ok, bad, other)]


@pytest.mark.parametrize("name", [*TEXTS, "doubts", "machine", "commit", "environment of asv", "date"])
def test_no_text_of_a_result_is_obeyed_in_any_format(name):
    assert {"device", "driver", "cuda", "clock", "math", "versions", "reason", "framework", "environment"} <= {*TEXTS}
    for value in HOSTILE:
        if name in TEXTS:
            results = results_with(name, value)
        elif name == "doubts":
            results = results_with(name, {Metric.RESIDENT: value})
        else:
            key = {"environment of asv": "environment"}.get(name, name)
            results = [replace(each, origin=replace(BOX, **{key: value})) for each in results_with("reason", "wrong")]
        found = [*tables.measured(results), *tables.compared(results), *change.change(results[:1], results[:1])]
        found.append(tables.checked(results))
        assert not OBEYED.search(terminal.drawn(found, terminal.console()))
        is_harmless_markdown(text.as_markdown(found))
        for written in (text.as_csv(found), fmt.as_csv(map(record, results))):
            cells = [cell for line in csv.reader(io.StringIO(written)) for cell in line]
            assert not [cell for cell in cells if cell[:1] in tuple("=+@\t\r")]
            assert not [cell for cell in cells if cell.startswith("-") and not re.fullmatch(r"-[\d.e-]+", cell)]
            assert not OBEYED.search(written)
        for written in (text.as_json(found), fmt.as_json([*map(record, results)])):
            assert written.isascii() and not OBEYED.search(written)
        is_harmless_html(html_page.as_html(found))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("device", (HOSTILE[0], "".join(HOSTILE[:-1]))),
        *(pytest.param(name, HOSTILE, marks=pytest.mark.slow) for name in ("device", "framework", "reason")),
    ],
)
def test_no_text_of_a_result_is_obeyed_in_a_page_with_charts(name, values):
    for value in values:
        results = results_with(name, value)
        is_harmless_html(html_page.comparison(results, [("Processor", plain(value))]))
        for chart in (charts.share_of_limit(results), charts.roofline(results)):
            if chart:
                is_harmless_html(html_page.figure(chart))


@pytest.mark.parametrize("name", ["framework", "engine", "reason", "environment"])
def test_no_text_of_a_row_of_scale_is_obeyed(name):
    for value in HOSTILE:
        origin = Origin("m", "1" * 40, "", "2026-11-21")
        rows = [row(**{name: value}), row(workers=2, **{name: value}), row("dask", status="failed", reason=value)]
        found = built([replace(each, origin=origin) for each in rows])
        assert not OBEYED.search(terminal.drawn(found, terminal.console()))
        is_harmless_markdown(text.as_markdown(found))
        is_harmless_html(html_page.as_html(found))
        assert not OBEYED.search(text.as_csv(found)) and text.as_json(found).isascii()


def test_what_a_worker_sends_is_plain_as_soon_as_it_is_a_result():
    for value in HOSTILE:
        for made in (Probe(failed=value), result("numpy", 1, 1.0, reason=value), row(reason=value)):
            texts = [each for each in vars(made).values() if isinstance(each, str)]
            assert texts and not [each for each in texts if OBEYED.search(each) or "\n" in each or len(each) > 2000]
    assert isinstance(result("numpy", 1, 1.0).status, Status)


def test_what_is_printed_as_a_message_is_plain(capsys):
    for value in HOSTILE:
        terminal.say(f"benchmarks/results/{value}.json: {value}")
    assert not OBEYED.search(capsys.readouterr().err)


def test_nothing_that_the_doctor_finds_is_obeyed():
    for value in HOSTILE:
        text = value[:3000]  # as long as a table need be
        driver = machine.Nvidia(text, (13, 0), (machine.Gpu(0, text, 2**34, (9, 0)),))
        seen = {"platforms": [(text, text, [text])], "cuda": text}
        known = [replace(each, install=f"pip install {text}", environments=(text,)) for each in facts.FRAMEWORKS]
        probes = {each.name: facts.Probe(f"ModuleNotFoundError: {text}", seen) for each in known}
        sick = facts.Facts(
            environment=text,
            environments=(text, f"other {text}"),
            frameworks=tuple(known),
            python=text,
            executable=text,
            site_packages=text,
            visible=text,
            nvccs=(facts.Nvcc(text, "99.0", True), facts.Nvcc(f"/{text}/nvcc", "13.0", False)),
            compiler=(text, text),
            opencl_drivers=((text, text),),
            packages={name: text for each in known for name in each.distributions} | {"cuda-bindings": text},
            requirements={name: [text, f"numpy=={text}"] for each in known for name in each.distributions},
            probes=probes,
        )
        for each in (
            replace(sick, nvidia=driver),
            replace(sick, nvidia=replace(driver, gpus=())),
            replace(sick, nvidia_error=text, nvidia_on_bus=True),
            replace(sick, environments=("main",), frameworks=facts.FRAMEWORKS),
        ):
            findings = doctor.judge(each)
            with (out := terminal.console()).capture() as captured:
                out.print(doctor.table(findings))
            assert not OBEYED.search(captured.get())
            assert not OBEYED.search(fmt.as_json(doctor.as_json(findings)))


def test_markdown_shows_a_text_as_it_is():
    reader = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    for value in HOSTILE:
        value = " ".join(plain(value).split())
        (_, inline, _) = reader.parse(markdown(value))
        assert "".join(child.content for child in inline.children) == value


def test_a_spreadsheet_computes_nothing_and_numbers_stay_numbers():
    assert [csv_cell(value) for value in ("=1", "-x", "a=1", -1.5, None)] == ["'=1", "'-x", "a=1", -1.5, None]


def test_signs_that_an_encoding_lacks_are_written_as_words():
    assert "†~13.1 µs × 2 … 日".encode("ascii", "gpu-cookbook") == b"+~13.1 us x 2 ... \\u65e5"
    assert "µs ×".encode("latin-1", "gpu-cookbook") == b"\xb5s \xd7"
    marks = [fmt.STALE, fmt.NOISE, fmt.DOUBT, advice.ESTIMATED, *fmt.RANKS.values()]
    assert len({mark.encode("ascii", "gpu-cookbook") for mark in marks}) == len(marks)
    with pytest.raises(UnicodeDecodeError):
        substitute(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"))


def test_the_charts_of_scale_take_any_text():
    for value in (HOSTILE[0], "".join(HOSTILE[:-1])):
        rows = [row(workers=n, time_s=1 / n, framework=value, engine=value) for n in (1, 2)]
        drawn = scaling_charts.scaling(completed(judged(rows)), "core", "strong")
        is_harmless_html(html_page.figure(drawn))
