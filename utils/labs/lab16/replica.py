"""One replica of a service on a virtual clock: continuous batching, a step after the other."""

from functools import lru_cache
from typing import Any

Request = tuple[float, int, int]
"""When it arrives, in ms; tokens of its prompt; tokens of its answer."""


def serve(requests: list[Request], replica: dict[str, Any]) -> list[tuple[float, float]]:
    """When the first and the last token of each request come, in ms.

    requests: ascending by arrival. replica: base_ms and per_token_ms, of which a step takes the
    first once and the second for each token; slots, requests at once. A step computes the whole
    prompts of the requests that are new in a slot, and one token of each other.

    >>> serve([(0.0, 10, 3)], {"base_ms": 5.0, "per_token_ms": 0.5, "slots": 2})
    [(10.0, 21.0)]
    """
    names = ("base_ms", "per_token_ms", "slots")
    return list(_serve(tuple(map(tuple, requests)), *(replica[name] for name in names)))


@lru_cache(2**15)  # all ways to search for a fleet play the same replicas
def _serve(
    requests: tuple[Request, ...], base_ms: float, per_token_ms: float, slots: int
) -> list[tuple[float, float]]:
    result = [(0.0, 0.0)] * len(requests)
    running: dict[int, int] = {}  # answered tokens
    now, place = 0.0, 0
    while running or place < len(requests):
        if not running:
            now = max(now, requests[place][0])
        tokens = len(running)
        while place < len(requests) and requests[place][0] <= now:
            if len(running) == slots:
                break
            running[place] = 0
            tokens += requests[place][1]
            place += 1
        now += base_ms + per_token_ms * tokens
        for number in list(running):
            first = now if not running[number] else result[number][0]
            result[number] = first, now
            running[number] += 1
            if running[number] == requests[number][2]:
                del running[number]
    return result
