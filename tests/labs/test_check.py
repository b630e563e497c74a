"""Checks find the answer, judge it, show a card and record it, whatever the answer does."""

import _thread
import linecache
import threading
from pathlib import Path

import pytest

from tests.labs.cells import cases_of
from utils.course import catalog, progress, tracks
from utils.course.cells import Cells
from utils.course.shown import html_table
from utils.labs import Verdict, rerun
from utils.labs.check import CheckFailed, card, check, failing_case
from utils.labs.criteria import all_right
from utils.labs.values import right_values

pytestmark = pytest.mark.usefixtures("relaxed")


def define(source: str) -> dict:
    namespace: dict = {}
    exec(compile(source, "<cell>", "exec"), namespace)
    return namespace


RIGHT = define(
    "def double(number): return 2 * number\n"
    "def mean(read, count): return sum(read(i) for i in range(count)) / count"
)


def test_a_right_answer_passes_and_points_to_the_next_exercise(course: Path) -> None:
    card = check("lab99.ex1", RIGHT, course)
    assert repr(card).splitlines() == [
        "lab99.ex1 · Twice · passed · 4 of 4 points",
        "  ✓  value  measured 120  target 120  ok",
        "  next: lab99.ex2 · Mean",
    ]
    assert "passed; next: the quiz below" in repr(check("lab99.ex2", RIGHT, course))


def test_the_card_is_the_same_at_every_run(course: Path) -> None:
    first = check("lab99.ex2", RIGHT, course)
    assert first == check("lab99.ex2", RIGHT, course)


def test_a_wrong_answer_shows_measured_target_case_message_and_next_step(course: Path) -> None:
    namespace = define(
        "def mean(read, count):\n"
        "    [read(i) for i in range(count)]\n"
        "    return sum(read(i) for i in range(count)) / count"
    )
    text = repr(check("lab99.ex2", namespace, course))
    assert "lab99.ex2 · Mean · tried · 6 of 8 points" in text
    assert "✓  mean" in text
    assert "✗  reads  measured 2  target at most 1  not yet" in text
    assert "smallest case that fails: values = [" in text
    assert "reads: each value is read once" in text
    assert "next: open hint 1 of 3 below" in text
    assert "hint 2 of 3" in repr(check("lab99.ex2", namespace, course))


def test_html_says_the_same_as_the_text_and_is_escaped(course: Path) -> None:
    namespace = define("def double(number): raise ValueError('<b>&')")
    card = check("lab99.ex1", namespace, course)
    assert "ValueError: <b>&amp;" not in card._repr_html_()
    assert "ValueError: &lt;b&gt;&amp;" in card._repr_html_()
    assert "ValueError: <b>&" in repr(card)


def test_an_undefined_answer_is_told_to_run_the_cell(course: Path) -> None:
    text = repr(check("lab99.ex1", {}, course))
    assert "not defined · 0 of 4 points" in text
    assert "`double` is not defined in this notebook: run the cell above" in text
    assert progress.entries(course) == {}


def test_an_answer_that_is_no_function_is_named(course: Path) -> None:
    assert "`double` is 14 (int), not a function" in repr(
        check("lab99.ex1", {"double": 14}, course)
    )


def test_an_untouched_exercise_is_not_attempted_and_not_recorded(course: Path) -> None:
    namespace = define(
        "def double(number): raise NotImplementedError('lab99.ex1: not attempted yet')"
    )
    card = check("lab99.ex1", namespace, course)
    assert card.verdict.state == "not attempted"
    assert "not attempted · 0 of 4 points" in repr(card)
    assert "replace the line that raises NotImplementedError" in repr(card)
    assert progress.entries(course) == {}


def test_an_answer_that_calls_an_untouched_exercise_was_attempted(course: Path) -> None:
    namespace = define(
        "def mean(): raise NotImplementedError('lab99.ex2: not attempted yet')\n"
        "def double(number): return mean()"
    )
    card = check("lab99.ex1", namespace, course)
    assert card.verdict.state == "error"
    assert "lab99.ex2: not attempted yet" in repr(card)


def test_a_renamed_answer_is_noticed(course: Path) -> None:
    wrong, typo = (
        "def double(number):\n    return number",
        "def dubble(number):\n    return 2 * number",
    )
    namespace = define(wrong) | {"In": ["", wrong, typo]}
    text = repr(check("lab99.ex1", namespace, course))
    assert "defines `dubble`: this check uses the `double` of an earlier run" in text
    namespace["In"].append(wrong)
    assert "dubble" not in repr(check("lab99.ex1", namespace, course))


