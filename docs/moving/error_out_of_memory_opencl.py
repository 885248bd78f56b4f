"""A buffer larger than the device allows: PyOpenCL.

Framework: PyOpenCL
Runs on: OpenCL device
Install: pip install "pyopencl[pocl]"

LogicError: create_buffer failed: INVALID_BUFFER_SIZE
"""

import numpy as np
import pyopencl as cl
import pyopencl.array

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = next((d for d in devices if d.type & cl.device_type.CPU), devices[0])
queue = cl.CommandQueue(cl.Context([device]))

# What goes wrong: a device limits the size of a buffer, often to a quarter of its memory.
try:
    cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 2 * device.global_mem_size)
except cl.LogicError as error:
    assert f"LogicError: {error}" in __doc__
else:
    raise AssertionError("no error")

# The fix: work on one part at a time, none larger than the device allows.
x = np.ones(1_000_000, np.float32)
chunk = min(300_000, device.max_mem_alloc_size // x.itemsize)
parts = (cl.array.to_device(queue, x[i : i + chunk]) for i in range(0, x.size, chunk))
twice = np.concatenate([(2 * part).get() for part in parts])
np.testing.assert_array_equal(twice, 2 * x)
print(f"{x.size:,} elements doubled in parts")
