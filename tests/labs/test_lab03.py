"""Lab 03: what it expects is what is measured, right answers pass however they are written, and
nothing an answer returns can break a check."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import answer_from, names_of, verdict_of, wrong_entries
from utils.labs import criteria, judge, observe_case, training, truth
from utils.labs.lab03 import bench, fake
from utils.labs.lab03.judge import EXPECTED, MOST_COMPILES
from utils.labs.lab03.observe import OBSERVERS, measure_snippets

WRONG = wrong_entries("lab03")


EXERCISES = [f"lab03.{name}" for name in OBSERVERS]


pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab03")


def first_case(exercise_id: str) -> dict:
    return judge(exercise_id).cases(random.Random("first"))[0]


def test_the_given_faulty_loop_and_the_cpu_loop_win_nothing(names: dict) -> None:
    assert verdict_of("lab03.ex4", names["growing_loop"], "public").points == 0
    assert verdict_of("lab03.ex5", names["train_on_cpu"], "public").points == 0


def messages(exercise_id: str, answer) -> list[str]:
    return [criterion.message for criterion in verdict_of(exercise_id, answer, "public").criteria]


def test_nothing_untrue_is_said_of_a_bench_that_never_read_the_clock(names: dict) -> None:
    source = next(w[2] for w in WRONG if w[1] == "another clock")
    response = messages("lab03.ex3", answer_from(source, "lab03.ex3", names))
    assert [bool(item) for item in response] == [False, False, True, False, False]
    for made_up in (None, 1.0, (1.0, 2.0)):
        response = messages("lab03.ex3", lambda *_, value=made_up: value)
        assert [bool(item) for item in response] == [True, False, False, False, False]
        assert "fn was never called" in response[0]


def test_a_case_of_the_benchmark_is_in_milliseconds() -> None:
    case = {"warmup": 1, "repeats": 4, "enqueue_ticks": 1, "compile_ticks": [9]}
    case["work_ticks"] = [50, 2**20 - 1, 1047, 2047, 3071]
    assert bench.bench_words(case) == (
        "warmup = 1, repeats = 4, samples in ms, sorted: 0.999, 1.953, 2.930, 1000.000;"
        " median 1.953, p99 1000.000"
    )
    for seed in range(20):
        for drawn in bench.bench_cases(random.Random(seed)):
            assert len(bench.bench_words(drawn)) <= 160


def test_a_second_check_counts_compiles_as_the_first(names: dict) -> None:
    source = next(w[2] for w in WRONG if w[1] == "indexed on the device")
    answer = answer_from(source, "lab03.ex5", names)
    case = {**first_case("lab03.ex5"), "steps": 6}
    for _ in range(2):
        facts = observe_case("lab03.ex5", answer, case)["facts"]
        assert facts["compiles"] > MOST_COMPILES


def test_an_answer_whose_graph_grows_is_stopped(names: dict) -> None:
    source = next(w[2] for w in WRONG if w[1] == "item taken for a sync and stopped")
    case = {**first_case("lab03.ex2"), "steps": 20, "every": 10}
    facts = observe_case("lab03.ex2", answer_from(source, "lab03.ex2", names), case)["facts"]
    assert facts["returned"]["stopped"] and facts["steps"] < 10


def test_growth_is_seen_in_a_process_that_ran_many_graphs(names: dict) -> None:
    import torch
    import torch_xla

    x = torch.ones(5).to(torch_xla.device())
    for _ in range(1100):  # torch_xla keeps the sizes of the latest 1,024 graphs only
        x = x + 1.5
        torch_xla.sync()
    test_an_answer_whose_graph_grows_is_stopped(names)


# What is expected


@pytest.mark.parametrize("steps", [2, 3, 7, 12])
def test_the_formulas_are_what_is_measured(steps: int) -> None:
    assert measure_snippets(steps) == {name: rule(steps) for name, rule in EXPECTED.items()}


def losses_in_float32(model, batches, lr: float) -> list[float]:
    optimizer = training.optimizer_of(model, lr)
    return [training.train_step(model, optimizer, batch).item() for batch in batches]


def test_the_limit_is_ten_times_what_rounding_does() -> None:
    rng, farthest = random.Random("tolerance"), 0.0
    for _ in range(60):
        case = training.training_case(rng, rng.choice([4, 7, 12, 20]))
        true = truth.true_losses(case)
        ways = [training.draw(case), training.draw(case, spare_features=5)]
        model, batches = training.draw(case)
        ways.append((model, [(x.flip(0), y.flip(0)) for x, y in batches]))
        for model, batches in ways:
            losses = losses_in_float32(model, batches, case["lr"])
            farthest = max(farthest, criteria.distance(losses, true))
    assert 0 < farthest <= criteria.TOLERANCE / 10


def test_true_losses_are_those_of_autograd() -> None:
    case = training.training_case(random.Random(3), 20)
    model, batches = training.draw(case)
    double = [(x.double(), y) for x, y in batches]
    losses = losses_in_float32(model.double(), double, case["lr"])
    assert truth.true_losses(case) == pytest.approx(losses, abs=1e-12)


def test_the_given_cpu_loop_has_the_true_losses(names: dict) -> None:
    case = training.training_case(random.Random(4), 8)
    losses = names["train_on_cpu"](*training.draw(case), case["lr"])
    assert criteria.distance(losses, truth.true_losses(case)) <= criteria.TOLERANCE


@given(st.integers(0, 10**9))
@settings(max_examples=25, deadline=None)
def test_wrong_losses_are_far_from_right_ones(seed: int) -> None:
    case = judge("lab03.ex2").cases(random.Random(seed))[1]
    losses, every = truth.true_losses(case), case["every"]
    means = [sum(losses[i : i + every]) / every for i in range(0, len(losses), every)]
    late = losses[1:] + losses[:1]
    shifted = [sum(late[i : i + every]) / every for i in range(0, len(late), every)]
    still = truth.true_losses({**case, "lr": 0.0})
    for right, wrong in ((means, losses[every - 1 :: every]), (means, shifted), (losses, still)):
        assert criteria.distance(right, wrong) > 100 * criteria.TOLERANCE


@given(st.integers(0, 10**9))
@settings(max_examples=50, deadline=None)
def test_cases_are_valid_and_smallest_first(seed: int) -> None:
    for exercise_id in EXERCISES:
        cases = judge(exercise_id).cases(random.Random(seed))
        sizes = [case.get("steps", case.get("repeats")) for case in cases]
        assert len(cases) in (2, 3) and sizes == sorted(set(sizes))
        for case in cases:
            assert case.get("steps", 4) % case.get("every", 1) == 0
    growing = judge("lab03.ex4").cases(random.Random(seed))
    assert all(case["steps"] >= 4 for case in growing), "fewer steps do not show growth"


def test_twenty_steps_in_windows_of_ten_are_always_a_case() -> None:
    for seed in range(20):
        cases = judge("lab03.ex2").cases(random.Random(seed))
        assert (20, 10) in [(case["steps"], case["every"]) for case in cases]


# The fake device


def test_the_fake_device_is_asynchronous_and_exact() -> None:
    case = {
        "warmup": 1,
        "repeats": 1,
        "pending_ticks": 100,
        "enqueue_ticks": 3,
        "compile_ticks": [50],
        "work_ticks": [10, 20],
    }
    device = fake.FakeDevice(case)
    device.fn()
    assert device.clock() == 53 * fake.TICK_S  # compiled and enqueued, not waited for
    device.sync()
    assert device.clock() == 110 * fake.TICK_S  # behind what was pending
    device.fn()
    assert device.clock() == 113 * fake.TICK_S
    device.sync()
    assert device.clock() == 133 * fake.TICK_S and device.log == "fcscfcsc"
    with pytest.raises(RuntimeError, match="does its loop end"):
        while True:
            device.clock()
