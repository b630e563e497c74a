"""What a scaling curve says, exercise 5 of lab 07: its cause, and the number that proves it."""

from utils.labs import Facts

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
