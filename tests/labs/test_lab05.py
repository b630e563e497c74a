"""Lab 05: its references equal the libraries, its statistical test keeps its word, right answers
pass however they are written, and nothing an answer returns can break a check.
"""

import json
import math
import random
import struct
from collections import Counter

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import SEEDS, answer_from, cases_of, names_of, verdict_of, wrong_entries
from utils.labs import decide, observe_case
from utils.labs.lab05 import (
    blocks,
    codes,
    engine,
    inputs,
    products,
    rounding,
    scales,
    stochastic,
    updates,
)
from utils.labs.lab05.observe import OBSERVERS

WRONG = wrong_entries("lab05")


BY_CHANCE = """
def update(weights, gradients, state, lr):
    for w, gradient in zip(weights, gradients, strict=True):
        new = w.float() - lr * gradient.float()
        noise = (torch.rand_like(new) * 2**16).to(torch.int32)
        bits = new.view(torch.int32) + noise
        w.copy_((bits & -(2**16)).view(torch.float32))
"""


NUMPY_ONLY = [f"lab05.{name}" for name in OBSERVERS if name != "ex4"]


pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab05")


# Right answers


@pytest.mark.parametrize("exercise_id", NUMPY_ONLY)
def test_right_answers_pass_with_many_seeds(exercise_id: str, names: dict) -> None:
    answer = names[OBSERVERS[exercise_id.partition(".")[2]].answer]
    for seed in range(5):
        verdict = verdict_of(exercise_id, answer, seed)
        assert verdict.state == "passed", (seed, verdict)


@pytest.mark.parametrize("value", [0, 1, 56, 120])
def test_a_constant_code_wins_nothing(value: int) -> None:
    assert verdict_of("lab05.ex1", lambda *_: [value] * 10, "public").points == 0


def test_zeros_are_no_blocks() -> None:
    def zeros(x, element):
        return np.zeros((len(x), x.shape[1] // 32), np.uint8), np.zeros_like(x)

    assert verdict_of("lab05.ex6", zeros, "public").points == 0


# What an answer may return


@given(st.lists(st.floats(1e-45, 1e39), min_size=2, max_size=2))
@settings(max_examples=40, deadline=None)
def test_any_scale_can_be_judged(result: list[float]) -> None:
    case = cases_of("lab05.ex5", "first")[0]
    seen = observe_case("lab05.ex5", lambda tensors: result, case)
    assert decide("lab05.ex5", [case], [seen], 10.0).points <= 10


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda weights: weights.clear(), "changed their number or shapes"),
        (lambda weights: weights.append(weights[0]), "changed their number or shapes"),
        (lambda weights: weights[0].mul_(math.inf), "no finite numbers"),
        (lambda weights: weights.__setitem__(0, 1.0), "something that is no tensor"),
        (lambda weights: weights.__setitem__(0, weights[0].double()), "weights of float64"),
    ],
)
def test_odd_updates_are_told_what_is_wrong(change, text: str) -> None:
    case = {**cases_of("lab05.ex4", "first")[0], "steps": 3}

    def update(weights, gradients, state, lr):
        change(weights)

    seen = json.loads(json.dumps(observe_case("lab05.ex4", update, case)))
    verdict = decide("lab05.ex4", [case], [seen], 10.0)
    assert verdict.points == 0
    response = [verdict.error, *(criterion.message for criterion in verdict.criteria)]
    # A list without weights fails in the forward pass itself.
    assert any(text in item for item in response) or "unpack" in verdict.error, response


@pytest.mark.parametrize("exercise_id", ["lab05.ex2", "lab05.ex5"])
def test_an_answer_that_does_not_end_is_stopped(exercise_id: str, monkeypatch) -> None:
    from utils.labs import limit

    within = limit.within
    monkeypatch.setattr(limit, "within", lambda call: within(call, seconds=0.05))

    def for_ever(*_):
        while True:
            pass

    verdict = verdict_of(exercise_id, for_ever, "public")
    assert verdict.points == 0
    assert "the check stopped the answer after some seconds" in verdict.criteria[0].message


