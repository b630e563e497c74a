"""From steps to useful time: servers fail, and a run goes back to its last checkpoint.

Rates are those published for GPUs: nobody publishes a count for Trainium. A chip is taken to fail
as often as a GPU of the published cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from utils.chip.training_memory import RECIPES
from utils.cost.planner.architecture import Architecture
from utils.cost.planner.cluster import Cluster, cluster
from utils.cost.planner.plans import Plan, plans
from utils.cost.planner.settings import Settings, inputs
from utils.cost.planner.settings import settings as guesses
from utils.cost.tco.failures import best_interval, expected_hours
from utils.facts import figure

GPUS_OF_SERVER = 8


@cache
def failures_per_chip_hour() -> dict[str, float]:
    """Published rates by cluster: "llama3_405b" and "b200_504"."""
    results = {}
    for name in ("llama3_405b", "b200_504"):
        hours = figure(f"failures.{name}.between_per_server").to("h")
        results[name] = 1 / (hours * GPUS_OF_SERVER)
    return results


@dataclass(frozen=True)
class Goodput:
    """share: of the time that yields kept work, 0 to 1.

    between_hours: from one failure of the whole cluster to the next. checkpoint_bytes, write_s: of
    one checkpoint, during which computing waits. interval_hours: the best between two.
    """

    share: float
    between_hours: float
    checkpoint_bytes: float
    write_s: float
    interval_hours: float


def goodput(
    architecture: Architecture,
    joined: Cluster,
    chosen: Settings | None = None,
    failures: str = "llama3_405b",
    restart_hours: float | None = None,
) -> Goodput:
    """Useful share of the time with the best checkpoint interval.

    failures: whose published rate. restart_hours: from a failure until computing goes on, by
    default `inputs()["restart_hours"]`. A checkpoint holds master weights and moments; all nodes
    write at once, each at its share of the network, and together at most what the storage takes.

    Raises ValueError for an unknown rate, `utils.cost.tco.fields.InputError` if the cluster fails
    so often that the work is never done.
    """
    rates = failures_per_chip_hour()
    if failures not in rates:
        raise ValueError(f"no rate {failures!r}; there are {', '.join(rates)}")
    chosen = chosen or guesses()
    recipe = RECIPES[chosen.recipe]
    per_parameter = (recipe.master or recipe.weights) + recipe.moments
    size = architecture.parameters * per_parameter
    guessed = inputs()
    rate = min(
        joined.nodes * guessed["node_write_bytes_per_s"].value,
        guessed["storage_write_bytes_per_s"].value,
    )
    write = size / rate / 3600
    per_hour = rates[failures] * joined.chips
    every = best_interval(write, per_hour)
    restart = guessed["restart_hours"].value if restart_hours is None else restart_hours
    work = 100 * every
    spent = float(expected_hours(work, every, write, restart, per_hour))
    return Goodput(work / spent, 1 / per_hour, size, 3600 * write, every)


@dataclass(frozen=True)
class Point:
    """One size of cluster: the best plan (None if nothing fits), its goodput, and tokens per second
    of all chips, without and with failures.
    """

    chips: int
    tokens_per_step: int
    plan: Plan | None
    goodput: Goodput | None

    @property
    def tokens_per_s(self) -> float:
        """Of all chips, if nothing ever failed."""
        return self.tokens_per_step / self.plan.step_seconds if self.plan else 0.0

    @property
    def kept_per_s(self) -> float:
        """Of all chips, less what failures cost."""
        return self.tokens_per_s * self.goodput.share if self.goodput else 0.0


def scaling(
    architecture: Architecture,
    sizes: Sequence[tuple[str, int]],
    length: int,
    tokens_per_step: int | Sequence[int],
    settings: Settings | None = None,
    failures: str = "llama3_405b",
) -> list[Point]:
    """The best plan for each (instance, chips). tokens_per_step: one for all, or one for each."""
    amounts = (
        tokens_per_step if isinstance(tokens_per_step, Sequence) else [tokens_per_step] * len(sizes)
    )
    results = []
    for (instance, chips), tokens in zip(sizes, amounts, strict=True):
        joined = cluster(instance, chips)
        first = plans(architecture, joined, length, tokens, settings=settings)[0]
        useful = goodput(architecture, joined, settings, failures) if first.fits else None
        results.append(Point(chips, tokens, first if first.fits else None, useful))
    return results
