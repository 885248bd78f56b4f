"""The documentation site as its readers have it: built without a warning, opened in a real browser, its links followed,
its recipes copied and run, its commands and examples run."""

import contextlib
import doctest
import functools
import http.server
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import nbformat
import pytest
from blocks import PAGES
from cloning import gpu_machine, require_clone
from conftest import HANG, MADE_UP, git, in_browser, invoked

from gpu_cookbook import catalogue, short, show
from gpu_cookbook.results import Metric
from gpu_cookbook.store import asv_files as store
from gpu_cookbook.store.selecting import select
from gpu_cookbook.units import digits

pytestmark = pytest.mark.slow  # all of it needs the site, which takes most of a minute to build
ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MACHINE = gpu_machine()  # the first of the choices
KINDS = (  # a page of each kind
    "index.html",
    "concepts.html",
    "which.html",
    "differences.html",
    "replacements.html",
    "from-numba.html",
    "recipes/index.html",
    "recipes/multiply.html",
    "compare.html",
    "machines/nvidia-h200.html",
    "machines/nvidia-h200/multiply.html",
    "history.html",
    "history/nvidia-h200.html",
    "history/nvidia-h200/subset_mean.html",
    "scaling.html",
    "scale-out/index.html",
    "how-we-measure.html",
    "measure.html",
    "moving.html",
    "transfers.html",
    "launches.html",
    "together.html",
    "words.html",
    "memory.html",
    "streams.html",
    "profiling.html",
    "debugging.html",
    "command.html",
    "api.html",
    "genindex.html",
)
MOST_BYTES = 1_000_000  # of a page with everything that it loads


