"""From one core to every GPU: random_subset_mean on more and more workers, in every engine, and what each engine costs.

A row is one recipe on a number of workers, cores or GPUs, at one size: strong, where all of them share one size; weak,
where each has that many rows. The recipes and the sizes are those of recipes/random_subset_mean.
"""

import itertools
import json
import os
import socket
import time
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from gpu_cookbook import catalogue, machine
from gpu_cookbook.render import report, tables
from gpu_cookbook.render.report import digits, seconds
from gpu_cookbook.run import engines, runner
from gpu_cookbook.run.measure import COLD_LIMIT

WORKLOAD = "random_subset_mean"
PROBLEM = ("rows", "columns", "chunk")
KINDS = {"CPU": "core", "every NVIDIA GPU": "GPU"}  # of the recipes that scale
CONTEXT = 2e9  # bytes of a GPU's memory: CUDA's context, cuRAND's states, NCCL's buffers (0.5 to 1.6 were seen)
ANSWER_LIMIT = 3  # seconds until an engine that runs already must have taken a connection
JOIN_LIMIT = 5  # seconds until it must have said what works for it
START = {  # how it is started, on this machine only
    "Dask": "dask scheduler --host 127.0.0.1 --dashboard-address 127.0.0.1:8787",
    "Ray": "docs/scale-out/ray.md has the commands",
}
FILE = "scale.jsonl"


class Impossible(Exception):
    """What was asked for cannot be run here; the message says why and what to do."""


@dataclass(frozen=True)
class Run:
    """One recipe on so many workers."""

    recipe: catalogue.Recipe
    workers: int | None  # as many as there are behind the address
    address: str | None = None

    @property
    def kind(self):
        return "worker" if self.address else KINDS[self.recipe.runs_on]

    @property
    def on(self):
        return amount(self.workers, self.kind)


def amount(workers, kind):
    """'1 core', '4 GPUs'; '' where nothing ran."""
    return f"{workers} {kind}{'s' * (workers != 1)}" if workers else ""


def recipes(names=(), lane=None, address_of=None):
    """The recipes that scale, of these engines: a technique, or the first word of several. ``address_of``: the
    frameworks whose engine runs already; only their recipes that can use one."""
    mine = [r for r in catalogue.choose([WORKLOAD], (), lane) if r.runs_on in KINDS]
    known = sorted({r.technique.partition("_")[0] for r in mine} | {r.technique for r in mine})
    for name in names:
        if name not in known:
            raise catalogue.UnknownName(catalogue.nearest("engine", name, known))
    if names:
        mine = [r for r in mine if r.technique in names or r.technique.partition("_")[0] in names]
    if address_of:
        mine = [r for r in mine if r.framework in address_of and "def engine(address" in r.path.read_text("utf-8")]
        if not mine:
            raise Impossible(
                "Engines that run already are used by recipes of Dask (--scheduler) and of Ray (--address)."
            )
    return mine


def plan(chosen, cores, gpus, addresses, behind):
    """(runs, skipped rows): each recipe on each number of workers; NumPy uses one core. Once, on all that there are
    ``behind`` it, where its framework has an address; Impossible, where others hold some of them."""
    runs, skipped = [], []
    for recipe in chosen:
        address = addresses.get(recipe.framework)
        obstacle = machine.missing(recipe) if address else machine.obstacle(recipe)
        if address and not obstacle:
            kind = engines.resource(recipe)
            workers, held = behind[recipe.framework][kind]
            if held:
                raise Impossible(f"Others hold {held} of {workers} {kind}s behind {address}: wait for their end.")
            if not workers:
                obstacle = f"no {kind} behind {address}"
        if obstacle:
            skipped.append(row(Run(recipe, None), None, "skipped", obstacle))
        elif address:
            runs.append(Run(recipe, None, address))
        elif recipe.runs_on == "CPU":
            runs += [Run(recipe, n) for n in cores if n == 1 or recipe.technique != "numpy"]
        else:
            runs += [Run(recipe, n) for n in gpus]
    return runs, skipped


def doublings(most):
    """1, 2, 4, … and the most."""
    return sorted({2**n for n in range(most.bit_length())} | {most}) if most else []


