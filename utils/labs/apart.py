"""Answers that are observed in a process of their own, because they need several devices, or may
hang where no signal reaches.

What happens to the answer there is told here as if it had happened here.
"""

import functools
import linecache
import traceback
from collections.abc import Callable
from pickle import PicklingError
from typing import Any

import cloudpickle

from utils.labs import Answer, audit_hook, limit
from utils.labs.guard import Originals
from utils.xla import fresh

SECONDS = 10.0
"""Ten times and more what an answer takes."""

_ENDLESS = "the check stopped the answer after {seconds:g} s: a right answer takes much less time"

Run = Callable[..., Any]
"""Runs a function in another process, such as `utils.xla.fresh.run` or `utils.xla.spmd.run`."""


def run_apart(
    run: Run,
    work: Callable[..., Any],
    answer: Answer,
    *arguments: Any,
    seconds: float = SECONDS,
    **options: Any,
) -> Any:
    """What work(answer, *arguments) returns in another process; options go to `run`.

    Raises: what `work` raised, under the same name and with the line of the answer in its message;
    RuntimeError if the answer took for ever, ended its process or cannot be sent to another one.
    """
    _wait_for_server()
    try:
        # As bytes, because reading them may run code of the answer: the other process is to know
        # its functions before that.
        sent = cloudpickle.dumps((answer, arguments))
        text = run(_run_there, work, sent, seconds=limit.SHARE * seconds, **options)
    except TimeoutError:
        raise RuntimeError(_ENDLESS.format(seconds=seconds)) from None
    except fresh.Died as death:
        raise RuntimeError(f"the answer ended its process ({death.cause})") from None
    except fresh.Raised as error:
        raise RuntimeError(
            f"the process of the answer failed: {error}. The answer runs in a process of its"
            " own, which has no tensor of this notebook's device: use the arguments instead"
        ) from None
    except (TypeError, AttributeError, PicklingError) as error:
        raise RuntimeError(
            f"the answer cannot be sent to a process of its own: {error}. Apart from its"
            " arguments it can use only modules and plain values of this notebook"
        ) from None
    for what in text.get("noticed", ()):  # nothing of a process that died
        audit_hook.tell(what)
    if "returned" in text:
        return text["returned"]
    kind, message, file, line = text["raised"]
    if kind == "NotImplementedError":
        raise NotImplementedError(message)
    code = linecache.getline(file, line).strip()
    place = f" (line {line}: {code})".replace(": )", ")") if line else ""
    raise type(kind, (RuntimeError,), {})(f"{message}{place}")


@functools.cache
def _wait_for_server() -> None:
    """The first process of all waits for an import of seconds, which is not the answer's."""
    fresh.run(int)


def _run_there(work: Callable[..., Any], sent: bytes) -> dict[str, Any]:
    """Runs in the other process. What the answer replaces there in the course's code is put back
    after every call, before anything is measured.
    """
    reaches: list[str] = []
    audit_hook.Watch(reaches.append, called=True)
    originals = Originals()
    answer, arguments = cloudpickle.loads(sent)
    originals.put_back()

    @functools.wraps(answer)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return answer(*given, **named)
        finally:
            originals.put_back()

    try:
        return {"returned": work(called, *arguments), "noticed": reaches}
    except (Exception, SystemExit) as error:
        file = getattr(getattr(answer, "__code__", None), "co_filename", "")
        own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
        line = own[-1].lineno if own else 0
        raised = (type(error).__name__, str(error)[:500], file, line)
        return {"raised": raised, "noticed": reaches}
