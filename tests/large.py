"""Recipes with more elements than 32 bits can count, in a process of their own: ``python large.py PATH``."""

import sys
from pathlib import Path

import numpy as np

from gpu_cookbook import catalogue
from gpu_cookbook.run.check import steps
from gpu_cookbook.run.worker import Loader

recipe = catalogue.read(Path(sys.argv[1]))
workload = catalogue.workload_module(recipe.workload)
upload, function, wait, download = steps(Loader(recipe).execute(), workload)
if recipe.workload == "subset_mean":
    x = np.ones((3, 2**31 // 3 + 101))
    x[2, -1 - (x.shape[1] + 1) % 2] = 3  # the last element of the subset, behind 2**31 others
    (device,) = upload(x)
    result = function(device)
    wait(result)
    expected = 2 + 2 / x[::2, ::2].size
    tolerance = workload.tolerance(expected, x)
    assert abs(download(result) - expected) <= tolerance, f"{download(result)!r} instead of {expected!r}"
    assert tolerance < 2 / x[::2, ::2].size, "the last element would not be missed"
else:
    n = 2**31 + 257
    host = np.resize(np.arange(1, 1_000_004, dtype=np.float32), n)  # a prime: no offset gives the same again
    (device,) = upload(host)
    result = function(device, device) if recipe.workload == "multiply" else function(device)
    wait(result)
    result = download(result)
    assert result.shape == (n,)
    for start in range(0, n, 2**28):
        part = slice(start, start + 2**28)
        expected = host[part] * host[part] if recipe.workload == "multiply" else host[part] + np.float32(1)
        np.testing.assert_array_equal(result[part], expected)
print("all right")