def problems(size, workers, weak, chunk):
    """{mode: (rows, columns, chunk)}. On one worker both modes are the same problem."""
    rows, columns = catalogue.workload_module(WORKLOAD).shape(size)
    chunk = chunk or catalogue.workload_module(WORKLOAD).chunk(size)
    found = {"strong": (rows, columns, chunk)}
    return found | ({"weak": (rows * workers, columns, chunk)} if weak else {})


def row(run, mode, status, reason=None, **figures):
    """A row as every output format has it; ``mode`` None of a recipe that does not run here."""
    recipe = run.recipe
    return {
        "technique": recipe.technique,
        "framework": recipe.framework,
        "lane": recipe.lane,
        "engine": engines.ENGINES[recipe.technique][0] if recipe.technique in engines.ENGINES else None,
        "kind": run.kind,
        "workers": run.workers,
        "mode": mode,
        "status": status,
        "reason": reason,
        **figures,
    }


# ---- What must be so before anything is measured.


def touch(address):
    """OSError, where nobody takes a connection at tcp://host:port or host:port; ValueError, where that is neither."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if not (parts.hostname and parts.port):
        raise ValueError(address)
    socket.create_connection((parts.hostname, parts.port), ANSWER_LIMIT).close()


def gone(address):
    """That nobody takes a connection there any more, in words; else None."""
    try:
        touch(address)
    except OSError as error:
        return f"what ran at {address} went away ({error.strerror or error})"


def join(framework, address):
    """{"CPU": (workers, those that others hold), "GPU": …} of an engine that runs already, asked in its own protocol.
    Impossible, where none is there."""
    try:
        touch(address)
    except ValueError:
        raise Impossible(
            f"'{address}' is no address: tcp://127.0.0.1:8786 is one of a scheduler, 127.0.0.1:6379 of Ray."
        ) from None
    except OSError as error:
        raise Impossible(
            f"Nothing answers at {address} ({error.strerror or error}). Start it first, or give another address: "
            f"{START[framework]}"
        ) from None
    with runner.Process({"action": "join", "framework": framework, "address": address}) as process:
        *_, last = process.messages(runner.START_LIMIT, JOIN_LIMIT)
    if "ending" in last:
        raise Impossible(f"What is at {address} cannot be used as {framework} can: {last['ending']}")
    if not any(workers for workers, _ in last["behind"].values()):
        raise Impossible(f"Nobody works behind {address} yet: start workers first.")
    return last["behind"]


def free(runs, size, weak, chunk):
    """Impossible, where the host or a GPU of these runs has too little memory free for the work, or someone else has
    taken the GPU."""

    def held(kind):
        """Bytes of the largest run: samples, subset, the generator's own, as the workload counts; cores share one
        memory. Nothing is stored in the tuned lane."""
        chunks = [
            (run.workers if kind == "core" else 1) * min(side, rows) * min(side, columns)
            for run in runs
            if run.kind == kind and run.recipe.lane != "tuned"
            for rows, columns, side in problems(size, run.workers, weak, chunk).values()
        ]
        return 3 * 8 * max(chunks, default=0)

    needed, left = held("core"), machine.host_memory_free()
    if left < needed:
        raise Impossible(
            f"{left / 1e9:.1f} GB of the host's memory are free, and this needs {needed / 1e9:.1f}, a chunk a core: "
            "take a smaller --chunk, fewer --cores, or --lane tuned, which stores nothing."
        )
    needed = held("GPU") + CONTEXT
    most = max((run.workers for run in runs if run.kind == "GPU"), default=0)
    every = zip(machine.gpus(), machine.device_memory(), machine.processes_on_gpus(), strict=True)
    for gpu, (used, left), others in itertools.islice(every, most):
        if others:
            raise Impossible(
                f"GPU {gpu.index} ({gpu.name}) is taken by someone else: {', '.join(others)}. Wait for their end, or "
                "leave it out: CUDA_VISIBLE_DEVICES names the GPUs to use."
            )
        if left < needed:
            raise Impossible(
                f"GPU {gpu.index} ({gpu.name}) has {left / 1e9:.1f} GB free of {(used + left) / 1e9:.0f}, and this "
                f"needs {needed / 1e9:.1f}: free some, leave it out by CUDA_VISIBLE_DEVICES, or take a smaller --chunk."
            )


# ---- The runs.


def measure(run, size, weak, chunk, say=lambda text: None):
    """Yields the rows of a run as they come: of its problems, and of what the engine costs by itself (mode empty).

    ``say`` gets what the user should see at once: a dashboard's address.
    """
    modes = problems(size, run.workers, weak and run.workers and run.workers > 1, chunk)
    left = [{"mode": mode, "size": size, **dict(zip(PROBLEM, problem, strict=True))} for mode, problem in modes.items()]
    away = run.address and gone(run.address)
    if away:
        yield from (row(run, status="failed", reason=away, **problem) for problem in left)
        return
    job = {
        "action": "scale",
        "path": str(run.recipe.path),
        "problems": list(modes.values()),
        "workers": run.workers,
        "address": run.address,
    }
    restriction = {}
    if run.kind == "core":
        restriction = {"cores": sorted(os.sched_getaffinity(0))[: run.workers], "gpus": []}
    elif run.kind == "GPU":
        restriction = {"gpus": [gpu.index for gpu in machine.gpus()][: run.workers]}
    start_s = reason = None
    costed = False
    with runner.Process(job, **restriction) as process:
        for message in process.messages(runner.START_LIMIT, catalogue.workload_module(WORKLOAD).TIME_LIMIT):
            if "engine" in message:
                start_s = message["engine"]["start_s"]
                run = replace(run, workers=message["engine"]["workers"])
                if message["engine"]["dashboard"]:
                    say(f"{run.recipe.technique}: the dashboard is at {message['engine']['dashboard']}")
            elif "answer" in message:
                answer = message["answer"] | left.pop(0) | {"start_s": start_s}
                if answer["status"] == "failed" and run.address:
                    answer["reason"] = gone(run.address) or answer["reason"]
                yield row(run, **answer)
            elif "cost" in message:
                costed = True
                if message["cost"]:
                    yield row(run, "empty", "ok", **message["cost"])
            else:
                reason = reason or message["ending"]
    if reason and run.address:
        reason = gone(run.address) or reason
    for problem in left:
        yield row(run, status="failed", reason=reason, **problem)
    if reason and not left:
        yield row(run, "empty", "failed", f"afterwards: {reason}" if costed else reason)


def disagreements(rows):
    """Marks as failed what does not belong in the tuned lane: its recipes average the same samples, so that all have
    the same mean. The one that more than half have is taken for right; where there is none, none of them is."""
    groups = {}
    for each in rows:
        if each["lane"] == "tuned" and each["status"] == "ok" and each["mode"] != "empty":
            groups.setdefault((each["rows"], each["columns"]), []).append(each)
    for mine in groups.values():
        means = sorted(each["mean"] for each in mine)
        middle = means[len(means) // 2]  # is one of them, if more than half are the same
        if sum(alike(mean, middle) for mean in means) <= len(means) / 2:
            fault = f"the tuned lane has means from {means[0]!r} to {means[-1]!r}, and none that more than half have"
        else:
            fault = f"the others of the tuned lane have the mean {middle!r}"
            mine = [each for each in mine if not alike(each["mean"], middle)]
        for each in mine:
            each |= {"status": "failed", "reason": f"{each['mean']!r}, where {fault}"}
    return rows


def alike(mean, other):
    return abs(mean - other) <= engines.SAME * abs(other)


# ---- What they come to.


def complete(rows):
    """The rows with their speedup and efficiency over the same recipe on the fewest workers, and the mean's error."""
    ok = [each for each in rows if each["status"] == "ok" and each["mode"] != "empty"]
    for each in ok:
        base = min(
            (other for other in ok if same(other, each) and (other["mode"] == each["mode"] or other["workers"] == 1)),
            key=lambda other: other["workers"],  # a worker's own share is the whole: one row for both modes
        )
        more = each["workers"] / base["workers"]
        work = more if each["mode"] == "weak" else 1
        each["speedup_x"] = work * base["time_s"] / each["time_s"]
        each["efficiency"] = each["speedup_x"] / more
        each["base_workers"] = base["workers"]
        each["base_stale"] = base.get("stale", False)
        each["error"] = abs(each["mean"] - 11)
    return rows


