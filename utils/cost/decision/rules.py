"""The decision rule: one table, `ROWS`, read from top to bottom.

First the vetoes: each closes Trainium, the GPU or both, whatever else is said. Then the money and
then the preferences: each row that holds is a number of votes for Trainium (+) or for the GPU (-).
The votes and the thresholds are judgements: `JUDGEMENTS` explains them, `judged()` changes them.
"""

from dataclasses import dataclass

from utils.cost.decision.case import BOTH, GPU, TRAINIUM, Case, Row
from utils.cost.decision.vetoes import VETOES
from utils.cost.decision.votes import VOTES

ROWS: tuple[Row, ...] = (*VETOES, *VOTES)


@dataclass(frozen=True)
class Outcome:
    """What the rows give: the verdict, the rows that hold, what is still open, and the votes."""

    verdict: str
    rows: tuple[Row, ...]
    open: frozenset[str]
    votes: int


def outcome(case: Case, rows: tuple[Row, ...] = ROWS) -> Outcome:
    """Read the table.

    What no veto closes is open. Two open: the votes decide, and without a lead it is either. One
    open: it is that one; but where only Trainium is, and the votes speak against it, neither.
    A row that holds back turns "trainium" into "either" as long as both are open.
    """
    holding = tuple(row for row in rows if row.holds(case))
    left = BOTH.difference(*(row.closes for row in holding))
    votes, lead = sum(row.votes for row in holding), case.values["lead"]
    match sorted(left):
        case []:
            verdict = "neither"
        case [only] if only == GPU:
            verdict = GPU
        case [_]:
            verdict = TRAINIUM if votes > -lead else "neither"
        case _:
            back = any(row.holds_back for row in holding)
            ahead = "either" if back else TRAINIUM
            verdict = ahead if votes >= lead else GPU if votes <= -lead else "either"
    return Outcome(verdict, holding, left, votes)
