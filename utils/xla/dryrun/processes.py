"""Runs here, as the only rank, what a script would start once for each device.

`torch.multiprocessing.spawn`, `start_processes`, `torch_xla.launch` and `xmp.spawn` call their
function with rank 0. A `multiprocessing.Process` does so if its first argument is the number 0 and
no other is a queue, a pipe or the like; those with a higher number are left out. What any other
process does is not seen, and the report says so. The process group is of one rank, on Gloo with a
store in memory; more ranks are refused, unless the script starts their processes itself.
"""

import multiprocessing.process
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch_xla

_SHARED = tuple(f"multiprocessing.{n}" for n in ("queues", "connection", "synchronize", "managers"))


@contextmanager
def redirect_processes(note: Callable[[str], None]) -> Iterator[None]:
    """While it is open, a function for each device runs here once."""
    import torch_xla.distributed.xla_multiprocessing as xmp  # late: it loads the runtime
    from torch.distributed import distributed_c10d

    started: list[Any] = []  # by the script: its processes are as many as it wants ranks

    def once(name: str) -> Callable[..., Any]:
        def spawn(fn: Any, args: Any = (), *_: Any, join: bool = True, **__: Any) -> Any:
            note(f"{name} runs {_name(fn)} here, as rank 0 of 1; other processes are not started")
            started.append(fn)
            fn(0, *args)
            return None if join else _Joined()

        return spawn

    start = multiprocessing.process.BaseProcess.start

    def start_one(process: Any) -> None:
        rank, target = next(iter(process._args), None), process._target
        if type(rank) is not int or any(map(_is_shared, process._args)):
            note(f"Process starts {_name(target)}: what happens in it is not seen")
            return start(process)
        process._popen = process._sentinel = _Ended()
        started.append(target)
        if rank:
            note(f"Process of rank {rank} is not started: the dry run is rank 0 alone")
            return None
        note(f"Process runs {_name(target)} here, as rank 0 of 1")
        return process.run()

    group = torch.distributed.init_process_group

    def join_group(
        backend: Any = None, init_method: Any = None, timeout: Any = None, world_size: int = -1,
        rank: int = -1, *_: Any, **__: Any,
    ) -> None:  # fmt: skip
        ranks = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE") or 1)
        if ranks > 1 and not started:
            raise RuntimeError(
                f"the dry run is one process, and the script asks for a group of {ranks}; start it "
                "with a world size of 1, and without WORLD_SIZE in the environment"
            )
        of = f" instead of {ranks}" if ranks > 1 else ""
        note(f"init_process_group({backend!r}) makes a group of one rank{of}, on Gloo")
        group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)

    with ExitStack() as stack:
        for owner, name, value in (
            (torch.multiprocessing, "spawn", once("torch.multiprocessing.spawn")),
            (torch.multiprocessing, "start_processes", once("start_processes")),
            (xmp, "spawn", once("xla_multiprocessing.spawn")),
            (torch_xla, "launch", once("torch_xla.launch")),
            (multiprocessing.process.BaseProcess, "start", start_one),
            (torch.distributed, "init_process_group", join_group),
            (distributed_c10d, "init_process_group", join_group),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def _name(function: Any) -> str:
    return f"{getattr(function, '__name__', function)}()"


def _is_shared(value: Any) -> bool:
    return type(value).__module__.startswith(_SHARED)


class _Joined:
    """What `spawn(..., join=False)` gives back."""

    processes: tuple[()] = ()

    def join(self, *_: Any, **__: Any) -> bool:
        """All have ended."""
        return True


class _Ended:
    """What a `Process` knows of one that has ended well."""

    pid = returncode = 0

    def poll(self, *_: Any) -> int:
        """Its exit status."""
        return 0

    wait = terminate = kill = close = poll
