"""The Python blocks of pages do what the pages say; see blocks.py."""

import re
import subprocess
import sys

import blocks
import pytest
from blocks import DOCS, ENDS_HERE, NEEDS_GPU, PAGES, Section, sections

SECTIONS = [section for page in PAGES for section in sections(page)]
ELSEWHERE = {  # pages whose Python blocks are not run here, and why
    "docs/api.md": "an example of doctest's, which test_site.py runs",
    "docs/scale-out/cudf.md": "a setting for a cluster with GPUs, which test_scale_out.py compiles",
    "README.md": "a short form, which test_readme.py compares with what test_short.py runs",
}
FENCE = re.compile(r"^\s*[`~]{3,}\s*(?:\{[\w-]+\}\s*)?\{?i?py(?:thon|con)?\b", re.MULTILINE)
NAMES = [f"{section.page.removesuffix('.md')}: {section.title}" for section in SECTIONS]


@pytest.mark.slow
@pytest.mark.parametrize(
    "section",
    [
        pytest.param(section, id=name, marks=[pytest.mark.skip(reason=section.obstacle)] if section.obstacle else [])
        for section, name in zip(SECTIONS, NAMES, strict=True)
    ],
)
def test_a_section_does_what_its_page_says(section):
    fault, printed = section.run()
    assert not fault, f"{fault}\n{printed}"


def test_every_block_of_python_is_run():
    root = DOCS.parent
    pages = [*root.glob("*.md"), *DOCS.rglob("*.md")]
    blocks = {page.relative_to(root).as_posix(): len(FENCE.findall(page.read_text(encoding="utf-8"))) for page in pages}
    run = {f"docs/{page}": sum(len(section.blocks) for section in sections(page)) for page in PAGES}
    assert {page: count for page, count in blocks.items() if count and page not in ELSEWHERE} == run
    assert all(map(blocks.get, ELSEWHERE))
    assert len(set(NAMES)) == len(NAMES)


def test_what_needs_a_gpu_is_python_without_undefined_names(tmp_path):
    """So that a block which is not run here is not nonsense either."""
    for number, section in enumerate(SECTIONS):
        (tmp_path / f"section_{number}.py").write_text(section.script, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "E9,F", tmp_path]
    done = subprocess.run(ruff, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_cuda_c_compiles():
    from cuda.core import Program, ProgramOptions

    kernels = [text for each in SECTIONS for text in re.findall(r'r"""(.*?)"""', each.script, re.DOTALL)]
    kernels = [text for text in kernels if "__global__" in text]
    assert kernels
    for text in kernels:
        assert Program(text, "c++", ProgramOptions(arch="sm_90")).compile("cubin").code[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("code", "shown", "fault"),
    [
        ("print(1)\n", "1\n", None),
        ("print(12, 3)\n", "12 …\n", None),
        ("print(1)\n", "2\n", "this was not printed:\n2\n"),
        ("print(11)\n", "1\n", "this was not printed:\n1\n"),
        ("import sys\nsys.exit(1)\n", "", "exit status 1"),
        (f"import sys\nsys.exit(1)  # {ENDS_HERE}\n", "", None),
        (f"print(1)  # {ENDS_HERE}\n", "1\n", "exit status 0"),
        (f"1 / 0  # {ENDS_HERE}\n", "ZeroDivisionError: …\n", None),
        (f"1 / 0\nprint(1)  # {ENDS_HERE}\n", "", "it ended in line 1"),
    ],
)
def test_what_is_wrong_is_found(code, shown, fault):
    assert Section("page.md", "title", (code,), (shown,)).run()[0] == fault


def test_a_section_that_hangs_is_one_fault(monkeypatch):
    monkeypatch.setattr(blocks, "LIMIT", 3)
    code = "import time\nprint(1, flush=True)\ntime.sleep(600)\n"
    assert Section("page.md", "title", (code,), ()).run()[0] == "not done after 3 s"


def test_a_block_that_lacks_something_says_what():
    assert Section("page.md", "title", ("import no_such_package\n",), ()).obstacle == "no_such_package not installed"
    assert any(block.startswith(NEEDS_GPU) for section in SECTIONS for block in section.blocks)
