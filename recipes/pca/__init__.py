"""PCA: the first 10 principal components of samples and their variances, as scikit-learn's PCA(10).fit, float64.

The n×p ``samples`` X are given, of at least 10 rows and 10 columns: PCA refuses fewer, and so is a ValueError here. The
result has a row for each component, that of the largest variance first: its variance, which is an eigenvalue of the
covariance matrix AᵀA / (n - 1), where A is X less the means of its columns; and after it the p coefficients of the
component, the eigenvector of length 1. Of the two of those, it is the one whose largest coefficient by magnitude is
positive, as in scikit-learn.

float64, for the same reason as in regression. All values are finite, since scikit-learn refuses others, and so are the
sums of their squares.
"""

import numpy as np

COMPONENTS = 10
SIZES = ((10_000, 100), (100_000, 100), (1_000_000, 200))
EDGE_SIZES = ((10, 10), (11, 15), (257, 16), (1_003, 11))
# One between the edge sizes, and others beyond them; one is a multiple of every block.
MORE_SIZES, LARGE_SIZES = ((31, 32),), ((8_192, 64), (70_001, 12), (301, 131))
TIME_LIMIT = 300  # seconds per result


def label(size):
    return "×".join(f"{n:,}" for n in size)


def too_small(size):
    """Why this is no size, or None."""
    return f"PCA takes at least {COMPONENTS} rows and {COMPONENTS} columns" if min(size) < COMPONENTS else None


def inputs(size, seed=0):
    """One array, each of whose rows is a random walk: it begins at 1, and each column is a step of normal(0, 1) further
    than the one before. The steps repeat after 1,000,003 values, as in multiply.

    Their variances are far from each other: of many rows, that of the j-th component is near
    1 / (4 sin²((2 j - 1) π / (4 p + 2))), and so the second has a ninth of the first one's, and the third a 25th.
    """
    rows, columns = size
    if min(size) < COMPONENTS:
        raise ValueError(f"a size of pca has at least {COMPONENTS} rows and {COMPONENTS} columns, not {label(size)}")
    steps = np.resize(np.random.default_rng(seed).standard_normal(min(rows * columns, 1_000_003)), (rows, columns))
    steps[:, 0] += 1
    return (np.cumsum(steps, axis=1, out=steps),)


def wrong_inputs():
    """What a recipe must refuse with a ValueError that names the shape."""
    return [(np.ones(shape),) for shape in ((9, 20), (20, 9), (0, 20), (20, 0), (100,), (), (12, 12, 12))]


def reference(samples):
    variances, components = np.linalg.eigh(_moments(samples)[1] / (len(samples) - 1))  # the smallest first
    variances, components = variances[: -COMPONENTS - 1 : -1], components[:, : -COMPONENTS - 1 : -1].T
    largest = np.take_along_axis(components, np.abs(components).argmax(axis=1, keepdims=True), axis=1)
    return np.column_stack((np.maximum(variances, 0), components * np.sign(largest)))


def _moments(samples):
    """(the columns' means, AᵀA). In blocks of rows: a copy of all samples would need gigabytes."""
    centre = samples.mean(axis=0)
    products = np.zeros((len(centre),) * 2)
    rows = max(1, 2**20 // len(centre))
    for start in range(0, len(samples), rows):
        block = samples[start : start + rows] - centre
        products += block.T @ block
    return centre, products


def tolerance(expected, samples):
    """What roundings to float64 can leave in the eigenvalues and eigenvectors of the covariance matrix C. ‖X‖ is the
    square root of the sum of X's squares.

    - unit = (64 + 4 √n + 3 p) 2**-53: what a sum of n products is off by, and what is added by what is done with a
      matrix of p×p, as in regression.
    - scikit-learn's way to C is (XᵀX - n μμᵀ) / (n - 1), where μ are the columns' means. XᵀX is off by unit ‖X‖², each
      of the two μ by unit times the mean of absolute values, which makes twice that of n μμᵀ, and a solver finds the
      eigenvalues and vectors of a matrix that is off by unit ‖C‖: C is off by 4 unit ‖X‖² / (n - 1) altogether. If X is
      centred first, or its SVD is computed, C is off by less; it is by far less where the means are large.
    - A symmetric matrix that is off by e has eigenvalues that are off by at most e (Weyl), and eigenvectors off by at
      most 2 √2 e / gap, where the gap is the distance to the next eigenvalue above or below (Yu, Wang and Samworth, A
      useful variant of the Davis-Kahan theorem for statisticians, 2015, Corollary 1).

    All twice: the reference may be off the other way. So at the published sizes a variance may be off by 6e-12 of the
    first one, and a coefficient by 3e-8. Of inputs(), components that are fitted in float32 are off by more than 100
    times what they may be, and the recipes for a CPU by less than a hundredth of it, at every size that was tried.

    Where eigenvalues are as near to each other as they may be off, no direction is more right than another: a
    coefficient may then be off by 2, which is no limit, and only the variance is judged. So it is if the largest
    positive coefficient is that near to the largest negative one, since either may then decide the sign.
    """
    n, p = samples.shape
    centre, products = _moments(samples)
    squares = products.trace() + n * (centre @ centre)
    off = 2 * 4 * (64 + 4 * n**0.5 + 3 * p) * 2.0**-53 * squares / (n - 1)
    variances = np.linalg.eigvalsh(products / (n - 1))[::-1]
    # Not -np.diff: of two that are equal it makes -0.0, by which what a coefficient may be off by would be -inf.
    distances = np.concatenate(([np.inf], np.abs(np.diff(variances)), [np.inf]))
    gaps = np.minimum(distances[:-1], distances[1:])[:COMPONENTS]
    with np.errstate(divide="ignore", invalid="ignore"):
        of_components = np.fmin(2 * 2**0.5 * off / gaps, 2)
    coefficients = expected[:, 1:]
    of_components[np.abs(coefficients.max(axis=1) + coefficients.min(axis=1)) <= 2 * of_components] = 2
    return np.column_stack((np.full(COMPONENTS, off), *[of_components] * p))


def error_scale(expected, samples):
    """Of a variance, the first one; of a coefficient, the length of the component."""
    return np.append(expected[0, 0], np.ones(samples.shape[1]))


def bytes_moved(size):
    """At least: the samples read once, the variances and components written once, 8 bytes each."""
    rows, columns = size
    return 8 * (rows * columns + COMPONENTS * (columns + 1))


def operations(size):
    """A multiplication and an addition for each product in half of AᵀA, which is symmetric (with more columns than
    rows, of AAᵀ). All eigenvalues and vectors of it take several p³ more, and an SVD of A several times as many."""
    rows, columns = size
    return rows * columns * (min(size) + 1)


def footprint(size):
    """Bytes of all arrays: the given one, and it less its means."""
    rows, columns = size
    return 16 * rows * columns


def special_inputs(size, seed=0):
    """(description, array): samples far from 0, small ones, columns of many magnitudes, columns that say nothing or the
    same as another, and no variance at all."""
    if seed > 1:
        return  # other ordinary values around them show nothing new
    (samples,) = inputs(size, seed)
    yield "samples far from 0: ", (samples + 1e4,)
    yield "small samples: ", (samples * 1e-6,)
    yield "columns from 1e-2 to 1e2: ", (samples * 10.0 ** (np.arange(size[1]) % 5 - 2),)
    special = samples.copy()
    special[:, 0] = 0.1
    yield "a column of one number: ", (special,)
    special = samples.copy()
    special[:, -1] = special[:, 0]
    yield "two columns that are the same: ", (special,)
    yield "0.1 everywhere: ", (np.full_like(samples, 0.1),)
