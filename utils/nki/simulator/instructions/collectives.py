"""Collectives between ranks: the values that each gets, and the time of the course's model.

A rank is a logical core with its own memory. `nki.simulate(kernel, ranks=4)` runs one kernel on
four of them, and `nki.profile(kernel, ranks=4)` estimates one; the n-th collective that a rank
issues in a group meets the n-th of the others. A time is that of `utils.chip.collectives` for the
fabric of one instance with this chip, held by the Sync Engine: an estimate, which leaves out what
collectives do to other DMA. Rules are those of AWS's pages (nki.collectives, NKI 0.7).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from utils.chip import collectives as model
from utils.nki.simulator.enums import HBM, engine
from utils.nki.simulator.errors import doubt, learner_line, refuse, show_line
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.rules import one_of
from utils.nki.simulator.operands import DMA_MEMORY, SBUF, Rule, Use, result, tile
from utils.nki.simulator.program import Core, Instruction, running
from utils.nki.simulator.registers import VirtualRegister
from utils.nki.simulator.table import describe_as, for_operands
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.uses import tensors_of

SPACE = "collectives"
FABRICS = {"trn1": "trn1.32xlarge", "trn2": "trn2.48xlarge", "trn3": "trn2.48xlarge"}
"""The instance whose links are modelled; those of Trainium3 stand for want of a model as Trn2's."""
COST = "utils/chip/collectives: the course's model of links, held to published measurements"
IN_HBM = frozenset(HBM)
WORDS = frozenset(("uint32",))
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "minimum": np.minimum,
    "maximum": np.maximum,
}
CHANNELS = 4


class rg_partition_op(Enum):  # noqa: N801 (NKI's own spelling)
    """How ranks are put into lists: those with the same value of (rank, operand) are together."""

    bitwise_and = "bitwise_and"
    div = "div"
    mod = "mod"

    def of(self, rank: int, operand: int) -> int:
        """The number of the list that a rank belongs to."""
        if self is rg_partition_op.bitwise_and:
            return rank & operand
        return rank // operand if self is rg_partition_op.div else rank % operand


@dataclass
class ReplicaGroup:
    """The ranks of a collective as lists; each list is a collective of its own.

    >>> ReplicaGroup.from_partition_op(4, rg_partition_op.mod, 2).groups
    [[0, 2], [1, 3]]
    """

    groups: list[list[int]]

    @staticmethod
    def from_partition_op(world_size: int, op: rg_partition_op, operand: int) -> "ReplicaGroup":
        """The lists of ranks 0 to world_size - 1 that `op` puts together."""
        lists: dict[int, list[int]] = {}
        for rank in range(world_size):
            lists.setdefault(op.of(rank, operand), []).append(rank)
        return ReplicaGroup(list(lists.values()))


@dataclass
class World:
    """All ranks of a simulation: how many, and where they meet. alone: one rank is run, to know
    its time, and meets nobody."""

    ranks: int
    alone: bool = False
    meetings: dict[Any, dict[int, Any]] = field(default_factory=dict)


def _rank(core: Core) -> int:
    return core.program.rank


def members(group: Any) -> list[int]:
    """The list of a group that the running rank is in. Raises NkiValidationError if in none."""
    core = running("nki.collectives")
    lists = group.groups if isinstance(group, ReplicaGroup) else None
    good = isinstance(lists, (list, tuple)) and all(
        isinstance(ranks, (list, tuple)) for ranks in lists
    )
    every = [rank for ranks in lists for rank in ranks] if good and lists else []
    ranks = core.program.world.ranks if core.program.world else 1
    if not every or len(set(every)) != len(every):
        raise refuse(
            f"replica_group is {group!r}.",
            "a group has lists of ranks, and no rank is in two of them.",
            "pass ReplicaGroup([[0, 1, 2, 3]]).",
        )
    if not all(isinstance(rank, int) and 0 <= rank < ranks for rank in every):
        raise refuse(
            f"replica_group has the ranks {sorted(every)}; this simulation has {ranks}.",
            "a rank takes part if it is simulated.",
            f"nki.simulate(kernel, ranks={max(every) + 1})(arrays with one row for each rank).",
        )
    mine = _rank(core)
    for own in lists or ():
        if mine in own:
            return list(own)
    raise refuse(
        f"rank {mine} calls a collective of {lists}.",
        "who is in no list does not take part, and would be waited for by nobody.",
        "put every rank that issues it into a list.",
    )


