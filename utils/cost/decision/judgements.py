"""The numbers of the decision rule that no source gives: each is a judgement of ours, and says why.

Whoever judges otherwise changes them: `decide(answers, judgements=adjust(least_saving=0.2))`.
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from utils.cost.checks import is_number
from utils.cost.decision.questions import read_rows
from utils.facts import figure


class Judgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One number of ours, or the key of a figure that we judge to fit. unit: of the value. low,
    high: what is allowed. why: what speaks for it.

    Amounts of money are in the currency of the answers; ours are in USD.
    """

    name: str
    value: int | float | str
    unit: str
    low: int | float
    high: int | float
    about: str
    why: str

    @property
    def number(self) -> float:
        """The value, or that of the figure, in `unit`."""
        return figure(self.value).number if isinstance(self.value, str) else self.value


JUDGEMENTS: Mapping[str, Judgement] = read_rows(Judgement, "judgements")
Values = Mapping[str, float]


def adjust(**changes: float) -> Values:
    """The value of every judgement, with some changed.

    >>> adjust(lead=3)["lead"], adjust()["lead"]
    (3, 2)

    Raises:
        ValueError: for a name that is none, or a value outside what is allowed.
    """
    rows = dict(JUDGEMENTS)
    for name, value in changes.items():
        if name not in rows:
            raise ValueError(f"{name}: no such judgement; allowed are {', '.join(rows)}")
        low, high = rows[name].low, rows[name].high
        if not is_number(value) or not low <= value <= high:
            raise ValueError(f"{name}: {value!r} is not allowed; allowed is {low:g} to {high:g}")
        rows[name] = replace(rows[name], value=value)
    if rows["leaning_probability"].number > rows["clear_probability"].number:
        raise ValueError("leaning_probability: above clear_probability; it may be at most that")
    return MappingProxyType({name: row.number for name, row in rows.items()})


def with_unit(number: float, unit: str) -> str:
    """A number with its unit, which loses its s beside a one.

    >>> with_unit(1, "years"), with_unit(20_000, "votes"), with_unit(0.9, "of the draws")
    ('1 year', '20,000 votes', '0.9 of the draws')
    """
    return f"{number:,.6g} {unit.removesuffix('s') if number == 1 else unit}"