def cloned(folder):
    """A clone of this repository as its files are now, committed."""
    require_clone()
    git(ROOT, "clone", "--quiet", ROOT, folder)
    for name in git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    git(folder, "checkout", "--quiet", "-B", "main")  # which asv.conf.json names, whatever branch is worked on here
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=As it is now")
    return folder


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site. Pages are generated beside the others: those of a clone, so that nothing else that
    reads docs/ is disturbed."""
    folder = cloned(tmp_path_factory.mktemp("source") / "clone")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "built"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "built"


def pages(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html") if "_" not in path.parts[0][0])


@pytest.fixture(scope="session")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def opened(browser, address):
    """A page with an empty storage, and the list of what is wrong on any that it opens."""
    context = browser.new_context(base_url=address)
    context.set_default_timeout(1_000 * HANG)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith(address) else None)
    yield page, wrong
    context.close()


def assert_right(wrong):
    found = set(wrong)
    wrong.clear()
    assert found <= {"Failed to fetch"}  # the search's excerpts, which a browser does not read from a folder


@pytest.fixture
def page(browser, address):
    """A page with an empty storage; what is wrong on any that it opens fails the test."""
    with opened(browser, address) as (page, wrong):
        yield page
    assert_right(wrong)


@pytest.fixture(scope="session")
def kept(browser, address):
    with opened(browser, address) as page_and_wrong:
        yield page_and_wrong


@pytest.fixture
def same_page(kept):
    """One page for all tests that only look and choose nothing: a new one would compile the scripts anew, axe's, too,
    and draw everything for the first time."""
    page, wrong = kept
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(color_scheme="light")
    yield page
    assert_right(wrong)


# ---- What is built.


class Links(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        self.links += [attributes[key] for key in ("href", "src") if attributes.get(key)]


def test_links_resolve(site):
    found = {page: Links((site / page).read_text(encoding="utf-8")) for page in pages(site)}
    broken = []
    for page, its in found.items():
        for link in its.links:
            if urlparse(link).scheme:
                continue
            target, anchor = urldefrag(unquote(urljoin(f"/{page}", link)))
            target = target.partition("?")[0].lstrip("/")
            if not (site / target).is_file():
                broken.append(f"{page}: {link}")
            elif anchor and target in found and anchor not in found[target].anchors:
                broken.append(f"{page}: {link} (no such place there)")
    assert len(found) > 20 and not broken


def test_every_recipe_is_there_as_a_script_and_as_a_notebook(site):
    for recipe in catalogue.recipes():
        name = f"{recipe.workload}_{recipe.technique}"
        (script,) = site.glob(f"_downloads/*/{name}.py")
        (notebook,) = site.glob(f"_downloads/*/{name}.ipynb")
        assert script.read_text(encoding="utf-8") == show.script(recipe)
        read = nbformat.read(notebook, as_version=4)
        nbformat.validate(read)
        assert read.metadata.kernelspec.name == "python3"
        about, install, steps, *cells = read.cells
        assert recipe.summary in about.source and install.source.startswith(f"%{recipe.install}")
        functions = re.findall(r"^- `(\w+)`", steps.source, re.MULTILINE)
        assert recipe.workload in functions and set(functions) <= set(recipe.functions)
        cells = [cell.source for cell in cells if cell.cell_type == "code"]
        code = "\n\n\n".join(re.sub(r"^(%%|!).*\n?", "", cell) for cell in cells[:2])
        assert code.split() == show.script(recipe).split()
        compile("\n".join(cells[2:]), name, "exec")


def test_no_figure_of_a_page_is_typed():
    """Times and ratios of the pages come from roles; those of scale-out are of runs that are told there."""
    names = ("index.md", "concepts.md", "which.md", "scaling.md", "compare.md", "transfers.md", "launches.md", *PAGES)
    for path in (DOCS / name for name in names):
        text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.findall(r"\d\s?(?:ms|µs|s|×(?! \d)|GB/s)(?=[\s.,:;)]|$)", text), path.name


def test_no_heading_is_lost_in_a_paragraph(site):
    for name in pages(site):
        prose = re.sub(r"<pre.*?</pre>|<script.*?</script>", "", (site / name).read_text(encoding="utf-8"), flags=re.S)
        assert not re.search(r"#{2,} \w", prose), name


def test_no_column_is_without_a_name(site):
    for name in pages(site):
        heads = re.findall(r"<th\b.*?</th>", (site / name).read_text(encoding="utf-8"), flags=re.DOTALL)
        assert all(re.sub(r"<.*?>", "", head).strip() for head in heads), name


def test_speedups_are_against_numpy_on_the_same_machine(site):
    page = (site / "recipes" / "matmul.html").read_text(encoding="utf-8")
    rows = {tuple(re.findall(r"<p>(.*?)</p>", re.sub(r"</?a.*?>|</?span.*?>", "", row))) for row in page.split("<tr")}
    every = store.Store().load()[0]
    results, _ = select(every)

    def of(machine_name, technique, among):
        key = machine_name, "matmul", technique, 200, "main"
        return next(each for each in among if (each.stored.machine, *each.key) == key)

    for name in {each.stored.machine for each in results if each.workload == "matmul"}:
        torch = of(name, "torch", results)
        # Code that has changed since is compared with what was measured beside it.
        beside = [each for each in every if each.stored.commit == torch.stored.commit] if torch.stale else results
        numpy = of(name, "numpy", beside)
        ratio = digits(numpy.value(Metric.RESIDENT) / torch.value(Metric.RESIDENT))
        assert any(row[:2] == (name, "200×200×200") and row[3] == ratio for row in rows if len(row) > 3), (name, ratio)


def test_what_readme_links_to_is_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert {"docs/which.md", "docs/speedups.png", "CONTRIBUTING.md", "LICENSE"} <= set(links)
    assert len(links) == text.count("](") and not [link for link in links if link and not (ROOT / link).exists()]


def test_a_figure_that_is_not_stored_is_an_error(tmp_path):
    folders = [str(DOCS), str(ROOT / "benchmarks")]
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path[:0] = {folders!r}\nextensions = ['myst_parser', 'figures']\n", encoding="utf-8"
    )
    (tmp_path / "index.md").write_text(
        "# T\n\n{time}`multiply cuppy 7` {ratio}`multiply cupy 40_000 / multiply numpy 7`\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", tmp_path, tmp_path / "out"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "'multiply cuppy 7' is not among the results" in done.stderr and "numpy 7" in done.stderr


def test_examples_of_the_api():
    failed, tried = doctest.testfile(str(DOCS / "api.md"), module_relative=False)
    assert tried > 5 and not failed


LATER = re.compile(r"#.*(takes minutes|takes a minute|needs a GPU)")
FIRST_SIZE = """
from gpu_cookbook import catalogue
every = catalogue.default_sizes
catalogue.default_sizes = lambda workload: every(workload)[:1]
"""


def commands(path):
    """The lines of the page's shell blocks that are run here, once each."""
    blocks = re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line and not LATER.search(line)]
    return list(dict.fromkeys(lines))


