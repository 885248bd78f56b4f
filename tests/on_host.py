"""A recipe of cuda.core on the host: ``python on_host.py PATH``. NumPy does what its kernels do; tests/test_kernels.py
compiles the kernels."""

import ctypes
import sys
import warnings
from itertools import islice
from pathlib import Path

import fake_cuda_core
import numpy as np

from gpu_cookbook import catalogue
from gpu_cookbook.run import distribution, memory
from gpu_cookbook.run.check import check_refusals, check_size
from gpu_cookbook.run.device import Host
from gpu_cookbook.run.precision import inexact, workload_for
from gpu_cookbook.run.transfers import check_transfers
from gpu_cookbook.run.worker import Loader


class Stage:
    """What reads and writes the memory of the device, which is the host's."""

    array = np.zeros(memory.STAGE, np.uint8)
    pointer = array.ctypes.data

    def copy(self, name, target, source, count):
        ctypes.memmove(target, source, count)


class Late(Host):
    def late(self, call, wait, right):
        result = call()
        wait(result)
        return not right(result)


memory._stage = Stage
fake_cuda_core.install()
warnings.filterwarnings("ignore", category=RuntimeWarning)  # NumPy's, of special values
recipe = catalogue.read(Path(sys.argv[1]))
workload = workload_for(recipe)
module = Loader(recipe).execute()
special = getattr(workload, "special_inputs", lambda size, seed: ())
workload.special_inputs = lambda size, seed=0: islice(special(size, seed), seed, None, 7)
vars(workload).pop("MANY_PIECES", None)
for size in workload.EDGE_SIZES:
    fault = check_size(module, workload, size, Late()) or inexact(module, workload, size)
    fault = fault or check_transfers(module, workload, size, Late())
    assert fault is None, f"{workload.label(size)}: {fault}"
assert check_refusals(module, workload) is None
if recipe.workload == "random_subset_mean":
    fault = distribution.fault(recipe, module, workload)
    assert fault is None, fault
print(f"{len(workload.EDGE_SIZES)} sizes right")
