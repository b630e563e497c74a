"""The pages of a grading: what they say, whether anybody can use them, and what they keep back."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from markupsafe import escape

from tests.browser import launch, violations
from tests.labs.cells import ROOT, Wrong, answer_from, names_of, wrong_entries
from tests.labs.hostile import record_of
from utils.course import catalog
from utils.course.misconceptions import misconceptions
from utils.labs import Criterion, Facts, observe_case
from utils.labs.grading import answers, display, lab, marking, report, similar
from utils.labs.grading.attempts import Attempt
from utils.labs.grading.confine import Limits
from utils.labs.grading.marking import Mark
from utils.labs.grading.records import Graded


@cache
def first_lab() -> lab.Lab:
    """Lab 01, made when a test first asks: every worker collects this file, one runs it."""
    return lab.load(ROOT, "lab01")


def student(number: int, rng: random.Random) -> Graded:
    """Somebody who stops somewhere, with right, wrong and broken answers up to there."""
    stop = rng.randrange(len(first_lab().exercises) + 1)
    marks = []
    for place, exercise in enumerate(first_lab().exercises):
        half = exercise.points / 2
        known = Criterion(
            "bytes", 1, False, "3 of 4", "all", f"{number} bytes are too few", (), 0.5
        )
        other = Criterion("stage", 1, True, "2", "2")
        if place >= stop:
            marks.append(Mark(exercise, "not attempted", 0.0))
        elif rng.random() < 0.1:
            marks.append(Mark(exercise, "error", 0.0, cause="it raised KeyError"))
        elif rng.random() < 0.5:
            marks.append(Mark(exercise, "tried", half * 1.5, (known, other)))
        else:
            marks.append(Mark(exercise, "passed", exercise.points, (other,)))
    points = {mark.exercise.name: mark.points for mark in marks}
    private = ("looks into the check: ex1-code line 3 (_getframe)",) if number % 50 == 0 else ()
    name = f"<b>Student {number}</b>"
    record = record_of(name, tuple(marks), slug=f"s{number}", signs=private)
    return Graded(record, points)


def again(row: Graded, **changes: Any) -> Graded:
    """Somebody of whom something else is known."""
    return replace(row, record=replace(row.record, **changes))


def a_class(count: int) -> Iterator[Graded]:
    rng = random.Random(1)
    return (student(number, rng) for number in range(count))


def test_a_report_says_how_part_points_came_about() -> None:
    """Each criterion's points add up to those of the exercise."""
    row = student(1, random.Random(3))
    tried = next(mark for mark in row.record.marks if mark.state == "tried")
    earned = report.scores(tried)
    assert sum(won for _, won, _ in earned) == tried.points
    assert sum(most for *_, most in earned) == tried.exercise.points
    page = report.student_page(first_lab(), row)
    assert "met in part" in page and "nothing up to half of them" in page
    won, most = (f"{value:g}" for value in earned[0][1:])
    assert f"{won} of {most}</td>" in page
    assert f"met in part: bytes, {won} of {most} points (measured 3 of 4" in report.mark_text(tried)


def test_the_class_page_counts_what_the_records_of_misconceptions_say() -> None:
    own = [r for r in misconceptions("lab01") if "ex3" in {a.exercise for a in r.answers}]
    record = next(r for r in own if "{" not in r.says)
    exercise = first_lab().exercises[2]
    response = Criterion("bytes", 1, False, "", "", record.says)
    unknown = [Criterion("stage", 1, False, "", "", f"found {k}, return a number") for k in (3, 71)]
    marks = {
        "ann": (response, unknown[0]),
        "bob": (response, unknown[1]),
        "cem": (response,),
        "dee": (),
    }
    rows = [row_of(name, exercise, criteria) for name, criteria in marks.items()]
    page = report.class_page(first_lab(), rows)
    wrong = re.findall(r"<summary><strong>(\d+)</strong>: (.*?)</summary>(.*?)</details>", page)
    links = [(int(n), text, re.findall(r"reports/(\w+).html", who)) for n, text, who in wrong]
    assert links == [
        (3, str(escape(record.sentence)), ["ann", "bob", "cem"]),
        (2, "stage: found …, return a number", ["ann", "bob"]),
    ]


def row_of(name: str, exercise: lab.Exercise, criteria: tuple[Criterion, ...]) -> Graded:
    """Somebody who tried one exercise."""
    marks = tuple(
        Mark(e, "tried", 0.0, criteria) if e == exercise else Mark(e, "not attempted", 0.0)
        for e in first_lab().exercises
    )
    points = {mark.exercise.name: mark.points for mark in marks}
    return Graded(record_of(name, marks), points)


