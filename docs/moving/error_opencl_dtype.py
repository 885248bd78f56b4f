"""The wrong type is passed to a kernel: PyOpenCL.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

LogicError: clSetKernelArg failed: INVALID_ARG_SIZE - when processing arg#3 (1-based):
LogicError: Kernel.set_arg failed: INVALID_VALUE - when processing arg#3 (1-based): invalid kernel argument
"""

import numpy as np
import pyopencl as cl
import pyopencl.array

KERNEL = """
__kernel void twice(__global const float *a, __global float *c, const long n)
{
    long i = get_global_id(0);
    if (i < n)
        c[i] = 2 * a[i];
}
"""

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
queue = cl.CommandQueue(cl.Context(devices[:1]))
kernel = cl.Kernel(cl.Program(queue.context, KERNEL).build(), "twice")
x = np.arange(1_000.0)
c = cl.array.empty(queue, x.size, np.float32)


def said(call):
    try:
        call()
    except cl.LogicError as error:
        return f"LogicError: {error}".strip()
    raise AssertionError("no error")


# What goes wrong: a number whose size differs from the kernel's long, and a number whose size is unknown.
a = cl.array.to_device(queue, x.astype(np.float32))
assert said(lambda: kernel(queue, x.shape, None, a.data, c.data, np.int32(x.size))) in __doc__
assert said(lambda: kernel(queue, x.shape, None, a.data, c.data, x.size)) in __doc__

# And, without any message, an array of another dtype: a buffer is only bytes, and the kernel reads them as float.
wrong = cl.array.to_device(queue, x)  # NumPy's float64
kernel(queue, x.shape, None, wrong.data, c.data, np.int64(x.size))
assert not np.array_equal(c.get(), 2 * x)

# The fix: set the dtype when you upload the data, pass numbers in the kernel's own types, and check what others pass.
a = cl.array.to_device(queue, np.asarray(x, np.float32))
assert a.dtype == c.dtype == np.float32
kernel(queue, x.shape, None, a.data, c.data, np.int64(x.size))
np.testing.assert_array_equal(c.get(), 2 * x)
print(f"{x.size:,} elements, all right")
