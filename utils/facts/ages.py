"""How old facts may become: each kind has its limit, named here and nowhere else."""

import datetime
from dataclasses import dataclass

from utils.facts.records import Figure, content, figures
from utils.facts.statements import Fact, facts

PRICE_DAYS = 90
SOFTWARE_DAYS = 60
DOCUMENTATION_DAYS = 180
LIMITS = {"price": PRICE_DAYS, "software": SOFTWARE_DAYS, "documentation": DOCUMENTATION_DAYS}
"""Days after which a fact of that kind should be looked up again."""


PUBLISHED_ONCE = ("https://arxiv.org/", "https://doi.org/", "https://www.opencompute.org/")
"""Papers and standards do not age: another edition has another address."""


def kind(fact: Figure | Fact) -> str:
    """Which of `LIMITS` holds, or "paper": statements are about software, prices are given in
    dollars.
    """
    if fact.source.startswith(PUBLISHED_ONCE):
        return "paper"
    if isinstance(fact, Fact):
        return "software"
    return "price" if fact.unit.startswith("USD") else "documentation"


@dataclass(frozen=True)
class Aged:
    """A fact that is older than its kind allows."""

    key: str
    kind: str
    date: datetime.date
    days: int
    source: str

    @property
    def over(self) -> int:
        """Days past the limit."""
        return self.days - LIMITS[self.kind]


def age(fact: Figure | Fact, today: datetime.date) -> str:
    """What to say of a fact's age: nothing within its limit.

    >>> from utils.facts import figure
    >>> age(figure("trn1.32xlarge.price.on_demand"), datetime.date(2026, 11, 20))
    '123 days old'
    """
    days = (today - fact.date).days
    return f"{days} days old" if days > LIMITS.get(kind(fact), days) else ""


def last_try(source: str) -> str:
    """The day on which somebody tried to look that source up again, and what came of it, or ""."""
    known = content("lookups.yaml")
    begins = [begin for begin in known["states"] if source.startswith(begin)]
    return f"{known['date']}: {known['states'][max(begins, key=len)]}" if begins else ""


def stale(today: datetime.date) -> tuple[Aged, ...]:
    """Facts to look up again, oldest first; derived figures follow from the others and are left
    out.
    """
    everything: list[Figure | Fact] = [
        *(figure for figure in figures().values() if not figure.formula),
        *facts().values(),
    ]
    old = [
        Aged(fact.key, kind(fact), fact.date, (today - fact.date).days, fact.source)
        for fact in everything
        if age(fact, today)
    ]
    return tuple(sorted(old, key=lambda fact: (fact.date, fact.source, fact.key)))
