"""From one GPU to another through Dask, with TCP and with UCX: a CuPy array of 1 GB, and an 8-byte round trip.

Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13 distributed-ucxx-cu13
Run: python ucx_against_tcp.py

Needs two NVIDIA GPUs. Prints one JSON object.
"""

import importlib.metadata
import importlib.util
import json
import statistics
import sys
import time

NBYTES = 10**9
REPEATS = 7


def ones(nbytes):
    import cupy as cp

    array = cp.ones(nbytes // 4, cp.float32)
    cp.cuda.Device().synchronize()  # otherwise the transfer would wait for it
    return array


def total(array):
    return int(array.sum())


def last_transfer(dask_worker):
    """Return seconds and bytes of this worker's last transfer, from Dask's own log: without the scheduler's part."""
    log = dask_worker.transfer_incoming_log[-1]
    return log["duration"], log["total"]


async def round_trip(other, dask_worker):
    """Return the seconds for 8 bytes to the other worker and back, with Dask's own RPC on an open connection."""
    rpc = dask_worker.rpc(other)
    times = []
    for _ in range(210):
        start = time.perf_counter()
        assert await rpc.echo(data=b"8 bytes!") == b"8 bytes!"
        times.append(time.perf_counter() - start)
    return statistics.median(times[10:])


def measure(protocol):
    from dask_cuda import LocalCUDACluster
    from distributed import Client, wait

    with (
        LocalCUDACluster(
            n_workers=2,
            protocol=protocol,
            dashboard_address="127.0.0.1:0",
            rmm_pool_size="4 GB",  # UCX maps memory once per allocation, so a pool is mapped only once
            rmm_allocator_external_lib_list=["cupy"],
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=120)
        here, there = client.scheduler_info(-1)["workers"]
        rates = []
        for _ in range(REPEATS + 1):
            source = client.submit(ones, NBYTES, workers=[here], pure=False)
            wait(source)
            assert client.submit(total, source, workers=[there], pure=False).result() == NBYTES // 4
            seconds, nbytes = client.run(last_transfer, workers=[there])[there]
            assert nbytes >= NBYTES, f"the last transfer had {nbytes} bytes"
            rates.append(NBYTES / seconds / 1e9)
            source.release()
        latency = client.run(round_trip, there, workers=[here])[here]
    del rates[0]  # the first transfer also opens connections and maps memory
    return {
        "GB/s": round(statistics.median(rates), 2),
        "GB/s of each": [round(rate, 2) for rate in rates],
        "8-byte round trip, µs": round(latency * 1e6, 1),
    }


if __name__ == "__main__":
    for module, package in {
        "distributed_ucxx": "distributed-ucxx-cu13",
        "dask_cuda": "dask-cuda[cu13]",
        "cupy": "cupy-cuda13x[ctk]",
        "rmm": "rmm-cu13",
    }.items():
        if importlib.util.find_spec(module) is None:
            sys.exit(f'{module} is not installed: pip install "{package}"')
    packages = ("distributed", "dask-cuda", "distributed-ucxx-cu13")
    versions = {package: importlib.metadata.version(package) for package in packages}
    result = {"bytes": NBYTES, "repeats": REPEATS, "versions": versions}
    result |= {protocol: measure(protocol) for protocol in ("tcp", "ucx")}

    assert all(result[protocol]["GB/s"] > 0 for protocol in ("tcp", "ucx"))
    print(json.dumps(result, ensure_ascii=False))
