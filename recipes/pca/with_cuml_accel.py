"""PCA in scikit-learn on a GPU: with_sklearn.py as it is, behind two lines that make cuML do what scikit-learn would.

Framework: cuML
Runs on: NVIDIA GPU
Install: pip install cuml-cu13 scikit-learn
Environment: rapids
Follows: https://docs.nvidia.com/cuml/latest/cuml-accel/usage/
Follows: https://docs.nvidia.com/cuml/latest/cuml-accel/logging-and-profiling/

install() is for the whole process, and for what imports scikit-learn after it; python -m cuml.accel SCRIPT does the
same without the two lines. Estimators, parameters and inputs that cuML does not have are left to scikit-learn, without
a word: so the profile, which says where a call ran, is looked at. For "covariance_eigh", cuML takes its solver "full".
The samples stay on the host: each call takes them to the GPU, into managed memory, and brings the result back.
"""

import cuml.accel

cuml.accel.install()

import numpy as np  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402

COMPONENTS = 10


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def pca(samples):
    if samples.ndim != 2 or min(samples.shape) < COMPONENTS or samples.dtype != np.float64:
        raise ValueError(
            f"pca takes a float64 array of at least {COMPONENTS} rows and {COMPONENTS} columns, not"
            f" {samples.dtype} {samples.shape}"
        )
    with cuml.accel.profile(quiet=True) as profile:
        model = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(samples)
    if not profile.method_calls["PCA.fit"].gpu_calls:
        raise RuntimeError("cuml.accel left PCA to scikit-learn, on the CPU")
    return np.column_stack((model.explained_variance_, model.components_))


def wait(fitted):
    pass  # the attributes of a fitted model are on the host


def download(fitted):
    return fitted


if __name__ == "__main__":
    samples = np.random.default_rng(0).standard_normal((10_007, 20)).cumsum(axis=1) + 1
    fitted = download(pca(*upload(samples)))
    axes = fitted[:, 1:]
    # What the samples are along the components has these variances, and no correlation.
    np.testing.assert_allclose(np.cov(samples @ axes.T, rowvar=False), np.diag(fitted[:, 0]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(axes @ axes.T, np.eye(COMPONENTS), rtol=0, atol=1e-12)
    print("pca, cuml.accel: 10,007×20, all right")
