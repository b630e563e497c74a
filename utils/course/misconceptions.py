"""What learners get wrong in a lab, each written once: `utils/labs/labNN/misconceptions.yaml`.

A record has a name, the sentence that the learner reads (`says`; `{name}` stands for a number or a
word that the judge fills in), and by exercise the answers that show it: what is wrong, and the
code. The code is a whole answer, or a change of the published solution as a diff: lines that begin
with "-", "+" or " ", and "@@" between two places.

    over-not-times:
      says: over the utilisation, not times it
      usual: true
      ex1:
        times the utilisation: |
          -    billed = used / job["utilisation"]
          +    billed = used * job["utilisation"]

The judge takes the sentence from here, the tests try the answers, and the solution lists the usual
ones. An answer may also be a mapping with `answer` and `shows`: more that its card must contain.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter

from utils.course.catalog import ROOT
from utils.facts.records import read_yaml


@dataclass(frozen=True)
class WrongAnswer:
    """An answer that must be refused.

    exercise: such as "ex1". wrong: what is wrong with it. code: a whole answer or a diff.
    says: the sentence of its record. shows: further text that its card must contain.
    """

    exercise: str
    wrong: str
    code: str
    says: str
    shows: str = ""

    def source(self, solution: str) -> str:
        """The source of the answer, given that of the published solution."""
        return apply_diff(solution, self.code) if is_diff(self.code) else self.code

    def is_refused_by(self, card: str) -> bool:
        """Whether the text of a card says what the record says; a card may begin a sentence."""
        return bool(re.search(_pattern(self.says), card, re.IGNORECASE)) and self.shows in card


@dataclass(frozen=True)
class Misconception:
    """One record. usual: whether the solution lists it among the usual wrong answers."""

    name: str
    says: str
    usual: bool
    answers: tuple[WrongAnswer, ...]

    @property
    def sentence(self) -> str:
        """What the learner reads, with "…" for what the judge fills in."""
        parts = Formatter().parse(self.says)
        return "".join(text + ("" if field is None else "…") for text, field, _, _ in parts)

    def is_in(self, text: str) -> bool:
        """Whether a text says it; it may begin a sentence there."""
        return bool(re.search(_pattern(self.says), text, re.IGNORECASE))


def path_of(lab: str, root: Path = ROOT) -> Path:
    """The file with the records of a lab such as "lab03"."""
    return root / "utils" / "labs" / lab / "misconceptions.yaml"


@cache
def misconceptions(lab: str, root: Path = ROOT) -> tuple[Misconception, ...]:
    """The records of a lab, in the order of their file; none if it has no such file."""
    path = path_of(lab, root)
    if not path.exists():
        return ()
    records = read_yaml(path)
    return tuple(_read(name, record) for name, record in records.items())


def _read(name: str, record: dict) -> Misconception:
    says, usual = record.pop("says"), record.pop("usual", False)
    answers = []
    for exercise, wrong_answers in record.items():
        for wrong, code in wrong_answers.items():
            more = code if isinstance(code, dict) else {"answer": code}
            answers.append(
                WrongAnswer(exercise, wrong, more["answer"], says, more.get("shows", ""))
            )
    return Misconception(name, says, usual, tuple(answers))


@cache
def says(lab: str) -> dict[str, str]:
    """The sentences of a lab's records, by name; those with `{...}` are for `str.format`.

    >>> says("lab03")["each-run-compiles"]
    'a known graph is not compiled again: how many different graphs run here?'
    """
    return {
        record.name: record.says if _fields(record.says) else record.says.format()
        for record in misconceptions(lab)
    }


def wrong_answers(lab: str) -> list[WrongAnswer]:
    """Every answer to a lab's exercises that must be refused."""
    return [answer for record in misconceptions(lab) for answer in record.answers]


def _fields(template: str) -> list[str]:
    return [field for _, field, _, _ in Formatter().parse(template) if field is not None]


def _pattern(template: str) -> str:
    return "".join(
        re.escape(text) + ("" if field is None else ".*?")
        for text, field, _, _ in Formatter().parse(template)
    )


def usual_wrong_answers(lab: str, exercise: str, root: Path = ROOT) -> str:
    """The list that a solution shows below an exercise, as Markdown; empty if none is usual."""
    lines = []
    for record in misconceptions(lab, root):
        wrong = [answer.wrong for answer in record.answers if answer.exercise == exercise]
        if record.usual and wrong:
            end = "" if record.sentence[-1] in ".?!" else "."
            lines.append(f"- *{wrong[0][:1].upper()}{wrong[0][1:]}*: {record.sentence}{end}")
    return "\n".join(lines)


def is_diff(code: str) -> bool:
    """
    >>> is_diff("-    a = 1\\n+    a = 2\\n"), is_diff("def f():\\n    return 1\\n")
    (True, False)
    """
    lines = [line for line in code.splitlines() if line]
    return all(line[0] in "+- @" for line in lines) and any(line[0] in "+-" for line in lines)


def apply_diff(source: str, diff: str) -> str:
    """`source` with a diff applied. Raises ValueError if a place of it is not there exactly once.

    >>> apply_diff("a = 1\\nb = 2\\n", "-b = 2\\n+b = 3\\n")
    'a = 1\\nb = 3\\n'
    """
    for old, new in _hunks(diff):
        count = f"\n{source}\n".count(f"\n{old}\n")
        if count != 1:
            raise ValueError(f"the place of a change occurs {count} times in the solution:\n{old}")
        source = f"\n{source}\n".replace(f"\n{old}\n", f"\n{new}\n" if new else "\n")[1:-1]
    return source


def _hunks(diff: str) -> Iterator[tuple[str, str]]:
    for hunk in re.split(r"^@@.*\n", diff, flags=re.MULTILINE):
        lines = [line or " " for line in hunk.rstrip("\n").split("\n")]
        old = [line[1:] for line in lines if line[0] in " -"]
        new = [line[1:] for line in lines if line[0] in " +"]
        if hunk.strip("\n"):
            yield "\n".join(old), "\n".join(new)
