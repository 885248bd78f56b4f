"""The tool: finds, checks, measures and shows recipes. No recipe imports it."""

from pathlib import Path

_here = Path(__file__).parent
if not (_here / "recipes").exists():  # a clone, even one that is not installed: its recipes and kernels lie beside this
    __path__.append(str(_here.parent))
