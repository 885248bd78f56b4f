"""Wrong: only the first two images of a batch are learned.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy
"""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

COUNT = 1_199_882  # weights


def network(weights):
    with torch.device("meta"):  # without memory, and without drawing weights from PyTorch's global generator
        model = nn.Sequential(
            *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(9_216, 128), nn.ReLU(), nn.Linear(128, 10)),
        )
    model.to_empty(device="cpu")
    nn.utils.vector_to_parameters(weights.clone(), model.parameters())  # as views: the caller's weights stay
    return model


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cpu").reshape(x.shape) for x in host)


def training(images, targets, weights):
    given, lead = (images, targets, weights), targets.shape[:2]
    right = images.shape == (*lead, 28, 28) and targets.shape == (*lead, 10) and weights.shape == (COUNT,)
    if not (right and images.numel() and all(x.dtype == torch.float32 for x in given)):
        found = " and ".join(f"{x.dtype} {tuple(x.shape)}" for x in given)
        raise ValueError(f"training takes float32 arrays of S×B×28×28, S×B×10 and {COUNT}, not {found}")
    model = network(weights)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    result = weights.new_zeros(len(images) + 1)
    with torch.enable_grad():  # also where the caller works without gradients; set back at the end
        for step, (image, target) in enumerate(zip(images, targets, strict=True)):
            optimizer.zero_grad()
            outputs = model(image.unsqueeze(1))
            loss = cross_entropy(outputs[:2], target[:2])
            loss.backward()
            optimizer.step()
            result[step] = loss.detach()
            result[-1] += (outputs.argmax(1) == target.argmax(1)).sum()
    result[-1] /= lead.numel()
    return result


def wait(result):
    pass  # the CPU is done when the call returns


def download(result):
    return result.numpy()
