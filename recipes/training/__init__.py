"""Training: one pass over generated images of a small convolutional network, that of PyTorch's MNIST example, float32.

The network has two convolutions of 3×3 with 32 and 64 channels, the largest of each 2×2, a layer of 128 and one of 10
outputs, with a ReLU after each but the last, and 1,199,882 weights: PyTorch's example without dropout. Its optimizer is
Adadelta, at a rate of 1. ``images`` are steps × batch × 28 × 28 numbers, in the order in which they are taken,
``targets`` steps × batch × 10, 1 for the right class, and ``weights`` the first weights, in one array in PyTorch's
order. The result are the mean cross-entropy of each step's batch before the step, and as the last element the accuracy:
the share of all images of which the largest output was that of the right class, each before it was trained on.

So every image is new when it is judged, and no others are needed for that. Ten epochs of 60,000 images are ten such
passes. Nothing is shuffled and no weight is drawn in a recipe: all of them make the same steps.
"""

import math

import numpy as np

SHAPES = ((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (128, 9_216), (128,), (10, 128), (10,))  # PyTorch's
WEIGHTS = sum(map(math.prod, SHAPES))
RATE, RHO, EPSILON = 1.0, 0.9, 1e-6  # of Adadelta, as PyTorch has them
FIRST, MOST = 4, 512  # steps that are compared, and images in them, unless the first step alone has more
FEW = 8  # images, a batch of which is compared closely after the first step, too
LEARNED = 50, 64  # steps, and images in each, after which a network must have learned something
SIZES = ((6_000, 64), (6_000, 256), (60_000, 64), (60_000, 256), (60_000, 1_024))
EDGE_SIZES = ((1, 1), (9, 3), (8, 2))  # all of whose steps are compared closely
AXES = 3  # of none of the arrays another number
TIME_LIMIT = 3_600  # seconds per result


def label(size):
    images, batch = size
    return f"{images:,} image{'s' * (images != 1)} in batches of {batch:,}"


def too_small(size):
    """Why this is no size, or None."""
    images, batch = size
    return "batches are whole, and these images fill none" if images < batch else None


def wrong_inputs():
    """What a recipe must refuse with a ValueError that names the shapes."""
    shapes = (2, 3, 28, 28), (2, 3, 10), (WEIGHTS,)
    others = (
        (0, (2, 4, 28, 28)),
        (0, (3, 3, 28, 28)),
        (0, (6, 28, 28)),
        (0, (2, 3, 28, 27)),
        (1, (2, 3, 9)),
        (1, (2, 3)),
        (2, (WEIGHTS - 1,)),
        (2, (1, WEIGHTS)),
    )
    empty = [tuple(np.zeros((*lead, *end), np.float32) for end in ((28, 28), (10,))) for lead in ((0, 3), (2, 0))]
    zeros = [np.zeros(shape, np.float32) for shape in shapes]
    wrong = [(*zeros[:place], np.zeros(shape, np.float32), *zeros[place + 1 :]) for place, shape in others]
    return wrong + [(*each, zeros[-1]) for each in empty]


def inputs(size, seed=0):
    """(images, targets, weights), of whole batches.

    Each class has a pattern of three waves. An image is the pattern of its class, brighter or darker, and noise, which
    repeats after 1,000,003 values; so that a trained network is right about most of them, and never about all. The
    upper rows are 0, as the edges of MNIST's images are: there, all of 2×2 numbers are the largest. The weights are
    uniform in ±1/√n, of n inputs, as PyTorch draws them.
    """
    images, batch = size
    steps = images // batch
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:28, :28] / 28
    waves = np.random.default_rng(10).uniform(-3, 3, (10, 3, 2))  # the same for every seed: this is the fixed rule
    patterns = np.cos(2 * np.pi * (waves[..., :1, None] * y + waves[..., 1:, None] * x)).mean(axis=1)
    classes = rng.integers(0, 10, steps * batch)
    pixels = patterns.astype(np.float32)[classes] * rng.uniform(0.1, 1, (steps * batch, 1, 1)).astype(np.float32)
    pixels += np.resize(rng.normal(0, 1, min(pixels.size, 1_000_003)).astype(np.float32), pixels.shape)
    pixels[:, :8] = 0
    sides = [1 / math.sqrt(math.prod(shape[1:])) for shape in SHAPES[::2] for _ in range(2)]
    weights = [rng.uniform(-side, side, math.prod(shape)) for side, shape in zip(sides, SHAPES, strict=True)]
    return (
        pixels.reshape(steps, batch, 28, 28),
        np.eye(10, dtype=np.float32)[classes].reshape(steps, batch, 10),
        np.concatenate(weights).astype(np.float32),
    )


