"""Money per job: a training run, a fine-tuning run, a night of batch inference.

The hours of a run, one after the other: waiting for capacity, starting, compiling, computing with
checkpoints and failures; failed runs for each good one; idle time; whole steps of billing. Each is
a line at list price; discount, support, data, people and credits follow. Everything is
arithmetic element by element, so that arrays of draws go through it as numbers do.
"""

from collections.abc import Mapping

import numpy as np

from utils.cost.tco.cost import Cost, Number, energy, whole, with_bills
from utils.cost.tco.failures import expected_hours
from utils.cost.tco.fields import HOURS_PER_YEAR, check


def throughput(values: Mapping[str, Number]) -> Number:
    """Units per second of one server: as measured, or the share of its peak that MFU says."""
    if "units_per_second" in values:
        return values["units_per_second"]
    return values["peak"] * values["mfu"] / values["flop_per_unit"]


def job(values: Mapping[str, Number]) -> Cost:
    """The cost of one good run.

    Args:
        values: field name to number, in the units of `utils.cost.tco.fields.FIELDS`; all that
            `NEEDS["job"]` names, and throughput in one of its two ways.

    Raises: InputError, which names the field, the value and what is allowed.
    """
    v = check("job", values)
    rate = v["instances"] * v["price"]

    alone = v["work"] / (throughput(v) * v["instances"]) / 3600
    computing = alone / v["scaling"]
    segment = np.minimum(v["checkpoint_every"], computing)
    saving = computing / segment * v["checkpoint_write"]
    failures_per_hour = v["instances"] * (v["failures"] / HOURS_PER_YEAR + v["interruptions"] / 24)
    running = expected_hours(computing, v["checkpoint_every"], v["checkpoint_write"], v["restart"],
                             failures_per_hour)  # fmt: skip

    starting = v["starts"] * v["startup"]
    all_starts = v["runs"] * v["starts"] * (1 + v["failed_runs"])
    cold = np.minimum(v["cold_compiles"], all_starts)
    compiling = (cold * v["compile_cold"] + (all_starts - cold) * v["compile_warm"]) / v["runs"]
    failed = v["failed_runs"] * (starting + v["failed_share"] * running)

    used = v["queue"] + starting + compiling * v["compile_paid"] + running + failed
    idle = used * (1 / v["utilisation"] - 1)
    billed = _in_steps(used + idle, v["billing_step"])

    hours = {
        **_work(v, alone),
        "scaling": computing - alone,
        "checkpoints": saving,
        "lost work": running - computing - saving,
        "start-up": starting,
        "compilation": compiling * v["compile_paid"],
        "queue": v["queue"],
        "failed runs": failed,
        "idle": idle,
        "rounding": billed - used - idle,
    }
    lines = {name: item * rate for name, item in hours.items()}
    lines["storage"] = v["storage"] * v["storage_months"] * v["storage_price"]
    lines["egress"] = v["egress"] * v["egress_price"]

    instance_hours = billed * v["instances"]
    energy_kwh, carbon_kg = energy(v, instance_hours)
    return Cost(
        lines=with_bills(lines, v, v["runs"]),
        units=v["work"],
        hours=v["queue"] + starting + compiling + running,
        instance_hours=instance_hours,
        horizon=v["runs"],
        energy_kwh=energy_kwh,
        carbon_kg=carbon_kg,
    )


def _work(v: Mapping[str, Number], alone: Number) -> dict[str, Number]:
    """Hours of computing, split at the peak where the peak is known."""
    if not {"peak", "flop_per_unit"} <= v.keys():
        return {"work": alone}
    at_peak = v["work"] * v["flop_per_unit"] / (v["peak"] * v["instances"]) / 3600
    return {"at peak": at_peak, "below peak": alone - at_peak}


def _in_steps(hours: Number, step: Number) -> Number:
    """The hours, rounded up to whole steps; a step of 0 bills what is used."""
    # A step of microseconds rounds nothing that is seen, and hours over it may overflow.
    stepped = np.asarray(step) > 1e-9
    billed = np.where(stepped, whole(hours / np.where(stepped, step, 1)) * step, hours)
    return billed if np.ndim(billed) else float(billed)
