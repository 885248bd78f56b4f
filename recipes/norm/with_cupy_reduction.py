"""Norm of an array in CuPy: its ReductionKernel, which makes one kernel of four expressions.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/user_guide/kernel.html#reduction-kernels
"""

import cupy as cp
import numpy as np

root_of_sum = cp.ReductionKernel(
    "float32 x",
    "float32 norm",
    map_expr="x * x",
    reduce_expr="a + b",
    post_map_expr="norm = sqrt(a)",
    identity="0",
    name="root_of_sum",
)


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float32, order="C"), blocking=True) for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return root_of_sum(x)


def wait(norm):
    cp.cuda.get_current_stream().synchronize()


def download(norm):
    return cp.asnumpy(norm)


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, CuPy's ReductionKernel: 1,000,003 elements, all right")