def same(one, other):
    return all(one[key] == other[key] for key in ("technique", "kind", "size", "chunk"))


TITLES = {
    "strong": "Strong scaling: all workers share",
    "weak": "Weak scaling: each worker has",
}
HEAD = ("engine", "lane", "on", "time", "speedup", "efficiency", "error of the mean", "start", "")
COSTS_HEAD = ("engine", "measured in", "on", "an empty round", "a task more", "to a task")
LEGEND = (
    "time: median of calls until the mean is on the host, ~ where half of them spread over more than "
    f"{100 * report.NOISY:.0f} %; a first call of more than {COLD_LIMIT} s is the only one. speedup and efficiency: "
    "over the same recipe on the fewest workers (weak: of the work done in a time). start: imports but NumPy's, engine "
    "and processes, once. error of the mean: distance from 11, which is the mean of infinitely many. † the recipe has "
    "changed since, or the one that it is held against."
)
EMPTY = (
    f"an empty round: a task that does nothing on each worker. a task more: with {engines.MANY} for each worker. to "
    f"a task: {engines.PAYLOAD / 1e6:.0f} MB as an argument. –: lost in the noise, or there is no such thing."
)


def drawn(rows):
    """Tables of strong scaling, weak scaling and the engines' own cost, of what there is."""
    found = []
    for mode in ("strong", "weak"):
        for size in dict.fromkeys(each["size"] for each in rows if each["mode"] == mode):
            sized = of_mode(rows, mode, size)
            sized.sort(key=lambda each: (each["kind"], each["lane"], named(each), each["workers"] or 0))
            label = catalogue.workload_module(WORKLOAD).label(size)
            entries = [tuple(map(tables.Entry, words(each))) for each in sized]
            title = f"{TITLES[mode]} {label}{source(sized)}"
            records = [{"table": mode} | each for each in sized]
            found.append(tables.Table(title, HEAD, "lllrrrrrl", entries, [], records))
    told = story(rows)
    if len(told.records) > 1:
        found.insert(0, told)
    costs = [each for each in rows if each["mode"] == "empty"]
    wrong = [each for each in costs if each["status"] != "ok"]
    costs = [each for each in costs if each["status"] == "ok"]
    if costs:
        costs.sort(key=lambda each: (each["kind"], each["engine"], each["technique"], each["workers"]))
        entries = [tuple(map(tables.Entry, cost_words(each))) for each in costs]
        records = [{"table": "empty"} | each for each in costs]
        note = [tables.Entry(EMPTY, "note")]
        found.append(tables.Table(f"What an engine costs{source(costs)}", COSTS_HEAD, "lllrrr", entries, note, records))
    reasons = [f"{e['technique']}: {e['reason']}" for e in (*wrong, *(e for e in rows if e["status"] == "skipped"))]
    if found:
        notes = [tables.Entry(LEGEND, "note"), *(tables.Entry(reason, "note") for reason in reasons)]
        first = max((n for n, table in enumerate(found) if table.head == HEAD), default=0)
        found[first] = replace(found[first], notes=[*notes, *found[first].notes])
    return found


