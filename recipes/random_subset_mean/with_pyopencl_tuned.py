"""Mean of a subset of random samples in PyOpenCL, tuned: one kernel that makes the samples in registers and adds them.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.

Sample (i, j) is a function of the seed, i and j alone (Philox), so only the samples of the subset are made, and none is
stored. Four pairs of them are made at a time, without a branch: a CPU does them in vector registers, and a GPU side by
side. On an NVIDIA H200: 100,000² in 10.5 ms instead of 73 (with_pyopencl.py). The file is over 60 lines because it
finds its device and says its arguments' types.
"""

from operator import index
from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

KERNEL = (Path(__file__).parents[2] / "kernels" / "random_subset_mean_tuned.cl").read_text()
GROUP = 128  # as in the kernel
GROUPS = 2**16  # at most; below that, one group per row. Many are short: the last to end leave little of a GPU idle

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
devices = [device for device in devices if "cl_khr_fp64" in device.extensions]  # some have no float64
device = next((d for d in devices if d.type & cl.device_type.GPU), devices[0])  # a GPU where there is one
queue = cl.CommandQueue(cl.Context([device]))
pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))  # what a call frees, the next one takes
program = cl.Program(queue.context, KERNEL).build()
add_subset, mean = (
    cl.Kernel(program, "add_subset"),
    cl.Kernel(program, "mean"),
)  # once: program.mean makes one per call
# The arguments' types, once: None is an array.
add_subset.set_scalar_arg_dtypes([np.int64, np.int64, np.uint64, None])
mean.set_scalar_arg_dtypes([None, np.int64, np.int64, None])


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return cl.array.to_device(queue, np.array(np.nan))
    groups = min(GROUPS, (rows + 1) // 2)
    partial = cl.array.empty(queue, groups, np.float64, allocator=pool)
    result = cl.array.empty(queue, (), np.float64, allocator=pool)
    add_subset(queue, (groups * GROUP,), (GROUP,), rows, columns, seed, partial.data)
    mean(queue, (GROUP,), (GROUP,), partial.data, groups, count, result.data)  # the queue runs in order
    return result


def wait(mean):
    queue.finish()


def download(mean):
    return float(mean.get())


if __name__ == "__main__":
    result = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(result - 11) < 6 / 2_000, result  # six standard errors of 2,000 × 2,000 samples
    print(f"random_subset_mean, PyOpenCL on {device.name.strip()}: 4,000 × 4,000 samples, all right")
