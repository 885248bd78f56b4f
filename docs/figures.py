"""The roles with which a page shows a stored number, so that none is ever typed: {time}, {ratio}, {rate}, {both},
{wins}, {scaled}, {spread}, {best}, {moved}, {reached}, {launch}, {reduced}, {concept}, {hasty}, {balance}, {bus},
{hidden}, {machine}; and {recipe}, a link to a recipe with its tab chosen. How a page names one: see stored.named,
stored.best, stored.scaled_rows, stored.moved, stored.launch, stored.reduction and stored.concept."""

import stored
from docutils import nodes
from sphinx.util.docutils import SphinxRole

from gpu_cookbook import catalogue
from gpu_cookbook.render import timelines
from gpu_cookbook.render.format import NOISE, STALE, beats_from, doubts
from gpu_cookbook.scaling import EMPTY
from gpu_cookbook.store import transfers
from gpu_cookbook.units import digits, seconds

SENT = {  # bytes that must go over the bus to the GPU, at the largest size: of subset_mean only the rows that matter
    "multiply": 2 * 4 * 2**28,
    "increment": 4 * 2**28,
    "matmul": 2 * 4 * 4_096**2,
    "subset_mean": catalogue.workload_module("subset_mean").bytes_moved(40_000),
}
LONG = 30  # characters: more of them do not fit into a line on a phone
WINS = {"≈": "from about {} on", "≤": "at every measured size", ">": "at no measured size, up to {}"}


class Figure(SphinxRole):
    """The text of a number, linked to its table, with its origin as a tooltip."""

    def run(self):
        for path in stored.files():
            self.env.note_dependency(path)
        try:
            return self.figure(*self.text.split("/")), []
        except (stored.NotStored, ValueError, TypeError) as error:
            message = self.inliner.reporter.error(f"{self.name}: {error}", line=self.lineno)
            return [nodes.problematic(self.text, self.text)], [message]

    def link(self, text, docname, ending="", found=()):
        stale = STALE * any(one.stale for one in found)
        title = "; ".join(dict.fromkeys(str(one.origin) for one in found)) + (
            stale and f"; {STALE} the recipe has changed since"
        )
        uri = self.env.app.builder.get_relative_uri(self.env.docname, docname) + ending
        about = {"reftitle": title} if title else {}
        classes = ["figure", *["long"] * (len(text) > LONG)]
        return nodes.reference("", text + stale, refuri=uri, internal=True, classes=classes, **about)

    def linked(self, text, metric, *found):
        """The text, linked to the tables of this metric of the machine that was measured."""
        place = f"machines/{found[0].origin.machine}/{found[0].workload}"
        return [self.link(text, place, f"#{anchor(metric)}", found)]


class Time(Figure):
    def figure(self, words):
        found, metric = stored.named(words)
        return self.linked(doubts(found, metric) + seconds(found.value(metric)), metric, found)


class Ratio(Figure):
    def figure(self, over, under):
        (over, metric), (under, other) = stored.named(over), stored.named(under)
        marks = "".join(dict.fromkeys(doubts(over, metric) + doubts(under, other)))
        return self.linked(f"{marks}{digits(over.value(metric) / under.value(other))} ×", metric, over, under)


class Rate(Figure):
    """Images per second of a training. Its batches are whole, so that it may take fewer images than its size says."""

    def figure(self, words):
        found, metric = stored.named(words)
        if found.workload != "training":
            raise stored.NotStored(f"'{words}' has no images")
        images, batch = found.size
        rate = images // batch * batch / found.value(metric)
        return self.linked(doubts(found, metric) + digits(rate), metric, found)


class Both(Figure):
    """The shortest time in which two recipes could do a work together, and how many times as fast that is as the faster
    of them. In t seconds one does t/a of the work and the other t/b, and nothing is left when t/a + t/b = 1."""

    def figure(self, one, other):
        (one, metric), (other, another) = stored.named(one), stored.named(other)
        if (one.workload, one.size, one.origin.machine) != (other.workload, other.size, other.origin.machine):
            raise stored.NotStored(f"{one.technique} and {other.technique} did not do the same on one machine")
        a, b = one.value(metric), other.value(another)
        shortest = a * b / (a + b)
        marks = "".join(dict.fromkeys(doubts(one, metric) + doubts(other, another)))
        return self.linked(f"{marks}{seconds(shortest)}, {digits(min(a, b) / shortest)} ×", metric, one, other)


