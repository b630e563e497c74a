"""Multiple-choice questions at the end of a notebook: unscored, without the right letter in sight.

The questions of "lesson03" or "lab03" are `QUIZ` in `utils/course/quizzes/`, question name to
`Question`. The claims that a lesson has checked are `CLAIMS` there, name to `ClaimQuestion`.
"""

import hashlib
import importlib
from dataclasses import dataclass
from typing import Any

from utils.course.shown import Shown, in_html
from utils.facts import VERDICTS, claim


@dataclass(frozen=True)
class Question:
    """A question with its options: letter to (text, feedback), and the digest of the right letter.

    digest: `digest("lab03", "q1", "b")`, so that the file confirms an answer without containing it.
    """

    prompt: str
    options: dict[str, tuple[str, str]]
    digest: str


_NOT_IT = {
    "confirmed": "a source other than the article would have to say the same, all of it",
    "vendor-claim": "then only the maker of the product could know; find who else can measure it",
    "outdated": "then it would have been right once: find the release or the chip that changed it",
    "wrong": "then a source or a run would contradict it: which one?",
    "unverifiable": "then no public source would bear on it: look once more",
    "opinion": "then no evidence could settle it, one way or the other",
}


@dataclass(frozen=True)
class ClaimQuestion:
    """A claim of the ledger that a lesson lets its reader judge.

    claim: its id, such as "A-017". hints: for wrong verdicts, what speaks against them; verdicts
    without a hint of their own get a general one.
    """

    claim: str
    hints: dict[str, str]


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


def questions(notebook: str, kind: str = "QUIZ") -> dict[str, Any]:
    """The questions of a notebook, such as "lab03"; the claims with the kind "CLAIMS".

    Raises:
        ValueError: if there are none.
    """
    try:
        module = importlib.import_module(f"utils.course.quizzes.{notebook}")
        if not hasattr(module, kind):
            raise ValueError(f"{notebook} has no claims to check")
        return getattr(module, kind)
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("utils.course.quizzes"):
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
    return _shown("quiz", notebook, "QUIZ", answers)


def claims(notebook: str = "", **verdicts: object) -> Shown:
    """Show the claims that a lesson has checked; say of each verdict, such as c1="wrong", if it is
    the ledger's.

    A right verdict is followed by the correct statement and its source, a wrong one by a hint.
    """
    return _shown("claims", notebook, "CLAIMS", verdicts)


def _judged(question: ClaimQuestion, answer: object) -> str:
    verdict, asked = normalise(answer), claim(question.claim)
    if verdict not in VERDICTS:
        return f"{answer!r} is no verdict: choose one of {', '.join(VERDICTS)}"
    if verdict != asked.verdict:
        return f"{verdict} is not it: {question.hints.get(verdict, _NOT_IT[verdict])}"
    source = f" Source: {asked.source}" if asked.source else ""
    return f"{verdict} is right. {asked.correct}{source}"


def _asked(notebook: str, name: str, question: Any, answer: object) -> tuple[str, list[str], str]:
    """What is asked, the options, and what is said of the answer."""
    if isinstance(question, ClaimQuestion):
        text = claim(question.claim).text
        said = "your verdict?" if answer is None else _judged(question, answer)
        return f"An article says: {text}.".replace("..", "."), [], said
    options = [f"{letter}  {text}" for letter, (text, _) in question.options.items()]
    if answer is None:
        return question.prompt, options, f"choose one of {', '.join(question.options)}"
    return question.prompt, options, _answered(notebook, name, question, answer)


def _shown(function: str, notebook: object, kind: str, answers: dict[str, object]) -> Shown:
    if not isinstance(notebook, str) or not notebook:
        said = f"{function}()" if notebook == "" else f"{function}({notebook!r})"
        examples = f'{function}("lab03"), {function}("lesson03")'
        if kind == "CLAIMS":
            examples = f'{function}("lesson03")'
        return Shown(f"{said}: name a notebook, as in {examples}")
    try:
        asked = questions(notebook, kind)
    except ValueError as error:
        return Shown(str(error))
    lines, blocks = [], []
    if unknown := [name for name in answers if name not in asked]:
        what = "questions" if kind == "QUIZ" else "claims"
        lines.append(f"there is no {', '.join(unknown)}: the {what} are {', '.join(asked)}")
        blocks.append(f"<p>{in_html(lines[-1])}</p>")
    if kind == "CLAIMS":
        verdicts = [f"{verdict}: {meaning}" for verdict, meaning in VERDICTS.items()]
        lines += ["the verdicts:", *(f"      {each}" for each in verdicts)]
        blocks.append("<p>" + "<br>".join(in_html(each) for each in verdicts) + "</p>")
    for name, question in asked.items():
        prompt, options, said = _asked(notebook, name, question, answers.get(name))
        lines += [f"{name}  {prompt}", *(f"      {each}" for each in options), f"  → {said}"]
        blocks.append(
            f"<p><b>{in_html(name)}</b> {in_html(prompt)}<br>"
            + "".join(f"&emsp;{in_html(each)}<br>" for each in options)
            + f"→ {in_html(said)}</p>"
        )
    return Shown("\n".join(lines), "".join(blocks))
