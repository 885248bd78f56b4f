"""Wrong: scikit-learn's configuration is changed, and stays so.

Framework: scikit-learn
Runs on: CPU
Install: pip install scikit-learn
"""

import numpy as np
from sklearn import set_config
from sklearn.decomposition import PCA

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


set_config(assume_finite=True, working_memory=64)


def wait(fitted):
    pass  # scikit-learn returns when it is done


def download(fitted):
    return fitted
