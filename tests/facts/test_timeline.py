"""The timeline of PyTorch on Neuron: spans between releases, each with a statement."""

import itertools

import pytest

from utils.facts import fact, timeline


def test_releases_are_in_order_and_before_the_day_they_were_looked_at() -> None:
    dates = list(timeline.releases().values())
    assert dates == sorted(set(dates)) and dates[-1] < timeline.last_read()


def test_spans_end_after_they_begin_and_no_lane_has_two_states_at_once() -> None:
    releases = list(timeline.releases())
    for _, group in itertools.groupby(timeline.spans(), lambda entry: entry.lane):
        lane = list(group)
        for item in lane:
            if item.since and item.until:
                assert releases.index(item.since) < releases.index(item.until)
        for earlier, later in itertools.pairwise(lane):
            assert earlier.until == later.since
        assert all(fact(entry.fact).source.startswith("https://") for entry in lane)


def test_the_gap_is_counted_in_days() -> None:
    assert timeline.days_between("PyTorch/XLA to train", "TorchNeuron") == 151
    for lanes in (("no such lane", "TorchNeuron"), ("PyTorch/XLA to train", "no such lane")):
        with pytest.raises(StopIteration):
            timeline.days_between(*lanes)
