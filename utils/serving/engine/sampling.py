"""How a token is chosen from logits: greedily, or at random with temperature, top-k and top-p.

The random number of a token depends on the request's seed and the token's place alone, so that a
request gets the same tokens whatever else is served, and after a pre-emption too.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sampling:
    """temperature: 0 is greedy. top_k: only so many of the most probable tokens, 0 for all.
    top_p: only the most probable tokens that together reach this probability, 1 for all.
    seed: requests with equal seeds and equal logits get equal tokens.

    Raises ValueError for values outside these.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature is {self.temperature!r}, allowed is 0 or more")
        if self.top_k < 0:
            raise ValueError(f"top_k is {self.top_k!r}, allowed is 1 or more, or 0 for all tokens")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p!r}, allowed is above 0 and at most 1")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed!r}, allowed is 0 or more")


def probabilities(logits: np.ndarray, sampling: Sampling) -> np.ndarray:
    """float64 [vocabulary]: the distribution from which a token of these logits is drawn.

    First the temperature, then top-k, then top-p of what is left. Of equal logits the lower ids
    come first.

    >>> probabilities(np.log([0.5, 0.25, 0.125, 0.125]), Sampling(1.0, top_k=2)).round(3).tolist()
    [0.667, 0.333, 0.0, 0.0]
    """
    logits = np.asarray(logits, dtype=np.float64)
    order = np.argsort(-logits, kind="stable")
    result = np.zeros(len(logits))
    if sampling.temperature == 0:
        result[order[0]] = 1.0
        return result
    if sampling.top_k:
        order = order[: sampling.top_k]
    # Differences to the largest, so that neither exp nor a tiny temperature overflows.
    with np.errstate(over="ignore"):
        weights = np.exp((logits[order] - logits[order[0]]) / sampling.temperature)
    weights /= weights.sum()
    if sampling.top_p < 1:
        before = np.cumsum(weights) - weights  # a token stays if those before it do not suffice
        weights = np.where(before < sampling.top_p, weights, 0.0)
        weights /= weights.sum()
    result[order] = weights
    return result


def choose(distribution: np.ndarray, uniform: float) -> int:
    """The token in whose share of [0, 1) the number lies: shares stand in the order of ids.

    >>> [choose(np.array([0.25, 0.0, 0.75]), number) for number in (0.0, 0.24, 0.25, 0.99)]
    [0, 0, 2, 2]
    """
    ends = np.cumsum(distribution)
    place = int(np.searchsorted(ends, uniform * ends[-1], side="right"))
    return min(place, int(np.flatnonzero(distribution)[-1]))  # a product may round up to the end


def sample(logits: np.ndarray, sampling: Sampling, place: int) -> int:
    """The token at a place of a sequence, from its logits [vocabulary]."""
    if sampling.temperature == 0:
        return int(np.argmax(logits))
    uniform = np.random.default_rng((sampling.seed, place)).random()
    return choose(probabilities(logits, sampling), uniform)
