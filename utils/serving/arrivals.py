"""When requests are due: seconds from the start, ascending, with the same mean rate in three ways.

A service sees what its users do, so these are plans of an open loop: nobody waits for an answer.
"""

import numpy as np


def _check(rate_per_s: float, count: int) -> None:
    if not 0 < rate_per_s < float("inf"):
        raise ValueError(f"rate_per_s is above 0 and finite, found {rate_per_s!r}")
    if count < 1:
        raise ValueError(f"count is 1 or more requests, found {count!r}")


def steady(rate_per_s: float, count: int) -> np.ndarray:
    """float64 [count]: one request every 1 / rate_per_s seconds, the first at 0.

    >>> steady(10, 4).tolist()
    [0.0, 0.1, 0.2, 0.3]
    """
    _check(rate_per_s, count)
    return np.arange(count) / rate_per_s


def poisson(rate_per_s: float, count: int, seed: int) -> np.ndarray:
    """float64 [count]: independent users, gaps drawn from an exponential distribution."""
    _check(rate_per_s, count)
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate_per_s, count))


def burst(rate_per_s: float, count: int, seed: int, size: int = 16) -> np.ndarray:
    """float64 [count]: groups of `size` at the same moment, as often as keeps the mean rate.

    The gaps between groups are exponential; the last group may be smaller.
    """
    _check(rate_per_s, count)
    if size < 1:
        raise ValueError(f"size is 1 or more requests in a group, found {size!r}")
    groups = -(-count // size)
    starts = np.cumsum(np.random.default_rng(seed).exponential(size / rate_per_s, groups))
    return np.repeat(starts, size)[:count]
