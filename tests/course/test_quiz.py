"""The quiz answers with feedback and never gives the right letter away."""

from pathlib import Path

from utils.course.quiz import quiz


def test_unanswered_questions_show_their_options(course: Path) -> None:
    text = repr(quiz("lab99"))
    assert "q1  What is twice two?" in text and "b  four" in text
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
