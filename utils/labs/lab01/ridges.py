"""The cases and the judgement of ridge points, exercise 2 of lab 01."""

import random

from utils.chip.roofline import ridge
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import among, criterion
from utils.labs.lab01.sheets import DTYPE_BYTES, GPUS, TRAINIUM, at_level, sheet
from utils.labs.values import Ways, near, right_values

SAYS = says("lab01")

Query = list[str]


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


def ways(case: Facts, level: str, memory: str, dtype: str) -> Ways:
    """What wrong ways give for one ridge."""
    key, data = case["key"], case["sheet"]
    right = _right(key, level, memory, dtype)
    if right is None:
        return []
    of, chip, instance = (at_level(key, item) for item in (level, "chip", "instance"))
    rate, alike = of.rate(dtype), SAYS["sixteen-chips-of-flop"]
    results = [
        (SAYS["turned-round"], 1 / right),
        ("T is 10^12 and G is 10^9: the result is wrong by a factor of a thousand", right / 1e3),
        ("T is 10^12 and G is 10^9: the result is wrong by a factor of a thousand", right * 1e3),
        (SAYS["per-value"], right * DTYPE_BYTES[dtype]),
        *((SAYS["no-powers-of-ten-2"], right * 10.0**power) for power in (-12, -9, 9, 12)),
        (SAYS["tebibytes"], right * 1e12 / 2**40),
        (SAYS["the-bf16-rate-for-all"], right * of.rate("bf16") / rate),
    ]
    if data["sparse_tflops"]:
        sparse, text = data["sparse_tflops"] * 1e12, SAYS["the-sparse-rate-2"]
        results += [(text, right * sparse / chip.rate("bf16")), (text, right * sparse / rate)]
    if level == "core":
        shares = chip.cores
        if memory == "dma":
            shares = data["dma_engines"] / data["dma_engines_per_core"]
        results += [
            (SAYS["all-of-the-bandwidth-for-a-core"], right / shares),
            (SAYS["the-chips-rate-for-a-core-2"], right * chip.rate(dtype) / rate),
            (SAYS["the-chips-rate-shared-out-2"], right * chip.rate(dtype) / chip.cores / rate),
        ]
    if level == "instance":
        results += [(alike, right * instance.chips), (alike, right / instance.chips)]
    if memory == "dma":
        engines = data["dma_engines_per_core"] if level == "core" else data["dma_engines"]
        count = engines * (instance.chips if level == "instance" else 1)
        results += [
            (SAYS["one-engine"], right * count),
            (SAYS["hbm-for-the-engines"], ridge(of, dtype)),
            (SAYS["half-for-each-direction"], right * 2),
            (SAYS["gibibytes"], right * 1e9 / 2**30),
        ]
        if level != "core":
            shares = data["dma_engines"] / data["dma_engines_per_core"]
            results += [(SAYS["a-cores-engines-for-a-chip"], right * shares)]
    elif data["dma_engines"]:
        text = "HBM's own bandwidth is asked for here, not that of the engines"
        results += [(text, ridge(of, dtype, "dma"))]
    # Last, because a chip may have eight cores.
    return [*results, *((SAYS["bits-2"], number) for number in (right / 8, 8 * right))]


def judge_ridges(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: ridges of HBM, those of the DMA engines, and None for what is unknown."""
    right, response = truth(case), facts["said"]
    labels = [f'ridge(sheet, "{level}", "{m}", "{d}")' for level, m, d in case["queries"]]

    def part(name: str, weight: int, places: list[int]) -> Criterion:
        given = ["None" if response[p] is None else response[p] for p in places]
        asked = [right[p] for p in places], [labels[p] for p in places]
        known = [ways(case, *case["queries"][p]) for p in places]
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
