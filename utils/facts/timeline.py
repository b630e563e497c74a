"""Since when, and until when, each way to use PyTorch on Neuron has existed: spans between releases
of the SDK, from `utils/facts/data/neuron_timeline.yaml`.
"""

import datetime
from functools import cache

import msgspec

from utils.facts import fact
from utils.facts.records import content, read_as

FILE = "neuron_timeline.yaml"


class Span(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One state of one way. since, until: the release that began and ended it; "" if it was so
    before the first release known here, or still is. fact: the key of the statement that says it.
    """

    lane: str
    state: str
    fact: str
    since: str = ""
    until: str = ""


@cache
def releases() -> dict[str, datetime.date]:
    """The releases of the Neuron SDK and their dates, oldest first."""
    return dict(content(FILE)["releases"])


@cache
def spans() -> tuple[Span, ...]:
    """All spans, lane by lane.

    Raises: KeyError for a release or a fact that is not there.
    """
    history = read_as(tuple[Span, ...], content(FILE)["spans"], FILE)
    for span in history:
        fact(span.fact)
        for release in filter(None, (span.since, span.until)):
            releases()[release]
    return history


def last_read() -> datetime.date:
    """The day on which the sources were read last."""
    return content(FILE)["looked_at"]


def days_between(ended: str, began: str) -> int:
    """Days from the end of one lane's support to the begin of another's public one.

    >>> days_between("PyTorch/XLA in images", "TorchNeuron in images")
    63
    """
    end = next(span.until for span in spans() if span.lane == ended and span.state == "supported")
    begin = next(span.since for span in spans() if span.lane == began and "public" in span.state)
    return (releases()[begin] - releases()[end]).days