class Wins(Figure):
    """The size from which a technique is faster than another one, which is NumPy if none is named."""

    def figure(self, words, other="numpy"):
        workload, technique, metric = words.split()
        found, crossing = stored.crossing(workload, technique, metric, other.strip())
        if crossing is None:
            return self.linked("(not decided)", stored.METRICS[metric], *found)
        begins = beats_from(crossing)
        return self.linked(WINS[begins[0]].format(begins[1:]), stored.METRICS[metric], *found)


class Scaled(Figure):
    def figure(self, *parts):
        rows = [stored.scaled_row(part) for part in parts]
        times = [row.cost.round if row.mode == EMPTY else row.time.median for row in rows]
        text = seconds(times[0]) if len(rows) == 1 else f"{digits(times[0] / times[1])} ×"
        text = NOISE * any(row.time is not None and row.time.noisy for row in rows) + text
        return [self.link(text, "scaling", "#every-figure", rows)]


class Spread(Figure):
    """The range of the same row over all stored runs."""

    def figure(self, words):
        rows = stored.scaled_rows(words, [row for run in stored.scaled_runs() for row in run.rows])
        times = sorted(row.time.median for row in rows)
        return [self.link(f"{seconds(times[0])} to {seconds(times[-1])} in {len(times)} runs", "scaling", found=rows)]


class Best(Figure):
    """The name of the fastest technique, or the names of those that tie; behind them those that do not count, because
    their times are doubtful."""

    def figure(self, words):
        workload, lane, size = words.split()
        first, doubtful = stored.best(workload, lane, int(size.replace("_", "")))
        found = self.names(first) or [nodes.Text("(not decided)")]
        if doubtful:
            why = "as its time is" if len(doubtful) == 1 else "as their times are"
            found += [nodes.Text(f" (not counted, {why} doubtful: "), *self.names(doubtful), nodes.Text(")")]
        return found

    def names(self, results):
        found = []
        for result in results:
            found += [nodes.Text(", ")] * bool(found)
            there = catalogue.find(result.workload, result.technique)
            measured = f"machines/{result.stored.machine}/{result.workload}"
            place = recipe_place(result.workload, result.technique) if there else (measured,)
            found.append(self.link(result.technique, *place, found=[result]))
        return found


class Moved(Figure):
    """A time, a share, a rate or a ratio of the ways from host to host."""

    read, place = staticmethod(stored.moved), ("transfers", "#the-ladder")

    def figure(self, *parts):
        found = [self.read(part.strip()) for part in parts]
        if None in found:
            return [nodes.Text("(not measured yet)")]
        text = found[0].text
        if len(found) == 2:
            noise = NOISE * any(each.text.startswith(NOISE) for each in found)
            text = f"{noise}{digits(found[0].value / found[1].value)} ×"
        return [self.link(text, *self.place, found)]


class Reached(Figure):
    """In which frameworks the tuned recipe multiplies ordinary arrays in at most this part of NumPy's time: in every
    run that has them all, the newest first."""

    def figure(self, part):
        steps = {
            name: transfers.RECIPES[name]
            for name, (_, arrays) in timelines.WAYS.items()
            if name in transfers.RECIPES and arrays == timelines.ORDINARY
        }
        runs = [run for run in reversed(stored.every_transferred()) if all(map(run.seconds, steps))]
        found = []
        for run in runs:
            reached = [
                catalogue.find(*work).framework
                for name, work in steps.items()
                if run.seconds(name) <= float(part) * run.seconds("numpy")
            ]
            text = f"{len(reached)} of {len(steps)}" + f" ({', '.join(reached)})" * bool(reached)
            found += [nodes.Text("; ")] * bool(found)
            found.append(
                self.link(f"{run.origin.machine}, commit {run.origin.commit[:8]}: {text}", "transfers", "#the-ladder")
            )
        return found or [nodes.Text("(not measured yet)")]


class Launch(Moved):
    """The time of a launch, or a ratio of two."""

    read, place = staticmethod(stored.launch), ("launches", "")


class Reduced(Moved):
    """The time of an all-reduce, or a ratio of two."""

    read, place = staticmethod(stored.reduction), ("all-reduce", "")


class Concept(Moved):
    """The time or the rate of a kernel of docs/concepts, or a ratio of two times."""

    read, place = staticmethod(stored.concept), ("concepts", "#every-figure")


