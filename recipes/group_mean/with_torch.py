"""Group mean in PyTorch: torch.unique numbers the keys in their order, and scatter_reduce_ averages by number.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/docs/stable/generated/torch.unique.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html
"""

import numpy as np
import torch


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean takes int64 keys, not {np.asarray(keys).dtype}")
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = np.asarray(keys, np.int64, order="C"), np.asarray(values, np.float64, order="C")
    return tuple(torch.tensor(x.ravel(), device="cuda").reshape(x.shape) for x in host)


def group_mean(keys, values):
    if keys.ndim != 1 or keys.shape != values.shape:
        shapes = f"{tuple(keys.shape)} and {tuple(values.shape)}"
        raise ValueError(f"group_mean takes two flat arrays of one length, not {shapes}")
    if (keys.dtype, values.dtype) != (torch.int64, torch.float64):
        raise ValueError(f"group_mean takes int64 keys and float64 values, not {keys.dtype} and {values.dtype}")
    unique, number = torch.unique(keys, return_inverse=True)
    return values.new_zeros(unique.shape).scatter_reduce_(0, number, values, "mean", include_self=False)


def wait(means):
    torch.cuda.synchronize()


def download(means):
    return means.cpu().numpy()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(group_mean(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean, PyTorch: 1,000,003 rows, 1,000 keys, all right")
