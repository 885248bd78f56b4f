"""Sizes that do not fit: PyOpenCL.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

LogicError: clEnqueueNDRangeKernel failed: INVALID_WORK_GROUP_SIZE
LogicError: clEnqueueWriteBuffer failed: INVALID_VALUE
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
GROUP = 256

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
queue = cl.CommandQueue(cl.Context(devices[:1]))
kernel = cl.Kernel(cl.Program(queue.context, KERNEL).build(), "twice")
x = np.arange(1_000, dtype=np.float32)
a = cl.array.to_device(queue, x)
c = cl.array.empty_like(a)


def said(call):
    try:
        call()
    except cl.LogicError as error:
        return f"LogicError: {error}"
    raise AssertionError("no error")


# What goes wrong: 1,000 work-items are not a whole number of groups of 256, and 2,000 elements do not fit into 1,000.
assert said(lambda: kernel(queue, (x.size,), (GROUP,), a.data, c.data, np.int64(x.size))) in __doc__
assert said(lambda: cl.enqueue_copy(queue, a.data, np.zeros(2_000, np.float32))) in __doc__

# The fix: round up, and let the kernel skip the surplus work-items: that is what its n is for.
work_items = (x.size + GROUP - 1) // GROUP * GROUP
kernel(queue, (work_items,), (GROUP,), a.data, c.data, np.int64(x.size))
np.testing.assert_array_equal(c.get(), 2 * x)
print(f"{work_items:,} work-items for {x.size:,} elements")
