"""Launch a kernel of 1, 4 or 16 arguments in cuda.core.

Framework: cuda.core
Runs on: NVIDIA GPU
Install: pip install "cuda-core[cu13]"
Follows: https://nvidia.github.io/cuda-python/cuda-core/latest/getting-started.html
Follows: https://nvidia.github.io/cuda-python/cuda-core/latest/generated/cuda.core.graph.GraphBuilder.html
"""

from pathlib import Path

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, Program, StreamOptions, launch

device = Device()
device.set_current()
stream = device.create_stream(options=StreamOptions(nonblocking=False))  # in order with other libraries' default stream
code = Program(Path(__file__).with_name("add_one.cu").read_text(), "c++").compile("cubin")
kernels = {n: code.get_kernel(f"add_{n}") for n in (1, 4, 16)}
one = LaunchConfig(grid=1, block=1)


def zeros(n):
    buffers = tuple(device.allocate(4, stream=stream) for _ in range(n))
    for x in buffers:
        x.fill(0, stream=stream)
    return buffers


def add_one(arrays):
    launch(stream, one, kernels[len(arrays)], *arrays)
    return arrays


def prepared(arrays):
    add_one(zeros(len(arrays)))  # the first launch loads the kernel, which a graph that is being built may not
    builder = device.create_graph_builder().begin_building()
    launch(builder, one, kernels[len(arrays)], *arrays)  # recorded, not run
    graph = builder.end_building().complete()

    def replay():
        graph.launch(stream)
        return arrays

    return replay


def wait(arrays):
    stream.sync()


def download(arrays):
    values = np.empty((len(arrays), 1), np.float32)
    for x, value in zip(arrays, values, strict=True):
        x.copy_to(Buffer.from_handle(value.ctypes.data, value.nbytes, owner=value), stream=stream)
    stream.sync()
    return [value[0] for value in values]


if __name__ == "__main__":
    arrays = add_one(zeros(4))
    arrays = prepared(arrays)()
    assert download(arrays) == [2, 2, 2, 2]
    print("cuda.core: 4 arguments, all right")
