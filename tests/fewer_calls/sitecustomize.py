"""conftest.py puts this folder on PYTHONPATH, so Python imports this when it starts. It cuts the time for a metric to a
thirtieth: no test looks at a time, or at how many calls are behind it. What other programs disturb is not taken again,
since the tests disturb each other all the time; tests/test_load.py sees to it in its own process. And beside each
result, the CPU is probed in 64 MiB, however large its caches are: four times 480 MiB take seconds to get from the
system. The tests' own limit on threads, which the tool does not pass on, holds in a recipe's process, too.
"""

import os
import sys

if "gpu_cookbook.run.worker" in sys.orig_argv:
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    from gpu_cookbook.run import device, measure

    measure.BUDGET /= 30
    measure.TAKES = 1
    device.BEYOND_CACHE = 0
