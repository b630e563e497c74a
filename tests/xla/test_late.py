"""What torch_xla takes along: left out at its import, there at its first use."""

import subprocess
import sys
from types import ModuleType

import pytest

from utils.course.catalog import ROOT
from utils.xla import late

PROGRAM = """
import sys
from utils.xla.defaults import set_defaults

set_defaults()
import torch, torch_xla
print("torch._inductor.lowering" in sys.modules)

import torch_xla.stablehlo
linear = torch.nn.Linear(2, 2)
exported = torch.export.export(linear, (torch.ones(1, 2),))
# A name that is not listed, through the package: the module itself.
print("stablehlo.dot" in torch_xla.stablehlo.exported_program_to_stablehlo(exported)
      .get_stablehlo_text())

from torch_xla.experimental.scan import scan
start, rows = torch.zeros(2), torch.ones(3, 2, requires_grad=True)
total, _ = scan(lambda so_far, row: (so_far + row, row), *(x.to("xla") for x in (start, rows)))
print(total.tolist())

compiled = torch.compile(linear.to("xla"), backend="openxla")
print(list(compiled(torch.ones(1, 2, device="xla")).shape))
print("torch._inductor.lowering" in sys.modules)

from torch_xla.debug.profiler import StepTrace
with StepTrace("step"):
    pass
print("jax" in sys.modules)
"""


def test_what_the_import_of_torch_xla_leaves_out_is_there_when_it_is_used() -> None:
    command = [sys.executable, "-W", "error::ImportWarning", "-c", PROGRAM]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.split("\n") == [
        "False",
        "True",
        "[3.0, 3.0]",
        "[1, 2]",
        "True",
        "False",
        "",
    ]


def test_who_asks_before_torch_xla_gets_the_module_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch_xla", raising=False)
    assert late._Finder().find_spec("functorch.compile") is None
    monkeypatch.setitem(sys.modules, "torch_xla", ModuleType("torch_xla"))
    finder = late._Finder()
    assert finder.find_spec("functorch.compile") and not finder.find_spec("functorch.compile")
