"""Lab 04: what it expects is what is measured, right answers pass however they are written, and
nothing an answer returns can break a check."""

import json
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import answer_from, cases_of, names_of, verdict_of, wrong_entries
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import decide, judge, limit, observe_case
from utils.labs.criteria import distance
from utils.labs.grading import shown
from utils.labs.lab04 import histograms, loops, plans, texts, training, truth
from utils.labs.lab04.judge import EXPECTED
from utils.labs.lab04.observe import OBSERVERS, measure_edits
from utils.xla.buckets import best_buckets

WRONG = wrong_entries("lab04")

NEW_GRAPHS = """
def new_graphs(values):
    different = len(set(values))
    built_in = len({value == 1 for value in values})
    return {
        "A": different,
        "B": len({value > 0.5 for value in values}),
        "C": different,
        "D": built_in,
        "E": different,
        "F": built_in,
        "G": built_in,
        "H": 1,
    }
"""

STEADY_LOOP = """
def steady_loop(model, optimizer, batches, warmup):
    rows = max(len(y) for _, y in batches)
    losses = []
    for (x, y), factor in zip(batches, warmup.tolist(), strict=True):
        spare = rows - len(y)
        x = F.pad(x, (0, 0, 0, spare)).to("xla")
        y = F.pad(y, (0, spare), value=-100).to("xla")
        factor = torch.tensor([factor]).to("xla")
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        (factor * loss).backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()
"""

BUCKETED = """
def bucketed_losses(model, sequences):
    groups = {}
    for place, ids in enumerate(sequences):
        bucket = next(bucket for bucket in (32, 64, 128) if bucket >= len(ids) - 1)
        groups.setdefault(bucket, []).append(place)
    losses = [0.0] * len(sequences)
    for bucket, places in groups.items():
        inputs = torch.zeros(len(places), bucket, dtype=torch.int64)
        targets = torch.full((len(places), bucket), -100)
        for row, place in enumerate(places):
            ids = torch.tensor(sequences[place])
            inputs[row, : len(ids) - 1] = ids[:-1]
            targets[row, : len(ids) - 1] = ids[1:]
        targets = targets.to("xla")
        logits = model(inputs.to("xla")).transpose(1, 2)
        each = F.cross_entropy(logits, targets, reduction="none")
        means = each.sum(dim=1) / (targets >= 0).sum(dim=1)
        for place, mean in zip(places, means.tolist(), strict=True):
            losses[place] = mean
    return losses
"""

CHOOSE = """
def choose_buckets(histogram, most):
    lengths = sorted(histogram)

    @functools.cache
    def best(end, count):
        if end == 0:
            return 0, ()
        if count == 0:
            return math.inf, ()
        bucket, inside, options = lengths[end - 1], 0, []
        for start in reversed(range(end)):
            inside += histogram[lengths[start]]
            tokens, shorter = best(start, count - 1)
            options.append((tokens + bucket * inside, (*shorter, bucket)))
        return min(options)

    return list(best(len(lengths), most)[1])
"""

PLAN = """
def plan(job, seconds):
    graphs = set()
    for steps in job:
        training = "first"
        for kind, rows, length in steps:
            if kind == "train":
                kind, training = training, "train"
            graphs.add((kind, rows, length))
    queues = [[] for _ in job]
    busy = [0.0] * len(job)
    for graph in sorted(graphs, key=seconds.__getitem__, reverse=True):
        worker = busy.index(min(busy))
        queues[worker].append(graph)
        busy[worker] += seconds[graph]
    return queues
"""

RIGHT = {"ex1": NEW_GRAPHS, "ex2": STEADY_LOOP, "ex3": BUCKETED, "ex4": CHOOSE, "ex5": PLAN}


EXERCISES = [f"lab04.{name}" for name in OBSERVERS]


pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab04")


