"""Lab 16: what the judges rest on is true: every branch of a random function, the distribution of
what comes out, incidents with one cause, pools that run out.
"""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.labs.lab16 import allocating, examples, incidents, speculating
from utils.labs.lab16.branches import Branches


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3).filter(sum), max_size=3))
@settings(max_examples=30, deadline=None)
def test_every_way_is_gone_once_with_its_probability(weights: list[list[int]]) -> None:
    branches = Branches()
    result = branches.all(lambda: tuple(branches.draw(some) for some in weights))
    right = {}
    for way in itertools.product(*(range(len(some)) for some in weights)):
        share = 1.0
        for some, word in zip(weights, way, strict=True):
            share *= some[word] / sum(some)
        if share:
            right[way] = pytest.approx(share)
    assert len(result) == len(right) and dict(result) == right


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_what_is_right_is_distributed_as_the_target(seed: int) -> None:
    for case in speculating.speculation_cases(random.Random(seed)):
        for model in case["models"]:
            assert speculating.distance(model, speculating.outputs(model)) < 1e-9


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_the_metric_of_the_cause_is_the_first_that_changes(seed: int) -> None:
    for cause, name in incidents.METRIC.items():
        made = incidents.make_incident(random.Random(seed), cause, "requests_per_s")
        first = {n: incidents.first_off(made["metrics"], n) for n in made["metrics"]}
        assert first[name] == made["start"]
        others = {*incidents.METRIC.values(), incidents.SYMPTOM} - {name}
        assert all(first[n] < 0 or first[n] >= made["start"] + 2 for n in others)
        assert first[incidents.SYMPTOM] > 0


def test_the_example_shows_what_its_text_says() -> None:
    metrics, log = examples.METRICS, examples.LOG
    assert {len(values) for values in metrics.values()} == {len(examples.MINUTES)}
    since = examples.MINUTES[metrics["replicas"].index(3)]
    assert since == 20 and [20, log[3][1]] in log and "runtime" in log[3][1]


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_pools_are_drawn_that_run_out_and_that_copy(seed: int) -> None:
    seen = []
    for case in allocating.block_cases(random.Random(seed)):
        reference = allocating.Reference(case["count"], case["size"])
        for kind, *of in case["operations"]:
            seen.append(getattr(reference, kind)(*of))
            assert 0 <= reference.used <= case["count"]
        assert (False, 0) in seen
    assert (True, 1) in seen  # in some of them
