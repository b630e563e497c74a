"""The rules of the audit, and the names by which its checks tell what they read: all of it is data,
read once from `utils/facts/data/porting.yaml`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from utils.facts.records import content

SEVERITIES = ("note", "warning", "error")
KINDS = ("loud", "silent", "slow")


@dataclass(frozen=True)
class Rule:
    """One thing that does not port.

    `severity`: "error" will not run or trains on the wrong device; "warning" runs, but means
    something else or is slow at every step; "note" is worth knowing. `kind`: "loud" raises,
    "silent" runs and means something else, "slow" is right but slow. `happens`, `xla` and
    `torchneuron` say what happens and what to write instead; `source` is an address, or names a
    local check.
    """

    id: str
    severity: str
    kind: str
    title: str
    happens: str
    xla: str
    torchneuron: str
    source: str


_data = content("porting.yaml")
RULES: Mapping[str, Rule] = MappingProxyType(
    {key: Rule(id=key, **entry) for key, entry in _data["rules"].items()}
)
NAMES: Mapping[str, frozenset[str]] = MappingProxyType(
    {key: frozenset(names) for key, names in _data["names"].items()}
)
"""Sets of names; the comments in the file say what each is for."""
IMPORTS, REQUIREMENTS = (
    {name: rule for rule, names in _data["packages"].items() for name in names[kind]}
    for kind in ("imports", "requirements")
)
"""Rules by the first part of an import, and by the name of a requirement."""
FAMILIES = [(re.compile(entry["pattern"]), str(entry["rule"])) for entry in _data["families"]]
DEVICE_POSITIONS: Mapping[str, int] = _data["device_positions"]
