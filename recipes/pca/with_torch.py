"""PCA in PyTorch: the eigenvectors of the covariance matrix, by cuBLAS and cuSOLVER on the GPU where there is one.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigh.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.empty.html

torch.linalg.eigh waits for the GPU, to see whether its iterations have converged.
"""

import numpy as np
import torch

COMPONENTS = 10
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pinned(shape):
    return torch.empty(shape, dtype=torch.float64, device="cpu", pin_memory=device.type == "cuda").numpy()


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float64, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device=device).reshape(x.shape) for x in host)


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
    if device.type == "cuda":
        torch.cuda.synchronize()


def download(fitted):
    return fitted.cpu().numpy()


if __name__ == "__main__":
    samples = np.random.default_rng(0).standard_normal((10_007, 20)).cumsum(axis=1) + 1
    fitted = download(pca(*upload(samples)))
    axes = fitted[:, 1:]
    # What the samples are along the components has these variances, and no correlation.
    np.testing.assert_allclose(np.cov(samples @ axes.T, rowvar=False), np.diag(fitted[:, 0]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(axes @ axes.T, np.eye(COMPONENTS), rtol=0, atol=1e-12)
    print(f"pca, PyTorch on {device.type}: 10,007×20, all right")