# ---- meeting -------------------------------------------------------------------------------------


def _meet(
    name: str, ranks: list[int], given: Any, finish: Callable[[dict[int, Any]], None]
) -> None:
    """Wait until all `ranks` are here, then `finish` with what each gave, once.

    Of two cores of a rank the first one acts, and both wait.
    """
    core = running(name)
    world = core.program.world
    if core.program.values and (world is None or not world.alone):
        turn = core.pipes.get(("collective", *ranks), 0)
        core.pipes["collective", *ranks] = turn + 1
        meetings = world.meetings if world is not None else core.program.meetings
        met = meetings.setdefault(("collective", *ranks, turn), {})
        met[_rank(core), core.index] = (name, learner_line(), given)
        everybody = {(rank, index) for rank in ranks for index in range(core.grid)}
        _same(met)
        if met.keys() == everybody:
            first = {rank: met[rank, 0][2] for rank in ranks}
            finish(first)
        if core.switch is not None:
            core.switch.wait(core, lambda: met.keys() == everybody, f"{name} of ranks {ranks}")


def _same(met: dict[Any, Any]) -> None:
    """All ranks issue the same collective."""
    (name, line, _), *others = met.values()
    for other, where, _ in others:
        if other != name:
            raise refuse(
                f"{other} meets {name} of another rank"
                + (f" (at {show_line(line)})." if line else "."),
                "the ranks of a group issue the same collectives in the same order.",
                "take collectives out of branches on the rank.",
                where,
            )


# ---- rules and costs -----------------------------------------------------------------------------


def _first(use: Use, name: str = "srcs") -> Tensor:
    return use.args[name][0]


def a_group(use: Use) -> None:
    """replica_group has the running rank in one list."""
    members(use.args["replica_group"])


@describe_as("As many srcs as dsts; several only in HBM; all in HBM or all in SBUF.")
def together(use: Use) -> None:
    tensors = [*use.args["srcs"], *use.args["dsts"]]
    on_chip = {tensor.buffer is SBUF for tensor in tensors}
    counts = len(use.args["srcs"]), len(use.args["dsts"])
    if counts[0] != counts[1] or len(on_chip) != 1 or (True in on_chip and counts[0] > 1):
        raise use.refuse(
            f"{counts[0]} srcs and {counts[1]} dsts in "
            f"{sorted({tensor.buffer.value for tensor in tensors})}.",
            "tensors are in one memory, and only those of HBM move several at a time.",
            "pass lists of one tensor each, or keep all in HBM.",
        )


def one_each(use: Use) -> None:
    """One tensor in srcs, one in dsts."""
    if len(use.args["srcs"]) != 1 or len(use.args["dsts"]) != 1:
        raise use.refuse(
            f"{len(use.args['srcs'])} srcs and {len(use.args['dsts'])} dsts.",
            "the instruction moves one tensor.",
            "pass lists of one tensor each.",
        )


a_reduction = one_of(
    "op", *REDUCTIONS, why="the engines of the network add and compare.",
    fix="average by a division afterwards.",
)  # fmt: skip


def sizes(larger: str) -> Rule:
    """The shapes of each pair fit: equal, or one is n times the other along collective_dim."""

    @describe_as(
        "srcs and dsts have equal shapes and types."
        if not larger
        else f"{larger} have n times the elements of the other side along collective_dim, n ranks."
    )
    def rule(use: Use) -> None:
        count = len(members(use.args["replica_group"])) if larger else 1
        dim = use.args.get("collective_dim", 0)
        allowed = (0, 1) if use.instruction == "all_gather" and _first(use).buffer is SBUF else (0,)
        if dim not in allowed:
            raise use.refuse(
                f"collective_dim is {dim!r}; allowed: {', '.join(map(str, allowed))}.",
                "the collective cuts and joins along this dimension only.",
                "transpose before, or pass collective_dim=0.",
            )
        for src, dst in zip(use.args["srcs"], use.args["dsts"], strict=True):
            big, small = (dst, src) if larger == "dsts" else (src, dst)
            wanted = list(small.shape)
            wanted[dim] *= count
            if list(big.shape) != wanted or src.dtype != dst.dtype:
                raise use.refuse(
                    f"src is {src.shape} {src.dtype}, dst is {dst.shape} {dst.dtype}.",
                    f"with {count} ranks the one of {small.shape} needs one of {tuple(wanted)} of "
                    "the same type.",
                    f"allocate it with shape {tuple(wanted)} and dtype {small.dtype!r}.",
                )

    return rule


