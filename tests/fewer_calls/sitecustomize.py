"""conftest.py puts this folder on PYTHONPATH, so Python imports this when it starts. It cuts the time for a metric to a
sixth: no test looks at a time, or at how many calls are behind it. And beside each result, the CPU is probed in 64 MiB,
however large its caches are: four times 480 MiB take seconds to get from the system.
"""

import sys

if "gpu_cookbook.run.worker" in sys.orig_argv:
    from gpu_cookbook.run import device, measure

    measure.BUDGET /= 6
    device.BEYOND_CACHE = 0
