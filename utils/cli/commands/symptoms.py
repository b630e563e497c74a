"""Say what a pasted log or a few words point to: cause, what to do, source, lesson.

A log is searched for codes of the compiler (NCC_...), statuses of the runtime (NRT_..., or their
numbers) and documented messages; a few words are looked for in these entries and in the symptoms of
slow training. Without TEXT the log is read from standard input, such as
`python3 course.py symptoms < run.log`.
"""

import argparse
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from utils.facts.errors import Error
    from utils.training.symptoms import Symptom

NEEDS = "learner"
WORDS = 15
"""A text of more words, or of several lines, is a log: its words say nothing by themselves."""
LINE = 300
"""Characters that are shown of a line."""


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status: 0 with entries, 1 without, 2 without a text."""
    parser = argparse.ArgumentParser(
        "course.py symptoms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", nargs="*", help="words, a code or lines of a log; - or none: stdin")
    given = " ".join(parser.parse_args(arguments).text)
    if given in ("", "-"):
        if sys.stdin.isatty():
            print("paste the log, then press Ctrl-D on a line of its own", file=sys.stderr)
        given = sys.stdin.buffer.read().decode(errors="replace")
    if not given.strip():
        print(
            "course.py symptoms: there is no text to search; give words or a code, or a log on"
            " standard input: python3 course.py symptoms < run.log",
            file=sys.stderr,
        )
        return 2
    status, lines = answer(given)
    print(*lines, sep="\n", file=sys.stderr if status else sys.stdout)
    return status


def answer(text: str) -> tuple[int, list[str]]:
    """The exit status, and the lines to print."""
    from utils.facts import errors  # late: --help needs no packages
    from utils.training.symptoms import symptoms

    lines = []
    hits = errors.in_log(text)
    if len(hits) > 1:
        lines.append(
            "In the order of the log. Of one process the first is most often the cause of the"
            " others; sort\nthe logs of several ranks by time before.\n"
        )
    for hit in hits:
        lines += _error(hit.error, hit.line if hit.line != text.strip() else "")
    unknown = errors.unknown_codes(text)
    for code in unknown:
        lines.append(
            f"{code} has no entry here (state of the documentation:"
            f" {errors.errors()['NCC_EARG001'].date}); look for it in the documentation of Neuron's"
            " error codes, and in the issues of aws-neuron/aws-neuron-sdk\n"
        )
    if hits or unknown:
        return (0 if hits else 1), lines
    if len(text.split()) > WORDS or "\n" in text.strip():
        return 1, [
            "No documented code or message is in this log. Search it for the first line with ERROR"
            " or Traceback, and give that line, or a few words such as \"cores in use\"."
        ]  # fmt: skip
    rows = {row.key: row for row in symptoms()}
    texts = {code: error.text for code, error in errors.errors().items()}
    texts |= {key: f"{row.symptom} {row.cause} {row.fix}" for key, row in rows.items()}
    for key in errors.by_words(text, texts):
        lines += _symptom(rows[key]) if key in rows else _error(errors.errors()[key])
    if not lines:
        return 1, [
            f"Nothing here has these words: {text.strip()!r}. Try fewer or others, such as"
            " \"device memory\" or \"loader waits\", or give lines of the log itself."
        ]  # fmt: skip
    return 0, lines


def _error(error: "Error", line: str = "") -> list[str]:
    number = f" ({error.number})" if error.number else ""
    rows = [
        ("in", line if len(line) < LINE else line[:LINE] + " ..."),
        ("message", error.messages[0] if error.messages and not line else ""),
        ("cause", error.cause),
        ("do", error.action),
        ("lesson", f"{error.lesson} of this course"),
        ("source", f"{error.date}, {error.source}"),
    ]
    return [f"{error.code}{number}", *_rows(rows)]


def _symptom(row: "Symptom") -> list[str]:
    from utils.facts import fact

    source = fact(row.sources[0])
    rows = [
        ("symptom", row.symptom),
        ("cause", row.cause),
        ("look", row.look),
        ("do", row.fix),
        ("lesson", row.where if row.where.startswith("lesson") else f"lesson 06, {row.where}"),
        ("source", f"{source.date}, {source.source}"),
    ]
    return [row.key, *_rows(rows)]


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    lines = []
    for name, text in rows:
        if text:
            head = f"  {name:8} "
            lines.append(
                textwrap.fill(
                    text, 100, initial_indent=head, subsequent_indent=" " * len(head),
                    break_long_words=False, break_on_hyphens=False,
                )
            )  # fmt: skip
    return [*lines, ""]
