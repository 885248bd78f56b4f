"""PCA in scikit-learn on PyTorch's tensors: PCA dispatches to them, on the GPU where there is one.

Framework: scikit-learn
Runs on: NVIDIA GPU or CPU
Install: pip install scikit-learn torch
Follows: https://scikit-learn.org/stable/modules/array_api.html

What scikit-learn's estimators do by the Array API, they do on the device of the array that they are given: PCA with the
solvers "covariance_eigh" and "full", and "randomized" if it is told to normalise by "QR". SciPy must support the Array
API, too, which it does if the environment variable SCIPY_ARRAY_API is 1 before it is imported: gpu-cookbook sets it so.
"covariance_eigh" loses digits of samples far from 0, since it subtracts the means from the sums of products.
"""

import numpy as np
import torch
from sklearn import config_context
from sklearn.decomposition import PCA

COMPONENTS = 10
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


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
    with config_context(array_api_dispatch=True):  # for these lines in this thread only
        model = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(samples)
    return torch.column_stack((model.explained_variance_, model.components_))


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
    print(f"pca, scikit-learn and PyTorch on {device.type}: 10,007×20, all right")
