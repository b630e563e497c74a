"""Late submissions: a small file says what they cost.

    due: 2026-11-20 23:59
    zone: Europe/Berlin
    grace_minutes: 15
    penalty: {percent: 10, per: day, most: 50}
    exceptions:
      jane: {due: 2026-11-27 23:59}
      "12": {free: true}

The penalty is a share of the points earned, for each day (or hour) begun after `due`; within the
grace nothing is taken, after it the time counts from `due`. It is called `policy.yaml` and lies in
the folder of results; `times.csv` beside it (columns `student` and `submitted`) gives times that
the names of the files do not tell.
"""

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import msgspec
import yaml

from utils.labs.grading.platforms.results import join_names, names_of, platform_of, same
from utils.labs.grading.records import Record

Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
_SECONDS = {"hour": 3600, "day": 86400}


class Penalty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Percent of the points for each day or hour begun, `most` at most."""

    percent: Percent
    per: Literal["hour", "day"] = "day"
    most: Percent = 100


class Exempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another due date for one student, or none."""

    due: str = ""
    free: bool = False


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a policy file says. Times without an offset are those of `zone`."""

    due: str
    zone: str
    penalty: Penalty
    grace_minutes: Annotated[float, msgspec.Meta(ge=0)] = 0
    exceptions: dict[str, Exempt] = {}

    def __post_init__(self) -> None:
        moment(self.due, _zone(self.zone))
        for exempt in self.exceptions.values():
            if exempt.due:
                moment(exempt.due, _zone(self.zone))


@dataclass(frozen=True)
class Late:
    """What a policy comes to for one student. percent: taken off the points. known: whether the
    time was; remark: what a person should know.
    """

    submitted: str = ""
    percent: float = 0.0
    remark: str = ""
    known: bool = True

    def after(self, points: float) -> float:
        """The points that are left.

        >>> Late(percent=10).after(36)
        32.4
        """
        return round(points * (100 - self.percent) / 100, 2)


def read(path: Path) -> Policy:
    """The policy in a file. Raises ValueError that says what is wrong in it."""
    try:
        # All scalars as texts: YAML has times and numbers of its own, some of them surprising.
        content = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=yaml.BaseLoader)
        return msgspec.convert(content, Policy, strict=False)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, yaml.YAMLError) as error:  # msgspec's error is a ValueError too
        raise ValueError(f"{path} is no policy: {error}") from None


def read_times(path: Path) -> dict[str, str]:
    """Times by student from a CSV file with the columns `student` and `submitted`."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        if not {"student", "submitted"} <= set(rows.fieldnames or ()):
            result = ", ".join(rows.fieldnames or ())
            raise ValueError(f"{path} needs the columns student and submitted; it has {result}")
        return {same(row["student"] or ""): row["submitted"] or "" for row in rows}


def moment(text: str, zone: ZoneInfo) -> datetime:
    """A time in UTC. Raises ValueError if `text` is none.

    >>> moment("2026-11-20 23:59", ZoneInfo("Europe/Berlin")).isoformat()
    '2026-11-20T22:59:00+00:00'
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; write it as 2026-11-20 23:59") from None
    # In UTC, because a difference of times within one zone ignores its daylight saving time.
    return (time if time.tzinfo else time.replace(tzinfo=zone)).astimezone(UTC)


def decide(policy: Policy, records: Iterable[Record], times: Mapping[str, str]) -> dict[str, Late]:
    """What each student (by slug) loses. times: by any name of a student, before those of records.

    Raises ValueError if an exception is for nobody, or a name in either is that of several.
    """
    known = list(records)
    owners: dict[str, set[str]] = {}
    for record in known:
        for name in names_of(record):
            owners.setdefault(name, set()).add(record.slug)
    for what, given_names in (("exceptions", policy.exceptions), ("times", times)):
        for name in given_names:
            meant = owners.get(same(name), set())
            if len(meant) > 1:
                raise ValueError(
                    f"{what}: {name} is several students ({join_names(meant)}): name the id"
                )
            if not meant and what == "exceptions":
                raise ValueError(f"{what}: {name} is nobody here")
    exceptions = {same(name): exempt for name, exempt in policy.exceptions.items()}
    result = {}
    for record in known:
        names = sorted(names_of(record))
        given = next((times[n] for n in names if times.get(n)), "")
        exempt = next((exceptions[n] for n in names if n in exceptions), Exempt())
        result[record.slug] = _late(policy, record, given or record.submitted, exempt)
    return result


def strangers(times: Iterable[str], records: Iterable[Record]) -> list[str]:
    """Names that no student has."""
    return sorted(set(times).difference(*map(names_of, records)))


def _late(policy: Policy, record: Record, submitted: str, exempt: Exempt) -> Late:
    if exempt.free:
        return Late(submitted, remark="free of penalties")
    if not submitted:
        if platform_of(record) == "canvas" and not record.late:
            return Late(remark="not marked late by Canvas")
        why = "marked late, but when is unknown" if record.late else "time of submission unknown"
        return Late(remark=f"{why}: no penalty taken", known=False)
    zone = _zone(policy.zone)
    try:
        late = moment(submitted, zone) - moment(exempt.due or policy.due, zone)
    except ValueError as error:
        return Late(submitted, remark=f"{error}: no penalty taken", known=False)
    seconds = late.total_seconds()
    if seconds <= 60 * policy.grace_minutes:
        return Late(submitted, remark="own due date" if exempt.due else "")
    units = math.ceil(seconds / _SECONDS[policy.penalty.per])
    percent = min(units * policy.penalty.percent, policy.penalty.most)
    return Late(submitted, percent, f"late: {units} {policy.penalty.per}{'s' * (units > 1)} begun")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError(f"{name!r} is no time zone; such as Europe/Berlin or UTC") from None
