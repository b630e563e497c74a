"""The timing model: hand-computed schedules of tiny programs, and what every schedule must keep to.

Expected times are computed from the constants of the target, as the model's documentation says.
"""

import warnings
from collections.abc import Callable
from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.facts import figure
from utils.nki.simulator import launch
from utils.nki.simulator.capacity import usable_bytes
from utils.nki.simulator.enums import engine
from utils.nki.simulator.operands import PSUM
from utils.nki.simulator.target import target
from utils.nki.simulator.timing import Schedule, schedule
from utils.nki.simulator.timing.constants import constants, table
from utils.nki.simulator.timing.regions import Layout
from utils.nki.simulator.timing.work import QUEUES, SYNC

C = constants("trn2")
VECTOR = C.clock[engine.vector]
SCALAR = C.clock[engine.scalar]


def time_of(call: Callable[..., Any], on: str = "trn2", kind: str = "as written", **options: Any):
    """The schedule of a kernel of no arguments."""
    grid = options.pop("grid", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = launch.jit(call)
        program = launch.run(kernel[grid], (), {}, values=False, target=on)
    return schedule(program, kind, **options)


def sbuf(columns: int = 512, rows: int = 128, dtype: Any = nl.float32, **more: Any) -> Any:
    return nl.ndarray((rows, columns), dtype=dtype, buffer=nl.sbuf, **more)


def psum(columns: int = 512) -> Any:
    return nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.psum)


def hbm(*shape: int, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm)


def add(dst: Any, a: Any, b: Any) -> Any:
    return nisa.tensor_tensor(dst=dst, data1=a, data2=b, op=nl.add)


def ns(plan: Schedule, name: str) -> list[tuple[float, float, float]]:
    """(start, stop, end) of the instructions of a name."""
    times = plan.times
    return [
        (times.start[i], times.stop[i], times.end[i])
        for i, work in enumerate(plan.graph.works)
        if work.name == name
    ]


# ---- constants -------------------------------------------------------------------------------


def test_every_constant_has_a_tag_a_source_and_a_note() -> None:
    for name, entry in table().items():
        assert entry["tag"] in "DMF", name
        assert entry["url"].startswith("https://"), name
        assert entry["unit"] and entry["note"], name


@pytest.mark.parametrize("name", ["trn1", "trn2", "trn3"])
def test_figures_of_the_chip_come_from_the_facts(name: str) -> None:
    on = target(name)
    assert constants(name).dma_rate * 1e9 == figure(f"{on.chip}.dma.rate_per_engine").to("B/s")
    assert constants(name).dma_engines == figure(f"{on.chip}.dma.per_core").number


# ---- engines ---------------------------------------------------------------------------------


def test_independent_instructions_follow_each_other_without_a_gap() -> None:
    def kernel():
        a, b, c, d = sbuf(), sbuf(), sbuf(), sbuf()
        add(c, a, b)
        add(d, a, b)

    (first, second) = ns(time_of(kernel), "tensor_tensor")
    busy = 2 * 512 / VECTOR  # two FP32 tiles in SBUF: two cycles for each column
    assert first == pytest.approx((0, busy, busy + C.latency[engine.vector]))
    assert second[0] == pytest.approx(busy)


def test_a_dependent_instruction_waits_for_the_latency_and_on_another_engine_for_a_semaphore() -> (
    None
):
    def kernel():
        a, b, c = sbuf(), sbuf(), sbuf()
        add(b, a, a)
        add(c, b, b)
        nisa.activation(dst=a, op=nl.copy, data=c)

    plan = time_of(kernel)
    first, second = ns(plan, "tensor_tensor")
    assert second[0] == pytest.approx(first[2])
    (last,) = ns(plan, "activation")
    assert last[0] == pytest.approx(second[2] + C.semaphore[engine.scalar])
    assert last[2] - last[0] == pytest.approx(512 / SCALAR + C.latency[engine.scalar])


