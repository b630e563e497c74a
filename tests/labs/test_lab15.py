"""Lab 15: right answers pass however they are written, what is expected agrees with the launcher's
own review, and earlier answers come from a submission or are asked for.
"""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs import hostile
from tests.labs.cells import (
    answer_from,
    cases_of,
    changed,
    code_of,
    names_of,
    right_answers,
    right_ways,
    verdict_of,
    with_part,
)
from utils import facts, launch
from utils.course import earlier
from utils.course.catalog import ROOT, lab_notebooks
from utils.labs import decide, observe_case, observer
from utils.labs.grading import attempts, batch, display
from utils.labs.lab15 import capstone, launches, marks, reading, recording, snippets, tuning
from utils.xla import fresh

RIGHT = right_answers("lab15")


pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names(xla_device) -> dict:
    return names_of("lab15")


def test_another_save_and_resume_that_is_right_in_lab_08_fits_too(names: dict) -> None:
    ways = {way: source for _, way, source in right_ways("lab08")}
    source = ways["pickled arrays in a temporary file of the folder"]
    wanted = next(item for item in earlier.WANTED["lab15"] if item.lab == "lab08")
    result = earlier.functions_of(
        wanted, [("imports", code_of("lab08")["imports"]), (wanted.cell, source)]
    )
    mine = earlier.Earlier({**names["mine"].functions, **result}, [])
    answer = answer_from(RIGHT["ex4"], "lab15.ex4", {**names, "mine": mine})
    (case,) = cases_of("lab15.ex4", "a")
    seen = json.loads(json.dumps(observe_case("lab15.ex4", answer, case)))
    verdict = decide("lab15.ex4", [case], [seen], 10.0)
    assert verdict.state == "passed", verdict
    # Its losses lie far within the tolerance, and its adapters far within theirs.
    life = seen["facts"]["resumed"]
    pairs = list(zip(life["returned"]["losses"], life["truths"], strict=True))
    for evaluation in life["evaluations"]:
        pairs += zip(evaluation["response"], evaluation["truth"], strict=True)
    assert len(pairs) > 24
    assert max(abs(a - b) for a, b in pairs) < capstone.TOLERANCE / 20
    assert seen["facts"]["whole"]["astray"] < capstone.ASTRAY / 10


@pytest.mark.parametrize("exercise_id", ["lab15.ex2", "lab15.ex3"])
def test_many_seeds_are_solved(exercise_id: str, names: dict) -> None:
    answer = names[observer(exercise_id).answer]
    for seed in range(10):
        assert verdict_of(exercise_id, answer, seed).state == "passed", seed


# What is expected


def test_every_verdict_rests_on_a_statement_that_exists() -> None:
    assert set(marks.RIGHT) == set(snippets.SNIPPETS)
    assert {verdict for verdict, _ in marks.RIGHT.values()} == set(snippets.VERDICTS)
    for key in snippets.STATEMENTS:
        assert facts.fact(key).text
    for _, keys in marks.RIGHT.values():
        assert set(keys) <= set(snippets.STATEMENTS)


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_plans_have_two_mistakes_each_twice_in_both_ways(seed: int) -> None:
    (case,) = cases_of("lab15.ex3", seed)
    results = [launches.mistakes(plan, case["facts"]["vcpu"]) for plan in case["plans"]]
    assert all(len(item) == 2 for item in results)
    assert set(Counter(name for item in results for name in item).values()) == {2}
    assert {name for item in results for name in item} == set(reading.MISTAKES)


def test_a_plan_of_the_launcher_has_no_mistake_and_its_review_sees_those_planted() -> None:
    for instance in reading.vcpus():
        assert launches.mistakes(reading.make_plan(instance, 2.0), reading.vcpus()) == set()
        assert launch.review(launch.plan("ec2", instance, hours=2.0).as_dict()) == ()
    for name in reading.MISTAKES:
        for other in (False, True):
            plan = json.loads(json.dumps(launch.plan("ec2", "trn1.2xlarge", hours=2.0).as_dict()))
            plan["request"] = plan["requests"]["RunInstances"]
            launches.PLANT[name](plan, other)
            del plan["request"]
            assert launch.review(plan), (name, other)
    assert launches.mistakes(reading.example(), reading.vcpus()) == {"disk", "quota"}


def test_names_of_backends_are_seen_in_code_and_not_in_comments() -> None:
    source = '"""For cuda."""\nimport torch_xla as t  # xla\nkind = "neuron"\nx.cuda()\nf"{x}:cuda"'
    seen = recording.names_of_backends(source)
    assert seen == [["xla", 2], ["neuron", 3], ["cuda", 4], ["cuda", 5]]


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_sentences_are_those_that_lab_04_promises(seed: int) -> None:
    task = tuning.Task(seed=seed)
    lengths = [len(ids) for ids in task.sentences]
    assert len(lengths) == 12 and min(lengths) >= 20 and max(lengths) <= task.longest + 1
    batches = task.batches()
    drawn = [len(ids) for _ in range(10) for ids in batches.next()]
    assert min(drawn) >= 12 and max(drawn) <= task.longest + 1 and len(set(drawn)) > 8