def compared(steps, batch):
    """How many of the first steps have a loss that the reference computes."""
    return min(steps, FIRST, max(1, MOST // batch))


def reference(images, targets, weights):
    """The losses of the first steps in float64. Of later ones, which differ with every rounding, and of the accuracy
    after them, the middle of what tolerance() allows."""
    steps, batch = targets.shape[:2]
    first = compared(steps, batch)
    losses, right = np.full(steps, 10.0), 0
    parameters = [x.reshape(shape).astype(np.float64) for x, shape in zip(_split(weights), SHAPES, strict=True)]
    squares, updates = [np.zeros_like(x) for x in parameters], [np.zeros_like(x) for x in parameters]
    for step in range(first):
        gradients = [np.zeros_like(x) for x in parameters]
        losses[step] = 0
        for start in range(0, batch, 32):  # images: the windows of a thousand would take gigabytes
            part = slice(start, start + 32)
            outputs, between = _outputs(parameters, images[step, part].astype(np.float64))
            target = targets[step, part].astype(np.float64)
            outputs -= outputs.max(axis=1, keepdims=True)
            logarithms = outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True))
            losses[step] -= (target * logarithms).sum() / batch
            right += (outputs.argmax(axis=1) == target.argmax(axis=1)).sum()
            if step == first - 1:
                continue  # no loss that is compared comes after it
            back = (np.exp(logarithms) * target.sum(axis=1, keepdims=True) - target) / batch
            for gradient, more in zip(gradients, _gradients(parameters, between, back), strict=True):
                gradient += more
        for x, gradient, square, update in zip(parameters, gradients, squares, updates, strict=True):
            square += (1 - RHO) * (gradient**2 - square)
            change = np.sqrt((update + EPSILON) / (square + EPSILON)) * gradient
            update += (1 - RHO) * (change**2 - update)
            x -= RATE * change
    return np.append(losses, right / (steps * batch) if steps == first else 0.75)


def _split(weights):
    return np.split(weights, np.cumsum([math.prod(shape) for shape in SHAPES])[:-1])


def _outputs(parameters, images):
    """(the network's outputs, what _gradients() needs). Channels are the last axis between the layers."""
    w1, b1, w2, b2, w3, b3, w4, b4 = parameters
    x1 = images[..., None]
    x2 = np.maximum(_convolved(x1, w1) + b1, 0)
    x3 = np.maximum(_convolved(x2, w2) + b2, 0)
    squares = x3.reshape(-1, 12, 2, 12, 2, 64).transpose(0, 5, 1, 3, 2, 4).reshape(-1, 64, 12, 12, 4)
    largest = squares.argmax(axis=-1)[..., None]
    x4 = np.take_along_axis(squares, largest, -1).reshape(-1, 9_216)
    x5 = np.maximum(x4 @ w3.T + b3, 0)
    return x5 @ w4.T + b4, (x1, x2, x3, largest, x4, x5)


