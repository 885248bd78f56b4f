"""PCA in cuML: PCA, as in scikit-learn, on CuPy's arrays.

Framework: cuML
Runs on: NVIDIA GPU
Install: pip install cuml-cu13
Environment: rapids
Follows: https://docs.nvidia.com/cuml/latest/api/generated/cuml.decomposition.PCA/

The solver "full", which "auto" chooses too, finds the eigenvectors of the covariance matrix; "jacobi" iterates, and may
be less exact. When cuML is imported, it makes CuPy allocate with RMM.
"""

import cupy as cp
import numpy as np
from cuml.decomposition import PCA

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
    # From an array in Fortran order, cuML would take away the means where it is; one in C order it copies.
    model = PCA(n_components=COMPONENTS, svd_solver="full").fit(cp.ascontiguousarray(samples))
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
    print("pca, cuML: 10,007×20, all right")
