"""Ridge regression: the coefficients and the intercept of scikit-learn's Ridge(alpha=1).fit(samples, targets), float64.

The n×p ``samples`` X and the n ``targets`` y are given. The result is the p coefficients w, and the intercept c as the
last element, for which the sum of the squares of y - X w - c, plus alpha times that of w, is least; the intercept is
not penalised. With one row, all coefficients are 0. Without a row or a column there is nothing to fit: a ValueError.

float64, which is also NumPy's default, because an error in float32 says little: a sum of n products may be off by
n × 2**-24 of it, 6 % at a million rows, and so nobody could say of a wrong result that it is wrong. All values are
finite, since scikit-learn refuses others, and so are the sums of their squares: of larger values, some recipes say that
the coefficients are 0.
"""

import numpy as np

ALPHA = 1.0  # scikit-learn's default
SIZES = ((10_000, 100), (100_000, 100), (1_000_000, 200))
EDGE_SIZES = (
    *((1, 1), (1, 5), (2, 1), (3, 4), (20, 50), (257, 16), (1_003, 3)),
    (20_011, 1),
    (457, 20),
)
# Sizes between the edge sizes, and beyond them; one is a multiple of every block.
MORE_SIZES, LARGE_SIZES = ((31, 32), (999, 3)), ((8_192, 64), (70_001, 7), (301, 131))
TIME_LIMIT = 300  # seconds per result


def label(size):
    return "×".join(f"{n:,}" for n in size)


def inputs(size, seed=0):
    """(samples, targets): an array of rows × columns, normal(1, 1), that repeats after 1,000,003 values, as in
    multiply; and what a linear model with coefficients from -1 to 1 and the intercept 3 makes of it, plus noise of
    normal(0, 1).

    Of n rows, many more than p columns, the condition number of the centred samples is near (√n + √p) / (√n - √p): at
    the published sizes it is below 1.3.
    """
    rows, columns = size
    rng = np.random.default_rng(seed)
    samples = np.resize(rng.normal(1, 1, min(rows * columns, 1_000_003)), (rows, columns))
    return samples, 3 + samples @ np.linspace(-1, 1, columns) + rng.standard_normal(rows)


def wrong_inputs():
    """What a recipe must refuse with a ValueError that names the shapes."""
    return [
        (np.ones(shape), np.ones(other))
        for shape, other in (
            ((6, 2), (5,)),
            ((6, 2), (1,)),
            ((6, 2), (6, 1)),
            ((6,), (6,)),
            ((6, 2, 1), (6,)),
            ((0, 2), (0,)),
            ((6, 0), (6,)),
        )
    ]


def reference(samples, targets):
    centre, middle, products, moments = _centred(samples, targets)
    coefficients = np.linalg.solve(products + ALPHA * np.eye(len(centre)), moments)
    return np.append(coefficients, middle - centre @ coefficients)


