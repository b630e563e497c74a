"""Incidents 5 and 6 of lab 17: a run is slow, and `neuron-monitor` has been on."""

import random
from typing import Any

from utils.labs import Facts

WEIGHTS = {"cause": 6, "since": 4}
FORM = "`slow` returned {strange}: return {{'cause': ..., 'since': ...}}"
CAUSES = ("host", "idle core", "nan", "hardware", "new graphs")
REPORTS = 12


def make_incident(rng: random.Random, cause: str, moment: str) -> Facts:
    """An incident of 12 reports of 5 seconds; the cause begins in report 5 to 8 and stays.

    moment: what an early report shows and the next one does not: "transient", "pause" or
    "checkpoint".
    """
    start, blip = rng.randint(5, 8), rng.randint(1, 3)
    device = rng.uniform(0.008, 0.02)
    busy = rng.uniform(78, 90)
    odd = rng.randrange(2)  # the logical core with a half that idles
    reports: list[dict[str, Any]] = []
    for number in range(REPORTS):
        now = number >= start
        host = device * (
            rng.uniform(1.1, 1.8) if cause == "host" and now else rng.uniform(0.05, 0.1)
        )
        share = 0.45 if cause in ("host", "new graphs") and now else 1.0
        halves = [[busy * share * rng.uniform(0.97, 1.03) for _ in range(2)] for _ in range(2)]
        if cause == "idle core" and now:
            halves[odd][1] = rng.uniform(0.2, 1.5)
        completed = round(5 / (device + host) * share)
        stats: dict[str, Any] = {
            "period": 5.0,
            "error_summary": {"numerical": 0, "transient": 0, "hardware": 0},
            "execution_summary": {"completed": completed, "completed_with_num_err": 0},
            "latency_stats": {
                "total_latency": {"p50": round(device + host, 5)},
                "device_latency": {"p50": round(device, 5)},
            },
        }
        if cause == "nan" and now:
            stats["execution_summary"]["completed_with_num_err"] = rng.randint(1, 9)
            stats["error_summary"]["numerical"] = 1
        if cause == "hardware" and now:
            stats["error_summary"]["hardware"] = rng.randint(1, 3)
        graphs = 2 + (number - start + 1 if cause == "new graphs" and now else 0)
        reports.append(_report(stats, halves, graphs))
    _add_blip(rng, reports, blip, moment)
    right = {"cause": cause, "since": start}
    return {"reports": reports, "right": right, "words": {"blip": blip}}


def _report(stats: dict[str, Any], halves: list[list[float]], graphs: int) -> dict[str, Any]:
    cores = {
        str(core): {
            "neuroncore_utilization": round(sum(pair) / 2, 2),
            "v3d": {
                f"nc_v3.{2 * core + half}": {"neuroncore_utilization": round(value, 2)}
                for half, value in enumerate(pair)
            },
        }
        for core, pair in enumerate(halves)
    }
    return {
        "neuroncore_counters": {"neuroncores_in_use": cores},
        "execution_stats": stats,
        "memory_used": {"loaded_models": [{"model_id": 10001 + n} for n in range(graphs)]},
    }


def _add_blip(rng: random.Random, reports: list[dict[str, Any]], at: int, kind: str) -> None:
    """Something that one early report shows and that causes nothing."""
    stats = reports[at]["execution_stats"]
    stats["error_summary"]["transient"] = rng.randint(1, 4)  # corrected errors are in all of them
    if kind == "pause":
        stats["execution_summary"]["completed"] = 0
        stats["latency_stats"] = {"total_latency": None, "device_latency": None}
        for core in reports[at]["neuroncore_counters"]["neuroncores_in_use"].values():
            core["neuroncore_utilization"] = 0.0
            for half in core["v3d"].values():
                half["neuroncore_utilization"] = 0.0
    elif kind == "checkpoint":
        latency = stats["latency_stats"]
        latency["total_latency"]["p50"] = round(3 * latency["device_latency"]["p50"], 5)


def monitor_cases(rng: random.Random) -> list[Facts]:
    """Seven incidents, of each cause at least one, in three cases."""
    causes = rng.sample(CAUSES, len(CAUSES))
    # Three checkpoints and two runs that wait for their host: one at least is on another run.
    moments = ["checkpoint"] * 3 + ["pause"] * 2 + ["transient"] * 2
    rng.shuffle(moments)
    pairs = zip((*causes, "idle core", "host"), moments, strict=True)
    incidents = [make_incident(rng, cause, moment) for cause, moment in pairs]
    return [{"incidents": part} for part in (incidents[:2], incidents[2:5], incidents[5:])]


def monitor_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{len(case['incidents'])} runs of {REPORTS} reports"
