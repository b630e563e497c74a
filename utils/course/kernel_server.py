"""Kernels for tests that start in a moment: a server imports the slow packages once, then forks.

Importing torch_xla, matplotlib, pandas and ipykernel costs 8 s of CPU, and the tests start some
fifty kernels. Jupyter starts a launcher (this file, with the standard library alone), the launcher
asks the server, and the server's fork becomes the kernel: with the environment, the working
directory and the output of the launcher, in a session of its own. The launcher passes signals on
and ends as the kernel ends; if it is killed, the server kills the kernel. Without a server it
becomes an ordinary kernel itself.

Learners' kernels never come from here.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
VARIABLE = "COURSE_KERNEL_SERVER"
"""Environment variable with the path of the socket of the server that the tests may use."""
POLL_SECONDS = 0.05
"""How long the end of a kernel may go unnoticed."""

_HEADER = 8
_MOST_FDS = 5


def launcher(path: Path) -> list[str]:
    """The `argv` of a kernelspec whose kernels come from the server that listens at `path`."""
    return [sys.executable, "-I", "-S", __file__, "launch", str(path), "-f", "{connection_file}"]


def socket_path() -> Path | None:
    """The socket of the server that the tests of this process may use; None if none runs."""
    path = os.environ.get(VARIABLE)
    return Path(path) if path else None


@contextlib.contextmanager
def serve(path: Path, environment: dict[str, str], modules: tuple[str, ...]) -> Iterator[None]:
    """Run a server while the context is open; it imports `modules` while the caller goes on.

    path: where the server's socket will be made.
    environment: what C libraries read when they are loaded, such as OMP_NUM_THREADS, must be as
        in the kernels; everything else a kernel gets from its launcher.
    modules: must neither use an XLA device nor start threads when they are imported.
    """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))  # before the server runs, so that an early launcher waits
    listener.listen(64)
    process = subprocess.Popen(
        [sys.executable, __file__, "serve", str(listener.fileno()), *modules],
        env=environment,
        stdin=subprocess.PIPE,  # its end is that of the server, whatever becomes of this process
        pass_fds=(listener.fileno(),),
    )
    listener.close()
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


# ---- the launcher


def _launch(path: str, arguments: list[str]) -> NoReturn:
    """Have a kernel made, and be its stand-in until it ends."""
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(path)
        _send_request(server, arguments, [0, 1, 2])
        kernel = int.from_bytes(_receive(server, _HEADER))
    except OSError:
        ordinary = [sys.executable, "-m", "ipykernel_launcher", *arguments]
        os.execv(ordinary[0], ordinary)

    def pass_on(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(kernel, number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    code = int.from_bytes(_receive(server, _HEADER), signed=True)
    if code < 0:
        if -code in PASSED_ON:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _send_request(connection: socket.socket, arguments: list[str], fds: list[int]) -> None:
    request = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(connection, [len(request).to_bytes(_HEADER)], fds)
    connection.sendall(request)


def _receive(connection: socket.socket, size: int) -> bytes:
    message = b""
    while len(message) < size:
        piece = connection.recv(size - len(message))
        if not piece:
            raise ConnectionError("the server of kernels has ended")
        message += piece
    return message


# ---- the server


def _serve(listening: int, modules: list[str]) -> None:
    """Import `modules`, then fork a kernel for each connection, until the standard input ends."""
    _import(modules)
    listener = socket.socket(fileno=listening)
    kernels: dict[int, socket.socket] = {}
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select(POLL_SECONDS if kernels else None):
            if key.fileobj == 0:
                for kernel in kernels:
                    _kill(kernel)
                return
            if key.fileobj is not listener:
                _kill(key.data)  # its launcher has ended
                selector.unregister(key.fileobj)
                continue
            connection, _ = listener.accept()
            if (request := _read_request(connection)) is None:
                connection.close()  # the launcher was killed while it asked
                continue
            kernel = os.fork()
            if kernel == 0:
                selector.close()
                for other in (listener, connection, *kernels.values()):
                    other.close()
                _become_kernel(request)
                return
            for fd in request.fds:
                os.close(fd)
            with contextlib.suppress(OSError):  # its launcher has ended already, as is seen below
                connection.sendall(kernel.to_bytes(_HEADER))
            kernels[kernel] = connection
            selector.register(connection, selectors.EVENT_READ, kernel)
        _bury(kernels, selector)


def _import(modules: list[str]) -> None:
    import gc
    import importlib

    sys.path[0] = str(ROOT)  # it was this file's folder
    for name in modules:
        importlib.import_module(name)
    # A kernel has to find the course by its own set-up cell.
    del sys.path[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == "utils"]:
        del sys.modules[name]
    gc.freeze()


class _Request(NamedTuple):
    """What a launcher hands on: its arguments, environment, folder, and standard streams. From a
    kernel it is a command of Python's, and two descriptors come before the streams.
    """

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    fds: list[int]


def _read_request(connection: socket.socket) -> _Request | None:
    try:
        head, fds, _, _ = socket.recv_fds(connection, _HEADER, _MOST_FDS)
        arguments, environment, folder = json.loads(_receive(connection, int.from_bytes(head)))
        return _Request(arguments, environment, folder, fds)
    except (OSError, ValueError):
        return None


def _bury(kernels: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
    """Tell the launchers of kernels that have ended how they ended."""
    for kernel in list(kernels):
        ended, status = os.waitpid(kernel, os.WNOHANG)
        if ended:
            connection = kernels.pop(kernel)
            with contextlib.suppress(KeyError):
                selector.unregister(connection)
            with contextlib.suppress(OSError):
                code = os.waitstatus_to_exitcode(status)
                connection.sendall(code.to_bytes(_HEADER, signed=True))
            connection.close()


def _kill(kernel: int) -> None:
    """Kill it and what it has started, or it alone where its session is not made yet."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(kernel, signal.SIGKILL)


