"""What follows from the cells, how their figures are written, and all of them for programs: CSV, JSON."""

import csv
import io
import json
import math

from rich import box
from rich.table import Table
from rich.text import Text

from gpu_cookbook import catalogue

NOISY = 0.2  # the middle half of the samples is wider than this share of the median
CAPTION = (
    "Medians. resident: data on the device, one synchronised call. device: its own clock, queue kept full. transfer: "
    "host arrays in, host result out. ×NumPy: NumPy's resident time over resident, and over transfer. GB/s: what must "
    "move, and its share of this device's copy bandwidth, where the data exceed its cache. memory: peak on the GPU. "
    "first: a fresh process with empty caches, until its first result. wins from: the size from which it beats NumPy, "
    "resident / with transfer: ≈ estimated between measured sizes, ≤ at the smallest one already, > not even at the "
    "largest."
)


def complete(cells):
    """The cells with what follows from several: speedups, and the size from which a technique beats NumPy."""
    ok = [cell for cell in cells if cell["status"] == "ok"]
    numpy = {(c["workload"], c["size"]): c["resident_s"] for c in ok if c["technique"] == "numpy"}
    for cell in ok:
        base = numpy.get((cell["workload"], cell["size"]))
        for figure in ("resident", "transfer"):
            if base and f"{figure}_s" in cell:
                cell[f"speedup_{figure}_x"] = base / cell[f"{figure}_s"]
    for cell in ok:
        row = [c for c in ok if (c["workload"], c["technique"]) == (cell["workload"], cell["technique"])]
        for figure in ("resident", "transfer"):
            points = sorted((c["size"], c[f"speedup_{figure}_x"]) for c in row if f"speedup_{figure}_x" in c)
            if points and cell["technique"] != "numpy":
                cell[f"beats_numpy_from_size_{figure}"] = crossing(points)
                cell[f"beats_numpy_measured_to_size_{figure}"] = points[-1][0]
                cell[f"beats_numpy_at_every_size_{figure}"] = all(speedup > 1 for _, speedup in points)
    return cells


def crossing(points):
    """The size from which the speedup stays above 1, of (size, speedup) points in order of size; None if it never is.

    Between two measured sizes the speedup is taken to be a straight line in logarithms. The smallest size, where the
    speedup is above 1 at every one.
    """
    lost = [i for i, (_, speedup) in enumerate(points) if speedup <= 1]
    if not lost:
        return points[0][0]
    if lost[-1] == len(points) - 1:
        return None
    (size, speedup), (next_size, next_speedup) = points[lost[-1]], points[lost[-1] + 1]
    share = -math.log(speedup) / (math.log(next_speedup) - math.log(speedup))
    return round(size * (next_size / size) ** share)


def seconds(value):
    """Three significant digits and a unit: 13.1 µs, 742 µs, 1.32 ms, 8.02 s."""
    unit, scale = next((u, s) for u, s in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)) if value >= 0.9995 * s or u == "µs")
    return f"{digits(value / scale)} {unit}"


