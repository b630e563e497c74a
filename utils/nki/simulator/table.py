"""The table of instructions: what one row declares, how a call is checked against it, and the
documentation that is made of it.

`help(nisa.tensor_copy)` shows this documentation, and so does `nisa.tensor_copy?` in a notebook.
Rules, costs and choices of an engine say what they are in the first sentence of their docstring;
functions that are made by others get theirs with `describe_as`.
"""

import functools
import inspect
import textwrap
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from utils.nki.simulator.enums import ENGINE_NAMES, engine
from utils.nki.simulator.errors import NkiValidationError, refuse
from utils.nki.simulator.operands import Choice, Cost, Operand, Rule, Use
from utils.nki.simulator.surface import leftovers, page, unknown_argument, versions
from utils.nki.simulator.target import Target
from utils.nki.simulator.tensor import Tensor

TABLE: dict[str, "Spec"] = {}
COST_PAGE = (
    "https://awsdocs-neuron.readthedocs-hosted.com/en/v2.26.1/nki/api/generated/nki.isa.{}.html"
)

DYNAMIC_CYCLES = 600
"""Least duration of an instruction with an address known at run time (SDK 2.26, ISA pages)."""

Made = TypeVar("Made", bound=Callable[..., Any])
Given = ParamSpec("Given")
Result = TypeVar("Result")


# ---- sentences of the documentation --------------------------------------------------------------


def describe_as(sentence: str) -> Callable[[Made], Made]:
    """Give a rule or cost that another function makes the sentence its documentation shows.

    >>> @describe_as("src has 8 elements.")
    ... def rule(use): ...
    >>> rule.__doc__
    'src has 8 elements.'
    """

    def named(made: Made) -> Made:
        made.__doc__ = sentence
        return made

    return named


def for_operands(
    check: Callable[Concatenate[Use, Given], Result],
) -> Callable[Given, Callable[[Use], Result]]:
    """Turn `check(use, *names)`, a rule or a cost, into a function that makes it for these names.

    The docstring is the sentence that the documentation shows, with the arguments in braces.

    >>> @for_operands
    ... def same_types(use, first, second):
    ...     "{first} and {second} have the same type."
    >>> same_types("src", "dst").__doc__
    'src and dst have the same type.'
    """
    signature = inspect.signature(check)

    @functools.wraps(check)
    def make(*args: Given.args, **kwargs: Given.kwargs) -> Callable[[Use], Result]:
        bound = signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        shown = {
            name: join_names(tuple(str(getattr(item, "name", item)) for item in value))
            if isinstance(value, tuple)
            else value
            for name, value in bound.arguments.items()
        }

        @describe_as((check.__doc__ or "").format(**shown))
        def made(use: Use) -> Result:
            return check(use, *args, **kwargs)

        return made

    return make


def join_names(names: tuple[str, ...], last: str = "and") -> str:
    """Names in a sentence, with this word before the last.

    >>> join_names(("dst", "data1", "data2"))
    'dst, data1 and data2'
    """
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def sentence(of: Any) -> str:
    """The first paragraph of a docstring on one line; "" where there is none."""
    return " ".join((of.__doc__ or "").partition("\n\n")[0].split())


# ---- rows ----------------------------------------------------------------------------------------


class Checked:
    """The verdict on a call that all calls of the same layout share.

    cycles: how long it occupies its engine, in cycles of that engine's clock. For a DMA, whose time
    depends on bytes and descriptors (`timing`), it is 0. doubts: warnings for each such call.
    """

    __slots__ = ("cycles", "doubts", "engine", "memo", "spec", "target")

    def __init__(self, spec: "Spec", use: Use, cycles: float) -> None:
        self.spec = spec
        self.engine = use.engine
        self.cycles = cycles
        self.target = use.target
        self.doubts = tuple(use.doubts)
        self.memo: Any = None


