"""Run one submission, inside the sandbox: `python -m utils.labs.grading.runner FD` with a request
on standard input.

The supervisor imports what the lab needs once, then forks a child for every exercise, so that a
crash or an endless loop costs that exercise only. It runs no learner code itself. A child reports
through its own pipe; the supervisor wraps each line in an envelope that names exercise and attempt,
so that a child can speak for its own exercise only.
"""

import contextlib
import ctypes
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
import traceback
from typing import Any

from utils.labs.grading.child import Seal, run

Request = dict[str, Any]

OUTPUT_KEPT_BYTES = 4096
REPORT_BYTES = 1 << 20
_SET_DUMPABLE = 4
FAULT = 70
"""Exit status of a child that failed outside the learner's code."""


def main() -> int:
    """Run the request on standard input and report to the descriptor of the first argument."""
    request = json.load(sys.stdin.buffer)
    os.environ.update(request.get("environment", {}))
    _silence_stdin()
    # A learner's process must not be able to read this one's memory or files.
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)
    report = os.fdopen(int(sys.argv[1]), "wb", buffering=0)

    def tell(**message: Any) -> None:
        report.write(json.dumps(message).encode() + b"\n")

    # Imports only: a child that uses the device after its parent has used it hangs.
    observer_module = f"utils.labs.{request['lab']}.observe"
    for module in request["modules"]:
        with contextlib.suppress(
            ImportError
        ):  # a cell may try an import that not every machine has
            importlib.import_module(module)
    for module in ("IPython.core.interactiveshell", observer_module):
        importlib.import_module(module)
    tell(ready=True)
    for exercise in request["exercises"]:
        attempts = exercise["attempts"]
        for which, cells in attempts.items():
            header = {"exercise": exercise["id"], "attempt": which}
            tell(**header, start=True)
            job = {**exercise, "cells": cells}
            finished = _attempt(request, job, report.fileno(), lambda h=header, **m: tell(**h, **m))
            if finished:
                break
    tell(complete=True)
    return 0


def _silence_stdin() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _attempt(request: Request, job: Request, report: int, tell: Any) -> bool:
    """Run an exercise in a child; returns whether it came to its end and no case raised."""
    lines_out, lines_in = os.pipe()
    output_out, output_in = os.pipe()
    key = os.urandom(32)
    child = os.fork()
    if child == 0:
        # Nothing that happens in a child may ever return into the supervisor's code.
        try:
            for descriptor in (lines_out, output_out, report):
                os.close(descriptor)
            _become_child(request, output_in)
            run(job, lines_in, key)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(FAULT)
    os.close(lines_in)
    os.close(output_in)
    collector = _Collector(tell, lines_out, output_out, Seal(key))
    ended = collector.until(child, time.monotonic() + request["seconds"])
    _end_all(child)
    collector.drain()
    os.close(lines_out)
    os.close(output_out)
    _sweep(request)
    tell(ended=ended, output_bytes=collector.output_bytes, most_processes=collector.most_processes)
    tell(output=collector.output.decode("utf-8", "replace"), refused=collector.refused)
    return ended == "finished" and collector.finished and not collector.raised


class _Collector:
    """Reads a child's two pipes: passes report lines on, counts output and drops most of it.

    refused: lines that did not come from our code. raised: whether the answer raised in a case or
    was not there.
    """

    def __init__(self, tell: Any, lines: int, output: int, seal: Seal):
        self.tell, self.lines, self.pipe, self.seal = tell, lines, output, seal
        self.refused, self.raised = 0, False
        self.partial, self.output = b"", b""
        self.report_bytes = self.output_bytes = self.most_processes = 0
        self.finished = False
        self.open = {lines, output}
        for descriptor in self.open:
            os.set_blocking(descriptor, False)

    def until(self, child: int, deadline: float) -> str:
        """Collect until the child ends: "finished", "exit N", "signal N", "timeout" or "flood"."""
        while True:
            self._pump(0.02)
            self.most_processes = max(self.most_processes, len(_processes()))
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                self.drain()
                if os.WIFSIGNALED(status):
                    return f"signal {os.WTERMSIG(status)}"
                code = os.WEXITSTATUS(status)
                return "finished" if self.finished and code == 0 else f"exit {code}"
            if time.monotonic() > deadline:
                return "timeout"
            if self.report_bytes > REPORT_BYTES:
                return "flood"

    def drain(self) -> None:
        while self._pump(0):
            pass

    def _pump(self, seconds: float) -> bool:
        ready, _, _ = select.select(list(self.open), [], [], seconds)
        got = False
        for descriptor in ready:
            chunk = os.read(descriptor, 1 << 16)
            got |= bool(chunk)
            if not chunk:
                self.open.discard(descriptor)
            elif descriptor == self.pipe:
                self.output_bytes += len(chunk)
                self.output += chunk[: OUTPUT_KEPT_BYTES - len(self.output)]
            else:
                self._lines(chunk)
        if not self.open and seconds:
            time.sleep(seconds)
        return got

    def _lines(self, chunk: bytes) -> None:
        self.report_bytes += len(chunk)
        if self.report_bytes > REPORT_BYTES:
            return
        *whole, self.partial = (self.partial + chunk).split(b"\n")
        for sealed in whole:
            line = self.seal.opened(sealed)
            if line is None:
                self.refused += 1
                continue
            self.finished |= line == b'{"end": true}'
            self.raised |= b'"seen": {"error": ' in line or b'"seen": {"missing": ' in line
            self.tell(line=line.decode("utf-8", "replace"))


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _end_all(child: int) -> None:
    """Kill every process in the sandbox but its first and this one."""
    for _ in range(200):
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if set(_processes()) <= {1, os.getpid()}:
            return
        time.sleep(0.01)
    raise RuntimeError("processes of a submission survived being killed")


def _sweep(request: Request) -> None:
    """Empty the folders that a learner can write, as the learner, so that the next exercise finds
    them so.
    """
    child = os.fork()
    if child == 0:
        try:
            _drop_rights(request)
            signal.alarm(5)
            for folder in request["writable"]:
                for entry in os.scandir(folder):
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path, ignore_errors=True)
                    else:
                        with contextlib.suppress(OSError):
                            os.unlink(entry.path)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _drop_rights(request: Request) -> None:
    for name, value in request["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if request["uid"] is not None:
        os.setgroups([])
        os.setresgid(*[request["uid"]] * 3)
        os.setresuid(*[request["uid"]] * 3)


def _become_child(request: Request, output: int) -> None:
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    _drop_rights(request)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1)
    os.chdir(request["cwd"])


if __name__ == "__main__":
    sys.exit(main())
