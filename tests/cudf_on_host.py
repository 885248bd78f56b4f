"""A recipe for a GPU, of one of the workloads in test_cudf.py, on the host: ``python cudf_on_host.py PATH``."""

import sys
from pathlib import Path

import fake_cudf

from gpu_cookbook import catalogue
from gpu_cookbook.run.check import check_often, check_refusals, check_size
from gpu_cookbook.run.device import Host
from gpu_cookbook.run.precision import workload_for
from gpu_cookbook.run.worker import Loader

fake_cudf.install()
recipe = catalogue.read(Path(sys.argv[1]))
workload = workload_for(recipe)
loader = Loader(recipe)
loader.imports()
if "polars" in recipe.packages:
    fake_cudf.collect_on_host(sys.modules["polars"])
if "scipy" in recipe.packages:
    fake_cudf.dispatch_signals()
if "sklearn" in recipe.packages:
    fake_cudf.dispatch(sys.modules["sklearn"])
if "torch" in recipe.packages:
    fake_cudf.without_cuda(sys.modules["torch"])
module = loader.execute()
if recipe.technique == "cudf_pandas":
    assert module.pd.accelerated, "pandas was imported before install()"
for size in workload.EDGE_SIZES:
    fault = check_size(module, workload, size, Host())
    assert fault is None, f"{workload.label(size)}: {fault}"
fault = check_refusals(module, workload) or check_often(module, workload)
assert fault is None, fault
print(f"{len(workload.EDGE_SIZES)} sizes right")
