"""A recipe for a GPU, of one of the workloads in test_cudf.py, on the host: ``python cudf_on_host.py PATH``. One for
every GPU finds three of them, each of which is a process. One in Modin has a fake of Modin."""

import contextlib
import os
import sys
from pathlib import Path

import fake_cudf
import fake_modin

from gpu_cookbook import catalogue
from gpu_cookbook.run.check import check_call, check_often, check_refusals, check_size
from gpu_cookbook.run.device import Host
from gpu_cookbook.run.precision import workload_for
from gpu_cookbook.run.worker import Loader


def main(path):
    recipe = catalogue.read(path)
    workload = workload_for(recipe)
    if "dask_cuda" in recipe.packages:  # each call takes a tenth of a second: fewer of them
        os.environ["GPUS_HERE"] = "3"
        sys.path.insert(0, str(Path(__file__).with_name("several_gpus")))
        del workload.special_inputs
    else:
        fake_cudf.install()
    if "modin" in recipe.packages:
        fake_modin.install()
    if "cuml" in recipe.packages:
        fake_cudf.install_cuml()
    loader = Loader(recipe)
    loader.imports()
    if "polars" in recipe.packages:
        fake_cudf.collect_on_host(sys.modules["polars"])
    if "scipy" in recipe.packages:
        fake_cudf.dispatch_signals()
    if "sklearn" in recipe.packages and "cuml" not in recipe.packages:
        fake_cudf.dispatch(sys.modules["sklearn"])
    if "torch" in recipe.packages:
        fake_cudf.without_cuda(sys.modules["torch"])
    module = loader.execute()
    if recipe.technique == "cudf_pandas":
        assert module.pd.accelerated, "pandas was imported before install()"
    engine = getattr(module, "engine", None)
    with engine() if engine else contextlib.nullcontext():
        *others, last = workload.EDGE_SIZES
        for size in others:
            fault = check_call(module, workload, size) if engine else check_size(module, workload, size, Host())
            assert fault is None, f"{workload.label(size)}: {fault}"
        fault = check_size(module, workload, last, Host())
        assert fault is None, f"{workload.label(last)}: {fault}"
        fault = check_refusals(module, workload) or (None if engine else check_often(module, workload))
        assert fault is None, fault
    if "modin" in recipe.packages:
        fake_modin.assert_once(engine)
    print(f"{len(workload.EDGE_SIZES)} sizes right")


if __name__ == "__main__":  # the processes of an engine import this file
    main(Path(sys.argv[1]))
