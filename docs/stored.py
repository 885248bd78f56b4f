"""The stored results, read once for all pages, and how a page names one of them."""

from functools import cache

from sphinx.errors import SphinxError

from gpu_cookbook import catalogue
from gpu_cookbook.render import report, tables
from gpu_cookbook.run import scale
from gpu_cookbook.store import asv_files as store

GPU_MACHINE, GPUS_MACHINE = "nvidia-h200", "nvidia-h200-x4"
FIGURES = {"resident": "resident_s", "device": "device_s", "transfer": "transfer_s", "first": "first_result_s"}


class NotStored(SphinxError):
    """A page names a figure that is not among the results, or they cannot be read."""

    category = "Stored results"


@cache
def results():
    """{machine: the newest cells of each workload}, those with a GPU first."""
    cells, complaints = store.Store().load()
    if complaints:
        raise NotStored(f"{complaints[0]}. Of a shallow clone: git fetch --unshallow")
    cells, _ = store.select(cells)
    names = sorted({cell["machine"] for cell in cells}, key=lambda name: (not any_gpu(cells, name), name))
    # Speedups are against NumPy on the same machine.
    return {name: report.complete([cell for cell in cells if cell["machine"] == name]) for name in names}


def any_gpu(cells, name):
    return any(cell["driver"] for cell in cells if cell["machine"] == name)


@cache
def files():
    """Where all this was read from: a page is made again when one changes."""
    return [str(path) for path in store.Store().folder.rglob("*.json*")]


def of(machine, workload=None):
    return [cell for cell in results()[machine] if workload in (None, cell["workload"])]


def cell(words):
    """(cell, figure) of "WORKLOAD TECHNIQUE [SIZE] [FIGURE] [MACHINE]": resident and GPU_MACHINE where they are left
    out. The size may be left out of a first result, which has only one."""
    workload, technique, *others = words.split()
    size = next((int(word.replace("_", "")) for word in others if word[0].isdigit()), None)
    figure = next((word for word in others if word in FIGURES), "resident")
    machine = next((word for word in others if word in results()), GPU_MACHINE)
    unknown = [word for word in others if not word[0].isdigit() and word not in (figure, machine)]
    mine = [c for c in of(machine, workload) if c["technique"] == technique and c.get(FIGURES[figure]) is not None]
    if figure == "first":
        found = mine
    elif size is None:
        raise NotStored(f"'{words}' names no size")
    else:
        found = [c for c in mine if c["size"] == size]
    if unknown or not found:
        raise NotStored(f"'{words}' is not among the results of {machine}")
    return found[0], figure


def best(workload, lane, size):
    """The fastest cells of a lane on GPU_MACHINE: one, or several that tie."""
    mine = [c for c in of(GPU_MACHINE, workload) if (c["lane"], c["size"]) == (lane, size) and "resident_s" in c]
    if not mine:
        raise NotStored(f"'{workload} {lane} {size}' is not among the results of {GPU_MACHINE}")
    first = min(mine, key=lambda c: c["resident_s"])
    return [c for c in mine if c is first or tables.tied(c, first, "resident")]


@cache
def scaled():
    """The rows of GPUS_MACHINE."""
    return scale.kept_of(store.Store().folder, GPUS_MACHINE)


def scaled_lines():
    """The lines that are kept of GPUS_MACHINE, the newest last."""
    return [line for line in scale.kept(store.Store().folder) if line["machine"] == GPUS_MACHINE]


def scaled_row(words):
    """The newest of scaled_rows."""
    return scaled_rows(words, scaled())[0]


def scaled_rows(words, rows):
    """Those of "TECHNIQUE WORKERS [SIZE [CHUNK]] [cores] [weak] [empty]": the experiment's own size and chunks where
    they are left out. Of an empty round neither counts."""
    technique, workers, *others = words.split()
    unknown = [word for word in others if not (word[0].isdigit() or word in ("cores", "weak", "empty"))]
    numbers = [int(word.replace("_", "")) for word in others if word[0].isdigit()]
    problem = (*numbers, *(scale.STORY_SIZE, scale.STORY_CHUNK)[len(numbers) :])
    mode = next((word for word in others if word in ("weak", "empty")), "strong")
    wanted = {"technique": technique, "workers": int(workers), "kind": "core" if "cores" in others else "GPU"}
    wanted |= {"mode": mode} | (dict(zip(("size", "chunk"), problem, strict=True)) if mode != "empty" else {})
    found = [row for row in rows if row["status"] == "ok" and wanted.items() <= row.items()]
    if unknown or not found:
        raise NotStored(f"'{words}' is not among the rows of {GPUS_MACHINE}")
    return found


def origin(found):
    """Machine, commit and date, in words."""
    return f"{found['machine']}, commit {found['commit'][:8]}, {found['date']}"


def size_label(found):
    return catalogue.workload_module(found["workload"]).label(found["size"])


def framework_key(name):
    """What ?framework= takes."""
    return name.lower().replace(" ", "-")