def divisible(use: Use) -> None:
    """The first dimension is a multiple of the number of ranks."""
    count = len(members(use.args["replica_group"]))
    if _first(use).shape[0] % count:
        raise use.refuse(
            f"dimension 0 has {_first(use).shape[0]} rows for {count} ranks.",
            "each rank gets one equal part.",
            "pad it to a multiple.",
        )


@for_operands
def modelled(use: Use, kind: str, larger: str = "srcs") -> float:
    """The course's model of an {kind} between the ranks of the group; an estimate."""
    size = sum(tensor.size * tensor.dtype.itemsize for tensor in use.args[larger])
    group = use.args.get("replica_group")
    ranks = members(group) if group is not None else [0, 1]
    if len(ranks) < 2:
        return 0.0
    fabric = model.fabric(FABRICS[use.target.name])
    stride = max(1, ranks[1] - ranks[0])
    seconds = model.seconds(kind, size, fabric, min(len(ranks), fabric.ranks), stride=stride)
    return float(seconds.seconds * use.target.clocks[engine.scalar])


ANYWHERE: dict[str, Any] = {
    "srcs": tile(memory=DMA_MEMORY, many=True),
    "dsts": result(memory=DMA_MEMORY, many=True),
}
ONLY_HBM: dict[str, Any] = {
    "srcs": tile(memory=IN_HBM, many=True),
    "dsts": result(memory=IN_HBM, many=True),
}
SHARED: dict[str, Any] = {
    "engine": engine.sync, "cost_source": COST, "always": True, "space": SPACE,
}  # fmt: skip


# ---- the collectives -----------------------------------------------------------------------------


def _exchange(
    name: str, ranks: list[int], srcs: Any, dsts: Any,
    parts: Callable[[list[np.ndarray], int], np.ndarray],
) -> None:  # fmt: skip
    """Each rank's dsts become `parts(arrays of all ranks in order, place of the rank)`."""

    def finish(given: dict[int, Any]) -> None:
        made = []
        for number in range(len(srcs)):
            arrays = [given[rank][0][number].raw() for rank in ranks]
            for place, rank in enumerate(ranks):
                made.append((given[rank][1][number], parts(arrays, place)))
        for dst, values in made:
            dst.put_raw(np.ascontiguousarray(values).reshape(dst.shape))

    _meet(name, ranks, (srcs, dsts), finish)


def _reduce(op: Any, arrays: list[np.ndarray]) -> np.ndarray:
    """In FP32 for floats, rank after rank, rounded once at the end to the type of the tensors."""
    kind = arrays[0].dtype
    wide = np.float32 if kind.kind not in "iu" else np.int64
    total = arrays[0].astype(wide)
    for array in arrays[1:]:
        total = REDUCTIONS[op.name](total, array.astype(wide))
    return total.astype(kind)


@instruction(
    cost=modelled("all-reduce"), rules=(together, a_group, a_reduction, sizes("")),
    **ANYWHERE, **SHARED,
)  # fmt: skip
def all_reduce(srcs, dsts, replica_group, op, priority=None):
    """Every rank gets the sum, minimum or maximum of the tensors of all ranks."""
    ranks = members(replica_group)
    _exchange("all_reduce", ranks, srcs, dsts, lambda arrays, place: _reduce(op, arrays))


@instruction(
    cost=modelled("all-gather", "dsts"), rules=(together, a_group, sizes("dsts")),
    **ANYWHERE, **SHARED,
)  # fmt: skip
def all_gather(srcs, dsts, replica_group, collective_dim, priority=None):
    """Every rank gets the tensors of all ranks, joined along `collective_dim`."""
    ranks = members(replica_group)
    _exchange(
        "all_gather", ranks, srcs, dsts,
        lambda arrays, place: np.concatenate(arrays, axis=collective_dim),
    )  # fmt: skip


@instruction(
    cost=modelled("reduce-scatter"),
    rules=(together, a_group, a_reduction, sizes("srcs")),
    **ANYWHERE, **SHARED,
)  # fmt: skip
def reduce_scatter(srcs, dsts, replica_group, collective_dim, op, priority=None):
    """Every rank gets its part of the reduced tensor."""
    ranks = members(replica_group)

    def part(arrays: list[np.ndarray], place: int) -> np.ndarray:
        return _reduce(op, [np.split(array, len(ranks))[place] for array in arrays])

    _exchange("reduce_scatter", ranks, srcs, dsts, part)


