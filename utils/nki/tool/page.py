"""A profile as one HTML page that needs nothing else: engines and memory over time, the roofline.

The page draws from numbers that stand in it. What is too narrow to be seen is joined before, so
that a kernel of a million instructions makes a page of some hundred kilobytes.
"""

import math
from pathlib import Path
from typing import Any

from utils.chip import roofline
from utils.nki.simulator.profile import ENGINES, NAMES, Profile, bytes_text, time_text
from utils.nki.tool.asked import Asked, shape_text
from utils.nki.tool.figures import Estimates

TEMPLATE = Path(__file__).with_name("profile.html.jinja")
MOST_BARS = 3000
"""Of an engine; more cannot be told apart, and neighbours are joined."""
MOST_LEVELS = 1500
MOST_LINES = 12
WIDTH, HEIGHT, EDGE = 400, 230, 30
"""Of the roofline, in units of its drawing."""


def to_page(made: Estimates, asked: Asked | None = None) -> str:
    """The page, as text."""
    profile = made.shown
    # Late: only this page needs it, and a plain profile is to start at once.
    from jinja2 import Environment, StrictUndefined

    target = profile.program.target
    data = {
        "seconds": profile.seconds,
        "lanes": [lane for lane in _lanes(profile) if lane["bars"]],
        "memory": [
            _levels(profile, "sbuf", target.sbuf_bytes),
            _levels(profile, "psum", target.psum_bytes),
        ],
    }
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        profile=profile,
        call=_call(asked),
        rows=profile._rows(),
        compiled=made.compiled._rows() if made.written else [],
        fits=made.written is not None,
        lines=_lines(profile),
        roof=roof(profile),
        data=data,
        bytes_text=bytes_text,
    )


def _call(asked: Asked | None) -> str:
    if asked is None:
        return ""
    words = [shape_text(shape) for shape in asked.shapes]
    return ", ".join([*words, *(f"{name}={value!r}" for name, value in asked.arguments.items())])


def _lanes(profile: Profile) -> list[dict[str, Any]]:
    """For each engine of each core its bars: start, end, what, how many joined, line."""
    cores = sorted({interval.core for interval in profile.intervals})
    lanes = []
    for core in cores:
        for engine in ENGINES:
            name = NAMES[engine] + (f", core {core}" if len(cores) > 1 else "")
            bars = _joined(
                [
                    (it.start, it.end, it.name, Path(it.line).name)
                    for it in profile.intervals
                    if it.core == core and it.engine.partition(" ")[0] == engine
                ],
                profile.seconds,
            )
            lanes.append({"name": name, "engine": engine, "bars": bars})
    return lanes


def _joined(result: list[tuple[float, float, str, str]], seconds: float) -> list[list[Any]]:
    """Bars in the order of time; if they are too many, close ones are one.

    >>> _joined([(0.0, 1.0, "a", "k.py:1"), (2.0, 3.0, "b", "k.py:2")], 3.0)
    [[0.0, 1.0, 'a', 1, 'k.py:1'], [2.0, 3.0, 'b', 1, 'k.py:2']]
    """
    gap = seconds / MOST_BARS if len(result) > MOST_BARS else -1.0
    bars: list[list[Any]] = []
    for start, end, name, line in sorted(result):
        if bars and start - bars[-1][1] < gap and start - bars[-1][0] < 4 * gap:
            bars[-1][1] = max(bars[-1][1], end)
            bars[-1][3] += 1
        else:
            bars.append([start, end, name, 1, line])
    return bars


def _levels(profile: Profile, region: str, limit: int) -> dict[str, Any]:
    """How full a memory is over time, of steps that are too many the fullest ones."""
    steps = [[time, level] for time, level in profile.occupancy[region]]
    size = math.ceil(len(steps) / MOST_LEVELS)
    groups = [steps[at : at + size] for at in range(0, len(steps), size)]
    kept = [[group[0][0], max(level for _, level in group)] for group in groups]
    return {"name": region.upper(), "limit": limit, "steps": kept}


def _lines(profile: Profile) -> list[tuple[str, str, int, str, str]]:
    """The lines of source that the kernel waited longest for: place, text, instructions, busiest
    engine, share of the critical path."""
    whole = sum(line.critical for line in profile.lines()) or 1.0
    return [
        (
            f"{Path(line.file).name}:{line.line}",
            line.text,
            line.instructions,
            max(line.busy, key=line.busy.__getitem__, default=""),
            f"{line.critical / whole:.0%}",
        )
        for line in profile.lines()[:MOST_LINES]
    ]


def roof(profile: Profile) -> dict[str, Any] | None:
    """The roofline as places of a drawing and in words; None for a kernel without products."""
    bound = profile.bound
    if bound is None or not profile.seconds:
        return None
    cores = profile.schedule.graph.cores
    peak = bound.machine.rate(bound.dtype)
    ridge = roofline.ridge(bound.machine, bound.dtype, bound.memory)
    point = (profile.intensity, profile.flop / profile.seconds / cores / peak)
    low, high = min(ridge, point[0]) / 4, max(ridge, point[0]) * 4
    least = min(point[1], low / ridge) / 2

    def place(intensity: float, share: float) -> tuple[float, float]:
        across = math.log(intensity / low) / math.log(high / low)
        up = math.log(share / least) / math.log(2 / least)
        return (
            round(EDGE + across * (WIDTH - 2 * EDGE), 1),
            round(HEIGHT - EDGE - up * (HEIGHT - 2 * EDGE), 1),
        )

    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": EDGE,
        "bottom": HEIGHT - EDGE,
        "line": [place(low, low / ridge), place(ridge, 1.0), place(high, 1.0)],
        "point": place(*point),
        "top": place(point[0], min(1.0, point[0] / ridge)),
        "ridge": place(ridge, 1.0),
        "words": (
            f"{point[0]:.4g} FLOP for each byte of HBM, {point[1]:.1%} of the printed peak of a "
            f"core for {bound.dtype}; the roof there is at {min(1.0, point[0] / ridge):.1%}. The "
            f"ridge is at {ridge:.0f} FLOP/B. At least {time_text(bound.seconds)}, bound by "
            f"{bound.bound}."
        ),
    }
