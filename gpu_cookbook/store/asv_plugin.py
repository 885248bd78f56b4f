"""What asv does not do by itself; asv.conf.json names this module, so asv loads it before any of its commands.

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
from pathlib import Path
from typing import Any

from asv import benchmarks, environment, results
from asv.commands import compare
from asv.commands.compare import Compare
from asv.commands.publish import Publish
from asv.console import log
from asv.util import UserError

try:
    import msgspec
    import psutil

    from gpu_cookbook import catalogue
    from gpu_cookbook.results import Metric, Result, Size
    from gpu_cookbook.store import runs
    from gpu_cookbook.store.asv_files import METRICS, existing
    from gpu_cookbook.store.commits import git, web_address
except ModuleNotFoundError as error:
    raise UserError(
        f"{error}. This suite needs gpu-cookbook beside asv: 'make list' installs both, and asv is then .venv/bin/asv;"
        " or install the clone where this asv is: pip install --editable '.[cpu]'"
    ) from None

# The environment variables by which the suite finds this process' folder, and what asv was asked for: of each workload
# the techniques, and the sizes as asv writes them.
SCRATCH, WANTED = "GPU_COOKBOOK_ASV", "GPU_COOKBOOK_ASV_WANTED"
_recorded: set[Path] = set()
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
    _tell_selection()
    _wrap_saving(mine)
    _name_by_version()
    _choose_machine()
    _require_samples()
    _link_to_remote()


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
