"""Predictions, measured numbers, the recap, and what a learner changes with a widget."""

import base64
from collections.abc import Iterator

import pytest

from tests.course.kernels import Kernel, start_kernel
from utils.course import lesson
from utils.course.lesson import Prediction
from utils.course.shown import Shown
from utils.show.draw import Picture
from utils.show.widgets import explore


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COURSE_STRICT", raising=False)
    monkeypatch.setattr(lesson, "state", lesson._State())
    lesson.begin("lesson03")


def test_a_prediction_stands_beside_the_measurement(capsys) -> None:
    lesson.predict(items=1)
    lesson.measured("items", 3)
    lesson.measured("cpus", 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("executions: 3") and lines[1].startswith("  You predicted 1: ")
    assert [line[1:] for line in lesson.Recap().lines] == [("1", "3"), ("not asked", "1")]


@pytest.mark.parametrize("wrong", ["two", -1, True, [1], float("nan"), float("inf")])
def test_what_is_no_number_is_said_and_not_kept(wrong: object, capsys) -> None:
    lesson.predict(items=wrong, cpus=2)
    text = capsys.readouterr().out
    assert "is not a number of 0 or more: write one, such as predict(items=2)" in text
    assert lesson.state.guesses == {"cpus": 2} and "your number for" in text


def test_texts_of_a_box_are_read_as_numbers() -> None:
    assert [lesson.guess("items", text) for text in (" 1,024 ", "30 %".replace(" ", ""), "")] == [
        "",
        "",
        "",
    ]
    assert lesson.state.guesses["items"] == 30


def test_a_key_that_the_lesson_does_not_have_is_named() -> None:
    with pytest.raises(ValueError, match="measures no 'itms'; it measures record, nodes"):
        lesson.predict(itms=2)
    with pytest.raises(ValueError, match="no lesson 'lesson99' has predictions: .*lesson03"):
        lesson.begin("lesson99")
    lesson.state = lesson._State()
    with pytest.raises(ValueError, match="run the cell with `begin"):
        lesson.measured("items", 3)


def test_another_number_than_recorded_is_named(monkeypatch, capsys) -> None:
    lesson.measured("items", 4)
    assert "note: the course measured 3 here" in capsys.readouterr().out
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(lesson.NotAsRecorded, match="4 is measured, .*lesson03.yaml has 3 for 'it"):
        lesson.measured("items", 4)


def test_the_stored_copy_folds_the_number(monkeypatch) -> None:
    monkeypatch.setenv("COURSE_STRICT", "1")
    lesson.measured("items", 3)
    assert lesson.result("items").html.endswith("</summary>3</details>")
    assert lesson.result("items").text.endswith(": 3")


COUNT = Prediction("things", 20, {40: "you counted both ways"}, "count the edges, not the nodes")


@pytest.mark.parametrize(
    ("number", "value", "response"),
    [
        (20, 20, "right."),
        (21, 20, "near."),
        (40, 20, "you counted both ways."),
        (7, 20, "count the edges, not the nodes."),
        (0.4012, 0.4, "right."),
        (0, 0, "right."),
        (1, 0, "count the edges, not the nodes."),
    ],
)
def test_the_course_reacts_to_the_number(number: float, value: float, response: str) -> None:
    assert lesson.reaction(COUNT, number, value) == f"You predicted {number:g}: {response}"


def test_without_a_sentence_it_says_how_far_off() -> None:
    plain = Prediction("things")
    assert lesson.reaction(plain, 3, 2.5) == "You predicted 3: too high."
    assert lesson.reaction(plain, 3, 30).endswith("too low by a factor of 10.")
    assert lesson.reaction(plain, 3, 0).endswith("too high.")


# ---- in a kernel of Jupyter, as a learner runs a lesson


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with start_kernel({"COURSE_STRICT": "0"}) as kernel:
        yield kernel


BEGIN = "from utils.course.lesson import Recap, begin, measured, predict; begin('lesson03')"
CELLS = [
    ("imports", BEGIN),
    ("s1-predict", "predict(nodes=None)"),
    ("s1-define", "print('not closed yet'); measured('record', 0)"),
    ("s1-run", "print('a line'); measured('nodes', 8); print('the last'); 8 + 1"),
    ("s1-draw", "from IPython.display import Markdown, display; display(Markdown('*a figure*'))"),
    ("s2-run", "print('another section')"),
]


def run_all(kernel: Kernel) -> dict[str, list[dict]]:
    kernel.run("%reset -f")
    kernel.run("import utils.course.lesson as x; x.state = x._State()")
    kernel.run("from utils.course.progress import reset; reset('all')")
    return {name: kernel.run(source, name) for name, source in CELLS}


def words(outputs: list[dict]) -> str:
    """The texts of outputs; what was printed is one text, however often the kernel sent it."""
    texts: list[str] = []
    printed = False
    for output in outputs:
        text = output.get("text") or output.get("data", {}).get("text/plain", "")
        if printed and "text" in output:
            texts[-1] += text
        else:
            texts.append(text)
        printed = "text" in output
    return " | ".join(texts)


@pytest.mark.parametrize("answer", ["predict(nodes=4)", "predict(nodes='show')"])
def test_a_result_stays_closed_until_its_number_is_predicted(kernel: Kernel, answer: str) -> None:
    outputs = run_all(kernel)
    assert words(outputs["s1-define"]).startswith("not closed yet")
    closed = words(outputs["s1-run"]) + words(outputs["s1-draw"])
    assert closed.startswith("Closed until you predict") and "nodes of the graph of y" in closed
    assert not any(text in closed for text in ("8", "9", "line", "last", "figure"))
    assert words(outputs["s2-run"]) == "another section\n"

    updates = [o for o in kernel.run(answer) if o["msg_type"] == "update_display_data"]
    places = [o["transient"]["display_id"] for o in [*outputs["s1-run"], *outputs["s1-draw"]]]
    assert [o["transient"]["display_id"] for o in updates] == places
    text = words(updates)
    assert text.index("a line") < text.index(": 8") < text.index("the last") < text.index("9")
    assert ("You predicted 4: " in text) is ("4" in answer)
    assert "*a figure*" in updates[-1]["data"]["text/markdown"]
    assert words(kernel.run("print(8)", "s1-again")) == "8\n"


def test_a_number_asked_long_before_is_closed_too(kernel: Kernel) -> None:
    run_all(kernel)
    kernel.run("predict(triggers=None)", "s2-predict")
    assert "Closed until you predict" in words(kernel.run("measured('nodes', 8)", "s4-run"))
    assert words(kernel.run("print('next')", "s5-run")) == "next\n"
    assert "Closed" in words(kernel.run("k = 'triggers'; measured(k, 11)", "s6-run"))


def test_the_recap_does_not_tell_either(kernel: Kernel) -> None:
    run_all(kernel)
    assert "y | no guess | closed" in words(kernel.run("Recap()", "recap"))


def test_the_next_kernel_knows_what_was_predicted(kernel: Kernel) -> None:
    run_all(kernel)
    kernel.run("predict(nodes=4, triggers='show')", "s1-predict")
    kernel.run("x.state = x._State()")  # as in a kernel that was started again
    kernel.run(BEGIN)
    assert "You predicted 4: " in words(kernel.run("measured('nodes', 8)", "s1-run"))
    assert "closed" not in words(kernel.run("measured('triggers', 11)", "s2-run")).lower()
    kernel.run("reset('lesson03'); x.state = x._State()")
    kernel.run(BEGIN)
    kernel.run("predict(nodes=None)", "s1-predict")
    assert "Closed until" in words(kernel.run("measured('nodes', 8)", "s1-run"))


def test_an_error_is_never_kept_back(kernel: Kernel) -> None:
    run_all(kernel)
    outputs = kernel.run("predict(nodes=None)", "s1-predict")
    outputs = kernel.run("print('before'); measured('nodes', 8); 1 / 0", "s1-run")
    assert outputs[0]["ename"] == "ZeroDivisionError" and "before" not in words(outputs)
    assert "before" in words(kernel.run("predict(nodes=8)"))


def test_an_expected_error_must_come():
    with pytest.raises(AssertionError, match="should raise ValueError, but it raised nothing"):
        with lesson.expected(ValueError):
            pass
    with pytest.raises(KeyError):
        with lesson.expected(ValueError):
            raise KeyError("other")


def test_an_empty_recap_says_what_to_do() -> None:
    assert "run the cells above" in lesson.Recap()._repr_markdown_()


def test_a_slider_redraws_picture_and_caption(monkeypatch):
    drawn, shown = [], []
    monkeypatch.setattr("IPython.display.display", shown.append)

    def show(every):
        drawn.append(every)
        return Picture(b"png%d" % every, f"every {every} <step>")

    explore(show, every=(1, 9, 3))
    assert drawn == [3]
    slider, status, place = shown[0].children
    values = []
    place.observe(lambda change: values.append(change.new), "value")
    slider.value = 5
    assert drawn == [3, 5] and "every: 5" in status.value
    assert "opacity" in values[0] and "opacity" not in values[-1]  # dimmed at once
    assert base64.b64encode(b"png5").decode() in place.value
    assert 'alt="every 5 &lt;step&gt;"' in place.value


def test_words_are_shown_without_a_picture(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    explore(lambda team_size: Shown(f"{team_size} < many"), team_size=[1, 2])
    chooser, _, words = shown[0].children
    chooser.index = 1
    assert chooser.description == "team size"
    assert "2 &lt; many" in words.value


def test_a_choice_says_what_it_means_and_its_unit(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    labels = {"size": "people in the team", "hours": "hours a week [h]"}
    explore(lambda size, hours: Shown("so"), labels, size=[1, 2], hours=(1, 40, 8))
    size, hours, status, _ = shown[0].children
    assert (size.description, hours.description) == tuple(labels.values())
    assert "people in the team: 1, hours a week [h]: 8" in status.value
