"""Lab 13: right answers pass however they are written, wrong ones are told apart, what is expected
agrees with other ways to compute it, and nothing an answer returns can break a check.
"""

import json
import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import cases_of, names_of, verdict_of
from utils.cost import tco
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import decide, observe_case
from utils.labs.lab13 import comparisons, examples, fleets, flips, ranking, runs, saving
from utils.labs.lab13.observe import OBSERVERS

EXERCISES = [f"lab13.{name}" for name in OBSERVERS]
SEEDS = ["public", "a private one"]


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab13")


CONSTANTS = {
    "lab13.ex1": [{"compute": 1, "engineering": 1, "total": 2}, dict.fromkeys(runs.PARTS, 0)],
    "lab13.ex2": [{"at": at, "below": a, "above": b}
                  for at in (None, 0.5, 2.0) for a in flips.NAMES for b in flips.NAMES],
    "lab13.ex3": [set(comparisons.NAMES), {"old price"}, ["unknown"]],
    "lab13.ex4": [{"costs": [1.0] * 3, "best": 1.0}, {"costs": [0] * 3, "best": 0}],
    "lab13.ex5": [[(name, 1.0) for name in ranking.BASES["job"]]],
    "lab13.ex6": [dict.fromkeys(("servers", "cost_per_million"), value) for value in (None, 3)],
}  # fmt: skip


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_what_answers_always_the_same_wins_nothing(exercise_id: str) -> None:
    for value in CONSTANTS[exercise_id]:
        verdict = verdict_of(exercise_id, lambda *_, value=value: value, "public")
        assert verdict.points == 0, (value, verdict)


def test_the_course_is_open_again_after_an_answer_was_called() -> None:
    def uses(job):
        return tco.scenario("lora-13b").cost("trainium").total

    seen = observe_case("lab13.ex1", uses, cases_of("lab13.ex1", "public")[0])
    assert "belongs to the course: write this one yourself" in seen["error"]
    assert tco.scenario("lora-13b").cost("trainium").total > 0


# What an answer may return


class Odd(dict):
    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")


def garbage() -> list:
    deep = {"compute": [[]], "engineering": {}, "total": None, "at": [], "below": 3, "above": None}
    return [
        *(
            None,
            True,
            "text",
            b"bytes",
            float("nan"),
            float("inf"),
            10**400,
            -1,
            1j,
            Fraction(1, 3),
        ),
        *([], [[]] * 6, [[None, None]] * 6, [("hours", 1.0)] * 6, [(1.0, "hours")] * 6),
        *(
            [("x" * 10_000, 10**400)] * 6,
            [1.0] * 100_000,
            range(6),
            ("a", "b"),
            {1, 2},
            {"x" * 999},
        ),
        *({}, Odd(), deep, {"costs": 3, "best": None}, {"costs": [[]] * 3, "best": []}),
        {"costs": [float("nan")] * 3, "best": float("inf")},
        {"costs": [1.0] * 3, "best": -1e308},
        {"costs": [1e308] * 3, "best": 5e-324},
        {"at": 5e-324, "below": "first", "above": "x" * 10_000},
        {"at": 1e308, "below": Odd(), "above": None},
        {"at": -0.0, "below": "first", "above": "first"},
        {"servers": 10**400, "cost_per_million": Odd()},
        {"servers": -1, "cost_per_million": None},
        {"compute": 5e-324, "engineering": 1e308, "total": 1e308},
    ]


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_no_returned_value_breaks_the_check(exercise_id: str) -> None:
    cases = cases_of(exercise_id, "first")
    for value in garbage():
        seen = [observe_case(exercise_id, lambda *_, value=value: value, case) for case in cases]
        assert all("facts" in item for item in seen), seen
        text = json.dumps(seen, allow_nan=False)
        assert len(text) < 50_000
        verdict = decide(exercise_id, cases, json.loads(text), 10.0)
        assert verdict.state == "tried" and verdict.points == 0, (value, verdict)
        assert any(criterion.message for criterion in verdict.criteria)


KEYS = "compute engineering total at below above costs best servers cost_per_million".split()
PLAIN = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from(KEYS), inner)
    ),
    max_leaves=12,
)


@given(PLAIN)
@settings(max_examples=60, deadline=None)
def test_no_plain_value_breaks_a_judgement(value: object) -> None:
    for exercise_id in EXERCISES:
        case = CASES[exercise_id]
        seen = observe_case(exercise_id, lambda *_: value, case)
        assert decide(exercise_id, [case], [json.loads(json.dumps(seen))], 10.0).state == "tried"


CASES = {exercise_id: cases_of(exercise_id, "first")[0] for exercise_id in EXERCISES}


# What is expected