def test_a_second_tile_begins_later_where_that_is_published() -> None:
    def kernel():
        a, b, column = sbuf(), sbuf(), sbuf(1)
        add(sbuf(), a, b)
        nisa.tensor_scalar(dst=b, data=a, op0=nl.add, operand0=column)

    of = constants("trn1")
    plan = time_of(kernel, on="trn1")
    start, stop, _ = ns(plan, "tensor_tensor")[0]
    clock = of.clock[engine.vector]
    assert stop - start == pytest.approx(2 * 512 / clock + of.vector_access)
    start, stop, _ = ns(plan, "tensor_scalar")[0]
    assert stop - start == pytest.approx(512 / clock), "a column is no tile"
    assert of.vector_access > 0 and C.vector_access == 0


def test_depends_on_orders_what_shares_no_data() -> None:
    def kernel():
        a, b, c, d = sbuf(), sbuf(), sbuf(), sbuf()
        first = add(b, a, a)
        nisa.activation(dst=d, op=nl.copy, data=c).depends_on(first)

    plan = time_of(kernel)
    assert ns(plan, "activation")[0][0] == pytest.approx(
        ns(plan, "tensor_tensor")[0][2] + C.semaphore[engine.scalar]
    )


def test_a_table_is_loaded_when_the_family_of_functions_changes() -> None:
    def kernel(*functions):
        def body():
            for function in functions:
                nisa.activation(dst=sbuf(), op=function, data=sbuf())

        return body

    assert len(time_of(kernel(nl.exp, nl.exp)).times.loads) == 1
    assert len(time_of(kernel(nl.exp, nl.copy, nl.exp)).times.loads) == 1
    plan = time_of(kernel(nl.exp, nl.tanh))
    first, second = ns(plan, "activation")
    if len(plan.times.loads) == 2:  # in other families
        assert first[0] == pytest.approx(C.table_load)
        assert second[0] == pytest.approx(first[1] + C.table_load)


def test_trainium1_engines_share_ports_and_later_chips_do_not() -> None:
    def sbuf_port():
        nisa.memset(dst=sbuf(), value=1.0, engine=nisa.engine.vector)
        nisa.memset(dst=sbuf(), value=1.0, engine=nisa.engine.gpsimd)

    first, second = ns(time_of(sbuf_port, on="trn1"), "memset")
    assert second[0] == pytest.approx(first[1])
    first, second = ns(time_of(sbuf_port), "memset")
    assert second[0] == 0

    def psum_port():
        nisa.tensor_copy(dst=sbuf(), src=psum(), engine=nisa.engine.vector)
        nisa.activation(dst=sbuf(), op=nl.copy, data=psum())

    plan = time_of(psum_port, on="trn1")
    assert ns(plan, "activation")[0][0] == pytest.approx(ns(plan, "tensor_copy")[0][1])
    assert ns(time_of(psum_port), "activation")[0][0] == 0


# ---- the Tensor Engine -----------------------------------------------------------------------


def products(count: int, **more: Any) -> Callable[[], None]:
    def kernel():
        a, b = sbuf(128, dtype=nl.bfloat16), sbuf(dtype=nl.bfloat16)
        total = psum()
        for _ in range(count):
            nisa.nc_matmul(dst=total, stationary=a, moving=b, **more)

    return kernel


def test_weights_are_loaded_before_the_first_product_and_hidden_under_the_others() -> None:
    plan = time_of(products(3), warm_up=False)
    clock = C.clock[engine.tensor]
    busy = 512 / clock + C.weight_gap
    load = 128 / C.fast_weight_load / clock
    starts = [start for start, _, _ in ns(plan, "nc_matmul")]
    assert starts == pytest.approx([load, load + busy, load + 2 * busy])
    assert ns(plan, "nc_matmul")[0][2] == pytest.approx(load + busy + C.latency[engine.tensor])


def test_the_array_warms_up_and_cools_down() -> None:
    cold, warm = time_of(products(40)), time_of(products(40), warm_up=False)
    assert cold.nanoseconds - warm.nanoseconds == pytest.approx(C.warm_up * (1 - C.cold_rate))
    same = time_of(products(40), on="trn1"), time_of(products(40), on="trn1", warm_up=False)
    assert same[0].nanoseconds == same[1].nanoseconds, "Trainium1 has no such limit"

    def with_a_pause():
        a, b = sbuf(128, dtype=nl.bfloat16), sbuf(dtype=nl.bfloat16)
        for _ in range(2):
            total = psum()
            for _ in range(40):
                nisa.nc_matmul(dst=total, stationary=a, moving=b)
            long = sbuf(8192)
            nisa.tensor_copy(dst=long[:, 0:512], src=total)
            add(long, long, long)
            nisa.tensor_copy(dst=b, src=long[:, 0:512])

    twice = time_of(with_a_pause).nanoseconds - time_of(with_a_pause, warm_up=False).nanoseconds
    assert twice == pytest.approx(2 * C.warm_up * (1 - C.cold_rate))