@instruction(
    cost=modelled("all-to-all"), rules=(together, a_group, sizes(""), divisible),
    **ONLY_HBM, **SHARED,
)  # fmt: skip
def all_to_all(srcs, dsts, replica_group, collective_dim, priority=None):
    """Part i of a rank's tensor goes to rank i; parts arrive in the order of their ranks."""
    ranks = members(replica_group)

    def part(arrays: list[np.ndarray], place: int) -> np.ndarray:
        return np.concatenate([np.split(array, len(ranks))[place] for array in arrays])

    _exchange("all_to_all", ranks, srcs, dsts, part)


# ---- lengths that are known at run time ----------------------------------------------------------


def a_table(use: Use) -> None:
    """metadata_tensor has 3 rows (4 with has_rdispls) with one column for each rank."""
    rows = 4 if use.args["has_rdispls"] else 3
    count = len(members(use.args["replica_group"]))
    shape = tuple(use.args["metadata_tensor"].shape)
    wanted = (1, rows, count) if use.args["metadata_tensor"].buffer is SBUF else (rows, count)
    if shape != wanted:
        raise use.refuse(
            f"metadata_tensor is {shape}, wanted is {wanted}.",
            "its rows are counts to send, where they begin, and counts received"
            + (", and where these go." if rows == 4 else "."),
            f"allocate it with shape {wanted}, dtype=nl.uint32.",
        )


def _varying(name: str, ranks: list[int], args: dict[str, Any]) -> None:
    """`all_gather_v` and `all_to_all_v`: parts of flat buffers, by the tables of the ranks."""
    to_each = name == "all_to_all_v"

    def finish(given: dict[int, Any]) -> None:
        tables = {
            rank: given[rank]["metadata_tensor"].raw().reshape(-1, len(ranks)).astype(int)
            for rank in ranks
        }
        flats = {rank: given[rank]["srcs"][0].raw().reshape(-1) for rank in ranks}
        made = {}
        for place, rank in enumerate(ranks):
            dst = given[rank]["dsts"][0]
            flat = dst.raw().reshape(-1).copy()
            received = []
            for number, sender in enumerate(ranks):
                column = place if to_each else 0
                count, begin = tables[sender][:2, column]
                slot = flat.size // len(ranks)
                at = tables[rank][3, number] if given[rank]["has_rdispls"] else number * slot
                if begin + count > flats[sender].size or at + count > flat.size:
                    raise refuse(
                        f"{name}: rank {sender} sends {count} elements from {begin} of "
                        f"{flats[sender].size}; rank {rank} takes them at {at} of {flat.size}.",
                        "counts and displacements stay inside of both tensors.",
                        "make the tensors larger, or the counts smaller.",
                    )
                flat[at : at + count] = flats[sender][begin : begin + count]
                received.append(count)
            made[rank] = (dst, flat, received)
        for rank, (dst, flat, received) in made.items():
            dst.put_raw(flat.reshape(dst.shape))
            if not given[rank]["recv_counts_known"]:
                table = given[rank]["metadata_tensor"]
                rows = table.raw().reshape(-1, len(ranks)).copy()
                rows[2] = received
                table.put_raw(rows.reshape(table.shape))

    _meet(name, ranks, args, finish)


VARYING: dict[str, Any] = {
    **ONLY_HBM,
    **SHARED,
    "metadata_tensor": tile(memory=DMA_MEMORY, dtypes=WORDS),
    "rules": (one_each, a_group, a_table),
}


@instruction(cost=modelled("all-gather", "dsts"), **VARYING)
def all_gather_v(
    srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False, has_rdispls=False,
    priority=None,
):  # fmt: skip
    """Every rank gets a part of each rank's tensor, of a length that the metadata holds."""
    _varying("all_gather_v", members(replica_group), locals())


@instruction(cost=modelled("all-to-all"), **VARYING)
def all_to_all_v(
    srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False, has_rdispls=False,
    priority=None,
):  # fmt: skip
    """Every rank sends each rank a part of its tensor, of a length that the metadata holds."""
    _varying("all_to_all_v", members(replica_group), locals())


