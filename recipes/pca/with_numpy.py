"""PCA in NumPy: the eigenvectors of the covariance matrix, by its BLAS and LAPACK.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/reference/generated/numpy.linalg.eigh.html
Environment: every

x.T @ x has the square of the condition number of x: components whose standard deviation is below 1e-8 of the first
one's are lost in it, which np.linalg.svd of x still tells apart. NumPy sees that both factors are one array, and
computes half of the product.
"""

import numpy as np

COMPONENTS = 10


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def pca(samples):
    if samples.ndim != 2 or min(samples.shape) < COMPONENTS or samples.dtype != np.float64:
        raise ValueError(
            f"pca takes a float64 array of at least {COMPONENTS} rows and {COMPONENTS} columns, not"
            f" {samples.dtype} {samples.shape}"
        )
    x = samples - samples.mean(axis=0)
    variances, vectors = np.linalg.eigh(x.T @ x / (len(x) - 1))
    order = slice(None, -COMPONENTS - 1, -1)  # eigh has the smallest first
    variances, components = np.maximum(variances[order], 0), vectors[:, order].T
    # An eigenvector may point either way: scikit-learn makes the largest coefficient positive.
    largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
    return np.column_stack((variances, components * np.sign(largest)))


def wait(fitted):
    pass  # NumPy returns when it is done


def download(fitted):
    return fitted


if __name__ == "__main__":
    samples = np.random.default_rng(0).standard_normal((10_007, 20)).cumsum(axis=1) + 1
    fitted = download(pca(*upload(samples)))
    axes = fitted[:, 1:]
    # What the samples are along the components has these variances, and no correlation.
    np.testing.assert_allclose(np.cov(samples @ axes.T, rowvar=False), np.diag(fitted[:, 0]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(axes @ axes.T, np.eye(COMPONENTS), rtol=0, atol=1e-12)
    print("pca, NumPy: 10,007×20, all right")
