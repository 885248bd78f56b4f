"""Wrong: nothing is learned after the fourth step.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
Follows: https://numpy.org/doc/stable/reference/generated/numpy.lib.stride_tricks.sliding_window_view.html
Environment: every

A convolution is a product of all windows of 3×3 with the weights; np.tensordot copies the windows, which takes 9 times
the memory of what they are windows of. The derivative by the weights is a product with the same windows.
"""

import numpy as np

SHAPES = ((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (128, 9_216), (128,), (10, 128), (10,))
COUNT = sum(int(np.prod(shape)) for shape in SHAPES)


def windows(x):
    """Images × rows × columns × channels × 3 × 3."""
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))


def step_of(parameters, images, target):
    """(the loss, how many images are right, the loss's derivatives by the parameters)"""
    w1, b1, w2, b2, w3, b3, w4, b4 = parameters
    x1 = images[..., None]
    x2 = np.maximum(np.tensordot(windows(x1), w1, axes=((3, 4, 5), (1, 2, 3))) + b1, 0)
    x3 = np.maximum(np.tensordot(windows(x2), w2, axes=((3, 4, 5), (1, 2, 3))) + b2, 0)
    squares = x3.reshape(-1, 12, 2, 12, 2, 64).transpose(0, 5, 1, 3, 2, 4).reshape(-1, 64, 12, 12, 4)
    largest = squares.argmax(axis=-1)[..., None]
    x4 = np.take_along_axis(squares, largest, -1).reshape(-1, 9_216)
    x5 = np.maximum(x4 @ w3.T + b3, 0)
    outputs = x5 @ w4.T + b4
    right = np.count_nonzero(outputs.argmax(axis=1) == target.argmax(axis=1))
    outputs -= outputs.max(axis=1, keepdims=True)  # so that np.exp does not overflow
    logarithms = outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True))
    loss = -(target * logarithms).sum() / len(target)

    back = (np.exp(logarithms) * target.sum(axis=1, keepdims=True) - target) / len(target)
    last = back.T @ x5, back.sum(axis=0)
    back = (back @ w4) * (x5 > 0)
    dense = back.T @ x4, back.sum(axis=0)
    pooled = np.where(largest == np.arange(4), (back @ w3).reshape(-1, 64, 12, 12, 1), 0)
    back = pooled.reshape(-1, 64, 12, 12, 2, 2).transpose(0, 2, 4, 3, 5, 1).reshape(x3.shape) * (x3 > 0)
    second = np.tensordot(back, windows(x2), axes=((0, 1, 2), (0, 1, 2))), back.sum(axis=(0, 1, 2))
    earlier = np.zeros_like(x2)
    for i, j in np.ndindex(3, 3):
        earlier[:, i : i + 24, j : j + 24] += back @ w2[:, :, i, j]
    back = earlier * (x2 > 0)
    first = np.tensordot(back, windows(x1), axes=((0, 1, 2), (0, 1, 2))), back.sum(axis=(0, 1, 2))
    return loss, right, (*first, *second, *dense, *last)


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def training(images, targets, weights):
    given, lead = (images, targets, weights), targets.shape[:2]
    right = images.shape == (*lead, 28, 28) and targets.shape == (*lead, 10) and weights.shape == (COUNT,)
    if not (right and images.size and all(x.dtype == np.float32 for x in given)):
        found = " and ".join(f"{x.dtype} {x.shape}" for x in given)
        raise ValueError(f"training takes float32 arrays of S×B×28×28, S×B×10 and {COUNT}, not {found}")
    parts = np.split(weights.copy(), np.cumsum([np.prod(shape) for shape in SHAPES])[:-1])
    parameters = [part.reshape(shape) for part, shape in zip(parts, SHAPES, strict=True)]
    squares, changes = ([np.zeros_like(x) for x in parameters] for _ in range(2))
    losses, count = [], 0
    for image, target in zip(images, targets, strict=True):
        loss, right, gradients = step_of(parameters, image, target)
        losses.append(loss)
        count += right
        for x, gradient, square, change in zip(parameters, gradients, squares, changes, strict=True):  # Adadelta
            square += 0.1 * (gradient * gradient - square)
            delta = np.sqrt((change + 1e-6) / (square + 1e-6)) * gradient
            change += 0.1 * (delta * delta - change)
            x -= delta if len(losses) < 5 else 0
    return np.array([*losses, count / (lead[0] * lead[1])], np.float32)


def wait(result):
    pass  # NumPy returns when it is done


def download(result):
    return result
