"""Choices given by number, as published kernels for NKI 0.2 still have them."""

from typing import Any

from utils.nki.simulator.enums import dge_mode, oob_mode
from utils.nki.simulator.errors import doubt

CHOICES = {"dge_mode": dge_mode, "oob_mode": oob_mode}


def by_value(core: Any, args: dict[str, Any]) -> None:
    """Put the named member in the place of its number, and say how it is written."""
    for name, kind in CHOICES.items():
        if type(value := args.get(name)) is int and value in {each.value for each in kind}:
            member = args[name] = kind(value)
            doubt(
                f"{name}={value!r}: a choice by its number.",
                "since NKI 0.3 the compiler takes named members only.",
                f"write {name}=nisa.{kind.__name__}.{member.name}.",
            )
