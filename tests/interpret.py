"""A Triton recipe in Triton's interpreter, on tensors of the CPU, at sizes that it can do in seconds:
``python interpret.py PATH``."""

import contextlib
import os
import sys
import threading
import warnings
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is decorated

import numpy as np  # noqa: E402
import torch  # noqa: E402
from fewer import require_right, with_few_special_values  # noqa: E402
from seeds import fault_of_seeds  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

from gpu_cookbook import catalogue  # noqa: E402
from gpu_cookbook.run import distribution  # noqa: E402
from gpu_cookbook.run.device import Host  # noqa: E402
from gpu_cookbook.run.precision import workload_for  # noqa: E402
from gpu_cookbook.run.worker import Loader  # noqa: E402

# The last of each takes several blocks, of which one is not full, and more rows than there are programs.
SIZES = {
    "multiply": (0, 1, 2, 31, 32, 33, 257),
    "increment": (0, 1, 2, 31, 32, 33, 257),
    "matmul": ((1, 1, 1), (16, 16, 16), (0, 5, 3), (5, 0, 3), (17, 40, 3), (70, 17, 19)),
    "subset_mean": ((0, 0), (1, 1), (1, 2), (16, 17), (257, 1), (5, 131)),
    "norm": (0, 1, 2, 31, 33, 257),
    "random_subset_mean": ((0, 0), (1, 1), (1, 2), (16, 17), (9, 151)),
}
plain_dot = interpreter.InterpreterBuilder.create_dot


def dot(self, a, b, total, input_precision, imprecise):
    """As tensor cores do it. The interpreter multiplies the bits of bfloat16 as if they were whole numbers
    (https://github.com/triton-lang/triton/issues/11584), and all of a float32's where TF32 is asked for."""

    def factor(x):
        if x.dtype.scalar.is_bf16():
            return interpreter.TensorHandle((x.data.astype(np.uint32) << 16).view(np.float32), interpreter.tl.float32)
        if x.dtype.scalar.is_fp32() and input_precision.name == "TF32":
            bits = np.ascontiguousarray(x.data).view(np.uint32) & np.uint32(0xFFFFE000)
            return interpreter.TensorHandle(bits.view(np.float32), interpreter.tl.float32)
        return x

    return plain_dot(self, factor(a), factor(b), total, input_precision, imprecise)


interpreter.InterpreterBuilder.create_dot = dot
here = threading.local()  # .gpu: while the GPU of the caller's tensors is the current one


@contextlib.contextmanager
def device_of(tensor):
    here.gpu = tensor.device
    try:
        yield
    finally:
        del here.gpu


def require_gpu():
    """A recipe that gets tensors from its caller makes their GPU the current one: Triton does not."""
    assert hasattr(here, "gpu") or recipe.workload == "random_subset_mean", "it would run on another GPU"


def warmed(self, *arguments, grid):
    """It compiles nothing: what it would launch is the function itself."""
    require_gpu()
    return self


def launched(self, *arguments, launch=interpreter.GridExecutor.__call__, **options):
    require_gpu()
    return launch(self, *arguments, **options)


torch.cuda.device_of = device_of
interpreter.InterpretedFunction.warmup = warmed
interpreter.GridExecutor.__call__ = launched
torch.cuda.synchronize = lambda: None  # the interpreter is done when it returns
warnings.filterwarnings("ignore", category=RuntimeWarning)  # NumPy's, of special values

recipe = catalogue.read(Path(sys.argv[1]))
workload = workload_for(recipe)
module = Loader(recipe).execute()
module.device = torch.device("cpu")
# Every program is one of Python's here: smaller blocks and fewer programs, and one special value in seven.
small = {"BLOCK": 32, "PROGRAMS": 3, "M": 16, "N": 16, "K": 16, "GROUP": 2}
vars(module).update({name: value for name, value in small.items() if name in vars(module)})
with_few_special_values(workload)
workload.EDGE_SIZES = SIZES[recipe.workload]
require_right(module, workload, Host())
if recipe.workload == "random_subset_mean":
    distribution.PLAIN, distribution.SLOW = distribution.ENGINE, {}  # fewer seeds: a call takes milliseconds
    fault = distribution.fault(recipe, module, workload)
    fault = fault or fault_of_seeds(module)
    assert fault is None, fault
print(f"{len(workload.EDGE_SIZES)} sizes right")
