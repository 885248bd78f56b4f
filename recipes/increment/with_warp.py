"""Add one to an array in place in Warp: a kernel in Python, compiled for the GPU where there is one, else for the CPU.

Framework: Warp
Runs on: NVIDIA GPU or CPU
Install: pip install warp-lang
Follows: https://nvidia.github.io/warp/stable/user_guide/basics.html
Follows: https://nvidia.github.io/warp/stable/user_guide/runtime.html
Shapes: 1 to 4 dimensions, fewer than 2**31 elements

When Warp is first used, it prints what it finds, and then each module that it compiles, unless the program sets
wp.config.log_level = wp.LOG_WARNING. It keeps compiled kernels in ~/.cache/warp, or where WARP_CACHE_PATH says.
"""

import math

import numpy as np
import warp as wp


@wp.kernel(enable_backward=False)
def kernel(a: wp.array[wp.float32]):
    i = wp.tid()  # 32-bit, as the sizes of Warp's arrays are
    a[i] = a[i] + 1.0


def pinned(shape):
    size = int(np.prod(shape))
    return wp.empty(size, dtype=wp.float32, device="cpu", pinned=wp.is_cuda_available()).numpy().reshape(shape)


def upload(*arrays):
    for x in arrays:
        if not 1 <= np.ndim(x) <= 4 or np.size(x) >= 2**31:
            raise ValueError(f"Warp takes 1 to 4 dimensions and, here, fewer than 2**31 elements, not {np.shape(x)}")
    there = tuple(wp.array(np.asarray(x, np.float32, order="C"), dtype=wp.float32) for x in arrays)
    wp.synchronize_device()  # from a page-locked array the copy goes on after the call, and the caller may change it
    return there


def fits(x):  # another library's array may have any strides along axes of one element, which say nothing
    c_order = (n == 1 or x.strides[i] == 4 * math.prod(x.shape[i + 1 :]) for i, n in enumerate(x.shape))
    return x.is_contiguous or x.size == 0 or all(c_order)


def flat(a):
    if a.dtype != wp.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype.__name__} {a.shape}")
    if not fits(a) or a.size >= 2**31:
        raise ValueError("increment takes a C-contiguous array of fewer than 2**31 elements, as upload() makes it")
    # A view of one axis, for which the kernel is; flatten() would refuse such strides.
    return a if a.ndim == 1 else wp.array(ptr=a.ptr, shape=a.size, dtype=wp.float32, device=a.device)


def increment(a):
    wp.launch(kernel, dim=a.size, inputs=[flat(a)], device=a.device)
    return a


def prepared(a):
    """Return a function without arguments: each call adds one to what a then holds, and returns a."""
    command = wp.launch(kernel, dim=a.size, inputs=[flat(a)], device=a.device, record_cmd=True)

    def replay():
        if command:  # None, if there is nothing to do
            command.launch()
        return a

    return replay


def wait(a):
    wp.synchronize_device(a.device)


def download(a, out=None):
    if out is None:
        return a.numpy()
    if not (out.shape == a.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {a.shape}, not {out.dtype} {out.shape}")
    wp.copy(wp.array(out, dtype=wp.float32, device="cpu", copy=False), a)
    wp.synchronize_device(a.device)
    return out


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print(f"increment, Warp on {wp.get_device()}: 1,000,003 elements, all right")
