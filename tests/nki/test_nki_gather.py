"""Gathers, searches, DMA additions and block-scaled numbers: values, rules, and old bugs."""

import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nki.nki_bench import (
    NUMPY,
    cycles,
    draw,
    empty,
    floats,
    issue,
    out,
    put,
    read,
    refuses,
    result_of,
    rounds,
    same,
    sbuf,
    seeds,
    t,
    types,
    warns,
)
from utils.chip import mx
from utils.nki.simulator import launch
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.instructions.quantize import scale_rows


def simulate(kernel, *arrays, target="trn2"):
    return launch.run(nki.jit(kernel), arrays, {}, target=target).results


# ---- rows found at run time ----------------------------------------------------------------------


def rows(seed: int, size: int, dtype=np.float32, count: int = 24):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((size, 16)).astype(dtype), rng.permutation(size)[:count, None]


@settings(max_examples=25)
@given(seeds, st.integers(24, 200), st.sampled_from(("int32", "uint32")), floats)
def test_gather_of_rows_in_three_spellings(seed, size, kind, dtype) -> None:
    table, index = rows(seed, size, NUMPY[dtype])

    def kernel(table, index):
        match_ = sbuf(index)
        spelled = (
            table.vector_select(0, match_),
            table.ap([[16, 24], [1, 16]], vector_offset=match_, indirect_dim=0),
            table.reshape((size, 4, 4)).vector_select(0, match_).reshape((24, 16)),
        )
        results = []
        for source in spelled:
            tile = empty((24, 16), dtype)
            nisa.dma_copy(dst=tile, src=source)
            results.append(out(tile))
        return tuple(results)

    for result in simulate(kernel, table, index.astype(kind)):
        same(result, table[index[:, 0]])


def test_gather_of_a_part_of_each_row() -> None:
    table, index = rows(1, 50)

    def kernel(table, index):
        tile = empty((24, 6), "float32")
        nisa.dma_copy(dst=tile, src=table[:, 5:11].vector_select(0, sbuf(index)))
        more = empty((24, 6), "float32")
        pattern = [[16, 24], [1, 6]]
        source = table.ap(pattern, offset=5, vector_offset=sbuf(index), indirect_dim=0)
        nisa.dma_copy(dst=more, src=source)
        return out(tile), out(more)

    for result in simulate(kernel, table, index.astype(np.int32)):
        same(result, table[index[:, 0], 5:11])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn_x4", "float4_e2m1fn_x4"])
