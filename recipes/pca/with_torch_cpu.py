"""PCA in PyTorch on the CPU: the eigenvectors of the covariance matrix, by its BLAS and LAPACK.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigh.html

From host arrays, round_trip() computes where they are: torch.from_numpy shares an array's memory. PyTorch works with as
many threads as torch.get_num_threads() says, unless the arrays are small.
"""

import numpy as np
import torch

COMPONENTS = 10


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float64, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cpu").reshape(x.shape) for x in host)


def pca(samples):
    if samples.ndim != 2 or min(samples.shape) < COMPONENTS or samples.dtype != torch.float64:
        raise ValueError(
            f"pca takes a float64 array of at least {COMPONENTS} rows and {COMPONENTS} columns, not"
            f" {samples.dtype} {tuple(samples.shape)}"
        )
    x = samples - samples.mean(dim=0)
    variances, vectors = torch.linalg.eigh(x.T @ x / (len(x) - 1))  # the smallest first
    variances, components = variances.flip(0)[:COMPONENTS].clamp(min=0), vectors.T.flip(0)[:COMPONENTS]
    # An eigenvector may point either way: scikit-learn makes the largest coefficient positive.
    largest = components.gather(1, components.abs().argmax(dim=1, keepdim=True))
    return torch.column_stack((variances, components * largest.sign()))


def wait(fitted):
    pass  # the CPU is done when the call returns


def download(fitted):
    return fitted.numpy()


def shared(x):
    """The array as a tensor in the same memory; a copy if it is read-only, of which PyTorch warns, or not in order."""
    x = np.asarray(x, np.float64, order="C")
    return torch.from_numpy((x if x.flags.writeable else x.copy()).ravel()).reshape(x.shape)


def round_trip(samples):
    return pca(shared(samples)).numpy()


if __name__ == "__main__":
    samples = np.random.default_rng(0).standard_normal((10_007, 20)).cumsum(axis=1) + 1
    for fitted in (download(pca(*upload(samples))), round_trip(samples)):
        axes = fitted[:, 1:]
        # What the samples are along the components has these variances, and no correlation.
        np.testing.assert_allclose(np.cov(samples @ axes.T, rowvar=False), np.diag(fitted[:, 0]), rtol=0, atol=1e-10)
        np.testing.assert_allclose(axes @ axes.T, np.eye(COMPONENTS), rtol=0, atol=1e-12)
    print("pca, PyTorch on the CPU: 10,007×20, all right")
