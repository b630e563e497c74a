"""What a run costs, how sure that is, and what would change the answer.

`scenario(name)` is a worked comparison with all its inputs; `compare(...)`, `tornado(...)`,
`break_even(...)` and `value_of_measuring(...)` ask it questions; `warnings(...)` says what is wrong
with comparing. `job(values)` and `service(values)` are the models themselves. Imports no torch.

>>> compare(scenario("lora-13b")).a
'trainium'
"""

from utils.cost.tco.buying import Way, late_week, ways
from utils.cost.tco.comparison import Warned, warnings
from utils.cost.tco.cost import LINES, Cost
from utils.cost.tco.failures import best_interval, expected_hours
from utils.cost.tco.fields import FIELDS, NEEDS, Field, InputError
from utils.cost.tco.inputs import Input, assume, price_of, quote
from utils.cost.tco.job import job, throughput
from utils.cost.tco.ownership import Owned, owning_cost
from utils.cost.tco.scenario import (
    Context,
    Option,
    Scenario,
    from_query,
    offers,
    scenario,
    scenarios,
    to_query,
)
from utils.cost.tco.service import Point, fastest_within, per_million_tokens, service
from utils.cost.tco.uncertainty import (
    SHAPES,
    BreakEven,
    ByRow,
    Comparison,
    Swing,
    break_even,
    break_even_surface,
    by_row,
    compare,
    sample,
    tornado,
    value_of_measuring,
)

__all__ = [
    "FIELDS",
    "LINES",
    "NEEDS",
    "SHAPES",
    "BreakEven",
    "ByRow",
    "Comparison",
    "Context",
    "Cost",
    "Field",
    "Input",
    "InputError",
    "Option",
    "Owned",
    "Point",
    "Scenario",
    "Swing",
    "Warned",
    "Way",
    "assume",
    "best_interval",
    "break_even",
    "break_even_surface",
    "by_row",
    "compare",
    "expected_hours",
    "fastest_within",
    "from_query",
    "job",
    "late_week",
    "offers",
    "owning_cost",
    "per_million_tokens",
    "price_of",
    "quote",
    "sample",
    "scenario",
    "scenarios",
    "service",
    "throughput",
    "to_query",
    "tornado",
    "value_of_measuring",
    "warnings",
    "ways",
]
