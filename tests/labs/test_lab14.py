"""Lab 14: right answers pass however they are written, wrong ones are told apart, the six cases are
what their texts say, and nothing an answer returns can break a check.
"""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import answer_from, cases_of, names_of, right_answers, verdict_of
from utils.cost.decision import VERDICTS, adjust
from utils.cost.decision.findings import NOTHING
from utils.cost.decision.flips import verdict_for
from utils.cost.decision.questions import QUESTIONS
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.facts.records import DATA
from utils.labs.lab14 import (
    audits,
    deciding,
    defending,
    edges,
    evidence,
    examples,
    observe,
    pilots,
    plans,
)

RIGHT = right_answers("lab14")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab14")


def test_an_unknown_rule_shows_nothing_but_verdicts() -> None:
    rule = cases_of("lab14.ex3", "public")[0]["rules"][0]
    unknown, _ = observe.unknown_rule(rule)
    assert vars(unknown) == {}
    assert str(rule["edges"][0]) not in repr(unknown)


def test_a_guess_at_verdicts_and_reasons_wins_nothing() -> None:
    for because, verdict in zip(deciding.ROW_NAMES, itertools.cycle(VERDICTS), strict=False):
        form = {"answers": {}, "verdict": verdict, "because": because}
        response = {name: form for name in deciding.CASES}
        assert verdict_of("lab14.ex1", lambda reply=response: reply, "public").points == 0


def test_one_state_for_all_wins_nothing() -> None:
    for state in ("open", "done", "failed"):

        def same(items, *_, state=state):
            return {item["item"]: state for item in items}

        assert verdict_of("lab14.ex7", same, "public").points == 0


# What is expected


EXPECTED = {
    "ferry": ("trainium", {"cheaper", "clearly cheaper"}),
    "quarry": ("trainium", {"no GPU"}),
    "theatre": ("neither", {"no gate"}),
    "pharmacy": ("gpu", {"no region"}),
    "railway": ("gpu", {"deadline"}),
    "brewery": ("either", {"no saving shown"}),
}


@pytest.mark.parametrize("name", deciding.CASES)
def test_a_case_is_decided_by_what_its_text_turns_on(name: str) -> None:
    result = deciding.decision(name)
    assert (result.verdict, {item.rule for item in result.decisive}) == EXPECTED[name]


@pytest.mark.parametrize("name", deciding.CASES)
def test_every_accepted_form_leads_to_the_same_verdict(name: str) -> None:
    for field, (values, _) in deciding.FORMS[name].items():
        for value in values:
            answers = deciding.right(name).changed(**{field: value})
            verdict = verdict_for(answers, deciding.saving(name), NOTHING, adjust())
            assert verdict == EXPECTED[name][0]


def test_each_verdict_occurs_and_no_case_is_one_of_the_lesson() -> None:
    assert {verdict for verdict, _ in EXPECTED.values()} == {"trainium", "gpu", "either", "neither"}
    assert sorted(v for v, _ in EXPECTED.values()).count("gpu") == 2
    text = (DATA / "decision_cases.yaml").read_text(encoding="utf-8")
    assert not [name for name in deciding.CASES if name in text]


def test_what_is_asked_and_what_is_given_make_the_whole_form() -> None:
    for given_ in examples.GIVEN.values():
        assert sorted((*given_, *deciding.ASKED)) == sorted(QUESTIONS)
    assert set(examples.GIVEN) == set(examples.COSTS) == set(deciding.FORMS)
    for form in deciding.FORMS.values():
        assert set(form) == set(deciding.ASKED)


def test_every_flip_that_is_listed_is_accepted_unless_it_says_why_not() -> None:
    for name in deciding.CASES:
        for flip in deciding.decision(name).flips:
            if flip.field == "saving":
                continue
            response = {"field": flip.field, "to": flip.to, "verdict": flip.verdict, "saving": None}
            about = defending._about_flip(name, response)
            reasons = ("another workload", "place of the data", "no machine could be chosen")
            assert not about or any(reason in about for reason in reasons), about


def test_savings_have_an_edge_where_votes_decide() -> None:
    edged = {name for name in deciding.CASES if defending.money(name) is not None}
    assert edged == {"ferry", "quarry", "brewery"}