def test_parts_of_the_array_work_side_by_side() -> None:
    def kernel(*positions):
        def body():
            a, b = sbuf(64, rows=64, dtype=nl.bfloat16), sbuf(rows=64, dtype=nl.bfloat16)
            for position in positions:
                total = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
                part = {"tile_position": position, "tile_size": (64, 64)}
                nisa.nc_matmul(dst=total, stationary=a, moving=b, **part)

        return body

    apart = time_of(kernel((0, 0), (0, 64), (64, 0)), warm_up=False)
    starts = [start for start, _, _ in ns(apart, "nc_matmul")]
    clock = C.clock[engine.tensor]
    busy = 512 / clock + C.weight_gap
    assert starts[2] - starts[0] < busy, "three parts at once"
    again = time_of(kernel((0, 0), (0, 0)), warm_up=False)
    first, second = ns(again, "nc_matmul")
    assert second[0] == pytest.approx(first[0] + busy)


def test_engines_take_turns_on_a_bank_of_psum() -> None:
    def kernel(apart):
        def body():
            a, b = sbuf(128, dtype=nl.bfloat16), sbuf(128, dtype=nl.bfloat16)
            total = psum(1024)
            other = 512 if apart else 256
            nisa.tensor_copy(dst=sbuf(128), src=total[:, 0:128])
            nisa.nc_matmul(dst=total[:, other : other + 128], stationary=a, moving=b)

        return body

    together, apart = time_of(kernel(False)), time_of(kernel(True))
    assert ns(together, "nc_matmul")[0][0] > ns(together, "tensor_copy")[0][2]
    assert ns(apart, "nc_matmul")[0][0] < ns(apart, "tensor_copy")[0][1]


# ---- DMA -------------------------------------------------------------------------------------


def test_a_transfer_has_descriptors_a_start_a_data_phase_and_an_end() -> None:
    def kernel():
        nisa.dma_copy(dst=sbuf(128, dtype=nl.bfloat16), src=hbm(128, 128, dtype=nl.bfloat16))

    plan = time_of(kernel)
    ((start, stop, end),) = ns(plan, "dma_copy")
    data = C.descriptor + 8 * 128 * 2 / C.dma_rate
    assert (start, stop) == (0, C.hardware_descriptors)
    assert plan.times.first[0] == pytest.approx(C.hardware_descriptors + C.dma_start)
    assert end == pytest.approx(plan.times.first[0] + data + C.dma_stagger + C.dma_done)
    moved = plan.graph.works[0].transfer
    assert moved.descriptors == 16, "contiguous rows of eight partitions are one descriptor"
    assert moved.hbm_read == 128 * 128 * 2 and moved.hbm_written == 0
    assert moved.even == pytest.approx(data)


def one_transfer(call: Callable[[], Any], on: str = "trn2") -> Any:
    return next(w for w in time_of(call, on=on).graph.works if w.transfer is not None)


def test_descriptors_are_contiguous_runs() -> None:
    def rows_of_a_wide_matrix():
        nisa.dma_copy(dst=sbuf(256), src=hbm(128, 1024)[:, 0:256])

    def four_rows():
        nisa.dma_copy(dst=sbuf(512, rows=4), src=hbm(4, 512))

    def elements():
        nisa.dma_copy(dst=sbuf(64), src=hbm(64, 128).permute((1, 0)))

    def rows_on_chip():
        nisa.dma_copy(dst=sbuf(64), src=sbuf(64))

    def in_hbm():
        nisa.dma_copy(dst=hbm(128, 512), src=hbm(128, 512))

    assert one_transfer(rows_of_a_wide_matrix).transfer.descriptors == 128
    moved = one_transfer(four_rows).transfer
    assert [share > 0 for share in moved.shares] == [True] + 15 * [False], "eight rows an engine"
    assert moved.longest == pytest.approx(C.descriptor + 4 * 512 * 4 / C.dma_rate)
    assert one_transfer(elements).transfer.descriptors == 128 * 64
    assert one_transfer(rows_on_chip).transfer.descriptors == 128
    moved = one_transfer(in_hbm).transfer
    assert moved.descriptors == 16 and moved.hbm_read == moved.hbm_written == 128 * 512 * 4


