"""The cases and the judgement of exercises 3 and 4 of lab 02: work that must stay on the device."""

import random
from dataclasses import replace
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import TOLERANCE, criterion, distance, not_judged, times
from utils.labs.lab02.truth import histograms, masked_losses

SAYS = says("lab02")

# ex3: two operators without a lowering


def histogram_cases(rng: random.Random) -> list[Facts]:
    """A small case of two calls, and a larger one of four; in each some value lies on an edge."""
    cases: list[Facts] = []
    for calls, least in ((2, 6), (4, 14)):
        case = {
            "calls": calls,
            "values": rng.randint(least, least + 3),
            "edges": rng.randint(3, 6),
            "seed": rng.randrange(10**6),
        }
        while histograms(case) == histograms(case, right=True):
            case["seed"] = rng.randrange(10**6)
        cases.append(case)
    return cases


def judge_histogram(case: Facts, facts: Facts) -> list[Criterion]:
    """Bins, counts, fallbacks, reads, executions and compiles, one criterion each."""
    operators, reads, right = facts["fallbacks"], facts["reads"], histograms(case)
    pairs = [item["items"] for item in facts["returned"]]
    above = [bins for bins, _ in histograms(case, right=True)]
    rows = [
        _same(
            "bins",
            [_dtype(pair, 0) for pair in pairs],
            [_values(pair, 0) for pair in pairs],
            [bins for bins, _ in right],
            SAYS["greater-or-equal"]
            if [_values(pair, 0) for pair in pairs] == above
            else "the bin of a value is the number of edges that are smaller than it",
        ),
        _same(
            "counts",
            [_dtype(pair, 1) for pair in pairs],
            [_values(pair, 1) for pair in pairs],
            [counts for _, counts in right],
            SAYS["one-hot-without-classes"],
        ),
        _on_host(3, operators, "say the same with operators that XLA has: compare, sum, one_hot"),
        criterion("reads", 1, not reads, times(reads, "read"), "0", SAYS["numpy"]),
        _executions(1, case["calls"], facts),
        _compiles(1, facts),
    ]
    if unusual := next((item for item in facts["returned"] if not _two_tensors(item)), None):
        response = (
            f"`histogram` returned {_pair_in_words(unusual)}: return (bins, counts), two tensors"
        )
        return [not_judged(rows[0], response), *map(not_judged, rows[1:])]
    places = {item["place"] for items in pairs for item in items}
    if places != {"xla"} or (reads and not operators and facts["executions"] <= case["calls"]):
        # Right numbers and no fallback are no merit of a function that computes on the host.
        response = SAYS["on-the-host"]
        return [not_judged(rows[0], response), *map(not_judged, rows[1:])]
    if len(operators) > 1:
        # As it was given. One of the two replaced wins something.
        rest = [row if row is rows[2] else not_judged(row) for row in rows]
        return [not_judged(rows[0], "judged once at most one operator runs on the host"), *rest[1:]]
    if rows[0].passed or rows[1].passed:
        return rows
    # Wrong bins make wrong counts, of which nothing more is to be said.
    return _numbers_only([rows[0], replace(rows[1], message=""), *rows[2:]], 2)


def _numbers_only(rows: list[Criterion], count: int) -> list[Criterion]:
    """The first `count` rows as they are: what wrong numbers cost is no merit."""
    return [*rows[:count], *map(not_judged, rows[count:])]


def _two_tensors(returned: Facts) -> bool:
    items = returned["items"]
    return bool(items) and all(item["place"] for item in items)


def _pair_in_words(returned: Facts) -> str:
    if not returned["items"]:
        return returned["kind"]
    return f"({', '.join(item['kind'] for item in returned['items'])})"


def _values(pair: list[Facts] | None, place: int) -> list[Any] | None:
    return pair[place]["values"] if pair else None


def _dtype(pair: list[Facts] | None, place: int) -> str:
    return pair[place]["dtype"] if pair else ""


def _same(
    name: str, dtypes: list[str], results: list[Any], right: list[Any], advice: str
) -> Criterion:
    other = next((dtype for dtype in dtypes if dtype != "int64"), None)
    if results == right and other:
        message = SAYS["bins-as-floats"]
        return criterion(name, 1, False, other, "int64", message)
    lengths = [len(item or []) for item in results]
    target = "equal"
    if results == right:
        measured = "equal"
    elif lengths != [len(item) for item in right]:
        few = sum(lengths) < sum(map(len, right))
        measured, target = f"too {'few' if few else 'many'} numbers", times(len(right[0]), "number")
    else:
        pairs = [
            pair for both in zip(results, right, strict=True) for pair in zip(*both, strict=True)
        ]
        measured = f"{sum(a != b for a, b in pairs)} of {len(pairs)} not equal"
    return criterion(name, 1, results == right, measured, target, advice)


def _on_host(weight: int, operators: list[str], advice: str) -> Criterion:
    return criterion(
        "operators on the host",
        weight,
        not operators,
        str(len(operators)),
        "0",
        SAYS["only-the-bins"].format(operators=", ".join(operators), advice=advice),
    )


