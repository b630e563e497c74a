"""The planner against published training runs: `published_runs()`.

The layout is the published one. Half of the papers give the kernel efficiency of each chip
(`utils.cost.planner.fitted`); the other half is kept back and says how far a plan is off. Figures
are in `utils/facts/data/plan_cases.yaml` and `plan_mosaic.csv` with their sources.
"""

import csv
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from utils.chip.collectives import Fabric, Tier
from utils.chip.hardware import machine
from utils.cost.planner.architecture import Architecture, architecture, case_file
from utils.cost.planner.cluster import Cluster, cluster
from utils.cost.planner.layouts import Layout
from utils.cost.planner.plans import Plan, plans
from utils.cost.planner.settings import Settings, settings
from utils.facts.records import DATA

VOCABULARY, LENGTH = 51200, 2048
"""Of all models in the tables of Megatron-LM."""
MOSAIC = {
    "125m": (12, 768, 12), "350m": (24, 1024, 16), "760m": (24, 1536, 12), "1b": (24, 2048, 16),
    "3b": (32, 2560, 20), "7b": (32, 4096, 32), "13b": (40, 5120, 40), "30b": (48, 7168, 56),
    "70b": (80, 8192, 64),
}  # fmt: skip
"""Layers, width and heads of MosaicML's models."""


def paper_of(source: str) -> str:
    """The paper that a source of the file of cases belongs to."""
    papers = {**case_file()["fitted"]["papers"], **case_file()["later"]["papers"]}
    return next(paper for paper, entry in papers.items() if source in entry["sources"])


