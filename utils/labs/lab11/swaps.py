"""The cases and the judgement of adapters that change places, exercise 5 of lab 11."""

import random

from utils.labs import Criterion, Facts
from utils.labs.criteria import (
    criterion,
    did_nothing,
    not_judged,
    right_numbers,
    times,
)
from utils.labs.lab11 import truth

TOLERANCE = 2e-5
"""How far a loss may lie from the one computed in float64: as in exercises 2 and 3, whose model
this is.
"""

NAMES = ("north", "south", "east")


def swap_cases(rng: random.Random) -> list[Facts]:
    few, many = rng.sample([4, 5, 6], 2)
    return [_case(rng, NAMES[:2], 3, few), _case(rng, NAMES, 7, many)]


def _case(rng: random.Random, names: tuple[str, ...], count: int, slots: int) -> Facts:
    """Requests of two shapes; the first adapter fills all slots, the second does not."""
    ranks = [slots, 2, 3][: len(names)]
    adapters = {
        name: [rng.randrange(10**6), rank, float(rank * rng.choice([2.5, 3.5]))]
        for name, rank in zip(names, ranks, strict=True)
    }
    shapes = [[2, rng.randint(6, 8)], [3, rng.randint(9, 11)]]
    asked = [*names[:2], *rng.choices(names, k=count - 2)]
    if len(names) > 2:
        asked[2] = names[2]
    # The second adapter is asked for in a shape that is known; both shapes come.
    requests = [
        [name, *shapes[rng.randrange(2) if k > 2 else k // 2]] for k, name in enumerate(asked)
    ]
    return {
        "slots": slots,
        "adapters": adapters,
        "requests": requests,
        "seed": rng.randrange(10**6),
    }


def swap_words(case: Facts) -> str:
    ranks = ", ".join(f"{name} of rank {each[1]}" for name, each in case["adapters"].items())
    asked = ", ".join(f"{name} {rows}×{length}" for name, rows, length in case["requests"])
    return f"{case['slots']} slots; adapters {ranks}; requests {asked}"


def judge_swaps(case: Facts, facts: Facts) -> list[Criterion]:
    right, asked = truth.served(case), len(case["requests"])
    shapes = len({tuple(each[1:]) for each in case["requests"]})
    known = {
        "these are the losses of the base alone: the adapters are not in the model": (
            truth.base_alone(case)
        ),
        "the factor alpha / rank of each adapter is missing: the model has none of its own, so it"
        " belongs into one of the two matrices": truth.served(case, scaled=False),
        "rows of the adapter before are still there: one of a smaller rank fills a part of the"
        " slots, and the others have to be zero": truth.served(case, left_over=True),
    }
    losses = right_numbers(
        "losses",
        3,
        facts["returned"],
        right,
        known,
        "each request wants the mean loss of ids[:, 1:] after ids[:, :-1], with the weights of its"
        " own adapter",
        ("serve", "request"),
        TOLERANCE,
    )
    compiled = criterion(
        "compiles",
        2,
        facts["compiles"] <= shapes,
        f"{facts['compiles']} or more" if facts["returned"]["stopped"] else str(facts["compiles"]),
        f"{shapes}, one for each shape",
        "an adapter brings new graphs: the slots keep their shape only if an adapter of a smaller"
        " rank is filled up with zeros, on the CPU, before it is copied into them; and work on the"
        " weights on the device is a graph of its own",
    )
    kept = criterion("one base", 1, not (fault := _base(facts)), "", "", fault)
    rows = [losses, compiled, kept]
    if facts["returned"]["stopped"]:
        return [not_judged(losses), compiled, not_judged(kept)]
    if did_nothing(facts):
        return [losses, not_judged(compiled), not_judged(kept)]
    if not 0 < facts["on_device"] == facts["steps"] or facts["answered"] < asked:
        message = (
            f"only {facts['answered']} of {times(asked, 'request')} went through the given model on"
            " torch_xla.device(): a copy of the model per adapter needs the memory of a base each"
        )
        return [not_judged(losses, message), not_judged(compiled), not_judged(kept)]
    if not losses.passed:
        return [losses, not_judged(compiled), not_judged(kept)]
    return rows


def _base(facts: Facts) -> str:
    if isinstance(facts["base_moved"], str):
        return "the model has lost parts: swap the values, and leave its layers as they are"
    if facts["base_moved"] > 0:
        return (
            "the base has changed: whoever adds an adapter to it and takes it off again leaves"
            " rounding behind. Leave it, and change `down` and `up`"
        )
    if not facts["own"]:
        return (
            "the model has other parameters than before, and whoever holds the old ones, such as an"
            " optimizer, does not know: fill those that are there, with copy_"
        )
    if not facts["adapters_kept"]:
        return "the adapters that were given have changed: the next request needs them as they were"
    return ""
