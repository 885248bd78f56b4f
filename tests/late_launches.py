"""A script of docs/launches on a device whose streams are late (late/device.py; for cuda.core, fake_cuda_core.py), and
what gpu_cookbook/run/launches.py does with it: ``python late_launches.py PATH ZEROS SEED``. It fails if a launch adds
anything but one to each array, or if wait() returns before that."""

import importlib
import runpy
import sys
from pathlib import Path

# The fakes must be found before anything imports a framework: hence the imports below it, and noqa.
sys.path.insert(0, str(Path(__file__).with_name("late")))

import fake_cuda_core  # noqa: E402
import fake_cupy  # noqa: E402
import fake_torch  # noqa: E402
import numpy as np  # noqa: E402
from device import OnDevice, device  # noqa: E402

from gpu_cookbook import catalogue  # noqa: E402
from gpu_cookbook.run import launches  # noqa: E402
from gpu_cookbook.run.launches import COUNTS  # noqa: E402
from gpu_cookbook.run.loader import Loader  # noqa: E402

FAKES = {
    "CuPy": "fake_cupy",
    "PyCUDA": "fake_pycuda",
    "Numba": "fake_numba",
    "cuda.core": "fake_cuda_core",
    "cuTile": "fake_cutile",
    "numba-cuda-mlir": "fake_numba_mlir",
    "cuda.compute": "fake_cuda_compute",
}

path, zeros, seed = sys.argv[1:]
recipe = catalogue.read(Path(path))
device.random.seed(int(seed))
importlib.import_module(FAKES[recipe.framework]).install()
if recipe.framework == "Numba":  # which takes arrays of the others
    OnDevice.__cuda_array_interface__ = property(lambda self: self.a.__array_interface__)
    fake_cupy.install()
    fake_torch.install()
    sys.modules["torch"].zeros = lambda n, device: fake_torch.tensor(np.zeros(n, np.float32), device=device)


def held(x):
    """What an array holds at this moment, whether or not more is to come."""
    return x.a[0] if isinstance(x, OnDevice) else fake_cuda_core.floats(x.address, 1)[0]


runpy.run_path(path, run_name="__main__")
module = Loader(recipe).execute()
for count in COUNTS:
    made = launches.Launches(module, getattr(module, zeros)(count))
    replays = [made.replaying()] if hasattr(module, "prepared") else []
    for timed in (made.resident, *replays):
        for _ in range(5):
            assert timed() > 0
            assert [held(x) for x in made.arrays] == count * [made.done], "wait() does not wait"
    assert made.issued() > 0
    made.check()
    assert len({id(x) for x in made.arrays}) == count and made.done == 6 + 6 * len(replays) + launches.BATCH
print("right")
