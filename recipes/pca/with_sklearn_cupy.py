"""PCA in scikit-learn on CuPy's arrays: PCA dispatches to them.

Framework: scikit-learn
Runs on: NVIDIA GPU
Install: pip install scikit-learn "cupy-cuda13x[ctk]"
Follows: https://scikit-learn.org/stable/modules/array_api.html

What scikit-learn's estimators do by the Array API, they do on the device of the array that they are given: PCA with the
solvers "covariance_eigh" and "full", and "randomized" if it is told to normalise by "QR". SciPy must support the Array
API, too, which it does if the environment variable SCIPY_ARRAY_API is 1 before it is imported: gpu-cookbook sets it so.
"covariance_eigh" loses digits of samples far from 0, since it subtracts the means from the sums of products.
"""

import cupy as cp
import numpy as np
from sklearn import config_context
from sklearn.decomposition import PCA

COMPONENTS = 10


def upload(*arrays):
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(cp.asarray(np.asarray(x, np.float64, order="C"), blocking=True) for x in arrays)


def pca(samples):
    if samples.ndim != 2 or min(samples.shape) < COMPONENTS or samples.dtype != np.float64:
        raise ValueError(
            f"pca takes a float64 array of at least {COMPONENTS} rows and {COMPONENTS} columns, not"
            f" {samples.dtype} {samples.shape}"
        )
    with config_context(array_api_dispatch=True):  # for these lines in this thread only
        model = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(samples)
    return cp.column_stack((model.explained_variance_, model.components_))


def wait(fitted):
    cp.cuda.get_current_stream().synchronize()


def download(fitted):
    return cp.asnumpy(fitted)


if __name__ == "__main__":
    samples = np.random.default_rng(0).standard_normal((10_007, 20)).cumsum(axis=1) + 1
    fitted = download(pca(*upload(samples)))
    axes = fitted[:, 1:]
    # What the samples are along the components has these variances, and no correlation.
    np.testing.assert_allclose(np.cov(samples @ axes.T, rowvar=False), np.diag(fitted[:, 0]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(axes @ axes.T, np.eye(COMPONENTS), rtol=0, atol=1e-12)
    print("pca, scikit-learn and CuPy: 10,007×20, all right")
