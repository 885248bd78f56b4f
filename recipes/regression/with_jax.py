"""Ridge regression in JAX: the normal equations by a Cholesky factorisation, jitted, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.scipy.linalg.solve.html
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.enable_x64.html
Math: float64, on a CPU denormals are zero (XLA sets its threads so)

JAX takes three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve

ALPHA = 1.0


@jax.jit  # compiled at its first call, and again for each new shape
def ridge(samples, targets):
    centre, middle = samples.mean(axis=0), targets.mean()
    x, y = samples - centre, targets - middle  # the intercept is not penalised
    coefficients = solve(x.T @ x + ALPHA * jnp.eye(x.shape[1]), x.T @ y, assume_a="pos")
    return jnp.append(coefficients, middle - centre @ coefficients)


def upload(*arrays):
    # Without enable_x64, JAX makes float32 of float64. As a context it holds for these lines in this thread only;
    # jax.config.update("jax_enable_x64", True) would change the rest of the program.
    with jax.enable_x64(True):
        # jnp.array copies; jax.device_put keeps NumPy's own memory on a CPU, even with may_alias=False (JAX 0.11). To a
        # GPU, the copy goes on behind, while the caller may fill its array anew.
        return jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float64, order="C")) for x in arrays))


def regression(samples, targets):
    right = samples.ndim == 2 and samples.size and targets.shape == samples.shape[:1]
    if not (right and samples.dtype == targets.dtype == np.float64):
        raise ValueError(
            f"regression takes float64 arrays of N×P and N with at least one row and one column, not"
            f" {samples.dtype} {samples.shape} and {targets.dtype} {targets.shape}"
        )
    with jax.enable_x64(True):
        return ridge(samples, targets)


def wait(fitted):
    fitted.block_until_ready()


def download(fitted):
    return np.asarray(fitted)  # read-only: on a CPU it is the result's own memory, which never changes


if __name__ == "__main__":
    samples, noise = np.random.default_rng(0).normal(1, 1, (10_007, 20)), np.sin(np.arange(10_007))
    targets = samples @ np.linspace(-1, 1, 20) + 3 + noise
    *coefficients, intercept = fitted = download(regression(*upload(samples, targets)))
    rest = targets - samples @ coefficients - intercept
    # The derivative of the penalised sum of squares by each coefficient, and by the intercept, is 0.
    np.testing.assert_allclose([*rest @ samples, rest.sum()], [*ALPHA * fitted[:-1], 0], rtol=0, atol=1e-7)
    print(f"regression, JAX on {jax.default_backend()}: 10,007×20, all right")
