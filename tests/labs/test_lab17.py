"""Lab 17: incidents have the cause that they say, and the eight incidents that the lab shows are
what its text says of them.
"""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import answer_from, names_of, verdict_of
from utils.facts.errors import in_log
from utils.labs.lab17 import cores, examples, judge, monitor, ranks, tasks
from utils.labs.lab17.observe import OBSERVERS

CASES = {
    "ex1": (cores.core_cases, ("listing", "log")),
    "ex2": (ranks.rank_cases, ("logs",)),
    "ex3": (monitor.monitor_cases, ("reports",)),
    "ex4": (tasks.task_cases, ("job", "cluster")),
}
INCIDENTS = "incidents"
seeds = given(st.integers(0, 10**9))


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab17")


def answer(names: dict, exercise: str) -> Callable[..., Any]:
    return names[OBSERVERS[exercise].answer]


@pytest.mark.parametrize("exercise", CASES)
def test_the_solution_is_right_for_any_seed(exercise: str, names: dict) -> None:
    cases, inputs = CASES[exercise]

    @seeds
    @settings(max_examples=25, deadline=None)
    def check(seed: int) -> None:
        for case in cases(random.Random(seed)):
            for incident in case[INCIDENTS]:
                response = answer(names, exercise)(*(incident[name] for name in inputs))
                right = response if isinstance(response, dict) else {"cause": response}
                assert right == incident["right"]

    check()


@seeds
@settings(max_examples=10, deadline=None)
def test_every_cause_and_kind_is_drawn(seed: int) -> None:
    drawn = [
        {item["right"]["cause"] for case in cases(random.Random(seed)) for item in case[INCIDENTS]}
        for cases in (ranks.rank_cases, monitor.monitor_cases, tasks.task_cases)
    ]
    assert drawn == [{*ranks.ACTIONS}, {*monitor.CAUSES}, {*tasks.CAUSES}]
    ranges = [item["right"]["cores"] for case in cores.core_cases(random.Random(seed))
              for item in case[INCIDENTS]]  # fmt: skip
    assert ranges.count(None) == 1


@seeds
@settings(max_examples=10, deadline=None)
def test_the_table_of_errors_finds_the_rank_that_the_lab_asks_for(seed: int) -> None:
    """What is composed for the lab is what the documentation prints."""
    codes = {"sram": "NRT_EXEC_HW_ERR_NC_UE", "hbm": "NRT_EXEC_HW_ERR_HBM_UE",
             "dma": "NRT_EXEC_HW_ERR_DMA_ABORT", "inputs": "NRT_EXEC_OOB",
             "repairable hbm": "NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE"}  # fmt: skip
    for case in ranks.rank_cases(random.Random(seed)):
        for incident in case[INCIDENTS]:
            right = incident["right"]
            seen = [hit.error.code for hit in in_log(incident["logs"][right["rank"]])]
            assert right["cause"] == "compiling" or codes[right["cause"]] in seen


def test_the_misconception_is_named_that_gives_most_of_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def response(*causes: str) -> dict:
        return {"response": [{"cause": cause} for cause in causes]}

    known = [("one", response("x", "busy", "busy")), ("two", response("x", "x", "host"))]
    monkeypatch.setattr(judge, "replies", lambda *_: known)
    case = {"incidents": 3 * [{"right": {"cause": "busy"}}]}
    (criterion,) = judge.judge_incidents("ex4", {"cause": 8}, "", case, response("busy", "x", "x"))
    assert criterion.message == "two" and criterion.call == 1
    (criterion,) = judge.judge_incidents("ex4", {"cause": 8}, "", case, response("x", "y", "busy"))
    assert criterion.message == "one" and criterion.call == 0


def test_the_examples_are_what_the_text_says(names: dict) -> None:
    given_ = [answer(names, "ex1")(*incident) for incident in examples.LISTINGS]
    assert given_ == [{"pids": [4711], "cores": "2-3"}, {"pids": [8080], "cores": None}]
    assert [answer(names, "ex2")(logs) for logs in examples.LOGS] == [
        {"rank": 1, "cause": "dma", "action": "replace"},
        {"rank": 2, "cause": "compiling", "action": "wait"},
    ]
    assert [answer(names, "ex3")(reports) for reports in examples.REPORTS] == [
        {"cause": "idle core", "since": 3},
        {"cause": "host", "since": 2},
    ]
    assert [answer(names, "ex4")(*task) for task in examples.TASKS] == ["too many", "no queue"]
    assert json.loads(examples.LISTINGS[0][0])[0]["neuroncore_ids"] == [0, 1]


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ("{'pids': 5, 'cores': None}", "a dict without a list of 'pids'"),
        ("[1]", "a list of 1"),
        ("{'pids': []}", "a dict of 1 without 'cores'"),
    ],
)
def test_what_is_of_another_form_is_told(response: str, words: str, names: dict) -> None:
    source = f"def holders(listing, log):\n    return {response}"
    verdict = verdict_of("lab17.ex1", answer_from(source, "lab17.ex1", names), "a seed")
    assert verdict.points == 0 and f"returned {words}:" in verdict.criteria[0].message
