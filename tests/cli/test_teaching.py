"""The teacher's kit: complete, made from the course as it is, and readable by everybody."""

import csv
import io
import math
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import launch, violations
from utils.cli.teaching import drawn, exam, kit, slides
from utils.course import catalog, quiz
from utils.course.catalog import ROOT
from utils.course.tracks import tracks

PEOPLE = ["Ada Lovelace", "Alan Turing"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kit") / "class"
    kit.new(place, "half-day", 7, PEOPLE, "09:00", "12 January 2027", "room 101")
    return place


def test_the_command_says_what_it_wrote_and_replaces_nothing(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "course.py"), "class", "new", str(tmp_path / "class")]
    command += ["--track", "workshop", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = "README.md announcements.md checklist.html exam/exam.html exam/key.html guide.html"
    names += " rubric.html slides/00_start_here.html slides/03_lazy_tensors.html"
    expected = [*names.split(), "student_sheet.html", "syllabus.html"]
    lines = [f"  {tmp_path / 'class' / name}" for name in expected]
    last = f"11 files, exam of seed 7; begin with {tmp_path / 'class' / 'README.md'}"
    assert done.stdout.splitlines()[-12:] == [*lines, last]
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 1
    assert again.stderr.endswith("is not empty, and nothing in it is replaced: name a new folder\n")
    assert [path.name for path in tmp_path.iterdir()] == ["class"]


def test_what_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place, track, start, message in (
        (tmp_path / "file", "workshop", "09:00", "nothing in it is replaced"),
        (tmp_path / "a", "year", "09:00", "no track 'year'; there are course, workshop, half-day"),
        (tmp_path / "a", "workshop", "9 am", "'9 am' is not a time of the day"),
    ):
        with pytest.raises(kit.KitError, match=message):
            kit.new(place, track, 1, start=start)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "has no names"),
        ("Ada\n Ada \n", "'Ada' twice"),
        ("Ada,ada@example.org", "is no name"),
        ("=1+1", "is no name"),
        ("<b>", "is no name"),
    ],
)
def test_a_list_that_is_none_of_names_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "names.txt").write_text(text)
    with pytest.raises(kit.KitError, match=message):
        kit.read_people(tmp_path / "names.txt")


def test_names_are_read_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("﻿Ada  Lovelace\n\nÉmilie du Châtelet\r\n", "utf-8")
    assert kit.read_people(tmp_path / "names.txt") == ["Ada Lovelace", "Émilie du Châtelet"]


def test_a_day_has_breaks_and_lunch() -> None:
    half = kit.timetable(tracks()["half-day"].stops, "09:00", False)
    minutes = {stop.id: stop.minutes for stop in tracks()["half-day"].stops}
    assert [what.split(":")[0] for _, _, what in half] == [
        "Lesson 00", "Lesson 02", "Lab 02, exercise 1", "Break", "Lesson 03", "Lab 03, exercise 1",
        "Lab 03, exercise 2", "Break", "Lesson 04", "Lab 04, exercise 1", "End",
    ]  # fmt: skip
    assert sum(length for _, length, _ in half) == sum(minutes.values()) + 2 * kit.BREAK
    day = kit.timetable(tracks()["two-days"].parts[0], "08:30", True)
    assert [what for _, _, what in day].count("Lunch") == 1
    clock = [int(at[:2]) * 60 + int(at[3:]) for at, _, _ in day]
    assert [b - a for a, b in zip(clock, clock[1:], strict=False)] == [row[1] for row in day[:-1]]
    assert 11 * 60 <= clock[[what for _, _, what in day].index("Lunch")] <= 13 * 60 + 30
    # Nobody sits longer than this without a break, unless one lesson takes longer.
    assert not any(
        "Break" in what for _, _, what in kit.timetable(tracks()["workshop"].stops, "09:00", False)
    )


def test_a_semester_is_a_table_of_weeks() -> None:
    rows = list(kit.weeks(tracks()["course"]))
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    lesson, lab = catalog.lessons()[2], catalog.lab("lab02")
    assert rows[1][1:3] == (f"02 {lesson.title}", lesson.minutes)
    assert rows[1][3:] == ("lab 02", sum(item.minutes for item in lab.exercises))


def test_an_exam_follows_its_seed_and_has_its_own_order_for_each_person() -> None:
    one, two = exam.versions(["02", "03", "04"], 7, PEOPLE)
    assert exam.versions(["02", "03", "04"], 7, PEOPLE) == [one, two]
    assert exam.versions(["02", "03", "04"], 8, PEOPLE)[0] != one
    assert (len(one.questions), one.points, one.minutes) == (11, 13, 25)
    assert {q.source for q in one.questions} == {q.source for q in two.questions}
    assert [q.source for q in one.questions] != [q.source for q in two.questions]
    numbers = {q.source: q.prompt for q in one.questions if not q.options}
    assert len(numbers) == 2
    assert all(q.prompt != numbers[q.source] for q in two.questions if not q.options)
    with pytest.raises(ValueError, match="no lesson of 00 has a quiz"):
        exam.versions(["00"], 7)


