"""What may still go wrong after the decision: each risk with what to do about it, and a source."""

from collections.abc import Callable
from dataclasses import dataclass

from utils.cost.decision.case import Case
from utils.cost.decision.evidence import Evidence, evidence
from utils.facts import figure

KINDS = ("capacity", "lock-in", "support", "skills", "price drift")
_ALL = ("trainium", "gpu", "either", "neither")
_MOVE = ("trainium", "either")


@dataclass(frozen=True)
class Risk:
    """One risk. kind: one of `KINDS`. source: the evidence for it, with its date."""

    kind: str
    text: str
    mitigation: str
    source: Evidence


@dataclass(frozen=True)
class _Row:
    kind: str
    verdicts: tuple[str, ...]
    holds: Callable[[Case], bool]
    text: str
    mitigation: str
    source: str


def grown(instance: str) -> float:
    """The newest Capacity Block price over the oldest known one of the same year.

    >>> grown("trn2.48xlarge")
    1.0
    """
    now = figure(f"{instance}.price.capacity_block")
    before = [each for each in now.history if each.date.year == now.date.year]
    first = min(before, key=lambda each: each.date) if before else now
    return now.number / first.number


def _always(case: Case) -> bool:
    return True


_ROWS = (
    _Row(
        "capacity",
        _MOVE,
        lambda case: case.answers.capacity not in ("both", "Trainium only"),
        "Trainium2 was largely sold out in spring 2026: a plan without a reservation is a hope",
        "get size, region and dates in writing before the port; name the GPU to fall back on",
        "B-057",
    ),
    _Row(
        "capacity",
        _MOVE,
        lambda case: case.answers.capacity in ("both", "Trainium only"),
        "a Capacity Block ends on its day, and extending it needs free capacity",
        "checkpoint for the last hour; reserve the next block before this one ends",
        "capacity-block-terms",
    ),
    _Row(
        "capacity",
        ("gpu",),
        _always,
        "a Capacity Block is paid up front, cannot be cancelled and may not be extended",
        "reserve for the measured duration, with the time for restarts in it",
        "capacity-block-terms",
    ),
    _Row(
        "lock-in",
        _MOVE,
        lambda case: case.answers.kernels == "none" and case.path == "TorchNeuron",
        "settings for one compiler and one runtime creep into the code",
        "write against torch.accelerator, name no device; run the tests on a GPU or CPU every week",
        "torch-accelerator",
    ),
    _Row(
        "lock-in",
        _MOVE,
        lambda case: case.answers.kernels == "none" and case.path != "TorchNeuron",
        "settings for one compiler and one runtime creep into the code",
        "keep what one platform needs in one file; run the tests on a GPU every week",
        "B-065",
    ),
    _Row(
        "lock-in",
        _MOVE,
        lambda case: case.answers.kernels != "none",
        "kernels in NKI run on Trainium only, as those in CUDA run on NVIDIA only",
        "keep the plain operator beside each kernel, and a test that compares the two",
        "nki-chips",
    ),
    _Row(
        "lock-in",
        ("gpu",),
        _always,
        "every CUDA kernel added now makes the next comparison dearer",
        "run the audit in CI and let the number of its errors only fall",
        "B-065",
    ),
    _Row(
        "lock-in",
        ("neither",),
        lambda case: case.answers.managed == "enough",
        "price, version and end of a managed model are its provider's to decide",
        "keep prompts, data and evaluation yours; measure a second model with the same gate",
        "bedrock-customisation",
    ),
    _Row(
        "support",
        _MOVE,
        lambda case: case.answers.framework in ("PyTorch eager", "torch.compile", "PyTorch/XLA"),
        "the native PyTorch backend is a public beta, the one before it trains no more",
        "pin one SDK version, plan weeks for its upgrades, keep the GPU path runnable",
        "torchneuron-status",
    ),
    _Row(
        "support",
        _MOVE,
        lambda case: case.answers.framework == "vLLM",
        "the vLLM plugin is a beta and serves the models of its recipes",
        "pin plugin and model version; keep a GPU deployment of the same endpoint",
        "vllm-neuron-status",
    ),
    _Row(
        "support",
        _MOVE,
        lambda case: case.answers.framework == "JAX",
        "JAX on Neuron is a beta, for some versions of JAX only",
        "pin the JAX version that it supports; test each upgrade on a GPU first",
        "jax-neuron-status",
    ),
    _Row(
        "support",
        ("gpu", "neither"),
        _always,
        "the software for Trainium changed its base within a year: this verdict ages",
        "answer the questions again at each second release of the SDK, or when a flip point is met",
        "torchneuron-status",
    ),
    _Row(
        "skills",
        _MOVE,
        lambda case: case.answers.experience != "Trainium",
        "the best known success had a large team, with the vendor's engineers beside it",
        "have two people do the port, time it, and stop where the plan says so",
        "B-059",
    ),
    _Row(
        "skills",
        _MOVE,
        lambda case: case.answers.experience == "Trainium",
        "the knowledge of the port sits in few heads",
        "a second person repeats the build from the written steps before production",
        "B-059",
    ),
    _Row(
        "price drift",
        _ALL,
        _always,
        "in the {months} months to {month} the price of Capacity Blocks of p6-b200 rose by"
        " {b200:.0%}, that of trn2 by {trn2:.0%}",
        "fix price and term in the contract; decide again when a price passes its break-even",
        "p6-b200.48xlarge.price.capacity_block",
    ),
)


def risks(case: Case, verdict: str) -> tuple[Risk, ...]:
    """The risks that go with a verdict."""
    block = figure("p6-b200.48xlarge.price.capacity_block")
    first = min(each.date for each in (*block.history, block))
    words = {
        "months": round((block.date - first).days / 30.44),
        "month": f"{block.date:%B %Y}",
        "b200": grown("p6-b200.48xlarge") - 1,
        "trn2": grown("trn2.48xlarge") - 1,
    }
    return tuple(
        Risk(row.kind, row.text.format(**words), row.mitigation, evidence(row.source))
        for row in _ROWS
        if verdict in row.verdicts and row.holds(case)
    )
