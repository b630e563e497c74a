"""Stretches of time: nested, merged, cut."""

from collections.abc import Iterable


def innermost(
    events: Iterable[tuple[float, float, str]], outside: str = "trace"
) -> list[tuple[float, float, str]]:
    """Begin, end and kind of what one thread does when, from its nested events.

    events: begin, duration and kind of each; one without a kind is of the kind of that around it.
    outside: the kind of what has none at all.

    >>> innermost([(0, 10, "trace"), (2, 3, "compile"), (3, 1, "")])
    [(0.0, 2, 'trace'), (2, 5, 'compile'), (5, 10, 'trace')]
    """
    stack: list[tuple[float, str]] = []
    at = 0.0
    pieces: list[tuple[float, float, str]] = []

    def until(moment: float) -> None:
        nonlocal at
        while stack:
            end, kind = stack[-1]
            if pieces and pieces[-1][1:] == (at, kind):
                pieces[-1] = pieces[-1][0], min(end, moment), kind
            elif min(end, moment) > at:
                pieces.append((at, min(end, moment), kind))
            at = max(at, min(end, moment))
            if end > moment:
                return
            stack.pop()

    for begin, duration, kind in sorted(events, key=lambda each: (each[0], -each[1])):
        until(begin)
        outer = stack[-1] if stack else (float("inf"), outside)
        stack.append((min(begin + duration, outer[0]), kind or outer[1]))
        at = max(at, begin)
    until(float("inf"))
    return pieces


def union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """
    >>> union([(4, 5), (0, 2), (1, 3)])
    [(0, 3), (4, 5)]
    """
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def split(
    begin: float, end: float, busy: list[tuple[float, float]]
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """What of begin..end lies in the busy stretches, and what does not.

    >>> split(0, 10, [(2, 3), (9, 12)])
    ([(2, 3), (9, 10)], [(0, 2), (3, 9)])
    """
    inside = [(max(begin, b), min(end, e)) for b, e in busy if b < end and e > begin]
    edges = [begin, *(edge for each in inside for edge in each), end]
    outside = list(zip(edges[::2], edges[1::2], strict=True))
    return inside, [each for each in outside if each[1] > each[0]]
