"""asv's history pages as docs/history.py makes them: nothing comes from another host, and a browser draws the lines."""

import functools
import hashlib
import http.server
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import asv
import pytest
from cloning import require_clone
from conftest import HANG, in_browser

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
GRAPH = "workloads.multiply.time_resident"
DRAWN = """wanted => wanted === [...document.querySelectorAll("canvas.flot-base")].filter(c => {
    if (!c.offsetParent) return false;
    const rgba = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    let coloured = 0;
    for (let i = 0; i < rgba.length; i += 4)
        coloured += rgba[i + 3] > 0 && Math.max(...rgba.slice(i, i + 3)) - Math.min(...rgba.slice(i, i + 3)) > 60;
    return coloured > 20;
}).length"""  # so many plots show a line: their frames and ticks are grey


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def history(monkeypatch, tmp_path):
    """The script, with nothing downloaded yet."""
    spec = importlib.util.spec_from_file_location("history", ROOT / "docs" / "history.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ARCHIVE", tmp_path / "www" / module.ARCHIVE.name)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return module


def reason(action, *arguments):
    """The one line with which it ends."""
    with pytest.raises(SystemExit) as ended:
        action(*arguments)
    assert len(ended.value.code.splitlines()) == 1
    return ended.value.code


def test_another_archive_than_the_pinned_one_is_refused(history, monkeypatch, tmp_path):
    (tmp_path / "served").mkdir()
    with tarfile.open(tmp_path / "served" / history.ARCHIVE.name, "w:gz") as tar:
        tar.add(__file__, "asv-0.5.1/PKG-INFO")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "served"))
    assert "not the one pinned" in reason(history.libraries)
    assert not history.ARCHIVE.exists()
    shutil.copy(tmp_path / "served" / history.ARCHIVE.name, history.ARCHIVE)  # nor from the cache
    assert "not the one pinned" in reason(history.libraries)


def test_an_index_out_of_reach_is_said(history, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    said = reason(history.libraries)
    assert said.startswith("pip cannot download asv 0.5.1") and "Could not find a version" in said


def test_what_was_downloaded_is_not_asked_for_again(history, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    history.ARCHIVE.parent.mkdir()
    history.ARCHIVE.write_bytes(b"archive")
    monkeypatch.setattr(history, "SHA256", hashlib.sha256(b"archive").hexdigest())
    assert history.libraries() == history.ARCHIVE


def test_no_page_of_asv_loads_from_another_host(history):
    pages = [page.read_text() for page in (Path(asv.__file__).parent / "www").glob("*.html")]
    assert sum(len(re.findall("https://", page)) for page in pages) > len(history.LIBRARIES)
    for page in map(history.offline, pages):
        for tag in re.findall(r"<(?!a\b)\w[^>]*>", page):
            assert not re.search(r"https?:|[\"'=]//", tag), f"a new address of asv's: {tag}"
    assert sum(history.offline(page).count("vendor/") for page in pages) == len(history.LIBRARIES)


def test_an_address_that_is_not_known_is_refused(history):
    page = '<script\n  src="https://cdn.example/jquery-4.0.0.min.js" integrity="sha256-"></script>'
    assert "https://cdn.example/jquery-4.0.0.min.js" in reason(history.offline, page)


def test_a_folder_with_other_things_is_left_alone(history, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "choose another" in reason(history.main, tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_a_clone_without_its_history_says_so(history, monkeypatch, tmp_path, capsys):
    require_clone()
    subprocess.run(["git", "clone", "-q", "--depth", "1", ROOT.as_uri(), tmp_path / "clone"], check=True)
    monkeypatch.setattr(history, "ROOT", tmp_path / "clone")
    assert "nothing to publish" in reason(history.publish, tmp_path / "pages")
    assert re.search(r"Not in the history of \w+, .*: left out\n$", capsys.readouterr().err)
    shutil.rmtree(tmp_path / "clone" / ".git")
    assert "not a git repository" in reason(history.publish, tmp_path / "pages")


@in_browser
def test_a_browser_without_a_network_draws_the_lines(browser, tmp_path):
    require_clone()
    results = {path: path.read_bytes() for path in (ROOT / "benchmarks" / "results").rglob("*.json*")}
    script = [sys.executable, ROOT / "docs" / "history.py", tmp_path / "history"]
    done = subprocess.run(script, capture_output=True, text=True)
    if "Could not find a version" in done.stderr:
        pytest.skip("the pages' libraries are not installed, and the package index is out of reach")
    assert done.returncode == 0, done.stderr
    assert all(path.read_bytes() == content for path, content in results.items())
    summaries = (tmp_path / "history" / "graphs" / "summary").glob("*.json")
    plots = sum(any(value is not None for _, value in json.loads(path.read_text())) for path in summaries)
    index = json.loads((tmp_path / "history" / "index.json").read_text())
    (tmp_path / "index.html").write_text("the site")

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}/"
    faults = []
    page = browser.new_page(viewport={"width": 1280, "height": 2400})  # the grid draws what is in view
    page.set_default_timeout(1_000 * HANG)

    def only_here(route):
        if route.request.url.startswith(here):
            return route.continue_()
        faults.append(f"asked for {route.request.url}")
        return route.abort()

    page.route("**/*", only_here)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    page.on("response", lambda answer: answer.status >= 400 and faults.append(f"{answer.status} {answer.url}"))

    def show(fragment, shown):
        page.goto(f"{here}history/index.html#{fragment}")
        page.locator(f"{shown} >> visible=true").first.wait_for()
        page.wait_for_load_state("networkidle")

    show("/", "canvas.flot-base")
    page.wait_for_function(DRAWN, arg=plots)
    assert not page.get_by_text("track_conditions").count()
    show("/summarylist", "td >> text=/[0-9](ms|μs|s|ns)$/")
    page.locator("th:has-text('Value') >> visible=true").click()  # sorts
    show("/regressions", "#regressions-body td a")
    show(index["show_commit_url"].removeprefix("#") + "0123456789abcdef", "canvas.flot-base")
    show(GRAPH, "canvas.flot-base")
    page.wait_for_function(DRAWN, arg=2)  # the lines, and the overview below them
    page.locator("#log-scale").click()
    show(f"{GRAPH}?x-axis=technique", "canvas.flot-base")
    page.wait_for_function(DRAWN, arg=1)  # bars have no overview
    page.locator("#project-name >> text='GPU Cookbook'").click()
    page.get_by_text("the site").wait_for()
    page.close()
    server.shutdown()
    assert not faults
