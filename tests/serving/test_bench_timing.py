"""What is timed, on a clock that moves only when something works: no real second is looked at."""

import itertools
from dataclasses import dataclass, field

import pytest

from utils.serving import bench
from utils.serving.bench import cold, workloads
from utils.xla import devices, fresh
from utils.xla.meter import Meter


@dataclass
class Machine:
    """A device with a clock: recording takes 1 s, and what is recorded runs when it is waited for,
    `work_s` each. The first call of a batch compiles."""

    work_s: float = 10.0
    compile_s: float = 100.0
    eager: bool = False
    now: float = 0.0
    pending: float = 0.0
    markers: int = 0
    seen: set = field(default_factory=set)

    def clock(self) -> float:
        return self.now

    def step(self, batch: int = 1):
        def call() -> int:
            self.now += 1.0
            if batch not in self.seen:
                self.seen.add(batch)
                self.now += self.compile_s
            work = self.work_s * (1 + batch / 10)
            if self.eager:
                self.now += work
            else:
                self.pending = max(self.pending, self.now) + work
            return batch

        return call

    def mark_step(self) -> None:
        self.markers += 1

    def wait(self) -> None:
        self.now = max(self.now, self.pending)


def test_a_call_is_timed_until_its_work_is_done_and_the_first_one_apart() -> None:
    machine = Machine()
    result = bench.measure(machine.step(), machine, warmup=2, repeats=3, clock=machine.clock)
    assert result.first_s == 112 and result.warmup_s == (112, 12)
    assert result.seconds == (12, 12, 12)
    assert machine.markers == 5
    assert result.summary.p50.value_s == 12


def test_what_was_pending_before_is_nobodys() -> None:
    machine = Machine(pending=1000.0)
    result = bench.measure(machine.step(), machine, warmup=1, repeats=1, clock=machine.clock)
    assert (result.first_s, result.seconds) == (112, (12,))


@pytest.mark.parametrize("wrong", [{"warmup": 0}, {"repeats": 0}])
def test_a_first_call_among_the_samples_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match="the first call compiles"):
        bench.measure(lambda: 0, Machine(), **wrong)


def test_calls_under_way_hide_what_the_host_does_on_a_device_that_works_meanwhile() -> None:
    machine = Machine()
    one, four = bench.throughput(
        machine.step, machine, (1,), (1, 4), calls=8, warmup=1, clock=machine.clock
    )
    # Alone each call is 1 s of recording and 11 s of work; of four, only the first is recorded
    # while nothing works.
    assert (one.seconds, four.seconds) == (8 * 12, 2 * (1 + 4 * 11))
    assert one.items_per_second < four.items_per_second
    assert four.latencies_s[:4] == (45, 44, 43, 42)


def test_calls_under_way_gain_nothing_where_a_call_is_done_when_it_returns() -> None:
    machine = Machine(eager=True)
    one, four = bench.throughput(
        machine.step, machine, (1,), (1, 4), calls=8, warmup=1, clock=machine.clock
    )
    assert one.items_per_second == four.items_per_second


def test_a_larger_batch_is_compiled_before_it_counts_and_delivers_more() -> None:
    machine = Machine()
    rates = bench.throughput(machine.step, machine, (1, 10), calls=5, clock=machine.clock)
    assert [rate.seconds for rate in rates] == [5 * 12, 5 * 21]
    assert rates[1].items_per_second == pytest.approx(10 * 5 / (5 * 21))


def test_calls_fill_whole_groups() -> None:
    machine = Machine()
    (rate,) = bench.throughput(machine.step, machine, (1,), (4,), calls=5, clock=machine.clock)
    assert rate.calls == len(rate.latencies_s) == 8


@pytest.mark.parametrize("wrong", [{"batches": (0,)}, {"concurrency": ()}, {"calls": 0}])
def test_a_throughput_of_nothing_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        bench.throughput(Machine().step, Machine(), **wrong)