RENAMED = {
    "another name": ("def dubble(number):\n    return 2 * number", "defines `dubble`"),
    "no name at all": ("2 * 3", "defines nothing, or ended in a SyntaxError"),
    "no Python": ("def double(number:", "defines nothing, or ended in a SyntaxError"),
}


@pytest.mark.parametrize("edited", RENAMED)
def test_an_answer_left_by_an_earlier_version_of_its_cell_is_not_judged(
    course: Path, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    source, says = RENAMED[edited]
    known = Cells()
    monkeypatch.setattr("utils.labs.check.cells", known)
    right = "def double(number):\n    return 2 * number"
    known.ran("imports", "import math")
    known.ran("ex1-code", right)
    assert check("lab99.ex1", RIGHT, course).verdict.state == "passed"

    known.ran("ex1-code", source)
    card = check("lab99.ex1", RIGHT, course)
    assert card.verdict is None
    assert "lab99.ex1 · Twice · not defined · 0 of 4 points" in card.text
    assert f"no cell defines `double` any more: the cell that did {says}" in card.text

    known.ran("a cell of mine", right)  # it may stand in another cell
    assert check("lab99.ex1", RIGHT, course).verdict.state == "passed"


def test_the_kernel_says_which_names_a_cell_defines(monkeypatch: pytest.MonkeyPatch) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    monkeypatch.setattr("utils.course.cells.running_shell", lambda: shell)
    known = Cells()
    known.watch()
    known.watch()  # as when the first cell is run again
    for source in ("double = 1\n%time mean = 2", "double = 1", "dubble = 1", "double = ("):
        shell.run_cell(source, cell_id="ex1-code")
        shell.run_cell("_ = 0")  # from a front end without ids
        if source == "double = 1":
            assert known.left_over("double") is None
    assert known.latest == {"ex1-code": set()}
    shell.run_cell("%%time\ndouble = 1", cell_id="ex1-code")
    assert known.left_over("double") is None
    shell.run_cell("exec('double = 1')", cell_id="ex1-code")
    assert known.left_over("double") is None
    shell.run_cell("single = 1", cell_id="ex1-code")
    assert known.left_over("double") == ["single"]
    shell.run_cell("", cell_id="ex1-code")
    assert known.left_over("double") == []
    assert known.left_over("math") is None  # never defined by a cell


def test_an_error_names_what_was_raised_where_and_for_which_input(course: Path) -> None:
    namespace = define("def double(number):\n    return number.twice()")
    text = repr(check("lab99.ex1", namespace, course))
    assert "lab99.ex1 · Twice · error · 0 of 4 points" in text
    assert "AttributeError: 'int' object has no attribute 'twice' (line 2" in text
    assert "this happened for number = 5" in text
    assert "Traceback" not in text
    assert progress.entries(course)["lab99.ex1"]["state"] == "error"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("return {1, 2}", "cannot be compared: Object of type set"),
        ("return double(number)", "RecursionError"),
        ("return None", "✗  value  measured None"),
    ],
)
def test_odd_answers_end_in_a_card(course: Path, body: str, expected: str) -> None:
    assert expected in repr(check("lab99.ex1", define(f"def double(number): {body}"), course))


def test_a_value_that_the_judgement_cannot_handle_ends_in_a_card(course: Path) -> None:
    text = repr(check("lab99.ex2", define("def mean(read, count): return 'much'"), course))
    assert "what the answer returned cannot be judged: ValueError" in text


@pytest.mark.parametrize("wrong", ["lab99.ex9", "lab98.ex1", "ex1", "lab9.ex1"])
def test_a_wrong_id_says_which_there_are(course: Path, wrong) -> None:
    card = check(wrong, RIGHT, course)
    assert card.verdict is None and "there is no" in repr(card) and "lab99" in repr(card)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("ex1", "lab99.ex1"), ("lab9.ex2", "lab99.ex2"), ("Lab99.ex2", "lab99.ex2")],
)
def test_a_wrong_id_names_the_nearest(course: Path, wrong: str, meant: str) -> None:
    assert f'Did you mean check("{meant}")?' in repr(check(wrong, RIGHT, course))


def test_no_id_at_all_is_one_sentence(course: Path) -> None:
    which = 'say which exercise is to be checked, such as check("lab99.ex1")'
    assert repr(check(root=course)) == f"check(): {which}"
    assert repr(check(3, RIGHT, course)) == f"check(3): {which}"
    assert repr(check(None, RIGHT, course)) == f"check(None): {which}"


