"""Does a faster program still answer the same? Its logits beside those of a reference.

torch and scipy are imported late: they take seconds to load.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Fidelity:
    """A candidate's logits beside those of the reference.

    rows: predictions compared.
    max_difference: the largest absolute difference of two logits; inf where the candidate has a
        value that is no number.
    kl: Kullback-Leibler divergence KL(reference || candidate) of their probabilities, in nats, mean
        over the rows; kl_max: of the worst row.
    top1_agreement: the share of rows with the same most probable class; 1 is all.
    bit_exact: the same type and the same bits.
    """

    rows: int
    max_difference: float
    kl: float
    kl_max: float
    top1_agreement: float
    bit_exact: bool

    def __str__(self) -> str:
        """
        >>> print(Fidelity(8, 1e-6, 1e-13, 3e-13, 1.0, False))
        8 rows: max difference 1.0e-06, KL 1.0e-13 (worst row 3.0e-13), top-1 100.0 %, bits differ
        """
        bits = "bit-exact" if self.bit_exact else "bits differ"
        return (
            f"{self.rows} rows: max difference {self.max_difference:.1e}, KL {self.kl:.1e} (worst"
            f" row {self.kl_max:.1e}), top-1 {self.top1_agreement:.1%}, {bits}".replace("%", " %")
        )


def fidelity(reference: Any, candidate: Any) -> Fidelity:
    """Compare logits [..., classes] of the same inputs.

    Args:
        reference, candidate: torch tensors on any device, or arrays, of the same shape. The
            reference is finite, or -inf for a class that is masked.

    Raises: ValueError for another shape, no values, or a reference that is no number.

    Differences and probabilities are computed in float64. KL is 0 only for the same probabilities,
    and unlike the maximum it does not mind a constant added to all logits of a row.

    >>> fidelity([[1.0, 2.0]], [[1.5, 2.5]]).max_difference
    0.5
    """
    (wide, bits), (other, other_bits) = _values(reference), _values(candidate)
    if wide.shape != other.shape:
        raise ValueError(
            f"the reference has the shape {wide.shape} and the candidate {other.shape}: give the"
            " logits of the same inputs"
        )
    if not wide.ndim or not wide.size:
        raise ValueError("there are no logits: give [..., classes] with at least one row")
    if np.isnan(wide).any() or np.isposinf(wide).any() or np.isneginf(wide).all(-1).any():
        raise ValueError("the reference has a row that is no number: it cannot be compared with")
    wide, other = (item.reshape(-1, item.shape[-1]) for item in (wide, other))
    lost = np.isnan(other).any(-1) | np.isposinf(other).any(-1) | np.isneginf(other).all(-1)
    with np.errstate(invalid="ignore"):
        apart = np.where(wide == other, 0.0, np.abs(wide - other))  # masked in both: no difference
    kl = np.full(len(wide), np.inf)
    kl[~lost] = _kl(wide[~lost], other[~lost])
    same = (wide.argmax(-1) == other.argmax(-1)) & ~lost
    return Fidelity(
        rows=len(wide),
        max_difference=float(np.where(np.isnan(apart), np.inf, apart).max()),
        kl=float(kl.mean()),
        kl_max=float(kl.max()),
        top1_agreement=float(same.mean()),
        bit_exact=bits == other_bits,
    )


def _kl(reference: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Of each row; not below 0, as rounding can make it."""
    from scipy.special import log_softmax, softmax

    share = softmax(reference, axis=-1)
    logs = (log_softmax(item, axis=-1) for item in (reference, candidate))
    with np.errstate(invalid="ignore"):
        terms = np.where(share > 0, share * np.subtract(*logs), 0.0)
    return np.maximum(terms.sum(-1), 0.0)


def _values(logits: Any) -> tuple[np.ndarray, tuple[str, bytes]]:
    """The values in float64, and type and bits as they were."""
    if hasattr(logits, "detach"):
        import torch

        tensor = logits.detach().cpu().contiguous()
        raw = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
        return tensor.double().numpy(), (str(tensor.dtype).removeprefix("torch."), raw)
    array = np.ascontiguousarray(logits)
    return array.astype(float), (str(array.dtype), array.tobytes())
