"""A recipe of Numba, or numba-cuda-mlir, on the arrays of CuPy or PyTorch, on a device whose streams are late
(late/device.py): ``python late_arrays.py PATH``. It prints "right", or what is wrong: at sizes that threads of Python
can do, in every kind of current stream, with arrays that nobody else keeps, and with those of another GPU."""

import importlib
import itertools
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

# The fakes must be found before anything imports a framework: hence the imports below it, and noqa.
sys.path.insert(0, str(Path(__file__).with_name("late")))

import fake_numba  # noqa: E402
import fake_numba_mlir  # noqa: E402
import numpy as np  # noqa: E402
from device import OnDevice, current_stream, device, legacy, using  # noqa: E402
from fewer import Late, with_few_special_values  # noqa: E402

from gpu_cookbook import catalogue  # noqa: E402
from gpu_cookbook.run import memory  # noqa: E402
from gpu_cookbook.run.check import check_refusals, check_size  # noqa: E402
from gpu_cookbook.run.contract import steps, takes_out  # noqa: E402
from gpu_cookbook.run.expected import Expected  # noqa: E402
from gpu_cookbook.run.precision import inexact  # noqa: E402
from gpu_cookbook.run.transfers import check_transfers  # noqa: E402
from gpu_cookbook.run.worker import Loader  # noqa: E402

SIZES = (0, 1, 2, 7, 9, 257)
N = 19  # elements: the last block is not full
SEEDS = 5

path = Path(sys.argv[1])
library = importlib.import_module(f"fake_{path.stem.removesuffix('_tuned').rpartition('_')[2]}")
if library.__name__ == "fake_cupy":
    kind, is_named = library.ndarray, True  # CuPy's arrays name the current stream; by 1 if that is the default one
    STREAMS = [legacy, library.CupyStream(), library.CupyStream(non_blocking=True)]
else:
    kind, is_named = library.CudaTensor, False
    STREAMS = [legacy, library.CudaStream()]


def interface(array):
    stream = {"stream": 1 if current_stream() is legacy else id(current_stream())} if is_named else {}
    return array.a.__array_interface__ | stream


def kind_of(value, found=memory._kind):
    if not isinstance(value, OnDevice):
        return found(value)
    return memory._Kind(lambda x: np.array(x.a), lambda x, values: np.copyto(x.a, values))


kind.__cuda_array_interface__ = property(interface)
kind.astype = lambda self, dtype: type(self)(self.a.astype(dtype), self.memory)
memory._kind = kind_of
recipe = catalogue.read(path)
of_mlir = recipe.framework == "numba-cuda-mlir"
(fake_numba_mlir if of_mlir else fake_numba).install()
library.install()
workload = catalogue.workload_module(recipe.workload)
module = Loader(recipe).execute()
module.THREADS = 4  # every thread is one of Python's here
upload, function, wait, download = steps(module, workload)


def fault_of_stream(stream, is_prepared):
    """What is wrong in this current stream. The arrays are filled just before the kernel, their memory is handed out
    again just after it, and the next step reads the result: nobody waits for any of these but the stream itself."""
    hosts = workload.inputs(N, 1)
    with using(stream):
        given = upload(*hosts)
        replay = module.prepared(*given) if is_prepared else None
        for array, host in zip(given, hosts, strict=True):
            array.a.fill(np.nan)
            array.queue(np.copyto, host)
        result = replay() if is_prepared else function(*given)
        given = replay = array = None
        again = [kind.pooled((N,), np.float32) for _ in hosts]
        copy = kind.pooled(result.shape, np.float32).queue(np.copyto, result)
        stream.synchronize()
    del again
    return Expected(workload, hosts).disagreement(copy.a)


def fault_of_kept_arrays(stream):
    """What is wrong if nothing but what prepared() returns refers to the arrays."""
    hosts = workload.inputs(N, 2)
    with using(stream):
        replay = module.prepared(*upload(*hosts))
        again = [kind.pooled((N,), np.float32) for _ in hosts]
        result = replay()
        stream.synchronize()
    del again
    return Expected(workload, hosts).disagreement(result.a)


def fault_of_waiting(stream):
    """What is wrong if the host waits for the device, which no launch needs. numba-cuda-mlir waits by itself, at a
    launch with CuPy's arrays, but not with those that prepared() makes of them."""

    def until(condition):
        raise TimeoutError("the host waits for the device")

    with using(stream):
        given = upload(*workload.inputs(N))
        try:
            device.until = until
            given[0].queue(lambda a: None)
            if not of_mlir:
                function(*given)
            module.prepared(*given)()
        except TimeoutError as error:
            return str(error)
        finally:
            del device.until
    return None


def fault_of_another_gpu(place, is_prepared):
    """What is wrong if the array in this place is another GPU's."""
    hosts = workload.inputs(N)
    elsewhere = type("Elsewhere", (kind,), {"device": SimpleNamespace(id=1), "get_device": lambda self: 1})
    *given, out = upload(*hosts, np.zeros(N, np.float32))
    options = {"out": elsewhere(out.a, out.memory)} if place == len(given) else {}
    if not options:
        given[place] = elsewhere(given[place].a, given[place].memory)
    try:
        (module.prepared if is_prepared else function)(*given, **options)
    except ValueError as error:
        _, named, places = str(error).partition("current GPU, 0, not of ")
        return None if named and "1" in places else str(error)
    return f"array {place} of another GPU is not refused"


def fault():
    for is_prepared, stream, seed in itertools.product((False, True), STREAMS, range(SEEDS)):
        device.random.seed(seed)
        if found := fault_of_stream(stream, is_prepared):
            return f"{'prepared, ' * is_prepared}current stream {STREAMS.index(stream)}, seed {seed}: {found}"
    for stream in STREAMS:
        if found := fault_of_kept_arrays(stream) or fault_of_waiting(stream):
            return f"current stream {STREAMS.index(stream)}: {found}"
    for place, is_prepared in itertools.product(range(len(workload.inputs(N)) + takes_out(function)), (False, True)):
        if found := fault_of_another_gpu(place, is_prepared):
            return found
    with_few_special_values(workload)
    for size in SIZES:
        found = check_size(module, workload, size, Late()) or inexact(module, workload, size)
        if found := found or check_transfers(module, workload, size, Late()):
            return f"{size} elements: {found}"
    return check_refusals(module, workload)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # NumPy's, of special values
    print(fault() or "right")
