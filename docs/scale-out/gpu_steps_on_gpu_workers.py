"""GPU steps on GPU workers, the other steps anywhere: futures, delayed functions, an array.

Run: python gpu_steps_on_gpu_workers.py tcp://127.0.0.1:8786

Uses a running cluster: one or more workers started with `--resources "GPU=1"`, and others without.
"""

import sys

import dask
import dask.array as da
from distributed import Client, get_worker


def load(x):
    return x + 1


def gpu_step(x):
    # CuPy would go here. The label is all that Dask knows: it does not look for a GPU.
    assert "GPU" in get_worker().state.total_resources, f"a GPU step ran on {get_worker().name}"
    return x * 2


def total(parts):
    return sum(parts)


if __name__ == "__main__":
    with Client(sys.argv[1]) as client:
        loaded = client.map(load, range(20))
        doubled = client.map(gpu_step, loaded, resources={"GPU": 1})
        futures = client.submit(total, doubled).result()

        loaded = [dask.delayed(load)(i) for i in range(20)]
        with dask.annotate(resources={"GPU": 1}):
            doubled = [dask.delayed(gpu_step)(part) for part in loaded]
        delayed = dask.delayed(total)(doubled).compute()

        x = da.arange(20, chunks=1).map_blocks(load)
        with dask.annotate(resources={"GPU": 1}):
            x = x.map_blocks(gpu_step, dtype=x.dtype)  # without dtype, Dask tries the step here, on the client
        # The optimisation would merge load and gpu_step into one task, which has no annotation.
        array = int(x.sum().compute(optimize_graph=False))

    assert futures == delayed == array == sum(2 * (i + 1) for i in range(20))
    print("futures, delayed functions and an array: every GPU step on a GPU worker, all right")
