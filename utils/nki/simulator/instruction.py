"""Instructions are declared once, each as a function with a decorator, and issued by kernels.

    @instruction(engine.vector, per_element("src"), dst=result(), src=tile(), rules=(...))
    def tensor_copy(dst, src, engine=engine.unknown):
        "What it does."
        dst.put(src.get())

The signature is the one learners call (plus `name=`), the docstring its documentation, the body its
meaning in NumPy, executed when the program has values. The decorator adds which engine runs it,
what each operand may be, the rules between operands and the cost in cycles. Checking, execution,
timing, `help()` and error texts all come from this one declaration.
"""

import inspect
import sys
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from utils.nki.simulator import program
from utils.nki.simulator.errors import doubt, line_of, ours
from utils.nki.simulator.operands import Choice, Cost, Operand, Rule
from utils.nki.simulator.program import Instruction
from utils.nki.simulator.table import TABLE, Spec, verdict
from utils.nki.simulator.tensor import Tensor

nisa = SimpleNamespace()
"""Every instruction by name, as kernels call it; importing `instructions` fills it."""

between_ranks = SimpleNamespace()
"""Every collective by name, in the same way."""

SPACES = {"isa": nisa, "collectives": between_ranks}


def issue(spec: Spec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instruction:
    """Check, record and, where there are values, execute one instruction."""
    core = program._active or program.running(f"{spec.name}")
    name = kwargs.pop("name", None)
    bound = {**spec.defaults, **kwargs}
    if args or len(bound) > len(spec.names) or not spec.required.issubset(kwargs):
        bound = spec.bind(args, kwargs)
    call = core.program
    if spec.resolve is not None:
        spec.resolve(core, bound)
    checked = verdict(spec, bound, call.target)
    for item in checked.doubts:
        doubt(*item)
    frame = sys._getframe(2)
    while ours(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    record = Instruction(checked, bound, name, line_of(frame), len(core.instructions))
    core.instructions.append(record)
    if call.values or spec.always:
        spec.body(**bound)
    if core.grid > 1 and call.values:
        record.wrote = _fingerprint(spec, bound)
    return record


def _fingerprint(spec: Spec, args: dict[str, Any]) -> int:
    """A number for what was written to memory that both cores see, at places known beforehand."""
    result = 0
    for name in spec.outputs:
        view = args[name]
        if not isinstance(view, Tensor) or view.indirect is not None:
            continue  # races does not compare what is found, and a row may be none at all
        if view.storage.core is None and not view.storage.on_chip:
            result = zlib.crc32(np.ascontiguousarray(view.raw()).tobytes(), result)
    return result


def instruction(
    engine: Choice, cost: Cost, *, rules: tuple[Rule, ...] = (), cost_source: str = "",
    always: bool = False, resolve: Callable[[Any, dict[str, Any]], None] | None = None,
    space: str = "isa", **operands: Operand,
) -> Callable[[Callable[..., Any]], Callable[..., Instruction]]:  # fmt: skip
    """Declare an instruction; the decorated function becomes what kernels call.

    engine: the engine, or a function of the `Use` that chooses it. cost: its cycles.
    cost_source: the page of the cost, if not that of SDK 2.26.
    always: the body runs also where only shapes are known (registers, meeting the other core).
    resolve: given the core and the arguments before anything is checked, may fill in what depends
    on the calls before. space: the module of nki that it belongs to, "isa" or "collectives".
    """

    def declare(body: Callable[..., Any]) -> Callable[..., Instruction]:
        spec = Spec(body, engine, cost, operands, rules, cost_source, always, resolve, space)
        TABLE[spec.name] = spec

        def call(*args: Any, **kwargs: Any) -> Instruction:
            return issue(spec, args, kwargs)

        name = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)
        call.__name__ = call.__qualname__ = spec.name
        call.__doc__ = spec.details()
        call.__module__ = f"nki.{space}"
        call.__signature__ = spec.signature.replace(  # type: ignore[attr-defined]
            parameters=[*spec.signature.parameters.values(), name]
        )
        call.spec = spec  # type: ignore[attr-defined]
        setattr(SPACES[space], spec.name, call)
        return call

    return declare
