"""What a power cut may leave, and where the hours of a run on failing machines go."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.cost import tco
from utils.training.checkpoint import interruptions, powercut
from utils.training.checkpoint.powercut import Call, after_kill, after_power_cut, saving, worst

OLD, NEW = "old old", "new new"


@pytest.mark.parametrize(
    ("leaves_out", "kill", "power"),
    [
        ({"aside": False, "sync_file": False, "sync_folder": False}, "torn", "torn"),
        ({"aside": False}, "torn", "torn"),
        ({"sync_file": False, "sync_folder": False}, "kept", "torn"),
        ({"sync_file": False}, "kept", "torn"),
        ({"sync_folder": False}, "kept", "kept"),
        ({}, "kept", "kept"),
    ],
)
def test_what_a_way_to_save_survives(leaves_out, kill, power) -> None:
    calls = saving("ck", NEW, **leaves_out)
    for states, expected in ((after_kill, kill), (after_power_cut, power)):
        assert worst(states({"ck": OLD}, calls), "ck", [OLD, NEW]) == expected


@pytest.mark.parametrize("sync_folder", [True, False])
def test_only_with_the_folder_on_the_disk_is_the_new_one_there_for_sure(sync_folder) -> None:
    calls = saving("ck", NEW, sync_folder=sync_folder)
    at_the_end = {left["ck"] for left in powercut.at_the_end({"ck": OLD}, calls)}
    assert at_the_end == ({NEW} if sync_folder else {OLD, NEW})


@pytest.mark.parametrize(("old_first", "expected"), [(True, False), (False, True)])
def test_the_old_one_may_go_only_when_the_new_one_is_safe(old_first, expected) -> None:
    remove, save = [Call("unlink", "1")], saving("2", NEW)
    calls = [*remove, *save] if old_first else [*save, *remove]
    for states in (after_kill, after_power_cut):
        always = all(s.get("1") == OLD or s.get("2") == NEW for s in states({"1": OLD}, calls))
        assert always == expected


@pytest.mark.parametrize(("every", "write"), [(0.5, 0.02), (2, 0.02), (10, 0.02), (1, 0.3)])
@pytest.mark.parametrize("between", [99, 12])
def test_the_events_agree_with_the_formula(every, write, between) -> None:
    generator = np.random.default_rng([int(10 * every), int(100 * write), between])
    hours = [
        interruptions.go(
            100, every, write, 0.5, interruptions.exponential(1 / between, generator)
        ).hours
        for _ in range(400)
    ]
    exact = tco.expected_hours(100, every, write, 0.5, 1 / between)
    assert abs(np.mean(hours) - exact) < 4 * np.std(hours) / math.sqrt(len(hours)) + 1e-9


positive = st.floats(0.05, 20)


@given(
    work=positive, every=positive, write=st.floats(0, 1), restart=st.floats(0, 2),
    gaps=st.lists(st.floats(0.01, 50), max_size=30), notice=st.floats(0, 1),
)  # fmt: skip
def test_every_hour_is_accounted_for(work, every, write, restart, gaps, notice) -> None:
    def failures():
        return itertools.chain(gaps, itertools.repeat(math.inf))

    run = interruptions.go(work, every, write, restart, failures(), notice)
    assert run.total("computing") == pytest.approx(work)
    assert math.fsum(map(run.total, interruptions.KINDS)) == pytest.approx(run.hours)
    joins = zip(run.spans, run.spans[1:], strict=False)
    assert run.spans[0].start == 0 and all(a.end == b.start for a, b in joins)
    assert run.failures <= len(gaps)
    # A notice that is long enough to save never makes a run longer.
    if notice < write:
        assert run.hours == interruptions.go(work, every, write, restart, failures()).hours


def test_a_run_by_hand() -> None:
    # Computes 2, saves 0.5 (to 2.5), is stopped at 4 after 1.5, is down 1, does 2 again and saves.
    run = interruptions.go(4, 2, 0.5, 1, iter([4, math.inf]))
    assert (run.hours, run.failures) == (7.5, 1)
    assert [(s.kind, s.end) for s in run.spans] == [
        ("computing", 2), ("saving", 2.5), ("lost", 4), ("down", 5), ("computing", 7),
        ("saving", 7.5),
    ]  # fmt: skip


def test_a_notice_that_is_long_enough_loses_no_work() -> None:
    run = interruptions.go(4, 2, 0.5, 1, iter([4, math.inf]), notice=0.75)
    # Announced at 3.25: saves what was computed since 2.5, to 3.75, and waits for the end.
    assert run.total("lost") == 0 and run.total("computing") == 4
    assert run.hours == 5 + 1.25 + 0.5
    short = interruptions.go(4, 2, 0.5, 1, iter([4, math.inf]), notice=0.4)
    assert short == interruptions.go(4, 2, 0.5, 1, iter([4, math.inf]))


def test_a_restart_may_fail_too() -> None:
    run = interruptions.go(1, 1, 0, 2, iter([0.5, 1, math.inf]))
    assert (run.hours, run.failures, run.total("down")) == (0.5 + 1 + 2 + 1, 2, 3)


def test_a_fleet_fails_as_many_times_as_often_as_it_has_servers() -> None:
    generator = np.random.default_rng(8)
    gaps = list(itertools.islice(interruptions.of_servers(64, 640.0, generator), 4000))
    mean = np.mean(gaps)
    assert abs(mean - 10) < 4 * 10 / math.sqrt(len(gaps))
    # Exponential: the standard deviation is the mean.
    assert abs(np.std(gaps) / mean - 1) < 0.08


@pytest.mark.parametrize(
    ("name", "value"), [("work", 0), ("every", -1), ("write", -1), ("restart", math.nan)]
)
def test_impossible_hours_are_refused(name, value) -> None:
    hours = {"work": 1, "every": 1, "write": 0, "restart": 0, name: value}
    with pytest.raises(ValueError, match=f"{name} is .* hours: allowed is"):
        interruptions.go(**hours, gaps=iter([1.0]))
