"""What a million tokens cost, read and written, at a service level: a model of one replica.

    from utils.serving import tokens
    mix, level = tokens.Mix(1500, 250), tokens.Level(first_s=1.0, token_s=0.05)
    for offer in tokens.menu("llama-3.1-8b", mix, level):
        print(offer)

Modelled, not measured. Steps are rooflines of `generation`, stretched by shares of the peak that
are assumed (`assumptions`, in `utils/facts/data/serving_cases.yaml`) plus a time of each layer. A
replica has slots: a prompt is computed alone, while the others wait, as vLLM on Neuron does; then
its tokens are written in steps that all slots share. Requests arrive at random and wait for a slot.
`published` holds the model to published runs, row by row.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from utils.chip.hardware import Machine, machine
from utils.chip.roofline import width_bytes
from utils.cost.planner.architecture import Architecture, architecture
from utils.facts import figure, figures
from utils.facts.records import content
from utils.serving.generation import cache_bytes, decode, prefill, weight_bytes
from utils.serving.queues import erlang_c

CASES = "serving_cases.yaml"
INSTANCES = (
    "trn1.32xlarge", "trn2.48xlarge", "trn3-ultraserver-gen2", "inf2.48xlarge", "p4de.24xlarge",
    "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge",
)  # fmt: skip


@dataclass(frozen=True)
class Assumptions:
    """prefill: share of the peak rate that prompts reach. memory: share of the bandwidth that steps
    reach. layer_us: microseconds of each layer beside both. reserve: share of memory kept free.
    slots: the most requests that an engine serves at a time.

    Raises ValueError for a share outside 0 to 1, a negative time, or no slot.
    """

    prefill: float
    memory: float
    layer_us: float
    reserve: float
    slots: int

    def __post_init__(self) -> None:
        if not (0 < self.prefill <= 1 and 0 < self.memory <= 1 and 0 <= self.reserve < 1):
            raise ValueError(f"shares are above 0 and at most 1, found {self}")
        if self.layer_us < 0 or self.slots < 1:
            raise ValueError(f"layer_us is 0 or more, slots 1 or more; found {self}")


def assumptions(chip: str, how: str = "value") -> Assumptions:
    """Those of a chip's family, Neuron or GPU: the `value` of each, or all at their `best` or
    `worst` end. Raises ValueError for another word.
    """
    if how not in ("value", "best", "worst"):
        raise ValueError(f"how is 'value', 'best' or 'worst', found {how!r}")
    family = "neuron" if chip.startswith(("trainium", "inferentia")) else "gpu"
    less_is_better = {"layer_us", "reserve"}
    values = {
        name: entry["value" if how == "value" else
                    "low" if (how == "best") == (name in less_is_better) else "high"]
        for name, entry in content(CASES)["inputs"][family].items()
    }  # fmt: skip
    return Assumptions(**values)


@dataclass(frozen=True)
class Mix:
    """Mean tokens of a request: those read, and those written. Raises ValueError below 1."""

    tokens_in: int
    tokens_out: int

    def __post_init__(self) -> None:
        if min(self.tokens_in, self.tokens_out) < 1:
            raise ValueError(f"a request reads and writes 1 token or more, found {self}")


@dataclass(frozen=True)
class Level:
    """What a share of the requests gets: the first token after `first_s` seconds at most, and the
    mean time from a token to the next of `token_s` at most.
    """

    first_s: float
    token_s: float
    share: float = 0.95

    def __post_init__(self) -> None:
        if min(self.first_s, self.token_s) <= 0 or not 0 < self.share < 1:
            raise ValueError(f"seconds are above 0, the share is between 0 and 1; found {self}")


@dataclass(frozen=True)
class Replica:
    """A model on a few chips. weights, cache: dtypes in memory. usd_per_hour: of these chips, None
    where no price is published.
    """

    model: Architecture
    machine: Machine
    assumed: Assumptions
    weights: str = "bf16"
    cache: str = "bf16"
    usd_per_hour: float | None = None

    @cached_property
    def compute(self) -> str:
        """The dtype of products: that of the weights where it is the cache's too, or BF16."""
        same = self.weights == self.cache and self.weights in self.machine.flops
        return self.weights if same else "bf16"

    def prefill_s(self, tokens: int) -> float:
        """Seconds to compute one prompt, modelled."""
        work = prefill(self.model, self.machine, tokens, dtype=self.compute).work
        return self._seconds(work.flops, cache_bytes(self.model, tokens, self.cache))

    def decode_s(self, context: int, batch: int) -> float:
        """Seconds of one step that writes a token of each of `batch` sequences, modelled."""
        work = decode(self.model, self.machine, context, batch, dtype=self.compute).work
        return self._seconds(work.flops, batch * cache_bytes(self.model, context, self.cache))

    def _seconds(self, flops: float, cache: float) -> float:
        computing = flops / self.machine.rate(self.compute) / self.assumed.prefill
        moved = weight_bytes(self.model, self.weights) + cache
        moving = moved / self.machine.hbm_bytes_per_s / self.assumed.memory
        return max(computing, moving) + self.model.layers * self.assumed.layer_us / 1e6

    def largest_batch(self, mix: Mix) -> int:
        """Requests whose whole texts fit beside the weights; 0 if not even the weights do."""
        free = self.machine.hbm_bytes * (1 - self.assumed.reserve)
        free -= self.model.parameters * width_bytes(self.weights)
        text = cache_bytes(self.model, mix.tokens_in + mix.tokens_out, self.cache)
        return max(0, int(free / text))


