"""Lab 13: right answers pass however they are written, wrong ones are told apart, what is expected
agrees with other ways to compute it, and nothing an answer returns can break a check.
"""

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import cases_of, names_of
from utils.cost import tco
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import observe_case
from utils.labs.lab13 import comparisons, examples, fleets, flips, ranking, runs, saving
from utils.labs.wrong_answers import replies

SEEDS = ["public", "a private one"]


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab13")


def test_the_course_is_open_again_after_an_answer_was_called() -> None:
    def uses(job):
        return tco.scenario("lora-13b").cost("trainium").total

    seen = observe_case("lab13.ex1", uses, cases_of("lab13.ex1", "public")[0])
    assert "belongs to the course: write this one yourself" in seen["error"]
    assert tco.scenario("lora-13b").cost("trainium").total > 0


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
            mean, error = saving.simulate(case, every)
            assert abs(saving.cost(run, every) - mean) < saving.ERRORS * error
    assert young_is_off == [False, True, True, True, True]


def test_the_simulation_sees_what_a_first_approximation_leaves_out() -> None:
    case = cases_of("lab13.ex4", "public")[-1]
    once = next(f["costs"] for text, f in replies("lab13.ex4", case) if "first term" in text)
    for every, cost in zip(case["intervals"], once, strict=True):
        mean, error = saving.simulate(case, every)
        assert abs(cost - mean) > saving.ERRORS * error


@given(st.integers(0, 10**9))
@settings(max_examples=5, deadline=None)
def test_ties_and_inputs_of_one_direction_are_in_the_rankings(seed: int) -> None:
    cases = cases_of("lab13.ex5", str(seed))
    ties = []
    for case in cases:
        right = ranking.truth(case)
        swings = [item for _, item in right]
        ties.append(sum(a == b for a, b in zip(swings, swings[1:], strict=False)))
        assert len(right) == len(case["ranges"]) - 1
        one_sided = [r for r in case["ranges"].values() if r[0] < r[2] and r[1] in (r[0], r[2])]
        assert one_sided
    assert ties == [0, 1, 0, 0, 0]


@given(st.integers(0, 10**9))
@settings(max_examples=5, deadline=None)
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
            [
                math.ceil(
                    fleets.needs(
                        service, max(fleets._within_target(service), key=key, default=None)
                    )
                )
                for key in (fleets._throughput, fleets._batch)
            ]
            for service in case["services"]
        ]
        assert any(right < wrong for right, wrong in servers)


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
