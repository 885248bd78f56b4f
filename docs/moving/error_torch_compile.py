"""A branch on a value, in a function that torch.compile must compile as a whole.

Framework: PyTorch
Runs on: CPU
Install: pip install torch

Unsupported: Data-dependent branching
"""

import torch


# What goes wrong: which branch to take is known only once the sum has been computed on the device. Without
# fullgraph=True, PyTorch silently splits the function there, and much of the gain is lost.
@torch.compile(fullgraph=True, backend="eager")  # eager: no compiler is needed to see the error
def clipped(x):
    if x.sum() > 0:
        return x * 2
    return x


try:
    clipped(torch.ones(3))
except torch._dynamo.exc.Unsupported as error:
    assert f"Unsupported: {str(error).splitlines()[0]}" in __doc__
else:
    raise AssertionError("no error")


# The fix: choose with a tensor, so that both branches are one computation.
@torch.compile(fullgraph=True, backend="eager")
def chosen(x):
    return torch.where(x.sum() > 0, x * 2, x)


assert chosen(torch.ones(3)).tolist() == [2, 2, 2]
assert chosen(-torch.ones(3)).tolist() == [-1, -1, -1]
print("one graph, no branch")