def _become_kernel(request: _Request) -> None:
    arguments, environment, folder, fds = request
    os.setsid()
    _take_over(environment, folder, fds)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # else all kernels draw the same numbers
    _keep_a_fork_server()
    from ipykernel.kernelapp import launch_new_instance

    # A kernel ends with its parent: the server, not the launcher's, of which Jupyter tells it.
    launch_new_instance(arguments, parent_handle=os.getppid())


def _take_over(environment: dict[str, str], folder: str, streams: list[int]) -> None:
    """Have the environment, working directory and standard streams of the process that asked."""
    for target, fd in enumerate(streams):
        os.dup2(fd, target)
        os.close(fd)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)


_FORK_SERVER = "from multiprocessing.forkserver import main; "


def _keep_a_fork_server() -> None:
    """Fork, while the kernel has one thread, the process that becomes Python's fork server once the
    kernel asks for one, as utils.xla.fresh does: it has imported torch_xla already.
    """
    from multiprocessing import util

    ours, theirs = socket.socketpair()
    server = os.fork()
    if server == 0:
        ours.close()
        _become_fork_server(theirs)
    theirs.close()
    start = util.spawnv_passfds

    def take(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
        if not args[-1].startswith(_FORK_SERVER):
            return start(path, args, passfds)
        util.spawnv_passfds = start  # a second one is started as ever
        _send_request(ours, [args[-1]], [*passfds, 0, 1, 2])
        return server

    util.spawnv_passfds = take


def _become_fork_server(connection: socket.socket) -> NoReturn:
    from multiprocessing import forkserver

    os.setpgrp()  # an ending kernel waits for the children of its group; this one ends by itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as Python's fork server does
    try:
        if request := _read_request(connection):
            (command,), environment, folder, (listener, alive, *streams) = request
            _take_over(environment, folder, streams)
            sys.path[:0] = ["", *environment.get("PYTHONPATH", "").split(os.pathsep)]

            def main(_listener: int, _alive: int, *preload: Any, **data: Any) -> None:
                forkserver.main(listener, alive, *preload, **data)

            exec(command.removeprefix(_FORK_SERVER), {"main": main})
    finally:
        os._exit(0)


if __name__ == "__main__":
    role, where, *rest = sys.argv[1:]
    if role == "launch":
        _launch(where, rest)
    _serve(int(where), rest)