@dataclass(frozen=True)
class Point:
    """A replica with `batch` slots, a mix of lengths and a load: the share of its capacity asked.

    Slots take turns: in a cycle each has its prompt computed once, while the others wait, and
    writes all its tokens.
    """

    replica: Replica
    mix: Mix
    batch: int
    load: float = 1.0

    def __post_init__(self) -> None:
        if self.batch < 1 or not 0 < self.load <= 1:
            raise ValueError(f"batch is 1 or more, load above 0 and at most 1; found {self.batch},"
                             f" {self.load}")  # fmt: skip

    @cached_property
    def prompt_s(self) -> float:
        """Of one prompt, alone."""
        return self.replica.prefill_s(self.mix.tokens_in)

    @cached_property
    def step_s(self) -> float:
        """Of one step of all slots, at the mean length of their texts."""
        context = self.mix.tokens_in + -(-self.mix.tokens_out // 2)
        return self.replica.decode_s(context, self.batch)

    @property
    def _steps(self) -> int:
        return self.mix.tokens_out - 1  # the prompt gives the first token

    @property
    def cycle_s(self) -> float:
        """In which each slot answers one request."""
        return self.batch * self.prompt_s + self._steps * self.step_s

    @property
    def token_s(self) -> float:
        """Mean seconds from a token to the next, prompts of others included."""
        return self.step_s + (self.batch - 1) * self.prompt_s / self._steps if self._steps else 0.0

    def first_s(self, share: float = 0.95) -> float:
        """Seconds to the first token within which a share of the requests has it. Infinite at a
        load of 1, where the queue has no bound.
        """
        if self.load == 1:
            return math.inf
        rate = self.load * self.batch / self.cycle_s
        waiting = erlang_c(rate, self.cycle_s, self.batch)
        scale = self.cycle_s / (self.batch * (1 - self.load))
        wait = max(0.0, scale * math.log(waiting / (1 - share))) if waiting > 0 else 0.0
        return wait + self.step_s + self.prompt_s

    @property
    def requests_per_s(self) -> float:
        """Answered. `units_per_second` of the cost model, whose items are then requests."""
        return self.load * self.batch / self.cycle_s

    @property
    def tokens_out_per_s(self) -> float:
        """Written."""
        return self.requests_per_s * self.mix.tokens_out

    @property
    def usd_per_million_in(self) -> float | None:
        """Of tokens read: their part of the time, idle time shared in proportion."""
        return self._usd(self.prompt_s / self.mix.tokens_in)

    @property
    def usd_per_million_out(self) -> float | None:
        """Of tokens written."""
        return self._usd(self._steps * self.step_s / (self.batch * self.mix.tokens_out))

    @property
    def usd_per_request(self) -> float | None:
        """Of all tokens of a request."""
        usd = self._usd(1 / (self.requests_per_s / self.load))
        return usd and usd / 1e6

    def _usd(self, seconds: float) -> float | None:
        if self.replica.usd_per_hour is None:
            return None
        return seconds / self.load * self.replica.usd_per_hour / 3600 * 1e6


def at_level(replica: Replica, mix: Mix, level: Level) -> Point | None:
    """The batch and the load that answer most requests within the level; None if none does."""
    best = None
    for batch in _batches(replica, mix):
        point = Point(replica, mix, batch)
        if best and point.requests_per_s <= best.requests_per_s:
            continue
        if point.token_s > level.token_s or point.step_s + point.prompt_s > level.first_s:
            continue
        low, high = 0.0, 1.0
        for _ in range(20):  # the wait grows with the load
            middle = (low + high) / 2
            if replace(point, load=middle).first_s(level.share) <= level.first_s:
                low = middle
            else:
                high = middle
        if low and (best is None or low * batch / point.cycle_s > best.requests_per_s):
            best = replace(point, load=low)
    return best


def offline(replica: Replica, mix: Mix) -> Point | None:
    """The batch with the most requests per second where nobody waits; None if nothing fits."""
    points = [Point(replica, mix, batch) for batch in _batches(replica, mix)]
    return max(points, key=lambda point: point.requests_per_s, default=None)


def _batches(replica: Replica, mix: Mix) -> Iterable[int]:
    """From the largest down, a fifth less each time."""
    batch = min(replica.largest_batch(mix), replica.assumed.slots)
    while batch:
        yield batch
        batch = batch * 4 // 5


@dataclass(frozen=True)
class Offer:
    """An instance at a service level: replicas of `chips` chips each, at the point that costs least
    per request (answers most, where no price is published), at the mean load. batch: the same
    without a level.
    """

    instance: str
    price: str
    chips: int
    replicas: int
    online: Point | None
    batch: Point | None

    @property
    def saving(self) -> float | None:
        """Share of an online request's cost that a batch saves, on the same replicas."""
        if self.online is None or self.batch is None:
            return None
        return 1 - self.online.requests_per_s / self.batch.requests_per_s

    def break_even_requests(self, start_hours: float) -> float | None:
        """Requests from which on a batch run that starts for so many hours costs less than asking
        an online service that stands already.
        """
        if self.online is None or self.batch is None or not self.saving:
            return None
        seconds = 1 / self.online.requests_per_s - 1 / self.batch.requests_per_s
        return start_hours * 3600 / seconds * self.replicas

    def __str__(self) -> str:
        head = f"{self.instance}, {self.replicas} x {self.chips} chips"
        if self.online is None:
            return f"{head}: not within this level"
        point = self.online
        text = f"{head}, batch {point.batch}, load {point.load:.2f}:"
        text += f" {self.replicas * point.tokens_out_per_s:,.0f} tokens/s written"
        if point.usd_per_million_in is None or point.usd_per_million_out is None:
            return f"{text}; no price ({self.price}) is published"
        return (
            f"{text}; {point.usd_per_million_in:.3f} USD per million read,"
            f" {point.usd_per_million_out:.2f} written"
        )


def menu(
    model: str,
    mix: Mix,
    level: Level,
    instances: Iterable[str] = INSTANCES,
    dtype: str = "bf16",
    price: str = "capacity_block",
    how: str = "value",
    peak: float = 1.0,
) -> list[Offer]:
    """An offer for each instance. price: `capacity_block`, which most of them have, or `on_demand`.
    how: which end of the assumptions, as `assumptions` takes it. peak: requests of the busiest time
    over those of the mean; the level is kept then, and most of the day the load is less.

    Raises ValueError for an unknown model or instance, or a peak below the mean.
    """
    if peak < 1:
        raise ValueError(f"peak is {peak}, allowed is 1 or more: it is over the mean")
    sizes = architecture(model)
    return [_offer(sizes, name, mix, level, dtype, price, how, peak) for name in instances]


def _offer(
    model: Architecture, instance: str, mix: Mix, level: Level, dtype: str, price: str, how: str,
    peak: float,
) -> Offer:  # fmt: skip

    whole = machine(instance)
    assumed = assumptions(str(figure(f"{instance}.accelerator").value).lower(), how)
    listed = figures(f"{instance}.price.").get(f"{instance}.price.{price}")
    usd = listed.value if listed else None
    offers = []
    for chips in (count for count in range(1, whole.chips + 1) if whole.chips % count == 0):
        several = part(whole, chips)
        replica = Replica(model, several, assumed, dtype, dtype, usd and usd * chips / whole.chips)
        online, batch = at_level(replica, mix, level), offline(replica, mix)
        if online:
            online = replace(online, load=online.load / peak)
        offers.append(Offer(instance, price, chips, whole.chips // chips, online, batch))
    return max(
        offers, key=lambda item: item.online.requests_per_s * item.replicas if item.online else 0.0
    )


def part(whole: Machine, chips: int) -> Machine:
    """So many chips of an instance, or so many of one chip."""
    share = chips / whole.chips
    return replace(
        whole,
        chips=chips,
        cores=whole.cores * chips // whole.chips,
        flops={dtype: rate * share for dtype, rate in whole.flops.items()},
        hbm_bytes=whole.hbm_bytes * share,
        hbm_bytes_per_s=whole.hbm_bytes_per_s * share,
    )


HEAD = (
    "instance", "replicas", "slots", "load", "tokens/s written", "USD per million read", "written",
    "a batch saves", "from requests",
)  # fmt: skip


def bill(
    model: str, mix: Mix, level: Level, start_hours: float, dtype: str = "bf16",
    price: str = "capacity_block", instances: Iterable[str] = INSTANCES, peak: float = 1.0,
) -> list[tuple[str, ...]]:  # fmt: skip
    """Rows under `HEAD`, all modelled: offers, dollars with those at the best and at the worst end
    of all assumptions, and from how many requests on a batch that starts for so long costs less.
    """
    middle, best, worst = (
        menu(model, mix, level, [*instances], dtype, price, how, peak)
        for how in ("value", "best", "worst")
    )
    return [_row(*offers, start_hours) for offers in zip(middle, best, worst, strict=True)]


def _row(offer: Offer, best: Offer, worst: Offer, start_hours: float) -> tuple[str, ...]:
    name, point = f"{offer.replicas} x {offer.chips} chips", offer.online
    if point is None:
        return (offer.instance, "not within this level", *[""] * 7)
    read, written = (
        _range([getattr(item.online, field, None) for item in (offer, best, worst)])
        for field in ("usd_per_million_in", "usd_per_million_out")
    )
    return (
        offer.instance, name, str(point.batch), f"{point.load:.2f}",
        f"{offer.replicas * point.tokens_out_per_s:,.0f}", read, written,
        f"{offer.saving or 0:.0%}", f"{offer.break_even_requests(start_hours) or 0:,.0f}",
    )  # fmt: skip


def _range(usd: list[float | None]) -> str:
    middle, best, worst = (item if item is None else f"{item:.2f}" for item in usd)
    return f"{middle} ({best} to {worst or 'none'})" if middle else "no price"
