"""A time that is too short, because nothing waited for the GPU.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

No error: the clock stops when the work is queued, not when it is done.
"""

import time

import numpy as np
import pyopencl as cl
import pyopencl.array

KERNEL = """
__kernel void slow(__global float *x, const long rounds)
{
    float sum = 0;
    for (long i = 0; i < rounds; i++)
        sum = sum * 0.5f + 1;
    x[0] = sum;
}
"""

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
queue = cl.CommandQueue(cl.Context(devices[:1]))
kernel = cl.Kernel(cl.Program(queue.context, KERNEL).build(), "slow")
x = cl.array.zeros(queue, 1, np.float32)


def work():
    kernel(queue, (1,), (1,), x.data, np.int64(150_000_000))


work()
queue.finish()  # the first launch compiles

# What goes wrong: a launch returns at once.
start = time.perf_counter()
work()
launched = time.perf_counter() - start
queue.finish()

# The fix: wait inside the timed part. CuPy: cupy.cuda.get_current_stream().synchronize(); PyTorch:
# torch.cuda.synchronize(); Numba: cuda.synchronize(); PyCUDA: its context's synchronize().
start = time.perf_counter()
work()
queue.finish()
done = time.perf_counter() - start
assert launched < done / 2, (launched, done)
np.testing.assert_allclose(x.get(), 2)
print(f"launched after {launched * 1e3:.3f} ms, done after {done * 1e3:.1f} ms")
