"""Loaders: the exact model, the virtual loader and the real ones say the same."""

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.training.loading import (
    FakeClock,
    RealClock,
    Stored,
    Uploader,
    VirtualLoader,
    Waits,
    Watched,
    predict,
    workers_needed,
)

seconds = st.integers(0, 40).map(lambda n: n / 16)  # sums of sixteenths are exact
plans = {
    "loads": st.lists(seconds, min_size=1, max_size=25),
    "workers": st.integers(0, 5),
    "prefetch": st.integers(1, 4),
    "random": st.randoms(use_true_random=False),
}


def watched_in_virtual_time(loads, works, workers, prefetch) -> Waits:
    clock = FakeClock(start_s=3.0)
    data = Stored(len(loads), load_s=loads.__getitem__, clock=clock)
    watched = Watched(VirtualLoader(data, clock, workers=workers, prefetch=prefetch), clock)
    for index in watched:
        clock.sleep(works[index])
    return watched.waits


@given(**plans)
def test_the_model_and_the_virtual_loader_agree_exactly(loads, workers, prefetch, random) -> None:
    works = [random.randrange(40) / 16 for _ in loads]
    modelled = predict(loads, works, workers=workers, prefetch=prefetch).waits
    assert modelled == watched_in_virtual_time(loads, works, workers, prefetch)


@given(**plans)
def test_what_every_schedule_has(loads, workers, prefetch, random) -> None:
    works = [random.randrange(40) / 16 for _ in loads]
    plan = predict(loads, works, workers=workers, prefetch=prefetch)
    assert all(w >= 0 for w in plan.waits.waits_s)
    assert [e - b for b, e in zip(plan.begins_s, plan.ends_s, strict=True)] == loads
    assert all(t >= e for e, t in zip(plan.ends_s, plan.taken_s, strict=True))
    # Nobody does two loads at once, and never are more batches ahead than were ordered.
    for worker in set(plan.workers):
        spans = [
            span
            for span, own in zip(zip(plan.begins_s, plan.ends_s, strict=True), plan.workers,
                                 strict=True)
            if own == worker
        ]  # fmt: skip
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    for batch, begin in enumerate(plan.begins_s):
        if workers and batch >= workers * prefetch:
            assert begin >= plan.taken_s[batch - workers * prefetch]
    # Fetching further ahead never makes the loop end later.
    if workers:
        deeper = predict(loads, works, workers=workers, prefetch=prefetch + 1)
        assert deeper.done_s[-1] <= plan.done_s[-1]


@pytest.mark.parametrize(
    ("load", "work", "workers", "share"),
    [(3, 1, 0, 0.75), (3, 1, 1, 2 / 3), (3, 1, 2, 1 / 3), (3, 1, 3, 0), (3, 1, 8, 0), (1, 3, 1, 0)],
)
def test_the_share_in_the_long_run_has_a_formula(load, work, workers, share) -> None:
    period = max(work, load / workers) if workers else load + work
    assert 1 - work / period == pytest.approx(share)
    result = predict(load, work, batches=2000, workers=workers).waits.share
    assert result == pytest.approx(share, abs=0.005)


def test_workers_needed_is_the_least_number_that_never_waits() -> None:
    for load, work in itertools.product((0.01, 0.03, 0.07, 0.3), (0.01, 0.02, 0.03)):
        needed = workers_needed(load, work)
        shares = [
            predict(load, work, batches=2000, workers=n).waits.share for n in range(1, needed + 1)
        ]
        assert shares[-1] < 1e-3
        assert all(share > 0.005 for share in shares[:-1])


