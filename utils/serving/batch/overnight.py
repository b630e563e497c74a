"""The overnight scenario of the cost model, for so many items, segments and lengths.

Each item is asked about in each segment: 500,000 items and 12 segments are six million requests.

Throughput rests on published measurements, not on this machine's. One H100 has two, of which the
time of a token read and of one written follow; with 5,000 read and 500 written they give 1.44 times
the published throughput, so long prompts are too cheap in it. A trn1.32xlarge has one, at 1,500
tokens read and 250 written; for other lengths it is scaled as the model of `tokens` scales, at the
batch that was measured.
"""

from utils.chip.hardware import machine
from utils.cost import tco
from utils.cost.planner.architecture import architecture
from utils.facts import figure
from utils.serving.tokens import Mix, Point, Replica, assumptions, part

MEASURED = Mix(1500, 250)
"""Of Llama 3.1 8B with vLLM: four replicas of four chips, 32 requests at a time on each."""
_CHIPS, _BATCH = 4, 32


def h100_token_s() -> tuple[float, float]:
    """Seconds of an H100 for a token read and for one written, of a full batch in FP8.

    >>> read, wrote = h100_token_s()
    >>> print(f"{read * 1e6:.1f} us read, {wrote * 1e6:.1f} us written")
    14.9 us read, 50.8 us written
    """
    per_s = [figure(f"inference.h100_llama31_8b_{m}").value for m in ("2048_128", "1000_1000")]
    both = 1 / per_s[1]  # 1,000 read and 1,000 written
    read = (128 / per_s[0] - 128 * both) / (2048 - 128)
    return read, both - read


def requests_per_s(option: str, tokens_in: int, tokens_out: int) -> float:
    """Of one server of the scenario's option, "trainium" or "gpu". Raises ValueError for another
    option, and for lengths below 1.
    """
    mix = Mix(tokens_in, tokens_out)
    if option == "gpu":
        read, wrote = h100_token_s()
        return 1 / (tokens_in * read + tokens_out * wrote)
    if option != "trainium":
        raise ValueError(f"option is 'trainium' or 'gpu', found {option!r}")
    measured = figure("inference.trn1.32xlarge_llama31_8b_vllm").value / MEASURED.tokens_out
    return measured * _model(mix) / _model(MEASURED)


def _model(mix: Mix) -> float:
    chips = part(machine("trn1.32xlarge"), _CHIPS)
    replica = Replica(architecture("llama-3.1-8b"), chips, assumptions("trainium1"))
    return Point(replica, mix, _BATCH).requests_per_s


def overnight(
    items: int = 500_000,
    segments: int = 12,
    tokens_in: int = 1500,
    tokens_out: int = 250,
    within_hours: float = 10.0,
) -> tco.Scenario:
    """The scenario "overnight-batch" of such a night, with the fewest servers of either kind that
    are done in time. Ask it as any other: `tco.compare(overnight(tokens_in=3000))`.

    Segments run one after the other, each with a start. Data grow with the requests. How wide the
    throughput's range is stays as it was.

    Raises: ValueError if 10,000 servers are not done in time.
    """
    night = tco.scenario("overnight-batch")
    work = items * segments
    growth = work / night.inputs["work"].value
    changes = {name: night.inputs[name].value * growth for name in ("storage", "egress")}
    changes |= {"work": work, "starts": segments}
    for option in night.options:
        changes[f"{option}.units_per_second"] = requests_per_s(option, tokens_in, tokens_out)
    for option in night.options:
        fewest, most = 0, 10_000
        path = f"{option}.instances"
        if night.cost(option, changes | {path: most}).hours > within_hours:
            raise ValueError(
                f"{work:,} requests are not done in {within_hours:g} hours by {most:,} servers of"
                f" {option}: give more hours or fewer segments"
            )
        while most - fewest > 1:
            middle = (fewest + most) // 2
            late = night.cost(option, changes | {path: middle}).hours > within_hours
            fewest, most = (middle, most) if late else (fewest, middle)
        changes[path] = most
    return night.with_values(changes)
