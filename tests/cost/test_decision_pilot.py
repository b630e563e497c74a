"""The pilot: its data, and that it fills itself with what was found and with nothing else."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.cost.test_decision import GOOD, PLAIN, decision, report
from utils.audit import audit_source
from utils.cost.decision import Results, Saving, Throughput, checklist, decide, pilot_of, steps
from utils.cost.decision.effort import pilot_weeks
from utils.cost.decision.pilot import DONE, FAILED, OPEN, WARNED
from utils.cost.decision.plan import LISTS
from utils.cost.tco.comparison import warnings
from utils.cost.tco.scenario import scenarios
from utils.course.catalog import exercise

CLEAN = audit_source("import torch\n", "clean.py")
YES = decide(PLAIN, audit=CLEAN, comparison=GOOD)
EVERYTHING: dict[str, Any] = {
    "progress": {
        name: {"points": exercise(name).points, "attempts": 1, "state": "passed"}
        for step in steps().values()
        for name in step.practice
    },
    "audit": CLEAN,
    "parity": SimpleNamespace(outside=()),
    "throughput": Throughput(120, 100, "sequences/s", "trn2.48xlarge"),
    "measured": {"baseline": 0.02, "port": 0, "parity": 0},
    "notes": {item.key: "looked at" for name in LISTS for item in checklist(name)},
}


def test_there_are_six_steps_which_end_with_a_number() -> None:
    plan = steps()
    assert len(plan) == 6
    assert plan["port"].weeks == 0, "it is estimated from the answers"
    for item in plan.values():
        assert (item.at_most is None) != (item.at_least is None)
        assert item.met(item.at_most if item.at_least is None else item.at_least)
        assert not item.met(float("nan"))
        for text in (item.enter, item.do, item.owner, item.stop, item.done_by):
            assert text
        for name in item.practice:
            assert exercise(name).points


def test_checklists_give_a_reason_and_a_source_for_every_line() -> None:
    for name in LISTS:
        assert all(item.asks.endswith("?") and item.reason for item in checklist(name))
    keys = [item.key for name in LISTS for item in checklist(name)]
    assert len(set(keys)) == len(keys)
    asked = {"capacity", "price", "region", "sla", "exit", "egress", "support", "credits"}
    asked |= {"faults", "exclusivity", "sustainability"}
    assert {item.key for item in checklist("contract")} == asked
    assert "network" in {item.key for item in checklist("benchmark")}
    assert "mirrors production traffic" in steps()["baseline"].do
    assert "degraded network" in steps()["measure"].do
    with pytest.raises(KeyError, match="no list 'legal'"):
        checklist("legal")


def test_without_results_everything_is_open() -> None:
    result = pilot_of(decide(PLAIN))
    assert {item.state for item in result.items} == {OPEN}
    assert result.next is result.steps[0] and not result.failed and not result.blocked
    assert result.total_weeks == pytest.approx(pilot_weeks() + decide(PLAIN).port_weeks)


def test_with_all_results_everything_is_done() -> None:
    result = pilot_of(YES, Results(**EVERYTHING))
    assert {item.state for item in result.items} == {DONE}, result
    assert result.next is None and all(item.result for item in result.items)


@pytest.mark.parametrize(
    ("change", "part", "state"),
    [
        ({"parity": SimpleNamespace(outside=("gradient",))}, "parity", FAILED),
        ({"parity": None}, "parity", OPEN),
        ({"measured": {"baseline": 0.02, "port": 3, "parity": 0}}, "port", FAILED),
        ({"measured": {"baseline": 0.02, "parity": 0}}, "port", OPEN),
        ({"measured": {"baseline": 0.2, "port": 0, "parity": 0}}, "baseline", FAILED),
        ({"throughput": Throughput(80, 100, "sequences/s", "trn2.48xlarge")}, "measure", FAILED),
        ({"audit": report("triton")}, "audit", OPEN),
        ({"notes": {}}, "sign", OPEN),
        ({"notes": {}, "failures": {"capacity": "refused"}}, "contract", FAILED),
        ({"notes": {}, "failures": {"capacity": "refused"}}, "sign", FAILED),
        ({"progress": {}}, "audit", OPEN),
    ],
)
def test_one_result_that_differs_changes_its_part(
    change: dict[str, Any], part: str, state: str
) -> None:
    assert pilot_of(YES, Results(**(EVERYTHING | change))).state(part) == state


def test_values_on_the_cpu_do_not_end_the_step_of_the_device() -> None:
    result = pilot_of(YES, Results(parity=SimpleNamespace(outside=())))
    assert {item.key: item.state for item in result.of("parity")}["here"] == DONE
    assert result.state("parity") == OPEN
    with pytest.raises(ValueError, match="CPU says nothing"):
        Throughput(120, 100, "sequences/s", "cpu")


def test_warnings_about_a_comparison_fail_their_checks_and_the_rest_is_done() -> None:
    doubt = SimpleNamespace(kind="region", text="ours is here, theirs is there")
    results = {item.key: item for item in pilot_of(YES, Results(warnings=[doubt])).of("benchmark")}
    assert results["same-terms"].state == FAILED and results["same-terms"].result == doubt.text
    assert results["same-work"].state == results["vendor"].state == DONE
    assert results["tail"].state == OPEN
    assert results["same-quality"].state == OPEN, "that one score is asked of both shows no score"
    looked = pilot_of(
        YES, Results(warnings=[doubt], notes={"same-terms": "one region since Monday"})
    )
    assert {item.key: item.state for item in looked.of("benchmark")}["same-terms"] == DONE
    with pytest.raises(ValueError, match="warnings: 'mood' is not allowed; allowed: work"):
        pilot_of(YES, Results(warnings=[SimpleNamespace(kind="mood", text="")]))


def test_every_warning_of_the_cost_model_has_a_check() -> None:
    for scenario in scenarios().values():
        a, b = list(scenario.options)[:2]
        pilot_of(YES, Results(warnings=warnings(scenario, a, b)))
    assert set(WARNED.values()) <= {item.key for item in checklist("benchmark")}


def test_an_exercise_that_was_tried_is_not_done() -> None:
    result = pilot_of(
        YES, Results(progress={"lab02.ex1": {"points": 2.0, "attempts": 3, "state": "failed"}})
    )
    tried = next(item for item in result.items if item.key == "lab02.ex1")
    assert tried.state == OPEN and tried.result == "2 of 6 points"


def test_a_no_has_no_pilot_and_a_verdict_that_turned_ends_it() -> None:
    assert pilot_of(decision("insurer-tensorflow")).blocked.startswith("No pilot now. GPU")
    audited = decide(PLAIN.changed(gate="none"), audit=CLEAN, comparison=GOOD)
    again = next(item for item in pilot_of(audited).items if item.key == "decision")
    assert again.state == FAILED


def test_an_open_verdict_fails_no_step_before_the_device_was_measured() -> None:
    even = Saving(-0.3, 0.02, 0.3, 0.54, 60_000)
    either = decide(PLAIN, audit=CLEAN, comparison=even)
    assert either.verdict == "either"
    reached = Throughput(120, 100, "sequences/s", "trn2.48xlarge")
    for throughput, state in ((None, OPEN), (reached, FAILED)):
        result = pilot_of(either, Results(throughput=throughput))
        assert {item.key: item.state for item in result.items}["decision"] == state


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"measured": {"speed": 1}}, "measured: 'speed' is not allowed; allowed: baseline"),
        ({"measured": {"port": float("nan")}}, "measured: nan for 'port'"),
        ({"measured": {"port": -1}}, "measured: -1 for 'port'"),
        ({"notes": {"price cap": "yes"}}, "notes: 'price cap' is not allowed; allowed: same-work"),
        ({"notes": {"sla": "a"}, "failures": {"sla": "b"}}, "'sla' is in both"),
        ({"notes": {"sla": " "}}, "notes: 'sla' is empty; allowed: what was found"),
    ],
)
def test_bad_input_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        pilot_of(YES, Results(**given))


@pytest.mark.parametrize("name", ["progress", "audit"])
def test_a_result_of_another_kind_is_named(name: str) -> None:
    given: dict[str, Any] = {name: "lab02"}
    with pytest.raises(TypeError, match=f"{name}: str is not allowed; allowed: "):
        Results(**given)


@pytest.mark.parametrize("given", [("lab02",), (YES, "lab02")])
def test_what_is_no_decision_or_no_results_is_named(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=": str is not allowed; allowed: "):
        pilot_of(*given)


@pytest.mark.parametrize("measured", [0, -1, float("nan"), "100", True])
def test_a_throughput_is_a_number_above_zero(measured: Any) -> None:
    with pytest.raises(ValueError, match="measured: .* allowed: a number above 0"):
        Throughput(measured, 100, "sequences/s", "trn2.48xlarge")


def test_the_plan_is_shown_as_text_and_markdown() -> None:
    result = pilot_of(YES, Results(**EVERYTHING))
    assert "120 of 100 sequences/s on trn2.48xlarge" in repr(result)
    text = result._repr_markdown_()
    for step in result.steps:
        for words in (step.title, step.enter, step.do, step.stop, step.exit):
            assert words in text
    assert all(item.asks in text for name in LISTS for item in checklist(name))
