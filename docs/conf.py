"""The site: ``make docs`` builds it into build/docs, from the pages here, the recipes, and the stored results."""

import gc
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "benchmarks")]
# The pages are millions of objects, none of them garbage: to look through them as often as usual takes a tenth of the
# time of a build.
gc.set_threshold(100_000, 20, 50)

project = "GPU Cookbook"
language = "en"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "figures",
    "highlighting",
    "licences",
    "pages",
    "pairs",
]
exclude_patterns = ["generated"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "GPU Cookbook"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
smartquotes = False  # it would turn the two hyphens of options into dashes
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.no-copybutton) > div.highlight > pre"
html_theme_options = {"navigation_with_keys": False}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

autodoc_member_order = "bysource"
