"""The open loop on a clock of its own: held to the simulated queue, and a pause counts for all."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils import serving
from utils.serving import bench
from utils.serving.bench import workloads
from utils.xla import devices


class Machine:
    """A device whose calls take the given seconds, one after the other; then the last for ever."""

    def __init__(self, *seconds: float) -> None:
        self.now, self.slept = 0.0, []
        self._seconds, self._calls = seconds, 0

    def step(self) -> None:
        self.now += self._seconds[min(self._calls, len(self._seconds) - 1)]
        self._calls += 1

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def answered(self, due: list[float]) -> bench.Arrivals:
        return bench.open_loop(self.step, self, due, "a plan", lambda: self.now, self.sleep)

    def mark_step(self) -> None: ...

    def wait(self) -> None: ...


@given(st.lists(st.floats(0, 5), min_size=1, max_size=40).map(sorted), st.floats(0.001, 0.5))
def test_latencies_are_those_of_a_queue_with_one_server(due: list[float], service: float) -> None:
    result = Machine(service).answered(due)
    modelled = serving.open_loop(due, lambda rows: service)
    assert result.latencies_s == pytest.approx(modelled.latencies_s.tolist(), abs=1e-9)
    assert result.sent_s == pytest.approx([service] * len(due), abs=1e-9)


def test_a_pause_counts_for_all_that_it_delays() -> None:
    machine = Machine(*[0.005] * 100, 1.0, 0.005)
    result = machine.answered([k / 100 for k in range(300)])
    assert sum(item > 0.0051 for item in result.sent_s) == 1
    # 1 s of pause, of which each later request makes up 5 ms, after 10 ms more of waiting.
    assert sum(item > 0.0051 for item in result.latencies_s) == 199
    assert (
        bench.percentile(result.latencies_s, 99)
        > 0.9
        > 0.0051
        > bench.percentile(result.sent_s, 99)
    )
    assert result.rate_per_s == pytest.approx(300 / 2.99)
    assert "a plan, 300 requests at 100.3 per second" in str(result)


def test_nothing_is_sent_before_it_is_due_and_oversleeping_counts() -> None:
    machine = Machine(0.1)
    assert machine.answered([1.0, 3.0]).latencies_s == pytest.approx((0.1, 0.1))
    assert machine.slept == pytest.approx([1.0, 1.9])
    late = Machine(0.1)
    late.sleep = lambda seconds: setattr(late, "now", late.now + seconds + 0.02)
    assert late.answered([1.0]).latencies_s == pytest.approx((0.12,))


@pytest.mark.parametrize("due", [[], [1.0, 0.5], [float("nan"), 1.0]])
def test_a_plan_that_is_none_is_refused(due: list[float]) -> None:
    with pytest.raises(ValueError, match="due_s: one moment at least"):
        Machine(0.1).answered(due)


def test_the_real_clock_and_a_real_model() -> None:
    device = devices.get("cpu")
    step = workloads.step("mlp", device)
    step()
    result = bench.open_loop(step, device, serving.steady(200, 20).tolist(), "steady")
    assert len(result.latencies_s) == len(result.sent_s) == 20
    assert all(0 < sent <= due for sent, due in zip(result.sent_s, result.latencies_s, strict=True))


def test_a_benchmark_compiles_the_model_where_it_is_asked_to() -> None:
    seen = []
    device = devices.get("cpu")
    compiling = dataclasses.replace(device)
    object.__setattr__(compiling, "compiled", lambda model: seen.append(model) or model)
    for compiled in (False, True):
        workloads.step("mlp", compiling, compiled=compiled)()
        assert len(seen) == compiled
