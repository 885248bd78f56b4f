"""Convolution: scipy.signal.fftconvolve(signal, kernel), the sum of signal[j] * kernel[i - j] over j, float32.

Of n samples and a kernel of k, both one-dimensional, the result is the n + k - 1 sums to which at least one product
contributes (``mode="full"``): nothing wraps around, and the kernel runs backwards. If either is empty, so is the
result.

In float32, because most signals are, because GPUs are fast in it, and because its errors are small enough to tell right
from wrong: a Fourier transform of N values has log2(N) stages, and so of 16,000,000 samples a result may be off by
0.0002 of the results' root mean square, where a signal that was rounded to float16 leaves five times that. All values
are finite, and no sum is near the largest float32: a Fourier transform spreads a single NaN over the whole result.
"""

import numpy as np

SIZES = ((10_000, 100), (1_000_000, 1_000), (16_000_000, 10_000))
AXES = 1  # of each array; any other number is refused
# The last has 1,097 results, a prime. Few, since JAX compiles for each.
EDGE_SIZES = ((0, 0), (0, 3), (5, 0), (1, 1), (7, 1), (2, 5), (257, 16), (1_009, 89))
# Between the edge sizes, one with 2**8 + 1 results and one whose kernel is far longer than its signal; beyond them, one
# whose kernel is the longer one, too.
MORE_SIZES, LARGE_SIZES = ((61, 13), (249, 9), (7, 40)), ((100_003, 1_009), (10_007, 20_011))
TIME_LIMIT = 300  # seconds per result


def label(size):
    return "×".join(f"{n:,}" for n in size)


def inputs(size, seed=0):
    """(signal, kernel), both normal(0, 1): the signal repeats after 1,000,003 values, as in multiply, and the kernel is
    divided by the square root of its length, so that most results are near normal(0, 1) as well."""
    samples, taps = size
    rng = np.random.default_rng(seed)
    signal = np.resize(rng.standard_normal(min(samples, 1_000_003), np.float32), samples)
    return signal, rng.standard_normal(taps, np.float32) / np.float32(max(1, taps)) ** np.float32(0.5)


def wrong_inputs():
    """What a recipe must refuse with a ValueError that names the shapes."""
    shapes = (((6, 2), (3, 2)), ((6, 2), (3,)), ((6,), (3, 1)), ((6,), ()), ((), ()), ((6, 0), (3, 0)))
    return [(np.ones(shape, np.float32), np.ones(other, np.float32)) for shape, other in shapes]


def reference(signal, kernel):
    """By Fourier transforms in float64, padded to a power of two, which is more than n + k - 2."""
    if not (signal.size and kernel.size):
        return np.zeros(0)
    full = signal.size + kernel.size - 1
    n = 1 << (full - 1).bit_length()
    spectrum = np.fft.rfft(signal.astype(np.float64), n)
    spectrum *= np.fft.rfft(kernel.astype(np.float64), n)
    return np.fft.irfft(spectrum, n)[:full]


def tolerance(expected, signal, kernel):
    """20 log2(4 n) 2**-24 (‖signal‖ ‖kernel‖ / √n + the largest absolute result), of n results; ‖x‖ is the length of x.

    - A Fourier transform of N values in float32 is off by at most 6.7 log2(N) 2**-24 of its length: by log2(N) η, where
      η = μ + 4 u (√2 + μ), u is 2**-24, and the roots of unity are off by μ, which is u (Higham, Accuracy and Stability
      of Numerical Algorithms, 2nd ed., Theorem 24.2). There are three transforms, and the product of two of them is
      off by 3 u more: by 20 log2(2 N) u altogether. N is at most 2 n, if it is padded to a power of two.
    - That of the signal, off by a part e of its length, is off by e ‖signal‖ √N altogether. Times the kernel's, whose
      mean square is ‖kernel‖², and transformed back, each result is off by e ‖signal‖ ‖kernel‖ / √N; and the same holds
      of the kernel's. So it is if an error is spread evenly over frequencies, as those of roundings are, which are as
      often up as down.
    - The transform back is off by e of the results' length. Evenly spread that is e of the root of their mean square;
      where a few results are large, those that are computed with them get more of it, but not more than e of the
      largest.

    The theorem is about powers of two. For lengths with large prime factors, which JAX does not avoid, a library may
    use Bluestein's algorithm: more transforms, of at least twice the length, which these terms do not count. What is
    below is room enough for that on CPUs, and was for JAX's transforms on an H100 and an H200.

    Theorem 24.2 is also about the worst roundings: on CPUs, those of the recipes here left less than a fortieth of this
    for inputs(), at all published sizes, and less than a third for the special inputs, at up to a million samples. A
    signal rounded to 11 bits, as in TF32 and float16, leaves more than five times this at the published sizes.
    """
    if not expected.size:
        return np.zeros(0)
    lengths = (np.linalg.norm(x.astype(np.float64)) for x in (signal, kernel))
    share = np.prod(list(lengths)) / expected.size**0.5
    return 20 * np.log2(4 * expected.size) * 2.0**-24 * (share + np.abs(expected).max())


def error_scale(expected, signal, kernel):
    """The root of the results' mean square: some results are near 0."""
    return np.linalg.norm(expected) / expected.size**0.5


def bytes_moved(size):
    """At least: the signal and the kernel read once, the result written once, 4 bytes each."""
    samples, taps = size
    return 8 * (samples + taps) - 4


def operations(size):
    """At least, whatever is fewer: a multiplication and an addition for each product; or two Fourier transforms of as
    many real values as there are results, there and back, in blocks as long as the shorter array, each
    2.5 N log2(length), and N / 2 complex products of 6."""
    samples, taps = size
    if not min(size):
        return 0
    return min(2 * samples * taps, (samples + taps - 1) * (5 * np.log2(min(size)) + 3))


def footprint(size):
    """Bytes of all arrays: the given ones, and both of them, two transforms, their product and the result once more,
    padded to a power of two."""
    samples, taps = size
    return 4 * (samples + taps) + 24 * (1 << max(0, samples + taps - 2).bit_length())


def special_inputs(size, seed=0):
    """(description, arrays): signals and kernels whose transforms have one large value or all of one magnitude, and
    results that are nearly all 0, or small beside what is added up."""
    if seed > 1 or not all(size):
        return  # other ordinary values around them show nothing new
    signal, kernel = inputs(size, seed)
    one, tap = np.zeros_like(signal), np.zeros_like(kernel)
    one[size[0] // 3] = tap[size[1] // 3] = 1
    yield "a signal of one sample: ", (one, kernel)
    yield "a kernel of one tap: ", (signal, tap)
    yield "a sample of 1e6: ", (signal + np.float32(1e6) * one, kernel)
    yield "far from 0: ", (signal + np.float32(1e4), kernel + np.float32(10))
    yield "0.1 everywhere: ", (np.full_like(signal, 0.1), np.full_like(kernel, 0.1))
    signs = np.where(np.arange(size[0]) % 2, np.float32(-0.3), np.float32(0.3))
    yield "alternating signs: ", (signs, np.full_like(kernel, 0.7))
    yield "small: ", (signal * np.float32(1e-12), kernel)
    yield "0 everywhere: ", (np.zeros_like(signal), kernel)