# N. Morizet, "Speed Cubing for Machine Learning, Episode 3: Using Multi-GPU, Dask and CuPy", Towards Data Science, 2020
# on 16 virtual Xeon cores at 2.3 GHz and eight Tesla K80, "a 6.26x speedup compared to a single GPU".
STORY_SIZE, STORY_CHUNK = 100_000, 10_000
STORY_SOURCE = ("source", "https://towardsdatascience.com/speed-cubing-for-machine-learning-4bf90170e2ee")
STORY = (  # of cores or GPUs, whether it is all of them, what was told
    ("core", False, "701 s on one core"),
    ("core", True, "55 s on 16 cores"),
    ("GPU", False, "almost 12 s on a K80"),
    ("GPU", True, "less than 2 s on 8 K80"),
)
AS_WRITTEN = {"core": "dask", "GPU": "dask_cuda_random_state"}


def story(rows):
    """The experiment as it was first told, and here: the same program, and the fastest of the tuned lane."""
    mine = [e for e in rows if e["status"] == "ok" and e["mode"] == "strong" and e["size"] == STORY_SIZE]
    lanes = (
        [e for e in mine if e["technique"] == AS_WRITTEN.get(e["kind"]) and e["chunk"] == STORY_CHUNK],
        [e for e in mine if e["lane"] == "tuned"],
    )
    entries, records = [], []
    for kind, every, then in STORY:
        texts = [then]
        for lane in lanes:
            here = [e for e in lane if e["kind"] == kind]
            workers = max((e["workers"] for e in here if every), default=1)
            here = sorted((e for e in here if e["workers"] == workers), key=lambda e: e["time_s"])
            best = here[0] if here else None
            if best is None or (every and workers == 1):
                texts.append("–")
                continue
            names = ", ".join(e["technique"] for e in here if tables.tied(*map(as_cell, (e, best)), "resident"))
            one_core = [e for e in lane if (e["kind"], e["workers"]) == ("core", 1)]
            one_core = min(one_core, key=lambda e: e["time_s"], default=None)
            over = f", {dagger(one_core)}{digits(one_core['time_s'] / best['time_s'])} ×" if one_core else ""
            texts.append(f"{dagger(best)}{seconds(best['time_s'])} on {amount(workers, kind)}{over}: {names}")
            records.append({"table": "story", "then": then} | best)
        entries.append(tuple(map(tables.Entry, texts)))
    note = tables.Entry("×: over one core of the same column.", "note", (STORY_SOURCE,))
    head = ("first told, 2020", "Dask, as it was written then", "the fastest of the tuned lane")
    return tables.Table(f"The experiment, then and now{source(records)}", head, "lll", entries, [note], records)


