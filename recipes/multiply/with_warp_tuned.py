"""Multiply two arrays in Warp, tuned: a kernel in Python with loads of 16 bytes, which two functions in C++ make.

Framework: Warp
Runs on: NVIDIA GPU or CPU
Install: pip install warp-lang
Shapes: 1 to 4 dimensions, fewer than 2**31 elements

Warp prints what it compiles, unless wp.config.log_level = wp.LOG_WARNING, and keeps it where WARP_CACHE_PATH says.

Each thread loads four elements at once, 16 bytes, which Warp by itself loads in four parts, and no thread loops:
736 µs, not 1.03 ms, for 2**28 elements on an H200. It is over 60 lines because Warp checks few of a kernel's arguments.
"""

import numpy as np
import warp as wp

FOUR = "struct alignas(16) Four { float x, y, z, w; };"  # the compiler may then load it, or store it, at once


@wp.func_native(f"{FOUR} const Four x = *(const Four *)(a.data + i); return {{x.x, x.y, x.z, x.w}};")
def load(a: wp.array[wp.float32], i: int) -> wp.vec4: ...


@wp.func_native(f"{FOUR} *(Four *)(a.data + i) = {{x[0], x[1], x[2], x[3]}};")
def store(a: wp.array[wp.float32], i: int, x: wp.vec4): ...


@wp.kernel(enable_backward=False, grid_stride=False)
def kernel(a: wp.array[wp.float32], b: wp.array[wp.float32], c: wp.array[wp.float32], end_of_fours: int):
    i = 4 * wp.tid()  # 32-bit, as the sizes of Warp's arrays are
    if i < end_of_fours:
        store(c, i, wp.cw_mul(load(a, i), load(b, i)))
    else:
        for j in range(wp.min(4, c.shape[0] - i)):
            c[i + j] = a[i + j] * b[i + j]


def upload(*arrays):
    for x in arrays:
        if not 1 <= np.ndim(x) <= 4 or np.size(x) >= 2**31:
            raise ValueError(f"Warp takes 1 to 4 dimensions and, here, fewer than 2**31 elements, not {np.shape(x)}")
    there = tuple(wp.array(np.asarray(x, np.float32, order="C"), dtype=wp.float32) for x in arrays)
    wp.synchronize_device()  # from a page-locked array the copy goes on after the call, and the caller may change it
    return there


def fits(x):  # another library's array may have any strides along axes of one element, which say nothing
    c_order = (n == 1 or x.strides[i] == 4 * np.prod(x.shape[i + 1 :]) for i, n in enumerate(x.shape))
    return x.is_contiguous or x.size == 0 or all(c_order)


def line(x):  # a view of one axis, for which the kernel is; flatten() would refuse such strides
    return x if x.ndim == 1 else wp.array(ptr=x.ptr, shape=x.size, dtype=wp.float32, device=x.device)


def launch(a, b, out, record=False):
    out = wp.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == wp.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype.__name__} {a.shape} and {b.dtype.__name__}"
            f" {b.shape} into {out.dtype.__name__} {out.shape}"
        )
    if not all(map(fits, (a, b, out))) or out.size >= 2**31:
        raise ValueError("multiply takes C-contiguous arrays of fewer than 2**31 elements, as upload() makes them")
    if not a.device == b.device == out.device:  # Warp itself does not look, and the kernel would read anywhere
        raise ValueError(f"multiply takes arrays on one device, not on {a.device}, {b.device} and {out.device}")
    # A load of 16 bytes needs an address that is a multiple of 16, and a slice such as a[1:] may start elsewhere.
    inputs = [*map(line, (a, b, out)), 0 if out.size and (a.ptr | b.ptr | out.ptr) % 16 else out.size // 4 * 4]
    return out, wp.launch(kernel, -(-out.size // 4), inputs, device=out.device, record_cmd=record)


def multiply(a, b, out=None):
    return launch(a, b, out)[0]


def prepared(a, b, out=None):
    """Return a function without arguments: each call multiplies what a and b then hold, and returns the same out."""
    out, command = launch(a, b, out, record=True)

    def replay(kept=(a, b)):  # the command has their addresses, which do not keep them alive
        if command:  # None, if there is nothing to do
            command.launch()
        return out

    return replay


def wait(c):
    wp.synchronize_device(c.device)


def download(c):
    return c.numpy()


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, Warp tuned on {wp.get_device()}: 1,000,003 elements, all right")