def test_who_writes_descriptors() -> None:
    def cast():
        nisa.dma_copy(dst=sbuf(64, dtype=nl.bfloat16), src=hbm(128, 64))

    def plain(**more):
        return lambda: nisa.dma_copy(dst=sbuf(64), src=hbm(128, 64), **more)

    def queue(call, on="trn2"):
        return QUEUES[one_transfer(call, on).queue]

    assert queue(cast) == "gpsimd" and one_transfer(cast).busy == C.software_descriptors
    assert queue(cast, "trn1") == "dma in", "the runtime's descriptors cast"
    assert queue(plain()) == "dma in" and one_transfer(plain()).busy == C.hardware_descriptors
    assert one_transfer(plain(), "trn1").busy == constants("trn1").runtime_descriptors
    assert queue(plain(dge_mode=nisa.dge_mode.swdge)) == "gpsimd"
    by_scalar = plain(dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.scalar)
    assert queue(by_scalar) == "scalar"
    assert one_transfer(plain(dge_mode=nisa.dge_mode.none)).generator is None


def test_transfers_share_generators_and_engines() -> None:
    def loads(columns, count=4):
        def body():
            for _ in range(count):
                nisa.dma_copy(dst=sbuf(columns), src=hbm(128, 2 * columns)[:, 0:columns])

        return body

    short = ns(time_of(loads(16)), "dma_copy")
    assert [start for start, _, _ in short] == [n * C.hardware_descriptors for n in range(4)]
    plan = time_of(loads(2048))
    item = 8 * (C.descriptor + 2048 * 4 / C.dma_rate)
    firsts = np.diff(plan.times.first)
    assert firsts == pytest.approx(3 * [item]), "bound by the rate of the engines"

    def both_ways():
        nisa.dma_copy(dst=sbuf(16), src=hbm(128, 16))
        nisa.dma_copy(dst=hbm(128, 16), src=sbuf(16))

    starts = [start for start, _, _ in ns(time_of(both_ways), "dma_copy")]
    assert starts == [0, 0], "a core has two generators"


def test_dma_transposes_have_part_of_the_rate() -> None:
    def from_hbm():
        x = hbm(128, 128, dtype=nl.bfloat16)
        nisa.dma_transpose(dst=sbuf(128, dtype=nl.bfloat16), src=x)

    def on_chip():
        x = sbuf(128, dtype=nl.bfloat16)
        nisa.dma_transpose(dst=sbuf(128, dtype=nl.bfloat16), src=x)

    bytes_of_one = 8 * 128 * 2 / C.dma_rate
    for call, share in ((from_hbm, C.dma_transpose_from_hbm), (on_chip, C.dma_transpose_on_chip)):
        moved = one_transfer(call).transfer
        descriptors = moved.descriptors / 16 * C.descriptor
        assert moved.longest - descriptors == pytest.approx(bytes_of_one / share)


# ---- places ----------------------------------------------------------------------------------


def banks(count: int) -> Callable[[], None]:
    def kernel():
        a, b = sbuf(128, dtype=nl.bfloat16), sbuf(dtype=nl.bfloat16)
        for _ in range(count):
            total = psum()
            nisa.nc_matmul(dst=total, stationary=a, moving=b)
            nisa.tensor_copy(dst=sbuf(), src=total)

    return kernel


def test_psum_rotates_over_its_banks() -> None:
    eight = target("trn2").psum_banks
    starts = [start for start, _, _ in ns(time_of(banks(eight + 1)), "nc_matmul")]
    copied = ns(time_of(banks(eight + 1)), "tensor_copy")
    assert starts[eight - 1] < copied[eight - 2][2], "a fresh bank waits for nobody"
    assert starts[eight] >= copied[0][2], "the ninth takes the first one's"
    off = [start for start, _, _ in ns(time_of(banks(3), rotation=False), "nc_matmul")]
    copied = ns(time_of(banks(3), rotation=False), "tensor_copy")
    assert off[1] >= copied[0][2] and off[2] >= copied[1][2]


