"""The planner against published training runs: `published_runs()`.

The layout is the published one; the guesses are those of `utils.cost.planner.settings`, the same
for all cases, so the error says what the model leaves out. Figures of A100 and H100 clusters are in
`utils/facts/data/plan_cases.yaml` with their sources.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from utils.chip.collectives import Fabric, Tier
from utils.chip.hardware import machine
from utils.cost.planner.architecture import CASES, Architecture, architecture
from utils.cost.planner.cluster import Cluster, cluster
from utils.cost.planner.layouts import Layout
from utils.cost.planner.plans import Plan, plans
from utils.cost.planner.settings import Settings, settings
from utils.facts.records import content

VOCABULARY, LENGTH = 51200, 2048
"""Of all models in the tables of Megatron-LM."""


@dataclass(frozen=True)
class Run:
    """name; seconds: of a step, as published or as its throughput says; plan: what the planner says
    of the same layout. efficiency: of its kernels, as guessed. source: an address. open: what had
    to be assumed, empty if nothing.
    """

    name: str
    seconds: float
    plan: Plan
    efficiency: float
    source: str
    open: str

    @property
    def error(self) -> float:
        """0.1 if the planner's step takes 10 % longer than the published one."""
        return self.plan.step_seconds / self.seconds - 1

    @property
    def implied_efficiency(self) -> float:
        """The kernel efficiency at which the planner's step would take as long; not above 1 if the
        rest of the model is right.
        """
        # All parts but the products, and the bubble's part of them, are left as they are.
        seconds = self.plan.seconds
        work = sum(seconds[part] for part in ("products", "between", "tensor", "pipeline"))
        waiting = 1 + seconds["bubble"] / work
        rest = self.plan.step_seconds - waiting * seconds["products"]
        left = (self.seconds - rest) / waiting
        return self.efficiency * seconds["products"] / left


def gpu_cluster(name: str, chips: int) -> Cluster:
    """Servers of GPUs from the file of cases; a rank is a GPU."""
    entry = content(CASES)["clusters"][name]
    chip = machine(entry["chip"])
    inside = min(entry["server"], chips)
    tiers = (
        Tier("GPUs of a server", inside, entry["inside_latency_s"], entry["inside_bytes_per_s"]),
        Tier("servers", max(1, chips // inside), entry["outside_latency_s"],
             entry["outside_bytes_per_s"]),
    )  # fmt: skip
    return Cluster(
        name=f"{chips:,} {chip.name}",
        chips=chips,
        ranks=chips,
        flops=chip.rate("bf16"),
        hbm_bytes=chip.hbm_bytes,
        hbm_bytes_per_s=chip.hbm_bytes_per_s,
        fabric=Fabric(name, tiers),
        node_chips=inside,
    )


def _megatron(name: str, case: Mapping[str, Any]) -> Architecture:
    return Architecture(
        name=name,
        layers=case["layers"],
        width=case["width"],
        heads=case["heads"],
        key_value_heads=case["heads"],
        feed_forward=4 * case["width"],
        vocabulary=VOCABULARY,
        gated=False,
        biases=True,
        norm_vectors=2,
        positions=LENGTH,
        tied=True,
        dropout=True,
    )


def _hardware_flops(a: Architecture, length: int, sequences: int) -> float:
    """FLOP of a step with full recomputation: equation 3 of Narayanan et al., SC 2021."""
    rest = 1 + length / (6 * a.width) + a.vocabulary / (16 * a.layers * a.width)
    return 96 * sequences * length * a.layers * a.width**2 * rest


def _seconds(case: Mapping[str, Any], a: Architecture, length: int) -> float:
    if "seconds" in case:
        return case["seconds"]
    if "sequences_per_s" in case:
        return case["sequences"] / case["sequences_per_s"]
    if "architecture" in case:
        flops = case["sequences"] * length * a.flops_per_token(length)
    else:
        flops = _hardware_flops(a, length, case["sequences"])
    return flops / (case["chips"] * case["tflops"] * 1e12)


def run(name: str, chosen: Settings | None = None) -> Run:
    """One published run and its plan. chosen: other guesses than the usual ones."""
    read = content(CASES)
    case = read["cases"][name]
    named = case.get("architecture")
    a = architecture(named) if named else _megatron(name, case)
    length = case.get("length", LENGTH)
    joined = (
        cluster(case["instance"], case["chips"])
        if "instance" in case
        else gpu_cluster(case["cluster"], case["chips"])
    )
    recompute = case.get("recompute", "full")
    layout = Layout(
        case["data"],
        case["tensor"],
        case["pipeline"],
        case.get("zero", 0),
        case["micro_batch"],
        recompute,
        case.get("chunks", 1),
        # Sequence parallelism came with the second paper, for its own column only.
        sequence_parallel=bool(named) or recompute == "selective",
    )
    chosen = chosen or settings()
    chosen = replace(chosen, fused_attention=case.get("fused_attention", False))
    (plan,) = plans(a, joined, length, case["sequences"] * length, [layout], chosen)
    source = read["sources"][case["source"]]
    return Run(
        name,
        _seconds(case, a, length),
        plan,
        chosen.kernel_efficiency,
        source["url"],
        case.get("open", ""),
    )


@cache
def published_runs() -> tuple[Run, ...]:
    """All cases of the file, with the usual guesses."""
    return tuple(run(name) for name in content(CASES)["cases"])
