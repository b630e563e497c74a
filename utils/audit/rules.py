"""The rules of the audit, read once from `utils/facts/data/porting.yaml`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import yaml

DATA = Path(__file__).parent.parent / "facts" / "data" / "porting.yaml"
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


def _load() -> Mapping[str, Rule]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries = yaml.load(DATA.read_text(encoding="utf-8"), Loader=loader)["rules"]
    return MappingProxyType({key: Rule(id=key, **entry) for key, entry in entries.items()})


RULES = _load()
