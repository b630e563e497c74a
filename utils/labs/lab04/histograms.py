"""The cases and the judgement of the choice of buckets, exercise 4 of lab 04."""

import random
from collections.abc import Sequence

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, times
from utils.xla.buckets import best_buckets, bucket_of

SAYS = says("lab04")

NEAR = 1.02
"""Tokens of a choice that is called near, relative to the optimum."""


def histogram_cases(rng: random.Random) -> list[Facts]:
    """Four histograms, one of which has fewer lengths than buckets are allowed."""
    return [
        _case(rng, different=4, most=2, longest=20),
        _case(rng, different=2, most=3, longest=20),
        _case(rng, different=12, most=4, longest=64),
        _case(rng, different=60, most=7, longest=512),
    ]


def _case(rng: random.Random, different: int, most: int, longest: int) -> Facts:
    """A histogram of many short and few long sequences, for which the usual guesses fall short."""
    while True:
        lengths = rng.sample(range(3, longest + 1), different)
        counts = [rng.randint(1, 3) + int(60 * rng.random() ** 2 * 6 / n**0.5) for n in lengths]
        case: Facts = {"histogram": [list(pair) for pair in zip(lengths, counts, strict=True)]}
        case["most"] = most
        if different <= most or all(
            tokens(case, guess) > tokens(case, optimum(case)) for guess in guesses(case)
        ):
            return case


def all_lengths(case: Facts) -> list[int]:
    """Every length as often as it occurs, in order."""
    return sorted(length for length, count in case["histogram"] for _ in range(count))


def optimum(case: Facts) -> tuple[int, ...]:
    """The buckets that pad least."""
    return best_buckets(all_lengths(case), case["most"])


def tokens(case: Facts, buckets: Sequence[int]) -> int:
    """Tokens of all sequences when each is padded to its bucket."""
    return sum(count * bucket_of(length, buckets) for length, count in case["histogram"])


def guesses(case: Facts) -> list[list[int]]:
    """Buckets that somebody may take for the best: the same number of sequences in each, the same
    number of different lengths in each, the same distance between them, one after the other (which
    is the best for two), and all without those that are missed least (nearly always the best for
    two).
    """
    lengths, most = all_lengths(case), case["most"]
    different = sorted(set(lengths))
    return [
        *(
            [of[-(-(k + 1) * len(of) // most) - 1] for k in range(most)]
            for of in (lengths, different)
        ),
        [-(-(k + 1) * different[-1] // most) for k in range(most)],
        *([one_by_one(case), least_missed_left_out(case)] if most > 2 else []),
    ]


def one_by_one(case: Facts) -> list[int]:
    """The longest, then always the one length more that saves most."""
    different = sorted(set(all_lengths(case)))
    chosen = [different[-1]]
    while len(chosen) < case["most"]:
        chosen.append(min(different, key=lambda item: tokens(case, [*chosen, item])))
    return chosen


def least_missed_left_out(case: Facts) -> list[int]:
    """All lengths, without always the one whose sequences cost least in the next."""
    runs = [list(pair) for pair in sorted(case["histogram"])]
    while len(runs) > case["most"]:
        costs = [count * (runs[k + 1][0] - length) for k, (length, count) in enumerate(runs[:-1])]
        _, count = runs.pop(gone := costs.index(min(costs)))
        runs[gone][1] += count
    return [length for length, _ in runs]


def histogram_words(case: Facts) -> str:
    """What a card says of a case."""
    pairs, most = sorted(case["histogram"]), case["most"]
    if len(pairs) <= 12:
        return f"histogram = {dict(pairs)}, most = {most}"
    return f"{len(pairs)} lengths from {pairs[0][0]} to {pairs[-1][0]}, most = {most}"


def judge_choose_buckets(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: valid buckets, near the optimum, and the optimum itself."""
    best, most = tokens(case, optimum(case)), case["most"]
    fault = _fault(case, facts)
    items = facts["returned"]["items"] or []
    valid = criterion(
        "buckets",
        1,
        not fault,
        "none" if facts["stopped"] else facts["returned"]["kind"],
        f"at most {most}, that hold every length",
        fault,
    )
    result = 0 if fault else tokens(case, items)
    near = criterion(
        f"within {NEAR - 1:.0%}",
        3,
        not fault and result <= NEAR * best,
        times(result, "token"),
        f"at most {int(NEAR * best)}",
        SAYS["the-longest-only"],
    )
    right = criterion(
        "the fewest tokens",
        4,
        not fault and result == best,
        times(result, "token"),
        str(best),
        SAYS["one-after-the-other"],
    )
    if fault:
        near, right = not_judged(near), not_judged(right)
    elif not near.passed:
        right = not_judged(right)
    return [valid, near, right]


def _fault(case: Facts, facts: Facts) -> str:
    """What makes a return value no choice at all; empty if it is one."""
    kind, items = facts["returned"]["kind"], facts["returned"]["items"]
    if facts["stopped"]:
        return SAYS["all-combinations"]
    if items is None:
        return f"`choose_buckets` returned {kind}: return a list of lengths"
    if strange := [item for item in items if not isinstance(item, int)]:
        return SAYS["the-tokens-too"].format(value=strange[0])
    if len(set(items)) > case["most"]:
        return SAYS["every-length"].format(
            times=times(len(set(items)), "bucket"), most=case["most"]
        )
    if max(items, default=0) < max(length for length, _ in case["histogram"]):
        return SAYS["the-most-frequent-lengths"]
    if min(items) < 1:
        return f"{min(items)} is among the buckets: a bucket holds a token at least"
    return ""
