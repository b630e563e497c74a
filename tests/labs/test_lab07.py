"""Lab 07: what it expects of layouts is what the compiler makes, right answers pass however they
are written, other ways to compute agree, and nothing an answer returns can break a check.
"""

import itertools
import json
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import answer_from, cases_of, names_of, verdict_of
from utils.chip import collectives, training_memory
from utils.cost.planner.architecture import Architecture
from utils.cost.planner.memory import activations_per_token
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import apart, observe_case
from utils.labs.lab07 import (
    averages,
    curves,
    examples,
    layouts,
    mlp,
    planning,
    plans,
    predict,
    ranks,
    scaling,
)
from utils.labs.lab07.observe import observe_average
from utils.labs.truth import loss_and_gradients
from utils.xla import fresh


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab07")


# Right answers


BUCKET = """
def average_gradients(parameters, samples, all_reduce):
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([g.detach().to(torch.float32).reshape(-1) * samples for g in grads])
    summed = all_reduce(torch.cat([flat, torch.tensor([samples], dtype=torch.float32)]))
    parts = (summed[:-1] / summed[-1]).split([p.numel() for p in parameters])
    return tuple(part.view_as(p) for part, p in zip(parts, parameters))
"""


CONSTANTS = {
    "lab07.ex2": [dict.fromkeys("ABCDE", {"all-reduce": (1, 4)})],
    "lab07.ex4": [
        {"fits": 3, "layout": None, "step_s": None},
        {"fits": 1, "layout": {"data": 16, "tensor": 1, "pipeline": 1}, "step_s": 1.0},
    ],
    "lab07.ex5": [{"cause": cause, "number": 0.5} for cause in curves.CAUSES],
}


@pytest.mark.parametrize("exercise_id", CONSTANTS)
def test_what_answers_always_the_same_wins_nothing(exercise_id: str) -> None:
    for value in CONSTANTS[exercise_id]:
        verdict = verdict_of(exercise_id, lambda *_, value=value: value, "public")
        assert verdict.points == 0, (value, verdict)


# What an answer may return


def _each_as_averages(case: dict) -> list[dict]:
    import torch

    tensors = [torch.zeros(2), torch.tensor([math.nan]), torch.zeros(3, dtype=torch.int64)]
    results = []
    for value in [
        None,
        1.0,
        "text",
        {1},
        [[]] * 6,
        *tensors,
        tensors,
        [torch.zeros(10**6)],
        torch.nn.Linear(1, 1),
    ]:
        results.append(
            ranks.average_on_ranks(lambda *i, value=value: (i[2](torch.ones(1)), value)[1], case)
        )
    return results


def test_no_returned_value_breaks_the_check_of_averages() -> None:
    first, *_, last = cases_of("lab07.ex3", "first")
    for case in (first, last):
        for facts in fresh.run(_each_as_averages, case):
            plain = json.loads(json.dumps(facts, allow_nan=False))
            rows = averages.judge_average(case, plain)
            assert not rows[1].passed and not rows[2].passed


# Layouts


def compiled(sizes: dict[str, int]) -> dict[str, dict]:
    result = mlp.compile_all([(layouts.LAYOUTS[n], layouts.MESHES[n]) for n in "ABCDE"], sizes)
    return dict(zip("ABCDE", result, strict=True))


@pytest.mark.parametrize("seed", range(2))
def test_what_is_expected_of_layouts_is_what_the_compiler_makes(seed: int) -> None:
    for case in cases_of("lab07.ex2", seed):
        right = predict.collectives(case["sizes"])
        assert compiled(case["sizes"]) == {
            name: {kind: [number, size]} for name, (kind, number, size) in right.items()
        }


def test_with_few_rows_the_compiler_gathers_activations_as_the_lab_says() -> None:
    sizes = {"rows": 8, "inputs": 32, "hidden": 64, "outputs": 48}
    right = predict.collectives(sizes)
    result = compiled(sizes)
    assert result["D"] != {"all-gather": list(right["D"][1:])}
    for name in "ABCE":
        kind, number, size = right[name]
        assert result[name] == {kind: [number, size]}


# Averages


