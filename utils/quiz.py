"""Multiple-choice questions at the end of a notebook: unscored, without the right letter in sight.

The questions of "lesson03" or "lab03" are `QUIZ` in `utils/quizzes/`, question name to `Question`.
"""

import hashlib
import importlib
from dataclasses import dataclass

from utils.shown import Shown, in_html


@dataclass(frozen=True)
class Question:
    """A question with its options: letter to (text, feedback), and the digest of the right letter.

    digest: `digest("lab03", "q1", "b")`, so that the file confirms an answer without containing it.
    """

    prompt: str
    options: dict[str, tuple[str, str]]
    digest: str


def normalise(answer: object) -> str:
    """
    >>> normalise(" B ")
    'b'
    """
    return str(answer).strip().lower()


def digest(notebook: str, question: str, answer: object) -> str:
    """The salted digest of an answer; the salt is the question, so equal letters look different.

    >>> digest("lab03", "q1", "B") == digest("lab03", "q1", "b") != digest("lab03", "q2", "b")
    True
    """
    return hashlib.sha256(f"{notebook}.{question}:{normalise(answer)}".encode()).hexdigest()[:16]


def questions(notebook: str) -> dict[str, Question]:
    """The questions of a notebook, such as "lab03". Raises ValueError if there are none."""
    try:
        return importlib.import_module(f"utils.quizzes.{notebook}").QUIZ
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("utils.quizzes"):
            raise ValueError(
                f"there is no quiz for {notebook!r}; quizzes are called 'lesson03' or 'lab03'"
            ) from None
        raise


def _answered(notebook: str, name: str, question: Question, answer: object) -> str:
    letter = normalise(answer)
    if letter not in question.options:
        return f"{answer!r} is not an option here: choose one of {', '.join(question.options)}"
    feedback = question.options[letter][1]
    if digest(notebook, name, letter) == question.digest:
        return f"{letter} is right. {feedback}".rstrip()
    return f"{letter} is not it. {feedback}".rstrip()


def quiz(notebook: str = "", **answers: object) -> Shown:
    """Show the questions of a notebook; say of each answered one, such as q1="b", if it is right.

    Nothing is scored or recorded, and a wrong answer does not reveal the right one.
    """
    if not isinstance(notebook, str) or not notebook:
        said = "quiz()" if notebook == "" else f"quiz({notebook!r})"
        return Shown(f'{said}: name a notebook, as in quiz("lab03"), quiz("lesson03")')
    try:
        asked = questions(notebook)
    except ValueError as error:
        return Shown(str(error))
    lines, blocks = [], []
    if unknown := [name for name in answers if name not in asked]:
        lines.append(f"there is no {', '.join(unknown)}: the questions are {', '.join(asked)}")
        blocks.append(f"<p>{in_html(lines[-1])}</p>")
    for name, question in asked.items():
        options = [f"{letter}  {text}" for letter, (text, _) in question.options.items()]
        given = answers.get(name)
        said = (
            f"choose one of {', '.join(question.options)}"
            if given is None
            else _answered(notebook, name, question, given)
        )
        lines += [
            f"{name}  {question.prompt}",
            *(f"      {each}" for each in options),
            f"  → {said}",
        ]
        blocks.append(
            f"<p><b>{in_html(name)}</b> {in_html(question.prompt)}<br>"
            + "<br>".join(f"&emsp;{in_html(each)}" for each in options)
            + f"<br>→ {in_html(said)}</p>"
        )
    return Shown("\n".join(lines), "".join(blocks))