# Exercise 1: the reference


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        (ml_dtypes.float8_e4m3, (4, 3)),
        (ml_dtypes.float8_e3m4, (3, 4)),
        (ml_dtypes.float8_e5m2, (5, 2)),
        (ml_dtypes.bfloat16, (8, 7)),
        (np.float16, (5, 10)),
    ],
)
def test_codes_are_those_of_the_libraries(dtype: type, bits: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    unsigned = np.uint8 if sum(bits) == 7 else np.uint16
    with np.errstate(invalid="ignore"):
        every = np.arange(2 ** sum(bits), dtype=unsigned).view(dtype).astype(np.float64)
    every = every[np.isfinite(every)]
    middles = (every[1:] + every[:-1]) / 2
    some = np.concatenate([every, middles, middles * (1 + 2.0**-12)])
    if some.size > 4000:
        some = rng.choice(some, 4000)
    with np.errstate(over="ignore"):
        expected = some.astype(np.float32).astype(dtype).view(unsigned)
    assert [codes.code_of(float(x), *bits) for x in some.astype(np.float32)] == expected.tolist()
    negative = (-some.astype(np.float32)).tolist()
    with np.errstate(over="ignore"):
        expected = np.array(negative, np.float32).astype(dtype).view(unsigned)
    assert [codes.code_of(x, *bits) for x in negative] == expected.tolist()


@given(st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_ten_numbers_are_what_their_kinds_say(seed: int) -> None:
    result = rounding.rounding_cases(random.Random(seed))
    assert [(c["exponent_bits"], c["mantissa_bits"]) for c in result[:2]] == [(4, 3), (8, 7)]
    for case in result:
        bits = case["exponent_bits"], case["mantissa_bits"]
        assert len(case["numbers"]) == 10 and set(case["kinds"]) == set(rounding._WEIGHTS)
        for kind, x in zip(case["kinds"], case["numbers"], strict=True):
            assert struct.unpack("f", struct.pack("f", x))[0] == x
            magnitude = codes.code_of(abs(x), *bits)
            below, above = (codes.code_of(abs(x) * (1 + eps), *bits) for eps in (-1e-6, 1e-6))
            tie = below != above and (abs(x) - codes.value_of(below, *bits)) * 2 == (
                codes.value_of(above, *bits) - codes.value_of(below, *bits)
            )
            infinity = (2 ** bits[0] - 1) << bits[1]
            largest = codes.value_of(infinity - 1, *bits)
            if kind in ("between two values", "next to a tie", "carry"):
                assert not tie and 2 ** bits[1] <= magnitude < infinity
            if kind == "ties":
                assert tie
            if kind == "carry":
                assert magnitude % 2 ** bits[1] == 0
            assert (kind == "subnormal") == (magnitude <= 2 ** bits[1])
            assert (kind == "overflow") == (abs(x) > largest)


# Exercise 2: the statistical test is tested


def test_the_false_alarms_are_shared_out_among_all_tests() -> None:
    for seed in range(20):
        result = stochastic.stochastic_cases(random.Random(seed))
        assert stochastic.tests_in_a_check(result) == stochastic._TESTS
    assert stochastic.FALSE_ALARM == 1e-9


def binomial_log(ups: int, draws: int, p: float) -> float:
    choose = math.lgamma(draws + 1) - math.lgamma(ups + 1) - math.lgamma(draws - ups + 1)
    return choose + ups * math.log(p) + (draws - ups) * math.log1p(-p)


@pytest.mark.parametrize("draws", [4096, 32768])
@pytest.mark.parametrize("sixteenths", [1, 3, 8, 13, 15])
def test_a_value_is_refused_no_more_often_than_its_share(draws: int, sixteenths: int) -> None:
    """The exact probability of all counts that are refused, summed up."""
    p = sixteenths / 16
    refused = [ups for ups in range(draws + 1) if stochastic.too_far(ups, draws, p)]
    alarm = math.fsum(math.exp(binomial_log(ups, draws, p)) for ups in refused)
    share = stochastic.FALSE_ALARM / stochastic._TESTS
    assert 0 < alarm <= share
    # And the bound is no looser than a hundredfold: the test is worth its name.
    assert alarm > share / 1000


def test_the_means_are_refused_no_more_often_than_their_share() -> None:
    for draws in (3 * 4096, 15 * 32768):
        limit = stochastic.lean_limit(draws)
        bound = 2 * math.exp(-2 * draws * limit**2)
        assert bound == pytest.approx(stochastic.FALSE_ALARM / stochastic._TESTS)


def test_shares_drawn_right_are_never_refused() -> None:
    rng = np.random.default_rng(11)
    for draws in (4096, 32768):
        for p in (1 / 16, 0.5, 15 / 16):
            counts = rng.binomial(draws, p, 3000)
            assert not any(stochastic.too_far(int(ups), draws, p) for ups in counts)


@pytest.mark.parametrize("lean", [0.01, -0.01])
def test_a_lean_of_a_hundredth_is_found(lean: float, names: dict) -> None:
    source = f"""
def round_stochastically(x, rng):
    bits = x.view(np.uint32)
    p = (bits & np.uint32(0xFFFF)) / 2**16
    up = (p > 0) & (rng.random(x.shape) < p + {lean})
    return ((bits & np.uint32(0xFFFF0000)) + np.where(up, 2**16, 0).astype(np.uint32)).view(
        np.float32
    )
"""
    answer = answer_from(source, "lab05.ex2", names)
    for seed in range(4):
        verdict = verdict_of("lab05.ex2", answer, seed)
        assert {c.name for c in verdict.criteria if not c.passed} == {"unbiased"}


@given(st.floats(-(2.0**100), 2.0**100, width=32).filter(lambda x: abs(x) > 2.0**-100))
def test_neighbours_are_those_of_ml_dtypes(x: float) -> None:
    value = stochastic.neighbours(x)
    as_bf16 = np.float32(value.low).astype(ml_dtypes.bfloat16)
    assert float(as_bf16) == value.low and abs(value.low) <= abs(x) < abs(value.high)
    assert float(np.nextafter(as_bf16, ml_dtypes.bfloat16(math.copysign(np.inf, x)))) == value.high
    assert x == value.low + value.p * (value.high - value.low)


# Exercise 3: error limits and the engine


def tiles_of(case: dict) -> list[np.ndarray]:
    a, b = inputs.operands(case)
    cuts = [slice(k, k + engine.DEPTH) for k in range(0, case["k"], engine.DEPTH)]
    return [np.asarray(engine.TensorEngine().multiply(a[:, cut], b[cut])) for cut in cuts]


def summed(tiles: list[np.ndarray], dtype: type) -> np.ndarray:
    total = np.zeros(tiles[0].shape, dtype)
    for tile in tiles:
        total = (total + tile).astype(dtype)
    return total.astype(np.float64)


def test_the_limit_lies_between_fp32_and_shorter_sums() -> None:
    fp32, shorter = 0.0, math.inf
    for seed in range(25):
        for case in cases_of("lab05.ex3", seed):
            tiles, exact = tiles_of(case), products.exact_product(case)
            for order in (tiles, tiles[::-1]):
                fp32 = max(fp32, products.relative_error(summed(order, np.float32), exact))
            for dtype, least in ((np.float16, 1e-4), (ml_dtypes.bfloat16, 1e-3)):
                off = products.relative_error(summed(tiles, dtype), exact)
                assert off > least
                shorter = min(shorter, off)
    assert 0 < fp32 < 2e-7 and shorter > 100 * products.TOLERANCE


def test_the_engine_takes_nothing_but_short_tiles_of_bf16() -> None:
    unit = engine.TensorEngine()
    a = np.ones((2, 4), ml_dtypes.bfloat16)
    with pytest.raises(TypeError, match="b is float32: the engine multiplies bfloat16"):
        unit.multiply(a, a.T.astype(np.float32))
    with pytest.raises(TypeError, match="a is list"):
        unit.multiply([[1.0]], a)
    with pytest.raises(ValueError, match=r"shapes \(2, 4\) and \(2, 4\)"):
        unit.multiply(a, a)
    deep = np.ones((1, engine.DEPTH + 1), ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match="tiles of k up to"):
        unit.multiply(deep, deep.T)
    assert unit.products == 0
    tile = unit.multiply(a, a.T)
    assert tile.dtype == np.float32 and unit.products == 16 and unit.sums == set()


def test_results_note_in_which_dtypes_they_are_added() -> None:
    a = np.ones((2, 4), ml_dtypes.bfloat16)
    for add, noted in (
        (lambda tile: np.zeros((2, 2)) + tile, {"float64"}),
        (lambda tile: tile + tile, {"float32"}),
        (lambda tile: tile.astype(np.float64) + 1, {"float64"}),
        (lambda tile: np.add(np.zeros((2, 2)), tile, out=np.zeros((2, 2))), {"float64"}),
        (lambda tile: tile.sum(), {"float32"}),
        (lambda tile: tile * 2, set()),
    ):
        unit = engine.TensorEngine()
        add(unit.multiply(a, a.T))
        assert unit.sums == noted
    total = np.zeros((2, 2), np.float32)
    unit = engine.TensorEngine()
    total += unit.multiply(a, a.T)
    assert type(total) is np.ndarray and total[0, 0] == 4 and unit.sums == {"float32"}


# Exercise 4: the limit


def last_share(case: dict, answer) -> float:
    from utils.labs.lab05 import stalls

    weights, _ = stalls.train(answer, case)
    plain = [w.detach().cpu().double().numpy() for w in weights]
    return updates.mean_loss(case, plain) / updates.mean_loss(case, inputs.training(case)[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_limit_is_far_from_right_and_from_wrong_trainings(names: dict, seed: str) -> None:
    masters = names["update"]
    chance = answer_from(BY_CHANCE, "lab05.ex4", names)
    for case in cases_of("lab05.ex4", seed):
        start, _ = inputs.training(case)
        first = updates.mean_loss(case, start)
        right = updates.mean_loss(case, updates.train(case, case["lr"])) / first
        assert abs(last_share(case, masters) - right) <= 0.005
        assert abs(last_share(case, chance) - right) <= 0.05
        double = updates.mean_loss(case, updates.train(case, 2 * case["lr"])) / first
        stalled = updates.mean_loss(case, updates.train(case, case["lr"], True)) / first
        assert right - double > 1.6 * updates.TOLERANCE
        assert stalled - right > 6 * updates.TOLERANCE


def test_the_training_in_float64_is_that_of_autograd() -> None:
    import torch

    case = {"seed": 3, "steps": 5, "rows": 8, "lr": 0.02}
    start, batches = inputs.training(case)
    w, b = (torch.tensor(item.astype(np.float64), requires_grad=True) for item in start)
    for x, y in batches:
        loss = ((torch.tensor(x).double() @ w + b - torch.tensor(y).double()) ** 2).mean()
        steps = torch.autograd.grad(loss, (w, b))
        moved = [p - 0.02 * g for p, g in zip((w, b), steps, strict=True)]
        w, b = (item.detach().requires_grad_() for item in moved)
    for own, other in zip(updates.train(case, 0.02), (w, b), strict=True):
        assert np.allclose(own, other.detach().numpy(), rtol=0, atol=1e-12)


# Exercise 5: the best scales


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_one_power_of_two_less_is_never_near(seed: int) -> None:
    for case in cases_of("lab05.ex5", seed):
        for x in inputs.tensors(case):
            if not x.any():
                continue
            best = scales.best_error(x)
            largest = float(abs(x).max())
            fits = 2.0 ** math.floor(math.log2(240 / largest))
            assert scales.mean_error(x, fits) == best
            assert scales.mean_error(x, fits / 2) > 1.15 * best
            assert scales.mean_error(x, 240 / largest) < 1.05 * best
            assert scales.saturates(x, 2 * fits) and scales.saturates(x, 448 / largest)


def test_the_largest_value_is_that_of_the_format() -> None:
    assert float(ml_dtypes.finfo(ml_dtypes.float8_e4m3).max) == scales.LARGEST


def test_the_kinds_of_tensors_catch_what_they_are_for() -> None:
    for seed in range(20):
        for case in cases_of("lab05.ex5", seed):
            over = Counter()
            for x in inputs.tensors(case):
                if x.any():
                    exponent = math.log2(240 / abs(x).max())
                    over["nearest"] += scales.saturates(x, 2.0 ** round(exponent)) > 0
                    low = math.floor(math.log2(abs(x).max()))
                    over["exponent"] += scales.saturates(x, 2.0 ** (7 - low)) > 0
            assert over["nearest"]
        assert over["exponent"] and any(tensor["largest"] < 0 for tensor in case["tensors"])


# Exercise 6: the reference


def test_every_kind_of_block_is_in_every_check() -> None:
    for seed in range(20):
        result = cases_of("lab05.ex6", seed)
        kinds = {kind for row in result[0]["kinds"] for kind in row}
        assert kinds == set(blocks._EVERY)
        assert {case["element"] for case in result} == set(blocks.LARGEST)
        assert inputs.blocks(result[-1]).shape == (blocks.BLOCK, blocks.BLOCK)
