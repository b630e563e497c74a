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
    if returned["stopped"]:
        message = "the check stopped the answer, because its graphs grow: mend that first"
        return criterion(name, weight, False, "not judged", "", message)
    if items is None or len(items) != len(right):
        message = f"returned {returned['kind']}: return a list of {times(len(right), 'float')}"
        target = f"a list of {len(right)}"
        return criterion(name, weight, False, returned["kind"], target, message)
    if strange := [(place, item) for place, item in enumerate(items) if isinstance(item, str)]:
        message = "item {} is {}: return Python floats, read from the device".format(*strange[0])
        return criterion(name, weight, False, strange[0][1], "floats", message)
    off, target = distance(items, right), f"within {TOLERANCE:g}"
    if off <= TOLERANCE:
        # The difference itself is rounding, which depends on the processor.
        return criterion(name, weight, True, "equal", target, "")
    reasons = [text for text, numbers in known.items() if distance(items, numbers) <= TOLERANCE]
    return criterion(name, weight, False, f"off by {off:.2g}", target, [*reasons, advice][0])


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
            " synced twice or a pending value is read. One sync a step, and reads only after it"
        )
    passed = facts["steps"] == steps <= ran <= most and waiting <= 1 and not grows
    return criterion(name, weight, passed, measured, f"{steps} to {most}, one by one", message)


def reads(weight: int, count: int, most: int) -> Criterion:
    """Whether something was read from the device, but not often."""
    message = (
        f"{times(count, 'read')}: each makes the host wait for the device. Keep the values on the"
        " device, bring them together there, and read once"
        if count
        else "nothing was read from the device: only a read makes a Python number of a lazy value"
    )
    target = f"1 to {most}" if most > 1 else "1"
    return criterion("reads", weight, 1 <= count <= most, times(count, "read"), target, message)


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
