"""Launch a kernel of 1, 4 or 16 arguments in CuPy.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/user_guide/kernel.html#raw-kernels
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.cuda.Graph.html
"""

from pathlib import Path

import cupy as cp

source = Path(__file__).with_name("add_one.cu").read_text()
kernels = {n: cp.RawKernel(source, f"add_{n}") for n in (1, 4, 16)}


def zeros(n):
    return tuple(cp.zeros(1, cp.float32) for _ in range(n))


def add_one(arrays):
    kernels[len(arrays)]((1,), (1,), arrays)
    return arrays


def prepared(arrays):
    add_one(zeros(len(arrays)))  # the first launch compiles the kernel, which a capture may not
    with cp.cuda.Stream(non_blocking=True) as stream:  # the default stream cannot be captured
        stream.begin_capture()
        add_one(arrays)  # recorded, not run
        graph = stream.end_capture()

    def replay():
        graph.launch()
        return arrays

    return replay


def wait(arrays):
    cp.cuda.get_current_stream().synchronize()


def download(arrays):
    return [x.get()[0] for x in arrays]


if __name__ == "__main__":
    arrays = add_one(zeros(4))
    arrays = prepared(arrays)()
    assert download(arrays) == [2, 2, 2, 2]
    print("CuPy: 4 arguments, all right")
