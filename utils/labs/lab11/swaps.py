"""The cases and the judgement of adapters that change places, exercise 5 of lab 11."""

import random
from dataclasses import replace

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, did_nothing, not_judged, right_numbers, times
from utils.labs.lab11 import truth
from utils.labs.lab11.loops import compiles_at_most

SAYS = says("lab11")

TOLERANCE = 2e-5
"""How far a loss may lie from the one computed in float64: as in exercises 2 and 3, whose model
this is.
"""

NAMES = ("north", "south", "east")


def swap_cases(rng: random.Random) -> list[Facts]:
    """Three requests for two adapters, and seven requests for all adapters."""
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
    """What a card says of a case."""
    ranks = ", ".join(f"{name} of rank {item[1]}" for name, item in case["adapters"].items())
    asked = ", ".join(f"{name} {rows}×{length}" for name, rows, length in case["requests"])
    return f"{case['slots']} slots; adapters {ranks}; requests {asked}"


def judge_swaps(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: losses, compiles, and whether the base stays as it is."""
    right, asked = truth.serve(case), len(case["requests"])
    shapes = len({tuple(request[1:]) for request in case["requests"]})
    known = {
        SAYS["never-loaded"]: (truth.base_alone(case)),
        SAYS["no-factor"]: truth.serve(case, scaled=False),
        SAYS["what-is-left-over"]: truth.serve(case, left_over=True),
    }
    text, advice = facts["returned"], SAYS["another-loss"]
    of = ("serve", "request")
    losses = right_numbers("losses", 3, text, right, known, advice, of, TOLERANCE)
    compiled = compiles_at_most(2, shapes, facts, SAYS["slots-of-its-own-rank"])
    compiled = replace(compiled, target=f"{shapes}, one for each shape")
    kept = criterion("one base", 1, not (fault := _base(facts)), "", "", fault)
    rows = [losses, compiled, kept]
    if facts["returned"]["stopped"]:
        return [not_judged(losses), compiled, not_judged(kept)]
    if did_nothing(facts):
        return [losses, not_judged(compiled), not_judged(kept)]
    if not 0 < facts["on_device"] == facts["steps"] or facts["answered"] < asked:
        message = SAYS["a-copy-for-each"].format(
            answered=facts["answered"], asked=times(asked, "request")
        )
        return [not_judged(losses, message), not_judged(compiled), not_judged(kept)]
    if not losses.passed:
        return [losses, not_judged(compiled), not_judged(kept)]
    return rows


def _base(facts: Facts) -> str:
    if isinstance(facts["base_moved"], str):
        return "the model has lost parts: swap the values, and leave its layers as they are"
    if facts["base_moved"] > 0:
        return SAYS["merged-into-the-base"]
    if not facts["own"]:
        return SAYS["new-parameters"]
    if not facts["adapters_kept"]:
        return SAYS["the-adapters-are-changed"]
    return ""
