"""Lab 09: right answers pass however they are written, and a record cannot hold its result."""

import base64
import json
import subprocess
import sys
import zlib
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from tests.labs.cells import answer_from, cases_of, names_of, wrong_entries
from utils.course.catalog import ROOT
from utils.labs import check, judge, limit, observe_case
from utils.labs.grading import display
from utils.labs.kernel_replay import farthest, generator
from utils.labs.lab09 import rows, sums
from utils.labs.lab09.observe import OBSERVERS
from utils.labs.packing import pack, unpack

WRONG = wrong_entries("lab09")


EXERCISES = [f"lab09.{name}" for name in OBSERVERS]

pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab09")


def test_a_result_written_down_beforehand_is_not_the_result(names: dict) -> None:
    """The inputs depend on everything that was recorded, a constant of the kernel included."""
    guess = """
@nki.jit
def column_sums(x):
    out = nl.ndarray((1, x.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    guess = nl.shared_constant(np.full((1, x.shape[1]), GUESS, np.float32))
    tile = nl.ndarray((1, x.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=guess)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
    case = cases_of("lab09.ex5", "public")[0]
    drawn = []
    for number in (1.0, 2.0):
        answer = answer_from(guess.replace("GUESS", str(number)), "lab09.ex5", names)
        facts = observe_case("lab09.ex5", answer, case)["facts"]
        drawn.append(generator(facts).standard_normal(4))
        assert not judge("lab09.ex5").judge(case, facts)[0].passed
    assert not np.array_equal(*drawn)


def test_a_record_that_was_tampered_with_is_refused(names: dict) -> None:
    case = cases_of("lab09.ex1", "public")[0]
    facts = observe_case("lab09.ex1", names["add_rows"], case)["facts"]
    whole, secret = unpack(facts["program"]), "Hidden714"
    spoiled = [{}, None, [], {"instructions": 3}, whole | {"kernel": 7}, whole | {"format": secret}]
    assert judge("lab09.ex1").judge(case, facts | {"program": pack(whole)})[0].passed
    for spoil in [*spoiled, *map(pack, spoiled), pack(whole)[:-9], "{}", "\ud800"]:
        criteria = judge("lab09.ex1").judge(case, facts | {"program": spoil})
        assert not any(criterion.passed for criterion in criteria)
        assert criteria[0].message == "the record of the kernel is not a valid program"
        assert secret not in display.visible(criteria[0].measured)


def test_a_record_with_more_results_than_one_is_refused(names: dict) -> None:
    """They would count as bytes that have to be moved."""
    case = cases_of("lab09.ex1", "public")[0]
    facts = observe_case("lab09.ex1", names["add_rows"], case)["facts"]
    whole = unpack(facts["program"])
    for result in ({"tuple": [whole["results"]] * 2}, {"tuple": []}, None):
        forged = facts | {"program": pack(whole | {"results": result})}
        criteria = judge("lab09.ex1").judge(case, forged)
        assert not any(criterion.passed for criterion in criteria)
        assert criteria[0].message in (
            "the record of the kernel is not a valid program",
            "the kernel does not return exactly one result",
        )


LARGE = "nl.ndarray((2**15, 2**13), dtype=a.dtype, buffer=nl.shared_hbm)"


@pytest.mark.parametrize(
    "large",
    [
        f"dst={LARGE}, src=a.ap(pattern=[[0, 2**15], [0, 2**13]])",
        "dst=out.ap(pattern=[[0, 2**28], [0, 1]]), src=b.ap(pattern=[[0, 2**28]])",
    ],
)
def test_a_record_cannot_fill_the_memory_of_a_judge(large: str, names: dict) -> None:
    source = f"""
@nki.jit
def add_rows(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    nisa.dma_copy({large})
    return out
"""
    case = cases_of("lab09.ex1", "public")[0]
    seen = observe_case("lab09.ex1", answer_from(source, "lab09.ex1", names), case)
    criteria = judge("lab09.ex1").judge(case, seen["facts"])
    assert "far more bytes" in criteria[0].message


def test_a_packed_record_unpacks_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utils.labs.packing.MOST_BYTES", 1000)
    assert unpack(pack("a" * 900)) == "a" * 900
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        unpack(pack("a" * 1100))
    nested = base64.b85encode(zlib.compress(b"[" * 900)).decode()
    with pytest.raises(ValueError, match="not a packed record"):
        unpack(nested)


def test_a_kernel_that_does_not_end_is_stopped_once(
    names: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("utils.labs.limit.SECONDS", 0.1)
    monkeypatch.setattr("utils.labs.limit.within", partial(limit.within, seconds=0.1), raising=True)
    answer = answer_from("def add_rows(a, b):\n    while True:\n        pass", "lab09.ex1", names)
    verdict = check.run("lab09.ex1", answer, 6.0, "public")
    assert verdict.state == "error" and "does each of its loops end?" in verdict.error


def test_judges_need_no_kernel_to_have_run(names: dict) -> None:
    """At grading they run in a process that has imported nothing of NKI."""
    seen = []
    for exercise_id in EXERCISES:
        answer = names[OBSERVERS[exercise_id.partition(".")[2]].answer]
        case = cases_of(exercise_id, "public")[0]
        seen.append([exercise_id, case, observe_case(exercise_id, answer, case)["facts"]])
    code = """
import json, sys
from utils.labs import judge
for exercise_id, case, facts in json.load(sys.stdin):
    failed = [c for c in judge(exercise_id).judge(case, facts) if not c.passed]
    assert not failed, failed
assert "nki" not in sys.modules
"""
    subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(seen), text=True, cwd=ROOT, check=True
    )


def test_a_message_keeps_the_names_of_instructions(names: dict) -> None:
    """The report hides every text of an observation; the record is one text that nobody says."""
    for exercise_id, _, source, _ in WRONG:
        case = cases_of(exercise_id, "public")[0]
        seen = observe_case(exercise_id, answer_from(source, exercise_id, names), case)
        for item in judge(exercise_id).judge(case, seen["facts"]) if "facts" in seen else ():
            if "still fails" not in item.message:
                assert display.message(item.message, [seen]) == display.cut_digits(item.message)
            assert display.is_plain(item.measured), item.measured


def test_tolerances_hold_what_they_say() -> None:
    """A second rounding to BF16 is outside for some rows; any order of an FP32 sum is inside."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((700, 300)).astype(np.float32)
    right = x.astype(np.float64).sum(axis=0)
    forward = np.zeros(300, np.float32)
    for row in x:
        forward += row
    assert farthest(forward, right) < sums.TOLERANCE / 2
    assert farthest(x[::-1].sum(axis=0), right) < sums.TOLERANCE / 2
    assert farthest(x.astype(ml_dtypes.bfloat16).astype(np.float32).sum(axis=0), right) > 1e-4

    e = np.exp(x - x.max(axis=1, keepdims=True))
    good = e / e.sum(axis=1, keepdims=True)
    exact = rows.softmax(x)
    assert farthest(good, exact) < rows.TOLERANCE / 2
    low = e.astype(ml_dtypes.bfloat16).astype(np.float32) / e.sum(axis=1, keepdims=True)
    assert farthest(low, exact) > 100 * rows.TOLERANCE
    once, twice = (item.astype(ml_dtypes.bfloat16) for item in (good, low))
    assert farthest(once, exact, rounded=True) < rows.TOLERANCE / 2
    assert farthest(twice, exact, rounded=True) > 100 * rows.TOLERANCE

    weight = np.ones(300, np.float32)
    scale = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-5))
    assert farthest(x * scale, rows.rms_norm(x, weight, 1e-5)) < rows.TOLERANCE / 2
