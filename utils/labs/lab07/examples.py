"""Inputs as the exercises of lab 07 get them, to look at in the notebook. All of it is invented."""

from typing import Any

MODEL = {"layers": 48, "width": 4096, "length": 4096, "sequences": 64}
CLUSTER = {
    "chips": 64,
    "chips_per_server": 8,
    "memory_gb": 80,
    "tflops": 200,
    "inside_gb_per_s": 200,
    "between_gb_per_s": 10,
}


def _row(chips: int, compute: float, slowest: float, sends: float, waits: float) -> dict:
    return {
        "chips": chips,
        "samples_per_step": 512,
        "compute_s": compute,
        "slowest_compute_s": slowest,
        "communication_s": sends,
        "input_wait_s": waits,
        "step_s": slowest + sends + waits,
        "samples_to_target": 3_000_000,
    }


CURVE: dict[str, Any] = {
    "claim": "step",
    "rows": [
        _row(1, 1.6, 1.6, 0.0, 0.0),
        _row(2, 0.8, 0.81, 0.04, 0.01),
        _row(4, 0.41, 0.42, 0.07, 0.01),
        _row(8, 0.21, 0.22, 0.09, 0.01),
    ],
}
for _row_of_curve in CURVE["rows"]:
    _row_of_curve["claimed_speedup"] = CURVE["rows"][0]["step_s"] / _row_of_curve["step_s"]
