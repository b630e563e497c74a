"""Lab 11: right answers pass however they are written, wrong ones are told apart, what is expected
agrees with other ways to compute it, and nothing an answer does can break a check or a grading.
"""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import (
    answer_from,
    cases_of,
    changed,
    names_of,
    right_answers,
    verdict_of,
    wrong_entries,
)
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import decide, observe_case
from utils.labs.criteria import distance
from utils.labs.grading import display
from utils.labs.lab11 import adapters, decoder, loops, swaps, texts, truth, tuned
from utils.labs.lab11.observe import OBSERVERS

RIGHT = right_answers("lab11")
WRONG = wrong_entries("lab11")


EXERCISES = [f"lab11.{name}" for name in OBSERVERS]

pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module", autouse=True)
def _one_thread(xla_device: None) -> Iterator[None]:
    """Many small products are ten times as slow in two threads on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab11")


def verdict_on(source: str, exercise_id: str, seed: object, names: dict):
    return verdict_of(exercise_id, answer_from(source, exercise_id, names), seed)


def verdict_on_one_case(source: str, exercise_id: str, names: dict):
    """A process less, where the others would say the same."""
    case = cases_of(exercise_id, "public")[0]
    seen = observe_case(exercise_id, answer_from(source, exercise_id, names), case)
    return decide(exercise_id, [case], [json.loads(json.dumps(seen, allow_nan=False))], 10.0)


# Wrong answers (their messages are tried in test_labs.py, with the public seed)

WITH_ANOTHER_SEED = [
    ("lab11.ex1", "merged without the scale"),
    ("lab11.ex2", "mean of the sentences"),
    ("lab11.ex3", "padding counts"),
    ("lab11.ex4", "sees everything"),
    ("lab11.ex5", "what is left over"),
]


def wrong(exercise_id: str, name: str) -> str:
    return next(w[2] for w in WRONG if w[:2] == (exercise_id, name))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("exercise_id", "name"), WITH_ANOTHER_SEED)
def test_a_wrong_answer_loses_points_with_a_private_seed_too(exercise_id, name, names) -> None:
    verdict = verdict_on(wrong(exercise_id, name), exercise_id, "a private one", names)
    assert verdict.state in ("tried", "error") and verdict.points < 10.0, verdict
    assert [c.measured for c in verdict.criteria if not display.is_plain(c.measured)] == []


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_what_does_nothing_wins_nothing(exercise_id: str, names: dict) -> None:
    """Nor does what returns numbers; what returns None is among the wrong answers."""
    nothing = changed(wrong(exercise_id, "does nothing"), ("return None", "return [1.0] * 4"))
    verdict = verdict_on_one_case(nothing, exercise_id, names)
    assert verdict.points == 0 and verdict.criteria[0].message, verdict


PATCHED = """
def patched(*_, **__):
    return 0


import torch_xla.debug.metrics

torch_xla.debug.metrics.counter_value = patched
torch_xla.debug.metrics.metric_data = patched
"""
CHEATS = {
    # The right losses from the CPU, and a forward pass on the device for show.
    "trained elsewhere": (
        "lab11.ex2",
        changed(
            RIGHT["ex2"],
            ("device = torch_xla.device()",
             "shown, device = model, \"cpu\"\n    import copy\n"
             "    model = copy.deepcopy(model).to(\"cpu\")"),
            ("        optimizer.step()\n        torch_xla.sync()\n",
             "        optimizer.step()\n        with torch.no_grad():\n"
             "            shown(inputs.to(\"xla\"))\n        torch_xla.sync()\n"),
        ),
        0,
    ),
    "the hooks are gone": (
        "lab11.ex4",
        changed(
            RIGHT["ex4"],
            ("    device = torch_xla.device()\n",
             "    model.tokens._forward_pre_hooks.clear()\n    device = torch_xla.device()\n"),
        ),
        0,
    ),
    "written on the CPU, shown on the device": (
        "lab11.ex4",
        """
def generate(model, prompts, count):
    import copy

    slow = copy.deepcopy(model)
    slow.tokens._forward_pre_hooks.clear()
    texts = write_again(slow.to("cpu"), prompts, count)
    for prompt in prompts:
        model.tokens(torch.tensor([prompt]).to("xla"))
        torch_xla.sync()
        for _ in range(count):
            kept = model.tokens(torch.tensor([[0]]).to("xla"))
            torch_xla.sync()
    return texts
