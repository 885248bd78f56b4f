"""``gpu-cookbook send`` writes the folder of a machine as it belongs under benchmarks/results: without what is private,
and with what was installed and what ``doctor`` found. Nothing leaves the computer."""

import importlib.metadata
import json
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gpu_cookbook import catalogue, machine
from gpu_cookbook.doctor import Finding
from gpu_cookbook.doctor.facts import Facts
from gpu_cookbook.results import Result
from gpu_cookbook.store import door, limits, private, runs, scaling, sent, together, transfers
from gpu_cookbook.store.asv_files import Store, environment_of
from gpu_cookbook.store.commits import StoreError, git, is_shallow
from gpu_cookbook.store.machines import MACHINE, require_name
from gpu_cookbook.words import plain

PROFILE = 12  # the column of asv --profile, the last one
SHARED = {  # with lines of all machines
    **{scaling.FILE: scaling.KIND, limits.FILE: limits.KIND},
    **dict.fromkeys(transfers.FILES, transfers.KIND),
    together.FILE: together.KIND,
}
LINES = {runs.FILE: runs.KIND, **SHARED, sent.FILE: sent.KIND}
CONTENTS = {  # of a machine's folder, besides asv's results
    "machine.json": "processor, memory, system and GPUs",
    runs.FILE: "each measurement with its conditions",
    scaling.FILE: "what gpu-cookbook scale measured",
    limits.FILE: "how near the fastest recipes come to their targets",
    transfers.FILE: "the ways from host to host",
    transfers.LAUNCHES: "what a launch takes in several frameworks",
    transfers.CONCEPTS: "how fast the memories of the GPU are, and what slow kernels cost",
    transfers.ALL_REDUCES: "what an all-reduce on several GPUs takes",
    together.FILE: "how arrays get from one library to another",
    sent.FILE: "who sends it, the installed versions, what doctor found",
}


def default_folder(store: Store) -> Path:
    return store.root / "build" / "send"


def default_base(root: Path) -> str:
    """The commit that results must come from, as far as this clone knows it."""
    known = ("origin/main", "main")
    return next((each for each in known if git(root, "rev-parse", "--verify", "--quiet", f"{each}^{{commit}}")), "HEAD")


def machines_at(root: Path, commit: str) -> set[str]:
    """The machines whose results this commit has."""
    return {*git(root, "ls-tree", "-d", "-z", "--name-only", f"{commit}:benchmarks/results").split("\0")} - {""}


def measured_at(results: Sequence[Result]) -> list[tuple[str, str]]:
    """The commits of these results, each with the environment, the newest last."""
    ordered = sorted(results, key=lambda each: each.stored.order)
    return list(dict.fromkeys((each.stored.commit, each.environment) for each in ordered))


def unsent(
    store: Store, name: str, base: str, results: Sequence[Result], lines: Sequence[dict[str, Any]]
) -> list[tuple[str, str]]:
    """Those of measured_at() of which no line of sent.jsonl says who sends them; but those that ``base`` has are its
    own."""
    there = git(store.root, "ls-tree", "-z", "--name-only", f"{base}:benchmarks/results/{name}").split("\0")
    files = (Path(each).stem.partition("-") for each in there)
    known = {(commit, environment_of(environment)) for commit, _, environment in files}
    known |= {(line["commit"][:8], line["environment"]) for line in lines}
    return [
        (commit, environment) for commit, environment in measured_at(results) if (commit[:8], environment) not in known
    ]


def shared_files_of(store: Store, name: str) -> list[str]:
    """The files of SHARED that have lines of this machine."""
    lines = {file: door.read_lines(store.folder / file, kind)[0] for file, kind in SHARED.items()}
    return [file for file, those in lines.items() if any(line["machine"] == name for _, line in those)]


def to_write_facts(name: str) -> str:
    """How this machine gets the machine.json that it lacks: only there is known what it is."""
    return f"Where it was measured, this writes it: gpu-cookbook compare --save --resume --machine {name}"


