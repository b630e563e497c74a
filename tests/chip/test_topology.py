"""Wirings against networkx, all-reduce times against messages that are really passed on."""

import itertools
from collections import Counter

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.chip.collectives.algorithms import degree
from utils.chip.topology import Topology, all_reduce_seconds, ring, switch, torus

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=3)
RATE = st.floats(1e6, 1e12)
LATENCY = st.floats(0, 1e-3)
BYTES = st.just(0.0) | st.floats(1, 1e12)  # times of a fraction of a byte are not normal numbers


@given(sizes=SIZES)
def test_a_torus_is_as_wide_as_the_periodic_grid_of_networkx(sizes):
    grid = networkx.grid_graph(sizes[::-1], periodic=True)
    assert torus(*sizes).chips == grid.number_of_nodes()
    assert torus(*sizes).diameter == networkx.diameter(grid)
    assert ring(sizes[0]).diameter == torus(sizes[0]).diameter


def test_through_a_switch_it_is_two_links_to_any_other():
    assert [switch(chips).diameter for chips in (1, 2, 144)] == [0, 2, 2]


def simulate(size: float, topology: Topology, rate: float, latency: float) -> float:
    """Passes pieces of real vectors along the links; returns the seconds by the alpha-beta model.

    Each chip holds a vector with one value for every chip and direction. A step takes the latency
    and the time of the link that carries most.
    """
    chips, sizes = topology.chips, topology.sizes
    places = list(itertools.product(*map(range, sizes)))
    number = {place: chip for chip, place in enumerate(places)}
    values = np.random.default_rng(0).integers(0, 99, (chips, chips, 2)).astype(float)
    total = values.sum(axis=0)
    piece = size / (2 * chips)
    seconds = 0.0

    def step(messages, add):
        """messages: (from, to, index of the value, direction)."""
        nonlocal seconds
        loads = Counter((a, b) for a, b, _, _ in messages)
        per_link = rate / degree(sizes)
        seconds += latency + max(loads.values()) * piece / per_link
        for (_, b, value, way), what in zip(
            messages, [values[a, value, way] for a, _, value, way in messages], strict=True
        ):
            values[b, value, way] = what + (values[b, value, way] if add else 0)

    def along(axis, gather):
        length = sizes[axis]
        for turn in range(length - 1):
            messages = []
            for place, way in itertools.product(places, (1, -1)):
                here = place[axis]
                to = list(place)
                to[axis] = (here + way) % length
                # Reduce: the piece for a chip starts behind it and ends with it. Gather: back.
                owner = (here - way * (turn if gather else turn + 1)) % length
                for value in pieces(place, axis, owner):
                    messages.append((number[place], number[tuple(to)], value, way == 1))
            step(messages, add=not gather)

    def pieces(place, axis, owner):
        """Values that belong to chips with this owner on the axis and our place before it."""
        return [
            chip
            for chip, other in enumerate(places)
            if other[:axis] == place[:axis] and other[axis] == owner
        ]

    axes = [axis for axis, length in enumerate(sizes) if length > 1]
    for axis in axes:
        along(axis, gather=False)
    for axis in axes[::-1]:
        along(axis, gather=True)
    assert (values == total).all()
    return seconds


@pytest.mark.parametrize("sizes", [(2,), (3,), (7,), (3, 3), (2, 4), (4, 4), (3, 4, 2)])
@pytest.mark.parametrize(("rate", "latency"), [(1e9, 0), (1e9, 1e-6), (2e11, 1e-6)])
def test_an_all_reduce_takes_as_long_as_its_messages(sizes, rate, latency):
    expected = simulate(1e8, torus(*sizes), rate, latency)
    assert all_reduce_seconds(1e8, torus(*sizes), rate, latency) == pytest.approx(expected)


@given(chips=st.integers(2, 1000), size=BYTES, rate=RATE, latency=LATENCY)
def test_formulas_of_ring_and_switch(chips, size, rate, latency):
    share = size / chips / rate
    result = all_reduce_seconds(size, ring(chips), rate, latency)
    assert result == pytest.approx(2 * (chips - 1) * (latency + share))
    assert result == all_reduce_seconds(size, torus(chips), rate, latency)
    result = all_reduce_seconds(size, switch(chips), rate, latency)
    assert result == pytest.approx(2 * (latency + (chips - 1) * share))


@given(sizes=SIZES, size=BYTES, rate=RATE, latency=LATENCY)
def test_nothing_is_faster_than_the_links_allow(sizes, size, rate, latency):
    topology = torus(*sizes)
    chips = topology.chips
    least = 2 * (chips - 1) / chips * size / rate
    result = all_reduce_seconds(size, topology, rate, latency)
    assert result >= least * (1 - 1e-9)
    without_latency = all_reduce_seconds(size, topology, rate, 0)
    steps = 2 * sum(item - 1 for item in sizes)
    assert result == pytest.approx(steps * latency + without_latency)
    # At worst one link of each chip works at a time.
    assert without_latency <= max(degree(sizes), 1) * least * (1 + 1e-9)


def test_one_chip_has_nothing_to_do():
    for topology in (ring(1), switch(1), torus(1, 1)):
        assert all_reduce_seconds(1e9, topology, 1e9, 1) == 0


def test_axes_may_have_rates_of_their_own():
    same = all_reduce_seconds(1e9, torus(4, 4), (5e8, 5e8), 1e-6)
    assert same == pytest.approx(all_reduce_seconds(1e9, torus(4, 4), 1e9, 1e-6))
    slow = all_reduce_seconds(1e9, torus(4, 4), (5e8, 5e7), 1e-6)
    assert slow > same
    # The slow axis comes last and has only a quarter of the data.
    assert slow < all_reduce_seconds(1e9, torus(4, 4), (5e7, 5e8), 1e-6)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: torus(), "whole sizes"),
        (lambda: torus(4, 0), "1 or more"),
        (lambda: torus(4.0), "whole"),
        (lambda: ring(0), "found 0"),
        (lambda: switch(0), "found 0"),
        (lambda: all_reduce_seconds(-1, ring(2), 1, 0), "found -1"),
        (lambda: all_reduce_seconds(1, ring(2), 0, 0), "above 0"),
        (lambda: all_reduce_seconds(1, ring(2), (1.0, 2.0), 0), "torus"),
        (lambda: all_reduce_seconds(1, torus(2, 2), (1.0, 0.0), 0), "above 0"),
    ],
)
def test_errors_say_what_is_allowed(ask, says):
    with pytest.raises(ValueError, match=says):
        ask()
