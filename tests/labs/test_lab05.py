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
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import decide, observe_case
from utils.labs.grading import shown
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

BY_HAND = """
def round_by_hand(numbers, exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    infinity = (2**exponent_bits - 1) << mantissa_bits
    codes = []
    for x in numbers:
        sign = math.copysign(1, x) < 0
        exponent = max(math.frexp(abs(x))[1] - 1, 1 - bias)
        steps = round(math.ldexp(abs(x), mantissa_bits - exponent))
        code = ((exponent + bias - 1) << mantissa_bits) + steps
        code = min(code, infinity)
        codes.append(sign << (exponent_bits + mantissa_bits) | code)
    return codes
"""

STOCHASTIC = """
def round_stochastically(x, rng):
    noise = rng.integers(0, 2**16, x.shape, dtype=np.uint32)
    bits = x.view(np.uint32) + noise
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)
"""

PRODUCT = """
def tiled_product(a, b, engine):
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for start in range(0, a.shape[1], engine.depth):
        stop = start + engine.depth
        total += engine.multiply(a[:, start:stop], b[start:stop])
    return total
"""

MASTER = """
def update(weights, gradients, state, lr):
    masters = state.setdefault("masters", [w.float() for w in weights])
    for w, gradient, master in zip(weights, gradients, masters, strict=True):
        master -= lr * gradient.float()
        w.copy_(master)
"""

BY_CHANCE = """
def update(weights, gradients, state, lr):
    for w, gradient in zip(weights, gradients, strict=True):
        new = w.float() - lr * gradient.float()
        noise = (torch.rand_like(new) * 2**16).to(torch.int32)
        bits = new.view(torch.int32) + noise
        w.copy_((bits & -(2**16)).view(torch.float32))
"""

SCALES = """
def choose_scales(tensors):
    scales = []
    for x in tensors:
        largest = float(abs(x).max())
        scales.append(2.0 ** math.floor(math.log2(240 / largest)) if largest else 1.0)
    return scales
"""

BLOCKS = """
def mx_quantise(x, element):
    dtype, largest = ELEMENTS[element]
    emax = math.floor(math.log2(largest))
    blocks = x.reshape(len(x), -1, 32)
    sizes = abs(blocks).max(axis=2)
    exponents = np.frexp(sizes)[1] - 1 - emax
    exponents = np.where(sizes > 0, exponents, -127).clip(-127, 127)
    scaled = np.ldexp(blocks, -exponents[:, :, None])
    elements = scaled.clip(-largest, largest).astype(dtype).astype(np.float32)
    return (exponents + 127).astype(np.uint8), elements.reshape(x.shape)
"""

RIGHT = {
    "ex1": BY_HAND,
    "ex2": STOCHASTIC,
    "ex3": PRODUCT,
    "ex4": MASTER,
    "ex5": SCALES,
    "ex6": BLOCKS,
}


EXERCISES = [f"lab05.{name}" for name in OBSERVERS]
NUMPY_ONLY = [exercise for exercise in EXERCISES if exercise != "lab05.ex4"]


pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab05")


def wrong(name: str, exercise_id: str, names: dict):
    source = next(w[2] for w in WRONG if w[:2] == (exercise_id, name))
    return answer_from(source, exercise_id, names)


# Right answers


@pytest.mark.parametrize("exercise_id", NUMPY_ONLY)
def test_right_answers_pass_with_many_seeds(exercise_id: str, names: dict) -> None:
    answer = answer_from(RIGHT[exercise_id.partition(".")[2]], exercise_id, names)
    for seed in range(5):
        verdict = verdict_of(exercise_id, answer, seed)
        assert verdict.state == "passed", (seed, verdict)


# Wrong answers (their messages are tried in test_labs.py, with the public seed)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [pytest.param(w[0], w[2], id=f"{w[0]}-{w[1].replace(' ', '-')}") for w in WRONG],
)
def test_a_wrong_answer_loses_points_with_private_seeds_too(exercise_id, source, names) -> None:
    for seed in ("a private one", "the next"):
        verdict = verdict_of(exercise_id, answer_from(source, exercise_id, names), seed)
        assert verdict.state in ("tried", "error") and verdict.points < 10.0, verdict
        # A report shows what is measured in words that it knows.
        assert [c.measured for c in verdict.criteria if not shown.known(c.measured)] == []


