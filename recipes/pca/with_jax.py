"""PCA in JAX: the eigenvectors of the covariance matrix, jitted, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.numpy.linalg.eigh.html
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.enable_x64.html

JAX takes three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

import jax
import jax.numpy as jnp
import numpy as np

COMPONENTS = 10


@jax.jit  # compiled at its first call, and again for each new shape
def fit(samples):
    x = samples - samples.mean(axis=0)
    variances, vectors = jnp.linalg.eigh(x.T @ x / (len(x) - 1))
    order = slice(None, -COMPONENTS - 1, -1)  # eigh has the smallest first
    variances, components = jnp.maximum(variances[order], 0), vectors[:, order].T
    # An eigenvector may point either way: scikit-learn makes the largest coefficient positive.
    largest = jnp.take_along_axis(components, jnp.abs(components).argmax(axis=1)[:, None], axis=1)
    return jnp.column_stack((variances, components * jnp.sign(largest)))


def upload(*arrays):
    # Without enable_x64, JAX makes float32 of float64. As a context it holds for these lines in this thread only;
    # jax.config.update("jax_enable_x64", True) would change the rest of the program.
    with jax.enable_x64(True):
        # jnp.array copies; jax.device_put keeps NumPy's own memory on a CPU, even with may_alias=False (JAX 0.11). To a
        # GPU, the copy goes on behind, while the caller may fill its array anew.
        return jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float64, order="C")) for x in arrays))


def pca(samples):
    if samples.ndim != 2 or min(samples.shape) < COMPONENTS or samples.dtype != np.float64:
        raise ValueError(
            f"pca takes a float64 array of at least {COMPONENTS} rows and {COMPONENTS} columns, not"
            f" {samples.dtype} {samples.shape}"
        )
    with jax.enable_x64(True):
        return fit(samples)


def wait(fitted):
    fitted.block_until_ready()


def download(fitted):
    return np.asarray(fitted)  # read-only: on a CPU it is the result's own memory, which never changes


if __name__ == "__main__":
    samples = np.random.default_rng(0).standard_normal((10_007, 20)).cumsum(axis=1) + 1
    fitted = download(pca(*upload(samples)))
    axes = fitted[:, 1:]
    # What the samples are along the components has these variances, and no correlation.
    np.testing.assert_allclose(np.cov(samples @ axes.T, rowvar=False), np.diag(fitted[:, 0]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(axes @ axes.T, np.eye(COMPONENTS), rtol=0, atol=1e-12)
    print(f"pca, JAX on {jax.default_backend()}: 10,007×20, all right")
