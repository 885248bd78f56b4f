"""A Numba recipe in Numba's CUDA simulator, at the sizes that it can do in seconds: ``python simulate.py PATH``."""

import os
import sys
from pathlib import Path

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # read when numba.cuda is imported

from gpu_cookbook import catalogue  # noqa: E402
from gpu_cookbook.check import check_refusals, check_size  # noqa: E402
from gpu_cookbook.device import Host  # noqa: E402
from gpu_cookbook.worker import Loader  # noqa: E402

SIZES = {
    "multiply": (0, 1, 2, 255, 256, 257),
    "increment": (0, 1, 2, 255, 256, 257),
    "matmul": ((1, 1, 1), (17, 18, 3), (0, 5, 3), (5, 0, 3)),
    "subset_mean": ((0, 0), (1, 1), (1, 2), (15, 17), (5, 1), (1, 513)),
    "random_subset_mean": ((0, 0), (1, 1), (5, 7)),
}

recipe = catalogue.read(Path(sys.argv[1]))
workload = catalogue.workload_module(recipe.workload)
module = Loader(recipe).execute()
# Every thread is one of Python's here: fewer of them, so that it ends in seconds.
vars(module).update(BLOCKS=2, THREADS=32, TILE=4)
for size in SIZES[recipe.workload]:
    fault = check_size(module, workload, size, Host())
    assert fault is None, f"{workload.label(size)}: {fault}"
assert check_refusals(module, workload) is None
print(f"{len(SIZES[recipe.workload])} sizes right")