def test_sbuf_rotates_when_it_is_full() -> None:
    usable = usable_bytes(target("trn2"), nl.sbuf)
    columns = usable // 4 // 4  # a quarter of SBUF each

    def kernel():
        for _ in range(5):
            tile = sbuf(columns)
            nisa.memset(dst=tile, value=0.0, engine=nisa.engine.gpsimd)
            add(tile, tile, tile)

    plan = time_of(kernel)
    fills, sums = ns(plan, "memset"), ns(plan, "tensor_tensor")
    assert fills[3][0] == pytest.approx(fills[2][1])
    assert fills[4][0] >= sums[0][2]


# ---- two cores -------------------------------------------------------------------------------


def test_cores_go_on_together_after_a_barrier() -> None:
    def kernel():
        out = hbm(128, 512)
        tile = sbuf()
        if nl.program_id(0) == 0:
            add(tile, tile, tile)
            nisa.dma_copy(dst=out, src=tile)
        nisa.core_barrier(out, (0, 1))
        if nl.program_id(0) == 1:
            nisa.dma_copy(dst=tile, src=out)
        return out

    plan = time_of(kernel, grid=2)
    ends = {end for _, _, end in ns(plan, "core_barrier")}
    assert len(ends) == 1
    written, read = ns(plan, "dma_copy")
    assert ends.pop() >= written[2] and read[0] >= written[2]


# ---- regions ---------------------------------------------------------------------------------


def elements(view: Any) -> set[int]:
    """The elements of a view, by brute force."""
    index = np.arange(view.storage.row * view.storage.partitions)
    step = index.itemsize
    result = np.lib.stride_tricks.as_strided(
        index[view.offset :], view.shape, [s * step for s in view.strides]
    )
    return set(result.ravel().tolist())


@st.composite
def slices(draw: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    made = []
    for size in shape:
        first = draw(st.integers(0, size - 1))
        last = draw(st.integers(first + 1, size))
        made.append(slice(first, last, draw(st.sampled_from((1, 1, 2, 3)))))
    return tuple(made)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(((4, 6, 10), (8, 12), (30,))), st.booleans())
def test_regions_of_slices_are_exact(data: Any, shape: tuple[int, ...], reshaped: bool) -> None:
    keys = [data.draw(slices(shape)) for _ in range(2)]
    kept = []

    def kernel():
        if reshaped:
            flat = hbm(int(np.prod(shape)))
            tensor = flat.reshape(shape)
        else:
            tensor = hbm(*shape)
        kept.extend(tensor[key] for key in keys)

    time_of(kernel)
    one, other = kept
    layout = Layout(one.storage, 1)
    a, b = (layout.regions[layout.number(item)] for item in kept)
    assert a.overlaps(b) == b.overlaps(a)
    meets = bool(elements(one) & elements(other))
    assert a.overlaps(b) or not meets, "an overlap is never missed"
    steps = {item.step for key in keys for item in key}
    if steps == {1} and not reshaped:
        assert a.overlaps(b) == meets, "slices without steps are told apart"
    if a.contains(b):
        assert elements(other) <= elements(one)


# ---- what every schedule keeps to --------------------------------------------------------------

COLUMNS = 24


@st.composite
def programs(draw: Any) -> list[tuple[str, int, int, tuple, tuple]]:
    """A random program: (what, tile, tile, slices of both), over few tiles so that they meet."""
    made = []
    for _ in range(draw(st.integers(1, 14))):
        width = draw(st.sampled_from((4, 8, COLUMNS)))
        at = [draw(st.integers(0, COLUMNS - width)) for _ in range(2)]
        made.append(
            (
                draw(st.sampled_from(("load", "store", "copy", "scalar", "fill", "pool", "mm"))),
                draw(st.integers(0, 2)),
                draw(st.integers(0, 2)),
                (slice(None), slice(at[0], at[0] + width)),
                (slice(None), slice(at[1], at[1] + width)),
            )
        )
    return made


