"""What an answer replaces is put back, and named."""

import copy
import sys
from types import ModuleType
from typing import Any

import pytest

from utils.labs import invoke
from utils.labs.guard import Originals


def _forged(*anything: Any) -> None:
    """In place of what an observation rests on."""


def test_counters_of_the_extension_module_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = ModuleType("_XLAC")
    vars(counters)["_xla_counter_value"] = original = lambda name: 7
    monkeypatch.setitem(sys.modules, "_XLAC", counters)
    originals = Originals()
    assert originals.put_back() == []
    vars(counters).update(_xla_counter_value=_forged)
    assert originals.put_back() == ["_XLAC._xla_counter_value"]
    assert vars(counters)["_xla_counter_value"] is original


def test_what_the_course_uses_of_the_standard_library_is_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    originals, before = Originals(), invoke.copy.deepcopy
    assert originals.put_back() == []
    monkeypatch.setattr(copy, "deepcopy", _forged)
    assert originals.put_back() == ["copy.deepcopy"]
    assert invoke.copy.deepcopy is before
