"""Trainium, GPU, either or neither: a rule that says which, why, and what would change it.

`decide(answers, audit, comparison)` reads one table of rules (`rules.ROWS`) and gives a `Decision`;
`pilot` plans the six steps that come after a yes, and fills itself from what was found so far.
"""

from utils.decision.judgements import JUDGEMENTS, judged
from utils.decision.questions import QUESTIONS, AnswerError, Answers
from utils.decision.rule import VERDICTS, Decision, decide
from utils.decision.saving import Saving

__all__ = [
    "JUDGEMENTS",
    "QUESTIONS",
    "VERDICTS",
    "AnswerError",
    "Answers",
    "Decision",
    "Saving",
    "decide",
    "judged",
]
