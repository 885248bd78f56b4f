"""The roles by which a page shows a stored figure, so that none is ever typed: {time}, {ratio}, {wins}, {scaled},
{best}; and {recipe}, a link to a recipe with its tab chosen. How one is named: stored.cell and stored.scaled_row."""

import stored
from docutils import nodes
from sphinx.util.docutils import SphinxRole

from gpu_cookbook import catalogue
from gpu_cookbook.report import digits, seconds, wins


class Figure(SphinxRole):
    """The text of a figure, linked to its table; where it comes from shows when it is pointed at."""

    def run(self):
        try:
            text, found, target = self.figure()
        except (stored.NotStored, ValueError) as error:
            message = self.inliner.reporter.error(f"{self.name}: {error}", line=self.lineno)
            return [nodes.problematic(self.text, self.text)], [message]
        stale = "†" * any(one.get("stale", False) for one in found)
        title = "; ".join(dict.fromkeys(map(stored.origin, found))) + (stale and "; † the recipe has changed since")
        node = nodes.reference("", text + stale, refuri=self.uri(*target), internal=True, reftitle=title)
        node["classes"].append("figure")
        return [node], []

    def uri(self, docname, ending=""):
        return self.env.app.builder.get_relative_uri(self.env.docname, docname) + ending


def place(found):
    return f"machines/{found['machine']}", f"#{found['workload'].replace('_', '-')}"


class Time(Figure):
    def figure(self):
        found, figure = stored.cell(self.text)
        return seconds(found[stored.time_key(figure)]), [found], place(found)


class Ratio(Figure):
    def figure(self):
        over, under = (stored.cell(part) for part in self.text.split("/"))
        value, base = (found[stored.time_key(figure)] for found, figure in (over, under))
        return f"{digits(value / base)} ×", [over[0], under[0]], place(under[0])


class Wins(Figure):
    """The size from which a technique beats NumPy, resident or with transfer."""

    def figure(self):
        found, figure = stored.cell(self.text)
        key = f"beats_numpy_from_size_{figure}"
        if key not in found:
            raise stored.NotStored(f"'{self.text}' is not held against NumPy")
        part = dict(found, **{f"beats_numpy_from_size_{'transfer' if figure == 'resident' else 'resident'}": None})
        for other in [k for k in part if k.startswith("beats_numpy") and not k.endswith(figure)]:
            del part[other]
        sign, size = wins(part)[0], wins(part)[1:]
        words = {"≈": f"from about {size} on", "≤": "at every measured size", ">": f"at no measured size, up to {size}"}
        return words[sign], [found], place(found)


class Scaled(Figure):
    def figure(self):
        rows = [stored.scaled_row(part) for part in self.text.split("/")]
        times = [row["time_s"] for row in rows]
        text = seconds(times[0]) if len(rows) == 1 else f"{digits(times[0] / times[1])} ×"
        return text, rows, ("scaling", "")


class Best(Figure):
    def figure(self):
        workload, lane, *size = self.text.split()
        found = stored.best(workload, lane, *(int(word.replace("_", "")) for word in size))
        return found["technique"], [found], recipe_place(workload, found["technique"])


class Recipe(Figure):
    def run(self):
        workload, technique = self.text.split()
        uri = self.uri(*recipe_place(workload, technique))
        return [nodes.reference("", f"{workload}, {technique}", refuri=uri, internal=True)], []


def recipe_place(workload, technique):
    (recipe,) = catalogue.choose([workload], [technique])
    query = f"?framework={stored.framework_key(recipe.framework)}&technique={technique}"
    return f"recipes/{workload}", f"{query}#recipes"


def setup(app):
    roles = {"time": Time, "ratio": Ratio, "wins": Wins, "scaled": Scaled, "best": Best, "recipe": Recipe}
    for name, role in roles.items():
        app.add_role(name, role())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