class Hasty(Figure):
    """How many times as long as a launch the device computes: what a clock that does not wait leaves out."""

    def figure(self, words, launched):
        (found, metric), launch = stored.named(f"{words} device"), stored.launch(launched.strip())
        if launch is None:
            return [nodes.Text("(not measured yet)")]
        if launch.origin.machine != found.origin.machine:
            raise stored.NotStored(f"launches of {found.origin.machine} were not measured")
        noise = NOISE * launch.text.startswith(NOISE)
        text = f"{noise}{doubts(found, metric)}{digits(found.value(metric) / launch.value)} ×"
        return self.linked(text, metric, found, launch)


class Balance(Figure):
    """How many operations a stored result does while one byte goes over the bus to the GPU."""

    def figure(self, words):
        (found, metric), bus = stored.named(words), stored.moved("limit_up rate")
        if bus is None:
            return [nodes.Text("(not measured yet)")]
        if bus.origin.machine != found.origin.machine:
            raise stored.NotStored(f"the bus of {found.origin.machine} was not measured")
        rate = catalogue.workload_module(found.workload).operations(found.size) / found.value(metric)
        noise = NOISE * bus.text.startswith(NOISE)
        text = noise + doubts(found, metric) + digits(rate / bus.value)
        return [self.link(text, "transfers", "#the-ladder", [found, bus])]


class Bus(Figure):
    """How many times as long as the bus needs for what must go to the GPU a recipe takes from page-locked arrays, at
    the largest size; of a workload alone, how long the bus needs."""

    def figure(self, words):
        workload, *technique = words.split()
        found, metric = stored.named(f"{words} {largest(workload)} pinned") if technique else (None, None)
        bus = stored.over_the_bus(SENT[workload], found and found.origin)
        if bus is None:
            return [nodes.Text("(not measured yet)")]
        if found is None:
            return [self.link(bus.text, "transfers", "#the-ladder", [bus])]
        noise = NOISE * bus.text.startswith(NOISE)
        text = f"{noise}{doubts(found, metric)}{digits(found.value(metric) / bus.value)} ×"
        return self.linked(text, metric, found, bus)


class Hidden(Figure):
    """The part of its copies that a recipe's matmul makes during the product, from page-locked matrices of the largest
    size: what its call takes less than both one after the other. The way back is half of the way there."""

    def figure(self, technique):
        words = f"matmul {technique} {largest('matmul')}"
        (call, pinned), (work, resident) = stored.named(f"{words} pinned"), stored.named(f"{words} resident")
        copies = stored.over_the_bus(SENT["matmul"] * 3 // 2, call.origin)
        if copies is None:
            return [nodes.Text("(not measured yet)")]
        part = (copies.value + work.value(resident) - call.value(pinned)) / copies.value
        marks = "".join(dict.fromkeys(doubts(call, pinned) + doubts(work, resident)))
        return self.linked(f"{marks}{100 * part:.0f} %" if part > 0 else "none", pinned, call, copies)


def largest(workload):
    return max(catalogue.workload_module(workload).SIZES)


class Machine(Figure):
    """GPUs, processor, driver and date of the machine on which scaling was measured."""

    def figure(self, name):
        if name != stored.GPUS_MACHINE:
            raise stored.NotStored(f"scaling is shown of {stored.GPUS_MACHINE}, not of '{name}'")
        # A run on fewer cores says that the processor has so many: "Intel Xeon, 64 cores" and "Intel Xeon, 1 cores".
        newest_first = reversed(stored.scaled_runs())
        run = max(newest_first, key=lambda run: (len(run.processor), run.processor))
        gpus = ", ".join(f"{run.gpus.count(gpu)} × {gpu}" for gpu in dict.fromkeys(run.gpus))
        text = f"{gpus}, {run.processor}, driver {run.driver}, {run.origin.date}"
        return [self.link(text, "scaling", found=run.rows[:1])]


class Recipe(Figure):
    def figure(self, words):
        workload, technique = words.split()
        return [self.link(f"{workload}, {technique}", *recipe_place(workload, technique))]


def anchor(metric):
    """Of the heading above the tables of a metric, on a page of a machine and a workload."""
    return metric.replace(" ", "-")


def recipe_place(workload, technique):
    (recipe,) = catalogue.choose([workload], [technique])
    query = f"?framework={stored.framework_key(recipe.framework)}&technique={technique}"
    return f"recipes/{workload}", f"{query}#recipes"


ROLES = (
    *(Time, Ratio, Rate, Both, Wins, Scaled, Spread, Best, Moved, Reached, Launch, Reduced, Concept),
    *(Hasty, Balance, Bus, Hidden, Machine, Recipe),
)


def setup(app):
    for role in ROLES:
        app.add_role(role.__name__.lower(), role())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