""",
        6,
    ),
    "counters that say nothing": ("lab11.ex2", wrong("lab11.ex2", "the given loop") + PATCHED, 6),
}  # fmt: skip


@pytest.mark.parametrize(
    ("exercise_id", "source", "most"),
    [pytest.param(*item, id=name.replace(" ", "-")) for name, item in CHEATS.items()],
)
def test_nothing_is_won_by_feigning(exercise_id, source, most, names, monkeypatch) -> None:
    """most: points out of 10 that are left; what is feigned may not pass."""
    import torch_xla.debug.metrics as metrics

    for name in ("counter_value", "metric_data"):  # put back, whatever the cell puts in its place
        monkeypatch.setattr(metrics, name, getattr(metrics, name))
    verdict = verdict_on_one_case(source, exercise_id, names)
    assert verdict.state in ("tried", "error") and verdict.points <= most, verdict


@pytest.mark.parametrize("end", ["os._exit(0)", "raise SystemExit(0)"])
def test_an_answer_that_ends_itself_is_an_error(end: str, names: dict) -> None:
    source = f"import os\n\n\ndef serve(*_):\n    {end}"
    verdict = verdict_on_one_case(source, "lab11.ex5", names)
    assert (verdict.state, verdict.points) == ("error", 0), verdict


GARBAGE = """
def {name}(*_):
    return next(values)


class Odd(dict):
    def __repr__(self):
        raise RuntimeError("not to be shown")