@dataclass(eq=False, repr=False)
class Spec:
    """One row of the table."""

    body: Callable[..., Any]
    engine: Choice
    cost: Cost
    operands: dict[str, Operand]
    rules: tuple[Rule, ...]
    cost_source: str
    always: bool
    resolve: Callable[[Any, dict[str, Any]], None] | None
    space: str

    def __post_init__(self) -> None:
        self.name = self.body.__name__
        self.cost_source = self.cost_source or COST_PAGE.format(self.name)
        signature = inspect.signature(self.body)
        self.defaults = {n: p.default for n, p in signature.parameters.items()}
        shown = [p for n, p in signature.parameters.items() if not n.startswith("_")]
        self.signature = signature.replace(parameters=shown)  # `_result` is filled in by resolve
        parameters = self.signature.parameters
        unknown = self.operands.keys() - parameters.keys()
        assert not unknown, f"{self.name}: operands {unknown} are not in the signature"
        self.names = tuple(parameters)
        self.required = {n for n, p in parameters.items() if p.default is p.empty}
        self.checked: dict[Any, Checked] = {}
        self.inputs = tuple(n for n, o in self.operands.items() if o.reads)
        self.outputs = tuple(n for n, o in self.operands.items() if o.writes)

    @property
    def since(self) -> str:
        """The version of NKI that brought it."""
        return versions(f"nki.{self.space}")[self.name]

    @property
    def page(self) -> str:
        """The address of AWS's page."""
        return page(f"nki.{self.space}", self.name)

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
            raise self._wrong_arguments(unknown, twice, missing)
        return {**self.defaults, **given, **kwargs}

    def check(self, args: dict[str, Any], target: Target) -> Checked:
        """Every operand, the choice of the engine, every rule, and the cost."""
        use = Use(self.name, self.operands, self.engine, args, target)
        for name, operand in self.operands.items():
            operand.check(use, name, args[name])
        use.engine = self.engine if isinstance(self.engine, engine) else self.engine(use)
        for rule in self.rules:
            rule(use)
        cycles = self.cost(use)
        if cycles and any(getattr(args[name], "indirect", None) for name in self.operands):
            cycles = max(cycles, DYNAMIC_CYCLES)
        return Checked(self, use, cycles)

    def _wrong_arguments(
        self, unknown: Set[str], twice: Set[str], missing: Set[str]
    ) -> NkiValidationError:
        """The error for a call of an instruction that does not fit its signature."""
        function = f"nki.isa.{self.name}"
        for argument in sorted(unknown):
            return unknown_argument(function, argument, self.names)
        if missing & set(self.outputs):
            return leftovers()["nki.isa.*()"].error(f"{function} without {min(missing)}")
        ordered = [name for name in self.names if name in (missing or twice)]
        return refuse(
            f"{self.name}: {', '.join(ordered)} {'missing' if missing else 'given twice'}.",
            f"its signature is {self.name}{self.signature}.",
            "pass every operand once, by name.",
        )

    def details(self) -> str:
        """What the row says of an instruction, without its name and signature."""
        runs_on = (
            ENGINE_NAMES[self.engine]
            if isinstance(self.engine, engine)
            else sentence(self.engine).removesuffix(".")
        )
        width = max(map(len, self.operands), default=0)
        wrapped = textwrap.TextWrapper(100, "    ", " " * (width + 6))
        operands = [
            wrapped.fill(f"{name:{width}}  {operand.describe()}")
            for name, operand in self.operands.items()
        ]
        rules = [f"    {text}" for text in dict.fromkeys(map(sentence, self.rules))]
        parts = [
            inspect.cleandoc(self.body.__doc__ or ""),
            f"Runs on: {runs_on}.",
            "\n".join(["Operands:", *operands]) if operands else "",
            "\n".join(["Rules:", *rules]) if rules else "",
            f"Cost: {sentence(self.cost)}\n    Source: {self.cost_source}",
            f"Since NKI {self.since}: {self.page}",
        ]
        return "\n\n".join(part for part in parts if part)

    def document(self) -> str:
        """All that the row says: signature, meaning, engine, operands, rules and cost.

        >>> from utils.nki.simulator.instructions.vector import memset
        >>> print(memset.spec.document())  # doctest: +ELLIPSIS
        memset(dst, value, engine=nisa.engine.unknown)
        <BLANKLINE>
        ...
        Operands:
            dst  written, in SBUF or PSUM
        ...
        """
        return f"{self.name}{self.signature}\n\n{self.details()}"


def _key(value: Any) -> Any:
    if type(value) in (list, tuple):
        return tuple(_key(item) for item in value)
    return type(value), (value.key if hasattr(value, "key") else value)


def verdict(spec: Spec, bound: dict[str, Any], target: Target) -> Checked:
    """What the table says of a call with these arguments; looked up for a layout known before.

    The key has the types too: 7 and 7.0 are equal, but not the same to a bitwise operator.
    """
    values = bound.values()
    key: Any = (
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
        key = (target.name, *[_key(value) for value in values])
        try:
            checked = spec.checked.get(key)
        except TypeError:
            checked, key = None, None
    if checked is None:
        checked = spec.check(bound, target)
        if key is not None:
            spec.checked[key] = checked
    return checked
