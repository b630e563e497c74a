"""Rows that close Trainium, the GPU or both, whatever else is said. The first is asked first."""

from collections.abc import Callable

from utils.cost.decision.case import BOTH, NO_GPU, NO_PATH, NO_TRAINIUM, TRANSFORMERS, Case, Row
from utils.cost.decision.questions import INFERENCE


def _veto(
    name: str,
    closes: frozenset[str],
    holds: Callable[[Case], bool],
    says: str,
    *sources: str,
) -> Row:
    return Row(name, "veto", holds, says, sources, closes=closes)


VETOES: tuple[Row, ...] = (
    _veto(
        "managed API",
        BOTH,
        lambda case: case.answers.managed == "enough" and case.answers.task != "pre-training",
        "a managed API is enough: there is no machine to choose, and nothing to port",
        "bedrock-customisation",
        "A-120",
    ),
    _veto(
        "no gate",
        BOTH,
        lambda case: case.answers.gate == "none",
        "nothing could tell whether the results are as good: do not move yet, build the evaluation"
        " first",
        "D-032",
        "B-069",
    ),
    _veto(
        "nothing to be had",
        BOTH,
        lambda case: case.answers.capacity == "none to be had",
        "neither Trainium nor a GPU can be had before the deadline: change the date or the size",
        "D-027",
        "capacity-block-terms",
    ),
    _veto(
        "idle service",
        BOTH,
        lambda case: (
            case.answers.task in INFERENCE
            and case.answers.managed != "not enough"
            and case.answers.spend_per_year < case.values["least_spend"]
        ),
        "a service of {answers.spend_per_year:,.0f} a year would leave an accelerator idle: pay by"
        " the request, or run it on a CPU",
        "judgement:least_spend",
        "D-030",
    ),
    _veto(
        "no GPU",
        NO_GPU,
        lambda case: case.answers.capacity == "Trainium only",
        "only Trainium can be had in writing before the deadline",
        "capacity-block-terms",
    ),
    _veto(
        "no framework path",
        NO_TRAINIUM,
        lambda case: case.answers.framework in NO_PATH,
        "the Neuron SDK has no path for this framework ({answers.framework}): it would be a"
        " rewrite, not a port",
        "tensorflow-ended",
        "A-132",
    ),
    _veto(
        "no architecture path",
        NO_TRAINIUM,
        lambda case: (
            case.answers.architecture == "other" and case.answers.shapes == "data-dependent"
        ),
        "a model that is no transformer, CNN or diffusion model, with shapes that depend on the"
        " data, gives no fixed graph to compile, and the recipes do not show how to bound it",
        "torchneuron-compile",
        "B-047",
    ),
    _veto(
        "no vLLM recipe",
        NO_TRAINIUM,
        lambda case: (
            case.answers.framework == "vLLM" and case.answers.architecture not in TRANSFORMERS
        ),
        "vLLM Neuron serves the models of its recipes, and this kind ({answers.architecture}) is"
        " not among them",
        "vllm-neuron-status",
    ),
    _veto(
        "no Trainium capacity",
        NO_TRAINIUM,
        lambda case: case.answers.capacity == "GPU only",
        "no Trainium can be had in writing before the deadline",
        "D-027",
        "B-057",
    ),
    _veto(
        "no region",
        NO_TRAINIUM,
        lambda case: (
            case.answers.capacity not in ("both", "Trainium only")
            and not case.answers.generations & case.generations
        ),
        "no Capacity Block of a Trainium that this software runs on is listed in the region"
        " ({answers.region}), and none is promised in writing",
        "trn2.48xlarge.price.capacity_block",
        "trn2.3xlarge.price.capacity_block",
        "B-067",
    ),
    _veto(
        "deadline",
        NO_TRAINIUM,
        lambda case: case.weeks > case.answers.deadline_weeks,
        "port and pilot take about {case.weeks_said} weeks, the deadline is in"
        " {answers.deadline_weeks:g}",
        "judgement:port_weeks",
        "B-048",
        "D-037",
    ),
    _veto(
        "no hands",
        NO_TRAINIUM,
        lambda case: case.answers.engineers == 0,
        "nobody is there to port it, or to keep up with the releases after that: find somebody"
        " first, then ask again",
        "B-050",
        "B-059",
    ),
    _veto(
        "volume",
        NO_TRAINIUM,
        lambda case: case.saving is None and case.hoped < case.price,
        "port and pilot cost about {case.price_said}; even the vendor's best figure saves"
        " {case.hoped:,.0f} in that time on {answers.spend_per_year:,.0f} a year",
        "judgement:best_saving",
        "judgement:payback_years",
        "judgement:week_pay",
        "D-004",
        "A-133",
    ),
)