@given(st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_rules_keep_their_width_and_have_one_nearest_flip(seed: int) -> None:
    for case in cases_of("lab14.ex3", str(seed)):
        for rule in case["rules"]:
            span = rule["high"] - rule["low"]
            ends = [rule["low"], *rule["edges"], rule["high"]]
            widths = [b - a for a, b in zip(ends, ends[1:], strict=False)]
            assert min(widths) >= edges.WIDTH * span
            away = [abs(edge - rule["now"]) for edge, _ in edges.flips(rule)]
            # Farther apart than a step, so that the side that is asked first is no matter.
            assert all(b - a > 0.02 * span for a, b in zip(away, away[1:], strict=False))


def test_a_careful_search_needs_far_fewer_calls_than_are_allowed(names: dict) -> None:
    answer = answer_from(RIGHT["ex3"], "lab14.ex3", names)
    for case in cases_of("lab14.ex3", "public"):
        for rule in case["rules"]:
            unknown, asked = observe.unknown_rule(rule)
            answer(unknown, rule["now"], rule["low"], rule["high"])
            assert len(asked) <= observe.CALLS / 2


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_audits_hold_every_kind(seed: int) -> None:
    cases = cases_of("lab14.ex4", str(seed))
    projects = [project for case in cases for project in case["projects"]]
    assert {project["kind"] for project in projects} == set(audits.KINDS)


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_a_pilot_is_worth_less_than_knowing_everything_and_never_less_than_nothing(seed) -> None:
    for case in cases_of("lab14.ex5", str(seed)):
        for pilot in case["pilots"]:
            draws, worth = pilot["draws"], pilots.value(pilot)
            best = sum(map(min, draws["trainium"], draws["gpu"])) / len(draws["gpu"])
            everything = min(sum(draws[o]) / len(draws[o]) for o in pilots.OPTIONS) - best
            assert 0 <= worth <= everything + 1e-9
            assert (worth > pilot["price"]) == (worth > 0 and pilot["kind"] != "not worth it")


def test_all_quantities_of_the_plan_are_those_of_the_table() -> None:
    needed = {row[0] for rows in plans.NEEDED.values() for row in rows}
    assert {*needed, *plans.NOBODY, plans.CAPACITY, "votes"} <= set(examples.QUANTITIES)
    assert not needed & set(plans.NOBODY)
    assert set(plans.NEEDED) == set(examples.STEPS)


def test_the_plan_is_that_of_lesson_14() -> None:
    from utils.cost.decision.plan import steps

    assert tuple(steps()) == examples.STEPS


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_projects_have_every_kind_of_evidence_and_every_state(seed: int) -> None:
    cases = cases_of("lab14.ex7", str(seed))
    for case in cases:
        states = {state for p in case["projects"] for state in evidence.truth(p).values()}
        assert {"open", "done"} <= states
    first = {state for p in cases[0]["projects"] for state in evidence.truth(p).values()}
    assert first == set(evidence.STATES)
    early = {kind for case in cases[:-1] for p in case["projects"] for kind in p["kinds"]}
    assert {*early, "good"} == set(evidence.KINDS)


# What a report shows, and who sees what


def test_the_notebook_says_what_is_judged() -> None:
    lab = catalog.lab("lab14")
    assert sum(exercise.minutes for exercise in lab.exercises) == lab.minutes
    (path,) = catalog.lab_notebooks(ROOT, "lab14")
    text = {c["id"]: catalog.text(c) for c in catalog.read_notebook(path)["cells"]}
    assert f"{lab.minutes} min · {lab.points:g} points" in text["title"]
    for name, form in deciding.FORMS.items():
        (message,) = [t for t in text["ex1-texts"].split("\n\n") if t.startswith(f"**{name}.**")]
        for field, (_, quoted) in form.items():
            assert quoted in message, (name, field)
    assert f"at most {observe.CALLS} times" in text["ex3-task"]
    counted = {"ex3": ("rules", 15, "fifteen"), "ex4": ("projects", 18, "eighteen"),
               "ex5": ("pilots", 9, "nine"), "ex7": ("projects", 24, "twenty-four")}  # fmt: skip
    for name, (what, number, word) in counted.items():
        cases = cases_of(f"lab14.{name}", "public")
        assert sum(len(case[what]) for case in cases) == number
        assert f"**Measured:** {word} " in text[f"{name}-task"]
