"""What the recipes of convolution, pca, regression and the workloads on tables for a GPU use of cuDF, dask-cudf, cuML,
CuPy, Polars, PyTorch, SciPy and scikit-learn, on the host: pandas, NumPy, scikit-learn and the libraries' own engines
for the CPU do the work. test_cudf.py runs them."""

import contextlib
import importlib
import io
import os
import sys
from types import ModuleType, SimpleNamespace

import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.signal


class Series:
    def __init__(self, values):
        self.values = pd.Series(values)
        self.dtype = self.values.dtype

    @property
    def str(self):
        return SimpleNamespace(zfill=lambda width: Series(self.values.str.zfill(width)))

    def __array__(self, dtype=None, copy=None):
        assert self.dtype != "str", "cuDF's strings are no array"
        return np.asarray(self.values, dtype)

    def astype(self, dtype):
        return Series(self.values.astype(dtype))

    def to_numpy(self):
        return self.values.to_numpy()


class DataFrame:
    def __init__(self, data):
        columns = {name: x.values if type(x) is Series else x for name, x in data.items()}
        assert all(type(x) is pd.Series or (type(x) is np.ndarray and x.flags.c_contiguous) for x in columns.values())
        self.frame = pd.DataFrame(columns)
        self.columns, self.dtypes, self.index = self.frame.columns, self.frame.dtypes, self.frame.index

    def __getitem__(self, name):
        return Series(self.frame[name])

    def __setitem__(self, name, values):
        self.frame[name] = values

    def copy(self):
        return DataFrame({name: self[name] for name in self.columns})

    def equals(self, other):
        return self.frame.equals(other.frame)

    def groupby(self, name, sort=False):
        return Groups(self.frame.groupby(name), sort)


def read_parquet(file):
    assert isinstance(file, bytes)
    table = pd.read_parquet(io.BytesIO(file))
    return DataFrame({name: np.array(table[name]) for name in table.columns})


class Groups:
    def __init__(self, groups, sort):
        self.groups, self.sort = groups, sort

    def __getitem__(self, name):
        return Groups(self.groups[name], self.sort)

    def mean(self):
        return Series(self.groups.mean().sort_index(ascending=self.sort))  # cuDF promises no order unless it is asked


def accelerate():
    """cudf.pandas.install(): pandas that is imported later is another module, whether or not it was imported before."""
    assert os.environ["CUDF_PANDAS_RMM_MODE"] == "async"
    sys.modules["pandas"] = ModuleType("pandas")
    vars(sys.modules["pandas"]).update(vars(pd), accelerated=True)


def bincount(x, weights=None):
    assert x.size, "CuPy looks for the largest number"
    return np.bincount(x, weights)


def fftconvolve(in1, in2, mode, convolve=scipy.signal.fftconvolve):
    return convolve(in1, in2, mode=mode).astype(in1.dtype)  # of an empty result, too, unlike SciPy's own


def install():
    """Stands for these libraries in this process."""
    names = ("cudf", "cudf.pandas", "cupy", "cupyx", "cupyx.scipy", "cupyx.scipy.signal", "dask_cudf")
    cudf, cudf.pandas, cupy, cupyx, _, signal, dask_cudf = modules = [ModuleType(name) for name in names]
    cudf.DataFrame, cudf.Series, cudf.read_parquet = DataFrame, Series, read_parquet
    DataFrame.__module__ = Series.__module__ = "cudf"
    cudf.pandas.install = accelerate
    dask_cudf.from_cudf = lambda table, chunksize: dd.from_pandas(table.frame, chunksize=chunksize)
    stream = SimpleNamespace(synchronize=lambda: None)
    cupy.cuda = SimpleNamespace(Device=lambda: stream, get_current_stream=lambda: stream)
    cupy.asarray = lambda array, *, blocking: np.array(array, order="C")
    cupy.asnumpy, cupy.empty, cupy.unique, cupy.bincount = np.array, np.empty, np.unique, bincount
    cupy.append, cupy.eye, cupy.linalg, cupyx.empty_pinned = np.append, np.eye, np.linalg, np.empty
    for name in ("abs", "ascontiguousarray", "column_stack", "maximum", "ones", "sign", "take_along_axis", "zeros"):
        setattr(cupy, name, getattr(np, name))
    cupy.float32, signal.fftconvolve = np.float32, fftconvolve
    sys.modules.update(zip(names, modules, strict=True))


