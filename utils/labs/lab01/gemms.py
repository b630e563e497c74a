"""The cases and the judgement of bound and time of six GEMMs, exercise 1 of lab 01."""

import random
from collections.abc import Sequence
from typing import Any

from utils.chip.roofline import bound, gemm
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, not_asked_for, row
from utils.labs.lab01.sheets import DTYPE_BYTES, GPUS, at_level, core_of, sheet
from utils.labs.values import right_values
from utils.labs.wrong_answers import Known

SAYS = says("lab01")

WEIGHTS = {"time": 5, "bound": 3}
COUNT = 6
BOUNDS = ("compute", "memory")
CLEAR = 1.3
"""The longer of computing and moving takes at least so many times the shorter."""


def gemm_cases(rng: random.Random) -> list[Facts]:
    """Trainium2, another Trainium and a GPU, with six GEMMs each."""
    return [_case(rng, key) for key in ("trainium2", rng.choice(("trainium1", "trainium3")))] + [
        _case(rng, rng.choice(GPUS))
    ]


def _case(rng: random.Random, key: str) -> Facts:
    levels = ("core", "chip") if core_of(key) else ("chip",)
    gemms = []
    for place in range(COUNT):
        wanted, level = ("compute", "memory")[place % 2], levels[place // 2 % len(levels)]
        short = None if wanted == "compute" else "k" if place == 1 else rng.choice("mn")
        gemms.append(_gemm(rng, key, level, short))
    rng.shuffle(gemms)
    return {"key": key, "sheet": sheet(key), "gemms": gemms}


def _gemm(rng: random.Random, key: str, level: str, short: str | None) -> dict[str, Any]:
    """A product that is bound by memory because one side is `short`, or else by compute.

    A short k makes the product the largest of the three matrices.
    """
    of = at_level(key, level)
    dtypes = [dtype for dtype in DTYPE_BYTES if dtype in of.flops]
    while True:
        sizes = {side: 128 * rng.randint(2, 24) for side in "mkn"}
        if short:
            sizes[short] = rng.choice((1, 4, 16, 32))
        dtype = rng.choice(dtypes)
        work = gemm(**sizes, dtype=dtype)
        longer = of.hbm_bytes_per_s / of.rate(dtype) * work.intensity  # computing over moving
        if (1 / longer if short else longer) >= CLEAR:
            return {**sizes, "dtype": dtype, "on": level}


def label(item: dict[str, Any]) -> str:
    """The name of a GEMM in messages: its shape, its dtype and where it runs."""
    return f"{item['m']} × {item['k']} × {item['n']} {item['dtype']} on one {item['on']}"


def truth(case: Facts) -> list[tuple[float, str]]:
    """Seconds of every GEMM of a case, and what bounds it."""
    results = []
    for item in case["gemms"]:
        work = gemm(item["m"], item["k"], item["n"], item["dtype"])
        estimate = bound(work, at_level(case["key"], item["on"]), item["dtype"])
        results.append((estimate.seconds, estimate.bound))
    return results


WORDS = (
    "six GEMMs on {sheet[name]}, the first {gemms[0][m]} × {gemms[0][k]} × {gemms[0][n]}"
    " {gemms[0][dtype]}"
)
_ADVICE = "2mkn FLOP at the rate of its dtype, all three matrices over HBM: the longer of the two"


def judge_gemm_times(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: the seconds of all GEMMs, and what bounds them."""
    right, items = truth(case), facts["items"]
    if items is None or len(items) != COUNT or any(isinstance(item, str) for item in items):
        strange = [item for item in items or [] if isinstance(item, str)]
        what = f"{facts['kind']} with {strange[0]}" if strange else facts["kind"]
        message = SAYS["the-seconds-alone"].format(what=what)
        return not_asked_for(WEIGHTS, message, facts["kind"], "six pairs", others="not judged")
    labels = [label(item) for item in case["gemms"]]
    if all(isinstance(seconds, str) and name not in BOUNDS for seconds, name in items):
        message = SAYS["the-bound-before-the-seconds"]
        return not_asked_for(WEIGHTS, message, "not judged", "seconds first", others="not judged")
    known = Known("lab01.ex1", case, lambda facts: [pair[0] for pair in facts["items"]])
    (seconds, bounds), (right_seconds, right_bounds) = (
        zip(*both, strict=True) for both in (items, right)
    )
    times = right_values("time", WEIGHTS["time"], seconds, right_seconds, labels, known, _ADVICE)
    return [times, _judge_bounds(bounds, right_bounds, labels)]


def _judge_bounds(response: Sequence[str], right: Sequence[str], labels: list[str]) -> Criterion:
    off = [place for place, item in enumerate(right) if response[place] != item]
    strange = [item for item in response if item not in BOUNDS]
    if strange:
        message = SAYS["capital-letters"].format(value=strange[0])
    elif len(off) == len(right):
        message = SAYS["the-bound-turned-round"]
    elif off and len(set(response)) == 1:
        message = SAYS["always-compute"].format(value=labels[off[0]])
    else:
        message = "which takes longer there, computing or moving?" if off else ""
    rows = [row(labels[p], response[p], right[p]) for p in off]
    return all_right(
        "bound", WEIGHTS["bound"], off, len(right), message, rows=rows, response=response
    )
