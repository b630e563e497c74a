"""The virtual clock of serving: what is conserved, Little's law, and published queues."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils import serving
from utils.serving import Linear, Pause, Policy, closed_loop, open_loop

moments = st.lists(st.floats(0, 5), min_size=1, max_size=40).map(sorted)
services = st.builds(Linear, st.floats(0, 0.5), st.floats(0.001, 0.3))
policies = st.builds(
    lambda most, wait, bucketed: Policy(most, wait, (most,) if bucketed else ()),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.05, 0.4, serving.NEVER]),
    st.booleans(),
)
pauses = st.lists(
    st.builds(
        lambda begin, length, server: Pause(begin, begin + length, server),
        st.floats(0, 4), st.floats(0, 2), st.sampled_from([None, 0]),
    ),
    max_size=2,
)  # fmt: skip
thorough = settings(max_examples=150)


def batches(run):
    """(server, started, finished) of each batch, with its requests."""
    key = {}
    for request in run.requests:
        key.setdefault((request.server, request.started_s, request.finished_s), []).append(request)
    return key


def check(run, due, service, policy, paused):
    assert len(run.requests) == len(due)  # conserved: everything is answered, once
    for request in run.requests:
        assert request.due_s <= request.arrived_s <= request.started_s <= request.finished_s
        assert 1 <= request.batch <= policy.max_batch
        assert request.rows == policy.rows(request.batch)
        if not paused:
            assert request.finished_s - request.started_s == pytest.approx(service(request.rows))
    result = serving.little(run)
    assert result.in_system == pytest.approx(result.product, rel=1e-9)
    assert 0 < run.utilisation <= 1 + 1e-9
    # A server does one batch at a time; first come, first served.
    for _, spans in itertools.groupby(sorted(batches(run)), key=lambda span: span[0]):
        spans = list(spans)
        assert all(a[2] <= b[1] for a, b in itertools.pairwise(spans))
    by_arrival = sorted(run.requests, key=lambda item: item.arrived_s)
    starts = [item.started_s for item in by_arrival]
    if len({item.arrived_s for item in by_arrival}) == len(by_arrival):
        assert starts == sorted(starts)


@thorough
@given(moments, services, st.integers(1, 3), policies, pauses)
def test_an_open_loop_answers_everybody_once_in_order(due, service, servers, policy, paused):
    run = open_loop(due, service, servers, policy, paused)
    check(run, due, service, policy, paused)
    assert [request.arrived_s for request in run.requests] == due  # nobody waits before sending
    assert np.array_equal(run.latencies_s, run.seen_s)


@thorough
@given(moments, services, st.integers(1, 4), st.integers(1, 3), policies, pauses)
def test_a_closed_loop_has_no_more_requests_there_than_clients(
    due, service, clients, servers, policy, paused
):
    run = closed_loop(due, clients, service, servers, policy, paused)
    check(run, due, service, policy, paused)
    for client in range(clients):
        own = [request for request in run.requests if request.client == client]
        assert all(a.finished_s <= b.arrived_s for a, b in itertools.pairwise(own))
    assert (run.latencies_s >= run.seen_s - 1e-12).all()


@thorough
@given(moments, services, st.integers(1, 3))
def test_a_batch_of_one_starts_when_somebody_is_free(due, service, servers):
    run = open_loop(due, service, servers)
    free = [0.0] * servers
    for at, item in zip(due, run.requests, strict=True):
        first = min(free)
        assert item.started_s == max(at, first)
        free[free.index(first)] = item.finished_s


@thorough
@given(moments, services, policies)
def test_a_free_server_waits_no_longer_than_the_policy_says(due, service, policy):
    run = open_loop(due, service, len(due), policy)  # always a free server
    if math.isinf(policy.max_wait_s):
        return
    for request in run.requests:
        assert request.wait_s <= policy.max_wait_s + 1e-9


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_the_queue_m_d_1_has_the_published_wait(load):
    due = serving.poisson(100 * load, 40_000, seed=3)
    run = open_loop(due, Linear(0.010, 0.0))
    expected = serving.md1_wait_s(100 * load, 0.010)
    assert run.waits_s.mean() == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize("servers", [1, 2, 5])
def test_the_queue_m_m_c_makes_as_many_wait_as_erlang_says(servers):
    rate, mean, random = 75.0 * servers, 0.010, np.random.default_rng(5)
    due = serving.poisson(rate, 40_000, 4)
    run = open_loop(due, lambda rows: float(random.exponential(mean)), servers)
    waited = (run.waits_s > 0).mean()
    assert waited == pytest.approx(serving.erlang_c(rate, mean, servers), rel=0.08)
    assert run.utilisation == pytest.approx(0.75, rel=0.02)


def test_erlang_c_of_a_published_table():
    # Two servers: C = 2 a^2 / ... reduces to 2 rho^2 / (1 + rho).
    for rho in (0.1, 0.5, 0.9):
        value = serving.erlang_c(200 * rho, 0.010, 2)
        assert value == pytest.approx(2 * rho**2 / (1 + rho))


@pytest.mark.parametrize(
    "arrive",
    [serving.poisson, serving.burst, lambda rate, count, seed: serving.steady(rate, count)],
)
def test_arrivals_have_the_rate_that_was_asked_for(arrive):
    due = arrive(50.0, 40_000, 7)
    assert len(due) == 40_000 and (np.diff(due) >= 0).all()
    assert len(due) / due[-1] == pytest.approx(50.0, rel=0.08)
    assert np.array_equal(due, arrive(50.0, 40_000, 7))


def test_a_full_batch_and_an_old_one_start():
    due = [0.0, 0.01, 0.02, 0.03, 0.50]
    run = open_loop(due, Linear(0.1, 0.0), 1, Policy(max_batch=4, max_wait_s=0.2))
    assert [request.started_s for request in run.requests] == [0.03] * 4 + [0.70]
    assert [request.batch for request in run.requests] == [4, 4, 4, 4, 1]
    assert run.mean_batch == 2.5


def test_companions_of_one_moment_share_a_batch():
    run = open_loop([0.0] * 6, Linear(0.1, 0.0), 1, Policy(max_batch=4))
    assert [request.batch for request in run.requests] == [4, 4, 4, 4, 2, 2]


def test_padding_counts_the_rows_that_answer_nobody():
    run = open_loop([0.0] * 5, Linear(0.0, 0.1), 1, Policy(max_batch=5, buckets=(1, 8)))
    assert run.requests[0].rows == 8 and run.padding == pytest.approx(3 / 8)
    assert run.requests[0].finished_s == pytest.approx(0.8)


def test_work_goes_on_after_a_pause_and_others_go_on_meanwhile():
    stopped = [Pause(0.05, 1.0, server=0)]
    run = open_loop([0.0, 0.1, 0.2], Linear(0.1, 0.0), 2, pauses=stopped)
    assert [request.finished_s for request in run.requests] == pytest.approx([1.05, 0.2, 0.3])
    everyone = open_loop([0.0, 0.1], Linear(0.1, 0.0), 2, pauses=[Pause(0.05, 1.0)])
    assert [request.finished_s for request in everyone.requests] == pytest.approx([1.05, 1.1])


def test_a_waiting_client_omits_what_its_users_felt():
    due = serving.steady(10, 600)
    stall = [Pause(20.0, 30.0)]
    service = Linear(0.001, 0.0)
    users = open_loop(due, service, pauses=stall)
    tester = closed_loop(due, 1, service, pauses=stall)
    assert np.percentile(users.latencies_s, 99) > 9
    assert np.percentile(tester.seen_s, 99) < 0.002
    assert (tester.seen_s > 1).sum() == 1 and (users.latencies_s > 1).sum() == 91
    # From the moment when it was due, the same test knows; and the repair is near.
    assert np.percentile(tester.latencies_s, 99) == pytest.approx(
        np.percentile(users.latencies_s, 99), rel=0.02
    )
    unsent = closed_loop(600, 1, lambda rows: 0.1, pauses=stall)
    repaired = serving.correct_omission(unsent.seen_s, every_s=0.1)
    assert len(repaired) == 600 + 100
    assert np.percentile(repaired, 99) > 9


@thorough
@given(st.lists(st.floats(0, 20), min_size=1, max_size=20), st.floats(0.1, 5))
def test_the_repair_is_that_of_the_histogram(seen, every):
    expected = []
    for latency in seen:  # as recordValueWithExpectedInterval counts
        expected.append(latency)
        missing = latency - every
        while missing >= every:
            expected.append(missing)
            missing -= every
    result = serving.correct_omission(seen, every)
    # Repeated subtraction rounds; whether one at the very edge is added may differ.
    assert abs(len(result) - len(expected)) <= sum(
        abs(latency / every - round(latency / every)) < 1e-9 for latency in seen
    )
    if len(result) == len(expected):
        assert result == pytest.approx(sorted(expected))


@thorough
@given(moments, services, st.sampled_from([50, 90, 99]), st.floats(0.1, 2))
def test_no_smaller_fleet_keeps_the_target(due, service, percentile, limit):
    if service(1) > limit:
        with pytest.raises(ValueError, match="no number of servers"):
            serving.smallest_fleet(due, service, percentile, limit)
        return
    fleet = serving.smallest_fleet(due, service, percentile, limit)
    assert fleet.latency_s == np.percentile(fleet.run.latencies_s, percentile) <= limit + 1e-6
    for fewer in range(1, fleet.servers):
        run = open_loop(due, service, fewer)
        assert np.percentile(run.latencies_s, percentile) > limit


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: serving.steady(0, 3), "rate_per_s"),
        (lambda: serving.poisson(1, 0, 0), "count"),
        (lambda: serving.burst(1, 3, 0, size=0), "size"),
        (lambda: Linear(-1, 1), "seconds"),
        (lambda: Policy(0), "max_batch"),
        (lambda: Policy(max_wait_s=math.nan), "max_wait_s"),
        (lambda: Policy(8, buckets=(2, 4)), "bucket"),
        (lambda: Pause(2, 1), "pause"),
        (lambda: open_loop([], Linear(1, 0)), "due_s"),
        (lambda: open_loop([1.0, 0.5], Linear(1, 0)), "ascending"),
        (lambda: open_loop([0.0], Linear(1, 0), servers=0), "servers"),
        (lambda: open_loop([0.0], lambda rows: -1.0), "0 or more"),
        (lambda: open_loop([0.0], Linear(1, 0), pauses=[Pause(0, 1, server=3)]), "server"),
        (lambda: closed_loop(3, 0, Linear(1, 0)), "clients"),
        (lambda: closed_loop(0, 1, Linear(1, 0)), "plan"),
        (lambda: serving.correct_omission([1.0], 0), "every_s"),
        (lambda: serving.md1_wait_s(100, 0.01), "load"),
        (lambda: serving.smallest_fleet([0.0] * 9, Linear(1, 0), 99, 1.5, most=3), "3 servers"),
        (lambda: serving.smallest_fleet([0.0], Linear(1, 0), 0, 1), "percentile"),
    ],
)
def test_what_cannot_be_is_refused_in_words(call, says):
    with pytest.raises(ValueError, match=says):
        call()
