"""Launch a function of 1, 4 or 16 arguments in JAX, which returns new arrays in the memory of the old ones.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/buffer_donation.html
Follows: https://docs.jax.dev/en/latest/aot.html
"""

import jax
import jax.numpy as jnp


def add(*arrays):
    return tuple(x + 1 for x in arrays)


kernels = {n: jax.jit(add, donate_argnums=range(n)) for n in (1, 4, 16)}


def zeros(n):
    return jax.block_until_ready(tuple(jnp.zeros(1) for _ in range(n)))


def add_one(arrays):
    return kernels[len(arrays)](*arrays)


def prepared(arrays):
    compiled = kernels[len(arrays)].lower(*arrays).compile()

    def replay():
        nonlocal arrays
        arrays = compiled(*arrays)
        return arrays

    return replay


def wait(arrays):
    jax.block_until_ready(arrays)


def download(arrays):
    return [x.item() for x in arrays]


if __name__ == "__main__":
    arrays = add_one(zeros(4))
    arrays = prepared(arrays)()
    assert download(arrays) == [2, 2, 2, 2]
    print(f"JAX on {jax.default_backend()}: 4 arguments, all right")
