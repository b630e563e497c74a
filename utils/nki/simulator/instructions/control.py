"""Registers and scalars of the sequencers, and how two cores meet and exchange tiles."""

import functools
from typing import Any

import numpy as np

from utils.nki.simulator.enums import MemoryRegion, dma_engine, engine
from utils.nki.simulator.errors import doubt, learner_line, refuse
from utils.nki.simulator.instruction import instruction, nisa
from utils.nki.simulator.instructions.costs import by_bytes
from utils.nki.simulator.instructions.rules import (
    named_engine_or,
    needs_generation,
    one_element,
    same_size,
    same_types,
)
from utils.nki.simulator.operands import DMA_MEMORY, SBUF, Use, result, tile
from utils.nki.simulator.program import running
from utils.nki.simulator.registers import NkiScalar, VirtualRegister, whole_number
from utils.nki.simulator.table import for_operands

INTEGERS = frozenset(("uint8", "int8", "uint16", "int16", "uint32", "int32"))
UNPUBLISHED = "not published"
SEQUENCER_CYCLES = 64
"""What an instruction of a sequencer costs here: as little as any instruction."""


@for_operands
def a_register(use: Use, name: str) -> None:
    """{name} is a register."""
    value = use.args[name]
    if not isinstance(value, VirtualRegister):
        raise use.refuse(
            f"{name} is {value!r}, it takes a register.",
            "sequencers keep such numbers in registers of their own.",
            f"{name} = nisa.register_alloc(0).",
        )


def register_alloc(x: int | None = None) -> VirtualRegister:
    """A new register, holding `x` if it is given."""
    running("nisa.register_alloc")
    return VirtualRegister(None if x is None else whole_number(x, "register_alloc: x"))


def _cycles(use: Use) -> float:
    """As little as any instruction."""
    return SEQUENCER_CYCLES


@instruction(
    engine.sync, _cycles, cost_source=UNPUBLISHED, always=True,
    src=tile(memory=DMA_MEMORY, dtypes=INTEGERS),
    rules=(a_register("dst"), one_element("src")),
)  # fmt: skip
def register_load(dst, src):
    """Put the one integer of `src` (HBM or SBUF) into a register."""
    _counts_a_loop(dst)
    dst.put(int(src.raw().reshape(-1)[0]) if running("register_load").program.values else None)


@instruction(
    engine.sync, _cycles, cost_source=UNPUBLISHED,
    dst=result(memory=DMA_MEMORY, dtypes=INTEGERS),
    rules=(a_register("src"), one_element("dst")),
)  # fmt: skip
def register_store(dst, src):
    """Write the number of a register to one element of HBM or SBUF."""
    limits = np.iinfo(dst.dtype.numpy)
    value = np.clip(src.read("register_store"), limits.min, limits.max)
    dst.put_raw(np.full(dst.shape, value, dst.dtype.numpy))


def a_register_or_int(use: Use) -> None:
    """src is a register or a Python int."""
    if not isinstance(use.src, VirtualRegister):
        whole_number(use.src, "register_move: src")


@instruction(
    engine.sync, _cycles, cost_source=UNPUBLISHED, always=True,
    rules=(a_register("dst"), a_register_or_int),
)  # fmt: skip
def register_move(dst, src):
    """Put a Python int or the number of another register into a register."""
    _counts_a_loop(dst)
    if not isinstance(src, VirtualRegister):
        dst.put(int(src))
    else:
        dst.put(src.value if src.value is None and not src.unset else src.read("register_move"))


def _counts_a_loop(register: VirtualRegister) -> None:
    if register.loop:
        doubt(
            "register: a value is put into the register that counts a loop.",
            "the loop keeps its own count, so this does not change it.",
            "use another register, or nl.while_loop, whose body returns the next condition.",
        )


# ---- scalars of NKI 0.7 ----------------------------------------------------------------------


SCALARS = frozenset(("int32", "int64"))


def _new_scalar(core: Any, args: dict[str, Any]) -> None:
    if not isinstance(args["_result"], NkiScalar):  # a recorded program has one
        args["_result"] = NkiScalar(str(getattr(args["src"], "dtype", "int32")))


@instruction(
    engine.sync, _cycles, cost_source=UNPUBLISHED, always=True, resolve=_new_scalar,
    src=tile(memory=DMA_MEMORY, dtypes=SCALARS),
    rules=(one_element("src"),),
)  # fmt: skip
def scalar_load(src, _result=None):
    """Read the one integer of `src` (HBM or SBUF); returns an NkiScalar of the same width."""
    _result.put(int(src.raw().reshape(-1)[0]) if running("scalar_load").program.values else None)


_recorded = nisa.scalar_load


@functools.wraps(_recorded)
def _scalar_load(*args: Any, **kwargs: Any) -> NkiScalar:
    return _recorded(*args, **kwargs).args["_result"]


nisa.scalar_load = _scalar_load


def a_scalar(use: Use) -> None:
    """value is a scalar of the width of dst."""
    value = use.value
    if not isinstance(value, NkiScalar):
        raise use.refuse(
            f"value is {value!r}, it takes a scalar.",
            "the instruction stores what the device has computed.",
            "a number that is known when the kernel is compiled: nisa.memset(dst, value).",
        )
    if value.dtype != use.dst.dtype:
        raise use.refuse(
            f"value is {value.dtype}, dst is {use.dst.dtype}.",
            "a scalar is written at its own width.",
            f"allocate dst with dtype=nl.{value.dtype}.",
        )


