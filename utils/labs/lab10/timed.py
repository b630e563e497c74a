"""What the judges of lab 10 share: cases of which the largest is timed; why a kernel is slow."""

from statistics import median
from typing import Any

import ml_dtypes
import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged
from utils.labs.kernel_replay import Replay, replay
from utils.labs.lab10.reading import bytes_moved, over_least, wait_shares

SAYS = says("lab10")

NAMES = {
    "tensor": "Tensor Engine", "vector": "Vector Engine", "scalar": "Scalar Engine",
    "gpsimd": "GpSimd Engine", "dma": "DMA",
}  # fmt: skip
FULL, MUCH = 0.8, 0.15
"""Shares of the time: an engine that bounds a kernel, and a wait that is worth a word."""


def why(run: Replay) -> str:
    """What bounds the kernel and what to try, in the order in which a profile is read."""
    profile = run.profile
    result, busy = bytes_moved(run.program), profile.utilisation
    total = sum(result.values())
    if result["between"] > total / 10:
        return (
            f"{result['between'] / total:.0%} of the bytes go to HBM between two parts of the "
            "kernel and back: keep them in SBUF, in one loop"
        )
    extra = over_least(run.program)
    if busy["dma"] >= FULL and extra > 1.5:
        return (
            f"DMA is busy {busy['dma']:.0%} of the time and moves {extra:.2g} times the least: use "
            "what was loaded for more products before it is loaded again"
        )
    if busy["dma"] >= FULL and profile.moving < 0.6 * busy["dma"]:
        return SAYS["narrow-products"].format(
            dma=busy["dma"], moving=profile.moving, bytes=_bytes(run)
        )
    busiest = profile.busiest
    if busiest not in ("dma", "tensor") and busy[busiest] >= FULL:
        return SAYS["two-passes-for-two-factors"].format(
            value=NAMES[busiest],
            value_2=busy[busiest],
            most=_most(profile, busiest),
            others=_others(busy, busiest),
        )
    return _waits(profile, busy, run)


def _waits(profile: Any, busy: dict[str, float], run: Replay) -> str:
    busiest = profile.busiest
    text = f"no engine is full, the {NAMES[busiest]} with {busy[busiest]:.0%} is the busiest: "
    if busy[busiest] >= FULL:
        text = f"the {NAMES[busiest]} is busy {busy[busiest]:.0%} of the time: "
    products = [interval.start for interval in profile.intervals if interval.engine == "tensor"]
    before = min(products, default=0.0) / profile.seconds
    if before > MUCH:
        return SAYS["all-of-the-left-matrix-before"].format(answer=text, before=before)
    spent = wait_shares(profile)
    if spent["place"] > MUCH:
        return (
            f"{text}{spent['place']:.0%} of the critical path waits for a buffer in use: allocate "
            "tiles inside the loop, so that each turn has its own"
        )
    engine, name, line, share = _off_the_busiest(profile)
    if share < MUCH:
        return (
            f"{text}little waits; what is left is less work for it: fewer instructions, each with "
            "as many columns as it takes"
        )
    where = f"{share:.0%} of the critical path is {name} in line {line}"
    if engine == "dma":
        return (
            f"{text}{where}, {_bytes(run)} bytes each: products wait for loads. Let each bring "
            "longer rows, and more rows at a time"
        )
    return (
        f"{text}{where}: engines take turns where they could work at one time. Work in pieces of "
        "a PSUM bank, so that one piece is computed while another is reduced"
    )


def _off_the_busiest(profile: Any) -> tuple[str, str, int, float]:
    """The engine, instruction and line, not of the busiest engine, that the critical path holds
    most of, and its share of the time.
    """
    spans: dict[tuple[str, str, int], float] = {}
    for step in profile.critical_path:
        engine = step.engine.partition(" ")[0]
        if engine != profile.busiest:
            key = engine, step.name, step.line
            spans[key] = spans.get(key, 0.0) + step.seconds / profile.seconds
    if not spans:
        return "", "", 0, 0.0
    longest = max(spans, key=spans.__getitem__)
    return *longest, spans[longest]


