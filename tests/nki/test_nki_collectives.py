"""Collectives on several simulated ranks: values, refusals, and the time of the course's model."""

import inspect

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nki.collectives import ReplicaGroup, rg_partition_op

from utils.chip import collectives as model
from utils.nki.simulator import launch
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError

OPERATORS = {nl.add: np.add, nl.minimum: np.minimum, nl.maximum: np.maximum}


def hbm(shape, dtype):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm)


def draw(ranks, rows, columns=3):
    return np.random.default_rng(ranks).integers(-50, 50, (ranks, rows, columns)).astype(np.int32)


groups = st.sampled_from(
    [[[0, 1, 2, 3]], [[3, 1, 0, 2]], [[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0], [1], [2, 3]]]
)


@settings(max_examples=12)
@given(groups, st.sampled_from(sorted(OPERATORS, key=repr)))
def test_each_rank_gets_what_numpy_says(lists, op) -> None:
    x = draw(4, 4)

    def kernel(a):
        group = ReplicaGroup(lists)
        n = len(next(ranks for ranks in lists if int(ncc.rank_id().value) in ranks))
        total, part = hbm(a.shape, a.dtype), hbm((4 // n, 3), a.dtype)
        every, turned = hbm((4 * n, 3), a.dtype), hbm(a.shape, a.dtype)
        ncc.all_reduce([a], [total], group, op)
        ncc.all_gather([a], [every], group, 0)
        ncc.reduce_scatter([a], [part], group, 0, op)
        ncc.all_to_all([a], [turned], group, 0)
        return total, every, part, turned

    results = nki.simulate(kernel, ranks=4)(x)
    for ranks in lists:
        total = OPERATORS[op].reduce(x[ranks])
        for place, rank in enumerate(ranks):
            made = results[rank]
            np.testing.assert_array_equal(made[0], total)
            np.testing.assert_array_equal(made[1], np.concatenate(x[ranks]))
            np.testing.assert_array_equal(made[2], np.split(total, len(ranks))[place])
            parts = [np.split(x[other], len(ranks))[place] for other in ranks]
            np.testing.assert_array_equal(made[3], np.concatenate(parts))


def ring(a, steps):
    """All-reduce by hand: the tensor goes round, and each rank adds what comes."""
    ranks = list(range(steps))
    group = ReplicaGroup([ranks])
    held = [hbm(a.shape, a.dtype) for _ in range(2)]
    total, seen = hbm(a.shape, a.dtype), hbm((1, steps), nl.int32)
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    more = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    number = nl.ndarray((1, steps), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(tile, a)
    nisa.dma_copy(held[0], a)
    for step in range(steps):
        register = ncc.collective_permute_implicit_current_processing_rank_id(step, group)
        nisa.register_store(number[:, step : step + 1], register)
        if step:
            nisa.dma_copy(more, held[step % 2])
            nisa.tensor_tensor(tile, tile, more, nl.add)
        ncc.collective_permute_implicit([[held[step % 2]]], [[held[(step + 1) % 2]]], group)
    nisa.dma_copy(total, tile)
    nisa.dma_copy(seen, number)
    return total, seen


@pytest.mark.parametrize("cores", [1, 2])
def test_a_ring_by_hand_gives_the_sum_and_says_whose_data_it_has(cores) -> None:
    x = draw(3, 2)
    for rank, (total, seen) in enumerate(nki.simulate(nki.jit(ring)[cores], ranks=3)(x, 3)):
        np.testing.assert_array_equal(total, x.sum(0))
        assert seen[0].tolist() == [rank, (rank - 1) % 3, (rank - 2) % 3]


def test_pairs_and_reductions_on_the_way() -> None:
    def kernel(a):
        moved, made = hbm(a.shape, a.dtype), hbm(a.shape, a.dtype)
        nisa.dma_copy(moved, a)
        ncc.collective_permute([a], [moved], [(0, 2), (2, 1), (1, 0)])
        group = ReplicaGroup([[0, 1, 2]])
        ncc.collective_permute_implicit_reduce([[a]], [[moved]], [[made]], group, nl.add)
        return moved, made

    x = draw(3, 2)
    source = {2: 0, 1: 2, 0: 1}
    for rank, (moved, made) in enumerate(nki.simulate(kernel, ranks=3)(x)):
        np.testing.assert_array_equal(moved, x[source[rank]])
        before = (rank - 1) % 3
        np.testing.assert_array_equal(made, x[before] + x[source[before]])


@pytest.mark.parametrize("split", [False, True])
def test_lengths_of_run_time(split) -> None:
    counts = np.array([[1, 2], [3, 0]])  # rows: who sends; columns: to whom

    def kernel(a, table):
        out, flat = hbm((8,), a.dtype), hbm(table.shape, table.dtype)
        nisa.dma_copy(flat, table)
        group = ReplicaGroup.from_partition_op(2, rg_partition_op.div, 2)
        nisa.dma_copy(out, a)
        if split:
            work = ncc.all_to_all_v_prepare([a], [out], group, flat)
            ncc.all_to_all_v_trigger(work)
        else:
            ncc.all_to_all_v([a], [out], group, flat)
        return out, flat

    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    tables = np.zeros((2, 3, 2), np.uint32)
    for rank in range(2):
        tables[rank, 0] = counts[rank]
        tables[rank, 1] = [0, counts[rank][0]]
    for rank, (out, table) in enumerate(nki.simulate(kernel, ranks=2)(x, tables)):
        expected = x[rank].copy()
        for sender in range(2):
            begin = tables[sender, 1, rank]
            count = counts[sender, rank]
            expected[4 * sender : 4 * sender + count] = x[sender, begin : begin + count]
        np.testing.assert_array_equal(out, expected)
        assert table[2].tolist() == counts[:, rank].tolist()


def test_a_part_for_everybody() -> None:
    def kernel(a, table):
        out = hbm((8,), a.dtype)
        nisa.dma_copy(out, a)
        ncc.all_gather_v([a], [out], ReplicaGroup([[0, 1]]), table, recv_counts_known=True)
        return out

    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    tables = np.array([[[2, 0], [1, 0], [0, 0]], [[3, 0], [5, 0], [0, 0]]], np.uint32)
    for rank, out in enumerate(nki.simulate(kernel, ranks=2)(x, tables.copy())):
        expected = x[rank].copy()
        expected[0:2], expected[4:7] = x[0, 1:3], x[1, 5:8]
        np.testing.assert_array_equal(out, expected)


def wrong(kernel, *words, ranks=2, shape=(4, 3)) -> None:
    with pytest.raises(NkiValidationError) as caught:
        nki.simulate(kernel, ranks=ranks)(np.zeros((ranks, *shape), np.float32))
    text = str(caught.value) + "\n".join(getattr(caught.value, "__notes__", ()))
    for word in words:
        assert word in text, text


ALL = ReplicaGroup([[0, 1]])


def reduce(a, group=ALL, op=nl.add, shape=None):
    ncc.all_reduce([a], [hbm(shape or a.shape, a.dtype)], group, op)


def test_what_ranks_may_not_do_is_said() -> None:
    wrong(lambda a: reduce(a, ReplicaGroup([[0, 1, 2, 3]])), "this simulation has 2", "ranks=4")
    wrong(lambda a: reduce(a, ReplicaGroup([[0], [0, 1]])), "no rank is in two of them")
    wrong(lambda a: reduce(a, ReplicaGroup([[0]])), "rank 1 calls a collective of [[0]]")
    wrong(lambda a: reduce(a, op=nl.multiply), "allowed: nl.add, nl.minimum, nl.maximum")
    wrong(lambda a: reduce(a, shape=(4, 4)), "src is (4, 3)", "(4, 3)")
    wrong(lambda a: ncc.all_gather([a], [hbm((8, 3), a.dtype)], ALL, 1), "allowed: 0", "transpose")
    wrong(
        lambda a: ncc.all_to_all([a], [hbm(a.shape, a.dtype)], ALL, 0), "3 rows for 2", shape=(3, 3)
    )
    gather = lambda a: ncc.all_gather([a], [hbm((8, 3), a.dtype)], ALL, 0)  # noqa: E731
    only_one = lambda a, other: reduce(a) if ncc.rank_id().value else other(a)  # noqa: E731
    words = "no core can go on", "rank 1", "waits at all_reduce of ranks [0, 1]"
    wrong(lambda a: only_one(a, lambda a: None), *words)
    wrong(lambda a: only_one(a, gather), "the ranks of a group issue the same collectives")
    wrong(lambda a: ncc.all_to_all_v_trigger(None), "is not what all_to_all_v_prepare returned")
    wrong(lambda a: ncc.collective_permute([a], [a], [(0, 1), (0, 0)]), "sends to one rank at most")
    wrong(lambda a: ncc.collective_permute_implicit([[a, a]], [[a]], ALL), "moves one tensor")
    with pytest.raises(ValueError, match="its first dimension counts the ranks, so it is 4"):
        nki.simulate(reduce, ranks=4)(np.zeros((2, 4), np.float32))
    with pytest.raises(NkiValidationError, match=r"this simulation has 1(.|\n)*ranks=2"):
        nki.simulate(reduce)(np.zeros((2, 4), np.float32))


def test_metadata_that_is_written_while_it_is_read_is_found_with_both_places() -> None:
    def kernel(a, table):
        out, flat = hbm((8,), a.dtype), hbm(table.shape, table.dtype)
        nisa.dma_copy(flat, table)
        nisa.dma_copy(out, a)
        work = ncc.all_to_all_v_prepare([a], [out], ReplicaGroup([[0, 1]]), flat)  # prepared
        nisa.dma_copy(flat, table)  # written
        ncc.all_to_all_v_trigger(work)
        return out

    lines, first = inspect.getsourcelines(kernel)
    prepared, written = (
        first + next(i for i, line in enumerate(lines) if word in line)
        for word in ("# prepared", "# written")
    )
    x, table = np.zeros((2, 8), np.float32), np.zeros((2, 3, 2), np.uint32)
    with pytest.warns(DoubtfulKernel, match="before the trigger") as caught:
        nki.simulate(kernel, ranks=2)(x, table)
    text = str(caught[0].message)
    assert f"dma_copy at {__file__}:{written}" in text
    assert text.endswith(f"At: {__file__}:{prepared}")


def test_the_time_is_that_of_the_model_for_the_group() -> None:
    def kernel(a):
        out = hbm(a.shape, a.dtype)
        ncc.all_reduce([a], [out], ReplicaGroup([list(range(16))]), nl.add)
        return out

    result = nki.profile(kernel, ranks=16)(Shape((4096, 1024), "bfloat16"))
    wanted = model.seconds("all-reduce", 4096 * 1024 * 2, model.fabric("trn2.48xlarge"), 16)
    assert result.seconds == pytest.approx(wanted.seconds, rel=0.02)
    assert "all_reduce" in str(result.critical_path)


def test_the_number_of_cores_agrees_with_that_of_the_compiler(monkeypatch) -> None:
    def kernel(a):
        return a

    x = np.zeros((1, 2), np.float32)
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    launch.run(nki.jit(kernel)[2], (x,), {})
    with pytest.raises(NkiValidationError, match=r"1 core, and NEURON_LOGICAL(.|\n)*kernel\[2\]"):
        launch.run(nki.jit(kernel), (x,), {})
    monkeypatch.setenv("COURSE_NKI_API", "0.6")
    launch.run(nki.jit(kernel), (x,), {})
