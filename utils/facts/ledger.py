"""The claims ledger: what popular articles say about Trainium, and what a check finds.

Every row of `utils/facts/data/claims.csv` is one statement of an article, in our words, with a
verdict and the correct statement. `AS_OF` is the day on which rows were last looked up and changed;
a verdict may change when its source does.
"""

import csv
import datetime
from collections import Counter
from dataclasses import dataclass
from functools import cache

import msgspec

from utils.facts.records import DATA, read_as
from utils.facts.tables import markdown

AS_OF = datetime.date(2026, 11, 23)

ARTICLES = {
    "A": "a hands-on guide that recommends Trainium, with code, spring 2026",
    "B": "a comparison of prices by a company that arranges cloud credits",
    "C": "a newsletter for investors on Trainium3, its second half behind a paywall",
    "D": "a retold report of a press tour through the chip laboratory, March 2026",
}
VERDICTS = {
    "confirmed": "a source that is not the article agrees; for hardware, documentation",
    "vendor-claim": "only the maker of the product says so, and nobody else could measure it",
    "outdated": "was true once, and something has replaced it",
    "wrong": "a source, or a run of the code, says something else",
    "unverifiable": "no public evidence was found, for or against",
    "opinion": "advice, analogy or forecast: nothing that evidence could settle",
}


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement of an article, checked.

    id: such as "A-017"; the letter is that of the article in `ARTICLES`.
    topic: such as "hardware". verdict: one of `VERDICTS`. text: what the article says, in words of
    ours. correct: what the evidence says. source: its address, or "" where there is none.
    """

    id: str
    topic: str
    verdict: str
    text: str
    correct: str
    source: str
    note: str

    @property
    def article(self) -> str:
        """What kind of article it stands in."""
        return ARTICLES[self.id[0]]


@cache
def _ledger() -> dict[str, Claim]:
    with (DATA / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = read_as(list[Claim], list(csv.DictReader(file)), "claims.csv")
    return {row.id: row for row in rows}


def claims(text: str = "", topic: str = "", verdict: str = "") -> tuple[Claim, ...]:
    """The claims of a topic and a verdict that contain `text`, in capitals or not, anywhere.

    >>> [claim.id for claim in claims("ready to paste", verdict="wrong")]
    ['A-100', 'A-106']

    Raises:
        ValueError: if there is no such topic or verdict, with those that there are.
    """
    known = tuple(_ledger().values())
    for name, given, there in (
        ("topic", topic, sorted({claim.topic for claim in known})),
        ("verdict", verdict, list(VERDICTS)),
    ):
        if given and given not in there:
            raise ValueError(f"no {name} {given!r}: there are {', '.join(there)}")
    words = text.lower()
    return tuple(
        claim
        for claim in known
        if topic in ("", claim.topic)
        and verdict in ("", claim.verdict)
        and words in f"{claim.id} {claim.text} {claim.correct} {claim.note}".lower()
    )


def claim(identity: str) -> Claim:
    """The claim of that id.

    >>> claim("A-017").verdict
    'wrong'
    """
    if identity not in _ledger():
        first, *_, last = sorted(_ledger())
        raise KeyError(f"no claim {identity!r}; they are called {first} to {last}, see claims()")
    return _ledger()[identity]


@dataclass(frozen=True)
class Counts:
    """How many claims there are of each topic and verdict, as a table."""

    claims: tuple[Claim, ...]

    def rows(self) -> list[tuple[object, ...]]:
        """(topic, claims per verdict, all), the largest topic first; the last row has the sums."""
        result = Counter((item.topic, item.verdict) for item in self.claims)
        topics = Counter(item.topic for item in self.claims)
        verdicts = Counter(item.verdict for item in self.claims)
        return [
            *(
                (topic, *(result[topic, verdict] for verdict in VERDICTS), count)
                for topic, count in topics.most_common()
            ),
            ("all", *(verdicts[verdict] for verdict in VERDICTS), len(self.claims)),
        ]

    def __repr__(self) -> str:
        return f"{len(self.claims)} claims by topic and verdict"

    def _repr_markdown_(self) -> str:
        head = ("topic", *VERDICTS, "all")
        return markdown(head, self.rows(), right=tuple(range(1, len(head))))


@dataclass(frozen=True)
class Listed:
    """Claims as a table: what is said, and what the evidence says."""

    claims: tuple[Claim, ...]

    def __repr__(self) -> str:
        return f"{len(self.claims)} claims, each with its correct statement"

    def _repr_markdown_(self) -> str:
        return markdown(
            ("", "an article says", "verdict", "what is known"),
            (
                (
                    item.id,
                    item.text,
                    item.verdict,
                    item.correct + (f" ([source]({item.source}))" if item.source else ""),
                )
                for item in self.claims
            ),
        )
