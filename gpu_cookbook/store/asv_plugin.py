"""What asv does not do by itself; asv.conf.json names this module, so asv loads it before any of its commands.

- ``asv run`` refuses what ``compare --save`` refuses: code that is not that of the commit, and the name of another
  machine. It also refuses options with which asv would store other numbers.
- A machine's facts are written as ``compare --save`` writes them.
- The suite is told which recipes and sizes asv was asked for, so that it checks and measures those of a workload
  together, and no others.
- Each measurement gets its line in runs.jsonl, as in ``gpu-cookbook compare --save``, with the metrics that asv stores.
- An environment that asv did not make has the name that compare gives it, without the path of its Python.
- ``asv compare`` without --machine takes the one that has results of both commits: a clone has those of several.
- For ``asv compare`` and ``asv continuous``, nothing with a single sample is better or worse, except with --no-stats.
- The pages of ``asv publish`` link to the commits where the clone's remote shows them.
"""

import ast
import atexit
import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asv import benchmarks, environment, machine, results
from asv.commands import compare
from asv.commands.compare import Compare
from asv.commands.publish import Publish
from asv.commands.run import Run
from asv.console import log
from asv.util import UserError

try:
    import msgspec
    import psutil

    from gpu_cookbook import catalogue
    from gpu_cookbook.results import Metric, Result, Size
    from gpu_cookbook.store import runs
    from gpu_cookbook.store.asv_files import METRICS, existing, refuse_what_is_not_committed
    from gpu_cookbook.store.commits import StoreError, commit_named, git, web_address
    from gpu_cookbook.store.machines import facts_for, parameters, refuse_another_machine
except ModuleNotFoundError as error:
    raise UserError(
        f"{error}. This suite needs gpu-cookbook beside asv: 'make list' installs both, and asv is then .venv/bin/asv;"
        " or install the clone where this asv is: pip install --editable '.[cpu]'"
    ) from None

# The environment variables by which the suite finds this process' folder, and what asv was asked for: of each workload
# the techniques, and the sizes as asv writes them.
SCRATCH, WANTED = "GPU_COOKBOOK_ASV", "GPU_COOKBOOK_ASV_WANTED"
OMIT = "this suite takes its samples itself: omit --quick, and --attribute rounds, repeat, number and warmup_time"
_recorded: set[Path] = set()
_measured: list[tuple[Path, str]] = []  # the clone, and the commit that is measured in an existing environment
# Those that asv was asked for, of each workload, technique and size; without a size, those that belong to none.
_metrics: dict[tuple[str, str, *tuple[Size, ...]], set[Metric]] = {}


def setup() -> None:
    """asv calls this when it has loaded the module."""
    folders = Path(".asv", "measured").absolute()
    for folder in folders.glob("[0-9]*"):
        if not (folder.name.isdigit() and psutil.pid_exists(int(folder.name))):  # of a run that was killed
            shutil.rmtree(folder, ignore_errors=True)
    mine = folders / str(os.getpid())
    os.environ[SCRATCH] = str(mine)
    atexit.register(shutil.rmtree, mine, ignore_errors=True)
    _refuse_before_measuring()
    _write_facts()
    _tell_selection()
    _wrap_saving(mine)
    _name_by_version()
    _choose_machine()
    _require_samples()
    _link_to_remote()


def _refuse_before_measuring() -> None:
    run = Run.run.__func__

    def run_as_compare_saves(cls: Any, conf: Any, *arguments: Any, **named: Any) -> Any:
        if named.get("dry_run"):  # which stores nothing
            return run(cls, conf, *arguments, **named)
        if named.get("quick") or {"rounds", "repeat", "number", "warmup_time"} & {*(named.get("attribute") or ())}:
            raise UserError(OMIT)
        if name := named.get("set_commit_hash"):
            if {each.partition(":")[0] for each in named.get("env_spec") or ("",)} != {"existing"}:
                raise UserError("--set-commit-hash says what is installed in an existing environment: add -E existing")
            _measured.append((Path(conf.repo), commit_named(Path(conf.repo), name) or name))
            _refused(refuse_what_is_not_committed, *_measured[-1])
        return run(cls, conf, *arguments, **named)

    Run.run = classmethod(run_as_compare_saves)


def _write_facts() -> None:
    save = machine.Machine.save

    def save_as_compare(self: Any, result_dir: str) -> None:
        folder = Path(result_dir, self.machine)
        _refused(refuse_another_machine, folder)
        facts = facts_for(folder)
        self.__dict__ = facts
        save(self, result_dir)
        self.__dict__ = parameters(facts)  # which asv writes into the files of results

    machine.Machine.save = save_as_compare


