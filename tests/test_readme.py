"""README's tables are what the tool prints."""

import runpy
from pathlib import Path

from cloning import require_clone

ROOT = Path(__file__).parents[1]


def test_the_tables_are_what_the_tool_prints():
    require_clone()
    readme = runpy.run_path(str(ROOT / "docs" / "readme.py"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme["BLOCK"].search(text)
    assert readme["written"](text) == text, "make readme rewrites them"
