"""A recipe of cuda.compute on the host: ``python compute_on_host.py PATH``. NumPy does what its algorithms do."""

import sys
import warnings
from pathlib import Path

import fake_cuda_compute
import numpy as np
from fewer import require_right, with_few_special_values
from seeds import fault_of_seeds

from gpu_cookbook import catalogue
from gpu_cookbook.run import distribution
from gpu_cookbook.run.device import Host
from gpu_cookbook.run.precision import workload_for
from gpu_cookbook.run.worker import Loader

fake_cuda_compute.install()
warnings.filterwarnings("ignore", category=RuntimeWarning)  # NumPy's, of special values
recipe = catalogue.read(Path(sys.argv[1]))
workload = workload_for(recipe)
module = Loader(recipe).execute()
if hasattr(module, "math"):  # its function is given whole arrays here
    module.math = np
with_few_special_values(workload)
require_right(module, workload, Host())
if recipe.workload == "random_subset_mean":
    fault = distribution.fault(recipe, module, workload) or fault_of_seeds(module)
    assert fault is None, fault
    fake_cuda_compute.ALIVE.clear()
    module.random_subset_mean(40, 40, 10)
    assert max(fake_cuda_compute.ALIVE) < 2 * 10 * 10 * 8, "two chunks at a time"
print(f"{len(workload.EDGE_SIZES)} sizes right")