def _refused(check: Callable[..., None], *arguments: Any) -> None:
    """What a check of ``compare --save`` refuses, as asv says it."""
    try:
        check(*arguments)
    except StoreError as error:
        raise UserError(str(error)) from None


def _tell_selection() -> None:
    made = benchmarks.Benchmarks.__init__

    def select(self: Any, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **named)
        for name, chosen in self.benchmark_selection.items():
            suite, _, place = name.partition(".")
            if suite == "workloads":
                sets = [*itertools.product(*self._all_benchmarks[name]["params"])]
                workload, _, benchmark = place.partition(".")
                for index in chosen or ():
                    parameters = map(ast.literal_eval, sets[index])
                    _metrics.setdefault((workload, *parameters), set()).add(METRICS[benchmark])
        wanted: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
        for workload, technique, *size in _metrics:
            techniques, sizes = wanted.setdefault(workload, ({}, {}))
            techniques[technique] = None
            # What belongs to no size is stored with the smallest.
            sizes[repr(size[0] if size else catalogue.workload_module(workload).SIZES[0])] = None
        os.environ[WANTED] = json.dumps({name: [*map(list, each)] for name, each in wanted.items()})

    benchmarks.Benchmarks.__init__ = select


def _wrap_saving(scratch: Path) -> None:
    save = results.Results.save

    def save_with_lines(self: Any, result_dir: str) -> None:
        for clone, commit in _measured:  # it may have changed meanwhile
            _refused(refuse_what_is_not_committed, clone, commit)
        save(self, result_dir)
        # Of an environment that asv did not make, the suite knows neither name nor commit.
        existed = self.env_name.startswith("existing-")
        place = "*/installed" if existed else f"{self.env_name}/{self.commit_hash}"
        for path in set(scratch.glob(f"{place}/*.json")) - _recorded:
            _recorded.add(path)
            try:
                for result in msgspec.convert(json.loads(path.read_text("utf-8")), list[Result]):
                    of_recipe = result.workload, result.technique
                    asked = _metrics.get(of_recipe, set()) | _metrics.get((*of_recipe, result.size), set())
                    if asked:
                        folder = Path(result_dir) / self.params["machine"]
                        runs.record(folder, result, self.commit_hash, self.env_name, metrics=asked)
            except (OSError, ValueError, msgspec.ValidationError) as error:  # results of another commit may differ
                log.warning(f"The conditions of {path.stem} are not stored: {error}")

    results.Results.save = save_with_lines


def _name_by_version() -> None:
    made = environment.ExistingEnvironment.__init__

    def named(self: Any, *arguments: Any) -> None:
        made(self, *arguments)
        version = "import sys; print('%d.%d' % sys.version_info[:2])"
        self._python = environment.util.check_output([self._executable, "-c", version]).strip()

    environment.ExistingEnvironment.__init__ = named
    environment.ExistingEnvironment.name = property(lambda self: existing(self._python))


def _choose_machine() -> None:
    run = Compare.run.__func__

    def compare_where_measured(cls: Any, conf: Any, hash_1: str, hash_2: str, machine: Any = None, **named: Any) -> Any:
        commits = [git(Path(conf.repo), "rev-parse", name) or name for name in (hash_1, hash_2)]
        folders = (path.parent for path in Path(conf.results_dir).glob("*/machine.json"))
        both = [each.name for each in folders if all(any(each.glob(f"{name[:8]}-*.json")) for name in commits)]
        chosen = both[0] if machine is None and len(both) == 1 else machine
        return run(cls, conf, hash_1, hash_2, machine=chosen, **named)

    Compare.run = classmethod(compare_where_measured)


def _require_samples() -> None:
    better = compare._is_result_better

    def better_by_samples(a: Any, b: Any, a_ss: Any, b_ss: Any, factor: Any, use_stats: bool = True) -> Any:
        # asv calls it without them, too, to mark with "~" what differs by the factor and is neither better nor worse.
        known = [each[0] for each in (a_ss, b_ss) if each]
        if use_stats and not all(stats and stats.get("repeat", 0) > 1 for stats in known):
            return False
        return better(a, b, a_ss, b_ss, factor, use_stats)

    compare._is_result_better = better_by_samples


def _link_to_remote() -> None:
    publish = Publish.run.__func__

    def publish_with_links(cls: Any, conf: Any, *arguments: Any, **named: Any) -> Any:
        address = web_address(Path(conf.repo))
        conf.project_url = address or "#"
        # With "#", asv's pages would look for a benchmark with the commit's name. This address is their own.
        conf.show_commit_url = f"{address}/commit/" if address else "#/?commit="
        return publish(cls, conf, *arguments, **named)

    Publish.run = classmethod(publish_with_links)