PREPARED = "prepared collective"


def _prepare(name: str, args: dict[str, Any]) -> None:
    registers = running(f"{name}_prepare").registers
    if registers.get(PREPARED):
        raise refuse(
            f"{name}_prepare: {registers[PREPARED][0]}_prepare waits for its trigger.",
            "prepared collectives share a single slot.",
            "trigger the first one before the next is prepared.",
        )
    registers[PREPARED] = (name, args)


def _trigger(name: str, prepared: Any) -> None:
    registers = running(f"{name}_trigger").registers
    held = registers.pop(PREPARED, None)
    if not isinstance(prepared, Instruction) or held is None or held[0] != name:
        raise refuse(
            f"{name}_trigger: {prepared!r} is not what {name}_prepare returned last.",
            "each prepare has one trigger, which takes its operands from it.",
            f"work = {name}_prepare(...); ...; {name}_trigger(work).",
        )
    _check_untouched(name, prepared, held[1]["metadata_tensor"])
    _varying(name, members(held[1]["replica_group"]), held[1])


def _check_untouched(name: str, prepared: Instruction, table: Tensor) -> None:
    """The metadata is read while other instructions run, so none of them may write it."""
    between = running(f"{name}_trigger").instructions[prepared.index + 1 :]
    for issued in between:
        if any(view.storage is table.storage for view in tensors_of(issued, reads=False)):
            doubt(
                f"{name}_prepare: {issued.checked.spec.name} at "
                f"{show_line(issued.line)} writes {table!r} before the trigger.",
                "the metadata may be read at any time between prepare and trigger; here it is "
                "read at the trigger.",
                f"write it before {name}_prepare, or after {name}_trigger.",
                prepared.line,
            )
            return


def no_cost(use: Use) -> float:
    """Nothing: its metadata is read while other instructions run."""
    return 0.0


PREPARING = {**VARYING, "cost": no_cost}
TRIGGERED = {**SHARED, "cost": no_cost}


@instruction(**PREPARING)
def all_gather_v_prepare(
    srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False, has_rdispls=False,
    priority=None,
):  # fmt: skip
    """Begin an all_gather_v: reads the metadata, and neither srcs nor dsts."""
    _prepare("all_gather_v", locals())


@instruction(**TRIGGERED)
def all_gather_v_trigger(prepare_instr):
    """Run the all_gather_v that was prepared; its cost is not modelled apart."""
    _trigger("all_gather_v", prepare_instr)


@instruction(**PREPARING)
def all_to_all_v_prepare(
    srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False, has_rdispls=False,
    priority=None,
):  # fmt: skip
    """Begin an all_to_all_v: reads the metadata, and neither srcs nor dsts."""
    _prepare("all_to_all_v", locals())


@instruction(**TRIGGERED)
def all_to_all_v_trigger(prepare_instr):
    """Run the all_to_all_v that was prepared; its cost is not modelled apart."""
    _trigger("all_to_all_v", prepare_instr)


# ---- from one rank to another --------------------------------------------------------------------


def pairs(use: Use) -> None:
    """source_target_pairs are pairs of ranks, none twice on one side."""
    given = use.args["source_target_pairs"]
    good = isinstance(given, (list, tuple)) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in given
    )
    sides = list(zip(*given, strict=True)) if good and given else []
    if not sides or any(len(set(side)) != len(side) for side in sides):
        raise use.refuse(
            f"source_target_pairs is {given!r}.",
            "each rank sends to one rank at most, and gets from one at most.",
            "pass [(0, 1), (1, 0)].",
        )


@instruction(cost=modelled("permute"), rules=(one_each, pairs, sizes("")), **ONLY_HBM, **SHARED)
def collective_permute(srcs, dsts, source_target_pairs, priority=None):
    """Each pair's source sends to its target; a rank that nobody sends to keeps its dst."""
    ranks = sorted({rank for pair in source_target_pairs for rank in pair})
    source_of = {target: source for source, target in source_target_pairs}
    members(ReplicaGroup([ranks]))

    def finish(given: dict[int, Any]) -> None:
        sent = {rank: given[rank][0][0].raw().copy() for rank in ranks}
        for target, source in source_of.items():
            given[target][1][0].put_raw(sent[source].reshape(given[target][1][0].shape))

    _meet("collective_permute", ranks, (srcs, dsts), finish)


