from dask.dataframe import from_delayed

__all__ = ["from_delayed"]
