"""Coordinated omission, repaired afterwards: the requests that a waiting client did not send.

The name and the repair are Gil Tene's; the rule is `recordValueWithExpectedInterval` of his
HdrHistogram, https://github.com/HdrHistogram/HdrHistogram. Measuring from the moment when each
request was due, as `Run.latencies_s` does, needs no repair and is better.
"""

from collections.abc import Sequence

import numpy as np


def corrected(seen_s: Sequence[float] | np.ndarray, every_s: float) -> np.ndarray:
    """Latencies of a closed loop with those added that it omitted, in ascending order.

    Args:
        seen_s: float64 [n], measured by clients that waited for each answer.
        every_s: seconds between two requests of one client, had it not waited.

    For an answer after `t` seconds the client omitted requests that would have waited t - every_s,
    t - 2 every_s and so on, down to every_s.

    >>> corrected([0.1, 0.1, 0.5], every_s=0.125).tolist()
    [0.1, 0.1, 0.125, 0.25, 0.375, 0.5]
    """
    seen = np.asarray(seen_s, dtype=float)
    if not every_s > 0 or not np.all((seen >= 0) & np.isfinite(seen)):
        raise ValueError(
            f"every_s is above 0 and latencies are 0 or more, found every_s={every_s!r} and"
            f" latencies from {seen.min():g} to {seen.max():g}"
        )
    omitted = [
        latency - every_s * np.arange(1, int(np.floor(latency / every_s)))
        for latency in seen[seen >= 2 * every_s]
    ]
    return np.sort(np.concatenate([seen, *omitted]))
