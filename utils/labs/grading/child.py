"""One exercise, inside the sandbox and in a process of its own: run the cells, observe every case.

From here on a submission is in control of the process. Each line of the report carries a code of
its own, made with a key that only this process and its supervisor know: what an answer writes into
the pipe itself is refused. An answer that finds the function that makes the codes can still forge;
the ways there are noticed, and told before the answer gets further (utils.labs.audit_hook).
"""

import contextlib
import hashlib
import importlib
import json
import os
import random
import sys
import threading
from itertools import pairwise
from typing import Any
from unittest.mock import patch

from utils.labs.audit_hook import Watch
from utils.labs.guard import Originals

FACTS_CHARS = 1 << 18


class Seal:
    """Codes for the lines of a report, one after the other: a line that is changed, repeated, left
    out or written by somebody else has another code. key: up to 64 bytes.

    >>> sender, receiver = Seal(b"key"), Seal(b"key")
    >>> line = sender.closed(b"{}")
    >>> receiver.opened(line), receiver.opened(line)
    (b'{}', None)
    """

    def __init__(self, key: bytes):
        self._state = hashlib.blake2b(key=key, digest_size=16)

    def closed(self, data: bytes) -> bytes:
        """The line with its code before it."""
        self._state.update(data)
        return self._state.hexdigest().encode() + b" " + data

    def opened(self, line: bytes) -> bytes | None:
        """The line without its code; None if the code is not the next one."""
        code, _, data = line.partition(b" ")
        state = self._state.copy()
        state.update(data)
        if code != state.hexdigest().encode():
            return None
        self._state = state
        return data


def run(job: dict[str, Any], lines: int, key: bytes) -> None:
    """Run the cells of `job`, then every case; report to the pipe `lines`. Ends the process."""
    # Bound before any cell runs, so that no cell can put something else in their place.
    getpid, write, dumps, exit_now = os.getpid, os.write, json.dumps, os._exit
    me, closed, one_at_a_time = getpid(), Seal(key).closed, threading.Lock()
    del key

    def tell(**message: Any) -> None:
        if getpid() != me:  # a fork of the answer came back here
            exit_now(71)
        with one_at_a_time:
            data = closed(dumps(message).encode()) + b"\n"
            while data:
                data = data[write(lines, data) :]

    _lend_server()
    protocol = importlib.import_module("utils.labs")
    observe_case, observer = protocol.observe_case, protocol.observer
    function = observer(job["id"]).answer
    watch = Watch(lambda what: tell(noticed=[what]))
    put_back = Originals().put_back
    random.seed(0)  # so that grading again gives the same; torch starts from a fixed seed anyway
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)
    shell = _shell()
    for index, cell in enumerate(job["cells"]):
        tell(cell=index)
        result = shell.run_cell(cell["source"])
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            tell(cell_error=index, type=type(error).__name__[:80], line=_line(error))
    if replaced := put_back():
        tell(replaced=replaced[:20])
    answer = shell.user_ns.get(function)
    watch.called = True
    for number, case in enumerate(job["cases"]):
        tell(case=number)
        try:
            seen = observe_case(job["id"], answer, case) if callable(answer) else None
        except BaseException as error:  # observe_case lets a KeyboardInterrupt through
            seen = {"error": type(error).__name__}
        replaced = put_back()  # by the answer, when it was called
        seen = _plain({"missing": function} if seen is None else seen)
        tell(case=number, seen=seen, replaced=replaced[:20])
    with contextlib.suppress(Exception):  # a cell may have put anything in its place
        sys.stdout.flush()
    tell(end=True)
    exit_now(0)


def _lend_server() -> None:
    """Let `utils.xla.fresh` fork its processes from a fork of this one, which has imported what
    they need, and not from a server that takes seconds to import it again.
    """
    if "utils.xla.fresh" not in sys.modules:
        return
    from multiprocessing import forkserver, util

    def fork(executable: bytes, arguments: list[str], descriptors: list[int]) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                # As in a process that was started: it holds no other file of this one.
                for first, last in pairwise([2, *sorted(descriptors), os.sysconf("SC_OPEN_MAX")]):
                    os.closerange(first + 1, last)
                # The stubs of the standard library describe another function of that name.
                forkserver.main(*descriptors, [])  # type: ignore[call-arg, arg-type]
            finally:
                os._exit(0)
        return pid

    with patch.object(util, "spawnv_passfds", fork):
        forkserver.ensure_running()


def _plain(seen: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(seen)
    except Exception as error:  # what an answer returned may raise anything
        return {"error": f"{type(error).__name__}: the observation holds more than plain values"}
    if len(text) > FACTS_CHARS:
        return {"error": f"ValueError: the answer gave more than {FACTS_CHARS} characters"}
    return seen


def _shell() -> Any:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Shell(InteractiveShell):
        def enable_gui(self, gui: str | None = None) -> None:
            """`%matplotlib inline` asks for it; there is no display here."""

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    return Shell.instance(config=config)


def _line(error: BaseException) -> int:
    """The line of the cell where an error arose, 0 if unknown."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    number, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith("<"):
            number = trace.tb_lineno
        trace = trace.tb_next
    return number
