"""A worker: a process that makes a model and answers requests until its caller leaves.

It is a process of `utils.xla.fresh`, so it starts in a fraction of a second, and how it ended is
known. Requests and answers go over a socket of the file system; they must be small, as a request
is.
"""

import contextlib
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from utils.xla import fresh

_LOOK_S = 0.05
_CORES = ("NEURON_RT_NUM_CORES", "NEURON_RT_VISIBLE_CORES")
Handle = Callable[[Any], Any]


class Gone(RuntimeError):
    """The worker ended. `cause` is such as "SIGKILL"."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the worker ended with {cause}")
        self.cause = cause


class Worker:
    """One worker, started at once, in the background; `wait_ready` before the first request.

    make: of a `utils.xla.devices.Device`, returns a function of a request that returns its answer.
    seconds: after which it is killed, whatever it does.
    environment: variables of its process. On a Neuron device it takes one core unless a variable
        says otherwise: a process reserves all it can get, and the next one would find none.

    With its connection closed it ends: at the latest with its caller's process.
    """

    def __init__(
        self,
        make: Callable[[Any], Handle],
        kind: str = "cpu",
        seconds: float = fresh.SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = tempfile.mkdtemp(prefix="course-worker-")
        address = str(Path(self._folder, "socket"))
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen(1)
        self._listening.settimeout(_LOOK_S)
        self._connection: Connection | None = None
        self._end: BaseException | None = None
        self.pid: int | None = None

        variables = dict(environment or {})
        if not {*_CORES} & {*os.environ, *variables}:
            variables[_CORES[0]] = "1"

        def run() -> None:
            try:
                fresh.run(_serve, address, make, kind, seconds=seconds, environment=variables)
            except Exception as error:  # raised again where somebody waits for the worker
                self._end = error

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def wait_ready(self) -> None:
        """Return when the model is made. Raises what ended the worker before."""
        while self._connection is None:
            # Whether it still runs is asked first: it may connect and end in between.
            runs = self._thread.is_alive()
            with contextlib.suppress(TimeoutError):
                accepted, _ = self._listening.accept()
                accepted.setblocking(True)
                self._connection = Connection(accepted.detach())
            if not runs and self._connection is None:
                raise self._end or Gone("exit 0")
        if self.pid is None:
            self.pid = self._receive()

    def send(self, number: int, request: Any, hold: bool = False) -> None:
        """Hand over a request. hold: the worker takes it and never answers, nor any later one."""
        self._connection.send((number, request, hold))

    def receive(self) -> tuple[int, Any]:
        """The next answer, with the number of its request.

        Raises: Gone if the worker was killed or left; what its model raised; TimeoutError.
        """
        return self._receive()

    def kill(self) -> None:
        """End the process at once, by SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let it end, and wait for that."""
        if self._connection is not None:
            self._connection.close()
        self._listening.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._thread.join()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, ConnectionError):
            self._thread.join()
            if isinstance(self._end, fresh.Died):
                raise Gone(self._end.cause) from None
            raise (self._end or Gone("exit 0")) from None


def _serve(address: str, make: Callable[[Any], Handle], kind: str) -> None:
    from utils.xla import devices

    connected = socket.socket(socket.AF_UNIX)
    connected.connect(address)
    with contextlib.suppress(EOFError, ConnectionError), Connection(connected.detach()) as caller:
        handle = make(devices.get(kind))
        caller.send(os.getpid())
        while True:
            number, request, hold = caller.recv()
            while hold:
                caller.recv()  # until it is killed, or the caller is gone
            caller.send((number, handle(request)))
