"""Copy an array from one GPU to another: directly, and through the host.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
"""

import cupy as cp
import cupyx
import numpy as np


def array(n, device):
    with cp.cuda.Device(device):
        return cp.empty(n, np.float32)


def direct(x, out):
    """CuPy enables peer access. Where there is none, the driver takes the way through the host."""
    cp.copyto(out, x)
    cp.cuda.get_current_stream().synchronize()


def through_host(x, out, host):
    """``host``: a page-locked array of the same size."""
    with x.device:
        x.get(out=host)
    with out.device:
        out.set(host)
        cp.cuda.get_current_stream().synchronize()


def main():
    if cp.cuda.runtime.getDeviceCount() < 2:
        return "one GPU: nothing to copy to"
    values = np.random.default_rng(0).standard_normal(5_000_011, np.float32)
    x, out = array(values.size, 0), array(values.size, 1)
    for copy in (direct, lambda x, out: through_host(x, out, cupyx.empty_pinned(x.size, np.float32))):
        x.set(values)
        with out.device:
            out.fill(0)
        copy(x, out)
        np.testing.assert_array_equal(out.get(), values)
    return "between GPUs: 5,000,011 elements, all right"


if __name__ == "__main__":
    print(main())
