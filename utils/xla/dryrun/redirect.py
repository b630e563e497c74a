"""Sends what a script asks of CUDA or Neuron devices to the XLA device, and notes each request.

A script for several processes runs as the only one (`processes` says how), and
DistributedDataParallel is the model itself.

Requests by name, by `torch.device` or by number are sent on. Streams, events, graphs and kernels of
CUDA are not imitated: they raise, as they would on Trainium.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from utils.xla.dryrun.processes import redirect_processes

_ELSEWHERE = re.compile(r"(cuda|neuron|privateuseone)(:\d+)?")

_ANSWERS: dict[str, Any] = {
    "is_available": True,
    "device_count": 1,
    "current_device": 0,
    "get_device_name": "dry run",
    "get_device_capability": (8, 0),
    "is_bf16_supported": True,
    "is_current_stream_capturing": False,
    "get_device_properties": SimpleNamespace(
        name="dry run", major=8, minor=0, total_memory=16 << 30, multi_processor_count=1
    ),
    "mem_get_info": (16 << 30, 16 << 30),
    **dict.fromkeys(("set_device", "synchronize", "empty_cache", "manual_seed"), None),
    **dict.fromkeys(("manual_seed_all", "reset_peak_memory_stats", "ipc_collect", "init"), None),
    **dict.fromkeys(("reset_max_memory_allocated", "set_per_process_memory_fraction"), None),
    **dict.fromkeys(("memory_allocated", "max_memory_allocated"), 0),
    **dict.fromkeys(("memory_reserved", "max_memory_reserved"), 0),
    # torch keeps and sets these around what it traces, such as a GRU.
    "get_rng_state": torch.zeros(16, dtype=torch.uint8),
    "get_rng_state_all": [],
    **dict.fromkeys(("set_rng_state", "set_rng_state_all"), None),
}
_OF_ACCELERATOR: dict[str, Any] = {
    "is_available": True,
    "device_count": 1,
    **dict.fromkeys(("current_device_index", "current_device_idx"), 0),
    **dict.fromkeys(("set_device_index", "set_device_idx", "synchronize", "empty_cache"), None),
    **dict.fromkeys(("reset_peak_memory_stats", "reset_accumulated_memory_stats"), None),
    **dict.fromkeys(("memory_allocated", "max_memory_allocated"), 0),
    **dict.fromkeys(("memory_reserved", "max_memory_reserved"), 0),
}


@contextmanager
def redirect_devices(device: torch.device, note: Callable[[str], None]) -> Iterator[None]:
    """While it is open, CUDA and Neuron are `device`; `note` is told of each request."""
    with ExitStack() as stack:

        def replace(owner: Any, name: str, value: Any) -> None:
            stack.enter_context(mock.patch.object(owner, name, value))

        for name, answer in _ANSWERS.items():
            replace(torch.cuda, name, _answering(f"torch.cuda.{name}", answer, note))
        for name, answer in {**_OF_ACCELERATOR, "current_accelerator": device}.items():
            if hasattr(torch.accelerator, name):  # torch 2.9 has more of them than 2.8
                asked = _answering(f"torch.accelerator.{name}", answer, note)
                replace(torch.accelerator, name, asked)
        devices = _Devices(device, note)
        to = torch.nn.Module.to

        def to_device(module: Any, *_: Any, **__: Any) -> Any:
            note("Module.cuda() goes to the XLA device")
            return to(module, device)

        def to_place(module: Any, *args: Any, **kwargs: Any) -> Any:
            args = (*map(devices.moved, args[:1]), *args[1:])
            if "device" in kwargs:
                kwargs["device"] = devices.moved(kwargs["device"])
            return to(module, *args, **kwargs)

        default = torch.set_default_device
        replace(torch, "set_default_device", lambda place: default(devices.moved(place)))
        replace(torch.nn.Module, "cuda", to_device)
        replace(torch.nn.Module, "to", to_place)
        replace(torch.cuda, "device", lambda *_: nullcontext())
        replace(torch.Tensor, "pin_memory", lambda tensor, *_, **__: tensor)
        replace(torch, "compile", _no_compiler(note))
        replace(torch.autocast, "__init__", _autocast(torch.autocast.__init__, note))
        replace(torch, "load", _load(torch.load, note))
        loader = torch.utils.data.DataLoader
        replace(loader, "__init__", _in_this_process(loader.__init__, note))
        stack.enter_context(redirect_processes(note))
        for name, where in (
            ("DistributedDataParallel", (torch.nn.parallel, torch.nn.parallel.distributed)),
            ("DataParallel", (torch.nn, torch.nn.parallel)),
        ):
            parallel = _only_model(name, note)
            for module in where:
                replace(module, name, parallel)

        def keep(cls: Any, module: Any, *_: Any) -> Any:
            note("SyncBatchNorm of one rank is the ordinary one")
            return module

        replace(torch.nn.SyncBatchNorm, "convert_sync_batchnorm", classmethod(keep))
        stack.enter_context(devices)
        yield


def _answering(name: str, answer: Any, note: Callable[[str], None]) -> Callable[..., Any]:
    def ask(*_: Any, **__: Any) -> Any:
        # torch itself asks, too; that is no request of the script.
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("torch"):
            note(f"{name}() answers {answer!r}")
        return answer

    return ask


def _no_compiler(note: Callable[[str], None]) -> Callable[..., Any]:
    def compile(model: Any = None, **_: Any) -> Any:
        if model is None:
            return lambda function: compile(function)
        note("torch.compile is left out: what it would compile is recorded operator by operator")
        return model

    return compile


def _autocast(original: Any, note: Callable[[str], None]) -> Callable[..., None]:
    def start(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if _ELSEWHERE.fullmatch(str(device_type)):
            note(f"autocast of {device_type!r} is that of the XLA device, in bfloat16")
            device_type, args = "xla", (torch.bfloat16, *args[1:])
            kwargs.pop("dtype", None)
        original(self, device_type, *args, **kwargs)

    return start


def _load(original: Any, note: Callable[[str], None]) -> Callable[..., Any]:
    def load(file: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(map_location, str | torch.device) or map_location is None:
            note("torch.load puts everything on the host first")
            map_location = "cpu"
        return original(file, map_location, *args, **kwargs)

    return load


def _in_this_process(original: Any, note: Callable[[str], None]) -> Callable[..., None]:
    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("num_workers"):
            note("DataLoader loads in the script's own process: num_workers is 0")
        for name in ("pin_memory", "pin_memory_device", "persistent_workers", "prefetch_factor"):
            kwargs.pop(name, None)
        kwargs |= {"num_workers": 0} if "num_workers" in kwargs else {}
        for name in ("timeout", "multiprocessing_context"):
            kwargs.pop(name, None)
        original(self, *args, **kwargs)

    return start


def _only_model(name: str, note: Callable[[str], None]) -> type[torch.nn.Module]:
    class Alone(torch.nn.Module):
        """The model alone: with one rank there is no gradient to add."""

        def __init__(self, module: torch.nn.Module, *_: Any, **__: Any) -> None:
            super().__init__()
            note(f"{name} of one rank is the model itself")
            self.module = module
            self.require_backward_grad_sync = True

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return self.module(*args, **kwargs)

        @contextmanager
        def no_sync(self) -> Iterator[None]:
            yield

    Alone.__name__ = Alone.__qualname__ = name
    return Alone


class _Devices(TorchFunctionMode):
    def __init__(self, device: torch.device, note: Callable[[str], None]) -> None:
        super().__init__()
        self.device, self.note = device, note

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            self.note("Tensor.cuda() goes to the XLA device")
            return args[0].to(self.device)
        if args or kwargs:
            place_of_device = 1 if func is torch.Tensor.to else None
            args = tuple(
                self.moved(value)
                if isinstance(value, torch.device) or place == place_of_device
                else value
                for place, value in enumerate(args)
            )
            if "device" in kwargs:
                kwargs["device"] = self.moved(kwargs["device"])
        return func(*args, **kwargs)

    def moved(self, value: Any) -> Any:
        """The XLA device for another accelerator, given where a device may stand."""
        by_number = isinstance(value, int) and not isinstance(value, bool)
        by_name = isinstance(value, str | torch.device) and _ELSEWHERE.fullmatch(str(value))
        if by_number or by_name:
            self.note(f"device {value if by_number else repr(str(value))} is the XLA device")
            return self.device
        return value
