"""A record in words: what `course.py bench` prints."""

from collections.abc import Sequence

from utils.course.shown import columns
from utils.serving.bench.quantiles import percentile
from utils.serving.bench.records import Record


def text(record: Record) -> str:
    """All that a record has, a part to a paragraph; what was not measured is not mentioned."""
    settings = ", ".join(f"{name} {value}" for name, value in record.settings.items())
    medians = [percentile(each, 50) for each in record.rounds]
    parts = [
        [f"{record.what}: {settings}", str(record.environment), record.environment.caution],
        [
            f"warm, {len(medians)} processes: {record.summary}",
            "intervals take all calls for independent; the processes tell whether they are:",
            f"median {_range(medians)}, first call {_range(record.first_s)}",
        ],
        _arrivals(record),
        _cold(record),
        _rates(record),
        _tokens(record),
        _answers(record),
        [str(record.recovery)] if record.recovery else [],
        _bills(record),
        [f"not measured, {part}: {why}" for part, why in record.missing.items()],
    ]
    return "\n\n".join("\n".join(filter(None, lines)) for lines in parts if lines)


def _arrivals(record: Record) -> list[str]:
    if not record.arrivals:
        return []
    return ["one worker, requests on their own time:", *map(str, record.arrivals)]


def _cold(record: Record) -> list[str]:
    if not record.cold:
        return []
    rows = [
        (name.removesuffix("_s"), f"{seconds:.3f}") for name, seconds in record.cold.stages.items()
    ]
    first = f"{record.cold.first_answer_s:.3f}"
    lead = "cold start of a process, seconds (files and compilers may have their caches):"
    return [lead, *columns([*rows, ("first answer after", first)])]


def _rates(record: Record) -> list[str]:
    if not record.rates:
        return []
    calls = min(each.calls for each in record.rates)
    return [f"throughput of a few calls ({calls} or more), a first look:", *map(str, record.rates)]


def _bills(record: Record) -> list[str]:
    found = [each for each in (record.usd_per_million, record.joules_per_query) if each]
    if not found:
        return []
    best = max(record.rates, key=lambda each: each.items_per_second)
    return [
        f"at the highest rate, which a queue of users never keeps up: {best}",
        *map(str, found),
    ]


def _tokens(record: Record) -> list[str]:
    if not record.tokens:
        return []
    found = record.tokens
    return [
        f"first token: {found.to_first.p50}",
        f"each other token: {found.between.p50}; {found.between.p95}",
        f"{found.tokens_per_second:.4g} tokens/s, one text at a time",
    ]


def _answers(record: Record) -> list[str]:
    lines = [f"against eager CPU in float32: {record.fidelity}"] if record.fidelity else []
    if record.repeatable is not None:
        words = "the same bits" if record.repeatable else "other bits"
        lines.append(f"the same inputs twice on this device: {words}")
    return lines


def _range(seconds: Sequence[float]) -> str:
    """
    >>> _range([0.25, 0.003])
    '3 to 250 ms'
    """
    return f"{min(seconds) * 1e3:.4g} to {max(seconds) * 1e3:.4g} ms"