def described(store: Store, folder: Path, files: Sequence[Path]) -> Iterator[str]:
    """What lies where, and what to do next, in lines."""
    if folder.is_relative_to(store.root):
        folder = folder.relative_to(store.root)
    yield ""
    yield f"In {folder}, of which nothing was sent anywhere:"
    width = max(len(file.name) for file in files)
    for file in files:
        about = CONTENTS.get(file.name, "results in asv's format")
        yield f"  {file.name:{width}}  {-(-file.stat().st_size // 1024):>5,} KiB  {about}"
    place = f"benchmarks/results/{folder.name}"
    yield ""
    yield "Look at it. To send it, open a pull request with this folder and nothing else:"
    # Saving has changed that file, and git would not switch.
    yield "  git checkout -- benchmarks/results/benchmarks.json &&"
    yield f"  git switch -c results-{folder.name} origin/main &&"
    if (store.folder / folder.name).exists():  # the source itself
        yield f"  rm -rf {place} &&  # what was measured: the folder above is its copy, without what looks private"
    yield f"  cp -r {shlex.quote(str(folder))} {place} &&"
    yield f"  git add {place} && git commit -m {shlex.quote(f'Results of {folder.name}')}"


def send(
    store: Store,
    name: str,
    new_name: str,
    place: Path,
    contributor: str | None,
    gather: Callable[[], tuple[Facts, Sequence[Finding]]],
) -> list[Path]:
    """Writes a folder of the machine's new name into ``place``, and returns its files. ``gather``: what is known of
    this computer. StoreError, with what to do, if something cannot be sent."""
    source = store.folder / name
    names = store.machines()
    if not MACHINE.fullmatch(name) or name not in names:
        there = catalogue.similar(name, names) if names else "Nothing is stored yet."
        how = "To store results: gpu-cookbook compare --save --machine NAME"
        raise StoreError(f"No results are stored for '{plain(name)}'. {there} {how}")
    if not (source / "machine.json").exists():
        raise StoreError(f"{door.shown(source)} lacks machine.json, without which asv skips it. {to_write_facts(name)}")
    _refuse_names(new_name, contributor)
    if new_name != name and new_name in {*names, *machines_at(store.root, default_base(store.root))}:
        raise StoreError(
            f"'{new_name}' is another machine that is stored already: choose another name by --as. If it is this"
            f" machine, measure under its name, and send that: gpu-cookbook compare --save --machine {new_name}"
        )
    if place.resolve().is_relative_to(store.folder.resolve()):
        raise StoreError(f"{place} is where results are stored: name a folder elsewhere by --output.")
    results, complaints = store.load(source)
    if complaints:
        how = "" if is_shallow(store.root) else ": mend or delete what is named above first"
        raise StoreError("\n".join([*complaints, f"Nothing was written{how}."]))
    if not results:
        raise StoreError(f"{door.shown(source)} has no results: gpu-cookbook compare --save --machine {name}")
    texts = _files(store, name, new_name)
    known, _ = sent.lines(source)
    _try_place(place, place / new_name)
    facts, findings = gather()
    every = measured_at(results)
    # What is installed here says nothing of other environments: their lines come from a run of send in each.
    newest, _ = next((each for each in reversed(every) if each[1] == facts.environment), every[-1])
    those = [c for c, e in unsent(store, name, default_base(store.root), results, known) if e == facts.environment]
    line = _line(newest, contributor, facts, findings)
    lines = [line | {"commit": commit} for commit in (*(each for each in those if each != newest), newest)]
    before = [
        each
        for each in sent.lines(place / new_name)[0]
        if each["environment"] != facts.environment
        and (each["commit"], each["environment"]) in every
        and each not in known
    ]
    texts[sent.FILE] = _joined([*(each for each in [*known, *before] if each not in lines), *lines])
    door.fit(json.dumps(line).encode(), sent.KIND)
    return _written(place / new_name, texts)


def _refuse_names(machine: str, contributor: str | None) -> None:
    require_name(machine, "--as")
    if private.is_own(machine):
        raise StoreError(
            f"'{machine}' is the name of your computer or your own: name the machine after what it is, as in"
            " --as nvidia-rtx-4090."
        )
    if contributor is not None:
        if not contributor.strip() or len(contributor) > 100 or contributor != plain(contributor).strip():
            raise StoreError("--from takes a name or a handle: one line of at most 100 characters.")
        if hidden := next(private.found(contributor), None):
            raise StoreError(f"--from takes a name or a handle that anybody may read, but this has {hidden[0]}.")


