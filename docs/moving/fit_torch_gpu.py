"""Fit a line by gradient descent: PyTorch on the GPU, or on the CPU if there is no GPU.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy
"""

import numpy as np
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def fit(x, y, steps=200):
    weight = torch.zeros(x.shape[1], dtype=x.dtype, device=x.device, requires_grad=True)  # where the data is
    optimizer = torch.optim.SGD([weight], lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((x @ weight - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())  # stays on the device: item() would wait for the GPU in every step
    return weight.detach(), torch.stack(losses).tolist()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x, true = rng.standard_normal((5_000, 3)), np.array([2.0, -1.0, 0.5])
    weight, losses = fit(torch.from_numpy(x).to(device), torch.from_numpy(x @ true).to(device))
    np.testing.assert_allclose(weight.cpu().numpy(), true, rtol=1e-6)
    assert losses[-1] < 1e-12 < losses[0]
    print(f"PyTorch on {device.type}: {weight.tolist()}")