def test_a_deeper_prefetch_hides_a_slow_batch_now_and_then() -> None:
    loads = [4.5 if i % 10 == 9 else 0.5 for i in range(200)]  # 0.9 on average, one worker
    shares = [predict(loads, 1, workers=1, prefetch=p).waits.share for p in (1, 2, 4, 8)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.2 and shares[-1] < 0.03


def test_the_uploader_collects_before_it_uploads() -> None:
    """MpDeviceLoader's first batch comes after device_prefetch_size loads, and then in groups."""
    plan = predict(1.0, 0.25, batches=24, uploader=Uploader(device_prefetch_size=8))
    assert plan.waits.first_s == 8
    assert [batch for batch, wait in enumerate(plan.waits.waits_s) if wait] == [0, 8, 16]
    early = predict(1.0, 0.25, batches=24, uploader=Uploader(device_prefetch_size=1))
    assert early.waits.first_s == 1
    # Only the handing over differs: all loads end at the same moment.
    assert early.ends_s == plan.ends_s
    # A transfer in its own thread is hidden as well, if it is shorter than a step.
    hidden = predict(0.0, 1.0, batches=50, uploader=Uploader(device_prefetch_size=2, upload_s=0.4))
    assert hidden.waits.share == 0


def test_the_queues_of_the_uploader_hold_back_a_loader_that_is_faster() -> None:
    rules = Uploader(loader_prefetch_size=2, device_prefetch_size=1)
    plan = predict(0.0, 1.0, batches=20, workers=1, prefetch=1, uploader=rules)
    ahead = [batch - sum(t <= b for t in plan.taken_s) for batch, b in enumerate(plan.begins_s)]
    # One loaded, one held by each of two threads, two and one in the queues.
    assert max(ahead) <= 6
    assert plan.waits.share == 0


def test_the_moments_of_the_real_uploader_are_those_of_the_model() -> None:
    import torch
    import torch_xla
    from torch_xla.distributed.parallel_loader import MpDeviceLoader

    load, work, batches = 0.02, 0.005, 12
    clock = RealClock()
    data = Stored(batches, lambda i: torch.full((2,), i), load)
    runs = []
    for _ in range(3):
        watched = Watched(MpDeviceLoader(data, torch_xla.device(), device_prefetch_size=4))
        for _ in watched:
            clock.sleep(work)
        runs.append(watched.waits.waits_s)
    rules = Uploader(device_prefetch_size=4)
    modelled = predict(load, work, batches=batches, uploader=rules).waits
    # Which batches are waited for is told apart by ten times the time; seconds are not compared.
    waits = [statistics.median(of_batch) for of_batch in zip(*runs, strict=True)]
    longest = sorted(range(batches), key=waits.__getitem__)[-3:]
    assert sorted(longest) == [b for b, w in enumerate(modelled.waits_s) if w] == [0, 4, 8]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_mp_device_loader_ends_without_an_error_where_its_loader_raises() -> None:
    """As lesson 06 says. Should torch_xla mend it, the lesson's sentence goes."""
    import torch
    import torch_xla
    from torch_xla.distributed.parallel_loader import MpDeviceLoader

    def batches():
        yield from torch.zeros(3, 2)
        raise OSError("the disk is gone")

    assert len(list(MpDeviceLoader(batches(), torch_xla.device()))) == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_the_share_of_a_real_loader_is_near_the_model(workers) -> None:
    from torch.utils.data import DataLoader

    load, work, batches = 0.03, 0.015, 14
    clock = RealClock()

    def share() -> float:
        data = Stored(batches, load_s=load)
        watched = Watched(DataLoader(data, batch_size=None, num_workers=workers))
        for _ in watched:
            clock.sleep(work)
        return watched.waits.share

    modelled = predict(load, work, batches=batches, workers=workers).waits.share
    # Two thirds or nothing, by the model; a busy machine makes all of it longer.
    assert min(abs(share() - modelled) for _ in range(3)) < 0.25


def test_a_loop_that_breaks_off_is_measured_up_to_there() -> None:
    clock = FakeClock()
    watched = Watched(Stored(9, load_s=1, clock=clock), clock)
    for index in watched:
        clock.sleep(2)
        if index == 3:
            break
    assert watched.waits == Waits((1,) * 4, (2,) * 4)
    assert len(watched) == 9
    for _ in watched:
        pass
    assert watched.waits == Waits((1,) * 9, (0,) * 9)  # a second loop starts anew


def test_what_finishes_a_step_counts_as_work() -> None:
    clock = FakeClock()
    watched = Watched([1, 2, 3], clock, finish=lambda: clock.sleep(4))
    for _ in watched:
        clock.sleep(1)
    assert watched.waits.works_s == (5,) * 3
    assert watched.waits.seconds == 15


def test_batches_of_the_virtual_loader() -> None:
    clock = FakeClock()
    loader = VirtualLoader(Stored(5, clock=clock), clock, batch_size=2, workers=3)
    assert list(loader) == [[0, 1], [2, 3], [4]]
    assert len(loader) == 3
    assert Waits((), ()).share == Waits((1.0,), (1.0,)).share == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"load_s": 1, "work_s": 1},
        {"load_s": [], "work_s": 1},
        {"load_s": [1, 2], "work_s": [1]},
        {"load_s": [1, 2], "work_s": 1, "batches": 3},
        {"load_s": -1, "work_s": 1, "batches": 3},
        {"load_s": 1, "work_s": float("nan"), "batches": 3},
        {"load_s": 1, "work_s": 1, "batches": 3, "workers": -1},
        {"load_s": 1, "work_s": 1, "batches": 3, "prefetch": 0},
        {"load_s": 1, "work_s": 1, "batches": 3, "workers": 1.5},
        {"load_s": "slow", "work_s": 1, "batches": 3},
        {"load_s": None, "work_s": 1, "batches": 3},
        {"load_s": 1, "work_s": 1, "batches": 2.5},
    ],
)
def test_impossible_plans_are_refused(arguments) -> None:
    with pytest.raises(ValueError):
        predict(**arguments)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: FakeClock().sleep(-1), ValueError, "cannot sleep for -1"),
        *(
            (lambda name=name, bad=bad: VirtualLoader([1], FakeClock(), **{name: bad}), ValueError,
             f"{name} is {bad!r}, and must be a whole number")
            for name, bad in (
                ("workers", -1), ("workers", "2"), ("prefetch", 0), ("batch_size", 1.5),
            )
        ),
        (lambda: VirtualLoader(iter([1]), FakeClock()), TypeError, "without len"),
        (lambda: VirtualLoader([1], RealClock()), TypeError, "RealClock, and must be a FakeClock"),
        (lambda: Uploader(device_prefetch_size=0), ValueError, "device_prefetch_size is 0"),
        (lambda: Stored(-3), ValueError, "count is -3"),
        (lambda: Stored(3, load_s=-1), ValueError, "load_s is -1"),
        (lambda: workers_needed(1, 0), ValueError, "more than 0"),
        (lambda: workers_needed(float("nan"), 1), ValueError, "load_s is nan"),
        (lambda: Stored(3)[3], IndexError, "item 3 of 3"),
    ],
)  # fmt: skip
def test_other_impossible_values_are_refused(call, error, says) -> None:
    with pytest.raises(error, match=says):
        call()