def _files(store: Store, name: str, new_name: str) -> dict[str, bytes]:
    """{file: its content} of a machine's folder and of its lines in shared files, without what is private."""
    own = private.own_names()
    texts = {}
    source = store.folder / name
    for path in sorted(source.glob("*.json")):
        data = json.loads(path.read_bytes())
        before = _dumped(data)
        if path.name != "machine.json":
            _refuse_path(path, data)
            data["params"]["machine"] = new_name
            # Without what asv's profiler wrote, which names the files of this computer where no rule finds them.
            data["results"] = {name: columns[:PROFILE] for name, columns in data["results"].items()}
        else:
            data["machine"] = new_name
        after = _dumped(private.without(data, own=own))
        texts[path.name] = path.read_bytes() if after == before else after
    texts[runs.FILE] = _joined(private.without(_read(source / runs.FILE, runs.KIND), own=own))
    for file, kind in SHARED.items():
        lines = [*_read(store.folder / file, kind), *_read(source / file, kind)]
        mine = [line | {"machine": new_name} for line in lines if line["machine"] == name]
        unique = [line for number, line in enumerate(mine) if line not in mine[:number]]
        texts[file] = _joined(private.without(unique, own=own))
    return {file: text for file, text in texts.items() if text}


def _refuse_path(path: Path, data: dict[str, Any]) -> None:
    if private.names_a_place(data):
        raise StoreError(
            f"{door.shown(path)} has the path of a Python in the name of its environment, because asv ran without this"
            " clone's asv.conf.json. Delete the file, and measure again: gpu-cookbook compare --save, or asv run in"
            " this clone."
        )


def _read(path: Path, kind: str) -> list[Any]:
    found, complaints = door.read_lines(path, kind)
    if complaints:
        raise StoreError("\n".join([*complaints, "Nothing was written: mend or delete what is named above first."]))
    return [line for _, line in found]


def _line(commit: str, contributor: str | None, facts: Facts, findings: Sequence[Finding]) -> dict[str, Any]:
    """The line of sent.jsonl about a commit."""
    known: dict[str, Any] = {
        "processor": facts.processor,
        "architecture": facts.architecture,
        "container": facts.container,
        "gpus": [
            {
                "name": gpu.name,
                "memory_bytes": gpu.memory_bytes,
                "compute_capability": ".".join(map(str, gpu.compute_capability)),
            }
            for gpu in facts.gpus
        ],
    }
    if facts.nvidia:
        known |= {"driver": facts.nvidia.driver, "cuda": ".".join(map(str, facts.nvidia.cuda))}
    judged = [
        {"group": each.group, "name": each.name, "value": each.value[:300], "status": each.status} for each in findings
    ]
    line = {
        "schema": sent.SCHEMA,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit,
        "environment": facts.environment,
        "python": facts.python,
        "packages": lock(),
        "facts": known,
        "doctor": judged,
    }
    line = private.without(line, own=private.own_names())
    return line | ({"contributor": contributor} if contributor else {})


def lock() -> list[str]:
    """name==version of each installed distribution that gpu-cookbook or a recipe needs, and of what those need. Others
    are nobody's business."""
    asked = ["gpu-cookbook", *(str(each) for r in catalogue.recipes() for each in catalogue.requirements(r.install))]
    names = filter(machine.has_distribution, machine.closure(tuple(asked)) - {"gpu-cookbook"})
    return [f"{name}=={importlib.metadata.version(name)}" for name in sorted(names)]


def _dumped(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _joined(lines: Sequence[Any]) -> bytes:
    return b"".join(map(_dumped, lines))


def _try_place(place: Path, target: Path) -> None:
    """StoreError if no folder can be put there; one that was written before may be replaced."""
    try:
        if target.is_symlink() or target.exists() and not target.is_dir():
            raise StoreError(f"{target} is no folder: name another one by --output.")
        foreign = [each.name for each in target.iterdir() if not is_known(each.name)] if target.is_dir() else []
        new = _new(target)
        new.mkdir(parents=True)
        new.rmdir()
    except OSError as error:
        raise _cannot_write(place, error) from None
    if foreign:
        raise StoreError(f"{target} has files of others, such as {plain(foreign[0])}: name another by --output.")


def _cannot_write(place: Path, error: OSError) -> StoreError:
    return StoreError(f"Cannot write into {place}: {error.strerror}. Name a folder that you can write to by --output.")


def _new(target: Path) -> Path:
    """The place, beside it, of what will replace it: there is nothing."""
    new = target.with_name(f".{target.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    return new


def _written(target: Path, texts: dict[str, bytes]) -> list[Path]:
    """The files of the folder, which replaces one that was written before."""
    new = _new(target)
    try:
        new.mkdir()
        for name, text in texts.items():
            (new / name).write_bytes(text)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)  # a full disk would stay full
        raise _cannot_write(target.parent, error) from None
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)
    return sorted(target.iterdir())


def is_known(name: str) -> bool:
    """Whether a file of this name belongs into a machine's folder."""
    return name in CONTENTS or name.endswith(".json") and name[:1] != "."
