"""Training in PyTorch: torch.compile makes fewer and larger kernels of the loss and its derivatives.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch numpy
Needs: g++
Follows: https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html
Follows: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
Math: float32, TF32 off (for convolutions, PyTorch's default is on)

The first call with each size of batch compiles for seconds: Inductor cannot yet make one program for all sizes of these
(PyTorch 2.13). After eight, PyTorch would go on without compiling, unless recompile_limit is raised. Convolutions and
products remain calls of cuDNN and cuBLAS.

TF32 stays off in the linear layers, too, unless the caller has turned it on by torch.set_float32_matmul_precision.
Calls from several threads must take turns: cuDNN's setting, which is put back at the end, is that of the process.
"""

import math

import numpy as np
import torch
from torch.nn.functional import conv2d, cross_entropy, linear, max_pool2d, relu

SHAPES = ((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (128, 9_216), (128,), (10, 128), (10,))
COUNT = 1_199_882  # weights


@torch.compile(dynamic=False)
def loss_of(parameters, image, target):
    w1, b1, w2, b2, w3, b3, w4, b4 = parameters
    x = relu(conv2d(image.unsqueeze(1), w1, b1))
    x = max_pool2d(relu(conv2d(x, w2, b2)), 2)
    x = relu(linear(x.flatten(1), w3, b3))
    outputs = linear(x, w4, b4)
    return cross_entropy(outputs, target), (outputs.argmax(1) == target.argmax(1)).sum()


def upload(*arrays):
    # torch.tensor copies. Flat, then in shape: it refuses the negative stride of a reversed axis of one element.
    host = [np.asarray(x, np.float32, order="C") for x in arrays]
    return tuple(torch.tensor(x.ravel(), device="cuda").reshape(x.shape) for x in host)


def training(images, targets, weights):
    given, lead = (images, targets, weights), targets.shape[:2]
    right = images.shape == (*lead, 28, 28) and targets.shape == (*lead, 10) and weights.shape == (COUNT,)
    if not (right and images.numel() and all(x.dtype == torch.float32 for x in given)):
        found = " and ".join(f"{x.dtype} {tuple(x.shape)}" for x in given)
        raise ValueError(f"training takes float32 arrays of S×B×28×28, S×B×10 and {COUNT}, not {found}")
    parts = weights.split([math.prod(shape) for shape in SHAPES])
    parameters = [part.reshape(shape).clone().requires_grad_() for part, shape in zip(parts, SHAPES, strict=True)]
    optimizer = torch.optim.Adadelta(parameters, lr=1.0)
    result = weights.new_zeros(len(images) + 1)
    limit = torch._dynamo.config.patch(recompile_limit=64)
    with limit, torch.enable_grad(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # set back at the end
        for step, (image, target) in enumerate(zip(images, targets, strict=True)):
            optimizer.zero_grad()
            loss, right = loss_of(parameters, image, target)
            loss.backward()
            optimizer.step()
            result[step] = loss.detach()
            result[-1] += right
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
    print(f"training, torch.compile: {accuracy:.0%} of 200 images, all right")
