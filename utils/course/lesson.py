"""What makes a lesson a conversation: predict a number, measure it, and hear what the number tells.

A lesson says `begin("lesson03")`, asks with `predict(nodes=None)`, and hands over what it measures
with `measured("nodes", 8)`. What is measured, what the course measured, and what wrong numbers tell
about the thinking stands outside of the notebook, in `utils/course/predictions/lesson03.yaml`:

    nodes:
      what: nodes of the graph of y
      expected: 8
      wrong:
        4: you counted the operations; inputs and constants are nodes too

A result stays closed until its number is predicted: `utils.course.reveal`. Under COURSE_STRICT=1,
as in the tests, nothing is closed, and a cell that measures something else than `expected` fails.
"""

import itertools
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import msgspec

from utils.course import progress
from utils.course.cells import running_shell
from utils.course.misconceptions import says
from utils.course.reveal import Kept, keeper
from utils.course.shown import Shown, in_html, markdown
from utils.facts.records import read_as, read_yaml

FOLDER = Path(__file__).parent / "predictions"

NEAR = 0.15
"""A guess within this share of the measured number is near; among counts, the next one is too."""
SAME = 0.005
"""Guesses of a fraction are right to so much of it, because nobody types more digits."""

_sizes = itertools.count(65)


def fresh_size() -> int:
    """A size that this kernel has not used before, so that the graphs of a model of that size are
    new to the compiler, also when a cell is run again.
    """
    return next(_sizes)


class NotAsRecorded(AssertionError):
    """A lesson measures another number than the one that is recorded beside it."""


class Prediction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number of a lesson.

    what: what is measured, in words, with the unit. expected: what the course measured; None where
    that differs from machine to machine. wrong: what other numbers tell about the thinking; a text
    such as "lab03: item-keeps" stands for the sentence of that record of misconceptions.
    otherwise: what to say of all other numbers, instead of how far off they are.
    """

    what: str
    expected: int | float | bool | str | list | None = None
    wrong: dict[int | float, str] = {}
    otherwise: str = ""


def with_predictions() -> list[str]:
    """The names of all lessons with predictions, such as "lesson03"."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def predictions(lesson: str) -> dict[str, Prediction]:
    """What a lesson measures, by key. Raises ValueError if there is no such lesson."""
    path = FOLDER / f"{lesson}.yaml"
    if not path.is_file():
        raise ValueError(
            f"no lesson {lesson!r} has predictions: {', '.join(with_predictions())} have"
        )
    name = f"utils/course/predictions/{path.name}"
    return read_as(dict[str, Prediction], read_yaml(path), name)


class _State:
    """What this kernel knows of its lesson."""

    def __init__(self, lesson: str = "") -> None:
        self.lesson = lesson
        self.records = predictions(lesson) if lesson else {}
        self.guesses: dict[str, float] = {}
        self.shown: set[str] = set()
        self.results: dict[str, object] = {}
        self.asked: list[str] = []  # by the last `predict`
        self.all_asked: set[str] = set()
        self.section: str | None = None  # of the cells kept back; None: none are
        self.waiting: set[str] = set()  # the numbers that they wait for
        self.announced: tuple[str | None, list[str]] = (None, [])
        self.kept: list[tuple[list[str], Kept]] = []

    def closed(self, keys: Iterable[str]) -> list[str]:
        """Those of the keys whose results may not be seen yet."""
        return [k for k in keys if k not in self.guesses and k not in self.shown]


state = _State()


def begin(lesson: str) -> None:
    """Say which lesson this kernel runs, such as "lesson03"."""
    global state
    if state.lesson != lesson:
        state = _State(lesson)
    if not strict() and keeper.install(_keeps, _put):
        progress.begin_lesson(lesson)
        kept = progress.document()[0]["guesses"].get(lesson.removeprefix("lesson"), {})
        for key, number in kept.items():
            if number is None:
                state.shown.add(key)
            elif key not in state.guesses:
                state.guesses[key] = number


def record_of(key: str) -> Prediction:
    """The record of a number. Raises ValueError if the lesson has no such number."""
    if not state.records:
        raise ValueError("run the cell with `begin(...)` at the top of the lesson first")
    if key not in state.records:
        raise ValueError(f"the lesson measures no {key!r}; it measures {', '.join(state.records)}")
    return state.records[key]


# ---- the guess


def predict(**numbers: object) -> None:
    """Ask for the learner's numbers: with boxes where there is a notebook, or as arguments.

    None asks for a number, "show" opens the result without one.

    >>> begin("lesson03")
    >>> predict(nodes=5, triggers=None)
    your number for: of seventeen actions, those that execute
    >>> predict(nodes="two")
    nodes: 'two' is not a number of 0 or more: write one, such as predict(nodes=2)
    """
    for key in numbers:
        record_of(key)
    state.asked, state.section = list(numbers), None
    state.all_asked |= set(numbers)
    for key, number in numbers.items():
        if text := guess(key, number):
            print(text)
    open_kept()
    if not strict() and running_shell() is not None and ask_with_boxes(list(numbers)):
        return
    for key in state.closed(numbers):
        print(f"your number for: {record_of(key).what}")


