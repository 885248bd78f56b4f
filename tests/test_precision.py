"""Results are as exact as IEEE arithmetic makes them, whatever the order of a sum, and TF32, float16, bfloat16 and sums
in float32 are not."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_cookbook import catalogue
from gpu_cookbook.recipes import convolution, increment, matmul, multiply, norm, subset_mean
from gpu_cookbook.run import precision
from gpu_cookbook.run.expected import Expected

K = (1, 2, 3, 17, 200, 512, 4_096, 50_000)


def rounded(x, bits):
    """float32 numbers rounded to so many bits: 11 for TF32 and float16, 8 for bfloat16."""
    keep = 24 - bits
    whole = x.astype(np.float32).view(np.uint32).astype(np.uint64) + (1 << (keep - 1))
    return (whole >> keep << keep).astype(np.uint32).view(np.float32)


def one_by_one(products):
    """The sum over the first axis in float32, in this order."""
    return np.cumsum(products, axis=0, dtype=np.float32)[-1]


def in_blocks(products):
    return one_by_one(np.stack([one_by_one(products[first : first + 32]) for first in range(0, len(products), 32)]))


def in_pairs(products):
    while len(products) > 1:
        products = np.concatenate(
            [products[::2][: len(products) // 2] + products[1::2], products[len(products) // 2 * 2 :]]
        )
    return products[0]


ORDERS = {
    "one by one": one_by_one,
    "backwards": lambda products: one_by_one(products[::-1]),
    "every other first": lambda products: one_by_one(np.concatenate([products[::2], products[1::2]])),
    "in blocks": in_blocks,
    "in pairs": in_pairs,
}


def products(a, b):
    """K × M × N products in float32."""
    return a.T[:, :, None] * b[:, None, :]


def factors(k, seed=1, rows=6, columns=7):
    return matmul.inputs((rows, k, columns), seed)


@pytest.mark.parametrize("k", K)
@pytest.mark.parametrize("order", ORDERS)
def test_a_float32_product_in_any_order_is_accepted(order, k):
    for seed in range(4):
        a, b = factors(k, seed)
        assert Expected(matmul, (a, b)).disagreement(ORDERS[order](products(a, b))) is None


def test_many_float32_sums_one_by_one_are_accepted():
    k = 4_096
    a, b = factors(k, rows=150, columns=150)
    result = np.zeros((150, 150), np.float32)
    for i in range(k):
        result += np.outer(a[:, i], b[i])
    assert Expected(matmul, (a, b)).disagreement(result) is None


@pytest.mark.parametrize("k", K)
@pytest.mark.parametrize("value", [0.1, -3.3, 1e-40, 1e30])
def test_float32_sums_of_equal_numbers_are_accepted(value, k):
    a, b = np.full((2, k), value, np.float32), np.full((k, 3), 0.7, np.float32)
    assert Expected(matmul, (a, b)).disagreement(one_by_one(products(a, b))) is None


@pytest.mark.parametrize("k", K)
@pytest.mark.parametrize("bits", [11, 8])
def test_rounded_factors_are_rejected_at_every_size(bits, k):
    a, b = factors(k, rows=20, columns=20)
    result = (rounded(a, bits).astype(float) @ rounded(b, bits).astype(float)).astype(np.float32)
    assert "elements are wrong" in Expected(matmul, (a, b)).disagreement(result)


def multiplied_with(bits):
    """A recipe for matmul that rounds its factors; 24 bits are float32's own."""

    class Module:
        upload = staticmethod(lambda *arrays: arrays)
        wait = staticmethod(lambda result: None)
        download = staticmethod(lambda result: result)
        matmul = staticmethod(lambda a, b: rounded(a, bits) @ rounded(b, bits) if bits < 24 else a @ b)

    return Module


@pytest.mark.parametrize("size", [size for size in matmul.EDGE_SIZES if 0 not in size])
def test_inputs_with_one_right_answer_tell_every_lost_bit(size):
    assert precision.inexact(multiplied_with(24), matmul, size) is None
    for bits in (8, 11, 16, 22, 23):
        assert "elements are not exact" in precision.inexact(multiplied_with(bits), matmul, size)


def test_what_a_recipe_declares_is_accepted_and_nothing_less():
    (recipe,) = catalogue.choose(["matmul"], ["numpy"])
    a, b = factors(4_096, rows=20, columns=20)
    tf32, bfloat16 = ((rounded(a, n).astype(float) @ rounded(b, n)).astype(np.float32) for n in (11, 8))
    for math, right, wrong in (
        ("TF32", [tf32], [bfloat16]),
        ("TF32, float32 sums", [tf32], [bfloat16]),
        ("bfloat16 factors", [tf32, bfloat16], []),
        ("float32, TF32 off (PyTorch's default)", [], [tf32, bfloat16]),
        ("", [], [tf32, bfloat16]),
    ):
        expected = Expected(precision.workload_for(replace(recipe, math=math)), (a, b))
        assert all(expected.disagreement(each) is None for each in right)
        assert all(expected.disagreement(each) for each in wrong)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (16, 16), (333, 1_000), (2_053, 2_051)])
