"""Predictions, measured numbers, the recap, and what a learner changes with a widget."""

import pytest

from utils.course import lesson
from utils.course.shown import Shown
from utils.show.draw import Picture
from utils.show.widgets import explore


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(lesson, "_predictions", {})
    monkeypatch.setattr(lesson, "_lines", {})
    monkeypatch.delenv("COURSE_STRICT", raising=False)


def test_a_prediction_stands_beside_the_measurement(capsys):
    lesson.predict(reads=5)
    lesson.measured("reads", "three reads: executions", 3, says=3)
    lesson.measured("other", "a number nobody predicted", 7)
    assert capsys.readouterr().out.splitlines() == [
        "you predict reads: 5",
        "three reads: executions: 3 (you predicted 5)",
        "a number nobody predicted: 7",
    ]
    assert lesson.Recap()._repr_markdown_().splitlines()[2:] == [
        "| three reads: executions | 5 | 3 |",
        "| a number nobody predicted | no guess | 7 |",
    ]


@pytest.mark.parametrize("wrong", ["two", -1, True, [1], float("nan"), float("inf")])
def test_what_is_no_number_is_said_and_not_kept(wrong, capsys):
    lesson.predict(reads=wrong, other=2)
    lesson.measured("reads", "reads", 3)
    text = capsys.readouterr().out
    assert "is no number of 0 or more, such as predict(reads=2)" in text
    assert "you predict other: 2" in text and text.endswith("reads: 3\n")


def test_a_number_without_a_name_is_said(capsys):
    lesson.predict(2)
    lesson.predict()
    assert capsys.readouterr().out.count("predict(name=2)") == 2


def test_no_prediction_costs_nothing(capsys):
    lesson.predict(reads=None)
    lesson.measured("reads", "reads", 3)
    assert capsys.readouterr().out.endswith("reads: 3\n")


def test_a_sentence_that_became_false_is_named(monkeypatch, capsys):
    lesson.measured("reads", "three reads: executions", 4, says=3)
    assert "note: the text says 3 where 4 is measured" in capsys.readouterr().out
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(lesson.TextIsWrong, match="text says 3 where 4.*three reads.*reads"):
        lesson.measured("reads", "three reads: executions", 4, says=3)


def test_an_expected_error_must_come():
    with pytest.raises(AssertionError, match="should raise ValueError, and raised nothing"):
        with lesson.expected(ValueError):
            pass
    with pytest.raises(KeyError):
        with lesson.expected(ValueError):
            raise KeyError("other")


def test_an_empty_recap_says_what_to_do():
    assert "run the cells above" in lesson.Recap()._repr_markdown_()


def test_a_slider_redraws_picture_and_caption(monkeypatch):
    drawn, shown = [], []
    monkeypatch.setattr("IPython.display.display", shown.append)

    def show(every):
        drawn.append(every)
        return Picture(b"png%d" % every, f"every {every} <step>")

    explore(show, every=(1, 9, 3))
    assert drawn == [3]
    slider, image, caption = shown[0].children
    slider.value = 5
    assert drawn == [3, 5]
    assert image.value == b"png5"
    assert "every 5 &lt;step&gt;" in caption.value


def test_words_are_shown_without_a_picture(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    explore(lambda team_size: Shown(f"{team_size} < many"), team_size=[1, 2])
    chooser, image, words = shown[0].children
    chooser.value = 2
    assert chooser.description == "team size" and image.layout.display == "none"
    assert "2 &lt; many" in words.value
