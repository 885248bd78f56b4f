"""Launch a kernel of 1, 4 or 16 arguments in Warp.

Framework: Warp
Runs on: NVIDIA GPU or CPU
Install: pip install warp-lang
Follows: https://nvidia.github.io/warp/stable/user_guide/basics.html
Follows: https://nvidia.github.io/warp/stable/user_guide/runtime.html
"""

import warp as wp

Array = wp.array[wp.float32]


@wp.kernel(enable_backward=False)
def add_1(a: Array):
    a[0] = a[0] + 1.0


@wp.kernel(enable_backward=False)
def add_4(a: Array, b: Array, c: Array, d: Array):
    a[0] = a[0] + 1.0
    b[0] = b[0] + 1.0
    c[0] = c[0] + 1.0
    d[0] = d[0] + 1.0


@wp.kernel(enable_backward=False)
def add_16(
    a: Array,
    b: Array,
    c: Array,
    d: Array,
    e: Array,
    f: Array,
    g: Array,
    h: Array,
    i: Array,
    j: Array,
    k: Array,
    m: Array,
    n: Array,
    o: Array,
    p: Array,
    q: Array,
):
    a[0] = a[0] + 1.0
    b[0] = b[0] + 1.0
    c[0] = c[0] + 1.0
    d[0] = d[0] + 1.0
    e[0] = e[0] + 1.0
    f[0] = f[0] + 1.0
    g[0] = g[0] + 1.0
    h[0] = h[0] + 1.0
    i[0] = i[0] + 1.0
    j[0] = j[0] + 1.0
    k[0] = k[0] + 1.0
    m[0] = m[0] + 1.0
    n[0] = n[0] + 1.0
    o[0] = o[0] + 1.0
    p[0] = p[0] + 1.0
    q[0] = q[0] + 1.0


kernels = {1: add_1, 4: add_4, 16: add_16}


def zeros(n):
    return tuple(wp.zeros(1, dtype=wp.float32) for _ in range(n))


def add_one(arrays):
    wp.launch(kernels[len(arrays)], dim=1, inputs=arrays)
    return arrays


def prepared(arrays):
    command = wp.launch(kernels[len(arrays)], dim=1, inputs=arrays, record_cmd=True)

    def replay():
        command.launch()
        return arrays

    return replay


def wait(arrays):
    wp.synchronize_device()


def download(arrays):
    return [x.numpy()[0] for x in arrays]


if __name__ == "__main__":
    arrays = add_one(zeros(4))
    arrays = prepared(arrays)()
    assert download(arrays) == [2, 2, 2, 2]
    print(f"Warp on {wp.get_device()}: 4 arguments, all right")
