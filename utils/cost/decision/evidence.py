"""Where a sentence of the decision comes from: a fact, a claim, a figure, or our own judgement."""

import datetime
import re
from dataclasses import dataclass

from utils.cost.decision.judgements import JUDGEMENTS
from utils.facts import claim, fact, figure
from utils.facts.ledger import AS_OF

CLAIM = re.compile(r"[A-D]-\d{3}")
JUDGED = "judgement:"


@dataclass(frozen=True)
class Evidence:
    """One source. `status` is that of the fact or figure, "claim: VERDICT", or "judgement"."""

    key: str
    text: str
    address: str
    status: str
    date: datetime.date

    @property
    def short(self) -> str:
        """
        >>> evidence("D-037").short
        'D-037 (claim: opinion, 2026-11-23)'
        """
        name = self.key.removeprefix(JUDGED)
        when = "" if self.status == "judgement" else f", {self.date}"
        return f"{name} ({self.status}{when})"


def evidence(key: str) -> Evidence:
    """The evidence of a key: "judgement:NAME", the id of a claim, or the key of a fact or figure.

    Raises:
        KeyError: if nothing has that key.
    """
    if key.startswith(JUDGED):
        name = key.removeprefix(JUDGED)
        if name not in JUDGEMENTS:
            raise KeyError(f"no judgement {name!r}; there are {', '.join(JUDGEMENTS)}")
        judgement = JUDGEMENTS[name]
        text = f"{judgement.about}: {judgement.number:,.6g} {judgement.unit}"
        return Evidence(key, text, "", "judgement", AS_OF)
    if CLAIM.fullmatch(key):
        known = claim(key)
        return Evidence(key, known.correct, known.source, f"claim: {known.verdict}", AS_OF)
    row = figure(key) if "." in key else fact(key)
    return Evidence(key, row.text, row.source, row.status, row.date)
