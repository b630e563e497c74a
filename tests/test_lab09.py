"""Lab 09: right answers pass however they are written, and a record cannot hold its result."""

import json

import ml_dtypes
import numpy as np
import pytest

from tests.cells import answer_from, cases_of, names_of, verdict_of
from tests.wrong_answers.lab09 import ADD, NORM, SOFTMAX, SUMS, TRANSPOSE, changed
from utils.exercises import judge, observe_case
from utils.exercises.lab09 import norm, rows, sums
from utils.exercises.lab09.observe import OBSERVERS
from utils.exercises.replayed import farthest, generator

EXERCISES = [f"lab09.{name}" for name in OBSERVERS]

pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab09")


OTHER_WAYS = {
    "rows in another order": (
        "lab09.ex1",
        changed(
            ADD,
            (
                "range(0, rows, nl.tile_size.pmax)",
                "reversed(range(0, rows, nl.tile_size.pmax))",
            ),
        ),
    ),
    "fewer rows in a tile": ("lab09.ex1", changed(ADD, ("nl.tile_size.pmax", "96"))),
    "added by GpSimd": (
        "lab09.ex1",
        changed(ADD, ("op=nl.add)", "op=nl.add, engine=nisa.engine.gpsimd)")),
    ),
    "loads and stores of the language": (
        "lab09.ex1",
        """
@nki.jit
def add_rows(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, a.shape[0], 128):
        here = nl.ds(start, min(128, a.shape[0] - start))
        nl.store(out[here], nl.add(nl.load(a[here]), nl.load(b[here])))
    return out
""",
    ),
    "evicted by the Scalar Engine": (
        "lab09.ex2",
        changed(TRANSPOSE, ("src=turned)", "src=turned, engine=nisa.engine.scalar)")),
    ),
    "maximum, then its negative": (
        "lab09.ex3",
        changed(
            SOFTMAX,
            (", negate=True", ""),
            (
                "        nisa.activation_reduce(",
                "        nisa.tensor_scalar(\n"
                "            dst=lowest, data=lowest, op0=nl.multiply, operand0=-1.0\n"
                "        )\n"
                "        nisa.activation_reduce(",
            ),
        ),
    ),
    "epsilon as a number": (
        "lab09.ex4",
        changed(NORM, ("bias=offset[0:size]", "bias=epsilon")),
    ),
    "narrower products": (
        "lab09.ex5",
        changed(
            SUMS, ("fmax = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax", "fmax = 128, 512")
        ),
    ),
}


@pytest.mark.parametrize("seed", ["public", "another"])
@pytest.mark.parametrize("way", OTHER_WAYS)
def test_right_answers_pass_however_they_are_written(way: str, seed: str, names: dict) -> None:
    exercise_id, source = OTHER_WAYS[way]
    verdict = verdict_of(exercise_id, answer_from(source, exercise_id, names), seed)
    assert verdict.points == 10.0, [c for c in verdict.criteria if not c.passed]


def test_a_result_written_down_beforehand_is_not_the_result(names: dict) -> None:
    """The inputs depend on everything that was recorded, a constant of the kernel included."""
    guess = """
@nki.jit
def column_sums(x):
    out = nl.ndarray((1, x.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    guess = nl.shared_constant(np.full((1, x.shape[1]), GUESS, np.float32))
    tile = nl.ndarray((1, x.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=guess)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
    case = cases_of("lab09.ex5", "public")[0]
    drawn = []
    for number in (1.0, 2.0):
        answer = answer_from(guess.replace("GUESS", str(number)), "lab09.ex5", names)
        facts = observe_case("lab09.ex5", answer, case)["facts"]
        drawn.append(generator(facts).standard_normal(4))
        assert not judge("lab09.ex5").judge(case, facts)[0].passed
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_what_is_observed_is_plain_and_small(exercise_id: str, names: dict) -> None:
    answer = names[OBSERVERS[exercise_id.partition(".")[2]].answer]
    for case in cases_of(exercise_id, "public"):
        assert len(json.dumps(observe_case(exercise_id, answer, case))) < 2**18


def test_a_record_that_was_tampered_with_is_refused(names: dict) -> None:
    case = cases_of("lab09.ex1", "public")[0]
    facts = observe_case("lab09.ex1", names["add_rows"], case)["facts"]
    for spoil in ({}, None, [], {"instructions": 3}):
        criteria = judge("lab09.ex1").judge(case, facts | {"program": spoil})
        assert not any(each.passed for each in criteria)
        assert "not a valid program" in criteria[0].message


def test_tolerances_hold_what_they_say() -> None:
    """A second rounding to BF16 is outside for some rows; any order of an FP32 sum is inside."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((700, 300)).astype(np.float32)
    right = x.astype(np.float64).sum(axis=0)
    forward = np.zeros(300, np.float32)
    for row in x:
        forward += row
    assert farthest(forward, right) < sums.TOLERANCE / 2
    assert farthest(x[::-1].sum(axis=0), right) < sums.TOLERANCE / 2
    assert farthest(x.astype(ml_dtypes.bfloat16).astype(np.float32).sum(axis=0), right) > 1e-4

    e = np.exp(x - x.max(axis=1, keepdims=True))
    good = e / e.sum(axis=1, keepdims=True)
    exact = rows.softmax(x)
    assert farthest(good, exact) < rows.TOLERANCE / 2
    low = e.astype(ml_dtypes.bfloat16).astype(np.float32) / e.sum(axis=1, keepdims=True)
    assert farthest(low, exact) > 100 * rows.TOLERANCE
    once, twice = (each.astype(ml_dtypes.bfloat16) for each in (good, low))
    assert farthest(once, exact, rounded=True) < rows.TOLERANCE / 2
    assert farthest(twice, exact, rounded=True) > 100 * rows.TOLERANCE

    weight = np.ones(300, np.float32)
    scale = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-5))
    assert farthest(x * scale, norm.rms_norm(x, weight, 1e-5)) < rows.TOLERANCE / 2