@pytest.fixture(scope="session")
def clone(tmp_path_factory):
    """A clone with .venv in it, as the reader's."""
    folder = cloned(tmp_path_factory.mktemp("reader") / "clone")
    # The clone's own package, and everything else from this environment.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    (packages,) = folder.glob(".venv/lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    python = folder / ".venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--editable", folder], check=True)
    asv = python.with_name("asv")
    asv.write_text(f"#!{python}\nfrom asv.main import main\n\nmain()\n", encoding="utf-8")
    asv.chmod(0o755)
    # compare checks and probes in tests/test_cli.py, and under asv here: not again for each of the pages' comparisons,
    # of which those that name no size measure the first one.
    python.with_name("gpu-cookbook").write_text(f"#!{python}\n{FIRST_SIZE}{MADE_UP}")
    return folder


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md") if commands(path)))
def test_every_command_of_a_page_works(clone, page):
    environment = os.environ | {"PATH": f"{clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    for line in commands(DOCS / page):
        done = subprocess.run(
            ["bash", "-ec", line], cwd=clone, env=environment, capture_output=True, text=True, timeout=3 * HANG
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


# From templates, by Sphinx, Pygments and sphinx-copybutton, which have files of their own here, too.
GENERATED = {"basic.css", "copybutton.js", "documentation_options.js", "language_data.js", "pygments.css"}


def test_files_of_other_projects_have_their_licences_beside_them(site):
    theirs = [path for path in (site / "_static").rglob("*") if path.is_file() and path.name not in GENERATED]
    theirs = [path for path in theirs if not (DOCS / "_static" / path.name).exists()]
    origins = {path: set() for path in theirs}
    for package in importlib.metadata.distributions():
        for file in package.files or ():
            for path in theirs:
                if file.name == path.name and file.locate().read_bytes() == path.read_bytes():
                    origins[path].add(package.name)
    text = (site / "licences.txt").read_text(encoding="utf-8")
    named = set(re.findall(r"^(\S+) [\d.b]+\n=", text, flags=re.MULTILINE))
    assert len(theirs) > 20 and [path.name for path in theirs if not origins[path] & named] == []
    assert "Permission is hereby granted" in text and "Redistribution and use" in text


# ---- In the browser.


def open_by_itself(page, name):
    size = 0

    def add(response):
        nonlocal size
        if not 300 <= response.status < 400:  # one that sends on to another address has no body
            size += len(response.body())

    page.on("response", add)
    page.goto(name, wait_until="networkidle")
    page.remove_listener("response", add)
    assert page.title() and 0 < size < MOST_BYTES, f"{name}: {size} bytes"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the window"


@in_browser
def test_every_page_opens_by_itself(site, same_page):
    """Those of KINDS in the next test, for which they are open anyway."""
    for name in sorted(set(pages(site)).difference(KINDS)):
        open_by_itself(same_page, name)


INSIDE = """() => {
    const box = (name) => document.querySelector(name)?.getBoundingClientRect();
    const contents = box(".toc-drawer");  // beside the page, or off the screen until a button draws it in
    return document.documentElement.scrollWidth <= innerWidth && box(".content").right < innerWidth + 1
        && (!contents || contents.right < innerWidth + 1 || contents.left > innerWidth - 1)
        && [...document.querySelectorAll("article a, article select")].every((each) =>
            each.closest(".scroll, .table-wrapper, pre") || each.getBoundingClientRect().right < innerWidth + 1);
}"""
SCROLLED = """[...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => each.ariaLabel)"""
SCREENS = """() => {
    const places = [...document.querySelectorAll("article :is(h1, h2, h3), footer")];
    const tops = places.map((each) => each.getBoundingClientRect().top);
    return Math.max(...tops.slice(1).map((top, n) => top - tops[n])) / innerHeight;
}"""

WITHOUT_HIDDEN_TABS = """[...document.querySelectorAll(".sd-tab-content")]
    .forEach((each) => each.checkVisibility() || each.remove())"""


@in_browser
@pytest.mark.parametrize("name", KINDS)
def test_it_opens_fits_and_lets_a_screen_reader_in(same_page, name):
    """In one test, for which the page is loaded once."""
    from axe_playwright_python.sync_playwright import Axe

    page = same_page
    open_by_itself(page, name)
    for width in (360, 1100, 1366):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate(INSIDE), f"something lies beside a screen of {width}"
    page.set_viewport_size({"width": 1280, "height": 900})
    assert name.startswith("history/") or page.evaluate(SCROLLED) == []  # the past has a column a commit
    assert page.evaluate(SCREENS) < 10, "ten screens without a heading"
    # All other rules find the same in both.
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast", "link-in-text-block"]})):
        if rules:  # what is on tabs that are not shown has no colour, but to go through it takes most of the time
            page.evaluate(WITHOUT_HIDDEN_TABS)
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("document.getAnimations().length === 0")  # colours change gradually
        # Of what is right, axe would describe every element otherwise.
        violations = Axe().run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
        found = [each for each in violations if each["impact"] in ("serious", "critical")]
        assert not found, [(scheme, each["id"], each["nodes"][0]["html"][:200], len(each["nodes"])) for each in found]


def copied(page, recipe):
    """What the copy button of a recipe puts on the clipboard."""
    framework = recipe.framework.lower()
    page.goto(f"recipes/{recipe.workload}.html?framework={framework}&technique={recipe.technique}#recipes")
    page.wait_for_selector("button.copybtn", state="attached")
    block = page.locator(".highlight-python:visible").nth(1)  # the first is the reference
    block.hover()
    block.locator("button.copybtn").click()
    page.wait_for_selector("button.copybtn.success")
    # The button leaves the last newline out, so that nothing runs by itself when it is pasted into a terminal.
    return page.evaluate("navigator.clipboard.readText()") + "\n"


@in_browser
@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(recipe, id=f"{recipe.workload}-{recipe.technique}")
        for recipe in catalogue.recipes()
        if recipe.technique in ("pyopencl", "cupy_raw", "numba_cpu_tuned", "ray_cuda", "torch_tuned")
    ],
)
def test_the_copy_button_copies_what_show_prints(same_page, recipe):
    """Which tests/test_show.py runs."""
    assert copied(same_page, recipe) == show.script(recipe)


