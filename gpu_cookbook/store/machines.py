"""The machine that results belong to: its name, its facts in machine.json, and whether it is this one."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpu_cookbook import machine
from gpu_cookbook.results import Result
from gpu_cookbook.store import door
from gpu_cookbook.store.commits import StoreError
from gpu_cookbook.store.runs import Line, Lines
from gpu_cookbook.units import memory
from gpu_cookbook.words import plain

MACHINE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # as in schemas/common.json
# In machine.json, beside asv's "ram" and "cpu": the bytes of the smallest GPU's memory, and what tells processors of
# one name apart.
GPU_RAM, CPU_MODEL = "gpu_ram", "cpu_model"
QUOTA = " of "  # in "num_cpu", where a container may use the time of 1.5 of 16 cores
PARAMETERS = ("machine", "os", "num_cpu", "arch", "cpu", "ram", "gpu")


def this_machine() -> dict[str, str]:
    """What this machine is, as machine.json has it: asv knows of no GPUs."""
    from asv import machine as asv_machine

    facts = asv_machine.Machine.get_defaults()
    if model := machine.processor_model():
        facts[CPU_MODEL] = model
    if QUOTA in (count := machine.core_count()):
        facts["num_cpu"] = count
    if gpus := machine.gpus():
        facts["gpu"] = ", ".join(gpu.name for gpu in gpus)
        facts[GPU_RAM] = str(min(gpu.memory_bytes for gpu in gpus))
    return facts


Gpus = Counter[str]  # how many there are of each name


def gpus_in(facts: Mapping[str, str]) -> Gpus:
    """The GPUs in machine.json, or in the parameters of a file of results."""
    return Counter(filter(None, facts.get("gpu", "").split(", ")))


def gpus_of(measured: Iterable[Result | Line]) -> Gpus:
    """The GPUs on which these were measured: of each name, as many as were used at once. There may be more."""
    found: Gpus = Counter()
    for each in measured:
        if each.driver and each.device:
            number, _, name = each.device.rpartition(" × ")
            found[name] = max(found[name], int(number) if re.fullmatch("[0-9]{1,4}", number) else 1)
    return found


def are_among(used: Gpus, gpus: Gpus) -> bool:
    """Whether GPUs that were used are some of these. Of several at once, only the name of the first is known."""
    return used.keys() <= gpus.keys() and max(used.values(), default=0) <= gpus.total()


def named_gpus(gpus: Gpus) -> str:
    """'4 × NVIDIA H100 NVL, NVIDIA H200'."""
    return ", ".join(f"{number} × {name}" if number > 1 else name for name, number in sorted(gpus.items()))


def require_name(name: str, option: str) -> None:
    """StoreError if a machine cannot have this name, which was given by ``option``."""
    if not MACHINE.fullmatch(name):
        raise StoreError(
            f"'{plain(name)}' is no name of a machine: use letters from a to z, digits, '_', '-' and '.', as in"
            f" {option} nvidia-rtx-4090."
        )


def refuse_another_machine(folder: Path) -> None:
    """StoreError if this machine's folder has the results of a machine with other GPUs, or another number of them, or,
    where none is known of it, with another processor or number of cores; or if either is a container with a quota of
    the cores, which the other has not. Without machine.json, only the GPUs that were used tell."""
    path, here = folder / "machine.json", this_machine()
    there: dict[str, str] = {}
    try:
        there = door.read_file(path)
    except FileNotFoundError:
        pass
    except (door.Unfit, OSError) as error:
        raise StoreError(f"{path} cannot be used ({plain(str(error))}): fix it, or move it away.") from None
    theirs, ours = gpus_in(there), gpus_in(here)
    if theirs:
        same = theirs == ours and _of_one_size(there, here)
    elif theirs := gpus_of(Lines(folder).lines):  # asv machine and asv run may have written machine.json
        same = are_among(theirs, ours)
    else:
        same = all(there[key] == here[key] for key in ("cpu", "num_cpu", CPU_MODEL) if key in there and key in here)
    counts = [facts["num_cpu"] for facts in (there, here) if "num_cpu" in facts]
    by_quota = len(set(counts)) > 1 and any(QUOTA in count for count in counts)
    if not same or by_quota:
        hides = ours < theirs and "CUDA_VISIBLE_DEVICES" in os.environ
        hidden = " If it is the same machine, unset CUDA_VISIBLE_DEVICES, which hides the other GPUs." * hides
        by_memory = theirs == ours and not by_quota
        other, this = (_described(*each, by_memory, by_quota) for each in ((theirs, there), (ours, here)))
        raise StoreError(
            f"{folder.name} has the results of another machine, with {other}; this one has {this}. Give this one a"
            f" name of its own: --machine NAME, or --save NAME of a script in benchmarks/.{hidden}"
        )


def _of_one_size(there: Mapping[str, str], here: Mapping[str, str]) -> bool:
    """Whether the GPUs may be the same by their memory, which some names come with two sizes of. With error correction
    on or off, or under another driver, a GPU has a few per cent more or less."""
    sizes = [size for facts in (there, here) if (size := bytes_of(facts, GPU_RAM))]
    return len(sizes) < 2 or max(sizes) <= 1.2 * min(sizes)


def bytes_of(facts: Mapping[str, str], key: str) -> int | None:
    """A number of bytes in machine.json; None if it has none."""
    text = facts.get(key, "")
    return int(text) if re.fullmatch("[0-9]{1,20}", text) else None


def facts_for(folder: Path) -> dict[str, str]:
    """What machine.json in this folder is to say: this machine's facts under the folder's name, and whatever else is
    there already. An older file lacks the processor's model, and gets none: nobody knows whether it was this one."""
    facts, path = this_machine(), folder / "machine.json"
    there = door.read_file(path) if path.exists() else facts
    if CPU_MODEL not in there:
        facts.pop(CPU_MODEL, None)
    known = there | facts | {"machine": folder.name}
    known.pop("version", None)  # of asv's format, which asv adds
    return known


def parameters(facts: Mapping[str, Any]) -> dict[str, str]:
    """Those of a machine's facts that its files of results have: asv takes results of other parameters, such as older
    ones, for another series."""
    return {name: str(facts[name]) for name in PARAMETERS if name in facts}


def _described(gpus: Gpus, facts: Mapping[str, str], by_memory: bool, by_quota: bool) -> str:
    if gpus:
        size = f" of {memory(int(facts[GPU_RAM]))}" if by_memory else ""
        return named_gpus(gpus) + size + (f" and {facts['num_cpu']} cores" if by_quota else "")
    model = f" ({facts[CPU_MODEL]})" if CPU_MODEL in facts else ""
    cores, name = facts.get("num_cpu", "an unknown number of"), facts.get("cpu") or "a processor"
    return f"no GPU, and {cores} cores of {name}{model}"
