"""Multiply two arrays in Warp: a kernel in Python, compiled for the GPU where there is one, and else for the CPU.

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
def kernel(a: wp.array[wp.float32], b: wp.array[wp.float32], c: wp.array[wp.float32]):
    i = wp.tid()  # 32-bit, as the sizes of Warp's arrays are
    c[i] = a[i] * b[i]


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


def line(x):  # a view of one axis, for which the kernel is; flatten() would refuse such strides
    return x if x.ndim == 1 else wp.array(ptr=x.ptr, shape=x.size, dtype=wp.float32, device=x.device)


def flat(a, b, out):
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == wp.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype.__name__} {a.shape} and {b.dtype.__name__}"
            f" {b.shape} into {out.dtype.__name__} {out.shape}"
        )
    if not all(map(fits, (a, b, out))) or out.size >= 2**31:
        raise ValueError("multiply takes C-contiguous arrays of fewer than 2**31 elements, as upload() makes them")
    if not a.device == b.device == out.device:  # Warp itself does not look, and the kernel would read anywhere
        raise ValueError(f"multiply takes arrays on one device, not on {a.device}, {b.device} and {out.device}")
    return [line(x) for x in (a, b, out)]


def multiply(a, b, out=None):
    out = wp.empty_like(a) if out is None else out
    wp.launch(kernel, dim=out.size, inputs=flat(a, b, out), device=out.device)
    return out


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out = wp.empty_like(a) if out is None else out
    command = wp.launch(kernel, dim=out.size, inputs=flat(a, b, out), device=out.device, record_cmd=True)
    arrays = a, b, out  # the command has only their addresses

    def replay():
        if command:  # None, if there is nothing to do
            command.launch()
        return arrays[2]

    return replay


def wait(c):
    wp.synchronize_device(c.device)


def download(c, out=None):
    if out is None:
        return c.numpy()
    if not (out.shape == c.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"download fills writeable C-ordered float32 {c.shape}, not {out.dtype} {out.shape}")
    wp.copy(wp.array(out, dtype=wp.float32, device="cpu", copy=False), c)
    wp.synchronize_device(c.device)
    return out


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, Warp on {wp.get_device()}: 1,000,003 elements, all right")
