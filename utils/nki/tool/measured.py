"""Records of `nki measure`: what a NeuronCore took for the validation kernels.

A record holds what the project can take in and nothing else: which chip, which versions of AWS's
packages, times by measurement. Every text has a pattern, so that no name of a person, a machine or
a folder fits into it. A record with `made: true` was made up, for tests; `times` refuses it.
"""

import datetime
import statistics
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from utils.nki.validation import measurements

FORMAT = 1
INSTANCE = r"^(trn|inf)[0-9][a-z0-9]*\.[a-z0-9]+$|^$"
VERSION = r"^[0-9][0-9a-f.+]*$"
PACKAGES = ("nki", "neuronx-cc", "nrtpy", "aws-neuronx-runtime-lib", "aws-neuronx-dkms")
MOST_RUNS = 1000

Seconds = Annotated[float, Meta(gt=0, lt=3600)]


class MadeUp(ValueError):
    """A record of made numbers is asked for measurements."""


class BadRecord(ValueError):
    """A file is no record: what is wrong, and where in it."""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One measurement: its id in the validation, and the times of its runs on the device."""

    id: str
    seconds: Annotated[list[Seconds], Meta(min_length=1, max_length=MOST_RUNS)]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A session on one NeuronCore. instance: its type, "" if it is not known. target: its chip."""

    nki_measure: Annotated[int, Meta(ge=FORMAT, le=FORMAT)] = FORMAT
    made: bool
    day: datetime.date
    instance: Annotated[str, Meta(pattern=INSTANCE)]
    target: Annotated[str, Meta(pattern="^trn[0-9]$")]
    packages: dict[str, Annotated[str, Meta(pattern=VERSION, max_length=60)]]
    rows: Annotated[list[Row], Meta(min_length=1)]


def decode(text: bytes | str) -> Record:
    """A record of its text. Raises BadRecord."""
    try:
        record = msgspec.json.decode(text, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRecord(f"this is no record of nki measure: {error}") from None
    unknown = [name for name in record.packages if name not in PACKAGES]
    if unknown:
        raise BadRecord(f"packages: {unknown[0]!r} is none of {', '.join(PACKAGES)}")
    known = measurements()
    seen: set[str] = set()
    for row in record.rows:
        if row.id not in known or row.id in seen:
            raise BadRecord(f"rows: {row.id!r} is {'there twice' if row.id in seen else 'unknown'}")
        if known[row.id].target != record.target:
            raise BadRecord(f"rows: {row.id} is for {known[row.id].target}, not {record.target}")
        seen.add(row.id)
    return record


def read(path: Path) -> Record:
    """The record of a file. Raises BadRecord, OSError."""
    try:
        return decode(path.read_bytes())
    except BadRecord as error:
        raise BadRecord(f"{path}: {error}") from None


def times(record: Record) -> dict[str, float]:
    """The middle of the measured times by measurement, in seconds. Raises MadeUp."""
    if record.made:
        raise MadeUp("this record says made: true; its numbers were made up and measure nothing")
    return {row.id: statistics.median(row.seconds) for row in record.rows}
