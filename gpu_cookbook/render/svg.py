"""How every chart looks, and how a drawing becomes an SVG element that any page can embed."""

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from gpu_cookbook import catalogue
from gpu_cookbook.results import Result
from gpu_cookbook.scaling import Row
from gpu_cookbook.units import unit_of

if TYPE_CHECKING:  # listing recipes imports this module, but not matplotlib
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

WIDTH = 400  # points. A phone is about as many pixels wide, so text keeps the size at which it is drawn
MOST_WIDTH = "38rem"  # a wider drawing would only make its text larger than the page's own
INK = "#010203"  # stands for the page's text colour in what matplotlib writes
# Each has a contrast of 3:1 or more on white and on #131416.
COLOURS = (
    *("#2f7de1", "#dd6b10", "#1f9d55", "#c2459b", "#8b62dd"),
    *("#0b98a5", "#d64545", "#8a8a12", "#a36b45", "#7586a0"),
)
MARKERS = "os^Dv*PXph<>d"
NAME = 11  # points: the height of a line's name
LANES = {"tuned": COLOURS[0], "idiomatic": COLOURS[1]}

Draw = Callable[["Figure"], None]
Style = dict[str, Any]  # keywords of matplotlib


# ---- The look.


@cache
def _frameworks() -> list[str]:
    return sorted({recipe.framework for recipe in catalogue.recipes()} - {"NumPy"})


def colour(framework: str) -> str:
    """The colour of a framework, the same in every chart."""
    if framework == "NumPy":
        return INK
    known = _frameworks()
    return COLOURS[(known.index(framework) if framework in known else len(known)) % len(COLOURS)]


def colours_apart(frameworks: Iterable[str]) -> dict[str, str]:
    """A colour for each of a few frameworks: its own, or one that no other has here."""
    found: dict[str, str] = {}
    for framework in frameworks:
        own = colour(framework)
        taken = found.values()
        found[framework] = own if own not in taken else next(each for each in COLOURS if each not in taken)
    return found


def line_style(each: Result | Row, number: int) -> Style:
    """The style of the line with this number: its colour is the framework's, and dashes are the idiomatic lane's."""
    if each.technique == "numpy":
        return {"color": INK, "linewidth": 2.6, "marker": "o", "markersize": 5, "zorder": 4}
    return {
        "color": colour(each.framework),
        "linestyle": "-" if each.lane == "tuned" else (0, (4, 2)),
        "linewidth": 1.4,
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4.5,
    }


def time_axis(axis: "Axis") -> None:
    """A tick at each power of ten, with its unit."""
    from matplotlib import ticker

    def word(value: float, _: float) -> str:
        unit, scale = unit_of(value)
        return f"{value / scale:,g} {unit}"

    axis.set_major_locator(ticker.LogLocator(numticks=12))
    axis.set_major_formatter(word)
    axis.set_minor_locator(ticker.NullLocator())


def legend(figure: "Figure", handles: Sequence[Any]) -> None:
    """Adds a legend below the drawing, in as many columns as its width has room for."""
    if not handles:
        return
    labels = [handle.get_label() for handle in handles]
    columns = max(1, min(4, int(WIDTH // (5.2 * max(map(len, labels)) + 36))))
    figure.legend(
        handles, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize=9, handlelength=2.6,
        borderpad=0.2, labelspacing=0.3, columnspacing=1, borderaxespad=0,
    )  # fmt: skip


def legend_beside(axes: "Axes", handles: Sequence[Any]) -> None:
    """Adds a legend to the right of the axes."""
    axes.legend(
        handles=handles, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=9, handlelength=2.6,
        labelspacing=0.6, borderaxespad=0,
    )  # fmt: skip


def name_ends(axes: "Axes", handles: "Mapping[str, Line2D]", height: float) -> None:
    """Puts the name of each line beside its last point, moved up or down until it has room. ``height``: that of the
    axes, in points."""
    from matplotlib.lines import Line2D

    room = NAME / height
    last = {name: _fraction(axes, line) for name, line in handles.items()}
    ends = sorted((end, name) for name, (_, end) in last.items())
    places: list[float] = []
    for end, _ in ends:
        places.append(max(end, places[-1] + room) if places else end)
    above = 1 + room / 2  # the highest place
    for number in reversed(range(len(places))):
        places[number] = min(places[number], above)
        above = places[number] - room
    for (_, name), place in zip(ends, places, strict=True):
        line = handles[name]
        # An arrow of annotate() would take longer than all else: where it may begin is found by bisection.
        leader = Line2D(*zip(last[name], (1.1, place), strict=True), transform=axes.transAxes, clip_on=False)
        leader.set(color=line.get_color(), alpha=line.get_alpha(), linewidth=min(1, line.get_linewidth()))
        axes.add_line(leader)
        axes.text(1.12, place, str(line.get_label()), transform=axes.transAxes, va="center", color=INK, fontsize=9)


def _fraction(axes: "Axes", line: "Line2D") -> tuple[float, float]:
    """Where the last point of a line is, in parts of the axes."""
    x, y = (axes.transData - axes.transAxes).transform(np.asarray(line.get_xydata())[-1])
    return x, y


# ---- The element.


@cache
def _extent(text: str, font: Any, is_math: Any) -> Any:
    """(width, height, depth) of a text. The same names and numbers are in most drawings."""
    from matplotlib.textpath import text_to_path

    return text_to_path.get_text_width_height_descent(text, font, is_math)


def render(draw: Draw, height: float, title: str, text: str) -> str:
    """What ``draw`` draws, as an SVG element. ``height``: in points, without the legend."""
    from matplotlib import rc_context, style
    from matplotlib.backend_bases import FigureCanvasBase
    from matplotlib.backends.backend_svg import RendererSVG
    from matplotlib.figure import Figure

    class Renderer(RendererSVG):
        def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> Any:
            return _extent(s, prop, ismath)

    class Canvas(FigureCanvasBase):
        def get_renderer(self) -> Renderer:
            """What the layout measures texts with: the renderer that draws, which then knows their extents."""
            return renderer

    look: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": title,
        "text.parse_math": False,
        "font.size": 10,
        "axes.titlesize": 10,
        "axes.labelsize": 10,
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "grid.alpha": 0.15,
        "hatch.linewidth": 0.6,
        "legend.labelcolor": INK,
    }
    look |= dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "grid.color", "axes.titlecolor"), INK)
    look |= dict.fromkeys(("xtick.color", "ytick.color", "hatch.color"), INK)
    look |= dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none")
    file = io.StringIO()
    with style.context("default"), rc_context(look):
        figure = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")
        draw(figure)
        if figure.legends:  # add the legend's height, which ``height`` does not include
            box = figure.legends[0].get_window_extent()
            figure.set_figheight((height + 8) / 72 + box.height / figure.dpi)
        # savefig() would draw everything twice, the first time for the layout alone, and measure every text anew.
        figure.dpi = 72
        width, height = figure.get_size_inches() * 72
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        renderer = Renderer(width, height, file, image_dpi=72, metadata=nothing)
        Canvas(figure)
        layout = figure.get_layout_engine()
        assert layout
        layout.execute(figure)
        figure.set_layout_engine(None)
        figure.draw(renderer)
        renderer.finalize()
    return inline(file.getvalue(), title, text)