values = iter([{value}] * 9)
"""
BY_NIGHT = {"marks": pytest.mark.exhaustive}
VALUES = [
    ("lab11.ex2", "Odd()"),
    ("lab11.ex4", "[torch.ones(2)] * 3"),
    pytest.param("lab11.ex2", "float('nan')", **BY_NIGHT),
    pytest.param("lab11.ex2", "[10**400] * 3", **BY_NIGHT),
    pytest.param("lab11.ex4", "[[]] * 2", **BY_NIGHT),
    pytest.param("lab11.ex4", "[[None] * 8] * 2", **BY_NIGHT),
]


@pytest.mark.parametrize(("exercise_id", "value"), VALUES)
def test_no_returned_value_breaks_the_check(exercise_id: str, value: str, names: dict) -> None:
    case = cases_of(exercise_id, "first")[0]
    name = OBSERVERS[exercise_id[-3:]].answer
    answer = answer_from(GARBAGE.format(name=name, value=value), exercise_id, names)
    seen = observe_case(exercise_id, answer, case)
    assert "facts" in seen, seen
    text = json.dumps(seen, allow_nan=False)
    assert len(text) < 20_000
    verdict = decide(exercise_id, [case], [json.loads(text)], 10.0)
    assert verdict.state == "tried" and verdict.points == 0, verdict


# What is expected


def losses_of(case: dict, exercise: str) -> list[float]:
    """The losses of a right loop in float32 on the CPU, with backward."""
    import torch
    from torch.nn import functional

    model = tuned.draw(case["seed"])
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if exercise == "ex2":
        steps = [[tuned.pad(rows, 20)] for rows in tuned.batches(case)]
        optimizer = torch.optim.AdamW(trainable, weight_decay=0.0)
        rates = case["rates"]
    else:
        steps, rates = tuned.micro_batches(case), [case["lr"]] * len(case["lengths"])
        optimizer = torch.optim.SGD(trainable, lr=1.0)
    losses = []
    for step, rate in zip(steps, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        count, total = sum(truth.real(targets) for _, targets in step), 0.0
        for inputs, targets in step:
            logits = model(inputs).transpose(1, 2)
            loss = functional.cross_entropy(logits, targets, reduction="sum") / count
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


def test_the_limit_for_losses_is_ten_times_what_rounding_does() -> None:
    """And the gradients that are written out are those of autograd."""
    farthest = 0.0
    for seed in range(6):
        for exercise, right in (("ex2", truth.tuning), ("ex3", truth.accumulating)):
            for case in cases_of(f"lab11.{exercise}", f"tolerance {seed}"):
                farthest = max(farthest, distance(losses_of(case, exercise), right(case)[0]))
    assert 0 < farthest <= loops.TOLERANCE / 10
    assert swaps.TOLERANCE == loops.TOLERANCE


def test_wrong_losses_are_far_from_right_ones() -> None:
    for seed in range(4):
        for case in cases_of("lab11.ex3", seed):
            right = truth.accumulating(case)[0]
            for way in ("means", "sum of means", "sum", "padded"):
                assert distance(truth.accumulating(case, way)[0], right) > 20 * loops.TOLERANCE
            kept = truth.accumulating(case, kept=1.0)[0]
            assert distance(kept, right) > 20 * loops.TOLERANCE
        for case in cases_of("lab11.ex2", seed):
            right, rates = truth.tuning(case)[0], case["rates"]
            for other in ([0.0] * len(rates), [0.0, *rates[:-1]], [rates[1]] * len(rates)):
                assert distance(truth.tuning(case, other)[0], right) > 20 * loops.TOLERANCE
        for case in cases_of("lab11.ex5", seed):
            right = truth.serve(case)
            others = truth.base_alone(case), truth.serve(case, scaled=False)
            left = truth.serve(case, left_over=True)
            assert all(distance(item, right) > 20 * swaps.TOLERANCE for item in (*others, left))


def test_rounding_decides_no_token() -> None:
    """In float32 the logits lie within a tenth of the least lead of those in float64."""
    import torch

    for seed in range(2):
        for case in cases_of("lab11.ex4", seed):
            for prompt in case["prompts"]:
                text, ahead = truth.write(case["seed"], tuple(prompt), case["count"])
                assert ahead >= texts.LEAST_AHEAD and len(text) == case["count"]
                ids = torch.tensor([prompt + text])
                short, long = decoder.draw(case["seed"]), decoder.draw(case["seed"]).double()
                with torch.no_grad():
                    off = (short(ids).double() - long(ids)).abs().max().item()
                assert off <= texts.LEAST_AHEAD / 10


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_cases_are_what_the_tasks_say(seed: int) -> None:
    for case in cases_of("lab11.ex1", seed):
        assert case["alpha"] / case["rank"] not in (0.0, 1.0)
    for case in cases_of("lab11.ex2", seed):
        shapes = [(len(length), max(length)) for length in case["lengths"]]
        assert len({length for _, length in shapes}) == len(shapes)
        rows, lengths = zip(*shapes, strict=True)
        assert rows[0] == rows[-1] < max(rows) and lengths[0] < max(lengths)
        assert case["rates"][0] == case["rates"][-1] == 0.0 < min(case["rates"][1:-1])
    for case in cases_of("lab11.ex3", seed):
        assert all(len(step) > 1 for step in case["lengths"])
    for case in cases_of("lab11.ex5", seed):
        ranks = [adapter[1] for adapter in case["adapters"].values()]
        assert max(ranks) == case["slots"] > min(ranks)
        assert len({tuple(request[1:]) for request in case["requests"]}) == 2


def test_a_case_without_a_target_is_among_the_micro_batches() -> None:
    _, larger = cases_of("lab11.ex3", "public")
    assert any(set(rows) == {1} for step in larger["lengths"] for rows in step)


def test_the_notebook_says_the_numbers_that_are_judged() -> None:
    lab = catalog.lab("lab11")
    assert sum(exercise.minutes for exercise in lab.exercises) == lab.minutes
    (path,) = catalog.lab_notebooks(ROOT, "lab11")
    text = {c["id"]: catalog.text(c) for c in catalog.read_notebook(path)["cells"]}
    assert f"{lab.minutes} min · {lab.points:g} points" in text["title"]
    assert text["ex1-task"].count("within 1e-5") == 2 and adapters.TOLERANCE == 1e-5
    for name in ("ex2", "ex3", "ex5"):
        assert "within 2e-5 of the right one" in text[f"{name}-task"]
    assert loops.TOLERANCE == 2e-5
    assert f"at most {loops.MOST_COMPILES_TUNING} graphs" in text["ex2-task"]
    assert f"at most {loops.MOST_COMPILES_ACCUMULATING} graphs" in text["ex3-task"]
    assert f"at most {texts.MOST_COMPILES} graphs" in text["ex4-task"]
    assert f"padded to {texts.BUCKET} at most" in text["ex4-task"]