@instruction(
    engine.sync, _cycles, cost_source=UNPUBLISHED,
    dst=result(memory=DMA_MEMORY, dtypes=SCALARS),
    rules=(a_scalar, one_element("dst")),
)  # fmt: skip
def scalar_store(dst, value):
    """Write a scalar to one element of HBM or SBUF."""
    dst.put_raw(np.full(dst.shape, value.read("scalar_store"), dst.dtype.numpy))


# ---- two cores -------------------------------------------------------------------------------


def both_cores(use: Use) -> None:
    """cores is (0, 1)."""
    cores = use.cores
    if not isinstance(cores, (tuple, list)) or sorted(cores) != [0, 1]:
        raise use.refuse(
            f"cores is {cores!r}; allowed: (0, 1).",
            "a logical core has two physical ones.",
            "pass cores=(0, 1).",
        )


@instruction(
    named_engine_or(engine.gpsimd, engine.vector, engine.scalar, engine.tensor, engine.sync),
    _cycles, cost_source=UNPUBLISHED, always=True,
    data=tile(memory=frozenset({MemoryRegion.shared_hbm})),
    rules=(needs_generation(3), both_cores),
)  # fmt: skip
def core_barrier(data, cores, engine=engine.gpsimd):
    """Wait until the other core is here too, so that what both wrote to `data` can be read."""
    core = running("core_barrier")
    if core.grid == 1:
        doubt(
            "core_barrier: the kernel runs on one core.",
            "there is no other core to wait for.",
            "launch it as kernel[2](...), or leave the barrier out.",
        )
        return
    met = core.program.meetings.setdefault(("barrier", core.barriers), set())
    met.add(core.index)
    number, core.barriers = core.barriers, core.barriers + 1
    core.switch.wait(core, lambda: len(met) == core.grid, f"core_barrier {number}")


def ranks(use: Use) -> None:
    """A core exchanges tiles with one other core, 0 or 1."""
    for name in ("send_to_rank", "recv_from_rank"):
        if use.args[name] not in (0, 1):
            raise use.refuse(
                f"{name} is {use.args[name]!r}; allowed are 0 and 1.",
                "a logical core has two physical ones.",
                f"pass {name}=1 - nl.program_id(0).",
            )
    if use.send_to_rank != use.recv_from_rank:
        raise use.refuse(
            f"send_to_rank is {use.send_to_rank}, recv_from_rank is {use.recv_from_rank}.",
            "with two cores the one that a tile goes to is the one that a tile comes from.",
            "pass 1 - nl.program_id(0) for both.",
        )


def small_enough(use: Use) -> None:
    """The DMA of GpSimd moves at most 256 elements of a partition."""
    limit = 256 * use.src.dtype.itemsize
    match_ = use.src.elements * use.src.dtype.itemsize
    if use.args["dma_engine"] is dma_engine.gpsimd_dma and match_ > limit:
        raise use.refuse(
            f"{match_} bytes per partition with dma_engine.gpsimd_dma, at most {limit} for "
            f"{use.src.dtype}.",
            "the GpSimd Engine's own DMA moves small tiles.",
            "use dma_engine=nisa.dma_engine.dma, or exchange in pieces.",
        )


@instruction(
    engine.dma, by_bytes, cost_source=UNPUBLISHED, always=True,
    src=tile(memory=frozenset({SBUF})), dst=result(memory=frozenset({SBUF})),
    rules=(
        needs_generation(3), ranks, same_size("src", "dst"), same_types("src", "dst"), small_enough,
    ),
)  # fmt: skip
def sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine=dma_engine.dma):
    """Send `src` to the other core and receive its `src` into `dst`; both cores call it.

    The n-th call of a core with one `pipe_id` meets the n-th of the other core.
    """
    core = running("sendrecv")
    if core.grid == 1:
        raise refuse(
            "sendrecv: the kernel runs on 1 core, it takes 2.",
            "tiles are exchanged between the two cores of a logical core.",
            "launch it as kernel[2](...), and branch on nl.num_programs() for one core.",
        )
    if send_to_rank == core.index:
        _exchange([(dst, src)], core)
        return
    turn = core.pipes.get(pipe_id, 0)
    core.pipes[pipe_id] = turn + 1
    met = core.program.meetings.setdefault(("pipe", pipe_id, turn), {})
    met[core.index] = (src, dst, learner_line())
    if len(met) == core.grid:
        (one, into_one, _), (two, into_two, _) = met.values()
        _exchange([(into_one, two), (into_two, one)], core)
    core.switch.wait(core, lambda: len(met) == core.grid, f"sendrecv of pipe {pipe_id!r}")


def _exchange(pairs: list[tuple[Any, Any]], core: Any) -> None:
    """Copy each second tile to the first, all of them read before any is written."""
    for into, sent in pairs:
        if (into.shape[0], into.elements, into.dtype) != (sent.shape[0], sent.elements, sent.dtype):
            raise refuse(
                f"sendrecv: core {core.index} meets a tile {sent.shape} {sent.dtype!r} with "
                f"{into.shape} {into.dtype!r} on the other core.",
                "both cores exchange tiles of one shape and type.",
                "give both calls with this pipe_id the same shapes.",
            )
    if core.program.values:
        for (into, _), stored in zip(pairs, [sent.raw().copy() for _, sent in pairs], strict=True):
            into.put_raw(stored)
