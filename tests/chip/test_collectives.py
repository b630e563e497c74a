"""The cost model of collectives: by its properties, and against pieces that are passed on."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.chip.collectives import (
    ALGORITHMS,
    KINDS,
    NAMES,
    Fabric,
    Tier,
    crossover_bytes,
    fabric,
    lines,
    overlap,
    seconds,
    terms,
    tier_sizes,
)
from utils.chip.collectives.algorithms import WIRINGS, rounds
from utils.chip.collectives.moving import Wire, all_reduce, tree_all_reduce

BYTES = st.floats(1, 1e12)
RATE = st.floats(1e8, 1e12)
LATENCY = st.floats(1e-7, 1e-3)
SIZES = st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple)


@st.composite
def tiers(draw, most=40):
    wiring = draw(st.sampled_from(WIRINGS))
    sizes = draw(SIZES) if wiring == "torus" else (draw(st.integers(2, most)),)
    return Tier(wiring, math.prod(sizes), draw(LATENCY), draw(RATE), wiring, sizes)


@st.composite
def fabrics(draw):
    result = draw(st.lists(tiers(most=8), min_size=1, max_size=3))
    return Fabric("drawn", tuple(result))


# Pieces that are passed on.


def vectors(ranks: int, length: int) -> list[np.ndarray]:
    return list(np.random.default_rng(ranks).integers(0, 99, (ranks, length)).astype(float))


@pytest.mark.parametrize("algorithm", ["ring", "halving", "direct"])
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 7, 8, 12, 16])
def test_an_all_reduce_sends_what_the_formula_counts(algorithm, ranks):
    values = vectors(ranks, 6 * ranks)
    sums, wire = all_reduce(values, (algorithm, [range(ranks)]))
    expected = terms("all-reduce", algorithm, "switched", (ranks,))
    assert all(np.array_equal(sum_, sum(values)) for sum_ in sums)
    assert wire.steps == expected.steps
    assert wire.sent == pytest.approx(np.full(ranks, expected.sent * 6 * ranks))


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 13])
def test_a_tree_sends_whole_vectors(ranks):
    values = vectors(ranks, 10)
    sums, wire = tree_all_reduce(values)
    expected = terms("all-reduce", "tree", "switched", (ranks,))
    assert all(np.array_equal(sum_, sum(values)) for sum_ in sums)
    assert wire.steps == expected.steps
    assert wire.sent.max() == expected.sent * 10


def binary_tree(ranks: int) -> dict[int, int]:
    """Parents, rank 0 on top: odd ranks are leaves, and ranks in between stand in between."""
    parents = {}
    for rank in range(1, ranks):
        bit = rank & -rank
        up = (rank ^ bit) | (bit << 1)
        parents[rank] = up if up < ranks else rank ^ bit
    return parents


def two_trees(values: list[np.ndarray]) -> tuple[list[np.ndarray], Wire]:
    """Half of the vectors along each of two trees; a level of both trees is one step."""
    n, wire = len(values), Wire(len(values))
    first = binary_tree(n)
    turned = (lambda r: n - 1 - r) if n % 2 == 0 else (lambda r: (r + 1) % n)
    parents = [first, {turned(rank): turned(up) for rank, up in first.items()}]
    held = [np.array_split(value.astype(float), 2) for value in values]

    def depth(tree, rank):
        return 1 + depth(tree, tree[rank]) if rank in tree else 0

    deepest = max(depth(tree, rank) for tree in parents for rank in range(n))
    levels = range(1, deepest + 1)
    edges = {
        level: [(half, r, tree[r]) for half, tree in enumerate(parents) for r in tree
                if depth(tree, r) == level]
        for level in levels
    }  # fmt: skip
    for level in reversed(levels):
        got = wire.step([(r, up, held[r][half]) for half, r, up in edges[level]])
        for (half, _, up), (_, _, what) in zip(edges[level], got, strict=True):
            held[up][half] = held[up][half] + what
    for level in levels:
        got = wire.step([(up, r, held[up][half]) for half, r, up in edges[level]])
        for (half, r, _), (_, _, what) in zip(edges[level], got, strict=True):
            held[r][half] = what
    return [np.concatenate(item) for item in held], wire


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, 7, 8, 16, 33])
def test_two_trees_share_the_sending(ranks):
    values = vectors(ranks, 12)
    sums, wire = two_trees(values)
    expected = terms("all-reduce", "double tree", "switched", (ranks,))
    assert all(np.array_equal(sum_, sum(values)) for sum_ in sums)
    assert wire.steps <= expected.steps
    assert wire.sent.max() <= expected.sent * 12
    if ranks & (ranks - 1) == 0:
        assert wire.steps == expected.steps
        assert wire.sent.max() == expected.sent * 12


def rows(sizes: tuple[int, ...], axis: int) -> list[list[int]]:
    """Groups along an axis of a grid, ranks numbered with the last axis running fastest."""
    number = np.arange(math.prod(sizes)).reshape(sizes)
    return np.moveaxis(number, axis, -1).reshape(-1, sizes[axis]).tolist()


@pytest.mark.parametrize("sizes", [(2, 3), (4, 4), (3, 4, 2)])
def test_a_torus_goes_along_one_axis_after_another(sizes):
    ranks = math.prod(sizes)
    values = vectors(ranks, 2 * ranks)
    stages = [("ring", rows(sizes, axis)) for axis in range(len(sizes))]
    sums, wire = all_reduce(values, *stages)
    assert all(np.array_equal(sum_, sum(values)) for sum_ in sums)
    expected = terms("all-reduce", "torus", "torus", sizes)
    assert wire.steps == expected.steps
    assert wire.sent == pytest.approx(np.full(ranks, expected.sent * 2 * ranks))


@pytest.mark.parametrize("inside", ["ring", "direct", "halving"])
@pytest.mark.parametrize("outside", ["ring", "direct", "halving"])
def test_a_hierarchy_may_mix_algorithms(inside, outside):
    values = vectors(12, 24)
    near, far = [range(r, r + 4) for r in (0, 4, 8)], [(r, r + 4, r + 8) for r in range(4)]
    sums, wire = all_reduce(values, (inside, near), (outside, far))
    assert all(np.array_equal(sum_, sum(values)) for sum_ in sums)
    a, b = (terms("all-reduce", n, "switched", (k,)) for n, k in ((inside, 4), (outside, 3)))
    assert wire.steps == a.steps + b.steps
    assert wire.sent == pytest.approx(np.full(12, 24 * (a.sent + b.sent / 4)))


@pytest.mark.parametrize("sizes", [(3,), (4,), (5,), (4, 4), (2, 5), (3, 4, 2)])
def test_the_load_of_direct_messages_is_that_of_the_busiest_link(sizes):
    loads: Counter = Counter()
    for start, end in itertools.permutations(itertools.product(*map(range, sizes)), 2):
        at = list(start)
        for axis, size in enumerate(sizes):
            ahead = (end[axis] - at[axis]) % size
            ways = [(1, ahead), (-1, size - ahead)]
            shortest = [item for item in ways if item[1] == min(w[1] for w in ways)]
            if ahead:
                for way, hops in shortest if size > 2 else ways[:1]:
                    here = list(at)
                    for _ in range(hops):
                        share = 1 / len(shortest) if size > 2 else 1
                        loads[tuple(here), axis, way if size > 2 else 1] += share
                        here[axis] = (here[axis] + way) % size
            at[axis] = end[axis]
    ranks = math.prod(sizes)
    links = sum(min(size - 1, 2) for size in sizes)
    expected = terms("all-to-all", "direct", "torus", sizes)
    assert expected.load == pytest.approx(max(loads.values()) / ranks * links)


def test_an_all_to_all_on_a_ring_takes_the_shorter_way():
    for ranks in (2, 3, 4, 7, 8):
        hops = [min(k, ranks - k) for k in range(1, ranks)]
        expected = terms("all-to-all", "ring", "ring", (ranks,))
        assert expected.steps == max(hops)
        assert expected.sent == pytest.approx(sum(hops) / ranks)


# Properties.


@given(whole=fabrics(), kind=st.sampled_from(KINDS), sizes=st.tuples(BYTES, BYTES))
def test_time_grows_with_size_and_never_goes_below_a_bound(whole, kind, sizes):
    small, large = sorted(sizes)
    first, second = seconds(kind, np.array([small, large]), whole).seconds
    assert first <= second * (1 + 1e-12)
    assert first >= min(tier.latency_s for tier in whole.tiers)
    # Every tier joins blocks of ranks. What a block must take in comes over the links of all of it.
    inside = 1
    for tier in whole.tiers:
        part = (tier.ranks - 1) / tier.ranks
        outermost = tier is whole.tiers[-1]
        must = {
            "all-reduce": 2 * part,
            "permute": inside * outermost,
            "all-to-all": part * inside if outermost else 0,
        }.get(kind, part)
        assert first >= must * small / (inside * tier.bytes_per_s) * (1 - 1e-9)
        inside *= tier.ranks


@given(
    kind=st.sampled_from(KINDS[:-1]), algorithm=st.sampled_from(ALGORITHMS),
    wiring=st.sampled_from(("ring", "switched")), ranks=st.integers(1, 200), more=st.integers(1, 9),
)  # fmt: skip
def test_more_ranks_never_cost_less(kind, algorithm, wiring, ranks, more):
    few = terms(kind, algorithm, wiring, (ranks,))
    many = terms(kind, algorithm, wiring, (ranks + more,))
    if few is None or many is None:
        assert few is many or ranks == 1
    else:
        assert few.steps <= many.steps
        assert few.load <= many.load * (1 + 1e-12)
        assert few.sent <= many.sent * (1 + 1e-12)


@given(
    algorithm=st.sampled_from(ALGORITHMS), wiring=st.sampled_from(WIRINGS), sizes=SIZES,
    kind=st.sampled_from(KINDS),
)  # fmt: skip
def test_no_algorithm_sends_or_waits_less_than_it_must(kind, algorithm, wiring, sizes):
    sizes = sizes if wiring == "torus" else (math.prod(sizes),)
    ranks = math.prod(sizes)
    result = terms(kind, algorithm, wiring, sizes)
    if result is None:
        return
    part = (ranks - 1) / ranks
    least = {"all-reduce": 2 * part, "permute": 1, "broadcast": part}.get(kind, part)
    if algorithm == "double tree" and ranks == 2:
        least = 1
    assert result.steps >= 1
    assert result.load >= least * (1 - 1e-12)
    assert result.sent >= min(least, 1) * (1 - 1e-12)


@given(wiring=st.sampled_from(WIRINGS), sizes=SIZES)
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(wiring, sizes):
    sizes = sizes if wiring == "torus" else (math.prod(sizes),)
    for algorithm in ("ring", "torus", "direct", "halving"):
        first, second, both = (
            terms(kind, algorithm, wiring, sizes)
            for kind in ("reduce-scatter", "all-gather", "all-reduce")
        )
        assert (first is None) == (both is None)
        if both is not None:
            assert first + second == both


@given(tier=tiers(), kind=st.sampled_from(KINDS), size=BYTES)
def test_a_hierarchy_of_one_tier_is_flat(tier, kind, size):
    alone = Tier("nobody else", 1, 1.0, 1.0)
    flat = seconds(kind, size, tier)
    for whole in ((tier,), (alone, tier), (tier, alone), (alone, tier, alone)):
        assert seconds(kind, size, Fabric("one", whole)) == flat


@given(whole=fabrics(), kind=st.sampled_from(KINDS), size=BYTES)
def test_the_best_is_the_least_of_all_algorithms(whole, kind, size):
    names = {line.algorithm for line in lines(kind, whole)}
    item = {name: seconds(kind, size, whole, algorithm=name).seconds for name in names}
    best = seconds(kind, size, whole)
    assert best.seconds == min(item.values())
    assert item[best.algorithm] == best.seconds
    assert best.seconds == pytest.approx(best.latency_s + best.bandwidth_s)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_one_rank_has_nothing_to_do(kind, name):
    alone = seconds(kind, 1e9, fabric(name), ranks=1)
    assert (alone.seconds, alone.steps, alone.bytes_sent_per_rank) == (0, 0, 0)
    assert crossover_bytes(kind, fabric(name), ranks=1) == 0


@settings(max_examples=50)
@given(whole=fabrics(), kind=st.sampled_from(KINDS))
def test_up_to_the_crossover_a_message_takes_more_than_twice_its_bandwidth_time(whole, kind):
    for algorithm in (None, *sorted({line.algorithm for line in lines(kind, whole)})):
        crossover = crossover_bytes(kind, whole, algorithm=algorithm)
        huge = 1e18
        rate = seconds(kind, huge, whole, algorithm=algorithm).bandwidth_s / huge
        below = crossover * np.array([1e-6, 1e-3, 0.5, 0.9, 1 - 1e-6])
        above = crossover * np.array([1 + 1e-6, 1.1, 2, 1e3, 1e6]) + (crossover == 0)
        times = seconds(kind, np.concatenate([below, above]), whole, algorithm=algorithm).seconds
        more = times > 2 * rate * np.concatenate([below, above])
        assert more.tolist() == 5 * [crossover > 0] + 5 * [False]
    one = min(lines(kind, whole), key=lambda line: line.seconds_per_byte)
    if sum(line.algorithm == one.algorithm for line in lines(kind, whole)) == 1:
        size = crossover_bytes(kind, whole, algorithm=one.algorithm)
        at = seconds(kind, size, whole, algorithm=one.algorithm)
        assert at.latency_s == pytest.approx(at.bandwidth_s)


@given(compute=st.floats(0, 1e3), communicate=st.floats(0, 1e3), share=st.floats(0, 1))
def test_overlap_hides_what_it_can(compute, communicate, share):
    result = overlap(compute, communicate, share)
    assert max(compute, communicate) <= result * (1 + 1e-12)
    assert result <= compute + communicate
    assert overlap(compute, communicate, 0) == compute + communicate
    assert overlap(compute, communicate, 1) == pytest.approx(max(compute, communicate))


# Fabrics and arrays.


def test_the_fabrics_have_the_ranks_of_their_instances():
    assert [fabric(name).ranks for name in NAMES] == [32, 32, 64, 256, 256, 576, 8, 8]
    assert fabric("trn2-ultraserver", nodes=390).ranks == 390 * 256
    for name in NAMES:
        rates = [tier.bytes_per_s for tier in fabric(name).tiers]
        assert rates[1:] == sorted(rates[1:], reverse=True), "outer tiers have less for each rank"


def test_the_first_tier_is_a_chip_and_the_last_the_network():
    for name in NAMES:
        first, *_, last = fabric(name, nodes=3).tiers
        assert first.ranks == (1 if name.startswith("p5") else 2 if name.startswith("trn1") else 4)
        assert (last.ranks, last.name) == (3, "nodes, EFA")


def test_efa_of_a_rank_is_what_aws_says():
    assert fabric("trn2.48xlarge", 2).tiers[-1].bytes_per_s == 50e9 / 8


def test_a_group_is_spread_over_tiers():
    ultra = fabric("trn2-ultraserver", nodes=8)
    assert tier_sizes(ultra, 4) == (4, 1, 1, 1)
    assert tier_sizes(ultra, 64) == (4, 16, 1, 1)
    assert tier_sizes(ultra, 8, stride=256) == (1, 1, 1, 8)
    assert tier_sizes(ultra, 32, stride=64) == (1, 1, 4, 8)
    assert tier_sizes(ultra, 2048) == (4, 16, 4, 8)
    for ranks, stride, says in (
        (6, 1, "uneven"),
        (4096, 1, "2048"),
        (0, 1, "0 ranks"),
        (4, 3, "uneven"),
    ):
        with pytest.raises(ValueError, match=says):
            tier_sizes(ultra, ranks, stride)


def test_part_of_a_torus_has_part_of_the_links():
    tier = fabric("trn2.48xlarge").tiers[1]
    assert tier.part(16) == ((4, 4), (0.5, 0.5))
    assert tier.part(4) == ((1, 4), (0, 0.5))
    assert tier.part(2) == ((1, 2), (0, 0.25))
    assert tier.part(8) == ((2, 4), (0.25, 0.5))
    assert tier.part(3) is None
    whole, row = (seconds("all-reduce", 1e9, tier, n, "ring").bandwidth_s for n in (16, 4))
    assert row / whole == pytest.approx(2 * (3 / 4) / (15 / 16))


def test_arrays_give_what_single_calls_give():
    ultra = fabric("trn2-ultraserver", nodes=64)
    sizes = np.geomspace(1e3, 1e10, 6)[:, None]
    ranks, strides = np.array([1, 4, 64, 16, 64]), np.array([1, 1, 1, 16, 256])
    result = seconds("all-reduce", sizes, ultra, ranks, stride=strides)
    assert result.seconds.shape == result.algorithm.shape == (6, 5)
    for i, j in itertools.product(range(6), range(5)):
        alone = seconds("all-reduce", sizes[i, 0], ultra, int(ranks[j]), stride=int(strides[j]))
        assert result.seconds[i, j] == alone.seconds
        assert result.algorithm[i, j] == alone.algorithm
        assert result.steps[i, j] == alone.steps
        assert result.bytes_sent_per_rank[i, j] == alone.bytes_sent_per_rank


def test_members_of_each_tier_may_be_given():
    two = fabric("trn2.48xlarge", nodes=2)
    given_so = seconds("all-gather", 1e8, two, (4, 16, 2))
    assert given_so == seconds("all-gather", 1e8, two)
    assert seconds("all-gather", 1e8, two, (4, 1, 2)).seconds > 0


def test_a_ring_through_a_mesh_of_nodes_uses_all_adapters():
    """n - 1 steps, each as slow as the slowest hop; all adapters of a node carry the ring."""
    near, far = Tier("near", 8, 1e-6, 4e11), Tier("far", 4, 2e-5, 5e10)
    result = seconds("all-reduce", 1e9, Fabric("two", (near, far)), algorithm="flat ring")
    assert result.steps == 62
    assert result.latency_s == pytest.approx(62 * 2e-5)
    assert result.bandwidth_s == pytest.approx(2 * 31 / 32 * 1e9 / min(4e11, 8 * 5e10))


def test_all_nodes_of_a_large_cluster_still_take_a_logarithm():
    far = fabric("trn2.48xlarge", nodes=4096)
    steps = seconds("all-reduce", 8, far, 4096, stride=64).steps
    assert steps == rounds(4096) * 2


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: seconds("reduce", 1, fabric("p5.48xlarge")), "no collective 'reduce'"),
        (lambda: seconds("permute", 1, fabric("p5.48xlarge"), algorithm="ring"), "has no 'ring'"),
        (lambda: seconds("permute", -1, fabric("p5.48xlarge")), "found -1"),
        (lambda: seconds("permute", 1, fabric("p5.48xlarge"), (1, 9, 1)), "one number for each"),
        (lambda: fabric("p5"), "there are trn1.32xlarge"),
        (lambda: Tier("x", 4, 0, 1, "mesh"), "wiring 'mesh'"),
        (lambda: Tier("x", 0, 0, 1), "1 or more"),
        (lambda: Tier("x", 4, 0, 1, "torus", (2, 3)), "do not make 4"),
        (lambda: Tier("x", 4, 0, 0), "above 0"),
        (lambda: overlap(1, 1, 2), "0 to 1"),
        (lambda: lines("permute", Tier("x", 16, 0, 1, "torus", (4, 4)), 3), "divisors"),
    ],
)
def test_errors_say_what_is_allowed(ask, says):
    with pytest.raises((ValueError, KeyError), match=says):
        ask()


def test_a_part_of_an_axis_is_a_chain_with_one_link_each_way():
    assert Tier("grid", 36, 0, 1, "torus", (6, 6)).part(3) == ((1, 3), (0, 0.25))
    assert Tier("loop", 6, 0, 1, "ring").part(3) == ((3,), (0.5,))


TWO = Fabric("two", (Tier("near", 4, 1e-6, 4e10), Tier("far", 2, 2e-5, 1e9)))


def test_a_permute_waits_for_those_that_send_farthest():
    assert seconds("permute", 1e9, TWO).seconds == pytest.approx(1 + 2e-5)
    assert seconds("permute", 1e9, TWO, 4).seconds == pytest.approx(1 / 40 + 1e-6)
    assert seconds("permute", 1e9, TWO, 2, stride=4).seconds == pytest.approx(1 + 2e-5)


def test_an_all_to_all_sends_over_each_tier_what_is_for_its_members():
    result = seconds("all-to-all", 8e9, TWO, algorithm="direct")
    # Of eight pieces of 1 GB four are for the other node, three for ranks of one's own.
    assert result.bandwidth_s == pytest.approx(max(4e9 / 1e9, 3e9 / 4e10))
    assert (result.latency_s, result.steps) == (2e-5, 1)
    near = Fabric("fast outside", (TWO.tiers[0], Tier("far", 2, 2e-5, 1e12)))
    result = seconds("all-to-all", 8e9, near, algorithm="direct")
    assert result.bandwidth_s == pytest.approx(3e9 / 4e10)
