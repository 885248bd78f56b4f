"""What services and package indexes read: metadata, citation, changelog, workflows, locks."""

import ast
import configparser
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cloning import require_clone
from conftest import invoked
from markdown_it import MarkdownIt
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from test_installing import extra

from gpu_cookbook import catalogue
from gpu_cookbook.store import commits

ROOT = Path(__file__).parents[1]
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
METADATA = SETUP["metadata"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LOCKS = runpy.run_path(str(ROOT / "locks" / "write.py"))
EXTRAS = LOCKS["extras"]()
PYTHONS = [line.rpartition(" ")[2] for line in METADATA["classifiers"].split("\n") if re.search(r":: 3\.\d+$", line)]


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ("citation-file-format", "CITATION.cff"),
        ("dependabot", ".github/dependabot.yml"),
        ("readthedocs", ".readthedocs.yaml"),
        *(("github-workflows", f".github/workflows/{path.name}") for path in WORKFLOWS),
    ],
)
def test_a_file_fits_the_schema_of_its_service(schema, name):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", ROOT / name]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps():
    """(workflow, job, step) of all of them."""
    for path in WORKFLOWS:
        for job in read(path)["jobs"].values():
            for step in job["steps"]:
                yield path, job, step


def commands():
    """Each command that a workflow or Read the Docs runs, with every value of the job's matrix in its place."""
    yield from read(ROOT / ".readthedocs.yaml")["build"]["commands"]
    for _, job, step in steps():
        matrix = job.get("strategy", {}).get("matrix", {})
        found = [step.get("run", "")]
        for name, values in matrix.items():
            found = [text.replace(f"${{{{ matrix.{name} }}}}", value) for text in found for value in values]
        yield from dict.fromkeys(found)


def test_workflows_pin_their_actions_and_have_least_permissions():
    assert WORKFLOWS
    for path in WORKFLOWS:
        assert read(path)["permissions"] == {"contents": "read"}
    for path, job, step in steps():
        assert job["timeout-minutes"]
        if "permissions" in job:
            assert (path.name, job["permissions"]) == ("publish.yml", {"id-token": "write"})
        if "uses" in step:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        assert "${{ inputs" not in step.get("run", "") and "${{ github" not in step.get("run", ""), "a shell's code"


def test_what_workflows_run_exists(monkeypatch):
    """Each make target, each command of the tool with its options, and each file that they name."""
    text = "\n".join(commands())
    targets = re.findall(r"^make (?:-C \S+ )?([\w-]+)", text, re.MULTILINE)
    assert {"test", "test-slow", "doctor", "docs"} <= set(targets)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)", makefile, re.MULTILINE)
    assert set(targets) <= set(phony.split())
    named = re.findall(r"gpu-cookbook (\w+)(.*)", text)
    assert {"check", "compare", "tables"} <= {command for command, _ in named}
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    for command, rest in named:
        help_text, _ = invoked(command, "--help")
        for option in re.findall(r"(?<!\S)--?[a-z]+", rest):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", help_text), f"{command} {option}"


def test_the_pythons_that_are_named_are_those_that_are_tested():
    job = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    assert SETUP["options"]["python_requires"] == f">={PYTHONS[0]}"
    assert LOCKS["OLDEST"] == PYTHONS[0]


