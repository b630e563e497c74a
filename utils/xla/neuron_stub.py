"""A stub of TorchNeuron: it records what a program asks of the device `neuron`, and computes it on
the CPU. A simulation, and a thin one.

It shows which way a program takes on a machine with TorchNeuron, and what it calls there. It shows
nothing of TorchNeuron itself: no compile, no missing operator, no tensor left on the host, no
value, no second. On the command line: python -m utils.xla.neuron_stub SCRIPT ARGUMENTS.
"""

import json
import runpy
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Calls:
    """What was asked of the device.

    moved: tensors sent to it. autocast: (device type, dtype) of each block entered. compiled: the
    backends named to torch.compile. waited: calls of torch.accelerator.synchronize. imported: the
    packages of backends that the program imported. printed: what it printed.
    """

    moved: int = 0
    autocast: list[tuple[str, str]] = field(default_factory=list)
    compiled: list[str] = field(default_factory=list)
    waited: int = 0
    imported: list[str] = field(default_factory=list)
    printed: str = ""


def run(script: str | Path, *arguments: str) -> Calls:
    """Run a script with the stub, in a process of its own.

    Raises: RuntimeError with the last line of what it said if it fails.
    """
    command = [sys.executable, "-m", __name__, str(Path(script).resolve()), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        text = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(f"{Path(script).name} failed under the stub: {text}")
    printed, _, recorded = done.stdout.rpartition("\n#calls ")
    result = json.loads(recorded)
    result["autocast"] = [tuple(item) for item in result["autocast"]]
    return Calls(**{**result, "printed": printed})


Note = Callable[[Callable[..., Any], list[Any], Any, bool], Any]
"""Gets a function of PyTorch, what it was given, its result, and whether it was asked for neuron;
returns the result."""


def on_the_cpu(note: Note) -> Any:
    """A context in which what is asked of the device `neuron` is done on the CPU, and noted."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_leaves, tree_map

    class OnTheCpu(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            given = (args, kwargs or {})
            if function in (torch.device, torch._C._nn._parse_to):  # names the device, no more
                return function(*args, **given[1])
            leaves = tree_leaves(given)
            args, kwargs = tree_map(lambda item: "cpu" if is_neuron(item) else item, given)
            return note(function, leaves, function(*args, **kwargs), any(map(is_neuron, leaves)))

    return OnTheCpu()


def is_neuron(value: Any) -> bool:
    """Whether a value names the device, such as "neuron:0"."""
    import torch

    return isinstance(value, torch.device | str) and str(value).partition(":")[0] == "neuron"


@contextmanager
def install() -> Iterator[Calls]:
    """PyTorch with a device `neuron`, until the process ends: its name cannot be taken back."""
    import torch

    calls = Calls()
    torch.utils.rename_privateuse1_backend("neuron")
    module = types.ModuleType("torch.neuron")
    vars(module).update(is_available=lambda: True, device_count=lambda: 1)
    torch._register_device_module("neuron", module)

    def count(function: Any, given: list[Any], result: Any, asked: bool) -> Any:
        calls.moved += function is torch.Tensor.to and asked
        return result

    class Autocast(torch.autocast):
        def __init__(self, device_type: str, dtype: Any = None, **more: Any) -> None:
            self.asked = (device_type, str(dtype))
            super().__init__("cpu" if is_neuron(device_type) else device_type, dtype, **more)

        def __enter__(self) -> Any:
            calls.autocast.append(self.asked)
            return super().__enter__()

    def compiled(model: Any, backend: str = "inductor", **_: Any) -> Any:
        calls.compiled.append(backend)
        return model

    def synchronize(*_: Any) -> None:
        calls.waited += 1

    torch.autocast, torch.compile = Autocast, compiled
    torch.accelerator.synchronize = synchronize
    with on_the_cpu(count):
        yield calls
    calls.imported = [name for name in ("torch_xla", "torch_neuronx") if name in sys.modules]


def _main(script: str, *arguments: str) -> None:
    sys.argv = [script, *arguments]
    with install() as calls:
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as left:
            if left.code:
                raise
    print(f"\n#calls {json.dumps(asdict(calls))}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