def _gradients(case: dict) -> list:
    import torch

    weights, samples = ranks.data(case)
    x = torch.cat([item for item, _ in samples])
    y = torch.cat([item for _, item in samples])
    _, result = loss_and_gradients(weights, x, y)
    return torch.cat([item.flatten() for item in result]).tolist()


def test_the_right_average_is_the_gradient_of_one_large_batch() -> None:
    for case in cases_of("lab07.ex3", "public"):
        limit = 1e-6 if case["dtype"] == "float32" else averages.ROUGH
        assert (
            averages.distance(
                averages.truth(case, averages.local_gradients(case)), _gradients(case)
            )
            < limit
        )


@pytest.mark.parametrize("seed", range(3))
def test_limits_of_averages_lie_between_right_and_wrong_ways(seed: int, names: dict) -> None:
    ways = [names["average_gradients"], answer_from(BUCKET, "lab07.ex3", names)]
    for case in cases_of("lab07.ex3", seed):
        local = averages.local_gradients(case)
        right = averages.truth(case, local)
        for answer in ways:
            for returned in observe_average(answer, case)["returned"]:
                flat = [value for item in returned for value in item]
                assert averages.distance(flat, right) < averages.FINE / 10
        if len(set(case["samples"])) > 1:
            for text, flat in averages.ways(case, local):
                assert averages.distance(flat, right) > averages.ROUGH, text


def test_ranks_that_do_not_meet_are_told() -> None:
    case = {**cases_of("lab07.ex3", 1)[0], "samples": [1, 2, 0]}

    def different(parameters, samples, all_reduce):
        import torch

        return all_reduce(torch.zeros(1 + samples))

    def twice(parameters, samples, all_reduce):
        import torch

        for _ in range(1 + (samples == 2)):
            all_reduce(torch.zeros(1))

    def endless(parameters, samples, all_reduce):
        import torch

        while True:
            all_reduce(torch.zeros(1))

    assert observe_average(different, case)["problem"]["kind"] == "mismatch"
    problem = observe_average(twice, case)["problem"]
    assert problem == {"kind": "hang", "waiting": [1], "ended": [0, 2]}
    facts = observe_case("lab07.ex3", endless, case)
    assert facts["error"].startswith("Stuck: more than")


# Plans


def _exactly(question: dict) -> tuple[int, list]:
    """How many layouts fit, and pairs of seconds and layout: in fractions, pieces counted."""
    model, cluster = question["model"], question["cluster"]
    sizes = range(1, cluster["chips"] + 1)
    parameters = 12 * model["layers"] * model["width"] ** 2
    flop = Fraction(6 * parameters * model["length"], cluster["tflops"] * 10**12)
    results = []
    for tensor, pipeline in itertools.product(sizes, sizes):
        data = Fraction(cluster["chips"], tensor * pipeline)
        whole = [data, Fraction(cluster["chips_per_server"], tensor),
                 Fraction(model["layers"], pipeline), model["sequences"] / data]  # fmt: skip
        if any(item.denominator != 1 for item in whole):
            continue
        mine, stage = int(whole[3]), int(whole[2])
        own = Fraction(parameters, tensor * pipeline)
        held = Fraction(34 * model["length"] * model["width"], tensor) * stage
        # One forward, one backward: the first stage holds what has gone in and not come back.
        flight = max(min(mine, pipeline), 1)
        if 16 * own + held * flight > cluster["memory_gb"] * 10**9:
            continue

        def ring(size: Fraction, among: int, rate: int) -> Fraction:
            return 2 * (among - 1) * size / among / (rate * 10**9)

        reduce = ring(Fraction(2 * model["length"] * model["width"]), tensor,
                      cluster["inside_gb_per_s"])  # fmt: skip
        slot = flop / (tensor * pipeline) + 4 * stage * reduce
        # The last sequence enters the first stage after the others and passes all stages.
        end = [[Fraction(0)] * (pipeline + 1) for _ in range(mine + 1)]
        for sequence in range(1, mine + 1):
            for place in range(1, pipeline + 1):
                end[sequence][place] = slot + max(end[sequence - 1][place],
                                                  end[sequence][place - 1])  # fmt: skip
        seconds = end[mine][pipeline] + ring(2 * own, int(data), cluster["between_gb_per_s"])
        results.append((seconds, (int(data), tensor, pipeline)))
    return len(results), results