def _bytes(run: Replay) -> int:
    """Bytes of the transfer in the middle."""
    from utils.nki.simulator.enums import engine

    sizes = [
        instruction.args[name].size * instruction.args[name].itemsize
        for instruction in run.program.instructions
        if instruction.engine is engine.dma
        for name in instruction.checked.spec.outputs
    ]
    return int(median(sizes or [0]))


def _most(profile: Any, engine: str) -> str:
    """The instruction that an engine spends most time on."""
    spent: dict[str, float] = {}
    for interval in profile.intervals:
        if interval.engine.partition(" ")[0] == engine:
            spent[interval.name] = spent.get(interval.name, 0.0) + interval.end - interval.start
    return max(spent, key=spent.__getitem__, default="nothing")


def _others(busy: dict[str, float], busiest: str) -> str:
    """The compute engines that are less than half busy, with how much they are."""
    free = [n for n in ("scalar", "vector", "gpsimd") if n != busiest and busy[n] < 0.5]
    return ", ".join(f"{NAMES[n]} {busy[n]:.0%}" for n in free) or "none has: fuse"


LATER = "not at this size"
Argument = tuple[tuple[int, ...], str]


def case_of(*arguments: Argument | float, timed: bool = False) -> Facts:
    """A case: sizes of the arguments as plain data, and whether traffic and time count."""
    plain = [
        argument if isinstance(argument, float) else [list(argument[0]), argument[1]]
        for argument in arguments
    ]
    return {"arguments": plain, "timed": timed}


def words(case: Facts) -> str:
    """The sizes of a case.

    >>> words(case_of(((4, 8), "bfloat16"), 0.5))
    'arguments of [4, 8], 0.5'
    """
    text = [
        str(argument if isinstance(argument, float) else argument[0])
        for argument in case["arguments"]
    ]
    return f"arguments of {', '.join(text)}"


def draw(rng: np.random.Generator, argument: list, scale: float = 1.0) -> np.ndarray:
    """Random numbers of the shape and type of an argument of a case."""
    shape, dtype = argument
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return (scale * rng.standard_normal(shape, dtype=np.float32)).astype(kind)


def on_one_core(facts: Facts, inputs: tuple[np.ndarray, ...], answer: str) -> Replay:
    """A record run again; one for two cores has a fault, since all bounds are those of one."""
    run = replay(facts, inputs, answer)
    if not run.fault and len(run.program.cores) != 1:
        return Replay(SAYS["two-cores"].format(answer=answer, len=len(run.program.cores)))
    return run


def traffic(run: Replay, case: Facts, limit: float, weight: int, message: str) -> Criterion:
    """Whether at most `limit` times the least goes to and from HBM, where a case is timed."""
    target = f"at most {limit:g} times the least"
    if not case["timed"]:
        return criterion("HBM traffic", weight, True, LATER, target, "")
    result = over_least(run.program)
    measured = f"{result:.3g} times the least"
    return criterion("HBM traffic", weight, result <= limit, measured, target, message)


def at_least(
    name: str, case: Facts, value: float, limit: float, weight: int, text: str, message: str
) -> Criterion:
    """Whether a figure is at least its limit, where a case is timed. text: formats a figure."""
    return _compare(value >= limit, "at least", name, case, value, limit, weight, text, message)


def at_most(
    name: str, case: Facts, value: float, limit: float, weight: int, text: str, message: str
) -> Criterion:
    """Whether a figure is at most its limit, where a case is timed. text: formats a figure."""
    return _compare(value <= limit, "at most", name, case, value, limit, weight, text, message)


def _compare(
    passed: bool, how: str, name: str, case: Facts, value: float, limit: float, weight: int,
    text: str, message: str,
) -> Criterion:  # fmt: skip
    target = f"{how} {text.format(limit)}"
    if not case["timed"]:
        return criterion(name, weight, True, LATER, target, "")
    return criterion(name, weight, passed, text.format(value), target, message)


OVER = "{:.2f} times the bound"


def if_right(right: bool, costs: list[Criterion]) -> list[Criterion]:
    """What a kernel costs, which is judged only of a right one."""
    return costs if right else [not_judged(item) for item in costs]
