"""Launch a kernel of 1, 4 or 16 arguments in cuTile, on CuPy's arrays.

Framework: cuTile
Runs on: NVIDIA GPU
Install: pip install "cuda-tile[tileiras]" "cupy-cuda13x[ctk]"
Environment: cutile
Follows: https://docs.nvidia.com/cuda/cutile-python/quickstart.html
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.cuda.Graph.html
"""

import cuda.tile as ct
import cupy as cp


@ct.kernel
def add_1(a):
    ct.store(a, (0,), ct.load(a, (0,), (1,)) + 1)


@ct.kernel
def add_4(a, b, c, d):
    ct.store(a, (0,), ct.load(a, (0,), (1,)) + 1)
    ct.store(b, (0,), ct.load(b, (0,), (1,)) + 1)
    ct.store(c, (0,), ct.load(c, (0,), (1,)) + 1)
    ct.store(d, (0,), ct.load(d, (0,), (1,)) + 1)


@ct.kernel
def add_16(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q):
    ct.store(a, (0,), ct.load(a, (0,), (1,)) + 1)
    ct.store(b, (0,), ct.load(b, (0,), (1,)) + 1)
    ct.store(c, (0,), ct.load(c, (0,), (1,)) + 1)
    ct.store(d, (0,), ct.load(d, (0,), (1,)) + 1)
    ct.store(e, (0,), ct.load(e, (0,), (1,)) + 1)
    ct.store(f, (0,), ct.load(f, (0,), (1,)) + 1)
    ct.store(g, (0,), ct.load(g, (0,), (1,)) + 1)
    ct.store(h, (0,), ct.load(h, (0,), (1,)) + 1)
    ct.store(i, (0,), ct.load(i, (0,), (1,)) + 1)
    ct.store(j, (0,), ct.load(j, (0,), (1,)) + 1)
    ct.store(k, (0,), ct.load(k, (0,), (1,)) + 1)
    ct.store(m, (0,), ct.load(m, (0,), (1,)) + 1)
    ct.store(n, (0,), ct.load(n, (0,), (1,)) + 1)
    ct.store(o, (0,), ct.load(o, (0,), (1,)) + 1)
    ct.store(p, (0,), ct.load(p, (0,), (1,)) + 1)
    ct.store(q, (0,), ct.load(q, (0,), (1,)) + 1)


kernels = {1: add_1, 4: add_4, 16: add_16}


def zeros(n):
    return tuple(cp.zeros(1, cp.float32) for _ in range(n))


def add_one(arrays):
    ct.launch(cp.cuda.get_current_stream(), (1,), kernels[len(arrays)], arrays)
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
    print("cuTile: 4 arguments, all right")
