"""The rules of the audit, the names by which its checks tell what they read, and the lessons about
them: all of it is data, read once from `porting*.yaml` in `utils/facts/data`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from utils.facts.records import content

SEVERITIES = ("note", "warning", "error")
KINDS = ("loud", "silent", "slow")
TARGETS = ("torchneuron", "neuron-xla", "xla", "jax")
"""What a program is to run on: TorchNeuron, the older torch-neuronx on PyTorch/XLA, PyTorch/XLA
anywhere, JAX on Neuron."""


@dataclass(frozen=True)
class Rule:
    """One thing that does not port.

    `severity`: "error" will not run or trains on the wrong device; "warning" runs, but means
    something else or is slow at every step; "note" is worth knowing. `kind`: "loud" raises,
    "silent" runs and means something else, "slow" is right but slow. `happens`, `xla` and
    `torchneuron` say what happens and what to write instead; `source` is an address, or names a
    local check. `state` says what became of older software, and since when. `targets` holds the
    severity for a target where it differs, "" for nothing; `advice` what to write for other
    targets.
    """

    id: str
    severity: str
    kind: str
    title: str
    happens: str
    xla: str
    torchneuron: str
    source: str
    state: str = ""
    targets: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)

    def severity_on(self, target: str, result: str = "") -> str:
        """How bad it is for a target, "" for nothing; `found` is what a finding was lowered to.

        >>> rule = RULES["compile-default"]
        >>> rule.severity_on("xla"), rule.severity_on("torchneuron")
        ('error', '')
        """
        most = self.targets.get(target, self.severity)
        if not most or not result or result == self.severity:
            return most
        if target not in self.targets:
            return result
        return min(result, most, key=SEVERITIES.index)

    def advice_on(self, target: str) -> str:
        """What to write for a target."""
        if target in self.advice:
            return self.advice[target]
        return self.torchneuron if target in ("torchneuron", "jax") else self.xla


_data = content("porting.yaml")
_legacy = content("porting_legacy.yaml")


def _rule(key: str, entry: dict) -> Rule:
    targets = dict(_legacy["targets"].get(key, {}))
    if key not in _legacy["jax_rules"]:
        targets["jax"] = ""
    return Rule(id=key, **entry, targets=targets)


RULES: Mapping[str, Rule] = MappingProxyType(
    {key: _rule(key, entry) for key, entry in (_data["rules"] | _legacy["rules"]).items()}
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
REQUIREMENTS |= {name: rule for rule, names in _legacy["requirements"].items() for name in names}
FAMILIES = [(re.compile(entry["pattern"]), str(entry["rule"])) for entry in _data["families"]]
DEVICE_POSITIONS: Mapping[str, int] = _data["device_positions"]
LEGACY: Mapping[str, str] = _legacy["names"]
"""Rules by full names of older Neuron software, or by their beginnings."""
OTHERS = frozenset({"lightning", "pytorch_lightning"})
"""Packages of which only some names are about older Neuron software."""
LEGACY_ROOTS = frozenset(name.split(".")[0] for name in LEGACY) - {"torch", "optimum"} - OTHERS
ONCE, LEGACY_CALLS = frozenset(_legacy["once"]), frozenset(_legacy["calls"])
VARIABLES = [
    (re.compile(entry["pattern"] + "$"), str(entry["rule"])) for entry in _legacy["variables"]
]
TEXTS = [(re.compile(entry["pattern"]), str(entry["rule"])) for entry in _legacy["texts"]]
NO_VARIABLES = re.compile(f"({_legacy['no_variables']})$")
LINES = [
    (re.compile(entry["pattern"]), str(entry["rule"]), str(entry.get("needs", "")))
    for entry in _legacy["lines"]
]
"""Patterns of lines, their rules, and a word that has to stand somewhere in the file."""

LESSONS: Mapping[str, str] = {
    rule: f"notebooks/{lesson}.ipynb#{heading.replace(' ', '-')}"
    for lesson, sections in content("porting_lessons.yaml").items()
    for heading, rules in sections.items()
    for rule in rules
}
"""By rule the section of a lesson that is about it, as Jupyter links to headings."""


def variable_rule(name: str) -> str:
    """The rule about a variable of the environment; "" for none.

    >>> variable_rule("XLA_USE_BF16"), variable_rule("NCCL_DEBUG"), variable_rule("HOME")
    ('xla-env', 'cuda-env', '')
    """
    return next((rule for pattern, rule in VARIABLES if pattern.match(name)), "")


def legacy_rule(name: str) -> str:
    """The rule about a full name of older Neuron software or its longest known beginning.

    >>> legacy_rule("torch_xla.core.xla_model.mark_step"), legacy_rule("torch_xla.debug.metrics")
    ('xla-step', 'xla-import')
    """
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        rule = LEGACY.get(".".join(parts[:end]))
        if rule:
            return rule
    return ""