@pytest.mark.parametrize(
    ("tag", "heading", "said"),
    [
        ("v{version}", "## [{version}] - 2026-12-24", ""),
        (
            "{version}",
            "## [{version}] - 2026-12-24",
            "The tag is {version}, but the version in setup.cfg is {version}.",
        ),
        ("v9.9.9", "## [9.9.9] - 2026-12-24", "The tag is v9.9.9, but the version in setup.cfg is {version}."),
        ("v{version}", "## [Unreleased]", "CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'."),
        ("v{version}", "## [1{version}] - 2026-12-24", "CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'."),
    ],
)
def test_only_a_tag_of_this_version_that_the_changelog_has_is_published(tmp_path, tag, heading, said):
    version = METADATA["version"]
    (script,) = (step["run"] for _, _, step in steps() if step.get("name", "").startswith("The tag"))
    (tmp_path / "setup.cfg").write_text((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading.format(version=version)}\n")
    environment = os.environ | {"GITHUB_REF_NAME": tag.format(version=version)}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (bool(said), said.format(version=version))


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, *released = re.findall(r"^## (.*)", text, re.MULTILINE)
    assert unreleased == "[Unreleased]"
    found = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", each) for each in released]
    versions = [Version(each[1]) for each in found]
    assert versions == sorted(versions, reverse=True)
    assert all(version <= Version(METADATA["version"]) for version in versions)
    kinds = set(re.findall(r"^### (.*)", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_address_is_set_in_one_place():
    """setup.cfg's url. Where that is missing, nothing else names one either."""
    citation = read(ROOT / "CITATION.cff")
    assert citation.get("repository-code") == METADATA.get("url")
    assert not {"url", "doi", "version", "date-released"} & set(citation)
    assert [author["name"] for author in citation["authors"]] == [METADATA["author"]]
    assert METADATA["author"] in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert citation["license"] == METADATA["license_expression"]
    assert citation["abstract"].rstrip(".") == METADATA["description"]


def test_the_version_is_written_in_one_place():
    """Except for the changelog's headings."""
    names = [
        path for path in ROOT.glob("*") if path.is_file() and path.name not in ("setup.cfg", "CHANGELOG.md", "PKG-INFO")
    ]
    names += [*(ROOT / "gpu_cookbook").glob("*.py"), ROOT / "gpu_cookbook" / "README.md", ROOT / "docs" / "conf.py"]
    found = re.compile(rf"(?<![\d.]){re.escape(METADATA['version'])}(?![\d.])")
    assert not [path.name for path in names if found.search(path.read_text(encoding="utf-8"))]


def links(text):
    """Where each link and image of a Markdown text leads."""
    for token in MarkdownIt().parse(text):
        for child in token.children or []:
            if place := child.attrGet("href") or child.attrGet("src"):
                yield place


def test_the_page_of_an_index_has_no_link_that_breaks_there():
    """An index shows the text without the files beside it: only absolute links lead anywhere."""
    assert METADATA["long_description"] == "file: gpu_cookbook/README.md"
    text = (ROOT / "gpu_cookbook" / "README.md").read_text(encoding="utf-8")
    assert list(links("[a](b.md) ![c](d.png)\n\n| [e](f) |\n|---|")) == ["b.md", "d.png", "f"]
    assert [place for place in links(text) if not place.startswith("https://")] == []
    assert "<img" not in text and "<a " not in text
    for name in re.findall(r"gpu-cookbook\[(\w+)\]", text):
        assert name in EXTRAS


def pins(name):
    """{distribution: [(version, for which environments)]} of a lock."""
    found, path = {}, ROOT / "locks" / f"{name}.txt"
    assert path.exists(), f"there is no {path.name} for the extra {name} of setup.cfg: make locks"
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            assert pin.operator == "==", line
            found.setdefault(canonicalize_name(requirement.name), []).append((Version(pin.version), requirement.marker))
    return found


def pinned(name, python):
    """{distribution: versions} of a lock on this Python."""
    here = {"python_version": python, "python_full_version": f"{python}.0"}
    return {
        package: [version for version, marker in versions if marker is None or marker.evaluate(here)]
        for package, versions in pins(name).items()
    }


def test_there_is_a_lock_for_each_kind_of_machine():
    assert sorted(path.stem for path in (ROOT / "locks").glob("*.txt")) == sorted(EXTRAS)


@pytest.mark.parametrize("name", EXTRAS)
@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_has_all_that_its_extra_asks_for(name, python):
    locked = pinned(name, python)
    assert all(len(versions) <= 1 for versions in locked.values())
    assert lacking(locked, extra(name)) == [], f"locks/{name}.txt lacks what setup.cfg names: make locks"


def lacking(locked, requirements):
    """Those that a lock does not have, or not in a version that fits."""
    return [
        str(asked)
        for asked in requirements
        if not any(map(asked.specifier.contains, locked.get(canonicalize_name(asked.name), ())))
    ]


def test_what_a_lock_lacks_is_named():
    asked = [Requirement(text) for text in ("numpy<2.5", "Un_heard", "torch>=2.9")]
    assert lacking({"numpy": [Version("2.4.6")], "torch": [Version("2.8")]}, asked) == ["Un_heard", "torch>=2.9"]
    with pytest.raises(AssertionError, match="there is no nosuch.txt for the extra nosuch of setup.cfg: make locks"):
        pins("nosuch")


@pytest.mark.parametrize(
    ("there", "words"),
    [(False, "uv is not installed: 'make locks' installs it"), (True, "run this command inside a")],
)
def test_locks_that_cannot_be_written_say_why(there, words, tmp_path):
    code = f"import runpy, sys; sys.modules['uv'] = {'sys' if there else None}\n"
    code += f"runpy.run_path({str(ROOT / 'locks' / 'write.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr


def test_a_lock_has_the_versions_that_were_measured():
    require_clone()
    assert set(LOCKS["MEASURED"]) <= set(EXTRAS)
    for name in LOCKS["MEASURED"]:
        python, measured = LOCKS["measured"](name)
        assert {"numpy", "torch"} <= set(measured) and python in PYTHONS
        for here in PYTHONS:
            locked = pinned(name, here)
            apart = {package for package, version in measured.items() if locked.get(package) != [Version(version)]}
            if here < python:  # what this Python cannot have
                apart -= {package for package, versions in pins(name).items() if len(versions) > 1}
            assert apart == set(), f"on Python {here}: make locks"


def test_a_clone_finds_its_recipes_without_being_installed():
    """asv imports the clone's package whatever is installed: it puts the clone first for its plugins."""
    code = f"""
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in repr(each).lower()]
sys.path.insert(0, {str(ROOT)!r})
import gpu_cookbook.kernels
from gpu_cookbook import catalogue
assert catalogue.FOLDER == catalogue.Path({str(ROOT / "recipes")!r})
assert catalogue.recipes()
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_every_script_is_run_as_the_command_is():
    for path in (each for folder in ("benchmarks", "docs") for each in (ROOT / folder).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert "typer.run(" not in text and ("def main(" not in text or "run(main)" in text), path.name


def test_what_a_workload_is_fits_into_one_line():
    """Pages and the terminal show the first line of its docstring."""
    assert [name for name, statement in catalogue.workloads().items() if not statement.endswith(".")] == []


def test_what_a_function_says_of_itself_is_its_docstring():
    """Below another statement it is a string that nobody reads: help() does not show it."""
    found = []
    for path in (each for folder in ("recipes", "gpu_cookbook") for each in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            later = node.body[1:] if isinstance(getattr(node, "body", None), list) else []
            found += [f"{path.relative_to(ROOT)}:{each.lineno}" for each in later if commits.is_text(each)]
    assert found == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_the_links_at_the_top_of_a_page_are_all_its_sections(page):
    text = page.read_text("utf-8")
    _, here, rest = text.partition("On this page: ")
    if here:
        linked = re.findall(r"\[([^\]]+)\]\(#", rest.partition("\n\n")[0])
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        assert [" ".join(each.split()) for each in linked] == re.findall(r"^## (.*)$", prose, re.MULTILINE)