def guess(key: str, number: object) -> str:
    """Keep a guess, or what stands for none; returns a sentence if it is no number.

    number: of 0 or more, a text that says one, None or "" for none, "show" to see the result.
    """
    given = number
    if isinstance(number, str):
        text = number.strip().lower().replace(",", "").removesuffix("%")
        if text in ("", "show"):
            if text:
                state.shown.add(key)
                _remember({key: None})
            return ""
        with suppress(ValueError):
            number = float(text)
    if number is None:
        return ""
    # True is an int, and infinity a float, but neither is a number of things.
    if isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < 1e18:
        state.guesses[key] = number
        _remember({key: number})
        return ""
    return f"{key}: {given!r} is not a number of 0 or more: write one, such as predict({key}=2)"


def _remember(guesses: dict[str, int | float | None]) -> None:
    """For the next kernel: a learner who restarts one goes on where the last one ended."""
    if running_shell() is not None and not strict():
        progress.record_guesses(state.lesson, guesses)


def ask_with_boxes(keys: list[str]) -> bool:
    """A box for each number, and a button that shows the results without one; whether there are
    boxes in this environment.
    """
    try:
        import ipywidgets  # late: slow to load, and only a live notebook needs it
    except ModuleNotFoundError:
        return False
    from IPython.display import display

    boxes: list[tuple[str, ipywidgets.Text]] = []
    reply = ipywidgets.HTML()

    def answer(_: object = None) -> None:
        texts = [text for key, box in boxes if (text := guess(key, box.value))]
        missing = state.closed(keys)
        if not texts and missing:
            texts = [f"{len(missing)} to go: {', '.join(record_of(key).what for key in missing)}"]
        done = "Kept" if all(key in state.guesses for key in keys) else "Opened"
        ready = "" if missing else f"{done}. Run the next cells: they show what is measured."
        reply.value = f"<div role='status'>{in_html(' '.join(texts) or ready)}</div>"
        open_kept()

    def show(_: object) -> None:
        for key in state.closed(keys):
            guess(key, "show")
        answer()

    for key in keys:
        box = ipywidgets.Text(
            value=_spell(state.guesses[key]) if key in state.guesses else "",
            placeholder="your number",
            description=record_of(key).what,
            continuous_update=False,
            style={"description_width": "initial"},
            layout={"width": "auto", "max_width": "48em"},
        )
        box.observe(answer, names="value")
        boxes.append((key, box))
    predicting = ipywidgets.Button(description="Predict", button_style="primary")
    showing = ipywidgets.Button(description="Show me", tooltip="see the result without a guess")
    predicting.on_click(answer)
    showing.on_click(show)
    buttons = ipywidgets.HBox([predicting, showing])
    display(ipywidgets.VBox([*(box for _, box in boxes), buttons, reply]))
    return True


# ---- the result


END = ("Recap(", "quiz(", "claims(", "Sources(", "predict(")
"""What stands in the first cell that no longer belongs to a prediction."""


def _keeps(source: str, cell_id: str) -> bool:
    """Whether the output of a cell is kept back: it measures what was asked for and not answered,
    or it follows such a cell in the same section.
    """
    section = cell_id.partition("-")[0]
    if any(end in source for end in END) or state.section != section:
        state.section = None
    if any(end in source for end in END):
        return False
    named = re.findall(r"""\bmeasured\(\s*["'](\w+)["']""", source)
    keys = set(state.closed(state.all_asked)) & set(named)
    if re.search(r"""\bmeasured\(\s*[^"'\s]""", source):  # a name that is made at run time
        keys |= set(state.closed(state.asked))
    if keys:
        before = state.waiting if state.section is not None else set()
        state.section, state.waiting = section, keys | before
    return state.section is not None and bool(state.closed(state.waiting))


def _put(kept: Kept) -> None:
    keys = sorted(state.waiting, key=list(state.records).index)
    first = state.announced != (state.section, keys)
    state.announced = (state.section, keys)
    state.kept.append((keys, kept))
    what = "; ".join(record_of(key).what for key in state.closed(keys))
    text = f'Closed until you predict, or press "Show me" above: {what}.' if first else "Closed."
    kept.place(Shown(text, f"<p><em>{in_html(text)}</em></p>"))
    open_kept()


def open_kept() -> None:
    """Show the outputs whose numbers are all predicted."""
    ready = [kept for keys, kept in state.kept if not state.closed(keys)]
    state.kept = [(keys, kept) for keys, kept in state.kept if state.closed(keys)]
    for kept in ready:
        kept.open()


def measured(key: str, value: object) -> None:
    """Show a measured number and what the learner's guess tells, and keep both for the recap.

    key: names the number within the lesson. value: the measured number.

    Raises:
        NotAsRecorded: only under COURSE_STRICT=1, if the course has recorded another number.
    """
    record = record_of(key)
    state.results[key] = value
    if strict() and record.expected is not None and value != record.expected:
        file = f"utils/course/predictions/{state.lesson}.yaml"
        raise NotAsRecorded(
            f"{record.what}: {value!r} is measured, {file} has {record.expected!r} for {key!r}"
        )
    keeper.show(lambda: result(key))


