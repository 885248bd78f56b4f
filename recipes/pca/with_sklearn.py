"""PCA in scikit-learn: PCA, on as many cores as NumPy's BLAS uses.

Framework: scikit-learn
Runs on: CPU
Install: pip install scikit-learn
Follows: https://scikit-learn.org/stable/modules/generated/sklearn.decomposition.PCA.html

The solver "covariance_eigh" is what "auto" chooses too where there are ten times as many rows as columns, of at most
1,000; elsewhere "auto" may choose "randomized", which is not exact. Of samples far from 0 it loses digits, since it
subtracts the means from the sums of products; svd_solver="full" does not, and takes several times as many operations.
"""

import numpy as np
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


def wait(fitted):
    pass  # scikit-learn returns when it is done


def download(fitted):
    return fitted


if __name__ == "__main__":
    samples = np.random.default_rng(0).standard_normal((10_007, 20)).cumsum(axis=1) + 1
    fitted = download(pca(*upload(samples)))
    axes = fitted[:, 1:]
    # What the samples are along the components has these variances, and no correlation.
    np.testing.assert_allclose(np.cov(samples @ axes.T, rowvar=False), np.diag(fitted[:, 0]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(axes @ axes.T, np.eye(COMPONENTS), rtol=0, atol=1e-12)
    print("pca, scikit-learn: 10,007×20, all right")
