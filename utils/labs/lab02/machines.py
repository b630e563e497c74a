"""Two machines on which the port of exercise 5 of lab 02 runs, as two processes that torchrun would
start: one without a chip, and one that has Neuron by name.

On the second, what asks for Neuron gets the CPU, and is noted. What is moved there is known again,
and so is what was computed from it.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

from utils.labs import Answer, Facts, apart
from utils.labs.lab02.problems import PROCESSES, shared_training
from utils.labs.plain import numbers, text
from utils.xla import fresh, neuron_stub


def on_machine(answer: Answer, case: Facts, chip: bool) -> list[Facts]:
    """What the answer does in each process on a machine with or without a chip.

    Raises: what it raised, of two errors one that is not only about the other process.
    """
    import torch.distributed as dist

    # As torchrun does, the parent keeps the store in which the processes find each other.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def process(rank: int) -> Facts:
        environment = _environment(rank, store.port)
        given = (answer, case, rank, chip)
        return apart.run_apart(fresh.run, in_process, *given, environment=environment)

    with ThreadPoolExecutor(PROCESSES) as pool:
        futures = [pool.submit(process, rank) for rank in range(PROCESSES)]
    errors = [error for error in (future.exception() for future in futures) if error]
    if errors:
        raise min(errors, key=lambda error: "gloo" in str(error).lower())
    return [future.result() for future in futures]


def _environment(rank: int, port: int) -> dict[str, str]:
    names = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": PROCESSES,
        "LOCAL_WORLD_SIZE": PROCESSES,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "TORCHELASTIC_USE_AGENT_STORE": True,
        "OMP_NUM_THREADS": 1,
        "CUDA_VISIBLE_DEVICES": "",
        "PJRT_DEVICE": "NEURON",  # of which torch_xla finds no library: there is no XLA, either
    }
    if sys.platform == "linux":
        names["GLOO_SOCKET_IFNAME"] = "lo"  # the name of a host may be unknown in a sandbox
    return {name: str(value) for name, value in names.items()}


def in_process(answer: Answer, case: Facts, rank: int, chip: bool) -> Facts:
    """What one process does: the losses it returns, and of each forward pass the dtypes of output
    and weights, and where weights and input are.
    """
    import torch

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Gloo greets on the standard output
    model, parts = shared_training(case)
    passes: list[Facts] = []
    backends: list[str] = []
    with _neuron(backends) if chip else contextlib.nullcontext(_is_on_cpu) as is_there:
        # A function and no method: a copy of the model then reports here, too.
        def look(module: Any, inputs: tuple[Any, ...], output: Any) -> None:
            weights = list(module.parameters())
            tensors = [t for t in (*inputs, *weights) if isinstance(t, torch.Tensor)]
            passes.append(
                {
                    "there": all(map(is_there, tensors)),
                    "output": str(getattr(output, "dtype", "")).removeprefix("torch."),
                    "weights": str(weights[0].dtype).removeprefix("torch."),
                }
            )

        model.register_forward_hook(look)
        returned = numbers(answer(model, parts[rank], case["lr"]))
    return {
        "returned": {"stopped": False, **returned},
        "passes": passes[:1000],
        "backends": backends[:3],
    }


def _is_on_cpu(tensor: Any) -> bool:
    return tensor.device.type == "cpu"


@contextlib.contextmanager
def _neuron(backends: list[str]) -> Iterator[Callable[[Any], bool]]:
    """While it is open there is an accelerator "neuron"; gives a function that says whether a
    tensor is there. `backends` gets the backend of each process group that is asked for.
    """
    import torch
    import torch.distributed as dist
    from torch.utils._pytree import tree_leaves

    torch.utils.rename_privateuse1_backend("neuron")
    device, held = torch.device("neuron"), dict[int, Any]()
    group, autocast = dist.init_process_group, torch.autocast.__init__

    def start_group(backend: Any = None, *args: Any, **kwargs: Any) -> None:
        backends.append(text(backend))
        kwargs.pop("device_id", None)
        group("gloo", *args, **kwargs)

    def start_autocast(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        autocast(self, "cpu", *args, **kwargs)
        if device_type != "neuron":  # it is about another device, and changes nothing here
            self._enabled = False

    def holds(tensor: Any) -> bool:
        return tensor.untyped_storage().data_ptr() in held

    def note(function: Any, given: list[Any], result: Any, moved: bool) -> Any:
        there = moved or any(isinstance(item, torch.Tensor) and holds(item) for item in given)
        if moved and isinstance(result, torch.Tensor) and not holds(result):
            result = result.clone()  # as a move makes new memory
        for item in tree_leaves(result) if there else []:
            if isinstance(item, torch.Tensor):
                held[item.untyped_storage().data_ptr()] = item
        return result

    with contextlib.ExitStack() as stack:
        answers = {"is_available": True, "current_accelerator": device, "device_count": PROCESSES}
        answers |= {"set_device_index": None, "current_device_index": 0, "synchronize": None}
        for name, value in answers.items():
            stack.enter_context(
                mock.patch.object(torch.accelerator, name, lambda *_, value=value, **__: value)
            )
        stack.enter_context(mock.patch.object(dist, "init_process_group", start_group))
        stack.enter_context(mock.patch.object(torch.autocast, "__init__", start_autocast))
        known = dist.Backend.default_device_backend_map
        stack.enter_context(mock.patch.dict(known, neuron="neuron"))
        stack.enter_context(neuron_stub.on_the_cpu(note))
        yield holds