def body(steps: list[tuple], fresh: bool = False) -> Callable[[], Any]:
    def kernel():
        tiles = [sbuf(COLUMNS, rows=32) for _ in range(3)]
        sums = nl.ndarray((COLUMNS, COLUMNS), dtype=nl.float32, buffer=nl.psum)
        matrix = hbm(32, COLUMNS)
        for what, i, j, one, other in steps:
            if fresh and what in ("load", "fill"):
                tiles[i] = sbuf(COLUMNS, rows=32)
            a, b = tiles[i][one], tiles[j][other]
            if what == "load":
                nisa.dma_copy(dst=a, src=matrix[other])
            elif what == "store":
                nisa.dma_copy(dst=matrix[one], src=b)
            elif what == "copy":
                nisa.tensor_copy(dst=a, src=b)
            elif what == "scalar":
                nisa.activation(dst=a, op=nl.exp, data=b)
            elif what == "fill":
                nisa.memset(dst=a, value=0.0)
            elif what == "pool":
                nisa.tensor_copy(dst=a, src=b, engine=nisa.engine.gpsimd)
            else:
                width = one[1].stop - one[1].start
                nisa.nc_matmul(dst=sums[0:width, other[1]], stationary=a, moving=b)

    return kernel


def accesses(plan: Schedule, node: int) -> list[tuple[Any, set, bool]]:
    """(storage, what of it, whether it is written) of a node, found without the model's code."""
    instruction = plan.graph.instructions[node]
    spec, made = instruction.checked.spec, []
    for name, operand in spec.operands.items():
        value = instruction.args[name]
        if not hasattr(value, "storage"):
            continue
        part = elements(value)
        if value.buffer is PSUM:
            part = {"bank"}
        if operand.reads:
            made.append((value.storage, part, False))
        if operand.writes:
            made.append((value.storage, part, True))
    return made


def check(plan: Schedule) -> None:
    """No two instructions hold a queue at once, and every dependency is respected: all pairs."""
    times, graph = plan.times, plan.graph
    count = len(graph.works)
    for queue in set(graph.queue):
        held = sorted(
            (times.start[n], times.stop[n]) for n in range(count) if graph.queue[n] == queue
        )
        for (_, stop), (start, _) in zip(held, held[1:], strict=False):
            assert start >= stop - 1e-6
    results = [accesses(plan, node) for node in range(count)]
    for late in range(count):
        for early in range(late):
            for storage, part, writes in results[late]:
                for other, its, wrote in results[early]:
                    if storage is not other or not (writes or wrote) or not part & its:
                        continue
                    kind = graph.queue[early] % len(QUEUES)
                    same = graph.queue[early] == graph.queue[late] and kind <= SYNC
                    if same and writes and graph.works[early].transfer is None:
                        assert times.start[late] >= times.stop[early] - 1e-6
                    else:
                        assert times.start[late] >= times.end[early] - 1e-6


@settings(max_examples=60, deadline=None)
@given(programs(), st.sampled_from(("trn1", "trn2")), st.booleans())
def test_every_schedule_respects_every_dependency(
    steps: list[tuple], on: str, rotation: bool
) -> None:
    for kind in ("as written", "list"):
        plan = time_of(body(steps), on=on, kind=kind, rotation=rotation)
        check(plan)
        total = sum(work.transfer.bytes for work in plan.graph.works if work.transfer)
        widths = [
            one[1].stop - one[1].start for what, *_, one, _ in steps if what in ("load", "store")
        ]
        assert total == sum(widths) * 32 * 4


@settings(max_examples=60, deadline=None)
@given(programs(), programs())
def test_more_instructions_never_end_earlier_as_written(
    steps: list[tuple], more: list[tuple]
) -> None:
    compute = [item for item in more if item[0] not in ("load", "store")]
    less = time_of(body(steps), warm_up=False).nanoseconds
    assert time_of(body(steps + compute), warm_up=False).nanoseconds >= less - 1e-6


@settings(max_examples=40, deadline=None)
@given(programs())
def test_without_rotation_nothing_is_faster(steps: list[tuple]) -> None:
    call = body([step for step in steps if step[0] != "mm"], fresh=True)
    on = time_of(call).nanoseconds
    assert time_of(call, rotation=False).nanoseconds >= on - 1e-6


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="'as written'"):
        time_of(products(1), kind="fast")
