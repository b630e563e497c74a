"""What each puzzle's kernel returns, in NumPy with 64 bits."""

import math
from collections.abc import Callable

import numpy as np


def wide(array: np.ndarray) -> np.ndarray:
    """Floats in 64 bits, integers as they are."""
    return array if array.dtype.kind in "iu" else array.astype(np.float64)


def copy(x: np.ndarray) -> np.ndarray:
    """x."""
    return x


def axpy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """2 x + y."""
    return 2 * x + y


def row_sum(x: np.ndarray) -> np.ndarray:
    """(m, 1)."""
    return x.sum(1, keepdims=True)


def ragged_relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0)."""
    return np.maximum(x, 0)


def transpose(x: np.ndarray) -> np.ndarray:
    """(n, m)."""
    return x.T


def column_sum(x: np.ndarray) -> np.ndarray:
    """(1, n)."""
    return x.sum(0, keepdims=True)


def matmul_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a.T @ b."""
    return a.T @ b


def softmax(x: np.ndarray) -> np.ndarray:
    """Of each row."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def rmsnorm(x: np.ndarray, gain: np.ndarray, epsilon: float = 1e-6) -> np.ndarray:
    """Each row over the root of the mean of its squares, times gain."""
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + epsilon) * gain


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a.T @ b."""
    return a.T @ b


def gelu(x: np.ndarray) -> np.ndarray:
    """x times the normal distribution's function at x."""
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def bias_gelu(a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """gelu(b.T @ a + bias)."""
    return gelu(b.T @ a + bias)


def causal_softmax(x: np.ndarray) -> np.ndarray:
    """Row i sees columns 0 to i."""
    return softmax(np.where(np.tri(*x.shape[-2:]), x, -np.inf))


def rope(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """The halves of each row, turned by angles."""
    low, high = np.split(x, 2, 1)
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], 1)


def causal_conv(x: np.ndarray, taps: np.ndarray) -> np.ndarray:
    """taps[:, j] times x shifted right by j, summed."""
    total = taps[:, :1] * x
    for j in range(1, taps.shape[1]):
        total[:, j:] += taps[:, j : j + 1] * x[:, :-j]
    return total


def gather_rows(table: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Rows of a table."""
    return table[ids[:, 0]]


def silu(x: np.ndarray) -> np.ndarray:
    """x over 1 + exp(-x)."""
    return x / (1 + np.exp(-x))


def swiglu(x: np.ndarray, gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    """silu(x.T @ gate) (x.T @ up)."""
    return silu(x.T @ gate) * (x.T @ up)


def rmsnorm_matmul(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """rmsnorm(x) @ w."""
    return rmsnorm(x, np.ones(1)) @ w


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """softmax(q.T k / sqrt(d)) v for q, k (d, n), v (n, d)."""
    return softmax(q.T @ k / math.sqrt(len(q))) @ v


def attention_block(
    x: np.ndarray, wq: np.ndarray, wk: np.ndarray, wv: np.ndarray, wo: np.ndarray
) -> np.ndarray:
    """x + causal attention of rmsnorm(x), through wo."""
    return x + attended(rmsnorm(x, np.ones(1)), wq, wk, wv) @ wo


def attended(h: np.ndarray, wq: np.ndarray, wk: np.ndarray, wv: np.ndarray) -> np.ndarray:
    """Causal attention of the rows of h."""
    return causal_softmax((h @ wq) @ (h @ wk).T / math.sqrt(wq.shape[1])) @ (h @ wv)


def mixture(x: np.ndarray, router: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Each row through the expert with its highest score, times the share of that expert."""
    shares = softmax(x @ router)
    return experts(x, np.where(shares == shares.max(1, keepdims=True), shares, 0), up, down)


def experts(x: np.ndarray, factors: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    """The sum of all experts' results, each times its column of factors (m, e)."""
    count = factors.shape[1]
    ups, downs = np.split(up, count), np.split(down, count)
    return sum(factors[:, i : i + 1] * (np.maximum(x @ ups[i], 0) @ downs[i]) for i in range(count))


REFERENCES: dict[str, Callable[..., np.ndarray]] = {
    function.__name__: function
    for function in (
        copy, axpy, row_sum, ragged_relu, transpose, column_sum, matmul_sum, softmax, rmsnorm,
        matmul, bias_gelu, causal_softmax, rope, causal_conv, gather_rows, swiglu, rmsnorm_matmul,
        attention, attention_block, mixture,
    )
}  # fmt: skip
