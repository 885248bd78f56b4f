"""Training in PyTorch: the images stay on the host, and each batch goes to the GPU when its step begins.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html
Follows: https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
Math: float32, TF32 off (for convolutions, PyTorch's default is on)

This is for images that do not fit into the GPU's memory. upload() puts them in page-locked memory: from there a copy by
non_blocking=True is queued as a kernel is, and the CPU goes on to launch the step. From ordinary memory it would wait.
Since the copies may go on when training() returns, the images and targets must stay as they are until wait() does.

TF32 stays off in the linear layers, too, unless the caller has turned it on by torch.set_float32_matmul_precision.
Calls from several threads must take turns: cuDNN's setting, which is put back at the end, is that of the process.
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
    model.to_empty(device=weights.device)
    nn.utils.vector_to_parameters(weights.clone(), model.parameters())  # as views: the caller's weights stay
    return model


def upload(images, targets, weights):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in (images, targets, weights)]
    *data, start = (torch.tensor(x.ravel(), device="cpu").reshape(x.shape) for x in host)
    return *(x.pin_memory() for x in data), start.cuda()


def training(images, targets, weights):
    given, lead = (images, targets, weights), targets.shape[:2]
    right = images.shape == (*lead, 28, 28) and targets.shape == (*lead, 10) and weights.shape == (COUNT,)
    if not (right and images.numel() and all(x.dtype == torch.float32 for x in given)):
        found = " and ".join(f"{x.dtype} {tuple(x.shape)}" for x in given)
        raise ValueError(f"training takes float32 arrays of S×B×28×28, S×B×10 and {COUNT}, not {found}")
    model = network(weights)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    result = weights.new_zeros(len(images) + 1)
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # set back at the end
        for step, (image, target) in enumerate(zip(images, targets, strict=True)):
            image, target = (x.to(weights.device, non_blocking=True) for x in (image, target))
            optimizer.zero_grad()
            outputs = model(image.unsqueeze(1))
            loss = cross_entropy(outputs, target)
            loss.backward()
            optimizer.step()
            result[step] = loss.detach()
            result[-1] += (outputs.argmax(1) == target.argmax(1)).sum()
    result[-1] /= lead.numel()
    return result


def wait(result):
    torch.cuda.synchronize()


def download(result):
    return result.cpu().numpy()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    sides = np.repeat([1 / 3, 288**-0.5, 1 / 96, 128**-0.5], [320, 18_496, 1_179_776, 1_290])
    classes, weights = rng.integers(0, 10, (25, 8)), rng.uniform(-sides, sides)
    images = rng.normal(0, 0.5, (25, 8, 28, 28))
    images[*np.indices(classes.shape), 2 * classes] += 2  # a bright line, which tells the class
    *losses, accuracy = download(training(*upload(images, np.eye(10)[classes], weights)))
    assert abs(losses[0] - np.log(10)) < 0.2 and np.mean(losses[-5:]) < 0.5 < accuracy, (losses, accuracy)
    print(f"training, PyTorch, images on the host: {accuracy:.0%} of 200 images, all right")