def inline(written: str, title: str, text: str) -> str:
    """matplotlib's file as an element for a page: its ids are unique, and its font and its text colour are the page's.
    ``text`` describes the drawing in a sentence."""
    root = ElementTree.fromstring(written)
    prefix = f"c{hashlib.sha256(f'{title}{written}'.encode()).hexdigest()[:10]}-"
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', written))
    for parent in list(root.iter()):
        parent.tag = parent.tag.rpartition("}")[2]
        parent.tail = None
        parent.text = parent.text if parent.tag == "text" else None
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("style", "metadata"):
                parent.remove(child)
        for key, value in list(parent.attrib.items()):
            value = re.sub(r"-?\d+\.\d{3,}", _rounded, " ".join(value.split()))
            value = re.sub(r" ?font-family: [^;]*;", "", value).replace(INK, "currentColor")
            value = re.sub(r"(^|url\()#", rf"\1#{prefix}", value) if "#" in value and _refers(key, value) else value
            del parent.attrib[key]
            if key != "id":
                parent.set(key.rpartition("}")[2], value)
            elif value in used:
                parent.set(key, prefix + value)
    flatten(root)
    gather(root)
    view = root.get("viewBox", "")
    root.attrib.clear()
    # matplotlib sets two properties in a style element, which would apply to the whole page. They are set here
    # instead, and inherited.
    look = f"max-width: {MOST_WIDTH}; height: auto; stroke-linejoin: round; stroke-linecap: butt"
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "viewBox": view, "width": "100%", "style": look}
    root.attrib |= {"role": "img", "aria-label": text, "font-family": "inherit"}
    name = ElementTree.Element("title")
    name.text = title
    root.insert(0, name)
    return ElementTree.tostring(root, encoding="unicode")


def flatten(element: ElementTree.Element) -> None:
    """Removes groups that no longer group anything: they make up half of the text."""
    children = []
    for child in element:
        flatten(child)
        if child.tag in ("g", "defs") and not child.attrib and (child.tag == "g" or not len(child)):
            children += list(child)
        else:
            children.append(child)
    element[:] = children


def gather(element: ElementTree.Element) -> None:
    """Groups neighbours that look the same, so that their look is written once: thin lines come in hundreds."""
    if element.tag == "text":  # whose parts cannot be grouped
        return
    children = []
    for look, run in groupby(element, _look):
        same = list(run)
        for child in same:
            gather(child)
        if look and len(same) > 1:
            group = ElementTree.Element("g", look)
            for child in same:
                for key in look:
                    del child.attrib[key]
            group.extend(same)
            same = [group]
        children += same
    element[:] = children


def _look(element: ElementTree.Element) -> dict[str, str]:
    """What an element may have from a group in its place, and look as it does by itself."""
    look: dict[str, str] = {key: element.attrib[key] for key in ("style", "clip-path") if key in element.attrib}
    # A transformed element is clipped before it is moved, and the opacity of a group is that of its whole picture.
    by_itself = "transform" in element.attrib and "clip-path" in look
    by_itself = by_itself or re.search(r"(^|; )opacity:", look.get("style", "")) is not None
    return {} if by_itself else look


def _refers(key: str, value: str) -> bool:
    return key.rpartition("}")[2] == "href" or "url(#" in value


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