def jobs_of(seed: int) -> list:
    return [job for case in cases_of("lab13.ex1", str(seed)) for job in case["jobs"]]


@given(st.integers(0, 10**9))
@settings(max_examples=5, deadline=None)
def test_fifty_jobs_cost_what_counting_hour_by_hour_says(seed: int) -> None:
    """Exact arithmetic on what each server is billed, with none of the judge's formulas."""
    for job in jobs_of(seed):
        j = {name: Fraction(value) for name, value in job.items()}
        seconds = j["billion_tokens"] * 10**9 / (j["servers"] * j["tokens_per_second_per_server"])
        good = [j["startup_hours"], seconds / 3600]
        failed = [j["startup_hours"], seconds / 3600 * j["share_of_failed_run"]]
        used = sum(good) + sum(failed) * j["failed_runs_per_good_run"]
        idle = used * (1 - j["utilisation"]) / j["utilisation"]
        server_hours = (used + idle) * j["servers"]
        per_run = [
            server_hours * j["price_per_server_hour"],
            j["engineers"] * j["weeks"] * j["pay_per_week"] / j["good_runs"],
        ]
        result = runs.truth(job)
        for part, money in zip(("compute", "engineering", "total"), [*per_run, sum(per_run)],
                               strict=True):  # fmt: skip
            assert math.isclose(result[part], money / (j["billion_tokens"] * 1000), rel_tol=1e-12)


def test_there_are_fifty_jobs_and_ten_are_plain() -> None:
    assert len(jobs_of(1)) == 50
    for job in jobs_of(1)[:10]:
        assert job.items() >= runs.PLAIN.items()


NOTHING = dict.fromkeys(
    "scaling discount billing_step credits support compile_cold compile_warm cold_compiles"
    " compile_paid queue failures interruptions checkpoint_write restart storage storage_months"
    " storage_price egress egress_price operations operations_pay".split(),
    0.0,
)


def test_the_model_of_the_course_agrees_with_what_is_expected_of_jobs() -> None:
    for job in jobs_of(2):
        result = tco.job(
            NOTHING
            | {
                "scaling": 1.0,
                "starts": 1.0,
                "checkpoint_every": 1e9,
                "work": job["billion_tokens"] * 1e9,
                "runs": job["good_runs"],
                "instances": job["servers"],
                "units_per_second": job["tokens_per_second_per_server"],
                "price": job["price_per_server_hour"],
                "startup": job["startup_hours"],
                "utilisation": job["utilisation"],
                "failed_runs": job["failed_runs_per_good_run"],
                "failed_share": job["share_of_failed_run"],
                "engineers": job["engineers"],
                "weeks": job["weeks"],
                "pay": job["pay_per_week"],
            }
        )
        assert math.isclose(result.per_million, runs.truth(job)["total"], rel_tol=1e-9)


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_every_kind_of_break_even_is_asked_for_and_flips_where_it_is_expected(seed: int) -> None:
    cases = cases_of("lab13.ex2", str(seed))
    questions = [item for case in cases for item in case["questions"]]
    assert {flips._kind(item) for item in questions} == set(flips.EVERY)
    for question in questions:
        assert question["first"]["engineering"] != question["second"]["engineering"]
        at, below, above = flips.truth(question)
        runs_asked = question["what"] == "runs"
        if at is None:
            grid = [1, 2, 7, 1e3, 1e7] if runs_asked else [1e-3, 0.1, 0.5, 1]
            cheaper = {flips.NAMES[a > b] for a, b in (flips.costs(question, x) for x in grid)}
            assert cheaper == {below} == {above}
            continue
        one, two = flips.costs(question, at)
        assert math.isclose(one, two, rel_tol=1e-9) and below != above
        assert at >= 1 if runs_asked else 0 < at <= 1
        for value, name in ((at * 0.999, below), (at * 1.001, above)):
            a, b = flips.costs(question, value)
            assert flips.NAMES[a > b] == name


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_what_was_put_into_a_comparison_is_what_is_wrong_with_it(seed: int) -> None:
    named = {kind: name for name, kinds in comparisons.KINDS.items() for kind in kinds}
    rng = random.Random(seed)
    every = [*(n for n in comparisons.NAMES if n not in comparisons.KINDS), *named]
    for planned in [[], *([item] for item in every)]:
        result = comparisons._comparison(rng, planned)
        assert comparisons.truth(result) == {named.get(item, item) for item in planned}
    for count in (2, 3, 3):
        planned = comparisons._together(rng, count)
        result = comparisons._comparison(rng, planned)
        assert comparisons.truth(result) == {named.get(item, item) for item in planned}


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_every_error_is_there_on_both_sides_and_some_comparisons_have_none(seed: int) -> None:
    cases = cases_of("lab13.ex3", str(seed))
    results = [
        comparisons.truth(comparison) for case in cases for comparison in case["comparisons"]
    ]
    assert len(results) == 39 and sum(not item for item in results) >= 3 and not results[0]
    for name in comparisons.NAMES:
        assert sum(name in item for item in results) >= 2
    pairs = [comparison for case in cases for comparison in case["comparisons"]]
    for side in comparisons.SIDES:
        alone = [comparisons.truth(dict.fromkeys(comparisons.SIDES, pair[side])) for pair in pairs]
        assert {"old price", "quality", "vendor claim", "peak", "sparse peak", "price unit"} <= (
            set().union(*alone)
        )
    assert all(set(case) == {"comparisons"} for case in cases)