def test_rows_that_do_not_exist_are_left_out(dtype) -> None:
    """Once a bug of packed types: `skip` leaves what the tile held."""
    index = np.array([[3], [99], [0], [-1]], np.int32)
    bits = np.arange(80).reshape(10, 8)

    def kernel(table, index):
        view = table.view(getattr(nl, dtype)) if dtype.endswith("x4") else table
        tile = nl.ndarray((4, 8), dtype=view.dtype, buffer=nl.sbuf)
        nisa.memset(tile, 0)
        nisa.dma_copy(tile, view.vector_select(0, sbuf(index)), oob_mode=nisa.oob_mode.skip)
        made = nl.ndarray((4, 8), dtype=table.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(made, tile.view(table.dtype) if dtype.endswith("x4") else tile)
        return made

    plain = {"float8_e4m3fn_x4": np.uint32, "float4_e2m1fn_x4": np.uint16}
    table = bits.astype(plain.get(dtype) or NUMPY[dtype])
    same(simulate(kernel, table, index), np.stack([table[3], 0 * table[0], table[0], 0 * table[0]]))


def test_an_index_outside_is_named() -> None:
    def kernel(table, index):
        tile = empty((4, 8), "float32")
        nisa.dma_copy(tile, table.vector_select(0, sbuf(index)))

    table, index = np.zeros((10, 8), np.float32), np.array([[3], [9], [10], [0]], np.int32)
    with pytest.raises(NkiValidationError, match=r"index 10 in row 2 .* 0 to 9"):
        simulate(kernel, table, index)


@settings(max_examples=25)
@given(seeds, st.booleans())
def test_scatter_writes_its_rows_only(seed, skip) -> None:
    table, index = rows(seed, 60)
    index = index.astype(np.int32)
    if skip:
        index[3] = 60
    values = draw(seed, (24, 16), "float32")

    def kernel(target, values, index):
        mode = nisa.oob_mode.skip if skip else nisa.oob_mode.error
        nisa.dma_copy(target.vector_select(0, sbuf(index)), sbuf(values), oob_mode=mode)

    result = table.copy()
    simulate(kernel, result, values, index)
    wanted = table.copy()
    good = index[:, 0] < 60
    wanted[index[good, 0]] = values[good]
    same(result, wanted)


def test_both_cores_scatter_and_leave_out_rows_that_do_not_exist() -> None:
    """As a public mixture of experts does: an index of -1 is padding."""

    def kernel(values, index):
        out = nl.ndarray((60, 16), dtype=values.dtype, buffer=nl.shared_hbm)
        half = nl.ds(12 * nl.program_id(0), 12)
        place = out.vector_select(0, sbuf(index[half]))
        nisa.dma_copy(place, sbuf(values[half]), oob_mode=nisa.oob_mode.skip)
        return out

    values = draw(3, (24, 16), "float32")
    index = np.arange(24, dtype=np.int32)[:, None] * 2
    index[[3, 20]] = -1
    kept = np.setdiff1d(np.arange(24), [3, 20])
    same(nki.simulate(nki.jit(kernel)[2])(values, index)[2 * kept], values[kept])


def test_one_index_moves_a_view() -> None:
    batches = draw(5, (4, 32, 8), "float32")

    def kernel(batches, which):
        index = sbuf(which)
        register = nisa.register_alloc()
        nisa.register_load(register, index)
        results = []
        for source in (
            batches.select(0, index),
            batches.select(0, register),
            batches.ap([[8, 32], [1, 8]], scalar_offset=register, indirect_dim=0),
        ):
            tile = empty((32, 8), "float32")
            nisa.dma_copy(tile, source)
            results.append(out(tile))
        whole = sbuf(batches.reshape((128, 8)))
        column = empty((128, 1), "float32")
        nisa.tensor_copy(column, whole.ap([[8, 128], [1, 1]], scalar_offset=index, indirect_dim=1))
        return (*results, out(column))

    *result, column = simulate(kernel, batches, np.array([[2]], np.int32))
    for item in result:
        same(item, batches[2])
    same(column, batches.reshape(128, 8)[:, 2:3])


def test_views_at_run_time_that_are_refused() -> None:
    def view(shape, make, index=((8, 1), "int32"), buffer=nl.shared_hbm):
        def call():
            make(nl.ndarray(shape, dtype=nl.float32, buffer=buffer), empty(*index))

        return call

    one = ((1, 1), "int32")
    refuses(view((10, 8), lambda t, i: t.vector_select(1, i)), "dimension 1", "rows")
    refuses(view((10, 8), lambda t, i: t.vector_select(0, i), buffer=nl.sbuf), "nc_n_gather")
    refuses(view((10, 8), lambda t, i: t.vector_select(0, i), ((8, 1), "float32")), "float32")
    refuses(view((10, 8), lambda t, i: t.vector_select(0, i), ((8, 2), "int32")), "(8, 2)")
    refuses(view((10, 8), lambda t, i: t.vector_select(0, i)[2:4]), "sliced along dimension 0")
    refuses(view((10, 8), lambda t, i: t.vector_select(0, i).vector_select(0, i)), "already")
    refuses(view((10, 8), lambda t, i: t.select(0, i)), "8 values", "vector_select")
    refuses(view((10, 8), lambda t, i: t.select(0, i), one, nl.sbuf), "partition")
    refuses(view((10, 8), lambda t, i: t[i]), "run time", "scalar_offset")
    refuses(
        view((10, 8), lambda t, i: t.ap([[8, 4], [1, 8]], vector_offset=i)), "8 indices", "4 rows"
    )
    refuses(
        view((10, 8), lambda t, i: t.ap([[8, 8], [1, 8]], vector_offset=i, scalar_offset=i)),
        "together",
    )
    refuses(view((10, 8), lambda t, i: t.ap([[8, 1]], scalar_offset=i, indirect_dim=2), one), "=2")
    refuses(view((10, 8), lambda t, i: t.ap([[8, 1]], scalar_offset="1"), one), "'1'")


def test_an_address_at_run_time_costs_600_cycles() -> None:
    def call():
        tile = empty((4, 64), "float32")
        index = empty((1, 1), "int32")
        nisa.tensor_copy(empty((4, 8), "float32"), tile.ap([[64, 4], [1, 8]], None, index, None, 1))

    assert cycles(call) == ("vector", 600)


# ---- gathers inside SBUF -------------------------------------------------------------------------


@settings(max_examples=40)
@given(seeds, st.sampled_from((16, 32, 128)), st.integers(1, 5), st.sampled_from((1, 2, 8)), types)
def test_local_gather_shares_indices_of_16_partitions(seed, lanes, columns, run, dtype) -> None:
    rng = np.random.default_rng(seed)
    values = draw(seed, (lanes, 64), dtype)
    index = rng.integers(0, 64 - run + 1, (lanes, columns))
    valid = int(rng.integers(1, 16 * columns + 1))

    result = result_of(
        nisa.local_gather, (np.zeros((lanes, valid * run)), dtype), src_buffer=(values, dtype),
        index=(index, "uint16"), num_elem_per_idx=run, num_valid_indices=valid,
    )  # fmt: skip
    for core in range(lanes // 16):
        group = slice(16 * core, 16 * core + 16)
        flat = index[group].flatten(order="F")[:valid]
        wanted = np.concatenate([values[group, i : i + run] for i in flat], axis=1)
        same(result[group], wanted)


def test_local_gather_leaves_what_lies_behind_the_valid_indices() -> None:
    result = result_of(
        nisa.local_gather, (np.full((16, 16), 7.0), "float32"), num_valid_indices=5,
        src_buffer=(np.tile(np.arange(8.0), (16, 1)), "float32"),
        index=(np.full((16, 1), 3), "uint16"),
    )  # fmt: skip
    assert result.tolist() == [[3.0] * 5 + [7.0] * 11] * 16


@settings(max_examples=30)
@given(seeds, st.sampled_from((1, 7, 128)), st.integers(1, 40), st.integers(1, 30), types)
def test_nc_n_gather(seed, lanes, size, count, dtype) -> None:
    values = draw(seed, (lanes, size), dtype)
    index = np.random.default_rng(seed).integers(0, size, (lanes, count))

    pair = {"data": (values, dtype), "indices": (index, "uint32")}
    result = result_of(nisa.nc_n_gather, ((lanes, count), dtype), **pair)
    same(result, np.take_along_axis(values, index, 1))


def test_gathers_that_are_refused() -> None:
    def local(lanes=16, dtype="float32", kind="uint16", into=(16, 16), **options):
        source, index = empty((lanes, 64), dtype), empty((lanes, 1), kind)
        return lambda: nisa.local_gather(empty(into, "float32"), source, index, **options)

    refuses(lambda: local(8, into=(8, 16))(), "multiple of 16")
    refuses(lambda: local(dtype="bfloat16")(), "bfloat16")
    refuses(lambda: local(kind="uint32")(), "index is uint32", "uint16")
    refuses(lambda: local(num_elem_per_idx=3)(), "1, 2, 4, 8, 16, 32")
    refuses(lambda: local(num_valid_indices=17)(), "17", "16")
    refuses(lambda: local(into=(16, 15))(), "15", "16")
    refuses(lambda: local(into=(32, 16))(), "partitions differ")
    n = nisa.nc_n_gather
    refuses(lambda: n(t(), t(), t(type_="int32")), "uint32")
    refuses(lambda: n(t(), t(type_="int32"), t(type_="uint32")), "int32")
    refuses(lambda: n(t((4, 7), "int32"), t(type_="int32"), t(type_="uint32")), "7", "8")
    wrong = np.zeros((4, 3), int)
    wrong[2, 1] = 8
    for call, words in (
        (lambda: n(t((4, 3)), t(), put(wrong, "uint32")), "1 of partition 2(.|\n)*0 to 7"),
        (lambda: nisa.local_gather(t((16, 16), "int8"), t((16, 8), "int8"),
                                   put(np.full((16, 1), 8), "uint16")), "(.|\n)*0 to 7"),
    ):  # fmt: skip
        with pytest.raises(NkiValidationError, match=f"index 8 at position {words}"):
            issue(call)


def test_costs_of_gathers() -> None:
    def local(run, dtype):
        return cycles(
            lambda: nisa.local_gather(
                empty((16, 16 * run), dtype), empty((16, 64), dtype), empty((16, 1), "uint16"), run
            )
        )

    assert local(1, "float32") == ("gpsimd", 150 + 16 / 8)
    assert local(4, "bfloat16") == ("gpsimd", 150 + 16 * 4 / (44 / 16 / 2))
    assert cycles(
        lambda: nisa.topk(
            empty((16, 8), "bfloat16"), empty((16, 8), "uint32"), empty((16, 4), "bfloat16"), 50
        )
    ) == ("gpsimd", 4 * 50 + 8)


@settings(max_examples=30)
@given(
    seeds, st.sampled_from((1, 16, 40)), st.integers(1, 30), st.sampled_from(("float32", "int32"))
)
def test_nonzero_with_count_writes_every_16th_partition(seed, lanes, size, dtype) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, (lanes, size)) * rng.integers(0, 2, (lanes, size))

    result = result_of(
        nisa.nonzero_with_count, (np.full((lanes, size + 1), 77), "int32"), src=(values, dtype),
        index_offset=100, padding_val=-5,
    )  # fmt: skip
    for lane in range(lanes):
        wanted = [77] * (size + 1)
        if lane % 16 == 0:
            hits = [100 + i for i in range(size) if values[lane, i] != 0]
            wanted = hits + [-5] * (size - len(hits)) + [len(hits)]
        assert result[lane].tolist() == wanted


def test_nonzero_with_count_is_refused() -> None:
    call = nisa.nonzero_with_count
    src, dst = (lambda: t((16, 8), "int32")), (lambda: t((16, 9), "int32"))
    refuses(lambda: call(dst(), src()), "trn2", target="trn1")
    refuses(lambda: call(src(), src()), "one element more")
    refuses(lambda: call(t((16, 9), "uint32"), src()), "dst is uint32")
    refuses(lambda: call(dst(), src(), padding_val=0.5), "padding")


# ---- the largest ---------------------------------------------------------------------------------


@settings(max_examples=40)
@given(seeds, st.sampled_from((1, 5, 128)), st.integers(8, 40), floats, st.booleans())
def test_eight_at_a_time(seed, lanes, size, dtype, repeats) -> None:
    rng = np.random.default_rng(seed)
    values = draw(seed, (lanes, size), dtype)
    if repeats:
        values = rounds(rng.integers(0, 6, (lanes, size)), dtype)

    def call():
        data = put(values, dtype)
        most, where = empty((lanes, 8), dtype), empty((lanes, 8), "uint32")
        nisa.max8(most, data)
        nisa.nc_find_index8(where, data, most)
        rest, taken = empty((lanes, size), dtype), empty((lanes, 8), "uint16")
        nisa.nc_match_replace8(rest, data, most, -128.0, dst_idx=taken)
        return most, where, rest, taken

    most, where, rest, taken = (read(item) for item in issue(call)[1])
    same(most, -np.sort(-values, axis=1)[:, :8])
    for lane in range(lanes):
        assert sorted(where[lane]) == sorted(taken[lane])
        assert len(set(where[lane].tolist())) == 8
        same(values[lane, where[lane]], most[lane])
        kept = [v for i, v in enumerate(values[lane]) if i not in set(taken[lane].tolist())]
        assert sorted(kept) == sorted(rest[lane][rest[lane] != -128.0])


def test_equal_values_and_values_that_are_not_there() -> None:
    """The example of the documentation, and a bug of old: a missing value has all bits set."""

    def call():
        data = put([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]], "float32")
        sought = put([[3, 8, 8, 8, 8, 8, 8, 8]], "float32")
        other = put([[3, 9, 8, 8, 5, 1, 8, 8]], "float32")
        match_, backwards = empty((1, 8), "uint32"), empty((1, 8), "uint32")
        nisa.nc_find_index8(match_, data, sought)
        nisa.nc_match_replace8(empty((1, 11), "float32"), data, sought, 0.0, dst_idx=backwards)
        missing, short = empty((1, 8), "uint32"), empty((1, 8), "uint16")
        nisa.nc_find_index8(missing, data, other)
        nisa.nc_find_index8(short, data, other)
        return match_, backwards, missing, short

    result, backwards, missing, short = (read(item).tolist() for item in issue(call)[1])
    assert result == [[2, 4, 5, 6, 7, 8, 9, 10]]
    assert backwards == [[2, 10, 9, 8, 7, 6, 5, 4]]
    assert missing == [[2, 0xFFFFFFFF, 4, 5, 0xFFFFFFFF, 0, 6, 7]]
    assert short == [[2, 0xFFFF, 4, 5, 0xFFFF, 0, 6, 7]]


