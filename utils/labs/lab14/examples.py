"""What lab 14 gives to look at: forms begun by a colleague, comparisons, a table of quantities.

All companies, machines and amounts are invented.
"""

from typing import Any

_FIELDS = ("task", "runs_per_year", "spend_per_year", "engineers", "architecture")
GIVEN: dict[str, dict[str, Any]] = {
    name: dict(zip(_FIELDS, (*row, "dense transformer"), strict=True))
    for name, *row in (
        ("ferry", "pre-training", 12, 900_000, 2),
        ("quarry", "batch inference", 365, 400_000, 1),
        ("theatre", "fine-tuning", 50, 500_000, 2),
        ("pharmacy", "fine-tuning", 52, 700_000, 3),
        ("railway", "fine-tuning", 52, 550_000, 2),
        ("brewery", "batch inference", 365, 400_000, 2),
    )
}
"""The part of each form that a colleague has filled in already."""

COSTS = {
    "ferry": (0.04, 0.19, 0.33, 0.97, 170_000),
    "quarry": (-0.16, 0.01, 0.17, 0.54, 4_000),
    "theatre": (0.08, 0.24, 0.38, 0.98, 120_000),
    "pharmacy": (0.06, 0.23, 0.37, 0.98, 160_000),
    "railway": (0.05, 0.2, 0.35, 0.97, 110_000),
    "brewery": (-0.15, 0.04, 0.2, 0.63, 16_000),
}
"""What a comparison of costs says: `utils.cost.decision.Saving(*COSTS[name])`."""


def two_edges(value: float) -> str:
    """A rule to try `nearest_flip` on: "gpu" below 0.3, "either" up to 0.45, then "trainium"."""
    return "gpu" if value < 0.3 else "either" if value < 0.45 else "trainium"


ANSWERS = {"kernels": "none", "shapes": "data-dependent"}
AUDIT = {
    "findings": [
        {"rule": "triton", "severity": "warning", "count": 2},
        {"rule": "flash-attn", "severity": "error", "count": 4},
        {"rule": "cuda-call", "severity": "error", "count": 31},
        {"rule": "boolean-mask", "severity": "note", "count": 3},
    ],
    "files": 40, "unread": 0,
}  # fmt: skip
THRESHOLDS = {"own_kernels": 3, "dynamic_findings": 5}

DRAWS = {
    "trainium": [70, 80, 90, 110, 120, 130], "gpu": [100, 100, 100, 104, 100, 102],
    "result": ["fast", "fast", "fast", "slow", "slow", "slow"],
}  # fmt: skip

BUDGET = {
    "weeks": 39, "engineers": 2, "port_weeks": 4, "pay_per_engineer_week": 4_000,
    "trainium_server_week": 4_500, "gpu_server_week": 5_500, "value_of_measuring": 85_000,
    "servers_needed": 8, "accepted_today": 0.92, "accepted_least": 0.9,
}  # fmt: skip
"""What the ferry company's pilot has to keep to. value_of_measuring: what it is worth, over the
runs considered, to know Trainium's throughput before choosing. accepted_today: share of the answers
of today's model that all three captains accept; accepted_least: below that they sail without it.
"""

STEPS = ("baseline", "audit", "port", "parity", "measure", "sign")
QUANTITIES = {
    "spread of three runs": "the most less the least throughput, as a share of the middle one",
    "servers promised in writing": "Trainium servers in a signed offer, for the dates needed",
    "kernels without replacement": "CUDA kernels for which nobody has named a replacement",
    "graphs after warm-up": "graphs compiled after the warm-up",
    "operators on the CPU": "kinds of operators that fall back to the CPU",
    "values outside tolerance": "quantities outside their tolerance, forward, backward, losses",
    "accepted answers": "share of a blind sample that all three captains accept",
    "throughput over break-even": "measured, over the one at which both options cost the same",
    "peak over peak": "peak rate of the chip over that of the GPU, from the data sheets",
    "seconds on the CPU": "seconds that a step takes on a laptop, under CPU XLA",
    "confidence": "how sure the team feels, from 0 to 1",
    "lines changed": "lines of code that the port has changed",
    "open contract items": "items of the contract list that are not done",
    "votes": "votes of the rule for Trainium, decided again with what was measured",
}

ITEMS = [
    {"item": "kernels", "reads": "kernels without replacement", "compare": "<=", "limit": 0,
     "on": "any", "days": 90, "after": []},
    {"item": "parity", "reads": "values outside tolerance", "compare": "<=", "limit": 0,
     "on": "device", "days": 60, "after": ["kernels"]},
    {"item": "cost", "reads": "saving per million", "compare": ">=", "limit": 0.1,
     "on": "any", "days": 30, "after": ["parity"]},
]  # fmt: skip
RECORD = [
    {"reads": "kernels without replacement", "value": 0, "from": "measured", "on": "laptop",
     "date": "2025-03-03", "code": "c4"},
    {"reads": "values outside tolerance", "value": 0, "from": "measured", "on": "laptop",
     "date": "2025-03-10", "code": "c4"},
    {"reads": "saving per million", "value": [0.04, 0.31], "from": "measured", "on": "device",
     "date": "2025-03-12", "code": "c4"},
]  # fmt: skip
TODAY, CODE = "2025-03-20", "c4"
