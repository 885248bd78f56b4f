"""The roles by which a page shows a stored figure, so that none is ever typed: {time}, {ratio}, {wins}, {scaled},
{spread}, {best}, {machine}; and {recipe}, a link to a recipe with its tab chosen. How one is named: stored.cell,
stored.best and stored.scaled_rows."""

import stored
from docutils import nodes
from sphinx.util.docutils import SphinxRole

from gpu_cookbook import catalogue
from gpu_cookbook.render.report import digits, noisy, seconds, wins_in
from gpu_cookbook.run import scale

WINS = {"≈": "from about {} on", "≤": "at every measured size", ">": "at no measured size, up to {}"}


class Figure(SphinxRole):
    """The text of a figure, linked to its table; where it comes from shows when it is pointed at."""

    def run(self):
        for path in stored.files():
            self.env.note_dependency(path)
        try:
            return self.figure(*self.text.split("/")), []
        except (stored.NotStored, ValueError, TypeError) as error:
            message = self.inliner.reporter.error(f"{self.name}: {error}", line=self.lineno)
            return [nodes.problematic(self.text, self.text)], [message]

    def link(self, text, docname, ending="", found=()):
        stale = "†" * any(one.get("stale", False) for one in found)
        title = "; ".join(dict.fromkeys(map(stored.origin, found))) + (stale and "; † the recipe has changed since")
        uri = self.env.app.builder.get_relative_uri(self.env.docname, docname) + ending
        about = {"reftitle": title} if title else {}
        return nodes.reference("", text + stale, refuri=uri, internal=True, classes=["figure"], **about)

    def linked(self, text, *found):
        """To the table of the machine that was measured."""
        anchor = f"#{found[0]['workload'].replace('_', '-')}"
        return [self.link(text, f"machines/{found[0]['machine']}", anchor, found)]


def noise(cell, figure):
    return "~" * noisy(cell, stored.FIGURES[figure].removesuffix("_s"))


class Time(Figure):
    def figure(self, words):
        found, figure = stored.cell(words)
        return self.linked(noise(found, figure) + seconds(found[stored.FIGURES[figure]]), found)


class Ratio(Figure):
    def figure(self, over, under):
        (over, figure), (under, other) = stored.cell(over), stored.cell(under)
        text = f"{digits(over[stored.FIGURES[figure]] / under[stored.FIGURES[other]])} ×"
        return self.linked(max(noise(over, figure), noise(under, other)) + text, over, under)


class Wins(Figure):
    """The size from which a technique beats NumPy, resident or with transfer."""

    def figure(self, words):
        workload, technique, figure = words.split()
        sizes = catalogue.workload_module(workload).SIZES
        found, _ = stored.cell(f"{workload} {technique} {max(sizes)} {figure}")
        sign, size = wins_in(found, figure)[:1], wins_in(found, figure)[1:]
        if not sign:
            raise stored.NotStored(f"'{words}' is not held against NumPy")
        return self.linked(WINS[sign].format(size), found)


class Scaled(Figure):
    def figure(self, *parts):
        rows = [stored.scaled_row(part) for part in parts]
        cells = [scale.as_cell(row) for row in rows]
        times = [cell["resident_s"] for cell in cells]
        text = seconds(times[0]) if len(rows) == 1 else f"{digits(times[0] / times[1])} ×"
        text = "~" * any(noisy(cell, "resident") for cell in cells) + text
        return [self.link(text, "scaling", "#every-figure", rows)]


class Spread(Figure):
    """What the same row was in all the runs that are kept."""

    def figure(self, words):
        lines = stored.scaled_lines()
        rows = stored.scaled_rows(words, [row | line for line in lines for row in line.pop("rows")])
        times = sorted(row["time_s"] for row in rows)
        return [self.link(f"{seconds(times[0])} to {seconds(times[-1])} in {len(times)} runs", "scaling", found=rows)]


class Best(Figure):
    """The name of the fastest technique, or the names of those that tie."""

    def figure(self, words):
        workload, lane, size = words.split()
        found = []
        for cell in stored.best(workload, lane, int(size.replace("_", ""))):
            found += [nodes.Text(", ")] * bool(found)
            found.append(self.link(cell["technique"], *recipe_place(workload, cell["technique"]), [cell]))
        return found


class Machine(Figure):
    """GPUs, processor, driver and date of the machine on which scaling was measured."""

    def figure(self, name):
        line = stored.scaled_lines()[-1]
        gpus = ", ".join(f"{line['gpus'].count(gpu)} × {gpu}" for gpu in dict.fromkeys(line["gpus"]))
        text = f"{gpus}, {line['processor']}, driver {line['driver']}, {line['date']}"
        return [self.link(text, "scaling", found=[line])]


class Recipe(Figure):
    def figure(self, words):
        workload, technique = words.split()
        return [self.link(f"{workload}, {technique}", *recipe_place(workload, technique))]


def recipe_place(workload, technique):
    (recipe,) = catalogue.choose([workload], [technique])
    query = f"?framework={stored.framework_key(recipe.framework)}&technique={technique}"
    return f"recipes/{workload}", f"{query}#recipes"


ROLES = (Time, Ratio, Wins, Scaled, Spread, Best, Machine, Recipe)


def setup(app):
    for role in ROLES:
        app.add_role(role.__name__.lower(), role())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