def _executions(weight: int, calls: int, facts: Facts) -> Criterion:
    ran = facts["executions"]
    return criterion(
        "one call should be one execution",
        weight,
        ran == calls,
        times(ran, "execution"),
        str(calls),
        SAYS["the-number-is-read"]
        if ran > calls
        else "the device did not run what was asked for: record it there",
    )


def _compiles(weight: int, facts: Facts) -> Criterion:
    return criterion(
        "compiles",
        weight,
        facts["compiles"] == 1,
        str(facts["compiles"]),
        "1",
        "a graph holds shapes and Python numbers: those of this one depend on the values"
        if facts["compiles"]
        else "nothing was compiled, so nothing ran on the device",
    )


# ex4: a loss over a boolean mask


def masked_cases(rng: random.Random) -> list[Facts]:
    """A case whose masks all keep some rows, and one with a mask that keeps none."""
    cases = []
    for rows, empty in ((rng.randint(5, 7), []), (rng.randint(10, 14), [0])):
        some = sorted(rng.sample(range(2, rows), 2))
        cases.append(
            {
                "rows": rows,
                "classes": rng.randint(3, 6),
                "kept": [*some, rows, *empty],
                "seed": rng.randrange(10**6),
            }
        )
    return cases


def masked_words(case: Facts) -> str:
    """What a card says of a case."""
    kept = ", ".join(map(str, case["kept"]))
    return f"{case['rows']} rows, {case['classes']} classes, masks with {kept} rows True"


def judge_masked_loss(case: Facts, facts: Facts) -> list[Criterion]:
    """Losses, gradients, the empty mask, fallbacks, executions and compiles."""
    right, losses = masked_losses(case), facts["losses"]
    results = [loss["values"][0] if loss["values"] else None for loss in losses]
    odd = next((loss for loss in losses if not loss["place"] or loss["dimensions"]), None)
    on_host = any(loss["place"] != "xla" for loss in losses) or (
        facts["reads"] and not facts["compiles"]
    )
    kept = [place for place, count in enumerate(case["kept"]) if count]
    empty = [place for place, count in enumerate(case["kept"]) if not count]
    calls, operators = len(case["kept"]), facts["fallbacks"]
    rows = [
        _close(
            "losses",
            2,
            [[results[p]] for p in kept],
            [[right[p][0]] for p in kept],
            _loss_advice(
                [case["kept"][p] for p in kept],
                [results[p] for p in kept],
                [right[p][0] for p in kept],
            ),
        ),
        _close(
            "gradients",
            1,
            [facts["gradients"][p] for p in kept],
            [right[p][1] for p in kept],
            "the gradient of a row with False is 0, of the others that of the mean over them",
        ),
        _close(
            "no row True",
            1,
            [[results[p], *(facts["gradients"][p] or [None])] for p in empty],
            [[0.0, *right[p][1]] for p in empty],
            SAYS["no-floor"],
        ),
        _on_host(1, operators, "keep the shape, and let the rows with False count nothing"),
        _executions(1, calls, facts),
        _compiles(2, facts),
    ]
    if odd:
        response = SAYS["losses-of-all-rows"].format(kind=odd["kind"])
        return [not_judged(rows[0], response), *map(not_judged, rows[1:])]
    if on_host and not operators:
        response = "this was computed on the host: keep logits, targets and mask on their device"
        return [not_judged(rows[0], response), *map(not_judged, rows[1:])]
    if operators:
        # As it was given: right numbers, at the price that the exercise is about.
        rest = [row if row in (rows[3], rows[5]) else not_judged(row) for row in rows]
        return [not_judged(rows[0], SAYS["rows-set-to-zero-by-their-mask"]), *rest[1:]]
    return rows if rows[0].passed else _numbers_only(rows, 2)


def _loss_advice(counts: list[int], results: list[Any], right: list[float]) -> str:
    advice = SAYS["the-mask-is-ignored"]
    if any(not isinstance(item, int | float) for item in results):
        return advice
    factors = [
        mine / (true * count) for mine, true, count in zip(results, right, counts, strict=True)
    ]
    if max(factors) - min(factors) > 1e-3 * max(factors):
        return advice
    if abs(factors[0] - 1) < 1e-3:
        return SAYS["a-sum"]
    return SAYS["mean-over-all-rows"]


def _close(
    name: str, weight: int, results: list[Any], right: list[list[float]], advice: str
) -> Criterion:
    target = f"within {TOLERANCE:g}"
    if not right:
        return criterion(name, weight, True, "", "", "")
    flat = [item for part in results for item in (part or [None])]
    if None in flat:
        return criterion(name, weight, False, "none", target, SAYS["detached"])
    if odd := [item for item in flat if isinstance(item, str)]:
        return criterion(name, weight, False, odd[0], target, advice)
    off = distance(flat, [item for part in right for item in part])
    measured = "equal" if off <= TOLERANCE else f"off by {off:.2g}"
    return criterion(name, weight, off <= TOLERANCE, measured, target, advice)
