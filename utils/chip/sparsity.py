"""Structured sparsity: of every group of weights only the largest few are kept, as in 4:16."""

import numpy as np


def prune(w: np.ndarray, keep: int = 4, of: int = 16) -> np.ndarray:
    """w with all but the `keep` largest magnitudes of each `of` neighbours of a row set to zero.

    Shape and dtype as w; rows lie along the last axis. Of equal magnitudes the first is kept; NaN
    counts as the largest, so that it does not disappear.

    >>> prune(np.array([3.0, -1.0, 2.0, -4.0]), keep=2, of=4).tolist()
    [3.0, 0.0, 0.0, -4.0]
    """
    w = np.asarray(w)
    if not 1 <= keep <= of:
        raise ValueError(f"keep at least 1 and at most all {of} of a group, found keep={keep}")
    if not w.ndim or w.shape[-1] % of:
        raise ValueError(f"rows of shape {w.shape} are no multiple of {of}: pad them")
    pruned = w.reshape(*w.shape[:-1], -1, of).copy()
    sizes = np.abs(pruned.astype(np.float64))
    order = np.argsort(-np.where(np.isnan(sizes), np.inf, sizes), axis=-1, kind="stable")
    np.put_along_axis(pruned, order[..., keep:], 0, axis=-1)
    return pruned.reshape(w.shape)


def density(w: np.ndarray) -> float:
    """The share of values that are not zero."""
    return np.count_nonzero(w) / np.size(w)


def relative_error(exact: np.ndarray, result: np.ndarray) -> float:
    """The norm of the difference over the norm of the exact values, which are not all zero."""
    exact, result = np.asarray(exact, np.float64), np.asarray(result, np.float64)
    if exact.shape != result.shape or not exact.any():
        raise ValueError(
            "an error is relative to values of the same shape that are not all zero, found shapes"
            f" {exact.shape} and {result.shape}"
        )
    return float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
