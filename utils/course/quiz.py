"""Multiple-choice questions at the end of a notebook: unscored, without the right letter in sight.

The questions of lesson 03 and of lab 03 are in `utils/course/quizzes/lesson03.yaml` and
`lab03.yaml`. An option has its text and what to say to whoever chooses it:

    quiz:
      q1:
        prompt: What is twice two?
        options:
          a: [three, count again]
          b: [four, 2 + 2]
        digest: 3a0baf3a014050d7    # digest("lab99", "q1", "b")
    claims:                         # of lessons: claims of the ledger that it has checked
      c1:
        claim: A-011
        hints: {confirmed: look for the launch in 2024}
"""

import hashlib
from functools import cache
from pathlib import Path

import msgspec

from utils.course.shown import Shown, in_html
from utils.facts import VERDICTS, claim
from utils.facts.records import read_as, read_yaml

FOLDER = Path(__file__).parent / "quizzes"


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question with its options: letter to (text, feedback), and the digest of the right letter.

    digest: `digest("lab03", "q1", "b")`, so that the file confirms an answer without containing it.
    """

    prompt: str
    options: dict[str, tuple[str, str]]
    digest: str


class ClaimQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim of the ledger that a lesson lets its reader judge.

    claim: its id, such as "A-017". hints: for wrong verdicts, what speaks against them; verdicts
    without a hint of their own get a general one.
    """

    claim: str
    hints: dict[str, str]


class Questions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one notebook asks at its end, by the names of the questions."""

    quiz: dict[str, Question]
    claims: dict[str, ClaimQuestion] = {}


_NOT_IT = {
    "confirmed": "for that verdict, another source than the article has to say all of it",
    "vendor-claim": "for that verdict, only the vendor could know it: who else can measure it?",
    "outdated": "for that verdict, it was right once: which release or chip changed it?",
    "wrong": "for that verdict, a source or a measurement has to contradict it: which one?",
    "unverifiable": "for that verdict, no public source may say anything about it: look once more",
    "opinion": "for that verdict, no evidence could confirm it or contradict it",
}


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


def questions(notebook: str) -> Questions:
    """The questions of a notebook, such as "lab03".

    Raises:
        ValueError: if there are none, or if their file is not valid.
    """
    path = FOLDER / f"{notebook}.yaml"
    if not path.is_file():
        raise ValueError(
            f"there is no quiz for {notebook!r}; quizzes are called 'lesson03' or 'lab03'"
        )
    return _read(path)


@cache
def _read(path: Path) -> Questions:
    return read_as(Questions, read_yaml(path), f"utils/course/quizzes/{path.name}")


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
    return _show("quiz", notebook, answers)


def claims(notebook: str = "", **verdicts: object) -> Shown:
    """Show the claims that a lesson has checked; say of each verdict, such as c1="wrong", if it is
    the ledger's.

    A right verdict is followed by the correct statement and its source, a wrong one by a hint.
    """
    return _show("claims", notebook, verdicts)


def _judge(question: ClaimQuestion, answer: object) -> str:
    verdict, asked = normalise(answer), claim(question.claim)
    if verdict not in VERDICTS:
        return f"{answer!r} is not a verdict: choose one of {', '.join(VERDICTS)}"
    if verdict != asked.verdict:
        return f"{verdict} is not it: {question.hints.get(verdict, _NOT_IT[verdict])}"
    source = f" Source: {asked.source}" if asked.source else ""
    return f"{verdict} is right. {asked.correct}{source}"


def _asked(
    notebook: str, name: str, question: Question | ClaimQuestion, answer: object
) -> tuple[str, list[str], str]:
    """What is asked, the options, and what is said of the answer."""
    if isinstance(question, ClaimQuestion):
        text = claim(question.claim).text
        response = "your verdict?" if answer is None else _judge(question, answer)
        return f"An article says: {text}.".replace("..", "."), [], response
    options = [f"{letter})  {text}" for letter, (text, _) in question.options.items()]
    if answer is None:
        return question.prompt, options, f"choose one of {', '.join(question.options)}"
    return question.prompt, options, _answered(notebook, name, question, answer)


def _show(function: str, notebook: object, answers: dict[str, object]) -> Shown:
    """The page of `quiz` or `claims`, which `function` names."""
    if not isinstance(notebook, str) or not notebook:
        call = f"{function}()" if notebook == "" else f"{function}({notebook!r})"
        names = ("lab03", "lesson03") if function == "quiz" else ("lesson03",)
        examples = ", ".join(f'{function}("{name}")' for name in names)
        return Shown(f"{call}: name a notebook, as in {examples}")
    try:
        asked = getattr(questions(notebook), function)
    except ValueError as error:
        return Shown(str(error))
    if not asked:
        return Shown(f"{notebook} has no claims to check")
    lines, blocks = [], []
    if unknown := [name for name in answers if name not in asked]:
        what = "questions" if function == "quiz" else "claims"
        lines.append(f"there is no {', '.join(unknown)}: the {what} are {', '.join(asked)}")
        blocks.append(f"<p>{in_html(lines[-1])}</p>")
    if function == "claims":
        verdicts = [f"{verdict}: {meaning}" for verdict, meaning in VERDICTS.items()]
        lines += ["the verdicts:", *(f"      {verdict}" for verdict in verdicts)]
        blocks.append("<p>" + "<br>".join(map(in_html, verdicts)) + "</p>")
    for name, question in asked.items():
        prompt, options, response = _asked(notebook, name, question, answers.get(name))
        lines += [f"{name}  {prompt}", *(f"      {line}" for line in options), f"  → {response}"]
        blocks.append(
            f"<p><b>{in_html(name)}</b> {in_html(prompt)}<br>"
            + "".join(f"&emsp;{in_html(line)}<br>" for line in options)
            + f"→ {in_html(response)}</p>"
        )
    return Shown("\n".join(lines), "".join(blocks))