def test_what_is_no_error_varies_enough_to_be_taken_for_one() -> None:
    for seed in SEEDS:
        sides = [
            (comparison["first"], comparison["second"])
            for case in cases_of("lab13.ex3", seed)
            for comparison in case["comparisons"]
            if not comparisons.truth(comparison) & {"credits", "quality", "old price"}
        ]
        assert any(a["credits"] and b["credits"] for a, b in sides)
        assert any(a["reached_loss"] != b["reached_loss"] for a, b in sides)
        assert any(a["reached_loss"] == a["target_loss"] for a, b in sides)
        assert any(e["price_read"] == e["price_last_changed"] for pair in sides for e in pair)
        assert any(a["price_is_per"] != b["price_is_per"] for a, b in sides)


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_the_cost_of_an_interval_is_that_of_the_course_and_of_a_simulation(seed: int) -> None:
    young_is_off = []
    for case in cases_of("lab13.ex4", str(seed)):
        run = case["run"]
        rate = run["servers"] / run["hours_between_failures_per_server"]
        write, restart = run["write_minutes"] / 60, run["restart_minutes"] / 60
        money = run["servers"] * run["price_per_server_hour"]
        best = saving.best(run)
        assert math.isclose(best, tco.best_interval(write, rate), rel_tol=1e-9)
        young_is_off.append(abs(math.sqrt(2 * write / rate) / best - 1) > 2 * saving.BEST)
        for every in case["intervals"]:
            hours = tco.expected_hours(run["work_hours"], every, write, restart, rate)
            assert math.isclose(saving.cost(run, every), hours * money, rel_tol=1e-9)
            assert abs(every / best - 1) > 2 * saving.BEST
            mean, error = saving.simulated(case, every)
            assert abs(saving.cost(run, every) - mean) < saving.ERRORS * error
    assert young_is_off == [False, True, True, True, True]


def test_the_simulation_sees_what_a_first_approximation_leaves_out() -> None:
    case = cases_of("lab13.ex4", "public")[-1]
    for every in case["intervals"]:
        mean, error = saving.simulated(case, every)
        once = next(n for text, n in saving.ways(case["run"], every) if "first term" in text)
        assert abs(once - mean) > saving.ERRORS * error


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_inputs_are_ranked_otherwise_by_every_usual_mistake(seed: int) -> None:
    cases = cases_of("lab13.ex5", str(seed))
    ties = []
    for case in cases:
        right = ranking.truth(case)
        swings = [item for _, item in right]
        ties.append(sum(a == b for a, b in zip(swings, swings[1:], strict=False)))
        assert len(right) == len(case["ranges"]) - 1
        one_sided = [r for r in case["ranges"].values() if r[0] < r[2] and r[1] in (r[0], r[2])]
        assert one_sided
        for _, measure in ranking.MEASURES[:5]:
            assert not ranking._follows(case, [name for name, _ in right], measure)
    assert ties == [0, 1, 0, 0, 0]


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_the_model_of_the_course_agrees_with_what_is_expected_of_fleets(seed: int) -> None:
    services = [s for case in cases_of("lab13.ex6", str(seed)) for s in case["services"]]
    assert len(services) == 15
    for service in services:
        points = [
            tco.Point(p["batch"], p["latency_ms"] / 1e3, p["items_per_second"])
            for p in service["measured"]
        ]
        right = fleets.truth(service)
        if right["servers"] is None:
            with pytest.raises(tco.InputError):
                tco.fastest_within(points, service["target_ms"] / 1e3)
            continue
        result = tco.service(
            dict.fromkeys(tco.NEEDS["service"], 0.0)
            | {
                "demand": service["items_per_second"],
                "peak_to_mean": service["peak_to_mean"],
                "tokens_per_item": 1.0,
                "months": 1.0,
                "units_per_second": tco.fastest_within(
                    points, service["target_ms"] / 1e3
                ).units_per_second,
                "load": service["highest_load"],
                "spare": service["spare_servers"],
                "price": service["price_per_server_hour"],
            }
        )
        assert math.isclose(result.per_million, right["cost_per_million"], rel_tol=1e-9)
    assert sum(fleets.truth(item)["servers"] is None for item in services) == 2


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_no_draw_hides_what_a_task_says(seed: int) -> None:
    """Equal servers, ties, an input that moves nothing and a throughput that falls are in the cases
    of every seed, in a form that tells whoever overlooked them.
    """
    questions = [q for case in cases_of("lab13.ex2", str(seed)) for q in case["questions"]]
    equal = [question for question in questions if flips._kind(question) == "parallel"]
    assert len(equal) == 2
    for item in equal:
        gains = flips._hides_behind_rounding(*(item[n] for n in ("task", *flips.NAMES)))
        assert gains and flips.truth(item)[0] is None
        assert all(flips._about_value(item, float(at)) for at in (2, 1e6, 1e17, 1e300))
    ranked = cases_of("lab13.ex5", str(seed))
    came = list(ranked[1]["ranges"])
    assert came.index("weeks") < came.index("engineers")
    assert [ranking.truth(case)[-1][1] == 0 for case in ranked] == [False] * 4 + [True]
    for case in cases_of("lab13.ex6", str(seed)):
        servers = [
            (math.ceil(fleets.needs(service)), math.ceil(fleets.needs(service, point=largest)))
            for service in case["services"]
            for largest in [max(fleets._kept(service), key=fleets._batch, default=None)]
        ]
        assert any(right < wrong for right, wrong in servers)


