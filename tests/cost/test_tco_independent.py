"""Jobs and services priced a second time: scalars, plain arithmetic, nothing of the model's.

The calculation was written from the formulas in words, before the model was read.
"""

import math
import random

import pytest

from utils.cost import tco

HOURS_OF_A_YEAR = 8766.0
HOURS_OF_A_MONTH = 730.5
DAYS_OF_A_MONTH = HOURS_OF_A_MONTH / 24
HOURS_OF_A_DAY = 24.0
SECONDS_OF_AN_HOUR = 3600.0
SCENARIOS = range(50)
CLOSE = 1e-9


def hours_of_a_segment(segment, write, restart, rate):
    """Expected hours until a segment and its checkpoint are done, begun again at every failure."""
    needed = segment + write
    if rate == 0:
        return needed
    return math.exp(rate * restart) * math.expm1(rate * needed) / rate


def money(hours_by_line, given, storage, egress, operations, engineering, credits):
    """Lines of money from hours of all machines by line, and from what else is paid."""
    lines = {}
    machines = 0.0
    for line, hours in hours_by_line.items():
        lines[line] = hours * given["price"]
        machines += lines[line]
    lines["discount"] = -machines * given["discount"]
    after_discount = machines + lines["discount"]
    usage = after_discount + storage + egress
    lines["support"] = given["support"] * usage
    lines["storage"] = storage
    lines["egress"] = egress
    lines["operations"] = operations
    lines["engineering"] = engineering
    cloud_bill = usage + lines["support"]
    lines["credits"] = -credits if credits < cloud_bill else -cloud_bill
    return lines


def job_by_hand(given):
    """Money by line of one good run."""
    if "units_per_second" in given:
        throughput = given["units_per_second"]
    else:
        throughput = given["peak"] * given["mfu"] / given["flop_per_unit"]
    speed = throughput * given["instances"] * given["scaling"]
    computing = given["work"] / speed / SECONDS_OF_AN_HOUR

    per_hour = given["failures"] / HOURS_OF_A_YEAR + given["interruptions"] / HOURS_OF_A_DAY
    rate = given["instances"] * per_hour
    segment = given["checkpoint_every"]
    if computing < segment:
        segment = computing
    segments = computing / segment
    writing = segments * given["checkpoint_write"]
    running = segments * hours_of_a_segment(
        segment, given["checkpoint_write"], given["restart"], rate
    )

    starting = given["starts"] * given["startup"]

    all_starts = given["runs"] * given["starts"] * (1 + given["failed_runs"])
    cold = given["cold_compiles"]
    if cold > all_starts:
        cold = all_starts
    warm = all_starts - cold
    compiling = cold * given["compile_cold"] + warm * given["compile_warm"]
    compiling = compiling / given["runs"] * given["compile_paid"]

    failed = given["failed_runs"] * (starting + given["failed_share"] * running)

    used = running + starting + compiling + failed + given["queue"]
    billed = used / given["utilisation"]
    rounded = billed
    if given["billing_step"] > 0:
        rounded = math.ceil(billed / given["billing_step"]) * given["billing_step"]

    hours = {
        "compute": computing,
        "checkpoints": writing,
        "failures": running - computing - writing,
        "startup": starting,
        "compiling": compiling,
        "failed_runs": failed,
        "queue": given["queue"],
        "idle": billed - used,
        "rounding": rounded - billed,
    }
    storage = given["storage"] * given["storage_months"] * given["storage_price"]
    return money(
        {line: item * given["instances"] for line, item in hours.items()},
        given,
        storage=storage,
        egress=given["egress"] * given["egress_price"],
        operations=given["operations"] * given["pay"] / 40,
        engineering=given["engineers"] * given["weeks"] * given["pay"] / given["runs"],
        credits=given["credits"] / given["runs"],
    )


def service_by_hand(given):
    """Money by line of one month."""
    busy = given["demand"] / given["units_per_second"]
    need = busy / given["load"]
    fixed = math.ceil(need * given["peak_to_mean"])
    following = need
    if following < 1:
        following = 1
    fleet = given["autoscaled"] * following + (1 - given["autoscaled"]) * fixed
    cold_starts = given["scale_ups"] * DAYS_OF_A_MONTH * given["startup"]
    items = given["demand"] * SECONDS_OF_AN_HOUR * HOURS_OF_A_MONTH
    hours = {
        "compute": busy * HOURS_OF_A_MONTH,
        "idle": (fleet - busy) * HOURS_OF_A_MONTH,
        "spare": given["spare"] * HOURS_OF_A_MONTH,
        "startup": cold_starts,
        "compiling": given["releases"] * given["compile_cold"],
    }
    return money(
        hours,
        given,
        storage=given["storage"] * given["storage_price"],
        egress=items * given["egress_per_item"] / 1e6 * given["egress_price"],
        operations=given["operations"] * given["pay"] / 40,
        engineering=given["engineers"] * given["weeks"] * given["pay"] / given["months"],
        credits=given["credits"] / given["months"],
    )


def some_or_none(chance, most):
    """Nothing in one case of three, else up to `most`."""
    return 0.0 if chance.random() < 1 / 3 else chance.uniform(0, most)


