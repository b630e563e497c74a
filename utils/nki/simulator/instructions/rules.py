"""Rules that several instructions share, and on which engine an instruction runs."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from utils.nki.simulator.enums import ENGINE_NAMES, MemoryRegion, engine, reduce_cmd
from utils.nki.simulator.errors import is_whole
from utils.nki.simulator.operands import PSUM, Rule, Use
from utils.nki.simulator.operators import NOT_COMPILED, OPERATORS, Operator
from utils.nki.simulator.table import describe_as, for_operands, join_names
from utils.nki.simulator.tensor import Tensor

CHIPS = {2: "Trainium1 (gen2)", 3: "Trainium2 (gen3)", 4: "Trainium3 (gen4)"}


def named_engine(use: Use, *allowed: engine) -> engine:
    """The engine that the call names, or `unknown`; refused if the instruction has no such form."""
    named = use.args["engine"]
    if named is engine.unknown or named in allowed:
        return named
    names = ", ".join(f"nisa.engine.{item.name}" for item in allowed)
    raise use.refuse(
        f"engine is {named!r}; allowed: {names}.",
        "other engines have no such instruction.",
        f"pass engine=nisa.engine.{allowed[0].name}, or leave it out.",
    )


def _engines(default: engine, others: tuple[engine, ...]) -> str:
    names = join_names(tuple(f"the {ENGINE_NAMES[other]}" for other in others), "or")
    return f"{ENGINE_NAMES[default]}, on request {names}."


def named_engine_or(default: engine, *others: engine) -> Callable[[Use], engine]:
    """The engine that the call names, else `default`."""

    @describe_as(_engines(default, others))
    def choose(use: Use) -> engine:
        named = named_engine(use, default, *others)
        return default if named is engine.unknown else named

    return choose


def gpsimd_without_psum(use: Use) -> None:
    """GpSimd has no path to PSUM."""
    if use.engine is not engine.gpsimd:
        return
    power = getattr(use.args.get("op"), "name", "") == "power"  # on no other engine
    for name in use.operands:
        value = use.args[name]
        if isinstance(value, Tensor) and value.buffer is PSUM:
            raise use.refuse(
                f"{name} is in PSUM, and {'nl.power' if power else 'this'} runs on GpSimd, which "
                "reaches SBUF only.",
                "GpSimd has no read or write path to PSUM.",
                ("" if power else "use engine=nisa.engine.vector where the instruction has it, or ")
                + f"nisa.tensor_copy {name} to an SBUF tile first.",
            )


def needs_generation(least: int) -> Rule:
    """The instruction exists from this generation on."""

    @describe_as(f"Exists from {CHIPS[least]} on.")
    def rule(use: Use) -> None:
        here = use.target.generation
        if here < least:
            raise use.refuse(
                f"the target is {use.target.name}, {CHIPS[here]}; the instruction needs "
                f"{CHIPS[least]} or later.",
                "older NeuronCores do not decode it.",
                f"write it with instructions of {CHIPS[here].split()[0]}, or set "
                f"NEURON_PLATFORM_TARGET_OVERRIDE=trn{least - 1}.",
            )

    return rule


@for_operands
def same_size(use: Use, *names: str) -> None:
    """{names} have the same partitions and as many elements in each."""
    first = use.args[names[0]]
    for name in names[1:]:
        other = use.args[name]
        if (first.shape[0], first.elements) != (other.shape[0], other.elements):
            raise use.refuse(
                f"the shapes of {names[0]} {first.shape} and {name} {other.shape} differ.",
                "the engine reads and writes its operands element by element; nothing is "
                "broadcast.",
                _broadcast_hint(first.shape, other.shape),
            )


def _broadcast_hint(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    for one, other in ((a, b), (b, a)):
        if one[0] == other[0] and max(one[1:]) == 1:
            return "a value for each partition, broadcast along the row, is nisa.tensor_scalar."
        if one[0] == 1 and one[1:] == other[1:]:
            return (
                "to spread one row over all partitions use a matmul with ones, "
                "nisa.nc_stream_shuffle, or a DMA with a stride of 0."
            )
    return "slice or allocate them with the same shape."


@for_operands
def not_both_in_psum(use: Use, first: str, second: str) -> None:
    """At most one of {first} and {second} lies in PSUM."""
    pair = (use.args[first], use.args[second])
    if all(getattr(item, "buffer", None) is MemoryRegion.psum for item in pair):
        raise use.refuse(
            f"{first} and {second} are both in PSUM; one of 2 may be.",
            "the Vector Engine has one read path to PSUM.",
            f"nisa.tensor_copy {second} to an SBUF tile first.",
        )


@for_operands
def same_types(use: Use, first: str, second: str) -> None:
    """{first} and {second} have the same type."""
    types = [item.dtype for name in (first, second) if hasattr(item := use.args[name], "dtype")]
    if len(set(types)) > 1:
        raise use.refuse(
            f"{first} is {types[0]}, {second} is {types[1]}.",
            "elements are moved bit by bit, without a conversion.",
            "give both the same type; convert with nisa.tensor_copy.",
        )


@for_operands
def one_element(use: Use, name: str) -> None:
    """{name} has one element."""
    tensor = use.args[name]
    if tensor.size != 1:
        raise use.refuse(
            f"{name} has {tensor.size} elements {tensor.shape}, it takes one: (1, 1).",
            "the instruction takes one number.",
            f"slice one element: {name}[0:1, 0:1].",
        )


FP32 = frozenset(("float32",))
INT32 = frozenset(("int32", "uint32"))


# ---- operators -------------------------------------------------------------------------------


def _suggestion(value: Any) -> str:
    name = getattr(value, "__name__", value if isinstance(value, str) else "")
    name = {"max": "maximum", "min": "minimum", "sum": "add", "mult": "multiply"}.get(name, name)
    return f"pass nl.{name}." if name in OPERATORS else "pass an operator of nl, such as nl.add."


@for_operands
def operator(use: Use, name: str, *kinds: str, optional: bool = False) -> None:
    """{name} is one of the {kinds} operators."""
    value = use.args[name]
    if value is None and optional:
        return
    if not isinstance(value, Operator):
        raise use.refuse(
            f"{name} is {value!r}, which is no operator of NKI.",
            "an engine has a fixed list of operators; nl holds one name for each.",
            _suggestion(value),
        )
    if value.kind not in kinds or (value.is_unary and not _takes_unary(use, name)):
        allowed = [
            f"nl.{item.name}"
            for item in OPERATORS.values()
            if item.kind in kinds and (not item.is_unary or _takes_unary(use, name))
        ]
        raise use.refuse(
            f"{name} is {value!r}; allowed: {', '.join(allowed)}.",
            "the engine of this instruction has no other operators at this place.",
            "activation functions run on the Scalar Engine: nisa.activation."
            if value.kind == "activation"
            else "choose one of these, or another instruction.",
        )
    generation_of(use, name, value)
    if value.name in NOT_COMPILED:
        use.doubt(
            f"{name} is {value!r}.",
            "it simulates, and is known to fail in the compilers of NKI 0.3 to 0.6.",
            "divide with nisa.reciprocal and a product; keep remainders out of the kernel.",
        )


def _takes_unary(use: Use, name: str) -> bool:
    """Unary operators have a place where the other operand may be left out."""
    return use.instruction in ("tensor_scalar", "tensor_scalar_reduce") or (
        name == "op" and use.instruction != "tensor_tensor"
    )


def generation_of(use: Use, name: str, value: Operator) -> None:
    """Refuse an operator that the generation of the target does not have."""
    if value.name in ("abs_max", "abs_min") and use.target.generation < 4:
        raise use.refuse(
            f"{name} is {value!r} on {CHIPS[use.target.generation]}; it needs {CHIPS[4]}.",
            "earlier engines do not compare by magnitude.",
            "take nl.maximum of the value and of its negative.",
        )


@for_operands
def one_of(
    use: Use, name: str, *names: str, optional: bool = False,
    why: str = "this is what the accumulators of the engine can do.", fix: str = "",
) -> None:  # fmt: skip
    """Operators allowed for {name}: {names}."""
    value = use.args[name]
    if value is None and optional:
        return
    if not isinstance(value, Operator) or value.name not in names:
        raise use.refuse(
            f"{name} is {value!r}; allowed: {', '.join(f'nl.{item}' for item in names)}.",
            why,
            fix or f"pass nl.{names[0]}, or reduce in a second instruction, nisa.tensor_reduce.",
        )
    generation_of(use, name, value)


@for_operands
def operand_of(use: Use, op_name: str, name: str) -> None:
    """{name} is there exactly when {op_name} takes an operand; tiles are float32."""
    op, value = use.args[op_name], use.args[name]
    if op is None or op.is_unary:
        if value is not None and (isinstance(value, Tensor) or value != 0):
            raise use.refuse(
                f"{name} is {value!r} while {op_name} is {op!r}.",
                "an operator of one value has no second operand."
                if op is not None
                else "an operand without its operator is not used.",
                f"pass {name}=None." if op is not None else f"pass {op_name} too.",
            )
        return
    if value is None:
        raise use.refuse(
            f"{op_name} is {op!r} and {name} is None.",
            f"{op!r} combines two values.",
            f"pass {name}: a number, or a column of one value per partition.",
        )
    if op.is_bitwise:
        _integer_operand(use, op, name, value)
    elif isinstance(value, Tensor) and value.dtype != "float32":
        raise use.refuse(
            f"{name} is a tile of {value.dtype}; operand tiles must be float32.",
            "the engine loads one FP32 number for each partition and does not convert it.",
            f"nisa.tensor_copy it into a float32 tile of shape {value.shape} first.",
        )


def _integer_operand(use: Use, op: Operator, name: str, value: Any) -> None:
    is_integer = (
        value.dtype.kind == "int"
        if isinstance(value, Tensor)
        else isinstance(value, (int, np.integer))
    )
    if not is_integer:
        result = value.dtype if isinstance(value, Tensor) else repr(value)
        raise use.refuse(
            f"{name} is {result} while the operator is {op!r}, which takes integers.",
            "operators on bits read bit patterns and convert nothing.",
            f"pass an integer, or a tile of an integer type, as {name}.",
        )


@for_operands
def integers_for_bits(use: Use, op_name: str, *names: str) -> None:
    """{names} are integers where {op_name} works on bits."""
    op = use.args[op_name]
    if op is None or not op.is_bitwise:
        return
    for name in names:
        dtype = use.args[name].dtype
        if dtype.kind != "int":
            raise use.refuse(
                f"{name} is {dtype} while {op_name} is {op!r}, which takes integers.",
                "operators on bits read bit patterns and convert nothing.",
                f"use a tile of an integer type, or {name}.view(nl.uint{8 * dtype.itemsize}) "
                "for the bits of a float.",
            )


@for_operands
def flag(use: Use, *names: str) -> None:
    """{names}: True or False."""
    for name in names:
        if use.args[name] not in (True, False):
            raise use.refuse(
                f"{name} is {use.args[name]!r}, it is True or False.",
                "it is a bit of the instruction.",
                f"pass {name}=True or leave it out.",
            )


@for_operands
def numbers(use: Use, *names: str) -> None:
    """{names}: of a type with one number in each element."""
    for name in names:
        dtype = use.args[name].dtype
        if dtype.kind == "packed":
            raise use.refuse(
                f"{name} is {dtype}, four numbers in one element.",
                "packed types are made by nisa.quantize_mx and read by nisa.nc_matmul_mx only.",
                "compute in bfloat16 or float32, and quantize the result.",
            )


@for_operands
def an_integer(
    use: Use, name: str, low: int = -(2**31), high: int = 2**31 - 1,
    why: str = "the instruction carries it as an int32, known at compile time.",
    fix: str = "pass a Python int.",
) -> None:  # fmt: skip
    """{name} is an integer from {low} to {high}."""
    value = use.args[name]
    if not is_whole(value) or not low <= value <= high:
        bits = " of 32 bits" if (low, high) == (-(2**31), 2**31 - 1) else ""
        raise use.refuse(
            f"{name} is {value!r}; it is an integer{bits} from {low} to {high}.", why, fix
        )


# ---- accumulators ----------------------------------------------------------------------------


@for_operands
def command(use: Use, allowed: Iterable[reduce_cmd], *, load: str = "") -> None:
    """Allowed for reduce_cmd: {allowed}."""
    result = use.args["reduce_cmd"]
    if result not in allowed:
        names = ", ".join(f"nisa.reduce_cmd.{item.name}" for item in allowed)
        raise use.refuse(
            f"reduce_cmd is {result!r}; allowed: {names}.",
            "the accumulators of this engine have no other command here.",
            "reset_reduce begins a new reduction, reduce goes on with the last one.",
        )
    if not load:
        return
    begin = use.args[load]
    if (result is reduce_cmd.load_reduce) and begin is None:
        raise use.refuse(
            f"reduce_cmd is load_reduce and {load} is None.",
            "load_reduce puts a value into the accumulators first.",
            f"pass {load}: a number, or a float32 column.",
        )
    unset = begin is None or (not isinstance(begin, Tensor) and begin == 0)
    if result is not reduce_cmd.load_reduce and not unset:
        raise use.refuse(
            f"{load} is {begin!r} while reduce_cmd is {result.name}.",
            "only load_reduce reads it.",
            f"pass reduce_cmd=nisa.reduce_cmd.load_reduce, or leave {load} out.",
        )
