"""What the course quotes: every figure and statement with its source, status and date.

Each is written once, in `utils/facts/data/`, and named by key everywhere else. `figure(key)` is a
number of a chip or an instance, `fact(key)` a statement about software, `claim(id)` what a popular
article says and what is known about it. `table(keys)` shows figures with their sources;
`timeline` is the history of the SDK.

May import: nothing of the course. Used by: every other room.
"""

from utils.facts.ages import LIMITS, stale
from utils.facts.ledger import VERDICTS, Claim, claim, claims
from utils.facts.records import STATUSES, Figure, Unknown, figure, figures
from utils.facts.statements import Fact, Sources, fact
from utils.facts.tables import table
