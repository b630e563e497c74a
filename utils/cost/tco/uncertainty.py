"""How sure a comparison is: draws from the ranges, what matters, where it flips, what measuring
is worth.

Each input is drawn from its range, by one of `SHAPES`: "triangular", most likely at its value, or
"uniform", as likely everywhere. An input that several options share is the same for all of them in
each draw. Inputs are drawn independently, which is itself an assumption. The generator is fixed: a
result can be repeated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from utils.cost.tco.cost import Cost, Number
from utils.cost.tco.fields import InputError
from utils.cost.tco.scenario import Scenario
from utils.facts import figure

DRAWS = 10_000
POINTS = 1_000
SHAPES = ("triangular", "uniform")


def sample(
    scenario: Scenario, draws: int = DRAWS, seed: int = 0, shape: str = "triangular"
) -> dict[str, np.ndarray]:
    """Draws of every input that has a range: path to an array of `draws` values. Raises InputError
    for a shape that is none of `SHAPES`.
    """
    if draws < 2:
        raise InputError("draws", draws, "2 or more")
    if shape not in SHAPES:
        raise InputError("shape", repr(shape), "one of " + ", ".join(SHAPES))
    generator = np.random.default_rng(seed)
    return {
        path: generator.triangular(item.low, item.value, item.high, draws)
        if shape == "triangular"
        else generator.uniform(item.low, item.high, draws)
        for path, item in scenario.inputs.items()
        if item.low < item.high
    }


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Option `a` against option `b` of a scenario.

    best: option to its cost at the best guesses. drawn: path to draws. totals: option to its cost
    in each draw, per run or month. shape: how inputs were drawn, one of `SHAPES`.
    """

    scenario: Scenario
    a: str
    b: str
    best: Mapping[str, Cost]
    drawn: Mapping[str, np.ndarray]
    totals: Mapping[str, np.ndarray]
    shape: str = "triangular"

    @cached_property
    def savings(self) -> np.ndarray:
        """What `a` saves against `b` in each draw, as a share of the cost of `b`."""
        return 1 - self.totals[self.a] / self.totals[self.b]

    @property
    def saving(self) -> float:
        """The saving at the best guesses, as a share."""
        return float(1 - self.best[self.a].total / self.best[self.b].total)

    @property
    def amount(self) -> float:
        """Money saved over the horizon at the best guesses; negative if `a` costs more."""
        return float(self.best[self.b].overall - self.best[self.a].overall)

    @property
    def probability(self) -> float:
        """Share of the draws in which `a` is cheaper."""
        return float(np.mean(self.totals[self.a] < self.totals[self.b]))

    def interval(self, option: str | None = None, share: float = 0.9) -> tuple[float, float]:
        """Ends that hold `share` of the draws, of an option's cost or of the saving, and the
        estimate at the best guesses: the middle of the draws, moved as far as the estimate asks.
        """
        if option is None:
            values, estimate = self.savings, self.saving
        else:
            values, estimate = self.totals[option], float(self.best[option].total)
        tail = (1 - share) / 2
        below = np.clip(tail, 1 - share - np.mean(values > estimate), np.mean(values < estimate))
        low, high = np.quantile(values, np.clip([below, below + share], 0, 1))
        return min(float(low), estimate), max(float(high), estimate)

    @property
    def ratio(self) -> float:
        """The cost of `a` over the cost of `b`, at the best guesses."""
        return 1 - self.saving

    def __repr__(self) -> str:
        low, high = self.interval()
        chips = [
            f"the MFU of {option} is that of {item.chip}"
            for option in (self.a, self.b)
            if (item := self.scenario.inputs_of(option).get("mfu")) and item.chip
        ]
        return (
            f"{self.a} costs {self.ratio:.2f} times what {self.b} costs, in nine draws of ten"
            f" {1 - high:.2f} to {1 - low:.2f}; it is cheaper in {self.probability:.0%} of them"
            f" ({self.shape} draws)" + "".join(f"; {text}" for text in chips)
        )


