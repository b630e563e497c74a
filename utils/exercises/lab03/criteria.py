"""What training loops are judged by: right losses, executions, the size of the graph, reads."""

from utils.exercises import Criterion, Facts

TOLERANCE = 2e-5
"""How far a loss, or a mean of losses, may lie from the one computed in float64.

Derivation: in 1,200 correct runs in float32 (400 problems of 4 to 24 steps: on the CPU as they are,
with the rows in reverse order, and with columns of zeros, which split the sums differently) the
farthest loss lay 1.9e-6 from float64, and XLA lies within that. The limit is ten times this spread.
Every wrong loss kept for this lab lies more than a hundred limits away. The tests measure both.
"""


def criterion(
    name: str, weight: int, passed: bool, measured: str, target: str, message: str
) -> Criterion:
    """A criterion whose message is dropped if it is passed."""
    return Criterion(name, weight, passed, measured, target, "" if passed else message)


def times(count: int, thing: str) -> str:
    """
    >>> times(1, "read"), times(2, "read")
    ('1 read', '2 reads')
    """
    return f"{count} {thing}{'' if count == 1 else 's'}"


def distance(some: list[float], others: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(some, others, strict=True))


def right_numbers(
    name: str,
    weight: int,
    returned: Facts,
    right: list[float],
    known: dict[str, list[float]],
    advice: str,
) -> Criterion:
    """Whether a list of floats was returned and is right.

    known: message to the numbers of a wrong way that is recognised by them.
    advice: the message for all other wrong numbers.
    """
    items = returned["items"]
    if items is None or len(items) != len(right):
        message = f"returned {returned['kind']}: return a list of {times(len(right), 'float')}"
        target = f"a list of {len(right)}"
        return criterion(name, weight, False, returned["kind"], target, message)
    if strange := [(place, item) for place, item in enumerate(items) if isinstance(item, str)]:
        message = "item {} is {}: return Python floats, read from the device".format(*strange[0])
        return criterion(name, weight, False, strange[0][1], "floats", message)
    off = distance(items, right)
    reasons = [text for text, numbers in known.items() if distance(items, numbers) <= TOLERANCE]
    return criterion(
        name,
        weight,
        off <= TOLERANCE,
        f"largest difference {off:.1e}",
        f"at most {TOLERANCE:g}",
        [*reasons, advice][0],
    )


def executions(
    name: str, weight: int, case: Facts, facts: Facts, most: int, growing: str
) -> Criterion:
    """Whether the steps ran one by one: no step waited for the next, nothing ran twice.

    most: the largest number of executions allowed. growing: advice if steps pile up in a graph.
    """
    steps, ran, waiting = case["steps"], facts["executions"], facts["waiting"]
    if facts["steps"] != steps:
        message = f"{times(facts['steps'], 'training step')} began, {steps} were asked for"
    elif waiting > 1 or ran < steps:
        message = f"{times(waiting, 'step')} waited in one growing graph. {growing}"
    else:
        message = (
            f"{ran} executions for {steps} steps: reading a pending value runs its graph, and the"
            " sync runs it again. One sync a step, and reads only after it"
        )
    return criterion(
        name,
        weight,
        facts["steps"] == steps <= ran <= most and waiting <= 1,
        f"{times(ran, 'execution')}, {times(waiting, 'step')} waiting",
        f"{steps} to {most}, at most 1 waiting",
        message,
    )


def reads(weight: int, count: int, most: int) -> Criterion:
    """Whether something was read from the device, but not often."""
    message = (
        f"{times(count, 'read')}: each makes the host wait for the device. Keep the values on the"
        " device, bring them together there, and read once"
        if count
        else "nothing was read from the device, so what you returned is not what it computed"
    )
    target = f"1 to {most}" if most > 1 else "1"
    return criterion("reads", weight, 1 <= count <= most, times(count, "read"), target, message)


def graph_size(weight: int, steps: int, nodes: list[int]) -> Criterion:
    """Whether the graphs stay as large as the first two (an optimizer's first step differs)."""
    target = "no growth (at most 1.5 ×)"
    if len(nodes) < steps:
        message = "no step ran as a graph of its own: every step is added to one graph"
        return criterion("graph size", weight, False, times(len(nodes), "graph"), target, message)
    first, largest = max(nodes[:2]), max(nodes)
    return criterion(
        "graph size",
        weight,
        largest <= 1.5 * first,
        f"{first} nodes at first, {largest} at most",
        target,
        "each graph holds the steps before it again: what a step records must run in that step",
    )
