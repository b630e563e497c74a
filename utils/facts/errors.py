"""Errors of Neuron's compiler, runtime, containers and profiler, found in a log or by words.

They are written once, in `utils/facts/data/error_codes.yaml`. `in_log(text)` finds the entries
whose code, number or message a log holds; `by_words` ranks any texts by the words of a question.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import msgspec

from utils.facts.records import content, read_as

CODE = re.compile(r"\b(?:NCC_)?E[A-Z]{3}\d{3}\b|\bNRT_[A-Z]+(?:_[A-Z]+)*\b")
"""A code as a log writes it; the compiler's also without its prefix."""
NUMBER = re.compile(
    r"(?:completed with err:|NRT_STATUS)\W*(\d+)"
    r"|\b(?:err|error|status(?:[ _]code)?)\W{1,3}(1\d{3})\b",
    re.I,
)
"""A status of the runtime as a number. Small numbers behind "error" are those of other programs."""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
IGNORED = frozenset({"a", "an", "and", "are", "at", "for", "in", "is", "it", "of", "the", "to"})


class Error(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One error. code: its code, or a name of ours for a message without one.

    messages: as documented; `…` stands for what differs. number: of an NRT_STATUS, otherwise 0.
    source: where it was read. lesson: the lesson of the course that treats its cause.
    """

    code: str
    cause: str
    action: str
    source: str
    date: datetime.date
    messages: tuple[str, ...] = ()
    number: int = 0
    lesson: str = "17"

    @property
    def text(self) -> str:
        """Everything that is said about it, to search in."""
        return " ".join((self.code, *self.messages, self.cause, self.action))


@dataclass(frozen=True)
class Hit:
    """An entry that a log names. line: the first line of the log that names it, as it is there."""

    error: Error
    line: str


@cache
def errors() -> dict[str, Error]:
    """All of them by code, in the order of the file.

    >>> errors()["NRT_EXEC_OOB"].number
    1006
    """
    table = content("error_codes.yaml")
    result = {}
    for code, entry in table["errors"].items():
        page = table["pages"][entry.get("page", "compiler")].format(code=code.removeprefix("NCC_"))
        own = {name: value for name, value in entry.items() if name != "page"}
        where = {"code": code, "source": table["repository"] + page, "date": table["date"]}
        result[code] = read_as(Error, own | where, f"error_codes.yaml, {code}")
    return result


def unknown_codes(text: str) -> list[str]:
    """Codes in a text that have no entry, in its order.

    >>> unknown_codes("[ERROR] [NCC_EXYZ123] then NRT_TIMEOUT")
    ['NCC_EXYZ123']
    """
    return [code for code in dict.fromkeys(map(_whole, CODE.findall(text))) if code not in _known()]


def in_log(text: str) -> tuple[Hit, ...]:
    """Entries that a log names by code, message or number, in the order of the log, each once.

    >>> [hit.error.code for hit in in_log("NMGR:dlr_infer  Inference completed with err: 1006.")]
    ['NRT_EXEC_OOB']
    """
    hits: dict[str, Hit] = {}
    alone = text.strip().isdecimal()
    for line in map(str.strip, COLOURS.sub("", text).splitlines()):
        codes = [_whole(code) for code in CODE.findall(line)]
        lower = line.lower()
        # Several codes share a message; a line that names one of them means that one.
        shared = {errors()[code].messages for code in codes if code in errors()}
        codes += [
            error.code
            for part, pattern, error in _patterns()
            if part in lower and error.messages not in shared and pattern.search(line)
        ]
        if not codes:
            groups = [(line,)] if alone else NUMBER.findall(line)
            numbers = {int(number) for group in groups for number in group if number}
            codes = [error.code for error in errors().values() if error.number in numbers - {0}]
        for code in codes:
            if code in errors():
                hits.setdefault(code, Hit(errors()[code], line))
    return tuple(hits.values())


@cache
def _patterns() -> list[tuple[str, re.Pattern[str], Error]]:
    """Each message as it occurs in a log, with its longest part in small letters, found sooner."""
    return [
        (
            max(message.split("…"), key=len).lower(),
            re.compile(".*?".join(map(re.escape, message.split("…"))), re.I),
            error,
        )
        for error in errors().values()
        for message in error.messages
    ]


def by_words(question: str, texts: Mapping[str, str], most: int = 5) -> list[str]:
    """Keys of the texts that hold all words of a question, or else most of them, best first.

    A word counts if a word of the text begins with it, or is its beginning with four letters or
    more ("loading", "load"). With fewer than half of the words no text is given.

    >>> by_words("loader waits", {"a": "the loop waits for its loader", "b": "a loader"})
    ['a']
    """
    asked = _words(question) - IGNORED
    counts = {}
    for key, text in texts.items():
        have = _words(text)
        near = sum(
            any(h.startswith(w) or (len(h) >= 4 and w.startswith(h)) for h in have) for w in asked
        )
        if near and near >= len(asked) / 2:
            phrase = " ".join(question.lower().split()) in text.lower().replace("-", " ")
            counts[key] = (near, phrase, len(asked & have))
    best = max((near for near, *_ in counts.values()), default=0)
    order = sorted(counts, key=counts.__getitem__, reverse=True)
    return [key for key in order if counts[key][0] == best][:most]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9_]+", text.lower()))


def _whole(code: str) -> str:
    return code if code.startswith("N") else f"NCC_{code}"


def _known() -> set[str]:
    return {*errors(), "NRT_SUCCESS", "NRT_STATUS"}
