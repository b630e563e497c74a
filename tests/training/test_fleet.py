"""The fleet model: exact small cases by hand, and what must hold for all."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.training import fleet

GRAPHS = st.lists(st.integers(1, 50).map(float), min_size=1, max_size=5)
FEW = st.integers(1, 6)
LOAD = st.integers(0, 5).map(float)


def test_without_a_cache_each_worker_compiles_everything() -> None:
    assert fleet.warm_up((60.0, 30.0), 4) == fleet.WarmUp(90.0, 360.0, 360.0, 8)


def test_a_shared_cache_does_not_help_workers_that_start_together() -> None:
    together = fleet.warm_up((60.0, 30.0), 4, cache="shared", load_seconds=1.0)
    assert together == fleet.warm_up((60.0, 30.0), 4)


def test_a_late_worker_finds_what_the_first_has_finished() -> None:
    """The second starts after 40 s: misses the first graph (complete at 60, needed at 40), compiles
    it until 100, and loads the other, which is complete since 90."""
    late = fleet.warm_up((60.0, 30.0), 2, cache="shared", load_seconds=1.0, starts=(0.0, 40.0))
    assert late == fleet.WarmUp(101.0, 90.0 + 61.0, 60.0 + 30.0 + 60.0, 3)


def test_under_a_lock_one_compiles_and_the_others_wait_and_are_paid() -> None:
    locked = fleet.warm_up((60.0, 30.0), 3, cache="locked", load_seconds=1.0)
    assert locked == fleet.WarmUp(91.0, 90.0 + 91.0 + 91.0, 90.0, 2)


def test_compiling_ahead_by_hand() -> None:
    ahead = fleet.precompile(
        (4.0, 3.0, 3.0, 2.0), 10, compilers=2, trial_seconds=5.0, load_seconds=0.5
    )
    assert ahead == fleet.WarmUp(5.0 + 6.0 + 2.0, 11.0 + 10 * 2.0, 12.0, 4)


def test_money_comes_from_the_price_that_is_given() -> None:
    assert fleet.WarmUp(90.0, 7200.0, 0.0, 0).cost(3.5) == 7.0


@given(GRAPHS, FEW, LOAD)
def test_the_caches_in_order(graphs: list[float], workers: int, load: float) -> None:
    none = fleet.warm_up(graphs, workers)
    shared = fleet.warm_up(graphs, workers, cache="shared", load_seconds=load)
    locked = fleet.warm_up(graphs, workers, cache="locked", load_seconds=load)
    assert none.compiles == shared.compiles == workers * len(graphs)
    assert locked.compiles == len(graphs) and locked.compiler_seconds == sum(graphs)
    assert none.seconds == shared.seconds == sum(graphs) <= locked.seconds
    assert locked.seconds <= sum(graphs) + len(graphs) * load


@given(GRAPHS, st.lists(st.integers(0, 60).map(float), min_size=1, max_size=5), LOAD)
def test_nobody_trains_before_the_graphs_can_be_there(
    graphs: list[float], starts: list[float], load: float
) -> None:
    for cache in fleet.CACHES:
        result = fleet.warm_up(graphs, len(starts), cache=cache, load_seconds=load, starts=starts)
        assert result.seconds >= sum(graphs)
        assert result.compiler_seconds <= result.worker_seconds
        assert len(graphs) <= result.compiles <= len(graphs) * len(starts)


@given(GRAPHS, FEW, LOAD, st.sampled_from(fleet.CACHES))
def test_another_worker_never_costs_less(
    graphs: list[float], workers: int, load: float, cache: str
) -> None:
    smaller, larger = (
        fleet.warm_up(graphs, count, cache=cache, load_seconds=load)
        for count in (workers, workers + 1)
    )
    assert larger.seconds >= smaller.seconds
    assert larger.worker_seconds > smaller.worker_seconds


@given(GRAPHS, st.integers(1, 4))
def test_the_makespan_lies_between_its_bounds(graphs: list[float], compilers: int) -> None:
    result = fleet.makespan(graphs, compilers)
    best = min(
        max(math.fsum(s for s, c in zip(graphs, place, strict=True) if c == item) for item in place)
        for place in itertools.product(range(compilers), repeat=len(graphs))
    )
    assert max(max(graphs), sum(graphs) / compilers) <= best <= result
    assert result <= best * (4 / 3 - 1 / (3 * compilers)) + 1e-9
    assert fleet.makespan(graphs, compilers + 1) <= result


@given(GRAPHS, st.integers(1, 3), st.integers(0, 200).map(float), LOAD)
def test_the_smallest_fleet_for_which_compiling_ahead_pays(
    graphs: list[float], compilers: int, trial: float, load: float
) -> None:
    options = {"compilers": compilers, "trial_seconds": trial, "load_seconds": load}
    paying = fleet.workers_to_pay(graphs, **options)

    def pays(workers: int) -> bool:
        ahead = fleet.precompile(graphs, workers, **options)
        return ahead.worker_seconds < fleet.warm_up(graphs, workers).worker_seconds

    if paying is None:
        assert not pays(1000)
    else:
        assert pays(paying) and (paying == 1 or not pays(paying - 1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fleet.warm_up((), 1), "at least one graph"),
        (lambda: fleet.warm_up((1.0,), 0), "workers is 0"),
        (lambda: fleet.warm_up((-1.0,), 1), "negative"),
        (lambda: fleet.warm_up((1.0,), 1, cache="disk"), "none, shared, locked"),
        (lambda: fleet.warm_up((1.0,), 2, starts=(0.0,)), "1 starts for 2 workers"),
        (lambda: fleet.makespan((1.0,), 0), "compilers is 0"),
    ],
)
def test_what_cannot_be_is_refused(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
