"""Lab 04: what it expects is what is measured, right answers pass however they are written, and
nothing an answer returns can break a check."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import answer_from, cases_of, code_of, names_of, verdict_of, wrong_entries
from utils.labs import limit
from utils.labs.criteria import distance
from utils.labs.lab04 import histograms, loops, plans, texts, training, truth
from utils.labs.lab04.judge import EXPECTED
from utils.labs.lab04.observe import measure_edits
from utils.xla.buckets import best_buckets

WRONG = wrong_entries("lab04")


pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab04")


def wrong(name: str, exercise_id: str, names: dict):
    source = next(w[2] for w in WRONG if w[:2] == (exercise_id, name))
    return answer_from(source, exercise_id, names)


@pytest.mark.parametrize(
    ("exercise_id", "name"),
    [
        ("lab04.ex2", "only the batches padded"),
        ("lab04.ex2", "only the index removed"),
        ("lab04.ex3", "four buckets"),
        ("lab04.ex3", "padded on the device"),
    ],
)
def test_a_second_check_counts_as_the_first(exercise_id: str, name: str, names: dict) -> None:
    """The process knows the graphs of the first one; sizes that no check used before see to it."""
    answer = wrong(name, exercise_id, names)
    first, second = (verdict_of(exercise_id, answer, "public") for _ in range(2))
    assert first.points == second.points < 10


def test_the_search_of_the_course_is_closed_only_while_an_answer_is_called(names: dict) -> None:
    for name in ("the search of the course", "does nothing"):
        verdict_of("lab04.ex4", wrong(name, "lab04.ex4", names), "public")
        assert best_buckets([3, 4, 9, 10, 30], 2) == (10, 30)


def test_a_search_through_everything_is_stopped() -> None:
    def for_ever() -> None:
        while True:
            pass

    assert limit.within(for_ever, seconds=0.05) == (None, True)
    assert limit.within(lambda: 7, seconds=5.0) == (7, False)


# What is expected


@pytest.mark.parametrize(
    "values",
    [
        [0.5, 0.25],
        [0.125, 0.875, 0.125],
        [1.0, 0.5, 1.0, 0.75],
        [eighth / 8 for eighth in range(1, 9)],
    ],
)
def test_the_formulas_are_what_is_measured(values: list[float]) -> None:
    assert measure_edits(values) == {name: rule(values) for name, rule in EXPECTED.items()}


def losses_on_the_cpu(case: dict, rows: int, spare: int = 0) -> list[float]:
    """Every batch padded to `rows` with targets that do not count, in float32."""
    import torch
    from torch.nn import functional

    model, batches, warmup = training.draw(case, spare)
    optimizer = torch.optim.SGD(model.parameters(), lr=case["lr"])
    losses = []
    for (x, y), factor in zip(batches, warmup, strict=True):
        more = max(0, rows - len(y))
        x, y = functional.pad(x, (0, 0, 0, more)), functional.pad(y, (0, more), value=-100)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        (factor * loss).backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_the_limit_for_batches_is_ten_times_what_rounding_does() -> None:
    farthest = 0.0
    for seed in range(40):
        for case in cases_of("lab04.ex2", f"tolerance {seed}"):
            true = truth.batch_losses(case)
            for rows, spare in ((0, 0), (case["rows"], 3)):
                farthest = max(farthest, distance(losses_on_the_cpu(case, rows, spare), true))
    assert 0 < farthest <= loops.TOLERANCE / 10


def test_the_limit_for_sentences_is_ten_times_what_rounding_does() -> None:
    import torch
    from torch.nn import functional

    farthest = 0.0
    for seed in range(15):
        for case in cases_of("lab04.ex3", f"tolerance {seed}"):
            model, sequences = texts.draw(case, spare_ids=seed)
            for ids, true in zip(sequences, truth.sentence_losses(case), strict=True):
                for bucket in (len(ids) - 1, 128):
                    padded = functional.pad(torch.tensor(ids), (0, bucket + 1 - len(ids)))
                    with torch.no_grad():
                        logits = model(padded[None, :-1])[0, : len(ids) - 1]
                        loss = functional.cross_entropy(logits, torch.tensor(ids[1:])).item()
                    farthest = max(farthest, abs(loss - true))
    assert 0 < farthest <= loops.TOLERANCE / 10


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_wrong_losses_are_far_from_right_ones(seed: int) -> None:
    import torch
    from torch.nn import functional

    case = cases_of("lab04.ex2", str(seed))[-1]
    right = truth.batch_losses(case)
    counted = [loss * size / case["rows"] for loss, size in zip(right, case["sizes"], strict=True)]
    still = truth.batch_losses({**case, "lr": 0.0})
    cold = truth.batch_losses({**case, "warmup": [1.0] * case["steps"]})
    for other in (counted, still, cold):
        assert distance(right, other) > 100 * loops.TOLERANCE
    case = cases_of("lab04.ex3", str(seed))[0]
    model, sequences = texts.draw(case)
    zeros = []
    for ids in map(torch.tensor, sequences):
        padded = functional.pad(ids, (0, 129 - len(ids)))
        with torch.no_grad():
            zeros.append(functional.cross_entropy(model(padded[None, :-1])[0], padded[1:]).item())
    assert distance(truth.sentence_losses(case), zeros) > 100 * loops.TOLERANCE


@given(st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_cases_are_within_bounds_for_any_seed(seed: int) -> None:
    small, large = (set(case["values"]) for case in cases_of("lab04.ex1", str(seed)))
    assert 1.0 not in small and 1.0 in large and len(small) <= len(large)
    for case in cases_of("lab04.ex2", str(seed)):
        assert len(set(case["sizes"])) == case["steps"] and min(case["sizes"]) >= 2
        assert max(case["sizes"]) == case["rows"] and max(case["warmup"]) < 1
        # Two equal numbers would share one input, and make a graph of their own.
        assert case["lr"] not in case["warmup"]
    for case in cases_of("lab04.ex3", str(seed)):
        _, sequences = texts.draw(case)
        assert max(map(len, sequences)) <= 129 and min(map(len, sequences)) >= 20


@given(st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_the_optimum_is_what_all_combinations_give(seed: int) -> None:
    for case in cases_of("lab04.ex4", str(seed))[:3]:
        *shorter, longest = sorted(length for length, _ in case["histogram"])
        least = min(
            histograms.tokens(case, [*few, longest])
            for count in range(min(case["most"], len(shorter) + 1))
            for few in combinations(shorter, count)
        )
        assert histograms.tokens(case, histograms.optimum(case)) == least


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_every_guess_falls_short_of_the_best_buckets(seed: int) -> None:
    small, _, middle, large = cases_of("lab04.ex4", str(seed))
    assert len(large["histogram"]) == 60 and large["most"] == 7
    for case in (small, middle, large):
        best = histograms.tokens(case, histograms.optimum(case))
        assert all(histograms.tokens(case, guess) > best for guess in histograms.guesses(case))


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_longest_first_is_near_and_the_orders_at_hand_are_not(seed: int) -> None:
    for case in cases_of("lab04.ex5", str(seed))[1:]:
        job = [[tuple(step) for step in worker] for worker in case["job"]]
        seconds = {tuple(graph): cost for graph, cost in case["seconds"]}
        needed, workers = plans.graphs_of(job), len(job)
        bound = plans.lower_bound(seconds, needed, workers)
        good = plans.longest_first(needed, seconds, workers)
        assert plans.seconds_of(good, seconds) <= 1.05 * bound
        assert {graph for queue in good for graph in queue} == needed < set(seconds)
        in_table = plans.to_the_first_free([g for g in seconds if g in needed], seconds, workers)
        dealt = plans.deal(plans.in_order(job), workers)
        assert min(plans.seconds_of(item, seconds) for item in (in_table, dealt)) > 1.12 * bound


def test_the_graphs_of_a_job() -> None:
    eval_first = [("eval", 8, 64), ("train", 4, 32), ("train", 4, 32), ("train", 2, 32)]
    assert plans.in_order([eval_first, [("train", 2, 32)]]) == [
        ("eval", 8, 64),
        ("first", 4, 32),
        ("train", 4, 32),
        ("train", 2, 32),
        ("first", 2, 32),
    ]


# Apart from each other, and from the notebook


def test_the_notebook_does_not_name_the_search_of_the_course() -> None:
    cells = code_of("lab04")
    assert "utils.xla.buckets" not in "".join(cells[c] for c in cells if not c.endswith("-why"))