def test_all_rows_are_of_the_smallest_case_that_fails(course: Path) -> None:
    """A criterion that is met there and fails later is failed, and says for which case."""
    namespace = define(
        "def mean(read, count):\n"
        "    if count == 1:\n"
        "        return read(0) + 1\n"
        "    [read(i) for i in range(count)]\n"
        "    return sum(read(i) for i in range(count)) / count + 2"
    )
    card = check("lab99.ex2", namespace, course)
    small, large = card.verdict.failing_case["values"], card.verdict.cases[1]["values"]
    assert (len(small), len(large)) == (1, 4) and card.verdict.points == 0
    # A grading report shows the criteria alone: hidden inputs are never in them.
    assert card.verdict.criteria[1].message == "each value is read once"
    assert [" ".join(line.split()) for line in repr(card).splitlines()[:6]] == [
        "mean: off",
        "lab99.ex2 · Mean · tried · 0 of 8 points",
        f"✗ mean measured {small[0] + 1} target {small[0]} not yet",
        "✗ reads measured 8 target at most 4 not yet in a larger case",
        f"smallest case that fails: values = {small}",
        f"reads: for values = {large}: each value is read once",
    ]


@pytest.mark.usefixtures("interruptible")
def test_an_endless_answer_can_be_stopped(course: Path, monkeypatch) -> None:
    source = "def double(number):\n    interrupt_soon()\n    while True: pass"
    monkeypatch.setitem(linecache.cache, "<cell>", (0, None, source.splitlines(True), "<cell>"))
    endless = define(source)
    endless["interrupt_soon"] = lambda: threading.Timer(0.1, _thread.interrupt_main).start()
    text = repr(check("lab99.ex1", endless, course))
    assert "stopped by you in line 3: while True: pass" in text
    assert "0 of 4 points" in text and "Traceback" not in text
    assert progress.entries(course)["lab99.ex1"]["attempts"] == 1
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(CheckFailed, match="stopped by you in line 3"):
        check("lab99.ex1", endless, course)


def test_a_worse_attempt_says_that_the_best_is_kept(course: Path) -> None:
    check("lab99.ex1", RIGHT, course)
    worse = repr(check("lab99.ex1", define("def double(number): return 0"), course))
    assert "0 of 4 points" in worse and "your best so far, 4 of 4, is kept" in worse
    assert "best so far" not in repr(check("lab99.ex1", RIGHT, course))


def test_next_never_skips_what_is_open(course: Path) -> None:
    assert "next: lab99.ex1 · Twice" in repr(check("lab99.ex2", RIGHT, course))


def test_next_stays_on_the_track(course: Path) -> None:
    text = (course / tracks.FILE).read_text()
    short = text.replace("all:", "short:").replace(", lab99.ex2", "")
    (course / tracks.FILE).write_text(text + short)
    progress.choose("short", course)
    assert "of your track in lab99 is passed" in repr(check("lab99.ex1", RIGHT, course))
    progress.choose("all", course)
    assert "next: lab99.ex2" in repr(check("lab99.ex1", RIGHT, course))


def test_after_full_marks_no_hint_is_proposed(course: Path) -> None:
    check("lab99.ex1", RIGHT, course)
    text = repr(check("lab99.ex1", define("def double(number): return 0"), course))
    assert "hint" not in text and "next: lab99.ex2" in text


def test_the_diagnosis_comes_first_and_yours_stands_beside_what_is_expected(course: Path) -> None:
    values = right_values("times", 1, [1.0, 2.5], [1.0, 2.0], ["a", "b"], [[], []], "add it once")
    verdict = Verdict(
        "lab99.ex1", "tried", 0.0, 4.0, (values,), {"number": 5}, cases=({"number": 5},)
    )
    shown = card(catalog.exercise("lab99.ex1", course), verdict, 1, "", course)
    assert [" ".join(line.split()) for line in shown.text.splitlines()] == [
        "times: add it once",
        "lab99.ex1 · Twice · tried · 0 of 4 points",
        "✗ times measured 1 of 2 target all, to 0.1% not yet",
        "smallest case that fails: number = 5",
        "for yours expected",
        "b 2.5 2",
        "`double(*check.failing_case())` makes that call again",
        "next: open hint 1 of 3 below, change the answer, run its cell, then this check",
    ]
    assert shown._repr_html_().startswith("<div><b>times: add it once</b></div><table>")