@settings(max_examples=25)
@given(seeds, st.sampled_from((16, 32)), st.integers(8, 60), st.data())
def test_topk_reads_a_snake(seed, lanes, n, data) -> None:
    k = data.draw(st.integers(1, n))
    columns = -(-n // 16)
    values = draw(seed, (lanes, columns), "bfloat16")

    def call():
        most, where = empty((lanes, k), "bfloat16"), empty((lanes, k), "uint32")
        nisa.topk(most, where, put(values, "bfloat16"), n)
        return most, where

    most, where = (read(item) for item in issue(call)[1])
    for lane in range(lanes):
        group = values[lane // 16 * 16 : lane // 16 * 16 + 16]
        snake = np.array([group[i % 16, i // 16] for i in range(n)])
        same(most[lane], np.sort(snake)[n - k :])
        same(snake[where[lane]], most[lane])


def test_searches_that_are_refused() -> None:
    def row(n, dtype="float32"):
        return t((4, n), dtype)

    refuses(lambda: nisa.max8(row(8), row(7)), "7", "8 to 16384")
    refuses(lambda: nisa.max8(row(8), row(16385)), "16385")
    refuses(lambda: nisa.max8(row(9), row(16)), "dst has 9")
    refuses(lambda: nisa.max8(empty((3, 8), "float32"), row(16)), "partitions differ")
    refuses(lambda: nisa.nc_find_index8(row(8, "int32"), row(16), row(8)), "dst is int32")
    refuses(lambda: nisa.nc_find_index8(row(8, "uint32"), row(16), row(4)), "vals has 4")
    refuses(lambda: nisa.nc_match_replace8(row(15), row(16), row(8), 0.0), "(4, 15)")
    refuses(lambda: nisa.nc_match_replace8(row(16), row(16), row(8), "0"), "imm")
    taken = lambda: row(7, "uint32")  # noqa: E731
    refuses(lambda: nisa.nc_match_replace8(row(16), row(16), row(8), 0.0, taken()), "has 7")

    def top(n=50, k=8, lanes=16, columns=4):
        kinds = ((k, "bfloat16"), (k, "uint32"), (columns, "bfloat16"))
        return lambda: nisa.topk(*(t((lanes, size), kind) for size, kind in kinds), n)

    refuses(top(n=7), "n is 7")
    refuses(top(k=51), "51")
    refuses(top(columns=3), "50 elements need")
    refuses(top(lanes=8), "multiple of 16")


# ---- DMA that adds -------------------------------------------------------------------------------


@settings(max_examples=25)
@given(seeds, st.integers(1, 5), floats, st.sampled_from(("add", "maximum")))
def test_dma_compute_adds_in_fp32(seed, count, dtype, name) -> None:
    values = [draw(seed + i, (8, 6), dtype) for i in range(count)]

    def kernel(*arrays):
        made = nl.ndarray((8, 6), dtype=getattr(nl, dtype), buffer=nl.shared_hbm)
        nisa.dma_compute(made, list(arrays), getattr(nl, name))
        return made

    result = simulate(kernel, *(item.astype(NUMPY[dtype]) for item in values))
    wanted = values[0].astype(np.float32)
    for value in values[1:]:
        wanted = wanted + value if name == "add" else np.maximum(wanted, value)
    same(result.astype(np.float32), rounds(wanted, dtype))


def test_scatter_and_gather_with_addition() -> None:
    table, index = rows(7, 40)
    values = draw(8, (24, 16), "float32")

    def kernel(target, table, values, index):
        result = sbuf(index)
        there = target.vector_select(0, result)
        nisa.dma_compute(there, [there, sbuf(values)], nl.add)
        tile = sbuf(values)
        nisa.dma_compute(tile, [tile, table.vector_select(0, result)], nl.add)
        return out(tile)

    changed = table.copy()
    gathered = simulate(kernel, changed, table, values, index.astype(np.int32))
    wanted = table.copy()
    wanted[index[:, 0]] += values
    same(changed, wanted)
    same(gathered, values + table[index[:, 0]])


def test_dma_compute_is_refused_or_doubted() -> None:
    hbm = lambda *shape: nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)  # noqa: E731
    call = nisa.dma_compute
    refuses(lambda: call(hbm(4, 8), [hbm(4, 8)] * 17, nl.add), "1 to 16")
    refuses(lambda: call(hbm(4, 8), [hbm(4, 8)], nl.multiply), "nl.add")
    refuses(lambda: call(hbm(4, 8), [hbm(4, 8)], nl.add, scales=[2.0]), "scales", "1.0")
    refuses(lambda: call(hbm(4, 8), [hbm(4, 7)], nl.add), "srcs[0]", "28", "32")
    refuses(lambda: call(hbm(4, 8), [empty((4, 8), "float32", "psum")], nl.add), "srcs[0]", "PSUM")

    def scattered(**options):
        there = hbm(9, 8).vector_select(0, put(np.zeros((4, 1)), "int32"))
        call(there, [there, empty((4, 8), "float32")], nl.add, **options)

    refuses(lambda: scattered(unique_indices=False), "unique_indices=False")
    warns(scattered, "twice")


# ---- block-scaled numbers ------------------------------------------------------------------------


def interleaved(values: np.ndarray) -> np.ndarray:
    """(K, 4 M) as the numbers of the product: (4 K, M)."""
    k, m = values.shape
    return values.reshape(k, m // 4, 4).transpose(0, 2, 1).reshape(4 * k, m // 4)


@settings(max_examples=20)
@given(
    seeds, st.sampled_from((32, 64, 128)), st.sampled_from(("float8_e4m3fn", "float8_e5m2")),
    st.sampled_from(("bfloat16", "float16")), st.sampled_from((0, 4, 8, 12)),
)  # fmt: skip
def test_quantised_tiles_and_their_product(seed, k, element, dtype, start) -> None:
    rng = np.random.default_rng(seed)
    scale = 2.0 ** rng.integers(-6, 6)
    values = rounds(rng.standard_normal((k, 64)) * scale, dtype)
    values[:8, :4] = 0
    packed = getattr(nl, element + "_x4")

    def call():
        data = nl.ndarray((k, 16), dtype=packed, buffer=nl.sbuf)
        scales = nl.ndarray((128, 16), dtype=nl.uint8, buffer=nl.sbuf)[start:, :]
        nisa.quantize_mx(data, put(values, dtype), scales)
        psum = nl.ndarray((16, 16), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul_mx(psum, data, data, scales, scales)
        return data, scales, psum

    data, scales, psum = issue(call, "trn3")[1]
    wanted = mx.quantise_tile(values, {"float8_e4m3fn": "e4m3fn", "float8_e5m2": "e5m2"}[element])
    result = data.raw().view(np.uint8).view(getattr(ml_dtypes, element)).astype(np.float32)
    same(result, wanted.elements)
    same(scales.raw()[scale_rows(k)], wanted.scale_codes)
    numbers = interleaved(wanted.dequantise())
    same(read(psum), (numbers.T @ numbers).astype(np.float32))
    assert wanted.scale_codes[0, 0] == 0  # a block of zeros: the smallest scale


def test_the_scale_is_twice_that_of_the_sample_algorithm() -> None:
    values = np.full((32, 4), 448.0)

    def call():
        data, scales = t((32, 1), "float8_e4m3fn_x4"), t((4, 1), "uint8")
        nisa.quantize_mx(data, put(values, "bfloat16"), scales)
        return scales

    assert (issue(call, "trn3")[1].raw() == 127 + 1).all()


def test_four_bit_numbers_multiply() -> None:
    codes = np.arange(32 * 8 * 4).reshape(32, 8, 4) % 16
    packed = (codes << np.array([0, 4, 8, 12])).sum(2)
    values = codes.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)

    def call():
        data = nl.ndarray((32, 8), dtype=nl.float4_e2m1fn_x4, buffer=nl.sbuf)
        data.array()[...] = packed
        scales = put(np.full((4, 8), 128), "uint8")
        psum = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
        for _ in range(2):
            nisa.nc_matmul_mx(psum, data, data, scales, scales)
        return psum

    numbers = 2 * values.transpose(0, 2, 1).reshape(128, 8)
    same(read(issue(call, "trn3")[1]), 2 * numbers.T @ numbers)


def test_block_scaled_numbers_that_are_refused() -> None:
    def tile(rows, columns, dtype="float8_e4m3fn_x4", where=nl.sbuf):
        return nl.ndarray((rows, columns), dtype=getattr(nl, dtype), buffer=where)

    def quantised(rows=32, columns=16, dtype="bfloat16", into=None, scale=(4, 4), start=0):
        dst = tile(rows, columns // 4) if into is None else into()
        scales = nl.ndarray((scale[0] + start, scale[1]), dtype=nl.uint8, buffer=nl.sbuf)
        nisa.quantize_mx(dst, empty((rows, columns), dtype), scales[start:])

    on3 = {"target": "trn3"}
    refuses(lambda: quantised(), "trn2", "trn3")
    refuses(lambda: quantised(rows=16), "16 partitions", "32", **on3)
    refuses(lambda: quantised(dtype="float32"), "src is float32", **on3)
    refuses(lambda: quantised(into=lambda: tile(32, 5)), "(32, 5)", "quarter", **on3)
    refuses(lambda: quantised(into=lambda: tile(32, 4, "float4_e2m1fn_x4")), "float4", **on3)
    refuses(lambda: quantised(scale=(3, 4)), "4 partitions", **on3)
    refuses(lambda: quantised(rows=64, scale=(8, 4)), "36 partitions", **on3)
    refuses(lambda: quantised(start=5), "partition 5", "0, 4, 8, 12", **on3)

    def product(m=16, n=16, k=32, other=32, into=None, **options):
        dst = tile(m, n, "float32", nl.psum) if into is None else into()
        scales = empty((128, max(m, n)), "uint8")
        nisa.nc_matmul_mx(dst, tile(k, m), tile(other, n), scales, scales, **options)

    refuses(lambda: product(), "trn2", "trn3")
    refuses(lambda: product(other=64), "32", "64", **on3)
    refuses(lambda: product(m=15), "15 columns", "even", **on3)
    refuses(lambda: product(m=130), "130", **on3)
    refuses(lambda: product(into=lambda: tile(16, 15, "float32", nl.psum)), "(16, 15)", **on3)
    refuses(lambda: product(into=lambda: tile(16, 16, "float32")), "PSUM", **on3)
    refuses(lambda: product(tile_position=(32, 0)), "tile_position", **on3)
    refuses(
        lambda: product(tile_position=(16, 0), tile_size=(32, 128)), "multiple of the rows", **on3
    )