@pytest.mark.parametrize(
    ("exercise_id", "name"),
    [
        ("lab05.ex1", "does nothing"),
        ("lab05.ex2", "does nothing"),
        ("lab05.ex2", "x as it is"),
        ("lab05.ex2", "to nearest"),
        ("lab05.ex2", "truncation"),
        ("lab05.ex3", "does nothing of the engine"),
        ("lab05.ex3", "without the engine"),
        ("lab05.ex4", "the stalled update"),
        ("lab05.ex4", "FP32 weights in the forward pass"),
        ("lab05.ex4", "does nothing"),
        ("lab05.ex5", "no scaling"),
        ("lab05.ex5", "almost zero"),
        ("lab05.ex5", "does nothing"),
        ("lab05.ex6", "does nothing"),
    ],
)
def test_what_is_given_and_what_does_nothing_win_nothing(exercise_id, name, names) -> None:
    if name == "does nothing of the engine":
        assert verdict_of(exercise_id, lambda a, b, engine: None, "public").points == 0
        return
    assert verdict_of(exercise_id, wrong(name, exercise_id, names), "public").points == 0


@pytest.mark.parametrize("value", [0, 1, 56, 120])
def test_a_constant_code_wins_nothing(value: int) -> None:
    assert verdict_of("lab05.ex1", lambda *_: [value] * 10, "public").points == 0


def test_zeros_are_no_blocks() -> None:
    def zeros(x, element):
        return np.zeros((len(x), x.shape[1] // 32), np.uint8), np.zeros_like(x)

    assert verdict_of("lab05.ex6", zeros, "public").points == 0


# What an answer may return


class Odd(dict):
    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")


def garbage() -> list:
    import torch
    import torch_xla

    structured = np.zeros(3, dtype=[("a", "i4"), ("b", "f4")])
    return [
        None,
        True,
        "text",
        float("nan"),
        10**400,
        [],
        [[]] * 2,
        [None] * 10,
        [10**400] * 10,
        [float("inf")] * 2,
        [-1] * 10,
        [1e300, -0.0],
        Odd(),
        range(3),
        object(),
        torch.ones(3),
        [torch.ones(()).to(torch_xla.device()) * 2] * 2,
        [1.0] * 100_000,
        np.zeros(0, np.float32),
        np.zeros(()),
        np.full((3, 4), np.nan, np.float32),
        np.zeros(100_000, np.float32),
        np.array([None, "a"], object),
        np.array(["a"]),
        np.ones(3, bool),
        np.ones(3, complex),
        structured,
        np.zeros(3, "V5"),
        (np.zeros((3, 2)), np.zeros((3, 64))),
        (np.full((3, 2), np.nan), np.full((3, 64), np.inf)),
        (np.array([["a"]]), np.zeros(3, "V5")),
        (np.zeros((3, 2), int), None),
    ]


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_no_returned_value_breaks_the_check(exercise_id: str) -> None:
    case = cases_of(exercise_id, "first")[0]
    # What an update returns is ignored, and each training takes a moment.
    for value in garbage()[:: 8 if exercise_id == "lab05.ex4" else 1]:
        seen = observe_case(exercise_id, lambda *_, value=value: value, case)
        assert "facts" in seen, seen
        text = json.dumps(seen, allow_nan=False)
        assert len(text) < 60_000
        verdict = decide(exercise_id, [case], [json.loads(text)], 10.0)
        assert verdict.state == "tried" and verdict.points == 0, (value, verdict)
        assert any(criterion.message for criterion in verdict.criteria)


PLAIN = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=10) | st.tuples(inner, inner),
    max_leaves=12,
)


@given(PLAIN, st.sampled_from(NUMPY_ONLY))
@settings(max_examples=200, deadline=None)
def test_no_plain_value_breaks_a_judge(value: object, exercise_id: str) -> None:
    case = cases_of(exercise_id, "first")[0]
    seen = observe_case(exercise_id, lambda *_: value, case)
    assert decide(exercise_id, [case], [json.loads(json.dumps(seen))], 10.0).state == "tried"


@given(st.lists(st.floats(1e-45, 1e39), min_size=2, max_size=2))
@settings(max_examples=40, deadline=None)
def test_any_scale_can_be_judged(found: list[float]) -> None:
    case = cases_of("lab05.ex5", "first")[0]
    seen = observe_case("lab05.ex5", lambda tensors: found, case)
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


def test_what_raises_is_an_error_with_its_text() -> None:
    def broken(*_):
        raise KeyError("C")

    for exercise_id in EXERCISES:
        seen = observe_case(exercise_id, broken, cases_of(exercise_id, "first")[0])
        assert seen["error"].startswith("KeyError: 'C'")


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