@in_browser
def test_a_chosen_tab_is_chosen_on_the_next_page(page):
    page.goto("recipes/multiply.html")
    page.locator("label[data-sync-group=framework][data-sync-id=numba]").click()
    page.goto("recipes/matmul.html")
    chosen = page.locator("input:checked + label[data-sync-group=framework]")
    assert chosen.inner_text() == "Numba"


@in_browser
def test_a_tab_can_be_linked(page):
    page.goto("recipes/multiply.html?framework=cupy&technique=cupy_jit#recipes")
    chosen = page.locator("input:checked + label.sd-tab-label:visible")
    assert chosen.all_inner_texts() == ["CuPy", "cupy_jit", "safe"]


@in_browser
def test_the_short_form_is_beside_the_safe_script(page):
    page.goto("recipes/multiply.html?framework=cupy&technique=cupy&form=short#recipes")
    (recipe,) = catalogue.choose(["multiply"], ["cupy"])
    assert page.locator(".sd-tab-content pre:visible").first.inner_text().strip() == short.short(recipe).strip()


@in_browser
def test_tabs_work_by_keyboard(page):
    page.goto("recipes/multiply.html")
    page.locator("input[type=radio]").first.focus()
    page.keyboard.press("ArrowRight")
    _, second, *_ = dict.fromkeys(recipe.framework for recipe in catalogue.of_workload("multiply"))
    assert page.locator("input:checked + label[data-sync-group=framework]").inner_text() == second


SECONDS = {"µs": 1e-6, "ms": 1e-3, "s": 1}


def seconds(text):
    number, unit = re.search(r"([\d,.]+) (µs|ms|s)", text).groups()
    return float(number.replace(",", "")) * SECONDS[unit]


