"""Mean of a subset of random samples in PyOpenCL: clrandom's Threefry generator, chunk by chunk, and two kernels.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
Follows: https://documen.tician.de/pyopencl/array.html

Calls from several threads must take turns: they would share the generator and its counter.
"""

from operator import index
from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools
from pyopencl.clrandom import ThreefryGenerator

KERNEL = (Path(__file__).parents[2] / "kernels" / "subset_mean.cl").read_text()
GROUP = 256  # as in the kernel

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
generator = ThreefryGenerator(queue.context)  # once: each compiles a kernel of its own
groups = 8 * device.max_compute_units  # 8 × 256 work-items fill a compute unit of an NVIDIA GPU


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return cl.array.to_device(queue, np.array(np.nan))
    # From the seed's key and the first counter on, at every call. Each fill_normal moves the counter past its samples.
    generator.key = ThreefryGenerator(queue.context, seed=seed).key
    generator.counter = [0, 0, 0, 0]
    samples = cl.array.empty(queue, min(chunk, rows) * min(chunk, columns), np.float64, allocator=pool)
    partial = cl.array.zeros(queue, groups, np.float64, allocator=pool)
    result = cl.array.empty(queue, (), np.float64, allocator=pool)
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = np.int64(min(chunk, rows - row)), np.int64(min(chunk, columns - column))
            first = np.int64(row % 2), np.int64(column % 2)
            generator.fill_normal(samples[: shape[0] * shape[1]], mu=10, sigma=1)  # the queue runs in order
            add_subset(queue, (groups * GROUP,), (GROUP,), samples.data, *shape, *first, partial.data)
    mean(queue, (GROUP,), (GROUP,), partial.data, np.int64(groups), np.int64(count), result.data)
    return result


def wait(mean):
    queue.finish()


def download(mean):
    return float(mean.get())


if __name__ == "__main__":
    result = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(result - 11) < 6 / 2_000, result  # six standard errors of 2,000 × 2,000 samples
    print(f"random_subset_mean, PyOpenCL on {device.name.strip()}: 4,000 × 4,000 samples, all right")
