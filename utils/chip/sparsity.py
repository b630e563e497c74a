"""Structured sparsity: of every group of weights only the largest few are kept, as in 4:16."""

import numpy as np


def prune(w: np.ndarray, keep: int = 4, of: int = 16, axis: int = -1) -> np.ndarray:
    """w with all but the `keep` largest magnitudes of each `of` neighbours along axis set to zero.

    Shape and dtype as w. Of equal magnitudes the first is kept; NaN counts as the largest, so that
    it does not disappear.

    >>> prune(np.array([3.0, -1.0, 2.0, -4.0]), keep=2, of=4).tolist()
    [3.0, 0.0, 0.0, -4.0]
    """
    groups = _groups(w, keep, of, axis)
    sizes = np.abs(groups.astype(np.float64))
    order = np.argsort(-np.where(np.isnan(sizes), np.inf, sizes), axis=-1, kind="stable")
    pruned = groups.copy()
    np.put_along_axis(pruned, order[..., keep:], 0, axis=-1)
    moved = np.moveaxis(np.asarray(w), axis, -1)
    return np.moveaxis(pruned.reshape(moved.shape), -1, axis)


def follows(w: np.ndarray, keep: int = 4, of: int = 16, axis: int = -1) -> bool:
    """Whether no group of `of` neighbours along axis has more than `keep` values that are not 0."""
    return bool((np.count_nonzero(_groups(w, keep, of, axis), axis=-1) <= keep).all())


def kept_share(w: np.ndarray) -> float:
    """The share of values that are not zero."""
    return np.count_nonzero(w) / np.size(w)


def relative_error(exact: np.ndarray, found: np.ndarray) -> float:
    """The norm of the difference over the norm of the exact values, which are not all zero."""
    exact, found = np.asarray(exact, np.float64), np.asarray(found, np.float64)
    if exact.shape != found.shape or not exact.any():
        raise ValueError(
            "an error is relative to values of the same shape that are not all zero, found shapes"
            f" {exact.shape} and {found.shape}"
        )
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _groups(w: np.ndarray, keep: int, of: int, axis: int) -> np.ndarray:
    """w as (..., groups, of), the axis moved to the end."""
    w = np.asarray(w)
    if not 1 <= keep <= of:
        raise ValueError(f"keep at least 1 and at most all {of} of a group, found keep={keep}")
    if not -w.ndim <= axis < w.ndim:
        raise ValueError(f"shape {w.shape} has no axis {axis}")
    if w.shape[axis] % of:
        raise ValueError(
            f"axis {axis} of shape {w.shape} is no multiple of {of}: pad it, or choose another axis"
        )
    moved = np.moveaxis(w, axis, -1)
    return moved.reshape(*moved.shape[:-1], -1, of)