@in_browser
def test_a_table_sorts_both_ways(page):
    page.goto("machines/nvidia-h200.html")
    table = page.locator(".scroll table").first
    head = table.locator("th button", has_text="multiply")
    column = table.locator("thead th").all_inner_texts().index(head.locator("..").inner_text())
    for direction, order in (("ascending", sorted), ("descending", lambda x: sorted(x, reverse=True))):
        head.press("Enter")
        assert head.locator("..").get_attribute("aria-sort") == direction
        texts = table.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()
        filled = [text for text in texts if text]
        assert len(filled) > 10 and texts[: len(filled)] == filled, "empty ones come last"
        numbers = [text for text in filled if text != "refused"]
        assert filled[: len(numbers)] == numbers
        times = [seconds(text) for text in numbers]
        assert times == order(times) and len(set(times)) > 5


@in_browser
def test_a_table_is_filtered(page):
    page.goto("machines/nvidia-h200/multiply.html")
    assert page.locator("table tbody tr").count() == page.locator("table tbody tr[data-framework]").count() > 200
    rows = page.locator(".scroll table tbody tr:visible")
    before = rows.count()
    page.locator("select[name=framework]").select_option("CuPy")
    page.locator("select[name=lane]").select_option("tuned")
    shown = set(page.locator(".scroll table:visible tbody tr:visible > th").all_inner_texts())
    assert "cupy_tuned" in shown and all(
        name.startswith("cupy") and name.endswith("_tuned") for name in shown - {"numpy"}
    )
    page.locator("select[name=framework]").select_option("all")
    page.locator("select[name=lane]").select_option("all")
    assert rows.count() == before


@in_browser
def test_three_choices_say_what_to_take(page):
    page.goto("index.html")
    shown = page.locator(".choice:visible")
    captions = set()
    for have in page.locator("select[name=have] option").all_inner_texts():
        page.locator("select[name=have]").select_option(have)
        for data in ("on the host", "on the GPU"):
            page.locator("select[name=data]").select_option(data)
            for size in ("small", "medium", "large"):
                page.locator("select[name=size]").select_option(size)
                assert shown.count() == 1
                assert shown.locator("tbody tr").count() > 5
                captions.add(shown.locator("caption").inner_text())
    assert {f"NVIDIA H200 (nvidia-h200), data {end}" for end in ("on the GPU, large", "on the host, small")} <= captions


def test_the_choices_are_those_of_choose(site):
    """Without JavaScript, too, one of them is shown."""
    page = (site / "index.html").read_text(encoding="utf-8")
    (shown,) = re.findall(r'<section class="choice"[^>]*size="large">.*?</section>', page, re.DOTALL)
    command = ["choose", "multiply", "-s", str(2**28), "--data", "host", "--machine", MACHINE]
    printed, _ = invoked(*command)
    taken = re.search(r"^Take (\w+)", printed, re.MULTILINE)[1]
    (row,) = re.findall(r">multiply</th>(.*?)</tr>", shown)
    technique, _, size, *_ = (re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", row))
    assert size == f"{2**28:,}" and re.match(rf"{taken}\b", technique)


@in_browser
def test_the_search_finds(page):
    page.goto("search.html?q=pyopencl")
    page.wait_for_selector("#search-results li")
    assert page.locator("#search-results li").count() > 2


@in_browser
def test_it_works_from_a_folder(browser, site):
    context = browser.new_context(offline=True)
    context.set_default_timeout(1_000 * HANG)
    opened = context.new_page()
    wrong = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.goto(f"{(site / 'recipes' / 'multiply.html').as_uri()}?framework=numba&technique=numba#recipes")
    assert opened.locator("input:checked + label.sd-tab-label:visible").all_inner_texts() == ["Numba", "numba", "safe"]
    opened.goto((site / "history" / "nvidia-h200" / "subset_mean.html").as_uri())
    steps = opened.locator(".scroll tbody").first.locator("tr:visible")
    every = steps.count()
    opened.locator("select[name=framework]").select_option("Ray")
    assert 0 < steps.count() < every and opened.locator("figure svg").first.bounding_box()["height"] > 100
    opened.goto(f"{(site / 'search.html').as_uri()}?q=pyopencl")
    opened.wait_for_selector("#search-results li")
    assert "without excerpts" in opened.locator("article p.note").inner_text()
    context.close()
    assert set(wrong) <= {"Failed to fetch"}  # the search's excerpts, which a browser does not read from a folder