def compare(
    scenario: Scenario,
    a: str | None = None,
    b: str | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    shape: str = "triangular",
) -> Comparison:
    """Compare two options, the first two if none are named."""
    a, b = _pair(scenario, a, b)
    drawn = sample(scenario, draws, seed, shape)
    totals = {
        option: np.broadcast_to(scenario.cost(option, drawn).total, (draws,)) for option in (a, b)
    }
    best = {option: scenario.cost(option) for option in (a, b)}
    _check_divisor(b, totals[b])
    return Comparison(scenario, a, b, best, drawn, totals, shape)


@dataclass(frozen=True)
class ByRow:
    """A comparison with one published figure in place of the best guess, everything else as it is.

    path: the input. key, chip, value: the figure, what it was measured on, and its number. ratio:
    cost of `a` over that of `b`. probability: share of draws in which `a` is cheaper, this input
    held. cheaper: the cheaper option.
    """

    path: str
    key: str
    chip: str
    value: float
    ratio: float
    probability: float
    cheaper: str


def by_row(compared: Comparison, draws: int = 2_000) -> tuple[ByRow, ...]:
    """What each published figure that fits an input of either option makes of the comparison."""
    scenario, results = compared.scenario, []
    for path, item in scenario.inputs.items():
        for key, chip in item.rows:
            value = figure(key).to(item.unit)
            held = replace(item, value=value, low=value, high=value, rows=())
            one = compare(
                scenario.with_inputs({path: held}), compared.a, compared.b, draws,
                shape=compared.shape,
            )  # fmt: skip
            cheaper = one.a if one.saving > 0 else one.b
            results.append(ByRow(path, key, chip, value, one.ratio, one.probability, cheaper))
    return tuple(results)


@dataclass(frozen=True)
class Swing:
    """What one input does alone: the saving of `a` at the low and at the high end of its range."""

    path: str
    low: float
    high: float
    at_low: float
    at_high: float

    @property
    def width(self) -> float:
        """By how much the saving differs between the ends, as a share of the cost of `b`."""
        return abs(self.at_high - self.at_low)


def tornado(scenario: Scenario, a: str | None = None, b: str | None = None) -> tuple[Swing, ...]:
    """Every input moved alone from one end of its range to the other, widest swing first."""
    a, b = _pair(scenario, a, b)
    swings = [
        Swing(
            path,
            item.low,
            item.high,
            *_saving(scenario, a, b, {path: [item.low, item.high]}).tolist(),
        )
        for path, item in scenario.inputs.items()
        if item.low < item.high
    ]
    return tuple(sorted(swings, key=lambda item: -item.width))


@dataclass(frozen=True)
class BreakEven:
    """Where two options cost the same as one input changes.

    values: the crossings, ascending. cheaper: the cheaper option below the first crossing, between
    crossings, above the last: one more than there are crossings; `b` if they cost the same
    throughout.
    """

    path: str
    low: float
    high: float
    values: tuple[float, ...]
    cheaper: tuple[str, ...]


def break_even(
    scenario: Scenario,
    path: str,
    a: str | None = None,
    b: str | None = None,
    low: float | None = None,
    high: float | None = None,
) -> BreakEven:
    """Values of one input, all others at their best guess, at which both options cost the same.

    low, high: where to look; a hundredth to a hundred times the value if not given, within what is
    allowed. Where time is billed in long steps the gap is a saw that may cross zero many times; of
    teeth narrower than the grid only every other side is seen.
    """
    # Loading scipy is slow, and costs alone need none of it.
    from scipy.optimize import elementwise

    a, b = _pair(scenario, a, b)
    low, high = span(scenario, path, low, high)
    grid = np.geomspace(low, high, POINTS) if low > 0 else np.linspace(low, high, POINTS)
    # The ends of a geometric grid may round to just outside of what is allowed.
    grid = np.clip(grid, low, high)
    gap = _saving(scenario, a, b, {path: grid})
    # A point where both cost the same is no side: the crossing is between its neighbours.
    grid, gap = grid[gap != 0], gap[gap != 0]

    def at(values: np.ndarray) -> np.ndarray:
        return _saving(scenario, a, b, {path: values})

    flips = np.flatnonzero(np.sign(gap[:-1]) != np.sign(gap[1:]))
    values = elementwise.find_root(at, (grid[flips], grid[flips + 1])).x if len(flips) else ()
    # Not by the middles between crossings: where steps of billing make the gap a saw, a middle may
    # be on another of its teeth.
    sides = [*gap[:1], *gap[flips + 1]]
    cheaper = tuple(a if side > 0 else b for side in sides) or (b,)
    return BreakEven(path, low, high, tuple(map(float, values)), cheaper)


