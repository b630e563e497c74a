"""What makes a lesson a conversation: predict a number, measure it, see both in the recap.

The text of a lesson states numbers too. `measured(..., says=...)` compares the statement with what
was just measured: a learner sees a note when they differ, and under COURSE_STRICT=1, as in the
tests, the cell fails and names the sentence.
"""

import itertools
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from utils.course.shown import markdown

_sizes = itertools.count(65)


def fresh_size() -> int:
    """A size that this kernel has not used before, so that the graphs of a model of that size are
    new to the compiler, also when a cell is run again.
    """
    return next(_sizes)


class TextIsWrong(AssertionError):
    """A lesson states a number that the measurement does not confirm."""


@dataclass(frozen=True)
class Line:
    """One number of the recap: what it is, what the learner predicted (None: nothing) and what was
    measured.
    """

    sentence: str
    predicted: object
    measured: object


_predictions: dict[str, object] = {}
_lines: dict[str, Line] = {}


def predict(*unnamed: object, **numbers: object) -> None:
    """Keep the learner's numbers for `measured`. None stands for no prediction: it costs nothing.

    >>> predict(reads=5, executions=None)
    you predict reads: 5
    no number yet for executions: put yours in place of None and run the cell again
    >>> predict(reads="two")
    reads: 'two' is no number of 0 or more, such as predict(reads=2)
    """
    if unnamed or not numbers:
        print("say which number you predict, as the cell was given: predict(name=2)")
    for key, number in numbers.items():
        if number is not None and not _is_count(number):
            print(f"{key}: {number!r} is no number of 0 or more, such as predict({key}=2)")
    good = {key: number for key, number in numbers.items() if number is None or _is_count(number)}
    _predictions.update(good)
    given = [f"{key}: {number}" for key, number in good.items() if number is not None]
    missing = [key for key, number in good.items() if number is None]
    if given:
        print("you predict", ", ".join(given))
    if missing:
        keys = ", ".join(missing)
        print(f"no number yet for {keys}: put yours in place of None and run the cell again")


def _is_count(number: object) -> bool:
    # True is an int, and infinity a float, but neither is a number of things.
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < 1e18


def measured(key: str, sentence: str, value: object, says: object = None) -> None:
    """Print a measured number beside the prediction of the same key, and keep both for the recap.

    Args:
        key: names the number within the lesson.
        sentence: what was measured, in words.
        value: the measured number.
        says: the number that the lesson's text states, if it states one.
    """
    predicted = _predictions.get(key)
    _lines[key] = Line(sentence, predicted, value)
    print(f"{sentence}: {value}" + ("" if predicted is None else f" (you predicted {predicted})"))
    if says is not None and value != says:
        wrong = f"the text says {says!r} where {value!r} is measured: {sentence!r} ({key})"
        if os.environ.get("COURSE_STRICT") == "1":
            raise TextIsWrong(wrong)
        print(f"note: {wrong}. Has the cell been changed, or torch-xla?")


RECAP = ("what was measured", "you", "measured")


class Recap:
    """The table of all numbers measured so far in this kernel, with the predictions."""

    def __init__(self) -> None:
        self.lines = tuple(_lines.values())

    def _rows(self) -> list[tuple[str, str, str]]:
        return [
            (
                line.sentence,
                "no guess" if line.predicted is None else str(line.predicted),
                str(line.measured),
            )
            for line in self.lines
        ]

    def __repr__(self) -> str:
        return "\n".join(" | ".join(row) for row in (RECAP, *self._rows()))

    def _repr_markdown_(self) -> str:
        if not self.lines:
            return "Nothing is measured yet: run the cells above."
        return markdown(RECAP, self._rows())


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
        raise AssertionError(f"this block should raise {kind.__name__}, and raised nothing")


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
