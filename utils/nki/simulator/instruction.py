"""The table of instructions: each is declared once, as a function with a decorator.

    @instruction(engine=engine.vector, cost=..., dst=result(), src=tile(), rules=(...), since="0.2")
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
from collections.abc import Callable
from typing import Any

from utils.nki.simulator import program as programs
from utils.nki.simulator.documentation import details
from utils.nki.simulator.enums import engine as engines
from utils.nki.simulator.errors import doubt, line_of, ours, refuse
from utils.nki.simulator.operands import Operand, Rule
from utils.nki.simulator.program import Instruction
from utils.nki.simulator.target import Target
from utils.nki.simulator.tensor import Tensor

TABLE: dict[str, "Spec"] = {}
PAGE = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/nki.isa.{}.html"
COST_PAGE = (
    "https://awsdocs-neuron.readthedocs-hosted.com/en/v2.26.1/nki/api/generated/nki.isa.{}.html"
)

DYNAMIC_CYCLES = 600
"""Least duration of an instruction with an address known at run time (SDK 2.26, ISA pages)."""

Choice = engines | Callable[["Use"], engines]
Cost = Callable[["Use"], float]


class Use:
    """The operands of one call, as rules and costs see them: `use.dst`, `use.op`, `use.target`.

    engine: the engine chosen, known to rules and costs. main: the operand that columns refer to.
    """

    def __init__(self, spec: "Spec", args: dict[str, Any], target: Target) -> None:
        self.spec = spec
        self.args = args
        self.target = target
        self.engine = engines.unknown
        self.doubts: list[tuple[str, str, str]] = []

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["args"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def main(self) -> Tensor | None:
        """The tensor that is processed: the first plain input, else the first operand."""
        tensors = [
            value
            for name, operand in self.spec.operands.items()
            if isinstance(value := self.args[name], Tensor) and not operand.column
        ]
        read = [
            t for n, o in self.spec.operands.items() if o.reads and (t := self.args[n]) in tensors
        ]
        return (read or tensors or [None])[0]

    def refuse(self, what: str, why: str, fix: str) -> Exception:
        """The error of this instruction."""
        return refuse(f"{self.spec.name}: {what}", why, fix)

    def doubt(self, what: str, why: str, fix: str) -> None:
        """A warning that belongs to the verdict: every kernel with such a call gets it."""
        self.doubts.append((f"{self.spec.name}: {what}", why, fix))


class Checked:
    """The verdict on a call that all calls of the same layout share.

    cycles: how long it occupies its engine, in cycles of that engine's clock. For a DMA, whose time
    depends on bytes and descriptors (`timing`), it is 0. doubts: warnings for each such call.
    """

    __slots__ = ("cycles", "doubts", "engine", "memo", "spec", "target")

    def __init__(self, use: Use, cycles: float) -> None:
        self.spec = use.spec
        self.engine = use.engine
        self.cycles = cycles
        self.target = use.target
        self.doubts = tuple(use.doubts)
        self.memo: Any = None


class Spec:
    """One row of the table."""

    def __init__(
        self,
        body: Callable[..., Any],
        engine: Choice,
        cost: Cost,
        operands: dict[str, Operand],
        rules: tuple[Rule, ...],
        since: str,
        cost_source: str,
        always: bool,
        resolve: Callable[[Any, dict[str, Any]], None] | None,
    ) -> None:
        self.name = body.__name__
        self.body = body
        self.engine = engine
        self.cost = cost
        self.operands = operands
        self.rules = rules
        self.since = since
        self.always = always
        self.resolve = resolve
        self.page = PAGE.format(self.name)
        self.cost_source = cost_source or COST_PAGE.format(self.name)
        self.signature = inspect.signature(body)
        parameters = self.signature.parameters
        unknown = operands.keys() - parameters.keys()
        assert not unknown, f"{self.name}: operands {unknown} are not in the signature"
        self.names = tuple(parameters)
        self.defaults = {n: p.default for n, p in parameters.items()}
        self.required = {n for n, p in parameters.items() if p.default is p.empty}
        self.checked: dict[Any, Checked] = {}
        self.inputs = tuple(n for n, o in operands.items() if o.reads)
        self.outputs = tuple(n for n, o in operands.items() if o.writes)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name, with defaults; leftovers of older versions and slips are explained."""
        if len(args) > len(self.names):
            raise refuse(
                f"{self.name}: {len(args)} positional arguments, it has {len(self.names)}.",
                f"its signature is {self.name}{self.signature}.",
                "pass operands by name: dst=..., data=...",
            )
        given = dict(zip(self.names, args, strict=False))
        twice = given.keys() & kwargs.keys()
        unknown = kwargs.keys() - set(self.names)
        missing = self.required - given.keys() - kwargs.keys()
        if unknown or twice or missing:
            from utils.nki.simulator.surface import wrong_arguments

            raise wrong_arguments(self, unknown, twice, missing)
        return {**self.defaults, **given, **kwargs}

    def check(self, args: dict[str, Any], target: Target) -> Checked:
        """Every operand, the choice of the engine, every rule, and the cost."""
        use = Use(self, args, target)
        for name, operand in self.operands.items():
            operand.check(use, name, args[name])
        use.engine = self.engine if isinstance(self.engine, engines) else self.engine(use)
        for rule in self.rules:
            rule(use)
        cycles = self.cost(use)
        if cycles and any(getattr(args[name], "indirect", None) for name in self.operands):
            cycles = max(cycles, DYNAMIC_CYCLES)
        return Checked(use, cycles)


