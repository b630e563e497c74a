"""Inputs as the exercises of lab 13 get them, to look at in the notebook. All of it is invented."""

from utils.labs.lab13.models import with_credits

JOB = {
    "billion_tokens": 3.6, "servers": 4, "price_per_server_hour": 20.0,
    "tokens_per_second_per_server": 25_000, "startup_hours": 0.5, "utilisation": 0.5,
    "failed_runs_per_good_run": 2, "share_of_failed_run": 0.25, "engineers": 2, "weeks": 3,
    "pay_per_week": 3000, "good_runs": 5,
}  # fmt: skip
TASK = {"exaflop_per_run": 360.0, "runs": 5}
FIRST = {
    "price_per_server_hour": 12.0, "peak_tflops_per_server": 2000, "mfu": 0.25, "utilisation": 0.5,
    "engineering": 30_000,
}  # fmt: skip
SECOND = {
    "price_per_server_hour": 45.0, "peak_tflops_per_server": 4000, "mfu": 0.5, "utilisation": 0.25,
    "engineering": 4_000,
}  # fmt: skip
COMPARISON = {
    "first": {
        "region": "us-east-1", "purchase": "capacity_block", "currency": "EUR",
        "billion_tokens": 7.2, "target_loss": 2.1, "price_read": "2025-05-02",
        "price_last_changed": "2025-04-11", "price_per_hour": 30.0, "price_is_per": "server",
        "servers": 4, "chips_per_server": 8, "peak_flop_per_second": 4e15, "flop_per_token": 4e10,
        "tokens_per_second": 40_000, "throughput_from": "own run", "reached_loss": 2.1,
        "credits": 0, "hours": 12.5, "cost": 1500.0,
    },
    "second": {
        "region": "us-east-1", "purchase": "capacity_block", "currency": "EUR",
        "billion_tokens": 7.2, "target_loss": 2.1, "price_read": "2025-05-02",
        "price_last_changed": "2025-06-05", "price_per_hour": 2.5, "price_is_per": "chip",
        "servers": 2, "chips_per_server": 16, "peak_flop_per_second": 8e15, "flop_per_token": 4e10,
        "tokens_per_second": 200_000, "throughput_from": "independent benchmark",
        "reached_loss": 2.07, "credits": 0, "hours": 5.0, "cost": 400.0,
    },
}  # fmt: skip
RUN = {
    "work_hours": 240.0, "write_minutes": 12, "restart_minutes": 30, "servers": 50,
    "hours_between_failures_per_server": 500.0, "price_per_server_hour": 10.0,
}  # fmt: skip
INTERVALS = [1.0, 4.0, 12.0]
COST = with_credits
RANGES = {
    "hours": [60.0, 100.0, 140.0], "price": [18.0, 20.0, 20.0], "utilisation": [0.5, 0.5, 0.5],
    "storage": [200.0, 400.0, 1000.0], "credits": [1000.0, 3000.0, 8000.0],
    "operations": [300.0, 500.0, 800.0],
}  # fmt: skip
SERVICE = {
    "items_per_second": 120.0, "peak_to_mean": 2.5, "target_ms": 200,
    "measured": [
        {"batch": 1, "latency_ms": 60.0, "items_per_second": 16.0},
        {"batch": 4, "latency_ms": 150.0, "items_per_second": 25.0},
        {"batch": 16, "latency_ms": 420.0, "items_per_second": 36.0},
    ],
    "highest_load": 0.7, "spare_servers": 1, "price_per_server_hour": 9.0,
}  # fmt: skip
