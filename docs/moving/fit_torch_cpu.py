"""Fit a line by gradient descent: PyTorch on the CPU.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
"""

import numpy as np
import torch


def fit(x, y, steps=200):
    weight = torch.zeros(x.shape[1], dtype=x.dtype, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((x @ weight - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return weight.detach(), losses


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x, true = rng.standard_normal((5_000, 3)), np.array([2.0, -1.0, 0.5])
    weight, losses = fit(torch.from_numpy(x), torch.from_numpy(x @ true))
    np.testing.assert_allclose(weight.numpy(), true, rtol=1e-6)
    assert losses[-1] < 1e-12 < losses[0]
    print(f"PyTorch on cpu: {weight.tolist()}")
