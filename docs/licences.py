"""Puts licences.txt into the site: those of the packages whose files Sphinx copies into it, as they are installed."""

import importlib.metadata
import re
from pathlib import Path

from pygments.styles import get_style_by_name

from gpu_cookbook import machine


def setup(app):
    app.connect("build-finished", lambda app, error: error or write(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(app):
    (Path(app.outdir) / "licences.txt").write_text("\n\n".join(map(licence, packages(app))), encoding="utf-8")


def packages(app):
    """The distributions of Sphinx, its extensions and its theme, of what colours code, and of the search's stemmer."""
    styles = (app.config.pygments_style, app.config.pygments_dark_style)
    modules = {"pygments", "snowballstemmer", *app.extensions, *(get_style_by_name(name).__module__ for name in styles)}
    packages = {module.partition(".")[0] for module in modules} - {"sphinxcontrib"}  # which writes other formats
    return sorted({name for package in packages for name in machine.distribution_names(package)})


def licence(name):
    """The texts that a distribution brings."""
    package = importlib.metadata.distribution(name)
    files = [file for file in package.files or () if re.search("licen[cs]e|copying", file.name, re.IGNORECASE)]
    texts = [file.read_text(encoding="utf-8").strip() for file in files if not file.suffix.startswith(".py")]
    if not texts:
        raise FileNotFoundError(f"{name} brings no licence, and its files are in the site")
    return "\n\n".join([f"{name} {package.version}\n{'=' * 80}", *texts]) + "\n"