def test_wrong_ways_are_told_from_right_ones() -> None:
    """Each lies at least ten limits from the right number, for every case of some seeds."""
    for seed in SEEDS:
        for job in jobs_of(seed):
            for part in runs.PARTS:
                right = runs.truth(job)[part]
                for text, number in runs.ways(job, part):
                    assert abs(number / right - 1) > 10 * runs.TOLERANCE, text


# What a report shows, and who sees what


def test_the_notebook_says_the_numbers_that_are_judged() -> None:
    lab = catalog.lab("lab13")
    assert sum(exercise.minutes for exercise in lab.exercises) == lab.minutes
    (path,) = catalog.lab_notebooks(ROOT, "lab13")
    text = {c["id"]: catalog.text(c) for c in catalog.read_notebook(path)["cells"]}
    assert f"{lab.minutes} min · {lab.points:g} points" in text["title"]
    assert "within a billionth" in text["objectives"] and runs.TOLERANCE == 1e-9
    assert {saving.TOLERANCE, ranking.TOLERANCE, fleets.TOLERANCE} == {1e-9}
    questions = sum(len(case["questions"]) for case in cases_of("lab13.ex2", "public"))
    assert questions == 23 and "twenty-three questions" in text["ex2-task"]
    assert flips.AGREE == 1e-6 and "within a millionth" in text["ex2-task"]
    assert "thirty-nine comparisons" in text["ex3-task"]
    assert all(f'"{name}"' in text["ex3-task"] for name in comparisons.NAMES)
    assert f"{saving.SEGMENTS:,} segments" in text["ex4-task"]
    assert saving.BEST == 0.01 and "within 1 % is right" in text["ex4-task"]
    assert len(cases_of("lab13.ex5", "public")) == 5 and "five models" in text["ex5-task"]
    assert "fifteen services" in text["ex6-task"]
    scenario = "pretrain-70b"
    assert f'tco.scenario("{scenario}")' in text["next"] and tco.tornado(tco.scenario(scenario))


def test_the_worked_examples_are_right(names: dict) -> None:
    (path,) = catalog.lab_notebooks(ROOT, "lab13")
    text = {c["id"]: catalog.text(c) for c in catalog.read_notebook(path)["cells"]}
    total = names["cost_per_million"](examples.JOB)["total"]
    assert f"{total:.4f} in all" in text["ex1-task"]
    flip = names["break_even"](examples.TASK, examples.FIRST, examples.SECOND, "runs")
    assert flip["above"] == "first" and f"{flip['at']:.2f} runs" in text["ex2-task"]
    assert comparisons.truth(examples.COMPARISON) == {"old price", "peak"}
    priced = names["price_checkpoints"](examples.RUN, examples.INTERVALS)
    assert f"{priced['costs'][1]:,.0f}" in text["ex4-task"]
    assert f"{priced['best']:.3f} hours" in text["ex4-task"]
    (first, swing), (second, other), *_ = names["influence"](examples.COST, examples.RANGES)
    assert (first, second) == ("credits", "hours") and f"a swing of {swing:.0f}" in text["ex5-task"]
    assert f"with {other:.0f}" in text["ex5-task"]
    sized = names["fleet"](examples.SERVICE)
    assert f"{sized['servers']} servers" in text["ex6-task"]
    assert f"{sized['cost_per_million']:.2f} per million" in text["ex6-task"]
