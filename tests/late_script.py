"""A script of docs/transfers on a device whose streams are late (late/device.py): ``python late_script.py PATH SEED
GPUS``. It fails if the script does, or leaves memory registered."""

import runpy
import sys
from pathlib import Path

# The fakes must be found before they are imported: hence the imports below it, and noqa.
sys.path.insert(0, str(Path(__file__).with_name("late")))

import fake_cupy  # noqa: E402
from device import device  # noqa: E402

path, seed, gpus = sys.argv[1:]
device.random.seed(int(seed))
fake_cupy.install(int(gpus))
device.leave_work()
runpy.run_path(path, run_name="__main__")
assert not fake_cupy.registered, "memory is left registered"