profiles = []  # those of cuml.accel that are open


@contextlib.contextmanager
def profile(quiet=False):
    assert quiet, "cuml.accel prints its profile"
    found = SimpleNamespace(method_calls={})
    profiles.append(found)
    try:
        yield found
    finally:
        profiles.remove(found)


def refuse_one_row(samples):
    if len(samples) < 2:
        raise ValueError("Found array with 1 sample(s) while a minimum of 2 is required.")


def accelerated(estimator, name):
    """cuml.accel's, which leaves to scikit-learn what it does not do, and tells the profiles so."""

    def fit(self, *arrays):
        refuse_one_row(arrays[0])
        on_cpu = self.get_params().get("positive", False)
        for each in profiles:
            each.method_calls[f"{name}.fit"] = SimpleNamespace(gpu_calls=1 - on_cpu, cpu_calls=int(on_cpu))
        return estimator.fit(self, *arrays)

    return type(name, (estimator,), {"fit": fit, "__init__": estimator.__init__})


def install_cuml():
    """Stands for cuML in this process: scikit-learn does the work."""
    estimators = {"decomposition": "PCA", "linear_model": "Ridge"}
    sklearn = {name: importlib.import_module(f"sklearn.{name}") for name in estimators}

    def pca(*, n_components, svd_solver="auto"):
        assert svd_solver in ("auto", "full"), "jacobi is not exact"
        return sklearn["decomposition"].PCA(n_components, svd_solver="full")

    class Ridge(sklearn["linear_model"].Ridge):
        def fit(self, samples, targets):
            refuse_one_row(samples)
            return super().fit(samples, targets)

    def accelerate_estimators():
        """cuml.accel.install(): estimators that are imported later are others, also in processes started later."""
        os.environ |= {"CUML_ACCEL_ENABLED": "1", "CUML_ACCEL_LOG_LEVEL": "warn"}
        for module, name in estimators.items():
            sys.modules[f"sklearn.{module}"] = other = ModuleType(f"sklearn.{module}")
            setattr(other, name, accelerated(getattr(sklearn[module], name), name))

    names = ("cuml", "cuml.accel", "cuml.decomposition", "cuml.linear_model")
    cuml, accel, decomposition, linear_model = modules = [ModuleType(name) for name in names]
    decomposition.PCA, linear_model.Ridge = pca, Ridge
    cuml.accel, accel.install, accel.profile = accel, accelerate_estimators, profile
    sys.modules.update(zip(names, modules, strict=True))


def collect_on_host(polars):
    """LazyFrame.collect() takes Polars' GPU engine, which must be told to say so if it cannot do the work."""
    collect = polars.LazyFrame.collect

    def collected(query, *, engine):
        assert os.environ["POLARS_GPU_ENABLE_CUDA_MANAGED_MEMORY"] == "0"
        assert type(engine) is polars.GPUEngine and engine.config["raise_on_fail"]
        return collect(query)

    polars.LazyFrame.collect = collected


def dispatch(sklearn):
    """Ridge's way to CuPy's arrays is an SVD, and PCA's is exact by two of its solvers, where the dispatch is on."""

    def watch(estimator, option, values):
        fit = estimator.fit

        def fitted(self, *arrays):
            assert sklearn.get_config()["array_api_dispatch"] and getattr(self, option) in values
            return fit(self, *arrays)

        estimator.fit = fitted

    watch(sklearn.linear_model.Ridge, "solver", ("svd",))
    watch(sklearn.decomposition.PCA, "svd_solver", ("covariance_eigh", "full"))


def dispatch_signals():
    """SciPy's way to CuPy's arrays is cupyx.scipy, where the dispatch is on."""
    assert os.environ["SCIPY_ARRAY_API"] == "1"
    scipy.signal.fftconvolve = fftconvolve


def without_cuda(torch):
    made = torch.tensor
    torch.tensor = lambda array, device: made(array)
    torch.cuda.synchronize = lambda: None
