"""A recipe's check with few of the special values, on what stands for its device; shared by tests that run recipes in
different ways."""

from itertools import islice

from gpu_cookbook.run.check import check_refusals, check_size
from gpu_cookbook.run.device import Host
from gpu_cookbook.run.precision import inexact
from gpu_cookbook.run.transfers import check_transfers


class Late(Host):
    """A device whose work waits for nothing but the recipe: nobody has to hold it up."""

    def late(self, call, wait, right):
        result = call()
        wait(result)
        return not right(result)


def with_few_special_values(workload):
    """One in seven, of each seed others; and no arrays that are large enough for many pieces."""
    special = getattr(workload, "special_inputs", lambda size, seed: ())
    workload.special_inputs = lambda size, seed=0: islice(special(size, seed), seed, None, 7)
    vars(workload).pop("MANY_PIECES", None)


def require_right(module, workload, device, before=lambda size: None):
    """At the edge sizes. ``before``: what else is wrong at a size, or None, which is asked first."""
    for size in workload.EDGE_SIZES:
        fault = before(size) or check_size(module, workload, size, device) or inexact(module, workload, size)
        fault = fault or check_transfers(module, workload, size, device)
        assert fault is None, f"{workload.label(size)}: {fault}"
    assert check_refusals(module, workload) is None