def test_the_class_page_says_where_people_stop_and_who_needs_help() -> None:
    done = [row_of(f"s{k}", first_lab().exercises[1], ()) for k in range(7)]
    nothing = row_of("eva", first_lab().exercises[1], ())
    untried = tuple(Mark(mark.exercise, "not attempted", 0.0) for mark in nothing.record.marks)
    page = report.class_page(first_lab(), [*done, again(nothing, marks=untried)])
    assert "<p>Most stop after ex2: 7 of 8.</p>" in page
    assert '<a href="reports/s0.html">s0</a> has 0 of 40 points, stopped after ex2.' in page
    assert '1 tried no exercise: <a href="reports/eva.html">eva</a>.' in page


def test_signs_are_told_to_the_instructor_with_their_reasons() -> None:
    cause = "it replaced 2 parts: its points are held back until an instructor has looked at it"
    notes = (
        "equals the published solution, names aside",
        "its cells replaced parts of the course's own code; put back: 3",
        "its process wrote 4 results that are not the check's; refused",
    )
    row = row_of("ann", first_lab().exercises[0], ())
    held = (
        Mark(first_lab().exercises[0], "error", 0.0, cause=cause, notes=notes),
        *row.record.marks[1:],
    )
    page = report.class_page(first_lab(), [again(row, marks=held, signs=("odd",))])
    signs = page.partition("signs to look at</h2>")[2]
    kinds = re.findall(r'<h3>(.*?): 1 student</h3>\n<p class="note">(.*?)</p>', signs)
    seen = sorted(set(report.SIGNS) - {"looks into the check"})
    assert kinds == [(str(escape(kind)), str(escape(report.SIGNS[kind]))) for kind in seen]


