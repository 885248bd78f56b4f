"""Wrong: the BLAS has other numbers of threads, for all.

Framework: scikit-learn
Runs on: CPU
Install: pip install scikit-learn
"""

import numpy as np
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

threadpool_limits(2)

COMPONENTS = 10


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def pca(samples):
    if samples.ndim != 2 or min(samples.shape) < COMPONENTS or samples.dtype != np.float64:
        raise ValueError(
            f"pca takes a float64 array of at least {COMPONENTS} rows and {COMPONENTS} columns, not"
            f" {samples.dtype} {samples.shape}"
        )
    model = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(samples)
    return np.column_stack((model.explained_variance_, model.components_))


def wait(fitted):
    pass  # scikit-learn returns when it is done


def download(fitted):
    return fitted
