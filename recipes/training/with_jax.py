"""Training in JAX: value_and_grad of the loss, in a jitted step, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/automatic-differentiation.html
Follows: https://docs.jax.dev/en/latest/jit-compilation.html
Math: float32 (precision="highest"; JAX's default on a GPU is TF32)

A step is one compiled program. Python calls it for each batch, and waits for none of the results. All steps in one
program, by jax.lax.scan, take ten times as long on a CPU, where convolutions within a loop are slow.

JAX takes three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

SHAPES = ((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (128, 9_216), (128,), (10, 128), (10,))
ENDS = np.cumsum([math.prod(shape) for shape in SHAPES])
COUNT = int(ENDS[-1])


def outputs_of(parameters, images):
    w1, b1, w2, b2, w3, b3, w4, b4 = parameters
    x = jax.lax.conv(images[:, None], w1, (1, 1), "VALID", precision="highest")
    x = jax.nn.relu(x + b1[:, None, None])
    x = jax.lax.conv(x, w2, (1, 1), "VALID", precision="highest")
    x = jax.nn.relu(x + b2[:, None, None])
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = jax.nn.relu(jnp.matmul(x.reshape(len(x), -1), w3.T, precision="highest") + b3)
    return jnp.matmul(x, w4.T, precision="highest") + b4


def loss_of(parameters, images, target):
    outputs = outputs_of(parameters, images)
    right = jnp.count_nonzero(outputs.argmax(axis=1) == target.argmax(axis=1))
    return -jnp.sum(target * jax.nn.log_softmax(outputs)) / len(target), right


def adadelta(x, gradient, square, change):
    square += 0.1 * (gradient**2 - square)
    delta = jnp.sqrt((change + 1e-6) / (square + 1e-6)) * gradient
    change += 0.1 * (delta**2 - change)
    return x - delta, square, change


@jax.jit  # compiled at its first call, and again for each new shape
def step(number, parameters, squares, changes, result, images, targets):
    (loss, right), gradients = jax.value_and_grad(loss_of, has_aux=True)(parameters, images[number], targets[number])
    updated = map(adadelta, parameters, gradients, squares, changes)
    return *zip(*updated, strict=True), result.at[number].set(loss).at[-1].add(right)


def upload(*arrays):
    # jnp.array copies; jax.device_put keeps NumPy's own memory on a CPU, even with may_alias=False (JAX 0.11). To a
    # GPU, the copy goes on behind, while the caller may fill its array anew.
    return jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float32, order="C")) for x in arrays))


def training(images, targets, weights):
    given, lead = (images, targets, weights), targets.shape[:2]
    right = images.shape == (*lead, 28, 28) and targets.shape == (*lead, 10) and weights.shape == (COUNT,)
    if not (right and images.size and all(x.dtype == np.float32 for x in given)):
        found = " and ".join(f"{x.dtype} {x.shape}" for x in given)
        raise ValueError(f"training takes float32 arrays of S×B×28×28, S×B×10 and {COUNT}, not {found}")
    parts = jnp.split(weights, ENDS[:-1])
    parameters = tuple(x.reshape(shape) for x, shape in zip(parts, SHAPES, strict=True))
    zeros = tuple(jnp.zeros_like(x) for x in parameters)
    state = parameters, zeros, zeros, jnp.zeros(len(images) + 1, np.float32)
    for number in range(len(images)):
        state = step(number, *state, images, targets)
    return state[-1].at[-1].divide(lead[0] * lead[1])


def wait(result):
    result.block_until_ready()


def download(result):
    return np.asarray(result)  # read-only: on a CPU it is the result's own memory, which never changes


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    sides = np.repeat([1 / 3, 288**-0.5, 1 / 96, 128**-0.5], [320, 18_496, 1_179_776, 1_290])
    classes, weights = rng.integers(0, 10, (25, 8)), rng.uniform(-sides, sides)
    images = rng.normal(0, 0.5, (25, 8, 28, 28))
    images[*np.indices(classes.shape), 2 * classes] += 2  # a bright line, which tells the class
    *losses, accuracy = download(training(*upload(images, np.eye(10)[classes], weights)))
    assert abs(losses[0] - np.log(10)) < 0.2 and np.mean(losses[-5:]) < 0.5 < accuracy, (losses, accuracy)
    print(f"training, JAX on {jax.default_backend()}: {accuracy:.0%} of 200 images, all right")
