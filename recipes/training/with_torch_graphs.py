"""Training in PyTorch: a step is recorded as a CUDA graph, and replayed for each batch.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch numpy
Follows: https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html
Follows: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
Math: float32, TF32 off (for convolutions, PyTorch's default is on)

A replay is one launch, where the step has dozens. What a graph reads and writes stays at its place, so each batch is
copied to where the recorded one was, and Adadelta counts its steps on the GPU (capturable=True). What is allocated and
chosen at first must not be recorded: the first two steps are therefore made without a graph, in another stream.

TF32 stays off in the linear layers, too, unless the caller has turned it on by torch.set_float32_matmul_precision.
Calls from several threads must take turns: cuDNN's setting, which is put back at the end, is that of the process.
"""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

COUNT = 1_199_882  # weights
WARM_UP = 2  # steps before one is recorded


def network(weights):
    with torch.device("meta"):  # without memory, and without drawing weights from PyTorch's global generator
        model = nn.Sequential(
            *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(9_216, 128), nn.ReLU(), nn.Linear(128, 10)),
        )
    model.to_empty(device=weights.device)
    nn.utils.vector_to_parameters(weights.clone(), model.parameters())  # as views: the caller's weights stay
    return model


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
    model = network(weights)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0, capturable=True)
    result = weights.new_zeros(len(images) + 1)
    image, target = images[0].clone(), targets[0].clone()  # where the graph reads
    loss = torch.zeros_like(result[-1])  # and writes, beside result[-1]

    def step():
        optimizer.zero_grad()
        outputs = model(image.unsqueeze(1))
        mean = cross_entropy(outputs, target)
        mean.backward()
        optimizer.step()
        loss.copy_(mean.detach())
        result[-1] += (outputs.argmax(1) == target.argmax(1)).sum()

    def run(call, numbers):
        for number in numbers:
            image.copy_(images[number])
            target.copy_(targets[number])
            call()
            result[number].copy_(loss)

    count, graph, side = len(images), torch.cuda.CUDAGraph(), torch.cuda.Stream(weights.device)
    with (
        torch.cuda.device(weights.device),  # the work, and a stream that records it, are on this GPU
        torch.enable_grad(),
        torch.backends.cudnn.flags(enabled=True, allow_tf32=False),  # set back at the end; the graph keeps it
    ):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run(step, range(min(WARM_UP, count)))
        torch.cuda.current_stream().wait_stream(side)
        if count > WARM_UP:
            optimizer.zero_grad()  # so that the graph has gradients of its own
            # Records the step, and runs nothing. Without stream, it would be one of the GPU that recorded first.
            with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
                step()
            run(graph.replay, range(WARM_UP, count))
        result[-1] /= lead.numel()
        torch.cuda.current_stream().synchronize()  # the graph and its memory are freed now
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
    print(f"training, PyTorch, CUDA graphs: {accuracy:.0%} of 200 images, all right")
