"""A whole benchmark of one model of the course: every measurement, put into one record.

torch is imported late: it takes seconds to load.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from utils import serving
from utils.serving.bench import workloads
from utils.serving.bench.agreement import Fidelity, fidelity
from utils.serving.bench.cold import cold_and_warm
from utils.serving.bench.comparison import check_alike, check_percentile
from utils.serving.bench.environment import Environment, here
from utils.serving.bench.money import Given, joules_per_query, usd_per_million
from utils.serving.bench.records import Record, Setting
from utils.serving.bench.timing import (
    Arrivals,
    Rate,
    Samples,
    Tokens,
    measure,
    open_loop,
    throughput,
    tokens,
)
from utils.serving.bench.workers import Recovery, recovery, side_by_side
from utils.xla import fresh
from utils.xla.devices import Device, get

PARTS = {
    "arrivals": "requests when they are due, steady and in bursts, at half of one worker's rate",
    "cold": "a cold start in a new Python, stage by stage",
    "rates": "throughput against batch, calls under way and processes",
    "tokens": "time to first token and per output token (gpt in float32)",
    "recovery": "a worker killed in the middle of a request",
}
"""What may be left out; warm times and fidelity are always measured."""

BATCHES, CONCURRENCY, WORKERS = (1, 4, 16), (1, 4), (1, 2)
DUE, LOAD, BURST = 200, 0.5, 16
REQUESTS, KILL_AT, IN_FLIGHT = 12, 4, 3
FIDELITY_ROWS = 8
SECONDS = 600.0


@dataclass(frozen=True)
class Plan:
    """What to measure. The fields are the settings of the record.

    model: of `workloads.WORKLOADS`. device: a kind. batch: items of one request. dtype: of
    `workloads.FORMATS`. rounds: processes; warmup, repeats: calls of each. threads: of torch, on
    the host. compiled: the model goes through `Device.compiled`, which changes it where the device
    is eager: cuda and neuron run it one operator at a time without.
    """

    model: str
    device: str
    batch: int = 1
    dtype: str = "float32"
    rounds: int = 5
    warmup: int = 5
    repeats: int = 100
    threads: int = 1
    compiled: bool = False

    def __post_init__(self) -> None:
        for name in ("batch", "rounds", "warmup", "repeats", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but it must be at least 1")

    @property
    def settings(self) -> dict[str, Setting]:
        """Of its record: all but the model."""
        return {name: value for name, value in asdict(self).items() if name != "model"}

    def step(self, device: Device, batch: int | None = None) -> Callable[[], Any]:
        """One request, with the threads of the plan."""
        import torch

        torch.set_num_threads(self.threads)
        return workloads.step(
            self.model, device, batch or self.batch, self.dtype, compiled=self.compiled
        )


def run(
    plan: Plan,
    parts: Iterable[str] | None = None,
    price: Given | None = None,
    power: Given | None = None,
    say: Callable[[str], None] = lambda line: None,
    against: Record | None = None,
    p: float = 50.0,
) -> Record:
    """Measure, each part in processes of its own, and return the record.

    parts: of `PARTS`; None: all that the model has. price, power: of the machine, for money and
        energy at the best throughput measured.
    say: is told what comes next.
    against, p: a record with which this one is to be compared, and at which percentile; what cannot
        be compared is refused before anything is timed.

    Raises: `devices.NoDevice` where there is no such device; `Unlike` and ValueError as `compare`;
    ValueError for an unknown part, or a price without a throughput. A part that fails is left out,
    and the record says so: what was measured before is not lost.
    """
    chosen = _choose(plan, parts)
    if (price or power) and "rates" not in chosen:
        raise ValueError("money and energy need the throughput: measure the part 'rates' too")
    if against:
        check_alike(against, plan.model, plan.settings)
        fewest = min(plan.repeats, *map(len, against.rounds))
        check_percentile(p, min(plan.rounds, len(against.rounds)), fewest)
    say("what is here, and does it answer like the CPU")
    environment, agreed, repeatable = _apart(_first_look, plan)
    if against:
        check_alike(against, plan.model, plan.settings, environment)
    rounds: list[Samples] = []
    for number in range(plan.rounds):
        say(f"warm times, round {number + 1} of {plan.rounds}")
        rounds.append(_apart(_round, plan))
    results: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for part in chosen:
        say(PARTS[part])
        try:
            results[part] = _MEASURED[part](plan)
        except (RuntimeError, TimeoutError, ValueError, OSError) as error:
            missing[part] = str(error)
            say(f"this failed: {error}")
    rates = results.get("rates", ())
    best = max((rate.items_per_second for rate in rates), default=None)
    return Record(
        what=plan.model,
        settings=plan.settings,
        environment=environment,
        rounds=tuple(samples.seconds for samples in rounds),
        first_s=tuple(samples.first_s for samples in rounds),
        arrivals=results.get("arrivals", ()),
        cold=results.get("cold"),
        rates=rates,
        tokens=results.get("tokens"),
        fidelity=agreed,
        repeatable=repeatable,
        recovery=results.get("recovery"),
        usd_per_million=usd_per_million(best, price) if best and price else None,
        joules_per_query=joules_per_query(best, power) if best and power else None,
        missing=missing,
    )


def _choose(plan: Plan, parts: Iterable[str] | None) -> tuple[str, ...]:
    """The parts to measure, in the order of `PARTS`."""
    streams = (plan.model, plan.dtype) == ("gpt", "float32")
    if parts is None:
        return tuple(part for part in PARTS if streams or part != "tokens")
    asked = set(parts)
    if strange := sorted(asked - {*PARTS}):
        raise ValueError(f"there is no part {strange[0]!r}: choose {', '.join(PARTS)}")
    if "tokens" in asked and not streams:
        raise ValueError(
            f"{plan.model} in {plan.dtype} generates no tokens: leave out the part 'tokens', or"
            " choose gpt in float32"
        )
    return tuple(part for part in PARTS if part in asked)


def _apart(function: Callable[[Plan], Any], plan: Plan) -> Any:
    try:
        return fresh.run(function, plan, seconds=SECONDS)
    except fresh.Raised as error:
        if error.kind in ("NoDevice", "ValueError"):
            raise ValueError(error.message) from None
        raise


def _first_look(plan: Plan) -> tuple[Environment, Fidelity, bool]:
    """Environment, fidelity against eager CPU in float32, and whether it repeats its own bits."""
    device = get(plan.device)
    step = plan.step(device, FIDELITY_ROWS)
    once, again = (step().cpu() for _ in range(2))
    reference = workloads.step(plan.model, get("cpu"), FIDELITY_ROWS)()
    same_bits = fidelity(once, again).bit_exact
    return here(plan.device), fidelity(reference, once), same_bits


def _round(plan: Plan) -> Samples:
    device = get(plan.device)
    return measure(plan.step(device), device, plan.warmup, plan.repeats)


def _arrivals(plan: Plan) -> tuple[Arrivals, ...]:
    device = get(plan.device)
    step = plan.step(device)
    rate = LOAD / measure(step, device, plan.warmup, plan.repeats).summary.p50.value_s
    plans = {
        "steady": serving.steady(rate, DUE),
        f"bursts of {BURST}": serving.burst(rate, DUE, seed=0, size=BURST),
    }
    return tuple(open_loop(step, device, due.tolist(), name) for name, due in plans.items())


def _rates(plan: Plan) -> tuple[Rate, ...]:
    device = get(plan.device)
    batches = sorted({*BATCHES, plan.batch})
    return throughput(lambda batch: plan.step(device, batch), device, batches, CONCURRENCY)


def _tokens(plan: Plan) -> Tokens:
    import torch

    torch.set_num_threads(plan.threads)
    device = get(plan.device)
    return tokens(*workloads.generation(device), device)


def _recovery(plan: Plan) -> Recovery:
    """The answer to a request is the sum of the logits, read on the host."""

    def make(device: Device) -> Callable[[int], float]:
        step = plan.step(device)
        return lambda number: float(step().float().sum())

    return recovery(make, range(REQUESTS), plan.device, KILL_AT, IN_FLIGHT, timeout_s=SECONDS)


_MEASURED: dict[str, Callable[[Plan], Any]] = {
    "arrivals": lambda plan: _apart(_arrivals, plan),
    "cold": lambda plan: cold_and_warm(
        plan.step, plan.device, plan.warmup, plan.repeats, timeout_s=SECONDS
    ),
    "rates": lambda plan: (
        _apart(_rates, plan)
        + side_by_side(plan.step, plan.device, plan.batch, WORKERS, timeout_s=SECONDS)
    ),
    "tokens": lambda plan: _apart(_tokens, plan),
    "recovery": _recovery,
}