def test_tokens_tell_the_first_from_the_others() -> None:
    machine = Machine()
    begin, step = machine.step(batch=50), machine.step()
    result = bench.tokens(begin, step, machine, count=5, texts=3, clock=machine.clock)
    assert result.first_s == (61, 61, 61)
    assert result.next_s == ((12,) * 4,) * 3
    assert result.to_first.p50.value_s == 61
    assert result.per_output_token.p50.value_s == result.between.p99.value_s == 12
    assert result.between.count == 12
    assert result.tokens_per_second == pytest.approx(5 / (61 + 4 * 12))


def test_a_text_of_one_token_has_no_time_between() -> None:
    with pytest.raises(ValueError, match="count is 1, but at least 2"):
        bench.tokens(lambda: 0, lambda: 0, Machine(), count=1)


def test_a_cold_start_goes_through_its_stages() -> None:
    machine = Machine()

    def open_device() -> Machine:
        machine.now += 7
        machine.pending = machine.now + 20  # the device answers later than the call returns
        return machine

    def build(device: Machine):
        device.now += 5
        return device.step()

    result = cold.stages(2.0, 3.0, open_device, build, 1, 4, machine.clock)
    assert result.stages == {
        "process_s": 2,
        "import_s": 3,
        "device_s": 27,
        "model_s": 5,
        "first_s": 112,
    }
    assert result.first_answer_s == 149
    assert result.warm.seconds == (12,) * 4


def test_a_clock_that_counts_its_looks_sees_two_a_call() -> None:
    looks = itertools.count()
    result = bench.measure(lambda: 0, Machine(), repeats=4, clock=lambda: next(looks))
    assert result.seconds == (1, 1, 1, 1)


@pytest.mark.parametrize("kind", ["cpu", "xla"])
@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_the_workloads_answer_alike_on_cpu_and_xla(kind: str, name: str, xla_device) -> None:
    device = devices.get(kind)
    result = workloads.step(name, device, batch=3)()
    reference = workloads.step(name, devices.get("cpu"), batch=3)()
    assert result.shape[-1] == workloads.CLASSES
    agreed = bench.fidelity(reference, result)
    assert agreed.max_difference < 1e-4 and agreed.kl_max < 1e-9
    assert agreed.top1_agreement == 1
    assert agreed.bit_exact or kind == "xla"


def test_warm_calls_on_xla_run_and_never_compile(xla_device) -> None:
    device = devices.get("xla")
    step = workloads.step("mlp", device, batch=2)
    bench.measure(step, device, warmup=2, repeats=1)
    with Meter() as meter:
        bench.measure(step, device, warmup=1, repeats=5)
    assert (meter.reading.compiles, meter.reading.executions) == (0, 6)


def _generated(kind: str) -> list[int]:
    import torch

    device = devices.get(kind)
    begin, step = workloads.generation(device)
    made = []
    for make in (begin, *[step] * 5):
        made.append(make())
        device.mark_step()
    return torch.cat([item.cpu() for item in made], 1)[0].tolist()


def _generation_on_xla() -> tuple[list[int], int, int]:
    result = _generated("xla")
    device = devices.get("xla")
    begin, step = workloads.generation(device)
    with Meter() as meter:
        bench.tokens(begin, step, device, count=20, texts=2)
    return result, meter.reading.compiles, meter.reading.executions


def test_generation_is_that_of_the_cache_of_fixed_shape_in_two_graphs() -> None:
    from utils.training.finetune import decoding

    prompt = workloads.inputs("gpt", 1)[0, : workloads.PROMPT].tolist()
    expected = decoding.fixed(workloads.model("gpt"), prompt, 6, (16,), 64).tolist()
    assert _generated("cpu") == expected
    result = fresh.run(_generation_on_xla, seconds=300)
    assert result == (expected, 0, 3 * 20)


def test_a_text_that_outgrows_its_cache_says_so() -> None:
    begin, step = workloads.generation(devices.get("cpu"))
    begin()
    with pytest.raises(IndexError, match="its cache holds 64"):
        for _ in range(49):
            step()


def test_an_unknown_model_or_format_names_the_known() -> None:
    with pytest.raises(ValueError, match="choose mlp, cnn, gpt"):
        workloads.model("llama")
    with pytest.raises(ValueError, match="choose float32 or bfloat16"):
        workloads.step("mlp", devices.get("cpu"), dtype="int4")