def as_cell(each):
    """Its time as a cell has it, for what knows cells; an empty round has no spread."""
    if each["mode"] == "empty":
        return {"resident_s": each["round_s"]}
    return {"resident_s": each["time_s"], "resident_q1_s": each["q1_s"], "resident_q3_s": each["q3_s"]}


def source(rows):
    """Of kept rows machine, commits and dates, as the end of a title."""
    origins = dict.fromkeys(f"{each['commit'][:8]}, {each['date']}" for each in rows if "commit" in each)
    return f". {rows[0]['machine']}, {' and '.join(origins)}" if origins else ""


def of_mode(rows, mode, size):
    """The rows of a mode and size. Of weak scaling, what one worker did of the same problem is one of them."""
    mine = [each for each in rows if (each["mode"], each.get("size")) == (mode, size)]
    ones = [each for each in rows if mode == "weak" and (each["mode"], each["workers"]) == ("strong", 1)]
    return mine + [one for one in ones if any(same(one, each) for each in mine)]


def words(each):
    lost = f"{each['lost']} worker{'s' * (each['lost'] > 1)} lost" if each.get("lost") else ""
    on = amount(each["workers"], each["kind"])
    if each["status"] != "ok":
        return named(each), each["lane"], on, each["status"], "", "", "", "", each["reason"]
    return (
        named(each),
        each["lane"],
        on,
        dagger(each) + report.timing(as_cell(each), "resident"),
        f"{'†' * each['base_stale']}{digits(each['speedup_x'])} ×",
        f"{'†' * each['base_stale']}{digits(each['efficiency'])}",
        f"{each['error']:.1e}",
        seconds(each["start_s"]),
        lost,
    )


def dagger(each):
    return "†" * each.get("stale", False)


def named(each):
    """The technique, and its chunks where they are not the workload's own."""
    own = catalogue.workload_module(WORKLOAD).chunk(each["size"])
    return each["technique"] if each["chunk"] == own else f"{each['technique']}, chunks of {each['chunk']:,}"


def cost_words(each):
    on = amount(each["workers"], each["kind"])
    task, byte = each.get("task_s"), each.get("byte_s")
    return (
        each["engine"],
        each["technique"],
        on,
        dagger(each) + seconds(each["round_s"]) if each["round_s"] else "–",
        seconds(task) if task else "–",
        f"{digits(1e-9 / byte)} GB/s" if byte else "–",
    )


