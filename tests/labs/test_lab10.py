"""Lab 10: right designs pass with room to each limit, flaws are what they are called."""

import ml_dtypes
import numpy as np
import pytest

from tests.labs.cells import answer_from, cases_of, names_of, right_ways, verdict_of, wrong_entries
from utils.labs import judge, observe_case
from utils.labs.kernel_replay import farthest
from utils.labs.lab10 import attention, convolution, fusion, products
from utils.labs.lab10.advice import profiles, truths
from utils.labs.lab10.observe import OBSERVERS
from utils.labs.lab10.reading import ACTIONS
from utils.nki import simulator
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.profile import profile

WRONG = wrong_entries("lab10")
ROOM = 0.05
"""No right design of ours is nearer to a limit than this share of it: by night, because it changes
with a limit or the timing model only. That they pass, and slow ones do not, is tested by day.
"""

pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab10")


@pytest.mark.exhaustive
def test_no_right_design_is_near_a_limit(names: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """All still pass where each limit is a twentieth stricter."""
    monkeypatch.setattr(products, "GOOD_MFU", products.GOOD_MFU * (1 + ROOM))
    monkeypatch.setattr(fusion, "BALANCED", fusion.BALANCED * (1 + ROOM))
    monkeypatch.setattr(convolution, "SLOWER", convolution.SLOWER * (1 - ROOM))
    steps = {
        name: (limit * (1 - ROOM), weight) for name, (limit, weight) in attention.STEPS.items()
    }
    monkeypatch.setattr(attention, "STEPS", steps)
    right = [(f"lab10.{ex}", names[OBSERVERS[ex].answer]) for ex in ("ex2", "ex3", "ex4", "ex6")]
    right += [
        (exercise_id, answer_from(source, exercise_id, names))
        for exercise_id, _, source in right_ways("lab10")
        if exercise_id != "lab10.ex1"
    ]
    for exercise_id, answer in right:
        case = cases_of(exercise_id, "public")[-1]
        facts = observe_case(exercise_id, answer, case)["facts"]
        criteria = judge(exercise_id).judge(case, facts)
        assert all(criterion.passed for criterion in criteria), (exercise_id, criteria)


SLOW = {
    "all of the left matrix before": ("MFU, good", "GOOD_MFU", 1 - ROOM),
    "narrow products": ("MFU, good", "GOOD_MFU", 1 - ROOM),
    "sums that leave PSUM after two products": ("MFU, good", "GOOD_MFU", 1 - ROOM),
    "squares on the Vector Engine too": ("speed, fused", "FUSED", 1 - ROOM),
    "two passes for two factors": ("speed, balanced", "BALANCED", 1 - ROOM),
    "sums outside of PSUM": ("over the bound", "SLOWER", 1 + ROOM),
    "a row at once": ("overlapped", "STEPS", 1 + ROOM),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("what", SLOW)
def test_what_is_too_slow_is_so_by_a_margin(
    what: str, names: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, limit, factor = SLOW[what]
    (exercise_id, source), *_ = [(w[0], w[2]) for w in WRONG if w[1] == what]
    (module,) = [m for m in (products, fusion, convolution, attention) if hasattr(m, limit)]
    known = getattr(module, limit)
    easier = (
        {key: (value * factor, weight) for key, (value, weight) in known.items()}
        if isinstance(known, dict)
        else known * factor
    )
    monkeypatch.setattr(module, limit, easier)
    case = cases_of(exercise_id, "public")[-1]
    facts = observe_case(exercise_id, answer_from(source, exercise_id, names), case)["facts"]
    criteria = {item.name: item for item in judge(exercise_id).judge(case, facts)}
    assert criteria["values"].passed and not criteria[name].passed


def test_what_mends_a_variant_is_what_it_is_called_after() -> None:
    """Without its flaw each kernel is faster by half and more; those without one are the same."""
    simulator.use()
    from utils.labs.lab10.variants import variants

    assert {item.action for item in variants()} == set(ACTIONS)
    for variant in variants():
        shapes = [Shape(*shape) for shape in variant.shapes]
        gain = (
            profile(variant.kernel, target="trn2")(*shapes).seconds
            / profile(variant.mended, target="trn2")(*shapes).seconds
        )
        assert gain == 1.0 if variant.action == "stop" else gain > 1.4, (variant.action, gain)


@pytest.mark.parametrize("seed", range(5))
def test_each_kind_of_profile_is_asked_twice(seed: int) -> None:
    (case,) = cases_of("lab10.ex5", seed)
    assert sorted(truths(case)) == sorted([*ACTIONS, *ACTIONS])
    assert not any(numbers in case["profiles"] for _, numbers in profiles())


def test_a_record_without_work_wins_nothing_for_speed(names: dict) -> None:
    """A kernel that stores what it likes is fast, and wrong."""
    source = """
@nki.jit
def fast_matmul(lhs_t, rhs):
    shape = (lhs_t.shape[1], rhs.shape[1])
    out = nl.ndarray(shape, dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, shape[1]), dtype=lhs_t.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    for m in range(0, shape[0], 128):
        nisa.dma_copy(dst=out[nl.ds(m, 128)], src=tile)
    return out
"""
    verdict = verdict_of("lab10.ex2", answer_from(source, "lab10.ex2", names), "public")
    assert verdict.points == 0.0


def test_tolerances_hold_what_they_say() -> None:
    """Any order of an FP32 sum is inside; a second rounding to BF16 is outside."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2048, 64)).astype(ml_dtypes.bfloat16) for _ in "ab")
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    right = wide_a.T @ wide_b
    forward = np.zeros((64, 64), np.float32)
    for k in range(2048):
        forward += np.outer(a[k].astype(np.float32), b[k].astype(np.float32))
    assert farthest(forward, right) < products.TOLERANCE / 2
    once = forward.astype(ml_dtypes.bfloat16)
    assert farthest(once, right, rounded=True) < products.TOLERANCE / 2
    half = (wide_a[:1024].T @ wide_b[:1024]).astype(ml_dtypes.bfloat16).astype(np.float64)
    twice = (half + wide_a[1024:].T @ wide_b[1024:]).astype(ml_dtypes.bfloat16)
    assert farthest(twice, right, rounded=True) > 50 * products.TOLERANCE

    x, gate = (rng.standard_normal((128, 512)).astype(np.float32) for _ in "xg")
    weight = np.ones(512, np.float32)
    exact = fusion.gated_norm(x, gate, weight, 1e-5)
    active = gate / (1 + np.exp(-gate))
    h = x * active
    ours = h / np.sqrt((h * h).mean(axis=1, keepdims=True) + np.float32(1e-5))
    assert farthest(ours, exact) < fusion.TOLERANCE / 2
    low = x * active.astype(ml_dtypes.bfloat16).astype(np.float32)
    theirs = low / np.sqrt((low * low).mean(axis=1, keepdims=True) + np.float32(1e-5))
    assert farthest(theirs, exact) > 20 * fusion.TOLERANCE


def test_large_scores_leave_no_shift_but_the_maximum() -> None:
    """Half of the keys, whichever, miss a maximum by more than exp has room for in FP32, on both
    sides of 1 together; and queries of one length have maxima that far apart."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((128, 512)).astype(ml_dtypes.bfloat16) for _ in "qk")
    q, k = (item.astype(np.float64) for item in attention.uneven(q, k, rng))
    scores = q.T @ k / 128**0.5
    largest = scores.max(axis=1)
    room = 2 * np.log(float(np.finfo(np.float32).max))
    assert 0.9 * attention.LARGE < scores.max() < 1.02 * attention.LARGE
    for half in (slice(0, None, 2), slice(1, None, 2), slice(0, 256), slice(256, None)):
        assert (largest - scores[:, half].max(axis=1)).max() > room
    order = np.argsort(np.linalg.norm(q, axis=0))
    assert abs(np.diff(largest[order])).max() > room


def test_matmul_of_the_lab_moves_what_its_example_says(names: dict) -> None:
    shapes = Shape((1024, 1024), "bfloat16"), Shape((1024, 1024), "bfloat16")
    assert profile(names["matmul"])(*shapes).hbm_ratio == pytest.approx(4 / 3)
