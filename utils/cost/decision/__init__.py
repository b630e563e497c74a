"""Trainium, GPU, either or neither: a rule that says which, why, and what would change it.

`decide(answers, audit, comparison)` reads one table of rules (`rules.ROWS`) and gives a `Decision`;
`pilot_of(decision, ...)` plans the six steps that follow a yes, filled with what was found so far.
"""

from utils.cost.decision.judgements import JUDGEMENTS, adjust
from utils.cost.decision.pilot import Pilot, Results, Throughput, pilot_of
from utils.cost.decision.plan import checklist, steps
from utils.cost.decision.questions import QUESTIONS, AnswerError, Answers
from utils.cost.decision.saving import Saving
from utils.cost.decision.verdict import VERDICTS, Decision, decide

__all__ = [
    "JUDGEMENTS",
    "QUESTIONS",
    "VERDICTS",
    "AnswerError",
    "Answers",
    "Decision",
    "Pilot",
    "Results",
    "Saving",
    "Throughput",
    "checklist",
    "decide",
    "adjust",
    "pilot_of",
    "steps",
]