def drawable(path):
    """Impossible, where no drawing can be written there: found out now, not after minutes of measuring."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Impossible("--plot needs matplotlib: pip install matplotlib") from None
    if path.suffix.lstrip(".") not in Figure().canvas.get_supported_filetypes():
        raise Impossible(f"'{path.suffix}' is no kind of drawing: name a file in .png, .svg or .pdf.")
    there = path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise Impossible(
            f"Cannot write {path}: {error.strerror}. Name a file that you may write to, in a folder that exists."
        ) from None
    if not there:
        path.unlink()


# ---- What is kept.


def keep(folder, rows, name, commit):
    """Adds a line to FILE: the rows, and where they come from."""
    nvidia = machine.nvidia()
    measured = [each for each in rows if each["status"] != "skipped"]
    if not measured:
        return
    modules = sorted(
        {
            module
            for each in catalogue.choose([WORKLOAD])
            for module in each.packages
            if any(each.technique == one["technique"] for one in measured)
        }
    )
    line = {
        "machine": name,
        "processor": machine.processor(),
        "gpus": [gpu.name for gpu in machine.gpus()],
        "driver": nvidia and nvidia.driver,
        "versions": machine.versions(tuple(modules)),
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit,
        "rows": measured,
    }
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("a+b") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        ended = file.read() in (b"", b"\n")  # or whoever wrote the last line was killed
        file.write(b"\n" * (not ended) + json.dumps(line, ensure_ascii=False).encode() + b"\n")


def kept_of(folder, name):
    """What was kept last of a machine, each row once: the newest of its problem and recipe."""
    lines = kept(folder)
    if not lines:
        raise Impossible(f"Nothing is kept yet: gpu-cookbook scale --save --machine {name}")
    mine = [line for line in lines if line["machine"] == name]
    if not mine:
        names = sorted({line["machine"] for line in lines})
        raise Impossible(f"Nothing is kept of '{name}'. There are: {', '.join(names)}.")
    rows = {}
    for line in mine:
        about = {"machine": name, "commit": line["commit"], "date": line["date"]}
        old = stale(folder, line["commit"], {each["technique"] for each in line["rows"]})
        again = {run_of(each) for each in line["rows"]}
        # An empty round is of its run: one that ended badly has a row that a later one may lack.
        rows = {key: each for key, each in rows.items() if each["mode"] != "empty" or run_of(each) not in again}
        for each in line["rows"]:
            key = (*run_of(each), *(each.get(k) for k in ("mode", "size", "chunk")))
            rows[key] = each | about | {"stale": each["technique"] in old}
    return complete(disagreements(list(rows.values())))


def run_of(each):
    return each["technique"], each["kind"], each["workers"]


def stale(folder, commit, techniques):
    """Those whose recipe is gone, or whose code is not what it was at that commit."""
    from gpu_cookbook.store import asv_files as store  # only here: it is asv's side

    try:
        changed = store.changed_since(folder.parents[1], commit)
    except store.StoreError as error:
        raise Impossible(f"A line of {folder / FILE} {error}. Of a shallow clone: git fetch --unshallow") from None
    recipes = {recipe.technique: recipe for recipe in catalogue.choose([WORKLOAD])}
    return {name for name in techniques if name not in recipes or changed & store.sources(recipes[name])}


def whole(each):
    """Whether a kept row has all that is shown of it."""
    if not isinstance(each, dict):
        return False
    wanted = ["technique", "framework", "lane", "engine", "kind", "workers", "mode", "status", "reason"]
    if each.get("mode") != "empty":
        wanted += ["size", *PROBLEM]
    if each.get("status") == "ok":
        wanted += ["round_s"] if each.get("mode") == "empty" else ["time_s", "q1_s", "q3_s", "mean", "start_s"]
    return each.keys() >= set(wanted)


def kept(folder):
    """The lines of FILE; Impossible where one cannot be read."""
    path = folder / FILE
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        for number, line in enumerate(lines, 1):
            if not (isinstance(line, dict) and line.keys() >= {"machine", "date", "commit", "rows"}):
                raise ValueError(f"line {number} is none of 'scale --save'")
            if not (isinstance(line["rows"], list) and all(map(whole, line["rows"]))):
                raise ValueError(f"line {number} has rows that are none of 'scale --save'")
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise Impossible(f"{path} cannot be read ({error}): mend it, or move it away.") from None
    return lines