def strict() -> bool:
    """Whether this is a run of the tests, which closes nothing."""
    return os.environ.get("COURSE_STRICT") == "1"


def result(key: str) -> Shown:
    """What was measured, and what the guess tells, once there is one."""
    record, value = record_of(key), state.results[key]
    text = f"{record.what}: {_spell(value)}"
    if strict():  # stored in the course's own copy: whoever reads it on the web may guess first
        summary, number = in_html(record.what), in_html(_spell(value))
        return Shown(text, f"<details><summary>{summary}</summary>{number}</details>")
    lines = [text]
    if key in state.guesses:
        lines.append(reaction(record, state.guesses[key], value))
    if record.expected is not None and value != record.expected:
        lines.append(
            f"note: the course measured {_spell(record.expected)} here. Was the cell"
            " changed, or is another version of torch-xla installed?"
        )
    first, *others = map(in_html, lines)
    number = in_html(_spell(value))  # the last one: "20 steps" may be in the question, too
    head = f"{first.removesuffix(number)}<b>{number}</b>"
    body = "".join(f"<div>{line}</div>" for line in others)
    return Shown("\n  ".join(lines), f"<div>{head}</div>{body}")


def _spell(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _equal(a: float, b: float) -> bool:
    if isinstance(b, int) or float(b).is_integer() and abs(b) < 1000:
        return a == b
    return abs(a - b) <= SAME * abs(b)


def reaction(record: Prediction, number: float, value: object) -> str:
    """What a guess tells.

    >>> nodes = Prediction("nodes", 8, {4: "you counted the operations"})
    >>> reaction(nodes, 8, 8), reaction(nodes, 7, 8)
    ('You predicted 8: right.', 'You predicted 7: near.')
    >>> reaction(nodes, 4, 8)
    'You predicted 4: you counted the operations.'
    >>> reaction(nodes, 80, 8)
    'You predicted 80: too high by a factor of 10.'
    """
    begin_with = f"You predicted {_spell(number)}"
    if not isinstance(value, int | float):
        return f"{begin_with}."
    if _equal(number, value):
        return f"{begin_with}: right."
    for other, sentence in record.wrong.items():
        if _equal(number, other):
            return f"{begin_with}: {_ended(sentence_of(sentence))}"
    if abs(number - value) <= max(NEAR * abs(value), isinstance(value, int) and value > 2):
        return f"{begin_with}: near."
    if record.otherwise:
        return f"{begin_with}: {_ended(sentence_of(record.otherwise))}"
    way = "high" if number > value else "low"
    if number and value and not 0.5 < number / value < 2:
        return f"{begin_with}: too {way} by a factor of {max(number / value, value / number):.3g}."
    return f"{begin_with}: too {way}."


def _ended(text: str) -> str:
    """With one full stop, unless it asks.

    >>> _ended("count again"), _ended("count again."), _ended("of what?")
    ('count again.', 'count again.', 'of what?')
    """
    return text if text.endswith("?") else f"{text.rstrip('.')}."


def sentence_of(text: str) -> str:
    """The text, or the sentence of the record that it names, such as "lab03: item-keeps"."""
    named = re.fullmatch(r"(lab\d\d): ([\w-]+)", text)
    return says(named[1])[named[2]] if named else text


def _guess(key: str) -> str:
    """What the learner predicted for a number, as the recap says it."""
    if key in state.guesses:
        return _spell(state.guesses[key])
    return "no guess" if key in state.all_asked else "not asked"


RECAP = ("what was measured", "you", "measured")


class Recap:
    """The table of all numbers measured so far in this kernel, with the predictions.

    The lesson is done once it is shown with all that was asked for answered.
    """

    def __init__(self) -> None:
        closed = [] if strict() else state.closed(state.all_asked)
        if running_shell() and not strict() and state.all_asked and not closed:
            progress.finish_lesson(state.lesson)
        self.lines = tuple(
            (record_of(key).what, _guess(key), "closed" if key in closed else _spell(value))
            for key, value in state.results.items()
        )

    def __repr__(self) -> str:
        return "\n".join(" | ".join(row) for row in (RECAP, *self.lines))

    def _repr_markdown_(self) -> str:
        if not self.lines:
            return "Nothing is measured yet: run the cells above."
        return markdown(RECAP, self.lines)


@contextmanager
def expected(kind: type[BaseException]) -> Iterator[None]:
    """Run a block that must raise `kind`; print the first line of the error instead of a traceback.

    >>> with expected(ZeroDivisionError):
    ...     1 / 0
    ZeroDivisionError: division by zero
    """
    try:
        yield
    except kind as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    else:
        raise AssertionError(f"this block should raise {kind.__name__}, but it raised nothing")


@contextmanager
def quiet_stderr() -> Iterator[list[str]]:
    """Collect what is written to stderr inside the block, also by compiled code, as a list of
    lines.

    >>> with quiet_stderr() as lines:
    ...     _ = os.write(2, b"from C++\\n")
    >>> lines
    ['from C++']
    """
    lines: list[str] = []
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            log.seek(0)
            lines += log.read().decode(errors="replace").splitlines()