@pytest.mark.parametrize("count", [3000, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_the_class_page_stays_small_however_large_the_class(count: int) -> None:
    summary = report.ClassSummary(first_lab())
    for row in a_class(count):
        summary.add(row)
    page = summary.page()
    assert f"{count} submissions" in page and len(page.encode()) < 600_000
    assert f"The {report.MOST_ROWS} of {count} with the fewest points" in page
    assert page.count('<tr><th scope="row"><a ') == len(summary._fewest) == report.MOST_ROWS
    most_kept = max(row.total for _, _, row in summary._fewest)
    assert sum(row.total < most_kept for row in a_class(count)) <= report.MOST_ROWS
    assert f"looks into the check: {count // 50} students" in page


# In a browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The addresses of a class page, a page on similar answers and a report."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "reports").mkdir()
    rows = list(a_class(12))
    (folder / "class.html").write_text(report.class_page(first_lab(), rows, similar=True))
    pair = similar.Pair("ex3", (0,), (1, 2), 0.8, 40)
    judged = {e.name: 30 for e in first_lab().exercises}
    alike = {e.name: [(0.9, 3)] for e in first_lab().exercises}
    result = similar.Similar(
        [(r.record.student, r.record.slug) for r in rows], [pair], alike, judged
    )
    (folder / "similar.html").write_text(report.similar_page(first_lab(), folder, result))
    (folder / "reports" / "s1.html").write_text(report.student_page(first_lab(), rows[1]))
    return [(folder / n).as_uri() for n in ("class.html", "similar.html", "reports/s1.html")]


def test_pages_shut_nobody_out_in_either_theme_on_a_wide_and_a_narrow_screen(
    pages: list[str],
) -> None:
    with launch() as browser:
        for theme, width in (("light", 1280), ("dark", 390)):
            page = browser.new_page(color_scheme=theme, viewport={"width": width, "height": 900})
            texts: list[str] = []
            page.on("console", lambda message, texts=texts: texts.append(message.text))
            for url in pages:
                page.goto(url)
                page.evaluate("document.querySelectorAll('details').forEach(d => d.open = 1)")
                assert violations(page) == set(), (url, theme, width)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, url
            assert texts == []


def test_tables_are_sorted_by_click_and_by_keyboard_and_stand_without_scripts(
    pages: list[str],
) -> None:
    def totals(page: Any) -> list[float]:
        texts = page.locator("table.sortable").last.locator("tbody tr td:nth-last-child(2)")
        return [float(text) for text in texts.all_inner_texts()]

    with launch() as browser:
        page = browser.new_page()
        page.goto(pages[0])
        before = totals(page)
        head = page.locator("table.sortable").last.get_by_role("button", name="Total")
        head.click()
        assert totals(page) == sorted(before) != before
        head.focus()
        page.keyboard.press("Enter")
        assert totals(page) == sorted(before, reverse=True)
        heading = page.locator("table.sortable").last.locator("th[aria-sort]")
        assert heading.get_attribute("aria-sort") == "descending"
        without = browser.new_page(java_script_enabled=False)
        without.goto(pages[0])
        assert totals(without) == before and without.locator("button").count() == 0


# What reports keep back

SEEDS = ("one grading", "the next")
OTHER_SEEDS = [str(number) for number in range(20)]
"""What is in the cases of all of these was not drawn."""
EACH = 3
"""Wrong answers to each exercise."""


def numbers_in(values: Any) -> set[str]:
    """The numbers of three digits or more in plain values, as a report would write them."""
    if isinstance(values, dict | list | tuple):
        parts = values.values() if isinstance(values, dict) else values
        return {number for part in parts for number in numbers_in(part)}
    if isinstance(values, bool) or not isinstance(values, int | float):
        return numbers_of(values) if isinstance(values, str) else set()
    return numbers_of(f"{abs(values):g}") | numbers_of(str(abs(values)))


def numbers_of(text: str) -> set[str]:
    match = re.findall(r"\d[\d,]*(?:\.\d+)?", text)
    plain = (number.replace(",", "").rstrip(".") for number in match)
    return {number for number in plain if len(number.replace(".", "").lstrip("0")) >= 3}


def graded(lab_of: lab.Lab, wrong: Wrong, answer: Any, hidden: list[Facts]) -> Mark:
    """A wrong answer judged as at grading, but observed here instead of in a sandbox."""
    exercise = next(e for e in lab_of.exercises if e.id == wrong.exercise)
    cells = answers.blank(lab_of).cells
    seen = {
        place: json.loads(json.dumps(observe_case(exercise.id, answer, case)))
        for place, case in enumerate(hidden)
    }
    attempt = Attempt("full", "finished", finished=True, seen=seen)
    return marking.mark(exercise, answers.Notebook(cells), hidden, attempt, None, None, Limits())


def inputs_in_reports(name: str) -> list[tuple[str, str, str]]:
    """The drawn inputs that stand in reports of a lab's wrong answers, each graded by two seeds."""
    lab_of, names = lab.load(ROOT, name), names_of(name)
    leaked = []
    for exercise in lab_of.exercises:
        wrong = [w for w in wrong_entries(name) if w.exercise == exercise.id][:EACH]
        drawn = [marking.cases(exercise.id, seed) for seed in SEEDS]
        fixed = set.intersection(*(numbers_in(marking.cases(exercise.id, s)) for s in OTHER_SEEDS))
        for item in wrong:
            answer = answer_from(item.source, item.exercise, names)
            for hidden in drawn:
                mark = graded(lab_of, item, answer, hidden)
                points = {e.name: mark.points * (e is exercise) for e in lab_of.exercises}
                row = Graded(record_of("ann", (mark,)), points)
                text = report.student_page(lab_of, row).partition("<main>")[2]
                text = re.sub(r"<[^>]*>", " ", text) + report.mark_text(mark)
                response = (numbers_in(hidden) - fixed) & numbers_of(text)
                leaked += [(item.exercise, item.name, number) for number in sorted(response)]
    return leaked


def test_reports_of_wrong_answers_hold_no_input_that_was_drawn() -> None:
    assert numbers_in({"m": 1792, "rates": [0.14, 2.5e-3, True], "name": "p5"}) == {"1792"}
    assert inputs_in_reports("lab01") == []


def test_a_message_that_names_an_input_is_for_the_instructor() -> None:
    wrong = next(w for w in wrong_entries("lab01") if w.name == "always compute")
    answer = answer_from(wrong.source, wrong.exercise, names_of("lab01"))
    drawn = [marking.cases(wrong.exercise, seed) for seed in SEEDS]
    assert drawn[0] != drawn[1]
    for hidden in drawn:
        mark = graded(first_lab(), wrong, answer, hidden)
        (text,) = (c.message for c in mark.criteria if c.name == "bound")
        (whole,) = re.findall(
            r"\d+ × \d+ × \d+ \w+ on one \w+: .*?have the same bound", mark.private
        )
        assert text == re.sub(r"\d{3,}", display.HIDDEN, whole) != whole


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [e.name for e in catalog.labs(ROOT) if e.name != "lab01"])
def test_of_all_labs_too(name: str) -> None:
    assert inputs_in_reports(name) == []
