"""Usual wrong kernels, recognised by what they return or by the rule that they break.

`mistakes.yaml` has by puzzle and name what a learner reads (`says`) and a kernel that shows it, a
diff of our solution or a file of its own. A mistake is recognised by its result, which a function
here computes in NumPy, or by words of the simulator's message (`error`).
"""

import functools
import math
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from utils.facts.records import read_yaml
from utils.nki.puzzles import references as ref

DATA = Path(__file__).with_name("mistakes.yaml")


class Mistake(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One record. error: a pattern that the simulator's message contains."""

    says: str
    kernel: str
    error: str = ""


@functools.cache
def records() -> dict[str, dict[str, Mistake]]:
    """All records, by puzzle and name."""
    return msgspec.convert(read_yaml(DATA), dict[str, dict[str, Mistake]])


def recognise(
    puzzle: str, problem: str, results: list[np.ndarray] | None,
    made: Callable[[Callable], np.ndarray], unequal: Callable[[list[np.ndarray], np.ndarray], str],
) -> str:  # fmt: skip
    """What is said of a wrong outcome; "" if it is none of the known mistakes."""
    for name, mistake in records().get(puzzle, {}).items():
        if results is None:
            if mistake.error and re.search(mistake.error, problem):
                return mistake.says
        elif (function := RETURNS.get(puzzle, {}).get(name)) and not unequal(
            results, made(function)
        ):
            return mistake.says
    return ""


def _tiled_transpose(x: np.ndarray) -> np.ndarray:
    """Every 128 x 128 piece is turned, and none moves to its new place."""
    rows, columns = x.shape
    pieces = x.reshape(rows // 128, 128, columns // 128, 128)
    return pieces.transpose(0, 3, 2, 1).reshape(rows // 128 * 128, columns).reshape(columns, rows)


def _softmax_without_shift(x: np.ndarray) -> np.ndarray:
    """In FP32, where exp overflows and infinity over infinity is no number."""
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(x.astype(np.float32))
        total = powers.sum(1, keepdims=True)
        return powers * (1 / total)


def _before_only(x: np.ndarray) -> np.ndarray:
    """Row i sees columns 0 to i - 1; row 0 sees all alike, because all are hidden."""
    hidden = np.where(np.tri(len(x), k=-1), x, -1e30)
    return ref.softmax(hidden)


def _with_first_mask(x: np.ndarray) -> np.ndarray:
    """Every 128 rows see what the first 128 see."""
    size = len(x)
    seen = np.arange(size)[None] <= (np.arange(size) % 128)[:, None]
    return ref.softmax(np.where(seen, x, -np.inf))


def _rope_without_sign(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    low, high = np.split(x, 2, 1)
    return np.concatenate([low * cos + high * sin, high * cos + low * sin], 1)


def _powers(scores: np.ndarray) -> np.ndarray:
    return np.exp(scores - scores.max(1, keepdims=True))


def _sees_its_tile(x: np.ndarray, wq: np.ndarray, wk: np.ndarray, wv: np.ndarray) -> np.ndarray:
    """Attention in which a row sees all up to the end of its 128 rows."""
    h, size = ref.rmsnorm(x, np.ones(1)), len(x)
    seen = np.arange(size)[None] <= (np.arange(size) // 128 * 128 + 127)[:, None]
    scores = (h @ wq) @ (h @ wk).T / math.sqrt(wq.shape[1])
    return ref.softmax(np.where(seen, scores, -np.inf)) @ (h @ wv)


RETURNS: dict[str, dict[str, Callable[..., np.ndarray]]] = {
    "copy": {"doubled": lambda x: 2 * x},
    "axpy": {
        "the-other-doubled": lambda x, y: x + 2 * y,
        "sum-doubled": lambda x, y: 2 * (x + y),
        "not-doubled": lambda x, y: x + y,
    },
    "row_sum": {
        "mean": lambda x: x.mean(1, keepdims=True),
        "maximum": lambda x: x.max(1, keepdims=True),
    },
    "ragged_relu": {"negative-part": lambda x: np.minimum(x, 0), "magnitude": np.abs},
    "transpose": {"pieces-stay": _tiled_transpose},
    "column_sum": {
        "last-rows-only": lambda x: x[-128:].sum(0, keepdims=True),
        "mean": lambda x: x.mean(0, keepdims=True),
    },
    "matmul_sum": {"last-k-only": lambda a, b: a[-128:].T @ b[-128:]},
    "softmax": {
        "not-divided": lambda x: np.exp(x - x.max(1, keepdims=True)),
        "no-shift": lambda x: _softmax_without_shift(x),
    },
    "rmsnorm": {
        "sum-for-mean": lambda x, gain: ref.rmsnorm(x, gain) / math.sqrt(x.shape[1]),
        "gain-left-out": lambda x, gain: ref.rmsnorm(x, np.ones(1)),
        "mean-taken-off": lambda x, gain: (
            (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True) * gain
        ),
    },
    "matmul": {"last-k-only": lambda a, b: a[-128:].T @ b[-128:]},
    "bias_gelu": {
        "bias-after": lambda a, b, bias: ref.gelu(b.T @ a) + bias,
        "bias-left-out": lambda a, b, bias: ref.gelu(b.T @ a),
    },
    "causal_softmax": {
        "sees-the-future": ref.softmax,
        "not-itself": lambda x: _before_only(x),
        "tile-by-tile": lambda x: _with_first_mask(x),
    },
    "rope": {
        "turned-back": lambda x, cos, sin: ref.rope(x, cos, -sin),
        "sums-only": lambda x, cos, sin: _rope_without_sign(x, cos, sin),
    },
    "causal_conv": {
        "looks-ahead": lambda x, taps: ref.causal_conv(x[:, ::-1], taps)[:, ::-1],
        "taps-reversed": lambda x, taps: ref.causal_conv(x, taps[:, ::-1]),
    },
    "gather_rows": {"rows-in-order": lambda table, ids: table[np.arange(len(ids)) % len(table)]},
    "swiglu": {
        "gated-by-the-other": lambda x, gate, up: ref.swiglu(x, up, gate),
        "not-gated": lambda x, gate, up: ref.silu(x.T @ gate) + x.T @ up,
        "sigmoid": lambda x, gate, up: (x.T @ up) / (1 + np.exp(-(x.T @ gate))),
    },
    "rmsnorm_matmul": {
        "not-normalised": lambda x, w: x @ w,
        "sum-for-mean": lambda x, w: ref.rmsnorm_matmul(x, w) / math.sqrt(x.shape[1]),
    },
    "attention": {
        "not-scaled": lambda q, k, v: ref.softmax(q.T @ k) @ v,
        "not-divided": lambda q, k, v: _powers(q.T @ k / math.sqrt(len(q))) @ v,
        "last-keys-only": lambda q, k, v: (
            ref.softmax(q.T @ k / math.sqrt(len(q)))[:, -128:] @ v[-128:]
        ),
    },
    "attention_block": {
        "no-residual": lambda x, wq, wk, wv, wo: ref.attention_block(x, wq, wk, wv, wo) - x,
        "not-normalised": lambda x, wq, wk, wv, wo: x + ref.attended(x, wq, wk, wv) @ wo,
        "sees-the-future": lambda x, wq, wk, wv, wo: x + _sees_its_tile(x, wq, wk, wv) @ wo,
    },
    "mixture": {
        "not-weighted": lambda x, router, up, down: ref.experts(
            x, 1.0 * (x @ router == (x @ router).max(1, keepdims=True)), up, down
        ),
        "all-experts": lambda x, router, up, down: ref.experts(
            x, ref.softmax(x @ router), up, down
        ),
    },
}
