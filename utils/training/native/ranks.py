"""A function on several ranks, which are processes of this machine that talk by gloo.

They are forks of one process that has imported what they need, so that four of them cost about a
second. torchrun starts the same job on several machines: `notebooks/scripts/native_training.py`.
"""

import multiprocessing
import os
import tempfile
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import cloudpickle

from utils.xla import fresh

SECONDS = 60.0
MOST_RANKS = 8


def run(function: Callable[..., Any], ranks: int, *arguments: Any, seconds: float = SECONDS) -> Any:
    """What function(*arguments) returned on each rank, in their order, as a list.

    Inside, torch.distributed is ready: `dist.get_rank()`, `init_device_mesh("cpu", ...)`. function,
    arguments and results are sent as by `utils.xla.fresh.run`.

    Raises: RuntimeError with the first rank that failed and its error; TimeoutError after
    `seconds`, as when ranks wait for each other for ever; ValueError for a wrong number of ranks.
    """
    if type(ranks) is not int or not 1 <= ranks <= MOST_RANKS:
        raise ValueError(f"{ranks!r} ranks: give a whole number from 1 to {MOST_RANKS}")
    return fresh.run(group, function, ranks, arguments, seconds=seconds)


def group(function: Callable[..., Any], ranks: int, arguments: tuple[Any, ...]) -> list[Any]:
    """`run` without a process around it: for a process that has used no thread of torch yet."""
    import torch
    import torch._dynamo  # the first step of an optimizer imports it
    import torch.distributed.fsdp
    import torch.distributed.tensor.parallel
    import torch.nn.parallel  # noqa: F401  all once, before the forks

    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(prefix="course-ranks-") as folder:
        pipes, processes = [], []
        for rank in range(ranks):
            ours, theirs = context.Pipe(duplex=False)
            work = (theirs, function, rank, ranks, arguments, Path(folder) / "store")
            process = context.Process(target=_rank, args=work)
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        try:
            return _results(pipes)
        finally:
            for process in processes:
                process.kill()
                process.join()


def _results(pipes: list[Connection]) -> list[Any]:
    """Of all ranks; the first error ends the waiting, because other ranks may wait for that one."""
    results: dict[int, Any] = {}
    while len(results) < len(pipes):
        waiting = [pipe for rank, pipe in enumerate(pipes) if rank not in results]
        for pipe in wait(waiting):
            rank = pipes.index(pipe)  # type: ignore[arg-type]
            try:
                kind, value = cloudpickle.loads(pipes[rank].recv_bytes())
            except EOFError:
                raise RuntimeError(f"rank {rank} ended without a result") from None
            if kind == "raised":
                raise RuntimeError(f"rank {rank}: {value}")
            results[rank] = value
    return [results[rank] for rank in range(len(pipes))]


def _rank(
    results: Connection,
    function: Callable[..., Any],
    rank: int,
    ranks: int,
    arguments: tuple[Any, ...],
    store: Path,
) -> None:
    # gloo writes a line for each connection to the standard output.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    import torch.distributed as dist

    try:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
        message = "returned", function(*arguments)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = "raised", f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})"
    results.send_bytes(cloudpickle.dumps(message))
    results.close()
    os._exit(0)  # other ranks may still use the connections, and nothing here is left to tidy
