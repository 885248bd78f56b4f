"""conftest.py puts this folder on PYTHONPATH, so Python imports this when it starts. It cuts the time for a metric to a
sixth: no test looks at a time, or at how many calls are behind it."""

import sys

if "gpu_cookbook.run.worker" in sys.orig_argv:
    from gpu_cookbook.run import measure

    measure.BUDGET /= 6