def _convolved(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.tensordot(windows, w, axes=((3, 4, 5), (1, 2, 3)))


def _gradients(parameters, between, back):
    """Of the loss by each parameter. ``back``: of the loss by the outputs."""
    _, _, w2, _, w3, _, w4, _ = parameters
    x1, x2, x3, largest, x4, x5 = between
    of_w4, of_b4 = back.T @ x5, back.sum(axis=0)
    back = back @ w4 * (x5 > 0)
    of_w3, of_b3 = back.T @ x4, back.sum(axis=0)
    pooled = (back @ w3).reshape(-1, 64, 12, 12, 1)
    spread = np.where(largest == np.arange(4), pooled, 0).reshape(-1, 64, 12, 12, 2, 2)
    back = spread.transpose(0, 2, 4, 3, 5, 1).reshape(-1, 24, 24, 64) * (x3 > 0)
    of_w2, of_b2 = _by_windows(x2, back), back.sum(axis=(0, 1, 2))
    earlier = np.zeros_like(x2)
    for i, j in np.ndindex(3, 3):
        earlier[:, i : i + 24, j : j + 24] += back @ w2[:, :, i, j]
    back = earlier * (x2 > 0)
    return _by_windows(x1, back), back.sum(axis=(0, 1, 2)), of_w2, of_b2, of_w3, of_b3, of_w4, of_b4


def _by_windows(x, back):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.tensordot(back, windows, axes=((0, 1, 2), (0, 1, 2)))


def tolerance(expected, images, targets, weights):
    """Of the first step's loss 2**-20, 16 roundings to float32: the recipes here were off by less than 3 of them.

    The losses after it depend on derivatives, and these jump where a sum is near 0 at a ReLU, or where two of 2×2 are
    nearly equal: a rounding may decide either way. Of a few images, hardly ever is anything so near, and the loss may
    be off by 2**-18 of it. The recipes here were off by less than a tenth of that at the edge sizes, and the reference
    with noise of 16 roundings after each layer by less than half. Where EPSILON is off by a hundredth, the second
    step's loss is off by 1,000 times what it may be, and by about as much or more where RHO, RATE, the order of the
    batches or the gradient of the biases is wrong, or where each of 2×2 equal numbers has the derivative of the
    largest; by 10 times where the factors of the convolutions are rounded to 11 bits, as TF32 does.
    Of many images, some are so near. With noise of 4 roundings, a loss of 256 images was once off by 2**-13 of it, so
    it may be by 2**-10, which still tells another order from the right one, and most other optimizers.

    From then on, each rounding is another path, and no two libraries have the same losses. These must be between 0 and
    20: an untrained network is at ln 10 = 2.3, and Adadelta's first steps can throw it to 11. The accuracy is exact in
    the first steps, but for one image, of which two outputs may be as good as equal. Where a network must have LEARNED,
    at least half of the images must be right; one that does not learn is right about a tenth. At the published
    sizes that is so of 72 to 87 %, and of 56 % after 23 steps of 256.
    """
    steps, batch = images.shape[:2]
    first = compared(steps, batch)
    scale = np.maximum(1, np.abs(expected[:first]))
    allowed = np.full(steps + 1, 10.0)
    allowed[:first] = (2.0**-18 if batch <= FEW else 2.0**-10) * scale
    allowed[0] = 2.0**-20 * scale[0]
    learned = steps >= LEARNED[0] and batch >= LEARNED[1]
    allowed[-1] = (1 + 2.0**-20) / (steps * batch) if steps == first else 0.25 if learned else 0.75
    return allowed


def error_scale(expected, images, targets, weights):
    """The loss, or 1 if it is less; nothing after the first steps, and nothing of the accuracy."""
    scale = np.full(len(expected), np.inf)
    first = compared(*images.shape[:2])
    scale[:first] = np.maximum(1, np.abs(expected[:first]))
    return scale


def bytes_moved(size):
    """At least: the images, targets and weights read once, the losses and the accuracy written once, 4 bytes each."""
    images, batch = size
    steps = images // batch
    return 4 * (steps * batch * (28 * 28 + 10) + WEIGHTS + steps + 1)


def operations(size):
    """A multiplication and an addition for each product of the network, three times: forward, and backward for the
    weights and for what came before them, of which the first layer needs none."""
    images, batch = size
    first, later = 26**2 * 9 * 32, 24**2 * 288 * 64 + 9_216 * 128 + 128 * 10
    return 2 * (images // batch * batch) * (2 * first + 3 * later)


def footprint(size):
    """Bytes of all arrays: those given, the weights with their gradients and Adadelta's two averages, and what the
    layers of a batch compute, forward and backward."""
    images, batch = size
    layers = 26**2 * 32 + 24**2 * 64 + 9_216
    return bytes_moved(size) + 4 * (4 * WEIGHTS + 3 * batch * layers)
