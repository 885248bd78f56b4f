"""Mean of every other row and column, plus one, in PyOpenCL: two OpenCL C kernels, on a GPU or on the CPU.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"
Follows: https://documen.tician.de/pyopencl/
Follows: https://documen.tician.de/pyopencl/runtime_memory.html#mapping-memory-into-host-address-space

Calls from several threads must take turns: a kernel of OpenCL has one set of arguments for all of them.
"""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

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
groups = 8 * device.max_compute_units  # 8 × 256 work-items fill a compute unit of an NVIDIA GPU


def pinned(shape):
    size, flags = int(np.prod(shape)), cl.map_flags.READ | cl.map_flags.WRITE
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR, 8 * (size or 1))
    memory, _ = cl.enqueue_map_buffer(queue, buffer, flags, 0, size or 1, np.float64)  # no bytes are an error
    return memory[:size].reshape(shape)


def upload(*arrays):
    return tuple(cl.array.to_device(queue, np.asarray(x, np.float64, order="C")) for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if not (x.flags.c_contiguous and x.offset == 0):
        raise ValueError("subset_mean takes a C-contiguous array, as upload() makes it")
    if x.size == 0:
        return cl.array.to_device(queue, np.array(np.nan))
    rows, columns = x.shape
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    partial = cl.array.zeros(queue, groups, np.float64, allocator=pool)
    result = cl.array.empty(queue, (), np.float64, allocator=pool)
    shape, first = (np.int64(rows), np.int64(columns)), (np.int64(0), np.int64(0))
    add_subset(queue, (groups * GROUP,), (GROUP,), x.data, *shape, *first, partial.data)
    mean(queue, (GROUP,), (GROUP,), partial.data, np.int64(groups), np.int64(count), result.data)
    return result


def wait(mean):
    queue.finish()


def download(mean):
    return float(mean.get())


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    result = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(result, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print(f"subset_mean, PyOpenCL on {device.name.strip()}: 333 × 1,001 elements, all right")
