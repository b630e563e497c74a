"""The documentation of an instruction as text, made from its row of the table.

`help(nisa.tensor_copy)` shows it, and so does `nisa.tensor_copy?` in a notebook. Rules, costs and
choices of an engine say what they are in the first sentence of their docstring; functions that are
made by others get theirs with `stated`.
"""

import inspect
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from utils.nki.simulator.enums import engine

if TYPE_CHECKING:
    from utils.nki.simulator.instruction import Spec
    from utils.nki.simulator.operands import Operand

Made = TypeVar("Made", bound=Callable[..., Any])

ENGINES = {
    engine.tensor: "Tensor Engine",
    engine.vector: "Vector Engine",
    engine.scalar: "Scalar Engine",
    engine.gpsimd: "GpSimd Engine",
    engine.dma: "DMA engines",
    engine.sync: "Sync Engine",
}


def stated(sentence: str) -> Callable[[Made], Made]:
    """Give a rule or cost that another function makes the sentence its documentation shows.

    >>> @stated("src has 8 elements.")
    ... def rule(use): ...
    >>> rule.__doc__
    'src has 8 elements.'
    """

    def named(made: Made) -> Made:
        made.__doc__ = sentence
        return made

    return named


def listed(names: tuple[str, ...], last: str = "and") -> str:
    """Names in a sentence, with this word before the last.

    >>> listed(("dst", "data1", "data2"))
    'dst, data1 and data2'
    """
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def sentence(of: Any) -> str:
    """The first paragraph of a docstring on one line; "" where there is none."""
    return " ".join((of.__doc__ or "").partition("\n\n")[0].split())


def details(spec: "Spec") -> str:
    """What the row says of an instruction, without its name and signature."""
    runs_on = ENGINES.get(spec.engine) or sentence(spec.engine).removesuffix(".")
    width = max(map(len, spec.operands), default=0)
    operands = [
        textwrap.fill(
            f"{name:{width}}  {_operand(operand)}",
            100,
            initial_indent="    ",
            subsequent_indent=" " * (width + 6),
        )
        for name, operand in spec.operands.items()
    ]
    rules = [f"    {text}" for text in dict.fromkeys(map(sentence, spec.rules))]
    parts = [
        inspect.cleandoc(spec.body.__doc__ or ""),
        f"Runs on: {runs_on}.",
        "\n".join(["Operands:", *operands]) if operands else "",
        "\n".join(["Rules:", *rules]) if rules else "",
        f"Cost: {sentence(spec.cost)}\n    Source: {spec.cost_source}",
        f"Since NKI {spec.since}: {spec.page}",
    ]
    return "\n\n".join(part for part in parts if part)


def document(spec: "Spec") -> str:
    """All that the table says of an instruction: signature, meaning, engine, operands, rules, cost.

    >>> from utils.nki.simulator.instructions.fill import memset
    >>> print(document(memset.spec))  # doctest: +ELLIPSIS
    memset(dst, value, engine=nisa.engine.unknown)
    <BLANKLINE>
    ...
    Operands:
        dst  written, in SBUF or PSUM
    ...
    """
    return f"{spec.name}{spec.signature}\n\n{details(spec)}"


def _operand(operand: "Operand") -> str:
    if operand.reads and operand.writes:
        text = "read and written"
    else:
        text = "read" if operand.reads else "written"
    text += f", in {operand.places}"
    if operand.many:
        text += ", a list of tensors"
    if operand.column:
        text += ", one value for each partition"
    if operand.number:
        text += ", or a number"
    if operand.optional:
        text += ", or None"
    if operand.dtypes:
        text += f"; {', '.join(sorted(operand.dtypes))}"
    return text
