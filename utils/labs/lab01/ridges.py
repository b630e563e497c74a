"""The cases and the judgement of ridge points, exercise 2 of lab 01."""

import random

from utils.chip.roofline import ridge
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import among, criterion
from utils.labs.lab01.sheets import DTYPE_BYTES, GPUS, TRAINIUM, at_level, sheet
from utils.labs.values import near, right_values
from utils.labs.wrong_answers import Known

SAYS = says("lab01")


def ridge_cases(rng: random.Random) -> list[Facts]:
    """Three generations of Trainium and a GPU, which comes second."""
    first, *others = rng.sample(TRAINIUM, 3)
    # A GPU not last: what a passed check shows is the last case, which has DMA engines.
    return [_case(rng, key) for key in (first, rng.choice(GPUS), *others)]


def _case(rng: random.Random, key: str) -> Facts:
    levels = ["core", "chip", "instance"] if key in TRAINIUM else ["chip", "instance"]
    queries = []
    for memory in ("hbm", "dma") if key in TRAINIUM else ("hbm", "hbm"):
        for level in levels:
            published = [d for d in DTYPE_BYTES if d in at_level(key, level).flops]
            queries.append([level, memory, rng.choice(published)])
    missing = [d for d in ("fp8", "fp4", "mxfp8", "mxfp4") if d not in at_level(key, "chip").flops]
    queries.append([rng.choice(levels), "hbm", rng.choice(missing)])
    if key not in TRAINIUM:
        queries.append([rng.choice(levels), "dma", "bf16"])
    rng.shuffle(queries)
    return {"key": key, "sheet": sheet(key), "queries": queries}


def ridge_words(case: Facts) -> str:
    """What a card says of a case."""
    level, memory, dtype = case["queries"][0]
    sheet_ = case["sheet"]
    return (
        f'{len(case["queries"])} ridges of {sheet_["name"]}, first "{level}", "{memory}", {dtype}'
    )


def truth(case: Facts) -> list[float | None]:
    """The ridge of every query in FLOP per byte; None where a rate is not known."""
    return [_right(case["key"], *query) for query in case["queries"]]


def _right(key: str, level: str, memory: str, dtype: str) -> float | None:
    of = at_level(key, level)
    if dtype not in of.flops or (memory == "dma" and of.dma_bytes_per_s is None):
        return None
    return ridge(of, dtype, memory)


_ADVICE = "dense FLOP per second of this level and dtype, over the bytes per second of this memory"


def judge_ridges(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: ridges of HBM, those of the DMA engines, and None for what is unknown."""
    right, response = truth(case), facts["response"]
    labels = [f'ridge(sheet, "{level}", "{m}", "{d}")' for level, m, d in case["queries"]]

    def part(name: str, weight: int, places: list[int]) -> Criterion:
        given = ["None" if response[p] is None else response[p] for p in places]
        asked = [right[p] for p in places], [labels[p] for p in places]
        known = Known("lab01.ex2", case, lambda facts: [facts["response"][p] for p in places])
        values = right_values(name, weight, given, *asked, known, _ADVICE)
        return among(values, places, range(len(right)))

    memories = [memory for _, memory, _ in case["queries"]]
    unknown = [p for p, item in enumerate(right) if item is None]
    hbm, dma = (
        [p for p, memory in enumerate(memories) if memory == name and p not in unknown]
        for name in ("hbm", "dma")
    )
    guessed = [p for p in unknown if not near(response[p], None)]
    message = ""
    if guessed:
        _, memory, dtype = case["queries"][guessed[0]]
        why = (
            f"no rate of {dtype} is published, so nothing follows from it"
            if dtype not in at_level(case["key"], "chip").flops
            else "nobody publishes these engines, so nothing follows from them"
        )
        message = SAYS["0-for-what-is-unknown"].format(value=labels[guessed[0]], why=why)
    counted = f"{len(unknown) - len(guessed)} of {len(unknown)}"
    # An answer that returns None for everything knows nothing.
    knows = any(item is not None for item in response)
    message = message if knows else SAYS["does-nothing"]
    return [
        part("HBM", 3, hbm),
        part("DMA", 2, dma),
        criterion("unknown stays unknown", 1, not guessed and knows, counted, "all None", message),
    ]
