"""Inputs as the exercises of lab 12 get them, to look at in the notebook. All of it is invented."""

SERVICE = {
    "traits": ["asynchronous", "compiles", "remembers"], "salt": 12, "send": 40, "per_token": 100,
    "compile": 900_000, "lookup": 60,
}  # fmt: skip
"""A small `Service` with all three traits."""

SAMPLES = [12.0, 9.5, 11.0, 30.0, 10.0, 10.5, 14.0, 9.0, 13.0, 16.0]
"""Latencies in ms."""

WORKERS = [
    {"requests": 900, "samples": [10.0, 12.0, 11.0]},
    {"requests": 100, "samples": [80.0, 95.0]},
    {"requests": 0, "samples": []},
]

LOG = {
    "slots": 1, "due_ms": [0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0],
    "took_ms": [12.0, 70.0, None, None, None, 10.0, 14.0],
}  # fmt: skip
"""Seven requests of a client that waits; three of them were never sent."""

ARRIVALS = [0.0, 1.0, 2.0, 3.0, 40.0, 60.0, 61.0, 62.0]
SERVER = {
    "base_ms": 10.0, "per_request_ms": 2.0, "max_batch": 2, "target_ms": 25.0, "lost_at_ms": 65.0,
}  # fmt: skip