# Earlier answers at grading

LABS = ("lab04", "lab06", "lab08", "lab11")


def solution_of(lab: str) -> dict:
    (path,) = lab_notebooks(ROOT, lab)
    made = json.loads(path.read_text(encoding="utf-8"))
    for cell in made["cells"]:
        cell["source"] = "".join(cell["source"])
    return made


def hand_in(folder: Path, *made: tuple[str, dict]) -> None:
    for name, notebook in made:
        (path,) = lab_notebooks(ROOT, name)
        hostile.hand_in(folder / path.parent.name, notebook, path.name)


HOSTILE = """
import os, sys
import utils.labs.lab15.lives as lives
for place in ("/course/labs/lab08_checkpoint_and_recovery", "/course/utils", "/etc/x"):
    try:
        open(place + "/written", "w")
    except OSError:
        pass
lives.live = lambda *_, **__: {}
print(sorted(os.listdir("/course")), sys.argv)
"""


@pytest.mark.exhaustive
def test_lab_15_is_graded_with_and_without_earlier_notebooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All of them right, or none attempted: test_labs_in_the_sandbox.py. Only exercise 4 uses them.
    run_all = attempts.run_all
    monkeypatch.setattr(
        attempts,
        "run_all",
        lambda notebook, setting, slot: run_all(
            notebook,
            replace(setting, exercises=setting.exercises[3:], environment=fresh.FAST),
            slot,
        ),
    )
    inbox = tmp_path / "inbox"
    lab15, earlier_ones = solution_of("lab15"), [(lab, solution_of(lab)) for lab in LABS]
    hand_in(inbox / "alone", ("lab15", lab15))
    wrong = solution_of("lab08")
    hostile.cell(wrong, "ex1-code")["source"] = changed(
        hostile.cell(wrong, "ex1-code")["source"],
        ('    run.optimizer.load_state_dict(state["optimizer"])\n', ""),
    )
    hand_in(inbox / "forgets", ("lab15", lab15), *earlier_ones[:2], ("lab08", wrong),
            earlier_ones[3])  # fmt: skip
    evil = solution_of("lab06")
    hostile.cell(evil, "ex3-code")["source"] += HOSTILE
    hand_in(inbox / "hostile", ("lab15", lab15), earlier_ones[0], ("lab06", evil),
            *earlier_ones[2:])  # fmt: skip
    rows = batch.grade(inbox, tmp_path / "out", ROOT, "lab15", seed="s", limits=hostile.PATIENT)
    results = {row.record.student: row for row in rows}
    alone = results["alone"]
    assert alone.total == 0 and len([n for n in alone.record.notes if "was handed in" in n]) == 4
    text = " ".join(c.message for c in alone.record.marks[3].criteria)
    assert "lab 08, exercise 1 (save, resume): its notebook is not there" in text
    text = " ".join(c.message for c in results["forgets"].record.marks[3].criteria)
    assert "(lab 08, exercise 1) do not bring back AdamW's moments" in text
    assert 0 < results["forgets"].total < 14
    # What it replaced was put back, so its answer is right; whether that is fair a person decides.
    (mark,) = [m for m in results["hostile"].record.marks if m.exercise.name == "ex4"]
    assert mark.points == 0 and "held back" in mark.cause and "worth 14 points" in mark.private
    assert any("lab06 ex3-code" in sign for sign in results["hostile"].record.signs)
    measured = [c.measured for row in rows for mark in row.record.marks for c in mark.criteria]
    assert len(measured) > 20 and display.HIDDEN not in measured


def test_a_changed_part_is_the_only_one_that_changes(names: dict) -> None:
    mine = with_part(names["mine"], "lab06.ex3", ("repeats: int = 20", "repeats: int = 21"))
    assert mine.bench is not names["mine"].bench and mine.save is names["mine"].save


def test_the_lab_reads_the_notebooks_beside_it_and_says_which_is_missing(tmp_path: Path) -> None:
    for lab in ("lab04", "lab15"):
        (path,) = lab_notebooks(ROOT, lab)
        shutil.copytree(path.parent, tmp_path / path.parent.name)
    mine = earlier.answers(folder=tmp_path / "lab15_torchneuron")
    assert list(mine.functions) == ["bucketed_losses"]
    assert [problem.wanted.lab for problem in mine.problems] == ["lab06", "lab08", "lab11"]
