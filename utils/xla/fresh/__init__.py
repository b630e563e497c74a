"""Run a function in a fresh process: with its own devices and flags, and free to die.

XLA reads CPU_NUM_DEVICES and XLA_FLAGS once, when a process first uses a device, and some errors
end the process; a notebook has one process. Here a server imports torch_xla once, without using a
device, and every call is a fork of it, so that a call costs a fraction of a second and not the
seconds of an import.
"""

import contextlib
import multiprocessing
import os
import secrets
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import cloudpickle

FAST = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    " --xla_cpu_parallel_codegen_split_count=1",
    # Else oneDNN generates its code for matrix products in each process: a tenth of its time.
    "TENSORFLOW_USE_CUSTOM_CONTRACTION_KERNEL": "false",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
"""Environment in which XLA compiles in a fraction of the time, for processes that count.

Graphs, collectives and results are those of every other process with it. Against XLA's own flags
sums round differently, and a cast to FP8 rounds twice, by way of half precision.
"""

SECONDS = 60.0
PRELOAD = "utils.xla.fresh.preload"
ROOT = Path(__file__).resolve().parents[3]
_MARK_BYTES, _SIZE_BYTES = 16, 8
_END_SECONDS = 5.0
"""For a process that has closed its channel to end."""

_starting = threading.Lock()


class Died(RuntimeError):
    """The process ended before its function did. `cause` is such as "SIGKILL" or "exit 3"."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the process ended with {cause} before its function did")
        self.cause = cause


class Raised(RuntimeError):
    """The function raised. `kind` names the exception's class, `report` is its traceback."""

    def __init__(self, kind: str, message: str, report: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind, self.message, self.report = kind, message, report


def run(
    function: Callable[..., Any],
    *arguments: Any,
    environment: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> Any:
    """What function(*arguments) returns in a process that has used no device so far.

    function, arguments, result: what cloudpickle can send, which is any function of a notebook with
        what it refers to; tensors of an XLA device cannot cross, `.cpu()` ones can.
    environment: variables set in that process alone, such as {"CPU_NUM_DEVICES": "4"}.

    Raises: Raised if the function did; Died if the process was killed or left; TimeoutError after
    `seconds`, when the process is killed.

    >>> run(lambda: 6 * 7)
    42
    """
    start()
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    # What else writes to the pipe, as a function might, does not know the mark.
    mark = secrets.token_bytes(_MARK_BYTES)
    payload = cloudpickle.dumps((mark, function, arguments, dict(environment or {})))
    process = context.Process(target=_child, args=(payload, theirs))
    try:
        process.start()
        theirs.close()
        return _result(process, ours, mark, seconds)
    finally:
        if process.pid is not None:  # an interrupt may come before it is started
            _end(process)
        ours.close()


def start(*modules: str) -> None:
    """Start the server, if there is none, and do not wait for it: it imports while the caller works
    on. `run` does so by itself; called early, it saves the first `run` some seconds.

    modules: names of what it imports beside torch_xla, so that no call has to; they must use no
    device. A server that runs already is left as it is.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload([PRELOAD, *modules])
    _start_server()


def _start_server() -> None:
    # The server finds its preload where PYTHONPATH says, not on sys.path: a notebook runs in
    # another folder than the course's, and a preload that is not found is passed over in silence.
    with _starting:
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), before)))
        try:
            forkserver.ensure_running()
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


def _end(process: Any) -> None:
    if process.is_alive():
        process.kill()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # what it has started
    process.join()
    process.close()


def _child(payload: bytes, results: Connection) -> None:
    os.setpgrp()
    dumps, write = cloudpickle.dumps, os.write
    vars(multiprocessing.current_process())["_args"] = ()  # not the function's business
    mark, function, arguments, environment = cloudpickle.loads(payload)
    os.environ.update(environment)
    try:
        message = dumps(("returned", function(*arguments)))
    except Exception as error:
        message = dumps(("raised", type(error).__name__, str(error), traceback.format_exc()))
    left = memoryview(mark + len(message).to_bytes(_SIZE_BYTES) + message)
    while left:
        left = left[write(results.fileno(), left) :]
    results.close()


def _result(process: Any, results: Connection, mark: bytes, seconds: float) -> Any:
    message = _message(process, results, mark, seconds)
    if message is None:
        process.join(_END_SECONDS)
        raise Died(cause_of(process.exitcode))
    kind, *rest = cloudpickle.loads(message)
    if kind == "raised":
        raise Raised(*rest)
    return rest[0]


def _message(process: Any, results: Connection, mark: bytes, seconds: float) -> bytes | None:
    """What the process sent, or None if it ended without; TimeoutError after `seconds`.

    It is read in pieces as they come: a process can end in the middle, and another one that it
    started may keep the pipe open and send nothing.
    """
    head = _MARK_BYTES + _SIZE_BYTES
    result, end = bytearray(), time.monotonic() + seconds
    while True:
        ready = wait([results, process.sentinel], timeout=max(0.0, end - time.monotonic()))
        if not ready:
            raise TimeoutError(f"the process did not end within {seconds:g} s and was killed")
        piece = os.read(results.fileno(), 1 << 20) if results in ready else b""
        result += piece
        if not mark.startswith(result[:_MARK_BYTES]) or not piece:
            return None
        size = head + int.from_bytes(result[_MARK_BYTES:head]) if len(result) >= head else None
        if size is not None and len(result) >= size:
            return bytes(result[head:size])


def cause_of(exit_code: int | None) -> str:
    """How a process ended: the name of the signal, such as "SIGKILL", or "exit 3"."""
    if exit_code is None:
        return "a closed channel"
    return signal.Signals(-exit_code).name if exit_code < 0 else f"exit {exit_code}"