@for_operands
def channels(use: Use, *names: str) -> None:
    """One tensor for each channel; channels are numbered from 0, at most 4."""
    ids = list(use.args["channel_ids"])
    lists = [use.args[name] for name in names]
    good = ids == list(range(len(ids))) and 1 <= len(ids) <= CHANNELS
    if not good or any(len(item) != len(ids) for item in lists):
        raise use.refuse(
            f"channel_ids are {ids}, with {[len(item) for item in lists]} lists of tensors.",
            "a channel moves one tensor; channels are numbered from 0.",
            "pass [[src]], [[dst]] for one channel.",
        )


def _ring(name: str, ranks: list[int], given: Any, made: Callable[[Any, int], np.ndarray]) -> None:
    """Each rank's dsts become what its predecessor in the list has `made` for the channel."""

    def finish(all_given: dict[int, Any]) -> None:
        sent = {
            rank: [made(all_given[rank], channel) for channel in range(len(all_given[rank][-1]))]
            for rank in ranks
        }
        for place, rank in enumerate(ranks):
            for dst, values in zip(all_given[rank][-1], sent[ranks[place - 1]], strict=True):
                dst.put_raw(values.reshape(dst.shape).astype(dst.dtype.numpy))

    _meet(name, ranks, given, finish)


def one_by_one(*names: str) -> Callable[[Any, dict[str, Any]], None]:
    """Makes of the lists of one tensor for each channel the lists that the table checks."""

    def resolve(core: Any, args: dict[str, Any]) -> None:
        for name in names:
            flat: list[Any] = []
            for item in args[name]:
                if not isinstance(item, Tensor) and len(item) != 1:
                    raise refuse(
                        f"{name} has a channel of {len(item)} tensors.",
                        "a channel moves one tensor.",
                        f"pass {name}=[[tensor]].",
                    )
                flat.append(item if isinstance(item, Tensor) else item[0])
            args[name] = flat

    return resolve


@instruction(
    cost=modelled("permute", "srcs_by_channel"),
    rules=(a_group, channels("srcs_by_channel", "dsts_by_channel")),
    resolve=one_by_one("srcs_by_channel", "dsts_by_channel"),
    srcs_by_channel=tile(memory=IN_HBM, many=True),
    dsts_by_channel=result(memory=IN_HBM, many=True), **SHARED,
)  # fmt: skip
def collective_permute_implicit(
    srcs_by_channel, dsts_by_channel, replica_group, channel_ids=(0,), priority=None
):
    """Each rank of the list sends to the next one, the last to the first."""
    _ring(
        "collective_permute_implicit", members(replica_group), (srcs_by_channel, dsts_by_channel),
        lambda given, channel: given[0][channel].raw().copy(),
    )  # fmt: skip


OF_THREE = ("srcs0_by_channel", "srcs1_by_channel", "dsts_by_channel")


@instruction(
    cost=modelled("permute", "srcs0_by_channel"),
    rules=(a_group, a_reduction, channels(*OF_THREE)),
    resolve=one_by_one(*OF_THREE),
    srcs0_by_channel=tile(memory=IN_HBM, many=True),
    srcs1_by_channel=tile(memory=IN_HBM, many=True),
    dsts_by_channel=result(memory=IN_HBM, many=True), **SHARED,
)  # fmt: skip
def collective_permute_implicit_reduce(
    srcs0_by_channel, srcs1_by_channel, dsts_by_channel, replica_group, op, channel_ids=(0,),
    priority=None,
):  # fmt: skip
    """Each rank reduces its two tensors and sends the result to the next one of the list."""
    _ring(
        "collective_permute_implicit_reduce", members(replica_group),
        (srcs0_by_channel, srcs1_by_channel, dsts_by_channel),
        lambda given, channel: _reduce(op, [given[0][channel].raw(), given[1][channel].raw()]),
    )  # fmt: skip


def rank_id(name: str | None = None) -> VirtualRegister:
    """A register with the number of the running rank."""
    return VirtualRegister(_rank(running("rank_id")))


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: int, replica_group: Any, channel_id: int = 0, name: str | None = None
) -> VirtualRegister:
    """A register with the rank whose data is processed in this step of the ring: its own in step 0,
    then that of its predecessor, and so on."""
    ranks = members(replica_group)
    place = ranks.index(_rank(running("current_processing_rank_id")))
    return VirtualRegister(ranks[(place - int(iteration_id)) % len(ranks)])
