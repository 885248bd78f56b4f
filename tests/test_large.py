"""More than 2**31 elements: an index of 32 bits that overflows reads and writes elsewhere."""

import psutil
import pytest
from conftest import ran, recipes

from gpu_cookbook import machine

DEVICE_NEEDED = 28e9  # bytes: three arrays of 2**31 float32, and the context
# Bytes: 2**31 float64, for which PyTorch takes 32 GiB of page-locked memory, since it rounds up; and what is copied.
HOST_NEEDED = 48e9
FREE = min((free for _, free in machine.device_memory()), default=0)


@pytest.mark.skipif(
    FREE < DEVICE_NEEDED or psutil.virtual_memory().available < HOST_NEEDED,
    reason="needs an NVIDIA GPU with 28 GB free, and 48 GB of host memory",
)
@pytest.mark.parametrize(
    "recipe",
    recipes(
        lambda r: r.workload in ("multiply", "increment", "subset_mean", "norm"),
        lambda r: r.framework != "Warp",  # which refuses such arrays: tests/test_warp.py looks at that
        lambda r: r.runs_on in ("NVIDIA GPU", "NVIDIA GPU or CPU", "OpenCL device") and "dask" not in r.technique,
    ),
)
def test_more_than_two_to_the_31_elements(recipe):
    done = ran("large.py", recipe.path, limit=1200)
    assert done.returncode == 0, done.stderr
    ways = 1 + ("round_trip" in recipe.functions) * (1 + ("pinned" in recipe.functions))
    assert done.stdout == f"all right: {ways}\n"
