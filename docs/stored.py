"""The stored results, read once for all pages, and how a page names one of them."""

from functools import cache
from time import gmtime, strftime

from gpu_cookbook import catalogue, report, scale, store

GPU_MACHINE, GPUS_MACHINE = "nvidia-h200", "nvidia-h200-x4"
FIGURES = ("resident", "device", "transfer", "first")


class NotStored(ValueError):
    """A page names a figure that is not among the results."""


@cache
def results():
    """The newest cells of each machine and workload."""
    cells, complaints = store.Store().load()
    if complaints:
        raise NotStored("; ".join(complaints))
    return report.complete(store.select(cells)[0])


def machines():
    """Those with a GPU first."""
    cells = results()
    names = dict.fromkeys(cell["machine"] for cell in cells)
    return sorted(names, key=lambda name: (not any(c["driver"] for c in cells if c["machine"] == name), name))


def of(machine, workload=None):
    return [c for c in results() if c["machine"] == machine and workload in (None, c["workload"])]


def cell(words):
    """(cell, figure) of "WORKLOAD TECHNIQUE [SIZE] [FIGURE] [MACHINE]": the largest size, resident and GPU_MACHINE
    where they are left out."""
    workload, technique, *others = words.split()
    size = next((int(word.replace("_", "")) for word in others if word[0].isdigit()), None)
    figure = next((word for word in others if word in FIGURES), "resident")
    machine = next((word for word in others if word in machines()), GPU_MACHINE)
    unknown = [w for w in others if not w[0].isdigit() and w not in (figure, machine)]
    mine = [c for c in of(machine, workload) if c["technique"] == technique and size in (None, c["size"])]
    if unknown or not mine or time_key(figure) not in max(mine, key=lambda c: c["size"]) and figure != "first":
        raise NotStored(f"'{words}' is not among the results of {machine}")
    found = min(mine, key=lambda c: c["size"]) if figure == "first" else max(mine, key=lambda c: c["size"])
    return found, figure


def time_key(figure):
    return "first_result_s" if figure == "first" else f"{figure}_s"


def best(workload, lane, size=None):
    """The fastest cell of a lane on GPU_MACHINE."""
    mine = [c for c in of(GPU_MACHINE, workload) if c["lane"] == lane and "resident_s" in c]
    size = size or max(c["size"] for c in mine)
    return min((c for c in mine if c["size"] == size), key=lambda c: c["resident_s"])


@cache
def scaled():
    """(rows, heading) of GPUS_MACHINE."""
    return scale.kept_of(store.Store().folder, GPUS_MACHINE)


def scaled_row(words):
    """The row of "TECHNIQUE WORKERS [cores]" at the experiment's own size, chunks of 10,000."""
    technique, workers, *kind = words.split()
    kind = "core" if kind else "GPU"
    for row in scaled()[0]:
        wanted = (technique, int(workers), kind, "strong", 100_000, 10_000)
        if tuple(row.get(key) for key in ("technique", "workers", "kind", "mode", "size", "chunk")) == wanted:
            return row
    raise NotStored(f"'{words}' is not among the rows of {GPUS_MACHINE}")


def origin(found):
    """Machine, commit and date, in words."""
    day = found.get("date") or strftime("%Y-%m-%d", gmtime(found["measured_at"][1] / 1000))
    return f"{found['machine']}, commit {found['commit'][:8]}, {day}"


def size_label(found):
    return catalogue.workload_module(found["workload"]).label(found["size"])


def framework_key(name):
    """What ?framework= takes."""
    return name.lower().replace(" ", "-")