def digits(value):
    """Three significant digits, no exponent: 0.0123, 1.23, 12.3, 123, 1,230."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def timing(cell, figure):
    if f"{figure}_s" not in cell:
        return "–"
    return "~" * noisy(cell, figure) + seconds(cell[f"{figure}_s"])


def noisy(cell, figure):
    """Whether its samples spread too widely; a single one, as of a first result, does not."""
    if f"{figure}_q1_s" not in cell:
        return False
    return cell[f"{figure}_q3_s"] - cell[f"{figure}_q1_s"] > NOISY * cell[f"{figure}_s"]


def ratio(cell, figure):
    if cell["technique"] == "numpy":
        return "1"
    speedup = cell.get(f"speedup_{figure}_x")
    return "–" if speedup is None else digits(speedup)


def operations(cell):
    """Only where the arithmetic, not the memory, is what takes the time: more than one operation a byte."""
    rate = cell["operations_g_per_s"]
    return digits(rate) if rate > cell.get("bandwidth_gb_per_s", rate) else "–"


def wins(cell):
    if cell["technique"] == "numpy":
        return "–"
    return " / ".join(filter(None, (wins_in(cell, figure) for figure in ("resident", "transfer")))) or "–"


def wins_in(cell, figure):
    """≈210,000, ≤4,000 or >268 M: the size from which it beats NumPy; nothing where that is not known."""
    key = f"beats_numpy_from_size_{figure}"
    if key not in cell:
        return ""
    if cell[key] is None:
        return f">{short(cell[f'beats_numpy_measured_to_size_{figure}'])}"
    if cell[f"beats_numpy_at_every_size_{figure}"]:
        return f"≤{short(cell[key])}"
    return f"≈{short(float(f'{cell[key]:.2g}'))}"  # an estimate between sizes that lie far apart has no more digits


def short(size):
    """4,000; 210,000; 1.2 M; 268 M."""
    return f"{size:,.0f}" if size < 1e6 else f"{size / 1e6:.3g} M"


def place(cell):
    """Where the cell ran, in a word; the heading has the devices' whole names."""
    return "CPU" if cell["device"] and "core" in cell["device"] else cell["device"] or ""


def measured_with(cells):
    """The devices with their copy bandwidth, the driver and the versions, in one line."""
    ok = [cell for cell in cells if cell["status"] == "ok"]
    bandwidths = {cell["device"]: cell["device_copy_bandwidth_gb_per_s"] for cell in ok}
    devices = ", ".join(f"{device} ({digits(rate)} GB/s copying)" for device, rate in bandwidths.items())
    drivers = sorted({f"; driver {cell['driver']}, CUDA {cell['cuda']}" for cell in ok if cell["driver"]})
    versions = ", ".join(sorted({version for cell in ok for version in cell["versions"].split(", ") if version}))
    return f"Measured on {devices}{''.join(drivers)}, with {versions}."


def rest(cells):
    """(technique, status, reason) of what has no figures: a line a technique, or a size where they differ; and
    (technique, "math", mode) of what computes other than IEEE 754 in the arrays' dtype says."""
    lines = {}
    for cell in cells:
        if cell["status"] != "ok":
            lines.setdefault((cell["technique"], cell["status"], cell["reason"]), []).append(cell)
    for (technique, status, reason), those in lines.items():
        all_sizes = len(those) == sum(1 for cell in cells if cell["technique"] == technique)
        label = catalogue.workload_module(those[0]["workload"]).label
        sizes = "" if all_sizes else f"at {', '.join(label(cell['size']) for cell in those)}: "
        yield technique, status, sizes + reason
    for technique, math_mode in dict.fromkeys((c["technique"], c["math"]) for c in cells if c["status"] == "ok"):
        if math_mode != "IEEE":
            yield technique, "math", math_mode


def checks(cells):
    """A rich renderable: a line a recipe that was checked, the wrong ones with the first thing that is wrong."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("workload", "technique", "on", "sizes", "result"):
        table.add_column(head, no_wrap=head != "result")
    recipes = {}
    for cell in cells:
        recipes.setdefault((cell["workload"], cell["technique"]), []).append(cell)
    for (workload, technique), those in recipes.items():
        bad = next((cell for cell in those if cell["status"] != "ok"), None)
        right = sum(cell["status"] == "ok" for cell in those)
        if bad is None:
            result = Text("right", style="green")
        elif bad["status"] == "skipped":
            result = Text(f"skipped: {bad['reason']}", style="dim")
        else:
            size = catalogue.workload_module(workload).label(bad["size"])
            result = Text(f"failed at {size}: {bad['reason']}", style="red")
        skipped = bad is not None and bad["status"] == "skipped"
        table.add_row(workload, technique, place(those[0]), "" if skipped else f"{right}/{len(those)}", result)
    return table


def as_csv(cells):
    """One row a cell, one column a figure that any cell has."""
    fields = list(dict.fromkeys(key for cell in cells for key in cell))
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(cells)
    return text.getvalue()


def as_json(data):
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
