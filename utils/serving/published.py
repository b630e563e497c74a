"""The model of serving against published runs: `rows()`, of all of them, and `summary()`.

Runs, their quotes and sources are in `utils/facts/data/serving_cases.yaml`, with the assumptions
and the figures after which these were chosen. The error of any other figure says what the model
leaves out: how prompts and steps are really scheduled, kernels that are better or worse, hosts.
"""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from utils.chip.hardware import machine
from utils.cost.planner.architecture import architecture
from utils.facts import figure
from utils.facts.records import content
from utils.serving.tokens import CASES, Mix, Point, Replica, assumptions, part


@dataclass(frozen=True)
class Row:
    """A published figure and the model's. measure: with its unit. chosen: whether assumptions were
    chosen after it.
    """

    case: str
    measure: str
    published: float
    modelled: float
    chosen: bool
    source: str

    @property
    def error(self) -> float:
        """0.1 if the model is 10 % above what was published."""
        return self.modelled / self.published - 1

    @property
    def factor(self) -> float:
        """How many times too high or too low the model is, 1 or more."""
        return max(self.modelled / self.published, self.published / self.modelled)

    def __str__(self) -> str:
        text = f"{self.case}, {self.measure}: published {self.published:,.1f}, model"
        chosen = ", chosen after it" if self.chosen else ""
        return f"{text} {self.modelled:,.1f} ({self.error:+.0%}{chosen})"


def point(case: Mapping[str, Any]) -> Point:
    """The model of a case: one replica, full."""
    chips = part(machine(case["chip"]), case["chips"])
    weights, cache = case.get("weights", "bf16"), case.get("cache", "bf16")
    replica = Replica(architecture(case["model"]), chips, assumptions(case["chip"]), weights, cache)
    mix = Mix(case["tokens_in"], case["tokens_out"])
    return Point(replica, mix, case["batch"] or replica.largest_batch(mix))


def rows() -> list[Row]:
    """Every published figure with the model's."""
    read = content(CASES)
    return [
        Row(name, measure, value, modelled, key in case.get("chosen", ()),
            read["sources"][case["source"]]["url"])
        for name, case in read["cases"].items()
        for key, measure, value, modelled in _figures(case)
    ]  # fmt: skip


def _figures(case: Mapping[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    modelled = point(case)
    if "first_ms" in case:  # of a batch that begins as one, all prompts come before a first token
        yield (
            "first_ms",
            "first token, ms",
            case["first_ms"],
            1e3 * modelled.batch * modelled.prompt_s,
        )
    if "token_ms" in case:
        yield "token_ms", "next token, ms", case["token_ms"], 1e3 * modelled.step_s
    if "fact" in case:
        rate = modelled.tokens_out_per_s * case.get("replicas", 1)
        yield "fact", "tokens/s", figure(case["fact"]).number, rate


def summary() -> str:
    """Median and worst factor of the figures that chose nothing, with the name of the worst; and
    of those that were measured through vLLM on Neuron, which the model flatters most.

    >>> print(*summary().splitlines()[::2], sep="\\n")
    50 published figures held out: the median is a factor of 1.2 off.
    7 of them through vLLM on Neuron: the median is a factor of 2.3 off.
    """
    held_out = [row for row in rows() if not row.chosen]
    vllm = [row for row in held_out if "vllm" in row.case]
    worst = max(held_out, key=lambda row: row.factor)
    median, of_vllm = (
        statistics.median(row.factor for row in several) for several in (held_out, vllm)
    )
    return (
        f"{len(held_out)} published figures held out: the median is a factor of {median:.1f} off.\n"
        f"The worst one, a factor of {worst.factor:.1f}: {worst}.\n"
        f"{len(vllm)} of them through vLLM on Neuron: the median is a factor of {of_vllm:.1f} off."
    )
