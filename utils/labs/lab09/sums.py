"""The cases and the judgement of the sum over rows, exercise 5 of lab 09."""

import random
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import at_most, criterion, first_of, not_judged
from utils.labs.kernel_replay import Replay, close_to, generator, nothing, replay, right_values
from utils.labs.lab09.rows import TILE, draw_numbers

SAYS = says("lab09")

WEIGHTS = {"values": 3, "engine": 2, "evictions": 1}
TOLERANCE = 2e-6
"""Relative to the largest sum: FP32 sums of 700 rows in any order stay below 1e-6, operands that
were rounded to BF16 lie above 1e-4. The tests measure both."""
COLUMNS = 512
"""Of one product: a bank of PSUM."""


def cases(rng: random.Random) -> list[Facts]:
    """One tile of rows, whole tiles and a whole bank, both with a rest."""
    return [
        {"rows": TILE, "columns": rng.choice((100, 300)), "dtype": "float32"},
        {"rows": 3 * TILE, "columns": COLUMNS, "dtype": "float32"},
        {
            "rows": rng.choice((2, 4)) * TILE + rng.randrange(8, 120, 8),
            "columns": rng.choice((2, 3)) * COLUMNS + rng.randrange(16, 400, 16),
            "dtype": "float32",
        },
    ]


def judge(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: values, the engine that adds, and evictions from PSUM."""
    x = draw_numbers(generator(facts), case)
    run = replay(facts, (x,), "column_sums")
    if run.fault:
        return nothing(WEIGHTS, run.fault, run.detail)
    right = x.astype(np.float64).sum(axis=0, keepdims=True)
    values = right_values(run, right, "float32", TOLERANCE, 3, _advice(run, x))
    products, others = run.count("nc_matmul"), _other_engines(run)
    rows, most = _multiply(run) // case["columns"], -(-case["columns"] // COLUMNS) * COLUMNS
    slow = SAYS["reduced-along-axis-0"]
    fewer = SAYS["rows-added-by-the-vector-engine"].format(rows=rows, rows_2=case["rows"])
    evicted = _count_evicted(run)
    text = SAYS["stored-straight-from-psum"]
    evictions = at_most("evictions", 1, evicted, most, text, "{} columns")
    passed, target = rows >= case["rows"] and not others, f"products of {case['rows']} rows only"
    measured = f"{products} products of {rows} rows" + f", {others} slow steps" * bool(others)
    message = fewer if products and not others else slow
    engine = criterion("engine", 2, passed, measured, target, message)
    return [values, engine, evictions if products else not_judged(evictions)]


def _multiply(run: Replay) -> int:
    """Elements that the products took from the operand that is not the ones."""
    sizes = 0
    for instruction in run.program.instructions:
        if instruction.checked.spec.name == "nc_matmul":
            sizes += max(instruction.args["stationary"].size, instruction.args["moving"].size)
    return sizes


def _count_evicted(run: Replay) -> int:
    """Columns of results that engines read from PSUM: a value for each, in whatever partitions."""
    from utils.nki.simulator.enums import MemoryRegion, engine
    from utils.nki.simulator.uses import tensors_of

    columns = 0
    for instruction in run.program.instructions:
        if instruction.engine is not engine.tensor:
            columns += max(
                (max(v.shape[0], v.size // v.shape[0])
                 for v in tensors_of(instruction, reads=True) if v.buffer is MemoryRegion.psum),
                default=0,
            )  # fmt: skip
    return columns


def _other_engines(run: Replay) -> int:
    return run.count(
        "tensor_partition_reduce", "nc_transpose", "dma_transpose", "tensor_reduce", "dma_compute"
    )


def _advice(run: Replay, x: np.ndarray) -> str:
    result, wide = run.outputs[0].astype(np.float64), x.astype(np.float64)
    general = "one number for each column: the sum of all its rows"
    right = wide.sum(axis=0, keepdims=True)
    if result.shape != right.shape or not np.isfinite(result).all():
        return general
    near = 1e-3 * float(abs(wide).sum(axis=0).max())
    starts = range(0, len(x), TILE)
    tiles = [wide[start : start + TILE].sum(axis=0) for start in starts]
    some = len(tiles) > 1
    second = right[:, COLUMNS : 2 * COLUMNS]
    both, there = second + right[:, : second.shape[1]], result[:, COLUMNS : 2 * COLUMNS]
    first = "only the first tile of rows is in the result: accumulate over the tiles"

    def is_near(value: np.ndarray, way: Any) -> bool:
        return np.allclose(value, way, atol=near)

    return first_of(
        (some and is_near(result[0], tiles[-1]), SAYS["a-new-psum-tile-for-each-tile-of-rows"]),
        (some and is_near(result[0], sum(tiles[:-1])), SAYS["whole-tiles-only-2"]),
        (some and is_near(result[0], tiles[0]), first),
        (is_near(result[0], wide.mean(axis=0)), "this is the mean of each column"),
        (second.size and is_near(there, both), SAYS["one-psum-tile-for-all-blocks"]),
        (close_to(result, right),
         "close, but a step on the way has fewer bits: keep x, the ones and the sums in FP32"),
        otherwise=general,
    )  # fmt: skip