def test_letters_of_the_key_are_right() -> None:
    every = [lesson.number for lesson in catalog.lessons()]
    checked = 0
    for version in exam.versions(every, 3):
        for question in version.questions:
            if not question.options:
                continue
            notebook = re.sub(r"(lesson|lab) (\d\d), quiz .*", r"\1\2", question.source)
            name = question.source.rpartition(" ")[2]
            item = quiz.questions(notebook).quiz[name]
            chosen = question.options[exam.LETTERS.index(question.answer)]
            own = next(key for key, (text, _) in item.options.items() if text == chosen)
            assert quiz.digest(notebook, name, own) == item.digest
            checked += 1
    assert checked == 2 * (len(every) - 1)


def numbers(text: str) -> list[float]:
    return [float(item) for item in re.findall(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)]


def test_drawn_answers_are_right() -> None:
    """Each is computed again from the numbers in its own text, by another way."""
    for seed in range(20):
        rng = random.Random(seed)
        prompt, answer, _ = drawn.executions(rng)
        steps, every = numbers(prompt)[:2]
        extra = len([s for s in range(1, int(steps) + 1) if s % every == 0]) * ("before" in prompt)
        assert int(answer) == steps + extra
        prompt, answer, _ = drawn.product(rng)
        m, k, _, n, *_ = numbers(re.sub(r"bf16|fp32|fp16|fp8|tf32", "", prompt))
        dtype = re.search(r" in (\w+) runs", prompt)[1]
        width = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1}[dtype]
        rate, bandwidth = numbers(re.search(r"computes .*? TB", prompt)[0])
        times = {
            "compute": 2 * m * k * n / rate / 1e6,
            "memory": (m * k + k * n + m * n) * width / bandwidth / 1e6,
        }
        limit, shown = answer.split(", ")
        assert limit == max(times, key=lambda name: times[name])
        assert numbers(shown)[0] == pytest.approx(times[limit], rel=0.006)
        prompt, answer, _ = drawn.ring(rng)
        chips, size, rate, latency = numbers(prompt)
        right = 2 * (chips - 1) * (latency / 1e3 + size / chips / rate)
        assert numbers(answer)[0] == pytest.approx(right, rel=0.006)
        prompt, answer, _ = drawn.interval(rng)
        minutes, between = numbers(prompt)
        assert numbers(answer)[0] == pytest.approx((2 * minutes / 60 * between) ** 0.5, rel=0.01)
        prompt, answer, _ = drawn.million_tokens(rng)
        _, servers, rate, start, used, price = numbers(prompt)[:6]
        billion = numbers(prompt)[0]
        hours = (billion * 1e9 / servers / rate / 3600 + start) / (used / 100)
        assert float(answer) == pytest.approx(hours * servers * price / billion / 1e3, rel=0.001)
        prompt, answer, _ = drawn.percentile(rng)
        *samples, share = numbers(prompt)[:21]
        share = numbers(prompt.partition("p")[2])[0]
        below = [x for x in samples if sum(y <= x for y in samples) >= share / 100 * 20]
        assert numbers(answer)[0] == min(below)
        prompt, answer, _ = drawn.tiles(rng)
        rows = int(numbers(prompt)[0])
        assert numbers(answer) == [len(range(0, rows, 128)), rows - 128 * (rows // 128)]
        prompt, answer, _ = drawn.cache(rng)
        layers, heads, width, _, room = numbers(prompt)[:5]
        size = 4 * layers * heads * width
        assert numbers(answer) == [size, room * 1e9 // size]


def test_buckets_and_rounding_by_hand() -> None:
    prompt, answer, why = drawn.buckets(random.Random(1))
    assert prompt.startswith(
        "Sequences of 85, 50, 146, 214, 135, 140, 186, 117 tokens are padded to the buckets 60, 80,"
        " 220 and"
    )
    assert (answer, why.partition(": ")[2]) == ("2 graphs, 32.9% padding", "1600 tokens for 1073")
    # Between 16 and 32 the step is 0.125, and 0.025 is less than half of it.
    prompt, answer, _ = drawn.rounding(random.Random(1))
    assert prompt.startswith("A weight in BF16 is 16, and 0.025 is added to it") and answer == "16"
    results = {drawn.rounding(random.Random(seed))[:2] for seed in range(40)}
    up = [float(answer) for prompt, answer in results if float(answer) != numbers(prompt)[1]]
    assert 10 < len(up) < 30 and all(math.log2(value) % 1 for value in up)


def test_slides_have_every_section_and_keep_results_closed(folder: Path) -> None:
    lesson = next(item for item in catalog.lessons() if item.number == "03")
    made = slides.slides(lesson)
    assert [slide.title for slide in made[:4]] == [
        "03 · Lazy tensors and torch_xla.sync()", "What you will be able to do",
        "Move this first", "1 Record now, run later",
    ]  # fmt: skip
    assert made[-1].title.startswith("10 ") and len(made) == 13
    first = made[3]
    assert [item.what for item in first.asked] == ["nodes of the graph of y"]
    assert first.measured["nodes of the graph of y"] == "8"
    page = (folder / "slides" / "03_lazy_tensors.html").read_text()
    assert page.count("<section>") == 13 + 2 and page.count('<details class="notes">') == 13
    # Whatever shows the number that is asked for is closed.
    own = page.split("<section>")[4]
    before, result = own.split('<details class="result">')
    assert "<img" not in before and "<img" in result.split("</details>")[0]
    assert "you counted the operations; inputs and constants are nodes too" in own
    assert page.count("Now you: lab 03, exercise ") == 2
    # What the lesson says after a prediction stands in the notes alone.
    (third,) = (slide for slide in made if slide.title.startswith("3 "))
    assert "stays pending" in third.notes and "stays pending" not in third.text


def test_each_lesson_has_slides_a_prediction_and_advice() -> None:
    lessons = [lesson.number for lesson in catalog.lessons()]
    assert list(kit.advice()) == lessons
    for lesson in catalog.lessons():
        made = slides.slides(lesson)
        asked = [item.what for slide in made for item in slide.asked]
        measured = {what for slide in made for what in slide.measured}
        assert asked and set(asked) <= measured, lesson.number
        assert not [s.title for s in made if not s.text.strip()], lesson.number
        assert len(kit.objectives(lesson)) >= 3, lesson.number
    assert all(len(entry.questions) >= 2 for entry in kit.advice().values())


def test_each_exercise_has_its_criteria_and_its_usual_mistakes() -> None:
    for lab in catalog.labs():
        for exercise in lab.exercises:
            text = kit.criteria(exercise)
            assert "Measured" in text and "Passed" in text and text[-1] in ".:;)", exercise.id
            assert kit.wrong_answers(exercise), exercise.id


def test_pages_name_what_the_class_does(folder: Path) -> None:
    read = {path.name: path.read_text() for path in folder.rglob("*.*") if path.is_file()}
    for name in ("syllabus.html", "guide.html"):
        assert all(lesson in read[name] for lesson in ("00", "02", "03", "04"))
    assert read["rubric.html"].count("<tr>") == 1 + 4 + 1 + 1 + 4
    assert "lab03.ex1" in read["rubric.html"] and "lab05" not in read["rubric.html"]
    assert (
        read["announcements.md"].count("12 January 2027") == 2
        and "[DATE]" in read["announcements.md"]
    )
    grading = re.findall("--out graded/(.*) --lab (.*)", read["README.md"])
    assert grading == [(lab, lab) for lab in ("lab02", "lab03", "lab04")]
    rows = list(csv.reader(io.StringIO(read["people.csv"])))
    assert rows[0] == ["name", "set up", *rows[0][2:5], "exam", "remarks"]
    assert rows[0][2:5] == ["lab02 (of 6)", "lab03 (of 14)", "lab04 (of 8)"]
    assert [row[0] for row in rows[1:]] == PEOPLE
    assert read["exam.html"].count("<section>") == 2
    # The exam has no answers, and the key has each.
    assert "Keep this page" in read["key.html"] and read["key.html"].count("<tr>") == 2 * 12
    assert "drawn</td>" not in read["exam.html"]
    assert not re.findall(r"""(?:src|href)=["']?(?!data:)[a-z]+:""", "".join(read.values()))


def test_pages_can_be_read_printed_and_presented(folder: Path, tmp_path: Path) -> None:
    from pypdf import PdfReader

    with launch() as browser:
        phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        pages = [
            *folder.glob("*.html"),
            *folder.glob("exam/*.html"),
            folder / "slides/03_lazy_tensors.html",
        ]
        for path in pages:
            phone.goto(path.as_uri())
            assert phone.evaluate("document.documentElement.scrollWidth") <= 390, path.name
            assert violations(phone) == set(), path.name
        page = browser.new_page()
        page.goto((folder / "student_sheet.html").as_uri())
        page.pdf(path=tmp_path / "sheet.pdf", prefer_css_page_size=True)
        assert len(PdfReader(tmp_path / "sheet.pdf").pages) == 1

        page.goto((folder / "slides/03_lazy_tensors.html").as_uri())
        assert page.locator("section:visible h1").inner_text().startswith("03 ")
        for _ in range(3):
            page.keyboard.press("PageDown")
        assert page.locator("section:visible").count() == 1
        assert page.locator("section:visible h2").inner_text() == "1 Record now, run later"
        assert not page.locator("section:visible img").is_visible()
        page.keyboard.press("r")
        assert page.locator("section:visible img").is_visible()
        with page.expect_popup() as popup:
            page.keyboard.press("s")
        notes = popup.value
        notes.locator("section.now .notes").get_by_text("is lazy: an operation").wait_for()
        page.keyboard.press("ArrowRight")
        notes.locator("section.now h2", has_text="2 What makes it run").wait_for()
        notes.keyboard.press("ArrowLeft")
        page.locator("section.now h2", has_text="1 Record now, run later").wait_for()
        without = browser.new_context(java_script_enabled=False).new_page()
        without.goto((folder / "slides/03_lazy_tensors.html").as_uri())
        assert without.locator("section:visible").count() == 15
