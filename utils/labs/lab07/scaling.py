"""What a scaling curve says, exercise 5 of lab 07: its cause, the number that proves it, and what
wrong ways give for that number.
"""

from utils.course.misconceptions import says
from utils.labs import Facts

SAYS = says("lab07")

BASELINE = 1.1
"""From how many times the compute of a sample on the first row is unfair."""
GOOD = 0.9
"""The efficiency from which a curve has nothing to explain."""


def speed(row: Facts) -> float:
    """Samples per second."""
    return row["samples_per_step"] / row["step_s"]


def losses(row: Facts) -> dict[str, float]:
    """Seconds of a step that are no mean compute, by cause."""
    return {
        "communication": row["communication_s"],
        "input": row["input_wait_s"],
        "imbalance": row["slowest_compute_s"] - row["compute_s"],
    }


def chip_seconds(row: Facts) -> float:
    """Chip-seconds of compute per sample."""
    return row["compute_s"] * row["chips"] / row["samples_per_step"]


def efficiency(curve: Facts) -> float:
    """The claimed speedup of the last row, divided by how many times the chips grew."""
    first, last = curve["rows"][0], curve["rows"][-1]
    return last["claimed_speedup"] * first["chips"] / last["chips"]


def training_s(row: Facts) -> float:
    """Seconds of training until the target is reached."""
    return row["samples_to_target"] / speed(row)


def truth(curve: Facts) -> tuple[str, float]:
    """The cause and the number that proves it."""
    first, last = curve["rows"][0], curve["rows"][-1]
    if curve["claim"] == "step" and first["samples_per_step"] != last["samples_per_step"]:
        return "weak scaling", last["samples_per_step"] / first["samples_per_step"]
    if curve["claim"] == "training" and last["samples_to_target"] != first["samples_to_target"]:
        return "batch grown", training_s(first) / training_s(last)
    if chip_seconds(first) > BASELINE * chip_seconds(last):
        return "baseline", chip_seconds(first) / chip_seconds(last)
    if efficiency(curve) >= GOOD:
        return "none", efficiency(curve)
    lost = losses(last)
    cause = max(lost, key=lambda item: lost[item])
    return cause, lost[cause] / last["step_s"]


def ways(curve: Facts, cause: str) -> list[tuple[str, float]]:
    """What wrong ways give for the number of a cause."""
    first, last = curve["rows"][0], curve["rows"][-1]
    right = truth(curve)[1]
    results = [(SAYS["the-inverse"], 1 / right)]
    if cause == "weak scaling":
        return [
            ("that is by how much the chips grew, not the work of a step: here they differ"
             if last["chips"] / first["chips"] != right else "", last["chips"] / first["chips"]),
            ("that is the claim itself: how many times as much work has a step?",
             last["claimed_speedup"]),
            (SAYS["steps-compared"], first["step_s"] / last["step_s"]),
            *results,
        ]  # fmt: skip
    if cause == "batch grown":
        return [
            (SAYS["the-claim-itself"], last["claimed_speedup"]),
            (SAYS["samples-more"], last["samples_to_target"] / first["samples_to_target"]),
            (SAYS["samples-more"],
             last["claimed_speedup"] * last["samples_to_target"] / first["samples_to_target"]),
            *results,
        ]  # fmt: skip
    if cause == "baseline":
        return [
            ("the rows have other numbers of chips: chip-seconds, not seconds",
             chip_seconds(first) / chip_seconds(last) * last["chips"] / first["chips"]),
            ("that is the claim itself: how many times too slow is the first row?",
             last["claimed_speedup"]),
            (SAYS["a-fair-claim"], last["claimed_speedup"] / right),
            ("that is the efficiency", efficiency(curve)),
            *results,
        ]  # fmt: skip
    if cause == "none":
        return [
            ("that is the claim itself: over how many times as many chips?",
             last["claimed_speedup"]),
            ("the first row has more than one chip: they are not as many times more as that",
             last["claimed_speedup"] / last["chips"]),
            *results,
        ]  # fmt: skip
    lost = losses(last)
    return [
        (SAYS["seconds"], lost[cause]),
        (SAYS["of-the-compute"], lost[cause] / last["compute_s"]),
        (SAYS["of-the-compute"], lost[cause] / last["slowest_compute_s"]),
        ("a share of the step, not of all that is lost", lost[cause] / sum(lost.values())),
        (SAYS["percent"], 100 * right),
        ("all that is lost is more: the share of this cause alone",
         sum(lost.values()) / last["step_s"]),
        ("that is the efficiency: which share of the step does this cause take?",
         efficiency(curve)),
        (SAYS["the-lost-efficiency"], 1 - efficiency(curve)),
        ("an imbalance is what the slowest takes more than the mean",
         last["slowest_compute_s"] / last["step_s"] if cause == "imbalance" else -1.0),
        ("an imbalance is what the slowest takes more than the mean, as a share of the step",
         last["slowest_compute_s"] / last["compute_s"] if cause == "imbalance" else -1.0),
        *results,
    ]  # fmt: skip