@cache
def halves() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(papers to fit with, papers kept back), drawn by the seed of the file until each half has
    runs on every chip.
    """
    fitted = case_file()["fitted"]
    chips = {paper: set(entry["chips"]) for paper, entry in fitted["papers"].items()}
    every = set().union(*chips.values())
    drawn = random.Random(fitted["seed"])
    while True:
        first = sorted(drawn.sample(sorted(chips), len(chips) // 2))
        second = sorted(set(chips) - set(first))
        if all(set().union(*(chips[p] for p in half)) == every for half in (first, second)):
            return tuple(first), tuple(second)


def kernel_efficiency(chip: str) -> float:
    """Share of the peak rate that matrix products reach on "a100", "h100" or "trainium1"."""
    return case_file()["fitted"]["kernel_efficiency"][chip]


def interval() -> tuple[float, float]:
    """Published step by planned step: nine in ten of the fitted half's papers, each left out of its
    own fit, lie between these two.
    """
    low, high = case_file()["fitted"]["interval"]
    return low, high


@dataclass(frozen=True)
class Run:
    """name; seconds: of a step, as published or as its throughput says; plan: what the planner says
    of the same layout. efficiency: of the chip's kernels. paper, chip: what it belongs to. source:
    an address. open: what had to be assumed, empty if nothing.
    """

    name: str
    seconds: float
    plan: Plan
    efficiency: float
    paper: str
    chip: str
    source: str
    open: str

    @property
    def held_out(self) -> bool:
        """Whether its paper was kept back when the efficiencies were fitted."""
        return self.paper not in halves()[0]

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
        parts = ("products", "between", "tensor", "pipeline", "context", "experts")
        work = sum(seconds[part] for part in parts)
        waiting = 1 + seconds["bubble"] / work
        rest = self.plan.step_seconds - waiting * seconds["products"]
        left = (self.seconds - rest) / waiting
        return self.efficiency * seconds["products"] / left


def gpu_cluster(name: str, chips: int) -> Cluster:
    """Servers of GPUs from the file of cases; a rank is a GPU."""
    entry = case_file()["clusters"][name]
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
        hbm_bytes=entry.get("hbm_bytes", chip.hbm_bytes),
        hbm_bytes_per_s=entry.get("hbm_bytes_per_s", chip.hbm_bytes_per_s),
        fabric=Fabric(name, tiers),
        node_chips=inside,
    )


def _gpt(name: str, case: Mapping[str, Any]) -> Architecture:
    return Architecture(
        name=name,
        layers=case["layers"],
        width=case["width"],
        heads=case["heads"],
        key_value_heads=case["heads"],
        feed_forward=4 * case["width"],
        vocabulary=case.get("vocabulary", VOCABULARY),
        gated=False,
        biases=True,
        norm_vectors=2,
        positions=case.get("positions", LENGTH),
        tied=True,
        dropout=case.get("dropout", True),
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
    if "tokens_per_s_chip" in case:
        return case["sequences"] * length / case["tokens_per_s_chip"] / case["chips"]
    if "architecture" in case:
        flops = case["sequences"] * length * a.flops_per_token(length)
    else:
        flops = _hardware_flops(a, length, case["sequences"])
    return flops / (case["chips"] * case["tflops"] * 1e12)


def _mosaic() -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of MosaicML's tables in 16 bits, as cases."""
    with (DATA / "plan_mosaic.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["precision"] == "bf16"]
    for number, row in enumerate(rows):
        layers, width, heads = MOSAIC[row["model"]]
        length, gpus = int(row["length"]), int(row["gpus"])
        yield (
            f"mosaic-{row['model']}-{length}-{gpus}-{row['cluster']}-{number}",
            {
                "cluster": row["cluster"], "chips": gpus, "layers": layers, "width": width,
                "heads": heads, "vocabulary": 50368, "positions": length, "dropout": False,
                "data": gpus, "tensor": 1, "pipeline": 1, "micro_batch": int(row["micro_batch"]),
                "zero": int(row["zero"]), "length": length, "sequences": int(row["sequences"]),
                "recompute": row["recompute"], "fused_attention": True, "mfu": float(row["mfu"]),
                "tokens_per_s_chip": float(row["tokens_per_s_gpu"]), "source": "mosaic",
            },
        )  # fmt: skip


@cache
def cases() -> Mapping[str, Mapping[str, Any]]:
    """All published runs that can be planned, by name."""
    return {**case_file()["cases"], **dict(_mosaic())}


def run(name: str, chosen: Settings | None = None) -> Run:
    """One published run and its plan. chosen: other guesses than the usual ones, which take the
    fitted kernel efficiency of the run's chip.
    """
    case = cases().get(name) or case_file()["later"]["cases"][name]
    named = case.get("architecture")
    a = architecture(named) if named else _gpt(name, case)
    length = case.get("length", LENGTH)
    on_trainium = "instance" in case
    chip = "trainium1" if on_trainium else case_file()["clusters"][case["cluster"]]["chip"]
    joined = (
        cluster(case["instance"], case["chips"])
        if on_trainium
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
        sequence_parallel=case.get("sequence_parallel", bool(named) or recompute == "selective"),
        context=case.get("context", 1),
        expert=case.get("expert", 1),
    )
    chosen = chosen or settings(kernel_efficiency=kernel_efficiency(chip))
    chosen = replace(chosen, fused_attention=case.get("fused_attention", False))
    (plan,) = plans(a, joined, length, case["sequences"] * length, [layout], chosen)
    return Run(
        name,
        _seconds(case, a, length),
        plan,
        chosen.kernel_efficiency,
        paper_of(case["source"]),
        chip,
        case_file()["sources"][case["source"]]["url"],
        case.get("open", ""),
    )


@cache
def published_runs() -> tuple[Run, ...]:
    """All runs of `cases`, with the usual guesses."""
    return tuple(run(name) for name in cases())


@cache
def later_runs() -> tuple[Run, ...]:
    """Runs that were added after the papers had been drawn: all are held out, and what is stated of
    `published_runs` does not contain them.
    """
    return tuple(run(name) for name in case_file()["later"]["cases"])


def omissions() -> list[dict[str, Any]]:
    """Rows of the cited tables that no plan covers: source, rows, why."""
    return case_file()["not_planned"]
