"""The quiz answers with feedback and never gives the right letter away."""

from pathlib import Path

import pytest

from utils.course import catalog
from utils.course import quiz as module
from utils.course.catalog import ROOT
from utils.course.quiz import digest, questions, quiz

NOTEBOOKS = sorted(path.stem for path in module.FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_exactly_one_option_is_right_and_each_has_an_answer(notebook: str) -> None:
    for name, question in questions(notebook).quiz.items():
        right = [x for x in question.options if digest(notebook, name, x) == question.digest]
        assert len(right) == 1, f"{notebook} {name}: {right} match the digest"
        assert all(text and feedback for text, feedback in question.options.values()), name


def test_every_lesson_and_lab_has_a_quiz() -> None:
    lessons = [f"lesson{lesson.number}" for lesson in catalog.lessons(ROOT)[1:]]  # not the first
    assert NOTEBOOKS == [*(lab.name for lab in catalog.labs(ROOT)), *lessons]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("quiz: {q1: {prompt: Why?, options: {}}}", r"missing required field `digest`.*quiz"),
        ("claims: {}", "missing required field `quiz`"),
        ("quiz: {}\nclaim: {}", "unknown field `claim`"),
        ("quiz: {q1: {prompt: Why?, options: {a: [10, no]}, digest: x}}", "Expected `str`, got"),
    ],
)
def test_a_file_with_a_fault_is_named_with_it(tmp_path, monkeypatch, content, says) -> None:
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    (tmp_path / "lab98.yaml").write_text(content)
    with pytest.raises(ValueError, match=rf"lab98\.yaml: .*{says}"):
        questions("lab98")


def test_unanswered_questions_show_their_options(course: Path) -> None:
    text = repr(quiz("lab99"))
    assert "q1  What is twice two?" in text and "b)  four" in text
    assert text.count("→ choose one of a, b") == 2


def test_right_and_wrong_answers_get_their_own_feedback(course: Path) -> None:
    text = repr(quiz("lab99", q1=" B", q2="b"))
    assert "→ b is right. 2 + 2" in text
    assert "→ b is not it. count again" in text


def test_a_wrong_answer_does_not_reveal_the_right_one(course: Path) -> None:
    shown = quiz("lab99", q1="a")
    assert "2 + 2" not in shown.text + shown.html


def test_letters_and_questions_that_do_not_exist_are_named(course: Path) -> None:
    text = repr(quiz("lab99", q1="z", q9="a"))
    assert "'z' is not an option here: choose one of a, b" in text
    assert text.startswith("there is no q9: the questions are q1, q2\n")


def test_html_says_the_same_and_is_escaped(course: Path) -> None:
    html = quiz("lab99", q1="b")._repr_html_()
    assert "twice &lt;three&gt;?" in html and "b is right" in html


def test_an_unknown_lab_is_a_message(course: Path) -> None:
    assert "there is no quiz for 'lab77'" in repr(quiz("lab77", q1="a"))


def test_a_quiz_of_nothing_is_one_sentence(course: Path) -> None:
    names = 'name a notebook, as in quiz("lab03"), quiz("lesson03")'
    assert repr(quiz()) == f"quiz(): {names}"
    assert repr(quiz(3)) == f"quiz(3): {names}"
