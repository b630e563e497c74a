"""Run a function in a fresh process: with its own devices and flags, and free to die.

XLA reads CPU_NUM_DEVICES and XLA_FLAGS once, when a process first uses a device, and some errors
end the process; a notebook has one process. Here a server imports torch_xla once, without using a
device, and every call is a fork of it, so that a call costs a fraction of a second and not the
seconds of an import.
"""

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

SECONDS = 60.0
PRELOAD = "utils.fresh.preload"
ROOT = Path(__file__).resolve().parents[2]

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
    import cloudpickle

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOAD])
    _start_server()
    ours, theirs = context.Pipe(duplex=False)
    payload = cloudpickle.dumps((function, arguments, dict(environment or {})))
    process = context.Process(target=_child, args=(payload, theirs))
    process.start()
    theirs.close()
    try:
        return _result(process, ours, seconds)
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        process.close()
        ours.close()


def _start_server() -> None:
    # The server finds its preload where PYTHONPATH says, not on sys.path: a notebook runs in
    # another folder than the course's, and a preload that is not found is passed over in silence.
    from multiprocessing import forkserver

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


def _child(payload: bytes, results: Connection) -> None:
    import cloudpickle

    function, arguments, environment = cloudpickle.loads(payload)
    os.environ.update(environment)
    try:
        answer = ("returned", function(*arguments))
        message = cloudpickle.dumps(answer)
    except Exception as error:
        answer = ("raised", type(error).__name__, str(error), traceback.format_exc())
        message = cloudpickle.dumps(answer)
    results.send_bytes(message)
    results.close()


def _result(process: Any, results: Connection, seconds: float) -> Any:
    import cloudpickle

    end = time.monotonic() + seconds
    # A result larger than the pipe's buffer keeps the child waiting until it is read, so the
    # channel is looked at as well as the process.
    ready = wait([results, process.sentinel], timeout=seconds)
    if not ready:
        raise TimeoutError(f"the process did not end within {seconds:g} s and was killed")
    try:
        kind, *rest = cloudpickle.loads(results.recv_bytes())
    except EOFError:
        process.join(max(0.0, end - time.monotonic()))
        raise Died(_cause(process.exitcode)) from None
    if kind == "raised":
        raise Raised(*rest)
    return rest[0]


def _cause(exit_code: int | None) -> str:
    if exit_code is None:
        return "a closed channel"
    return signal.Signals(-exit_code).name if exit_code < 0 else f"exit {exit_code}"