def _centred(samples, targets):
    """(the columns' means, the targets' mean, AᵀA, Aᵀb): A and b are the samples and targets less their means. In
    blocks of rows: a copy of all samples would need gigabytes."""
    centre, middle = samples.mean(axis=0), targets.mean()
    products, moments = np.zeros((len(centre),) * 2), np.zeros(len(centre))
    rows = max(1, 2**20 // len(centre))
    for start in range(0, len(samples), rows):
        block = samples[start : start + rows] - centre
        products += block.T @ block
        moments += block.T @ (targets[start : start + rows] - middle)
    return centre, middle, products, moments


def tolerance(expected, samples, targets):
    """What roundings to float64 can leave in the solution w of (AᵀA + alpha I) w = Aᵀb, and in the intercept: A and b
    are the samples and targets less their means, ‖A‖ the square root of the sum of A's squares, and λ the least
    eigenvalue of AᵀA + alpha I.

    - unit = (64 + 4 √n + 3 p) 2**-53. A sum of n products is in practice off by at most (64 + 4 √n) 2**-53 times the
      lengths of its two vectors: see subset_mean, whose terms have one sign, and matmul, where others leave less. A
      Cholesky or LU factorisation adds what 3 p roundings do (Higham, Accuracy and Stability of Numerical Algorithms,
      §10.1).
    - So the matrix is off by unit (‖A‖² + p alpha), and the right side by unit (‖A‖² + p alpha)^½ ‖b‖, as that of A
      with √alpha I as more rows, which is another way to solve it. w is off by the one times ‖w‖ / λ, and the other
      / λ. An SVD is that of a matrix which is off by less than unit ‖A‖ / 2, and AᵀA by twice ‖A‖ times that.
    - A mean of absolute values m is off by unit m. What is left of that in A and b adds up to nothing, but for the
      product of the two: n unit² m² in AᵀA, and in Aᵀb.
    - The intercept is the targets' mean less the columns' means times w: it is off by what w is, times the length of
      these means, and by unit times what is added up.

    All twice: the reference may be off the other way. At the published sizes, w may be off by 2.4e-10 of its length,
    and the recipes here were off by less than a twentieth of what they may be, at every size that is checked.
    Of inputs(), one that was fitted in float32, in TF32 or without alpha is off by more than 10,000 times what it may
    be, wherever there are two rows or more; at a million rows, where alpha says least, without it by thousands of times
    that. Where columns differ by magnitudes, it is told from others less well: the bounds are those of whole matrices.
    """
    n, p = samples.shape
    centre, middle, products, _ = _centred(samples, targets)
    unit = (64 + 4 * n**0.5 + 3 * p) * 2.0**-53
    rows = max(1, 2**20 // p)  # at a time, as in _centred
    columns = sum(np.abs(samples[start : start + rows]).sum(axis=0) for start in range(0, n, rows)) / n
    each = np.abs(targets).mean()
    left, right = unit * n**0.5 * np.linalg.norm(columns), unit * n**0.5 * each
    square, length = products.trace(), np.linalg.norm(expected[:-1])
    least = max(np.linalg.eigvalsh(products)[0], 0) + ALPHA
    matrix = (unit * (square + p * ALPHA) + left**2) * length
    side = unit * (square + p * ALPHA) ** 0.5 * np.linalg.norm(targets - middle) + left * right
    of_coefficients = 2 * (matrix + side) / least
    of_intercept = np.linalg.norm(centre) * of_coefficients + 2 * unit * (each + columns @ np.abs(expected[:-1]))
    return np.append(np.full(p, of_coefficients), of_intercept)


def error_scale(expected, samples, targets):
    """The length of the result: some coefficients are near 0."""
    return np.linalg.norm(expected)


def bytes_moved(size):
    """At least: the samples and targets read once, the coefficients and the intercept written once, 8 bytes each."""
    rows, columns = size
    return 8 * (rows * columns + rows + columns + 1)


def operations(size):
    """A multiplication and an addition for each product in half of AᵀA, which is symmetric (with more columns than
    rows, of AAᵀ), and in Aᵀb. Solving for p coefficients adds p³ / 3, and an SVD takes several times as many."""
    rows, columns = size
    fewer = min(size)
    return rows * columns * (fewer + 1) + 2 * rows * columns


def footprint(size):
    """Bytes of all arrays: the given ones, and these less their means. (An SVD needs room for two more of them.)"""
    rows, columns = size
    return 16 * rows * (columns + 1)


def special_inputs(size, seed=0):
    """(description, arrays): samples far from 0, columns of many magnitudes, and columns that say nothing, or the same
    as another."""
    if seed > 1:
        return  # other ordinary values around them show nothing new
    samples, targets = inputs(size, seed)
    yield "samples and targets far from 0: ", (samples + 1e4, targets - 1e6)
    yield "columns from 1e-2 to 1e2: ", (samples * 10.0 ** (np.arange(size[1]) % 5 - 2), targets)
    special = samples.copy()
    special[:, 0] = 0.1
    yield "a column of one number: ", (special, targets)
    special = samples.copy()
    special[:, -1] = special[:, 0]
    yield "two columns that are the same: ", (special, targets)
    yield "targets of 0: ", (samples, np.zeros_like(targets))
    yield "small samples, which alpha decides about: ", (samples * 1e-3, targets)
