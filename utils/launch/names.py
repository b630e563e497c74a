"""Names and tags by which the course finds again what it started."""

import datetime
import re
from collections.abc import Mapping

OWN = "trainium-course"
"""The value of the tag, the name of the role, the profile and the security group, and the first
part of every name."""
TAG, OWNER_TAG, RUN_TAG, EXPIRES_TAG = "course", "course-owner", "course-run", "course-expires-at"
RUN = re.compile(r"[a-z0-9-]{4,32}")


def name(run: str) -> str:
    """The name of a job, space or instance of a run."""
    return f"{OWN}-{run}"


def tags(run: str, owner: str, expires: datetime.datetime | None) -> dict[str, str]:
    """The tags of everything that a run starts.

    Raises:
        ValueError: for a run that AWS would not take as part of a name.
    """
    if not RUN.fullmatch(run):
        raise ValueError(f"{run!r} is no name of a run: 4 to 32 of a-z, 0-9 and -")
    when = "set at the start" if expires is None else f"{expires:%Y-%m-%dT%H:%M:%SZ}"
    return {TAG: OWN, OWNER_TAG: owner, RUN_TAG: run, EXPIRES_TAG: when}


def to_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as the API writes them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def to_dict(tags: list[dict[str, str]]) -> dict[str, str]:
    """Tags as a mapping."""
    return {tag["Key"]: tag["Value"] for tag in tags}


def ours(tags: Mapping[str, str]) -> bool:
    """Whether this launcher started what has these tags: a cluster of the course's templates, or
    anything that somebody tagged for a bill, has not all of them.

    >>> ours(tags("0a1b2c", "ada", None)), ours({TAG: OWN}), ours({TAG: OWN, RUN_TAG: "RUN"})
    (True, False, False)
    """
    complete = tags.get(TAG) == OWN and {OWNER_TAG, EXPIRES_TAG} <= tags.keys()
    return complete and RUN.fullmatch(tags.get(RUN_TAG, "")) is not None