def test_observing_leaves_random_numbers_alone(names: dict) -> None:
    import torch

    torch.manual_seed(7)
    np.random.seed(7)
    expected = torch.rand(3), np.random.rand(3)
    torch.manual_seed(7)
    np.random.seed(7)
    for exercise_id in EXERCISES:
        answer = names[OBSERVERS[exercise_id.partition(".")[2]].answer]
        assert "facts" in observe_case(exercise_id, answer, cases_of(exercise_id, "first")[0])
    assert torch.equal(torch.rand(3), expected[0])
    assert np.array_equal(np.random.rand(3), expected[1])


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
            tie = codes._away(x, *bits) != codes._half_to_zero(x, *bits)
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


@given(st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_every_known_wrong_way_is_wrong_somewhere(seed: int) -> None:
    result = rounding.rounding_cases(random.Random(seed))
    for text, way in codes.KNOWN:
        assert any(
            way(x, *bits) != codes.code_of(x, *bits)
            for case in result
            for bits in [(case["exponent_bits"], case["mantissa_bits"])]
            for x in case["numbers"]
        ), text


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
    for seed in range(12):
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
    from utils.labs.lab05 import stalled

    weights, _ = stalled.train(answer, case)
    plain = [w.detach().cpu().double().numpy() for w in weights]
    return updates.mean_loss(case, plain) / updates.mean_loss(case, inputs.training(case)[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_limit_is_far_from_right_and_from_wrong_trainings(names: dict, seed: str) -> None:
    masters = answer_from(MASTER, "lab05.ex4", names)
    chance = answer_from(BY_CHANCE, "lab05.ex4", names)
    for case in cases_of("lab05.ex4", seed):
        start, _ = inputs.training(case)
        first = updates.mean_loss(case, start)
        right = updates.mean_loss(case, updates.trained(case, case["lr"])) / first
        assert abs(last_share(case, masters) - right) <= 0.005
        assert abs(last_share(case, chance) - right) <= 0.05
        double = updates.mean_loss(case, updates.trained(case, 2 * case["lr"])) / first
        stalled = updates.mean_loss(case, updates.trained(case, case["lr"], True)) / first
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
    for own, other in zip(updates.trained(case, 0.02), (w, b), strict=True):
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


def test_elements_are_those_of_the_formats() -> None:
    for element in blocks.ELEMENTS.values():
        dtype = getattr(ml_dtypes, element.dtype)
        assert float(ml_dtypes.finfo(dtype).max) == element.largest
        assert math.floor(math.log2(element.largest)) == element.emax


@given(st.integers(0, 10**9))
@settings(max_examples=25, deadline=None)
def test_the_reference_is_the_quantiser_of_the_course(seed: int) -> None:
    from utils.chip import mx

    for case in cases_of("lab05.ex6", seed):
        x = inputs.blocks(case)
        result, elements = blocks.reference(x, blocks.ELEMENTS[case["element"]])
        other = mx.quantise(x, case["element"], block=blocks.BLOCK)
        assert np.array_equal(other.scale_codes, result)
        assert np.array_equal(other.elements, elements)


def test_every_kind_of_block_is_in_every_check() -> None:
    for seed in range(20):
        result = cases_of("lab05.ex6", seed)
        kinds = {kind for row in result[0]["kinds"] for kind in row}
        assert kinds == set(blocks._EVERY)
        assert {case["element"] for case in result} == set(blocks.ELEMENTS)
        assert inputs.blocks(result[-1]).shape == (blocks.BLOCK, blocks.BLOCK)


# Apart from each other, and from the notebook


def test_the_notebook_says_the_numbers_that_are_judged() -> None:
    lab = catalog.lab("lab05")
    assert sum(exercise.minutes for exercise in lab.exercises) == lab.minutes
    (path,) = catalog.lab_notebooks(ROOT, "lab05")
    text = {c["id"]: catalog.text(c) for c in catalog.read_notebook(path)["cells"]}
    assert f"{lab.minutes} min · {lab.points:g} points" in text["title"]
    assert "at most once in 10⁹ checks" in text["ex2-task"]
    assert f"at most {products.TOLERANCE:.0e}".replace("e-06", "e-6") in text["ex3-task"]
    assert f"within {updates.TOLERANCE:g} of that" in text["ex4-task"]
    first, second = cases_of("lab05.ex4", "any")
    assert f"trainings of {first['steps']} and {second['steps']} steps" in text["ex4-task"]
    assert f"{scales.NEAR - 1:.0%}".replace("%", " %") in text["ex5-task"]
