"""What the course quotes: every figure and statement with its source, status and date.

Each is written once, in `utils/data/`, and named by key everywhere else. `figure(key)` is a number
of a chip or an instance, `fact(key)` a statement about software, `utils.facts.claims` what popular
articles say.
"""

from utils.facts.records import STATUSES, Figure, Unknown, figure, figures
from utils.facts.statements import Fact, Sources, fact

__all__ = ["STATUSES", "Fact", "Figure", "Sources", "Unknown", "fact", "figure", "figures"]
