"""The arguments with which a check calls an answer, so that a learner can make the same call.

Nothing is kept while an answer is judged, because a copy of a lazy tensor would be counted: the
observation is made once more, and ends where the answer would be called.
"""

import contextlib
import functools
import inspect
import io
import json
import sys
import warnings
from types import FunctionType
from typing import Any

from utils.labs import Answer, Facts, limit, observe_case

SECONDS = 2.0
"""That an answer may take when it is called once more."""


class _Reached(BaseException):
    """Not an Exception, so that no observer takes it for one of the answer's."""


def arguments(exercise_id: str, answer: Answer, case: Facts, call: int = 0) -> tuple[Any, ...]:
    """What the answer is given in one of its calls within a case, counted from 0; in its first if
    there are fewer; with -1 in its last, which is the one that raises. A kernel, which is checked
    with shapes alone, gets random numbers.

    Raises: LookupError if the answer is never called, or in another process only.
    """
    if call < 0:
        calls: list[tuple[Any, ...]] = []
        with contextlib.redirect_stdout(io.StringIO()):
            observe_case(exercise_id, _stand_in(answer, sys.maxsize, calls), case)
        call = max(len(calls) - 1, 0)
    for wanted in (call, 0):
        given: list[tuple[Any, ...]] = []
        with contextlib.suppress(_Reached), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            observe_case(exercise_id, _stand_in(answer, wanted, given), case)
        if len(given) > wanted:
            return tuple(map(_with_numbers, given[wanted]))
    raise LookupError(f"{exercise_id}: the check does not call the answer in this process")


def _stand_in(answer: Answer, wanted: int, given: list[tuple[Any, ...]]) -> Answer:
    """The answer, which notes what it is given, up to the call that is wanted."""
    reached = _Reached

    def called(*inputs: Any) -> Any:
        given.append(inputs)
        if len(given) > wanted:
            raise reached
        return answer(*inputs)

    if not isinstance(answer, FunctionType):  # a kernel, whose launch would unwrap it
        return called
    # With its names, because an observer may look for a second function among them.
    alike = FunctionType(
        called.__code__, answer.__globals__, answer.__name__, None, called.__closure__
    )
    return functools.wraps(answer)(alike)


def _with_numbers(value: Any) -> Any:
    """The tensor of a kernel as an array of random numbers; anything else as it is."""
    if not type(value).__module__.startswith("utils.nki."):
        return value
    import numpy as np

    return np.random.default_rng(0).standard_normal(tuple(value.shape)).astype(value.dtype.numpy)


def changed_input(exercise_id: str, answer: Answer, case: Facts) -> str:
    """The name of an input of plain values that the answer changes in place; "" if there is none.

    What is empty is there to be filled, and tensors are what optimizers change.
    """
    try:
        inputs = arguments(exercise_id, answer, case)
        names = list(inspect.signature(answer).parameters)
    except (LookupError, TypeError, ValueError):
        return ""
    before = [_text(value) for value in inputs]
    if not isinstance(answer, FunctionType) or not any(before):
        return ""
    with contextlib.suppress(Exception, SystemExit), contextlib.redirect_stdout(io.StringIO()):
        limit.within(lambda: answer(*inputs), SECONDS)
    pairs = zip(names, before, map(_text, inputs), strict=False)
    return next((name for name, old, new in pairs if old and new and old != new), "")


def _text(value: Any) -> str:
    """Plain values or an array that can be changed in place, as text; "" for all else."""
    if type(value).__module__ == "numpy":
        return repr(value.tobytes()) if hasattr(value, "tobytes") else ""
    try:
        return json.dumps(value) if value and isinstance(value, list | dict) else ""
    except (TypeError, ValueError):
        return ""
