"""Inputs as exercises 3 and 4 of lab 08 get them, to look at in the notebook. All invented."""

from typing import Any

import numpy as np

FLEET = {
    "groups": [
        {"name": "servers", "number": 100, "hours_between_failures_of_one": 1000.0},
        {"name": "switches", "number": 10, "hours_between_failures_of_one": 400.0},
    ],
    "interruptions_per_day": 1.8,
    "parameters": 8e9,
    "bytes_per_parameter": 16,
    "writers": 8,
    "bytes_per_second_per_writer": 2e7,
    "restart_minutes": 12.0,
    "price_per_hour": 1000.0,
}

INDEX: dict[str, Any] = {
    "embedding": {
        "shape": [5, 2],
        "dtype": "float32",
        "pieces": [
            {"file": 2, "start": [3, 0], "shape": [1, 2]},
            {"file": 0, "start": [0, 0], "shape": [2, 2]},
            {"file": 3, "start": [4, 0], "shape": [1, 2]},
            {"file": 1, "start": [2, 0], "shape": [1, 2]},
        ],
    },
    "scale": {
        "shape": [3],
        "dtype": "float32",
        "pieces": [{"file": file, "start": [0], "shape": [3]} for file in range(4)],
    },
}
"""Two tensors in four files: one cut along its rows, one with a copy in each file."""

FILES: list[dict[str, Any]] = [
    {"embedding": [[1, 2], [3, 4]], "scale": [7, 8, 9]},
    {"embedding": [[5, 6]], "scale": [7, 8, 9]},
    {"embedding": [[7, 8]], "scale": [7, 8, 9]},
    {"embedding": [[9, 10]], "scale": [7, 8, 9]},
]


def read(file: int, name: str) -> np.ndarray:
    """The piece of a tensor that a file holds."""
    return np.array(FILES[file][name], dtype=INDEX[name]["dtype"])


WANTED = [
    {"embedding": {"start": [0, 0], "shape": [5, 1]}, "scale": {"start": [0], "shape": [3]}},
    {"embedding": {"start": [0, 1], "shape": [5, 1]}, "scale": {"start": [0], "shape": [3]}},
]
"""What each of two ranks is to hold: a column of the one, all of the other."""