@pytest.fixture
def formulas_for_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exercise 1 without its compiles, where a test is about something else; a test of its own
    holds the formulas equal to what is measured.
    """

    def compiles(values: list[float]) -> dict[str, int]:
        return {name: rule(values) for name, rule in EXPECTED.items()}

    monkeypatch.setattr("utils.labs.lab04.observe.measure_edits", compiles)


def wrong(name: str, exercise_id: str, names: dict):
    source = next(w[2] for w in WRONG if w[:2] == (exercise_id, name))
    return answer_from(source, exercise_id, names)


# Right answers


# Wrong answers (their messages are tried in test_labs.py, with the public seed)

NOT_STOPPED = [wrong for wrong in WRONG if wrong[1] != "all combinations"]
"""That one takes the whole of the limit, and one seed is enough."""


@pytest.mark.exhaustive
@pytest.mark.usefixtures("formulas_for_measured")
@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [pytest.param(w[0], w[2], id=f"{w[0]}-{w[1].replace(' ', '-')}") for w in NOT_STOPPED],
)
def test_a_wrong_answer_loses_points_with_a_private_seed_too(exercise_id, source, names) -> None:
    verdict = verdict_of(exercise_id, answer_from(source, exercise_id, names), "a private one")
    assert verdict.state in ("tried", "error") and verdict.points < 10.0, verdict


@pytest.mark.parametrize(
    ("exercise_id", "name"),
    [
        ("lab04.ex2", "the given loop"),
        ("lab04.ex2", "on the CPU"),
        ("lab04.ex2", "does nothing"),
        ("lab04.ex3", "no padding"),
        ("lab04.ex3", "one graph of everything"),
        ("lab04.ex3", "on the CPU"),
        ("lab04.ex3", "does nothing"),
        ("lab04.ex4", "does nothing"),
        ("lab04.ex5", "empty queues"),
        ("lab04.ex5", "does nothing"),
    ],
)
def test_what_is_given_and_what_does_nothing_win_nothing(exercise_id, name, names) -> None:
    assert verdict_of(exercise_id, wrong(name, exercise_id, names), "public").points == 0


@pytest.mark.usefixtures("formulas_for_measured")
def test_a_constant_is_right_for_no_more_than_the_constant_edit() -> None:
    for count in range(1, 6):
        guess = verdict_of("lab04.ex1", lambda v, n=count: dict.fromkeys(EXPECTED, n), "public")
        assert guess.points <= 1.25, guess


@pytest.mark.usefixtures("formulas_for_measured")
def test_a_first_guess_is_not_answered_by_the_card() -> None:
    guess = verdict_of("lab04.ex1", lambda values: dict.fromkeys(EXPECTED, 3), "public")
    for criterion in guess.criteria:
        assert (criterion.measured != "") == criterion.passed
    none = verdict_of("lab04.ex1", lambda values: {}, "public")
    assert all(item.measured == "" for item in none.criteria)
    assert all(item.message.startswith("no prediction yet") for item in none.criteria)


@pytest.mark.parametrize("exercise_id", ["lab04.ex2", "lab04.ex3"])
def test_nothing_but_the_return_is_said_of_an_answer_that_does_nothing(exercise_id: str) -> None:
    name = OBSERVERS[exercise_id.partition(".")[2]].answer
    for value, kind in ((None, "None"), (1.0, "a float"), ([], "a list of 0")):
        verdict = verdict_of(exercise_id, lambda *_, value=value: value, "public")
        first, *others = (criterion.message for criterion in verdict.criteria)
        assert first.startswith(f"`{name}` returned {kind}: return a list of")
        assert others == [""] * len(others)


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


# What an answer may return


class Odd(dict):
    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")


def garbage() -> list:
    import torch
    import torch_xla

    return [
        None,
        True,
        "text",
        b"bytes",
        float("nan"),
        10**400,
        [],
        [[]] * 2,
        [[None]] * 2,
        [[("first", 1, 2)]] * 2,
        [[("first", 10**400, float("nan"))], [("x" * 10_000, [], {})]],
        [[(torch.ones(2), 1, 2)], [[1, 2, 3]]],
        [float("inf")] * 12,
        [10**400, 1],
        [0, -3, 10**9],
        {"A": None, "B": "x", "C": (1,), "D": [1], "E": 10**400, "F": {}, "G": float("nan")},
        Odd(),
        range(3),
        torch.ones(3),
        [torch.ones(()).to(torch_xla.device()) * 2] * 12,
        [1.0] * 100_000,
    ]


@pytest.mark.usefixtures("formulas_for_measured")
@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_no_returned_value_breaks_the_check(exercise_id: str) -> None:
    case = cases_of(exercise_id, "first")[0]
    for value in garbage():
        seen = observe_case(exercise_id, lambda *_, value=value: value, case)
        assert "facts" in seen, seen
        text = json.dumps(seen, allow_nan=False)
        assert len(text) < 20_000
        verdict = decide(exercise_id, [case], [json.loads(text)], 10.0)
        assert verdict.state == "tried" and verdict.points <= 1.25, (value, verdict)
        assert any(criterion.message for criterion in verdict.criteria)


PLAIN = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner, inner),
    max_leaves=12,
)


MODELS = {exercise_id: cases_of(exercise_id, "first") for exercise_id in ("lab04.ex4", "lab04.ex5")}


@given(PLAIN, st.integers(0, 3))
@settings(max_examples=80, deadline=None)
def test_no_plain_value_breaks_the_models(value: object, place: int) -> None:
    for exercise_id, cases in MODELS.items():
        case = cases[place % len(cases)]
        seen = observe_case(exercise_id, lambda *_: value, case)
        assert decide(exercise_id, [case], [json.loads(json.dumps(seen))], 10.0).state == "tried"


def test_observing_leaves_random_numbers_and_pending_work_alone(names: dict) -> None:
    import torch

    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    for exercise_id in EXERCISES:
        answer = names[OBSERVERS[exercise_id.partition(".")[2]].answer]
        assert "facts" in observe_case(exercise_id, answer, cases_of(exercise_id, "first")[0])
    assert torch.equal(torch.rand(3), expected)


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
        dealt = plans.dealt(plans.in_order(job), workers)
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


# What a card and a report show


def test_a_case_fits_on_a_card() -> None:
    for seed in range(20):
        for exercise_id in EXERCISES:
            for case in cases_of(exercise_id, str(seed)):
                words = judge(exercise_id).words(case)
                assert len(words) <= 160, words


def test_what_lab_04_measures_is_shown_by_a_report(names: dict) -> None:
    answers = [(w[0], w[2]) for w in NOT_STOPPED if w[0] in ("lab04.ex4", "lab04.ex5")]
    answers += [(f"lab04.{name}", source) for name, source in RIGHT.items()]
    for exercise_id, source in answers:
        verdict = verdict_of(exercise_id, answer_from(source, exercise_id, names), "public")
        unknown = [c.measured for c in verdict.criteria if not shown.known(c.measured)]
        assert unknown == [], (exercise_id, unknown)


# Apart from each other, and from the notebook


def test_the_notebook_says_the_numbers_that_are_judged() -> None:
    lab = catalog.lab("lab04")
    assert sum(exercise.minutes for exercise in lab.exercises) == lab.minutes
    (path,) = catalog.lab_notebooks(ROOT, "lab04")
    text = {c["id"]: catalog.text(c) for c in catalog.read_notebook(path)["cells"]}
    assert f"{lab.minutes} min · {lab.points:g} points" in text["title"]
    for name in ("ex2", "ex3"):
        assert "within 1e-5 of" in text[f"{name}-task"]
    assert loops.TOLERANCE == 1e-5
    assert f"at most {loops.MOST_COMPILES_STEADY} compiles" in text["ex2-task"]
    assert f"at most {loops.MOST_TIMES_TOKENS:.2f} times" in text["ex3-task"]
    assert f"at most {loops.MOST_SHAPES} shapes" in text["ex3-task"]
    assert f"within {histograms.NEAR - 1:.0%} of" in text["ex4-task"]
    assert f"after {limit.SECONDS:g} seconds" in text["ex4-task"]
    assert f"at most {plans.MOST_TIMES_BOUND:.2f} times" in text["ex5-task"]
    assert "utils.xla.buckets" not in "".join(text[c] for c in text if not c.endswith("-why"))