def _key(value: Any) -> Any:
    if type(value) in (list, tuple):
        return tuple(_key(each) for each in value)
    return type(value), (value.key if hasattr(value, "key") else value)


def verdict(spec: Spec, bound: dict[str, Any], target: Target) -> Checked:
    """What the table says of a call with these arguments; looked up for a layout known before.

    The key has the types too: 7 and 7.0 are equal, but not the same to a bitwise operator.
    """
    values = bound.values()
    key = (
        target.name,
        *[
            v._key or v.key if type(v) is Tensor else _key(v) if type(v) is tuple and v else v
            for v in values
        ],
        *map(type, values),
    )
    try:
        checked = spec.checked.get(key)
    except TypeError:  # lists and arrays have no hash
        key = (target.name, *[_key(each) for each in values])
        try:
            checked = spec.checked.get(key)
        except TypeError:
            checked = key = None
    if checked is None:
        checked = spec.check(bound, target)
        if key is not None:
            spec.checked[key] = checked
    return checked


def issue(spec: Spec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instruction:
    """Check, record and, where there are values, execute one instruction."""
    core = programs._active or programs.running(f"nisa.{spec.name}")
    name = kwargs.pop("name", None)
    bound = {**spec.defaults, **kwargs}
    if args or len(bound) > len(spec.names) or not spec.required.issubset(kwargs):
        bound = spec.bind(args, kwargs)
    program = core.program
    if spec.resolve is not None:
        spec.resolve(core, bound)
    checked = verdict(spec, bound, program.target)
    for each in checked.doubts:
        doubt(*each)
    frame = sys._getframe(2)
    while ours(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    record = Instruction(checked, bound, name, line_of(frame), len(core.instructions))
    core.instructions.append(record)
    if program.values or spec.always:
        spec.body(**bound)
    return record


def instruction(
    *,
    engine: Choice,
    cost: Cost,
    since: str,
    rules: tuple[Rule, ...] = (),
    cost_source: str = "",
    always: bool = False,
    resolve: Callable[[Any, dict[str, Any]], None] | None = None,
    **operands: Operand,
) -> Callable[[Callable[..., Any]], Callable[..., Instruction]]:
    """Declare an instruction; the decorated function becomes what kernels call.

    engine: the engine, or a function of the `Use` that chooses it. cost: its cycles.
    since: the NKI version. cost_source: the page of the cost, if not that of SDK 2.26.
    always: the body runs also where only shapes are known (registers, meeting the other core).
    resolve: given the core and the arguments before anything is checked, may fill in what depends
    on the calls before.
    """

    def declare(body: Callable[..., Any]) -> Callable[..., Instruction]:
        spec = Spec(body, engine, cost, operands, rules, since, cost_source, always, resolve)
        TABLE[spec.name] = spec

        def call(*args: Any, **kwargs: Any) -> Instruction:
            return issue(spec, args, kwargs)

        name = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)
        call.__name__ = call.__qualname__ = spec.name
        call.__doc__ = details(spec)
        call.__module__ = "nki.isa"
        call.__signature__ = spec.signature.replace(  # type: ignore[attr-defined]
            parameters=[*spec.signature.parameters.values(), name]
        )
        call.spec = spec  # type: ignore[attr-defined]
        return call

    return declare
