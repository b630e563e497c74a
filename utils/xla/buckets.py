"""Buckets: the few lengths to which sequences are padded, so that few shapes are compiled.

A bucket is a length; a sequence goes to the smallest bucket that holds it.
"""

import bisect
from collections import Counter
from collections.abc import Iterable, Sequence


def bucket_of(length: int, buckets: Sequence[int]) -> int:
    """The smallest bucket that holds a sequence of that length.

    >>> bucket_of(17, (16, 32))
    32
    """
    ordered = sorted(buckets)
    place = bisect.bisect_left(ordered, length)
    if place == len(ordered):
        raise ValueError(
            f"no bucket holds a sequence of {length} tokens: the largest of"
            f" {list(ordered)} is too short, so add a bucket of {length} or more"
        )
    return ordered[place]


def padded_tokens(lengths: Iterable[int], buckets: Sequence[int]) -> int:
    """Tokens that are computed when every sequence is padded to its bucket.

    >>> padded_tokens([3, 8, 9], (8, 16))
    32
    """
    return sum(bucket_of(length, buckets) for length in lengths)


def powers_of_two(longest: int, shortest: int = 8) -> tuple[int, ...]:
    """Buckets of shortest, twice that, and so on, up to one that holds the longest sequence.

    >>> powers_of_two(50)
    (8, 16, 32, 64)
    """
    if longest < 1 or shortest < 1:
        raise ValueError(f"lengths are 1 or more, found {min(longest, shortest)}")
    buckets = [shortest]
    while buckets[-1] < longest:
        buckets.append(2 * buckets[-1])
    return tuple(buckets)


def best_buckets(lengths: Sequence[int], count: int) -> tuple[int, ...]:
    """At most `count` buckets with the fewest padded tokens: the optimum, not a guess.

    In an optimum every bucket is one of the lengths, or it could be made shorter. Taken in order,
    the lengths are cut into at most `count` runs, and each run is padded to its longest: dynamic
    programming over (lengths so far, buckets used) finds the cheapest cut. Time grows as
    count times the square of the number of different lengths.

    >>> best_buckets([3, 4, 9, 10, 30], 2)
    (10, 30)
    """
    if count < 1 or not lengths:
        raise ValueError(f"need one bucket and one length at least, found {count}, {len(lengths)}")
    counts = sorted(Counter(lengths).items())
    different = [length for length, _ in counts]
    # before[i]: sequences among the first i different lengths
    before = [0]
    for _, number in counts:
        before.append(before[-1] + number)
    # cheapest[i]: (tokens, buckets) for the first i different lengths
    cheapest: list[tuple[int, tuple[int, ...]]] = [(0, ())] + [
        (different[end - 1] * before[end], (different[end - 1],))
        for end in range(1, len(different) + 1)
    ]
    for _ in range(count - 1):
        cheapest = [cheapest[0]] + [
            min(
                (
                    cheapest[start][0] + different[end - 1] * (before[end] - before[start]),
                    (*cheapest[start][1], different[end - 1]),
                )
                for start in range(end)
            )
            for end in range(1, len(different) + 1)
        ]
    return cheapest[-1][1]
