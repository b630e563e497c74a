"""The numbers of the decision rule that no source gives: each is a judgement of ours, and says why.

Whoever judges otherwise changes them: `decide(answers, judgements=judged(least_saving=0.2))`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from utils.facts import figure


@dataclass(frozen=True)
class Judgement:
    """One number of ours, or the key of a figure that we judge to fit. unit: of the value. low,
    high: what is allowed. why: what speaks for it.

    Amounts of money are in the currency of the answers; ours are in USD.
    """

    name: str
    value: float | str
    unit: str
    low: float
    high: float
    about: str
    why: str

    @property
    def number(self) -> float:
        """The value, or that of the figure, in `unit`."""
        return figure(self.value).number if isinstance(self.value, str) else self.value


_ROWS = (
    Judgement(
        "clear_probability",
        0.9,
        "of the draws",
        0.5,
        1,
        "probability from which the money is clear",
        "wrong one time in ten, if the ranges are right; a port is spent by then",
    ),
    Judgement(
        "leaning_probability",
        0.7,
        "of the draws",
        0.5,
        1,
        "probability from which the money leans",
        "odds of better than two to one; below, the ranges of the inputs decide, not the machines",
    ),
    Judgement(
        "least_saving",
        0.1,
        "of the GPU cost",
        0,
        1,
        "smallest middle saving that is worth a second platform",
        "GPU block prices moved by more than this within half a year",
    ),
    Judgement(
        "least_amount",
        20_000,
        "money over the horizon",
        0,
        1e9,
        "smallest amount saved that is worth a second platform",
        "about what five weeks of an engineer cost, which one upgrade of the SDK may take",
    ),
    Judgement(
        "lead",
        2,
        "votes",
        1,
        20,
        "lead in votes that a verdict needs",
        "one vote alone, of whichever row, is no reason to move",
    ),
    Judgement(
        "least_spend",
        5_000,
        "money per year",
        0,
        1e9,
        "spend below which an inference service needs no accelerator of its own",
        "an accelerator that runs all year costs more, so it would stand idle most of the day",
    ),
    Judgement(
        "best_saving",
        0.5,
        "of the GPU cost",
        0,
        1,
        "largest saving that the volume rule grants to Trainium",
        "AWS's own largest figure, whose baseline is undefined: more than the vendor claims is not"
        " to be hoped for",
    ),
    Judgement(
        "payback_years",
        1,
        "years",
        0.1,
        10,
        "time within which the saving must pay for port and pilot",
        "the software path was replaced within a year: what was ported once may be again",
    ),
    Judgement(
        "week_pay",
        "people.developer_week",
        "money per engineer and week",
        0,
        1e6,
        "pay of one engineer for a week",
        "a mean of the United States, with what the employer pays beside the wage: put your own",
    ),
    Judgement(
        "repeated_runs",
        12,
        "runs per year",
        1,
        1e6,
        "runs from which work counts as repeated",
        "monthly: a port is used often enough before the next version of the SDK",
    ),
    Judgement(
        "single_runs",
        2,
        "runs per year",
        0,
        1e6,
        "runs up to which work counts as a one-off",
        "a port that is used once or twice is paid by one or two runs",
    ),
    Judgement(
        "slack",
        1.5,
        "times port and pilot",
        1,
        10,
        "time to the deadline below which there is little slack",
        "estimates of ports are guesses (B-048), and half again is a mild error for a guess",
    ),
    Judgement(
        "port_weeks",
        2,
        "engineer weeks",
        0,
        500,
        "port of a standard model",
        "the middle of 'days to weeks' (B-048), for which no data are given",
    ),
    Judgement(
        "serve_weeks",
        1,
        "engineer weeks",
        0,
        500,
        "first service with vLLM on a model that has a recipe",
        "configuration and compilation instead of code",
    ),
    Judgement(
        "xla_weeks",
        2,
        "engineer weeks",
        0,
        500,
        "from PyTorch/XLA to TorchNeuron, on top",
        "step markers and launchers go, devices and compilation change",
    ),
    Judgement(
        "replacement_weeks",
        3,
        "engineer weeks",
        0,
        500,
        "a few CUDA kernels with known replacements, on top",
        "each is exchanged and its results compared",
    ),
    Judgement(
        "central_weeks",
        16,
        "engineer weeks",
        0,
        500,
        "CUDA kernels that are many or central, on top",
        "each is written anew in NKI, with its gradient, validated and made fast",
    ),
    Judgement(
        "bucket_weeks",
        1,
        "engineer weeks",
        0,
        500,
        "shapes into buckets, on top",
        "padding, masks and a warm-up of the cache",
    ),
    Judgement(
        "dynamic_weeks",
        6,
        "engineer weeks",
        0,
        500,
        "data-dependent shapes, on top",
        "the model is rewritten to a bound, or cut where the shape becomes known",
    ),
    Judgement(
        "errors_per_week",
        40,
        "findings per week",
        1,
        1e6,
        "errors of the audit that one engineer clears in a week, on top",
        "most are one line each, but each is tested",
    ),
    Judgement(
        "novice_factor",
        1.5,
        "times",
        1,
        10,
        "effort of a team that has ported to no accelerator",
        "the first port pays for learning",
    ),
    Judgement(
        "expert_factor",
        0.7,
        "times",
        0.1,
        1,
        "effort of a team that has ported to Trainium",
        "tools and traps are known",
    ),
    Judgement(
        "team",
        3,
        "engineers",
        1,
        50,
        "engineers who can share a port",
        "beyond that, work on one model does not divide",
    ),
    Judgement(
        "hiring_weeks",
        8,
        "weeks",
        0,
        104,
        "time to find an engineer where there is none",
        "a contractor within two months",
    ),
    Judgement(
        "own_kernels",
        3,
        "findings",
        1,
        1e6,
        "CUDA or Triton kernels of one's own from which the audit calls them central",
        "one or two may be a fast path beside a plain one",
    ),
    Judgement(
        "dynamic_findings",
        5,
        "findings",
        1,
        1e6,
        "shapes by data from which the audit calls them data-dependent",
        "a few stand in metrics and can be moved to the host",
    ),
)

JUDGEMENTS: Mapping[str, Judgement] = MappingProxyType({row.name: row for row in _ROWS})
Values = Mapping[str, float]


def judged(**changes: float) -> Values:
    """The value of every judgement, with some changed.

    >>> judged(lead=3)["lead"], judged()["lead"]
    (3, 2)

    Raises:
        ValueError: for a name that is none, or a value outside what is allowed.
    """
    rows = dict(JUDGEMENTS)
    for name, value in changes.items():
        if name not in rows:
            raise ValueError(f"{name}: no such judgement; allowed are {', '.join(rows)}")
        low, high = rows[name].low, rows[name].high
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not low <= value <= high:
            raise ValueError(f"{name}: {value!r} is not allowed; allowed is {low:g} to {high:g}")
        rows[name] = replace(rows[name], value=value)
    if rows["leaning_probability"].number > rows["clear_probability"].number:
        raise ValueError("leaning_probability: above clear_probability; it may be at most that")
    return MappingProxyType({name: row.number for name, row in rows.items()})