def test_the_failing_call_can_be_made_again(course: Path) -> None:
    with pytest.raises(LookupError, match="no case of lab99.ex2 failed"):
        failing_case("lab99.ex2")
    wrong = define("def mean(read, count): return read(0) if count > 1 else sum([read(0)])")
    large = check("lab99.ex2", wrong, course).verdict.failing_case["values"]
    check("lab99.ex1", RIGHT, course)
    assert RIGHT["mean"](*failing_case()) == sum(large) / len(large)
    check("lab99.ex2", RIGHT, course)
    with pytest.raises(LookupError, match="run a check first"):
        failing_case("lab99.ex2")


def test_the_call_that_raised_is_the_one_that_is_made_again() -> None:
    case = cases_of("lab01.ex2", "public")[0]
    wanted = (case["sheet"], *case["queries"][2])
    refuse = f"    if query == {tuple(case['queries'][2])!r}: raise KeyError\n    return 1.0"
    answer = define(f"def ridge(sheet, *query):\n{refuse}")["ridge"]
    assert rerun.arguments("lab01.ex2", answer, case, -1) == wanted


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("(): return 1", "keep the line with `def`"),
        ("(number): return [number][1:].sort().pop()", "a function without `return` gives None"),
        ("(number): return double.answer", "has no attribute 'answer'"),
    ],
)
def test_what_is_raised_is_in_words(course: Path, body: str, words: str) -> None:
    assert words in repr(check("lab99.ex1", define(f"def double{body}"), course)).splitlines()[0]


def test_an_input_that_is_changed_in_place_is_named() -> None:
    namespace = define(
        "def gemm_times(sheet, gemms):\n    gemms.pop()\n    return [(1.0, 'memory')] * 6\n"
        "def neither(sheet, gemms):\n    return gemms[1:]"
    )
    case = cases_of("lab01.ex1", "public")[0]
    assert rerun.changed_input("lab01.ex1", namespace["gemm_times"], case) == "gemms"
    assert rerun.changed_input("lab01.ex1", namespace["neither"], case) == ""


def test_what_is_right_in_part_earns_its_part_and_a_constant_nothing() -> None:
    right, labels, ways = [float(n) for n in range(8)], list("abcdefgh"), [[]] * 8
    partly = right_values("sum", 1, [*right[:6], -6.0, -7.0], right, labels, ways, "")
    assert (partly.share, partly.rows[0], partly.call) == (0.5, ("g", "-6", "6"), 6)
    assert all_right("bound", 1, [0], 8, "", response=["compute"] * 8).share == 0
    assert right_values("sum", 1, right, right, labels, ways, "").share == 0


def test_when_all_is_passed_no_next_exercise_is_named(course: Path) -> None:
    check("lab99.ex2", RIGHT, course)
    text = repr(check("lab99.ex1", RIGHT, course))
    assert "every exercise of lab99 is passed; next: the quiz below" in text
    assert "lab99.ex2" not in text


def test_html_has_code_no_empty_column_and_no_word_twice(course: Path) -> None:
    html = check("lab99.ex1", {}, course)._repr_html_()
    assert "<code>double</code> is not defined" in html
    html = check("lab99.ex1", RIGHT, course)._repr_html_()
    assert "<td" in html and ">120</td>" in html and "measured 120" not in html
    assert html_table(("a", "b"), [("1", ""), ("`2`", "")], "c").count("<th") == 2  # with thead
    assert "<code>2</code>" in html_table(("a", "b"), [("1", ""), ("`2`", "")], "c")


@pytest.mark.parametrize(
    ("exercise", "namespace"),
    [("lab99.ex1", {}), ("lab99.ex9", RIGHT), ("lab99.ex1", {"double": 1})],
)
def test_strict_mode_raises_with_the_card(course: Path, monkeypatch, exercise, namespace) -> None:
    card = check(exercise, namespace, course)
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(CheckFailed) as error:
        check(exercise, namespace, course)
    assert str(error.value) == card.text
    assert check("lab99.ex1", RIGHT, course).verdict.state == "passed"


def test_without_a_namespace_the_notebooks_own_is_searched(course: Path, monkeypatch) -> None:
    import __main__

    monkeypatch.setattr(__main__, "double", RIGHT["double"], raising=False)
    assert check("lab99.ex1", root=course).verdict.state == "passed"