def break_even_surface(
    scenario: Scenario,
    x: str,
    y: str,
    xs: Sequence[float],
    ys: Sequence[float],
    a: str | None = None,
    b: str | None = None,
) -> np.ndarray:
    """The saving of `a` for each pair of values: an array of len(ys) rows, len(xs) columns. It is
    0 where both cost the same.
    """
    a, b = _pair(scenario, a, b)
    across, down = np.meshgrid(np.asarray(xs, float), np.asarray(ys, float))
    return np.broadcast_to(_saving(scenario, a, b, {x: across, y: down}), across.shape)


def value_of_measuring(comparison: Comparison, bins: int = 50) -> dict[str, float]:
    """What it is worth, over the horizon, to know one input before choosing, dearest first.

    Without knowing it, one takes the option that is cheaper on average. Knowing it, one takes the
    option that is cheaper on average at that value: the draws are sorted by the input and averaged
    in `bins` groups. Of each group one half of the draws chooses and the other half says what the
    choice is worth, so that the chance of the draws is not taken for knowledge. It is never more
    than the cost of being wrong at all ("everything").
    """
    a, b, scenario = comparison.a, comparison.b, comparison.scenario
    overall = {
        option: comparison.totals[option] * scenario.cost(option, comparison.drawn).horizon
        for option in (a, b)
    }
    # What is saved in each draw by leaving the option that is cheaper on average.
    gain = overall[a] - overall[b]
    gain = gain if gain.mean() <= 0 else -gain
    worth = {"everything": float(np.maximum(gain, 0).mean())}
    for path, draws in comparison.drawn.items():
        groups = np.array_split(np.argsort(draws, kind="stable"), min(bins, len(draws) // 2))
        halves = [(g[start::2], g[1 - start :: 2]) for g in groups for start in (0, 1)]
        saved = sum(gain[other].sum() for half, other in halves if gain[half].mean() > 0)
        worth[path] = max(0.0, float(saved / len(draws)))
    return dict(sorted(worth.items(), key=lambda item: -item[1]))


def span(
    scenario: Scenario, path: str, low: float | None = None, high: float | None = None
) -> tuple[float, float]:
    """Where to look for a break-even of an input, within what is allowed."""
    field, value = scenario.field(path), scenario.inputs[path].value
    least = field.least if field.above is None else max(field.above, 1e-12)
    low = max(least, value / 100) if low is None else low
    high = min(field.most, value * 100 or 1.0) if high is None else high
    field.check([low, high], path)
    if not low < high:
        raise InputError(path, f"{low:g} to {high:g}", "a range with low below high")
    return low, high


def _saving(
    scenario: Scenario, a: str, b: str, changes: Mapping[str, float | Sequence[float] | np.ndarray]
) -> np.ndarray:
    arrays = {path: np.asarray(value, dtype=float) for path, value in changes.items()}
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    totals = [scenario.cost(option, arrays).total for option in (a, b)]
    _check_divisor(b, totals[1])
    return np.broadcast_to(1 - totals[0] / totals[1], shape)


def _check_divisor(option: str, total: Number) -> None:
    if not np.all(total > 0):
        raise InputError(option, "a cost of 0", "more than 0", "Savings are shares of it")


def _pair(scenario: Scenario, a: str | None, b: str | None) -> tuple[str, str]:
    names = list(scenario.options)
    if len(names) < 2:
        raise InputError("options", ", ".join(names), "two or more to compare")
    pair = (a or names[0], b or next(n for n in names if n != (a or names[0])))
    for option in pair:
        if option not in scenario.options:
            raise InputError("option", repr(option), "one of " + ", ".join(names))
    if pair[0] == pair[1]:
        raise InputError("option", f"{pair[0]} twice", "two different ones")
    return pair
