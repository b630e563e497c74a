"""Checks for older Neuron software: PyTorch/XLA, torch_neuronx.trace, NeuronX Distributed, old NKI
names; and for what JAX on Neuron lacks.
"""

import ast
import re
from typing import TYPE_CHECKING

from utils.audit.rules import (
    LEGACY_CALLS,
    LEGACY_ROOTS,
    ONCE,
    OTHERS,
    REQUIREMENTS,
    TEXTS,
    legacy_rule,
)
from utils.audit.scopes import walk, written

if TYPE_CHECKING:
    from utils.audit.state import State

XLA = re.compile(r"(xla|jax)(:\d+)?$")
BACKEND = re.compile(r"(^|[._])(backend|device(_type)?)$")
CHOSEN = ("xla", "tpu", "neuron")
CAN_DO_WITHOUT = "the code can do without it, or chooses it"
OF_TORCH = ("torch.ops.neuron.", "torch.classes.neuron.", "torch.neuron.")
ENUM = re.compile(r"([\w.]+\.)?[A-Z]\w+\.[A-Z][A-Z0-9_]+$")  # PrimitiveType.F32, a plain constant
LOADS = {"torch.jit.load", "torch.jit.save"}
# Calls that make or run TorchScript; decorated functions are compiled as if they were plain.
SCRIPTS = {
    f"torch.jit.{name}"
    for name in ("freeze", "load", "optimize_for_inference", "optimized_execution", "script")
} | {"torch.jit.trace", "torch.jit.trace_module"}
ASKS = re.compile(
    r"(^|[._])(find_spec|RequirementCache|(check|has|is)_(module|package)(_available)?)$"
)
# Words of texts about older software, machines, or communication.
SPEAKS = (
    "neuron",
    "jetstream",
    "inf1",
    "large",
    "local_gpu",
    "nccl",
    "deepspeed",
    "cuda1",
    "cu1",
    "xser",
    "flash",
    "torch_xla",
)
LONGEST = 400
"""Characters of a text that may be an address; longer ones are prose."""


def report(at: "State", rule: str, node: ast.AST, note: str = "") -> None:
    """A finding, or a note where the code runs without it too."""
    if at.optional:
        at.report(rule, node, CAN_DO_WITHOUT, "note")
    else:
        at.report(rule, node, note)


def is_xla(node: ast.AST | None) -> bool:
    """The string "xla", or "jax", the device of torchax; a number may follow."""
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and XLA.match(text) is not None


def imported(at: "State", node: ast.AST, names: list[str]) -> None:
    """An import: one finding for each rule. `names` are full names."""
    rules = [legacy_rule(name) for name in names if not is_own(at, name)]
    for rule in dict.fromkeys(filter(None, rules)):
        if rule != "jax-gap":
            report(at, rule, node)
    if "torch_neuronx" in names:
        at.neuron.append(node)


def once(at: "State", name: str) -> str:
    """The rule about a full name whose uses no rule of their own is about; "" for none."""
    root = name.split(".")[0]
    known = root in ONCE or root in OTHERS
    return legacy_rule(name) if known and not is_own(at, name) else ""


def is_own(at: "State", name: str) -> bool:
    """A module of the project that only has the name of a package; optimum has parts of its own
    in several repositories.
    """
    root = name.split(".")[0]
    return root in at.local and root != "optimum"


def used(at: "State", node: ast.AST, name: str) -> bool:
    """A full name is read; True if a rule is about it."""
    root, last = name.split(".")[0], name.split(".")[-1]
    own = name.startswith(OF_TORCH)
    if root in at.local or not (root in LEGACY_ROOTS or own):
        return False
    if ENUM.match(written(node)):
        return True
    rule = legacy_rule(name)
    if not rule or (root in ONCE and last not in LEGACY_CALLS):
        return False
    if rule == "xla-import":
        if isinstance(node, ast.Attribute) and name not in at.names.imports:
            at.report(rule, node, "a use of what is imported", "note")
        return True
    if "." not in name:  # the module itself, passed on or compared
        return True
    report(at, rule, node)
    return True


def called(at: "State", node: ast.Call, name: str) -> None:
    """torch.jit.load in a file about Neuron: the program was traced for it."""
    if name in LOADS and at.names.imports & {"torch_neuronx", "torch_neuron", "torch.neuron"}:
        report(at, "neuron-trace", node.func, "a saved TorchScript program")
    elif name in SCRIPTS:
        at.report("torchscript", node.func)
    elif ASKS.search(name or written(node.func)):
        for asked in node.args[:1]:
            rule = legacy_rule(str(getattr(asked, "value", "")))
            if rule:
                at.report(rule, asked, "asks whether it is there", "note")


def compared(at: "State", node: ast.Compare) -> None:
    """device == "xla": what the program does for PyTorch/XLA alone."""
    sides = (node.left, *node.comparators)
    about = at.torch or any(BACKEND.search(written(one)) for one in sides)
    if about and any(is_xla(one) and one.value.startswith("xla") for one in sides):  # type: ignore[attr-defined]
        at.report("xla-device", node, "decides by it", "note")
    elif getattr(sides[1], "value", "") == "nccl" and isinstance(sides[0], ast.Call):
        at.report("nccl", node, "decides by it", "note")
    elif any(getattr(one, "value", "") == "torch_xla" for one in sides):
        at.report("xla-import", node, "asks whether it is there", "note")


def scripted(at: "State", base: ast.expr) -> None:
    """class Net(torch.jit.ScriptModule)"""
    if at.dotted(base) == "torch.jit.ScriptModule":
        at.report("torchscript", base)


def settle(at: "State") -> None:
    """At the end of the file: import torch_neuronx, where the older library is what is used."""
    if any(hit.rule == "neuron-trace" for hit in at.hits):
        for node in at.neuron:
            at.report("neuron-trace", node, "imported for what the older library has", "note")


def text(at: "State", node: ast.Constant) -> None:
    """A text that names an image of the older software, where no assignment only describes it."""
    value = node.value.lower() if isinstance(node.value, str) and len(node.value) < LONGEST else ""
    if any(word in value for word in SPEAKS):
        for pattern, rule in TEXTS:
            if pattern.search(node.value):
                report(at, rule, node)
        rule = REQUIREMENTS.get(value, "") if "-" in value and "neuron" in value else ""
        if rule and node not in at.reported:
            at.report(rule, node, "a package by its name", "note")


def chooses(test: ast.AST) -> bool:
    """The condition asks whether the program runs on XLA or Neuron.

    >>> chooses(ast.parse("device.type == 'xla'", mode="eval"))
    True
    """
    for node in walk(test):
        text = getattr(node, "id", None) or getattr(node, "attr", None)
        if text is None and isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        if isinstance(text, str) and any(word in text.lower() for word in CHOSEN):
            return True
    return False
