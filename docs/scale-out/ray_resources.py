"""GPU steps in a Ray cluster that is already running: each gets a GPU of its own, the other steps use any core.

Run: python ray_resources.py 127.0.0.1:6379
"""

import sys

import ray

STEPS = 3  # each GPU step takes the time in which a process starts


@ray.remote
def load(i):
    return i + 1


@ray.remote(num_gpus=1)
def gpu_step(x):
    # CuPy would go here. Ray has set CUDA_VISIBLE_DEVICES to this one GPU. It ends the process after the step: the next
    # step may get another GPU, too late for a process that has started CUDA.
    return 2 * x, ray.get_gpu_ids()


if __name__ == "__main__":
    ray.init(address=sys.argv[1], logging_level="ERROR")
    # After a minute (worker_register_timeout_seconds), Ray replaces a process that does not start. Without a GPU in the
    # cluster, the steps would wait for ever.
    results = ray.get([gpu_step.remote(load.remote(i)) for i in range(STEPS)], timeout=180)
    ray.shutdown()

    assert sum(x for x, _ in results) == sum(2 * (i + 1) for i in range(STEPS))
    assert all(len(gpus) == 1 for _, gpus in results), results
    print(f"Ray: {len(results)} GPU steps with one GPU each, all right")
