"""The workload training: its reference against PyTorch's derivatives, what its tolerance tells apart, and the layouts
of its arrays, which are too large for check to try."""

import math

import numpy as np
import pytest
from accuracy import learned
from conftest import recipes
from test_recipes import module_of

from gpu_cookbook import catalogue
from gpu_cookbook.run.check import variants
from gpu_cookbook.run.expected import Expected

WORKLOAD = catalogue.workload_module("training")
SIZE = (8, 2)


def test_the_share_of_the_last_of_several_passes():
    """NumPy names, in a second pass over the same images, what the weights after the first pass name right."""
    (recipe,) = catalogue.choose(["training"], ["numpy"])
    module, (images, targets, weights) = module_of(recipe), WORKLOAD.inputs(SIZE)
    one, two = (module.training(*(np.concatenate([each] * n) for each in (images, targets)), weights) for n in (1, 2))
    found = learned("numpy", SIZE, 2)
    right = 8 * (2 * float(two[-1]) - float(one[-1]))  # images of the second pass
    assert right == pytest.approx(round(right)) and 0 <= right <= 8
    assert found["accuracy"] == pytest.approx(right / 8, abs=1e-6)
    assert found["last"] == pytest.approx(float(two[-2]), rel=1e-5)
    assert learned("numpy", SIZE, 1)["accuracy"] == pytest.approx(float(one[-1]))


@pytest.mark.parametrize("size", [SIZE, (80, 40)])
@pytest.mark.slow
def test_the_reference_is_what_pytorch_computes_in_float64(size):
    import torch  # here: every process of pytest imports this file

    images, targets, weights = map(torch.tensor, WORKLOAD.inputs(size))
    parts = weights.double().split([math.prod(shape) for shape in WORKLOAD.SHAPES])
    parameters = [x.reshape(shape).requires_grad_() for x, shape in zip(parts, WORKLOAD.SHAPES, strict=True)]
    w1, b1, w2, b2, w3, b3, w4, b4 = parameters
    optimizer = torch.optim.Adadelta(parameters, lr=1.0)
    losses, right = [], 0
    for image, target in zip(images.double(), targets.double(), strict=True):
        optimizer.zero_grad()
        x = torch.conv2d(torch.conv2d(image[:, None], w1, b1).relu(), w2, b2).relu()
        x = torch.max_pool2d(x, 2).flatten(1)
        outputs = (x @ w3.T + b3).relu() @ w4.T + b4
        loss = torch.nn.functional.cross_entropy(outputs, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        right += (outputs.argmax(1) == target.argmax(1)).sum().item()
    expected = WORKLOAD.reference(*WORKLOAD.inputs(size))
    np.testing.assert_allclose([*losses, right / size[0]], expected, rtol=1e-9)


CONVOLVED, OUTPUTS, GRADIENTS = WORKLOAD._convolved, WORKLOAD._outputs, WORKLOAD._gradients


def convolved_in_tf32(x, w):
    return CONVOLVED(rounded(x), rounded(w))


def rounded(x):
    """To 11 significant bits, as TF32 has them."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.round(fraction * 2**11) / 2**11, exponent)


def all_that_are_largest(parameters, images):
    """Of 2×2 equal numbers each has the derivative of the largest, not one of them."""
    outputs, (x1, x2, x3, _, x4, x5) = OUTPUTS(parameters, images)
    squares = x3.reshape(-1, 12, 2, 12, 2, 64).transpose(0, 5, 1, 3, 2, 4).reshape(-1, 64, 12, 12, 4)
    largest = np.where(squares == squares.max(axis=-1, keepdims=True), np.arange(4), -1)
    return outputs, (x1, x2, x3, largest, x4, x5)


def without_biases(*arguments):
    return [0 * x if place % 2 else x for place, x in enumerate(GRADIENTS(*arguments))]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("RATE", 0.99),
        ("RHO", 0.91),
        ("EPSILON", 1.01e-6),
        ("_convolved", convolved_in_tf32),
        ("_outputs", all_that_are_largest),
        ("_gradients", without_biases),
    ],
)
def test_what_differs_a_little_from_the_network_or_its_optimizer_is_found(monkeypatch, name, other):
    inputs = WORKLOAD.inputs(SIZE)
    expected = Expected(WORKLOAD, inputs)
    assert expected.disagreement(expected.answer.astype(np.float32)) is None
    monkeypatch.setattr(WORKLOAD, name, other)
    assert "elements are wrong" in expected.disagreement(WORKLOAD.reference(*inputs).astype(np.float32))


@pytest.mark.slow
def test_the_order_of_the_batches_is_found_and_so_is_the_optimizer_of_many_images(monkeypatch):
    images, targets, weights = inputs = WORKLOAD.inputs((64, 32))
    expected = Expected(WORKLOAD, inputs)
    assert expected.disagreement(expected.answer.astype(np.float32)) is None
    other = WORKLOAD.reference(images[[1, 0]], targets[[1, 0]], weights)
    assert "3 of 3 elements are wrong" in expected.disagreement(other.astype(np.float32))
    same_twice = WORKLOAD.reference(images[[0, 0]], targets[[0, 0]], weights)
    assert "elements are wrong, the first at [1]" in expected.disagreement(same_twice.astype(np.float32))
    monkeypatch.setattr(WORKLOAD, "RHO", 0.91)
    assert "elements are wrong, the first at [1]" in expected.disagreement(
        WORKLOAD.reference(*inputs).astype(np.float32)
    )


@pytest.mark.slow
def test_of_many_steps_a_network_that_learns_nothing_is_found():
    expected = Expected(WORKLOAD, WORKLOAD.inputs((50 * 64, 64)))
    losses = expected.answer[:-1].copy()
    losses[4:] = np.log(10)
    assert expected.disagreement(np.append(losses, 0.7).astype(np.float32)) is None
    for loss, accuracy in ((2.3, 0.1), (np.nan, 0.7), (30, 0.7)):
        losses[20] = loss
        assert expected.disagreement(np.append(losses, accuracy).astype(np.float32))


@pytest.mark.parametrize("recipe", recipes(lambda recipe: recipe.workload == "training"))
def test_arrays_are_taken_in_any_layout(recipe):
    upload = module_of(recipe).upload
    for _, inputs in variants(WORKLOAD.inputs((2, 2)), any_shape=False):
        for x, there in zip(inputs, upload(*inputs), strict=True):
            np.testing.assert_array_equal(np.asarray(there), x)