def pay(chance):
    """What jobs and services share."""
    return {
        "price": chance.uniform(0.5, 200),
        "discount": some_or_none(chance, 0.7),
        "credits": some_or_none(chance, 1) * 10 ** chance.uniform(2, 8),
        "support": some_or_none(chance, 0.1),
        "startup": some_or_none(chance, 1.5),
        "compile_cold": some_or_none(chance, 5),
        "storage": some_or_none(chance, 1e5),
        "storage_price": chance.uniform(0.01, 0.2),
        "egress_price": chance.uniform(0.01, 0.1),
        "engineers": float(chance.randint(0, 5)),
        "weeks": some_or_none(chance, 30),
        "pay": chance.uniform(1000, 8000),
        "operations": some_or_none(chance, 80),
    }


def random_job(seed):
    """Inputs of a job between a few minutes on one server and months on thousands."""
    chance = random.Random(seed)
    given = pay(chance) | {
        "work": 10 ** chance.uniform(8, 12),
        "runs": float(chance.randint(1, 200)),
        "instances": float(round(10 ** chance.uniform(0, 3))),
        "scaling": chance.uniform(0.5, 1),
        "billing_step": chance.choice([0.0, 0.0, 1 / 60, 1.0, 24.0]),
        "starts": float(chance.randint(1, 4)),
        "compile_warm": some_or_none(chance, 0.3),
        "cold_compiles": float(chance.choice([0, 1, 3, 50, 5000])),
        "compile_paid": chance.choice([0.0, 0.1, 1.0]),
        "queue": some_or_none(chance, 2),
        "utilisation": chance.uniform(0.3, 1),
        "failed_runs": some_or_none(chance, 2),
        "failed_share": chance.uniform(0, 1),
        "failures": some_or_none(chance, 12),
        "interruptions": some_or_none(chance, 0.05),
        "checkpoint_every": 10 ** chance.uniform(-1, 3),
        "checkpoint_write": some_or_none(chance, 0.2),
        "restart": some_or_none(chance, 1),
        "storage_months": chance.uniform(0, 12),
        "egress": some_or_none(chance, 1e4),
    }
    units_per_second = 10 ** chance.uniform(4, 5.5)
    if seed % 2:
        return given | {"units_per_second": units_per_second}
    flop_per_unit = 10 ** chance.uniform(9, 12)
    mfu = chance.uniform(0.05, 0.7)
    return given | {
        "flop_per_unit": flop_per_unit,
        "mfu": mfu,
        "peak": units_per_second * flop_per_unit / mfu,
    }


def random_service(seed):
    """Inputs of a service between a part of one server and hundreds."""
    chance = random.Random(seed)
    per_server = 10 ** chance.uniform(-1, 3)
    return pay(chance) | {
        "demand": per_server * 10 ** chance.uniform(-2, 2),
        "peak_to_mean": chance.uniform(1, 8),
        "tokens_per_item": chance.uniform(1, 2000),
        "months": chance.uniform(1, 36),
        "units_per_second": per_server,
        "load": chance.uniform(0.2, 1),
        "spare": float(chance.randint(0, 3)),
        "autoscaled": chance.choice([0.0, 1.0, chance.random()]),
        "scale_ups": some_or_none(chance, 40),
        "releases": some_or_none(chance, 8),
        "egress_per_item": some_or_none(chance, 200),
    }


SAME_LINE_OF_A_JOB = {
    "scaling": None,
    "checkpoints": "checkpoints",
    "lost work": "failures",
    "start-up": "startup",
    "compilation": "compiling",
    "queue": "queue",
    "failed runs": "failed_runs",
    "idle": "idle",
    "rounding": "rounding",
}
SAME_LINE = {
    name: name
    for name in ("discount", "support", "storage", "egress", "operations", "engineering", "credits")
}
COMPUTING = ("at peak", "below peak", "work", "scaling")
"""The model's lines that together are the hours of computing."""
WAITING = ("headroom", "peaks", "rounding")
"""The model's lines that together are the servers of the fleet that are not busy."""


def same(result, expected, scale):
    """Within 1e-9 of the line itself, or of what it was subtracted from."""
    assert result == pytest.approx(expected, rel=CLOSE, abs=CLOSE * scale)


@pytest.mark.parametrize("seed", SCENARIOS)
def test_a_job_costs_what_it_costs_by_hand(seed: int) -> None:
    values = random_job(seed)
    by_hand = job_by_hand(values)
    cost = tco.job(values)
    scale = max(abs(money) for money in by_hand.values())
    assert cost.total == pytest.approx(sum(by_hand.values()), rel=CLOSE, abs=CLOSE * scale)
    computing = sum(cost.lines.get(line, 0.0) for line in COMPUTING)
    same(computing, by_hand["compute"], scale)
    for line, hand in (SAME_LINE_OF_A_JOB | SAME_LINE).items():
        if hand:
            same(cost.lines[line], by_hand[hand], scale)
    assert set(cost.lines) <= {*COMPUTING, *SAME_LINE_OF_A_JOB, *SAME_LINE}


@pytest.mark.parametrize("seed", SCENARIOS)
def test_a_service_costs_what_it_costs_by_hand(seed: int) -> None:
    values = random_service(seed)
    by_hand = service_by_hand(values)
    cost = tco.service(values)
    scale = max(abs(money) for money in by_hand.values())
    assert cost.total == pytest.approx(sum(by_hand.values()), rel=CLOSE, abs=CLOSE * scale)
    same(cost.lines["work"], by_hand["compute"], scale)
    same(sum(cost.lines[line] for line in WAITING), by_hand["idle"], scale)
    same(cost.lines["spare"], by_hand["spare"], scale)
    same(cost.lines["cold starts"], by_hand["startup"], scale)
    same(cost.lines["compilation"], by_hand["compiling"], scale)
    for line, hand in SAME_LINE.items():
        same(cost.lines[line], by_hand[hand], scale)