def test_only_a_float64_mean_is_accepted(shape):
    for seed in range(3):
        (x,) = subset_mean.inputs(shape, seed)
        values = (x[::2, ::2] + 1).ravel()
        expected = Expected(subset_mean, (x,))
        for sums in (np.cumsum(values)[-1], np.cumsum(values[::-1])[-1], values.sum()):
            assert expected.disagreement(np.float64(sums / values.size)) is None
        single = values.astype(np.float32)
        for sums in (np.cumsum(single, dtype=np.float32)[-1], single.sum(), in_pairs(single), single.sum(dtype=float)):
            assert expected.disagreement(np.float64(sums / values.size))


def test_means_near_zero_may_be_off_by_what_their_terms_are_rounded():
    x = np.random.default_rng(0).normal(-1, 1e3, (400, 400))
    values = (x[::2, ::2] + 1).ravel()
    expected = Expected(subset_mean, (x,))
    assert expected.disagreement(np.float64(np.cumsum(values)[-1] / values.size)) is None
    assert expected.disagreement(np.float64(values.astype(np.float32).sum(dtype=float) / values.size))


@pytest.mark.parametrize("size", [257, 100_003, 2**20])
def test_a_norm_of_many_float32_sums_is_accepted_and_that_of_one_is_not(size):
    for seed in range(3):
        (x,) = norm.inputs(size, seed)
        expected, squares = Expected(norm, (x,)), x * x
        of_threads = one_by_one(squares[: size // 256 * 256].reshape(-1, 256))  # 256 sums, one by one each
        in_threads = in_pairs(np.append(of_threads, squares[size // 256 * 256 :]))
        for total in (squares.sum(dtype=float), squares.sum(), in_pairs(squares), in_threads):
            assert expected.disagreement(np.float32(np.sqrt(total))) is None
        if size > 100_000:
            assert expected.disagreement(np.sqrt(one_by_one(squares)))


@pytest.mark.parametrize("size", [1, 2, 255])
@pytest.mark.parametrize("bits", [11, 8])
def test_a_norm_of_rounded_numbers_is_rejected(bits, size):
    (x,) = norm.inputs(size)
    assert Expected(norm, (x,)).disagreement(np.linalg.norm(rounded(x, bits)))


def test_a_norm_whose_squares_do_not_fit_is_infinity_or_the_norm():
    x = np.full(100, 1e30, np.float32)
    expected = Expected(norm, (x,))
    assert [expected.disagreement(np.float32(each)) is None for each in (1e31, np.inf, np.nan)] == [True, True, False]
    x[3] = np.inf
    expected = Expected(norm, (x,))
    assert [expected.disagreement(np.float32(each)) is None for each in (1e31, np.inf, np.nan)] == [False, True, False]


# ---- The error as a metric.


def error_of(workload, inputs, result):
    return precision.error(Expected(workload, inputs), lambda: result)


@pytest.mark.parametrize("size", [(10_000, 100), (1_000_000, 1_000)])
def test_a_convolution_in_float32_is_accepted_and_that_of_a_rounded_signal_is_not(size):
    from scipy.signal import fftconvolve  # here: every process of pytest imports this file

    signal, kernel = convolution.inputs(size)
    expected = convolution.reference(signal, kernel)
    allowed = convolution.tolerance(expected, signal, kernel)
    assert np.abs(fftconvolve(signal, kernel) - expected).max() < allowed / 20
    assert np.abs(convolution.reference(signal.astype(np.float16), kernel) - expected).max() > 5 * allowed


def test_an_elementwise_result_has_no_error():
    (a, b), (c,) = multiply.inputs(1000), increment.inputs(1000)
    assert error_of(multiply, (a, b), a * b) == 0 and error_of(increment, (c,), c + 1) == 0


def test_the_error_of_a_product_is_relative_to_its_row_and_column():
    a, b = np.array([[3, 4]], np.float32), np.array([[5], [12]], np.float32)
    assert error_of(matmul, (a, b), np.float32([[63 + 65 / 8]])) == 1 / 8  # lengths 5 and 13


def test_the_error_tells_math_modes_apart():
    a, b = factors(1_000, rows=30, columns=30)
    float32 = error_of(matmul, (a, b), a @ b)
    tf32 = error_of(matmul, (a, b), (rounded(a, 11).astype(float) @ rounded(b, 11)).astype(np.float32))
    assert 0 < float32 < 1e-6 < 1e-5 < tf32


def test_the_error_of_a_mean_is_relative_to_it():
    (x,) = subset_mean.inputs((5, 5))
    assert error_of(subset_mean, (x,), Expected(subset_mean, (x,)).answer * (1 + 2**-40)) == pytest.approx(
        2**-40, rel=1e-3
    )


def test_an_empty_result_and_a_mean_of_unknown_samples_have_no_error():
    inputs = matmul.inputs((0, 5, 3))
    assert error_of(matmul, inputs, inputs[0] @ inputs[1]) is None
    numpy, tuned = (catalogue.find("random_subset_mean", name) for name in ("numpy", "numba_cpu_tuned"))
    workload = precision.workload_for(numpy)
    assert error_of(workload, workload.inputs(4_000), 11.0) is None
    shared = precision.workload_for(tuned)
    assert error_of(shared, shared.inputs(4_000), shared.MEANS[4_000, 4_000] * (1 + 2**-40)) == pytest.approx(
        2**-40, 1e-3
    )
    assert error_of(shared, shared.inputs(30_000), 11.0) is None  # no mean is stored
