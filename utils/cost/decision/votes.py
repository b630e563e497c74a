"""Rows that vote: the money first, then preferences.

A preference is one vote, as no source says that one weighs more than another. Money that leans is
two. Money that is clear is four for Trainium, so that three preferences put it in doubt, and six
against it, which is more than all preferences for it together. These weights are a judgement.
The burden of proof lies with the move: without a saving that is shown, the most is "either"; and
for Trainium the money is clear by its chance and its size, against it by either of them.
"""

from collections.abc import Callable

from utils.cost.decision.case import NO_PATH, TRANSFORMERS, Case, Row


def _votes(
    name: str, stage: str, votes: int, holds: Callable[[Case], bool], says: str, *sources: str
) -> Row:
    return Row(name, stage, holds, says, sources, votes=votes)


VOTES: tuple[Row, ...] = (
    Row(
        "no saving shown",
        "money",
        lambda case: (
            case.answers.capacity != "Trainium only"
            and not (case.cheaper("leaning_probability") and case.worth)
        ),
        "no saving is shown that would pay for a second platform ({case.shown}): preferences"
        " alone are no reason to move",
        ("B-062", "judgement:least_saving", "judgement:leaning_probability"),
        holds_back=True,
    ),
    _votes(
        "cheaper",
        "money",
        2,
        lambda case: case.cheaper("leaning_probability"),
        "Trainium is cheaper in {saving.probability:.0%} of the draws, by {saving.middle:.0%} in"
        " the middle ({saving.low:.0%} to {saving.high:.0%})",
        "judgement:leaning_probability",
        "B-062",
    ),
    _votes(
        "clearly cheaper",
        "money",
        2,
        lambda case: case.cheaper("clear_probability") and case.worth,
        "a chance of {saving.probability:.0%} is clear, and {saving.amount:,.0f} would be saved"
        " over the horizon",
        "judgement:clear_probability",
        "judgement:least_saving",
    ),
    _votes(
        "too little",
        "money",
        -2,
        lambda case: case.cheaper("leaning_probability") and not case.worth,
        "it is cheaper by too little: {saving.middle:.0%} and {saving.amount:,.0f} over the horizon"
        " do not pay for a second platform",
        "judgement:least_saving",
        "judgement:least_amount",
    ),
    _votes(
        "dearer",
        "money",
        -2,
        lambda case: case.dearer("leaning_probability"),
        "Trainium is cheaper in only {saving.probability:.0%} of the draws; the middle saving is"
        " {saving.middle:.0%}",
        "judgement:leaning_probability",
        "B-062",
    ),
    _votes(
        "clearly dearer",
        "money",
        -4,
        lambda case: case.clearly_dearer,
        "that is clear, by its chance or by its size: no preference makes up for it",
        "judgement:clear_probability",
        "judgement:least_saving",
    ),
    _votes(
        "repeated work",
        "preference",
        1,
        lambda case: case.answers.runs_per_year >= case.values["repeated_runs"],
        "{answers.runs_per_year:,.0f} runs a year share one port",
        "B-063",
        "judgement:repeated_runs",
    ),
    _votes(
        "vendor recipe",
        "preference",
        1,
        lambda case: case.recipe,
        "AWS keeps recipes for some models of this kind: see whether yours is among them",
        "torchtitan-models",
        "vllm-neuron-status",
    ),
    _votes(
        "knows Trainium",
        "preference",
        1,
        lambda case: case.answers.experience == "Trainium",
        "the team has ported to Trainium before",
        "judgement:expert_factor",
    ),
    _votes(
        "capacity in writing",
        "preference",
        1,
        lambda case: case.answers.capacity in ("both", "Trainium only"),
        "Trainium is promised in writing",
        "B-057",
    ),
    _votes(
        "beta",
        "preference",
        -1,
        lambda case: case.answers.framework not in NO_PATH,
        "the software path, {case.path}, is a beta: it may change under the work",
        "torchneuron-status",
        "vllm-neuron-status",
        "jax-neuron-status",
    ),
    _votes(
        "ended path",
        "preference",
        -1,
        lambda case: case.answers.framework == "PyTorch/XLA",
        "the code is written for PyTorch/XLA, which trains no more and serves in maintenance: it"
        " has to be ported too",
        "xla-training-ended",
        "xla-inference-maintenance",
    ),
    _votes(
        "unusual architecture",
        "preference",
        -1,
        lambda case: case.answers.architecture not in TRANSFORMERS,
        "the recipes of TorchTitan Neuron and vLLM Neuron do not cover this kind of model"
        " ({answers.architecture}): expect to be among the first to meet its problems",
        "B-047",
        "torchtitan-models",
        "vllm-neuron-status",
    ),
    _votes(
        "kernels to replace",
        "preference",
        -1,
        lambda case: case.answers.kernels != "none",
        "CUDA kernels have to be replaced, and their results compared",
        "B-045",
        "A-130",
    ),
    _votes(
        "central kernels",
        "preference",
        -1,
        lambda case: case.answers.kernels == "central",
        "they are central: each is written anew in NKI, and stays yours to maintain",
        "B-050",
        "B-064",
    ),
    _votes(
        "dynamic shapes",
        "preference",
        -1,
        lambda case: case.answers.shapes == "data-dependent",
        "shapes depend on the data: each new one compiles, or the model changes",
        "B-046",
        "torchneuron-compile",
    ),
    _votes(
        "one-off",
        "preference",
        -1,
        lambda case: case.answers.runs_per_year <= case.values["single_runs"],
        "so few runs a year ({answers.runs_per_year:g}) each carry much of the port",
        "B-064",
        "judgement:single_runs",
    ),
    _votes(
        "first port",
        "preference",
        -1,
        lambda case: case.answers.experience == "none",
        "the team would port to an accelerator for the first time",
        "B-059",
        "judgement:novice_factor",
    ),
    _votes(
        "capacity unknown",
        "preference",
        -1,
        lambda case: case.answers.capacity == "not asked yet",
        "nobody has asked for capacity yet; Trainium2 was largely sold out in spring 2026",
        "D-027",
        "B-057",
    ),
    Row(
        "older generation",
        "preference",
        lambda case: case.answers.capacity != "Trainium only" and case.only_older,
        "Capacity Blocks in the region ({answers.region}) are of Trainium1 only, and the software"
        " path that goes on, {case.path}, needs Trainium2 or newer: a promise has to name the"
        " generation",
        (
            "torchneuron-status",
            "vllm-neuron-status",
            "xla-inference-maintenance",
            "trn2.48xlarge.price.capacity_block",
        ),
        holds_back=True,
    ),
    _votes(
        "gate by hand",
        "preference",
        -1,
        lambda case: case.answers.gate == "by hand",
        "results are judged by hand, so every change of the port waits for people",
        "D-032",
    ),
    _votes(
        "little slack",
        "preference",
        -1,
        lambda case: case.answers.deadline_weeks < case.values["slack"] * case.weeks,
        "port and pilot take about {case.weeks_said} of the {answers.deadline_weeks:g} weeks: a"
        " slip meets the deadline",
        "B-048",
        "judgement:slack",
    ),
)
