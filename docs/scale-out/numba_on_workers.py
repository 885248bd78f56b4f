"""A Numba CUDA kernel on the GPU workers of a running cluster, compiled once in each worker.

Run: python numba_on_workers.py tcp://127.0.0.1:8786
"""

import sys
from pathlib import Path

import numba_kernel
from distributed import Client

if __name__ == "__main__":
    with Client(sys.argv[1]) as client:
        client.upload_file(str(Path(__file__).with_name("numba_kernel.py")))
        starts = range(0, 4_000, 1_000)
        parts = client.map(numba_kernel.doubled_sum, starts, [s + 1_000 for s in starts], resources={"GPU": 1})
        sums, kernels = zip(*client.gather(parts), strict=True)
        gpu_workers = sum("GPU" in worker["resources"] for worker in client.scheduler_info(-1)["workers"].values())

    assert sum(sums) == 4_000 * 3_999
    assert len(set(kernels)) <= gpu_workers, "there is one kernel object per task: each is compiled again"
    print(f"a Numba kernel, {len(sums)} tasks, {len(set(kernels))} kernel object(s) on {gpu_workers} GPU worker(s)")