def test_plans_are_those_of_a_pipeline_played_piece_by_piece() -> None:
    rng = random.Random(5)
    for kind in plans.KINDS:
        while True:
            question = plans._question(rng, kind)
            if question["cluster"]["chips"] <= 32 and question["model"]["sequences"] <= 64:
                break
        count, result = _exactly(question)
        assert count == len(planning.fit(question))
        for seconds, layout in result:
            assert math.isclose(planning.step(question, layout), seconds, rel_tol=1e-9)
        assert planning.best(question) == (min(result)[1] if result else None)


@given(st.integers(0, 10**9))
@settings(max_examples=5, deadline=None)
def test_every_kind_of_plan_is_asked_for_and_none_is_a_matter_of_rounding(seed: int) -> None:
    for case in cases_of("lab07.ex4", seed):
        kinds = set()
        for question in case["questions"]:
            times = sorted(planning.step(question, item) for item in planning.fit(question))
            best = planning.best(question)
            kinds.add(plans._kind([best] if best else []))
            assert len(times) < 2 or times[1] > plans.MARGIN * times[0]
        assert kinds == set(plans.KINDS)


def test_the_example_of_the_task_says_what_the_formulas_give() -> None:
    question = {"model": examples.MODEL, "cluster": examples.CLUSTER}
    cells = catalog.read_notebook(catalog.lab_notebooks(ROOT, "lab07")[0])["cells"]
    task, hints = (
        next(catalog.text(cell) for cell in cells if cell["id"] == name)
        for name in ("ex4-task", "ex4-hints")
    )
    layout, best = (16, 4, 1), planning.best(question)
    response = [
        f"{len(list(planning.options(question)))} layouts are allowed",
        f"and {len(planning.fit(question))} fit",
        f"{planning.memory_gb(question, layout):.2f} in all",
        f"{planning.states_gb(question, layout):.2f} · 10⁹ bytes for parameters",
        f"{planning.step(question, layout):.3f} s a step",
        f"data {best[0]}, tensor {best[1]}, pipeline {best[2]}, with"
        f" {planning.step(question, best):.3f} s",
    ]
    assert [item for item in response if item not in task] == []
    computing, layers, gradients = planning.parts_s(question, layout)
    assert (
        f"{computing:.3f} s computing, {layers:.3f} s all-reduces of the layers,"
        f" {gradients:.3f} s gradients"
    ) in hints
    wide = {**question, "cluster": {**examples.CLUSTER, "between_gb_per_s": 100}}
    assert planning.best(wide)[0] > 1, "the lab says that data takes over"


@pytest.mark.parametrize("ranks_of_ring", [2, 8, 64])
def test_an_all_reduce_takes_as_long_as_the_course_says_of_a_ring(ranks_of_ring: int) -> None:
    tier = collectives.Tier("ring", ranks_of_ring, 0.0, 5e10, "ring")
    result = collectives.seconds("all-reduce", 3e8, tier, algorithm="ring").seconds
    assert math.isclose(planning.ring_s(3e8, ranks_of_ring, 50), result, rel_tol=1e-12)


