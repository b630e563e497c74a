"""What training loops are judged by: right losses, executions, the size of the graph, reads."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from utils.labs import Criterion, Facts

Row = tuple[str, str, str]
"""For which input, yours, expected."""

TOLERANCE = 2e-5
"""How far a loss, or a mean of losses, may lie from the one computed in float64.

Derivation: in 1,200 correct runs in float32 (400 problems of 4 to 24 steps: on the CPU as they are,
with the rows in reverse order, and with columns of zeros, which split the sums differently) the
farthest loss lay 1.9e-6 from float64, and XLA lies within that. The limit is ten times this spread.
Every wrong loss kept for this lab lies more than a hundred limits away. The tests measure both.
"""


def criterion(
    name: str, weight: int, passed: bool, measured: str, target: str, message: str, **more: Any
) -> Criterion:
    """A criterion whose message is dropped if it is passed; more: other fields of it."""
    return Criterion(name, weight, passed, measured, target, "" if passed else message, **more)


MOST_ROWS = 3
"""Wrong values that a card shows."""


def part(wrong: int, total: int) -> float:
    """The share of its points that an answer earns with some of its values wrong.

    Half of them right earns nothing, because a guess or half of the idea gets as far; from there
    the points rise with each value, to nine tenths at most.

    >>> part(2, 8), part(4, 8), part(1, 4096), part(0, 8)
    (0.5, 0.0, 0.9, 0.0)
    """
    return min(max(1 - 2 * wrong / total, 0.0), 0.9) if wrong else 0.0


def all_right(
    name: str,
    weight: int,
    wrong: Sequence[int],
    total: int,
    message: str,
    target: str = "all",
    rows: Sequence[Row] = (),
    response: Sequence[Any] = (),
) -> Criterion:
    """Whether all of some values are right: those at the places `wrong` are not. A part of them
    earns its part.

    rows: of wrong values, as a card shows them; more than three are left out.
    response: all values; if they are one and the same, that is a guess and earns nothing.
    """
    constant = len(response) > 1 and len(set(map(str, response))) == 1
    share = 0.0 if constant else part(len(wrong), total)
    measured, first = f"{total - len(wrong)} of {total}", wrong[0] if wrong else 0
    return criterion(
        name, weight, not wrong, measured, target, message,
        rows=tuple(rows[:MOST_ROWS]), share=share, call=first,
    )  # fmt: skip


def about_all(name: str, weight: int, texts: Sequence[str]) -> Criterion:
    """Whether all of some values are right; texts: what is wrong with each, "" if nothing is."""
    wrong = [place for place, text in enumerate(texts) if text]
    return all_right(name, weight, wrong, len(texts), texts[wrong[0]] if wrong else "")


def tally(
    name: str, weight: int, good: int, total: int, message: str, things: str = ""
) -> Criterion:
    """Whether all of so many are good; things: what they are, such as " parts"."""
    measured, target = f"{good} of {total}{things}", f"{total} of {total}"
    return criterion(name, weight, good == total, measured, target, message)


def among(item: Criterion, some: Sequence[Any], everything: Sequence[Any]) -> Criterion:
    """A criterion on some of a case's calls, with the one that shows what is wrong counted among
    all of them.
    """
    wanted = some[item.call] if some else None
    return replace(item, call=next((p for p, it in enumerate(everything) if it is wanted), 0))


def row(which: str, yours: Any, expected: Any) -> Row:
    """A wrong value beside the right one; numbers with six digits, or as many as tell them apart.

    >>> row("batch 2", 1 / 3, 0.5), row("batch 3", 0.5, 0.5000000001)
    (('batch 2', '0.333333', '0.5'), ('batch 3', '0.5', '0.5000000001'))
    """
    for digits in (6, 16):
        mine, right = (
            f"{value:.{digits}g}" if isinstance(value, float) else str(value)
            for value in (yours, expected)
        )
        if mine != right:
            break
    return which, mine, right


def times(count: int, thing: str) -> str:
    """
    >>> times(1, "read"), times(2, "read")
    ('1 read', '2 reads')
    """
    return f"{count} {thing}{'' if count == 1 else 's'}"


def not_judged(item: Criterion, message: str = "") -> Criterion:
    """The criterion failed, because something else hides what it asks for; of that speaks another
    message, or this one.
    """
    return criterion(item.name, item.weight, False, "not judged", "", message)


def not_asked_for(
    weights: Mapping[str, int],
    message: str,
    measured: str = "",
    target: str = "",
    at: str = "",
    others: str = "",
) -> list[Criterion]:
    """The criteria of an answer that returned something else than was asked for: the first, or that
    named `at`, says so; the others have nothing to say but `others`.
    """
    first = at or next(iter(weights))
    return [
        criterion(first, weight, False, measured, target, message)
        if name == first
        else criterion(name, weight, False, others, "", "")
        for name, weight in weights.items()
    ]


def not_of_the_form(
    output: Sequence[Any], weights: Mapping[str, int], message: str, target: str = ""
) -> list[Criterion]:
    """The criteria of an answer that returned something else than was asked for somewhere, of which
    `output` then holds a text: none is judged. [] if all are of the form. message: a template
    with {strange} for the text.
    """
    strange = next((item for item in output if isinstance(item, str)), None)
    if strange is None:
        return []
    kind = strange.partition(" without")[0]
    text = message.format(strange=strange)
    return not_asked_for(weights, text, kind, target, others="not judged")


def none_judged(rows: Sequence[Criterion], message: str = "") -> list[Criterion]:
    """The rows, none of which can be judged; the first says why."""
    return [not_judged(item, "" if place else message) for place, item in enumerate(rows)]


def at_most(
    name: str, weight: int, count: float, most: float, message: str, form: str = "{}"
) -> Criterion:
    """Whether something is no more than allowed. form: of both numbers, such as "{} rows"."""
    measured, target = form.format(count), f"at most {form.format(most)}"
    return criterion(name, weight, count <= most, measured, target, message)


def first_of(*checks: tuple[Any, str], otherwise: str = "") -> str:
    """The text of the first check whose condition holds.

    >>> first_of((0 > 1, "negative"), (1 > 0, "positive")), first_of((0, "a"), otherwise="b")
    ('positive', 'b')
    """
    return next((text for holds, text in checks if holds), otherwise)


def costs_of(idle: bool, *costs: Criterion) -> list[Criterion]:
    """What an answer costs; that it costs little is no merit of one that did nothing of use, such
    as a training in which nothing is learned, and is not judged then.
    """
    return [not_judged(item) if idle and item.passed else item for item in costs]


def distance(some: list[float], others: list[float]) -> float:
    """The largest difference between numbers at the same place of two lists of one length."""
    return max(abs(a - b) for a, b in zip(some, others, strict=True))


def right_numbers(
    name: str,
    weight: int,
    returned: Facts,
    right: list[float],
    known: dict[str, list[float]],
    advice: str,
    asked: tuple[str, str],
    tolerance: float = TOLERANCE,
) -> Criterion:
    """Whether a list of floats was returned and is right.

    known: message to the numbers of a wrong way that is recognised by them.
    advice: the message for all other wrong numbers.
    asked: the function that returns it, and what each number is for, such as "batch".
    tolerance: how far a number may lie from the right one.
    """
    items = returned["items"]
    if returned["stopped"]:
        message = "the check stopped the answer, because its graphs grow: fix that first"
        return criterion(name, weight, False, "not judged", "", message)
    if items is None or len(items) != len(right):
        message = (
            f"`{asked[0]}` returned {returned['kind']}: return a list of"
            f" {times(len(right), 'float')}, one per {asked[1]}"
        )
        target = f"a list of {len(right)}"
        return criterion(name, weight, False, returned["kind"], target, message)
    if strange := [(place, item) for place, item in enumerate(items) if isinstance(item, str)]:
        message = "item {} is {}: return Python floats, read from the device".format(*strange[0])
        return criterion(name, weight, False, strange[0][1], "floats", message)
    off, target = distance(items, right), f"within {tolerance:g}"
    if off <= tolerance:
        # The difference itself is rounding, which depends on the processor.
        return criterion(name, weight, True, "equal", target, "")
    reasons = [text for text, numbers in known.items() if distance(items, numbers) <= tolerance]
    rows = [
        row(f"{asked[1]} {place + 1}", item, wanted)
        for place, (item, wanted) in enumerate(zip(items, right, strict=True))
        if abs(item - wanted) > tolerance
    ]
    message = [*reasons, advice][0]
    measured = f"off by {off:.2g}"
    return criterion(name, weight, False, measured, target, message, rows=tuple(rows[:MOST_ROWS]))


def executions(
    name: str, weight: int, case: Facts, facts: Facts, most: int, end_of_step: str
) -> Criterion:
    """Whether the steps ran one by one: none waited for the next, nothing ran twice.

    most: the largest number of executions allowed. end_of_step: what to do if steps pile up.
    """
    steps, ran, waiting = case["steps"], facts["executions"], facts["waiting"]
    first, largest = _sizes(facts)
    grows = largest > _GROWTH * first
    measured = times(ran, "execution")
    if facts["steps"] != steps:
        measured = f"{times(facts['steps'], 'step')} begun"
        message = f"{times(facts['steps'], 'training step')} began, {steps} were asked for"
    elif waiting > 1 or ran < steps:
        measured += f", up to {times(waiting, 'step')} waiting"
        message = f"the steps pile up in one graph, which grows with each of them. {end_of_step}"
    elif grows:
        measured += ", each larger than the last"
        message = (
            "reading a value computes it but ends no step: the next graph holds the same work"
            f" again. {end_of_step}"
        )
    else:
        message = (
            f"{ran} executions for {steps} steps: a step runs in parts, or twice, because it is"
            " synced twice or a pending value is read. Sync once per step, with reads only after it"
        )
    passed = facts["steps"] == steps <= ran <= most and waiting <= 1 and not grows
    target = f"{steps} to {most}" if most > steps else str(steps)
    result = criterion(name, weight, passed, measured, f"{target}, one by one", message)
    return not_judged(result) if did_nothing(facts) else result


def reads(weight: int, facts: Facts, most: int) -> Criterion:
    """Whether something was read from the device, but not often."""
    count, returned = facts["reads"], facts["returned"]
    message = (
        f"{times(count, 'read')}: each makes the host wait for the device. Keep the values on the"
        " device, bring them together there, and read once"
        if count
        else "nothing was read from the device: only a read makes a Python number of a lazy value"
    )
    target = f"1 to {most}" if most > 1 else "1"
    passed = 1 <= count <= most
    result = criterion("reads", weight, passed, times(count, "read"), target, message)
    # What returns nothing has nothing to read: to be told so would only confuse.
    idle = not count and not returned["items"] and not returned["stopped"]
    return not_judged(result) if idle else result


def did_nothing(facts: Facts) -> bool:
    """Whether an answer neither began a step nor returned anything: there is little to judge."""
    returned = facts["returned"]
    return not facts["steps"] and not returned["items"] and not returned["stopped"]


_GROWTH = 1.5


def _sizes(facts: Facts) -> tuple[int, int]:
    """Nodes of the largest graph within the first two steps, and of the largest of all.

    Two steps, because the first of an optimizer with momentum differs from the others.
    """
    nodes = facts["graph_nodes"]
    return max(nodes[: facts["early_graphs"] or 2], default=0), max(nodes, default=0)


def graph_size(weight: int, steps: int, facts: Facts) -> Criterion:
    """Whether every step ran, and the graphs stayed as large as they were at first."""
    target, ran = f"no growth (at most {_GROWTH:g} ×)", len(facts["graph_nodes"])
    if did_nothing(facts):
        return criterion("graph size", weight, False, "not judged", "", "")
    if ran < steps:
        measured = times(ran, "graph")
        message = "the steps did not run as graphs of their own: every step is added to one graph"
        return criterion("graph size", weight, False, measured, target, message)
    first, largest = _sizes(facts)
    return criterion(
        "graph size",
        weight,
        largest <= _GROWTH * first,
        f"{first} nodes at first, {largest} at most",
        target,
        "each graph holds the steps before it again: what a step records must run in that step",
    )
