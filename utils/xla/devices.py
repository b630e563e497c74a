"""A small device layer: the five things in which a loop on cpu, xla, cuda and neuron differs.

    device = devices.get("auto")
    model.to(device.torch)          # where tensors go
    model = device.compiled(model)  # a whole graph at a time, where that has to be asked for
    with device.autocast(): ...     # mixed precision
    device.mark_step()              # where a step ends: only a lazy device needs to know
    device.wait()                   # until all work is done: before a clock is read

Everything else of a loop is the same on all four. "neuron" is TorchNeuron, the native backend;
PyTorch/XLA on a Neuron device is "xla". No backend is imported before it is asked for.
"""

import importlib.util
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from utils.xla.defaults import set_defaults

if TYPE_CHECKING:
    import torch
    from torch.nn import Module

KINDS = ("cpu", "xla", "cuda", "neuron")


class NoDevice(RuntimeError):
    """The device asked for is not here: what was asked for, what there is, and what to do."""


@dataclass(frozen=True)
class Device:
    """One device. kind: "cpu", "xla", "cuda" or "neuron"."""

    kind: str

    @property
    def torch(self) -> "torch.device":
        """Where tensors go, as torch knows it."""
        if self.kind == "xla":
            return _torch_xla().device()
        import torch

        return torch.device(self.kind)

    def compiled(self, model: "Module") -> "Module":
        """The model, compiled as a whole where an eager device would else run it one operator at a
        time. On xla the step marker compiles, and on the CPU there is nothing to gain here: both
        get the model itself.
        """
        if self.kind in ("cpu", "xla"):
            return model
        import torch

        # TorchNeuron would be chosen without the name too, once the model is on its device.
        return torch.compile(model, backend={"cuda": "inductor", "neuron": "neuron"}[self.kind])

    def mark_step(self) -> None:
        """The step ends here. On xla the graph recorded so far is handed over; eager devices have
        handed over each operator already.
        """
        if self.kind == "xla":
            _torch_xla().sync()

    def wait(self) -> None:
        """Return when everything recorded or handed over so far is computed."""
        if self.kind == "xla":
            _torch_xla().sync()  # hands over, and does not wait
            import torch_xla.core.xla_model as xm

            xm.wait_device_ops()
        elif self.kind != "cpu":
            import torch

            torch.accelerator.synchronize()

    def autocast(self, enabled: bool = True) -> AbstractContextManager:
        """Products of matrices in BF16, within the block; sums and losses in FP32."""
        if not enabled:
            return nullcontext()
        import torch

        return torch.autocast(self.kind, dtype=torch.bfloat16)


def _torch_xla() -> ModuleType:
    """torch_xla, with its defaults chosen before its first import."""
    set_defaults()
    import torch_xla

    return torch_xla


def available() -> tuple[str, ...]:
    """The kinds that this machine has, the fastest first; "cpu" is always the last.

    PyTorch knows accelerators by torch.accelerator, which does not know torch_xla.
    """
    import torch

    results = []
    # A build with CUDA names "cuda" as the current accelerator where there is no GPU either.
    if torch.accelerator.is_available():
        results.append(torch.accelerator.current_accelerator().type)
    if importlib.util.find_spec("torch_xla"):
        results.append("xla")
    return (*(kind for kind in results if kind in KINDS), "cpu")


def get(kind: str = "auto") -> Device:
    """The device of a kind; "auto": the first of `available()`.

    Raises: ValueError for another word; NoDevice if this machine has no such device.

    >>> get("cpu")
    Device(kind='cpu')
    """
    if kind != "auto" and kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of device: choose {', '.join(KINDS)} or auto")
    here = available()
    if kind == "auto":
        kind = here[0]
    if kind not in here:
        raise NoDevice(
            f"this machine has no device {kind!r}; it has {', '.join(here)}. Choose one of these,"
            f" or run the same program on a machine with {_NEEDS[kind]}"
        )
    return Device(kind)


_NEEDS = {
    "xla": "torch_xla installed (x86-64 Linux)",
    "cuda": "an NVIDIA GPU and a CUDA build of torch",
    "neuron": "Trainium2 or Trainium3, in the Python that has TorchNeuron (torch-neuronx on PyTorch"
    " 2.13 or newer), which is not the course's",
}