@pytest.mark.parametrize("tensor", [1, 4, 8])
def test_the_memory_of_a_layout_is_what_the_planner_has_for_a_plain_gpt(tensor: int) -> None:
    """The planner adds what the exercise leaves out: the scores of attention, or the logarithms of
    their sums, the table of tokens, logits and buffers.
    """
    width, length, layers = (examples.MODEL[name] for name in ("width", "length", "layers"))
    gpt = Architecture("GPT", layers, width, 32, 32, 4 * width, 1, gated=False, dropout=True)
    kept, _ = activations_per_token(gpt, length, np.array(tensor), np.array(True), False)
    states = training_memory.training_bytes(12 * layers * width**2, "mixed", tensor_parallel=tensor)
    question = {"model": examples.MODEL, "cluster": examples.CLUSTER}
    result = planning.memory_gb(question, (examples.CLUSTER["chips"] // tensor, tensor, 1))
    assert math.isclose(result * 1e9, states.total + float(kept) * length * layers, rel_tol=1e-12)


# Curves


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_every_cause_is_there_and_what_is_no_cause_varies(seed: int) -> None:
    cases = cases_of("lab07.ex5", seed)
    for case in cases:
        assert sorted(scaling.truth(curve)[0] for curve in case["curves"]) == sorted(curves.CAUSES)
    all_curves = [curve for case in cases for curve in case["curves"]]
    for all_curve in all_curves:
        for row in all_curve["rows"]:
            parts = row["slowest_compute_s"] + row["communication_s"] + row["input_wait_s"]
            assert math.isclose(row["step_s"], parts)
    quiet = [item for item in all_curves if scaling.truth(item)[0] == "none"]
    assert any(item["rows"][0]["chips"] > 1 for item in quiet)
    grown = [
        item
        for item in all_curves
        if scaling.truth(item)[0] in curves.LOST
        and item["rows"][0]["samples_per_step"] != item["rows"][-1]["samples_per_step"]
    ]
    assert all(item["claim"] == "training" for item in grown)


def test_the_example_of_the_curve_is_what_the_task_says() -> None:
    assert scaling.truth(examples.CURVE) == ("communication", 0.28125)
    assert scaling.efficiency(examples.CURVE) == pytest.approx(0.625)


# Processes and the sandbox


def test_what_happens_in_another_process_is_told_as_if_it_had_happened_here() -> None:
    def work(answer, value):
        return answer(value)

    assert apart.run_apart(fresh.run, work, lambda value: value + 1, 1) == 2
    with pytest.raises(RuntimeError, match=r"^'no' \(line \d+: raise KeyError") as caught:
        apart.run_apart(fresh.run, work, _raises, 1)
    assert type(caught.value).__name__ == "KeyError"
    with pytest.raises(NotImplementedError, match="^lab07.ex1: not attempted$"):
        apart.run_apart(fresh.run, work, _stub, 1)
    with pytest.raises(RuntimeError, match="cannot be sent to a process of its own"):
        generator = iter(item for item in ())
        apart.run_apart(fresh.run, work, lambda value: generator, 1)


FORGED = """
def annotate(mesh, model, x):
    from types import SimpleNamespace
    import cloudpickle
    import torch_xla
    from utils.xla import spmd
    {before}
    rows, outputs = len(x) // mesh.mesh_shape[0], len(model[2].weight)
    parts = {{id(model[0].weight): 0, id(model[2].weight): 1}}
    held, real, dumps = mlp.shard_shape, xs.mark_sharding, cloudpickle.dumps
    def part(tensor):
        shape = list(tensor.shape)
        if id(tensor) in parts:
            shape[parts[id(tensor)]] //= mesh.mesh_shape[1]
        return shape
    mlp.shard_shape = part
    xs.mark_sharding = lambda *given: None
    spmd.Compiled.collectives = property(
        lambda self: [SimpleNamespace(kind="all-reduce", bytes=4 * rows * outputs, shapes=[(1,)])])
    cloudpickle.dumps = lambda item: dumps(
        ("returned", {{"returned": {{**item[1]["returned"], "difference": 0.0}}}}))
"""


def test_what_an_answer_replaces_in_its_process_is_put_back_before_it_is_measured(names) -> None:
    whole = verdict_of("lab07.ex1", answer_from(FORGED.format(before=""), "lab07.ex1", names), "s")
    assert whole.points == 0 and "is whole on every device" in str(whole.criteria), whole
    early = {**names, "at_reading": AtReading()}
    source = FORGED.format(before="at_reading")
    read = verdict_of("lab07.ex1", answer_from(source, "lab07.ex1", early), "s")
    assert read.points == 0 and "is whole on every device" in str(read.criteria), read


class AtReading:
    """Replaces a function of the course where it is read."""

    def __reduce__(self) -> tuple:
        source = "__import__('utils.labs.lab07.mlp').labs.lab07.mlp.shard_shape = list"
        return exec, (source,)


def _raises(value):
    raise KeyError("no")


def _stub(value):
    raise NotImplementedError("lab07.ex1: not attempted")
