"""Python imports this when it starts, as conftest.py puts this folder on PYTHONPATH. In a process of the tool that
measures, a metric then takes a sixth of the time: no test asks how long anything took, nor of how many calls that is
the median."""

import sys

if "gpu_cookbook.run.worker" in sys.orig_argv:
    from gpu_cookbook.run import measure

    measure.BUDGET /= 6
