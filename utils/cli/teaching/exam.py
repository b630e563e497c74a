"""An exam: questions of the quizzes and questions with drawn numbers, in versions, with a key.

The same seed draws the same questions for a class. In each version their order, the order of the
options and the drawn numbers are its own, so that neighbours cannot copy.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from utils.cli.teaching import drawn
from utils.course import quiz

CHOICE_POINTS, DRAWN_POINTS = 1, 2
CHOICE_MINUTES, DRAWN_MINUTES = 1.5, 4
LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Question:
    """source: such as "lesson 03, quiz q2". options: the texts of a choice, () where something is
    computed. answer: a letter, or what is computed. why: for the key.
    """

    source: str
    prompt: str
    options: tuple[str, ...]
    answer: str
    why: str

    @property
    def points(self) -> int:
        """What the right answer earns."""
        return CHOICE_POINTS if self.options else DRAWN_POINTS


@dataclass(frozen=True)
class Version:
    """The exam of one person, or of each second row of seats."""

    name: str
    questions: tuple[Question, ...]

    @property
    def points(self) -> int:
        """The most that all questions together earn."""
        return sum(question.points for question in self.questions)

    @property
    def minutes(self) -> int:
        """Time to allow, in whole fives."""
        each = (CHOICE_MINUTES if item.options else DRAWN_MINUTES for item in self.questions)
        return 5 * round((sum(each) + 2.4) / 5)


def versions(numbers: Sequence[str], seed: int, names: Sequence[str] = ()) -> list[Version]:
    """The exam about lessons such as "03", a version for each name, or A and B.

    Raises ValueError if no lesson has questions.
    """
    rng = random.Random(f"exam {seed}")
    choices, computed = [], []
    for number in numbers:
        pool = _choices(number)
        choices += rng.sample(pool, min(len(pool), 3 if len(numbers) < 6 else 1))
        if kinds := drawn.QUESTIONS.get(number):
            computed.append((number, rng.choice(kinds)))
    if not choices:
        raise ValueError(f"no lesson of {', '.join(numbers)} has a quiz: choose another track")
    computed = rng.sample(computed, min(len(computed), 6))
    results = []
    for name in names or ("A", "B"):
        own = random.Random(f"exam {seed} {name}")
        asked = [_shuffle(question, own) for question in choices]
        for number, kind in computed:
            prompt, answer, why = kind(own)
            asked.append(Question(f"lesson {number}, drawn", prompt, (), answer, why))
        own.shuffle(asked)
        results.append(Version(name, tuple(asked)))
    return results


def _choices(number: str) -> list[Question]:
    """All questions of the quizzes of a lesson and of its lab."""
    results = []
    for notebook in (f"lesson{number}", f"lab{number}"):
        if not (quiz.FOLDER / f"{notebook}.yaml").is_file():
            continue
        for name, item in quiz.questions(notebook).quiz.items():
            right = next(k for k in item.options if quiz.digest(notebook, name, k) == item.digest)
            text, why = item.options[right]
            source = f"{notebook[:-2]} {number}, quiz {name}"
            options = tuple(option for option, _ in item.options.values())
            results.append(Question(source, item.prompt, options, text, why))
    return results


def _shuffle(question: Question, rng: random.Random) -> Question:
    """The question with its options in another order, and the letter of the right one."""
    options = tuple(rng.sample(question.options, len(question.options)))
    letter = LETTERS[options.index(question.answer)]
    return Question(question.source, question.prompt, options, letter, question.why)
