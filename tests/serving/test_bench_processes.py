"""Real processes: cold starts, workers side by side, a worker killed, and the command itself.

Counts and values are asserted; seconds only by order and sign.
"""

import errno
import itertools
import json
import os

import pytest

from tests.serving.test_bench_records import record
from utils.cli.commands import bench as command
from utils.course.catalog import ROOT
from utils.serving import bench
from utils.serving.bench import runs, workers
from utils.xla import fresh


def doubler(device):
    return lambda request: 2 * request


@pytest.mark.parametrize(
    ("spare", "kill_at", "in_flight", "lost"),
    [
        (False, 0, 1, 1),
        (False, 4, 3, 3),
        (False, 9, 4, 1),
        (True, 7, 3, 3),
        (True, 9, 4, 1),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in [(False, 7, 3, 3), (True, 0, 1, 1), (True, 4, 3, 3)]
        ),
    ],
)
def test_what_is_under_way_is_lost_and_sent_again(spare, kill_at, in_flight, lost) -> None:
    ticks = itertools.count()
    result = bench.recovery(
        doubler,
        range(10),
        kill_at=kill_at,
        in_flight=in_flight,
        spare=spare,
        clock=lambda: next(ticks),
    )
    assert (result.answered, result.lost, result.retried, result.failed) == (10, lost, lost, 0)
    assert (result.cause, result.spare) == ("SIGKILL", spare)
    # The clock counts the looks at it: kill, noticed, replaced, first answer.
    assert (result.noticed_s, result.replaced_s, result.served_s) == (1, 2, 3)


def test_without_a_retry_what_was_under_way_fails() -> None:
    result = bench.recovery(doubler, range(10), kill_at=8, in_flight=3, retry=False)
    assert (result.answered, result.lost, result.retried, result.failed) == (8, 2, 0, 2)
    assert result.served_s is None
    assert "2 failed; noticed after" in str(result)
    assert str(result).endswith("nobody was left to serve")


@pytest.mark.parametrize("wrong", [{"kill_at": 10}, {"kill_at": -1}, {"in_flight": 0}])
def test_a_kill_that_never_comes_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match="give one from 0 to 9|at least 1 is needed"):
        bench.recovery(doubler, range(10), **wrong)


def test_a_worker_answers_in_order_and_ends_with_its_connection() -> None:
    with workers.Worker(doubler) as worker:
        worker.wait_ready()
        for number in range(3):
            worker.send(number, number)
        assert [worker.receive() for _ in range(3)] == [(0, 0), (1, 2), (2, 4)]
        pid = worker.pid
        assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_worker_that_cannot_make_its_model_says_why() -> None:
    def broken(device):
        raise OSError("no weights here")

    with workers.Worker(broken) as worker, pytest.raises(fresh.Raised, match="no weights here"):
        worker.wait_ready()


def test_a_worker_whose_model_fails_says_why() -> None:
    with workers.Worker(lambda device: lambda request: 1 / request) as worker:
        worker.wait_ready()
        worker.send(0, 0)
        with pytest.raises(fresh.Raised, match="division by zero"):
            worker.receive()


def test_a_worker_that_takes_too_long_is_ended() -> None:
    with (
        workers.Worker(doubler, seconds=0.5) as worker,
        pytest.raises(TimeoutError, match="did not end within 0.5 s"),
    ):
        worker.wait_ready()  # on a busy machine it ends here
        worker.send(0, 1, hold=True)
        worker.receive()


def test_processes_side_by_side_make_the_calls_of_each() -> None:
    one, two = bench.side_by_side(lambda device: lambda: 0, batch=3, workers=(1, 2), calls=5)
    assert [(item.processes, item.calls, item.concurrency) for item in (one, two)] == [
        (1, 5, 1),
        (2, 10, 1),
    ]
    assert one.seconds > 0 and two.items_per_second == 30 / two.seconds


def test_a_cold_start_on_xla_has_every_stage_and_compiles_once() -> None:
    def make(device):
        from utils.serving.bench import workloads

        return workloads.step("mlp", device)

    result = bench.cold_and_warm(make, "xla", warmup=2, repeats=5)
    assert all(seconds > 0 for seconds in result.stages.values())
    assert (len(result.warm.warmup_s), len(result.warm.seconds)) == (2, 5)
    assert result.first_answer_s == pytest.approx(sum(result.stages.values()))


def test_a_cold_start_that_fails_says_what_the_process_said() -> None:
    with pytest.raises(RuntimeError, match="exit 1: ZeroDivisionError: division by zero"):
        bench.cold_and_warm(lambda device: 1 / 0)


def test_the_command_measures_records_and_compares(tmp_path, capsys) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    few = "--device xla --model mlp --rounds 2 --warmup 2 --repeats 12".split()
    assert command.main([*few, "--only", "none", "--out", str(first)]) == 0
    printed = capsys.readouterr().out
    assert (
        "warm, 2 processes: 24 samples" in printed
        and "median " in printed
        and "top-1 100.0 %" in printed
    )
    record = bench.load(first)
    assert record.what == "mlp" and record.settings["device"] == "xla"
    assert record.environment.threads == 1
    assert record.fidelity.max_difference < 1e-4 and record.repeatable
    assert record.cold is record.recovery is None and record.rates == ()

    parts = "rates,recovery --price 0.5 --price-source a-bill --power 20 --power-source a-meter"
    command_line = [*few, "--only", *parts.split(), "--out", str(second), "--against", str(first)]
    assert command.main(command_line) in (0, 1)
    printed = capsys.readouterr().out
    assert f"against {first}:" in printed and "one number of the test is the median of" in printed
    full = bench.load(second)
    assert full.recovery.lost == runs.IN_FLIGHT and full.recovery.answered == runs.REQUESTS
    assert [rate.processes for rate in full.rates[-2:]] == [1, 2]
    assert full.usd_per_million.source == "price: a-bill"
    best = max(rate.items_per_second for rate in full.rates)
    assert full.joules_per_query.value == pytest.approx(20 / best)


def test_a_gpt_has_its_tokens_measured(monkeypatch) -> None:
    monkeypatch.setattr(runs, "SECONDS", 120.0)
    record = runs.run(runs.Plan("gpt", "cpu", rounds=1, warmup=1, repeats=2), ("tokens",))
    assert len(record.tokens.first_s) == 8 and len(record.tokens.next_s[0]) == 31
    assert record.fidelity.bit_exact and record.repeatable


def test_bfloat16_answers_are_near_and_not_the_same() -> None:
    record = runs.run(runs.Plan("mlp", "cpu", dtype="bfloat16", rounds=1, warmup=1, repeats=1), ())
    assert 1e-5 < record.fidelity.max_difference < 0.1
    assert record.fidelity.kl < 1e-3 and not record.fidelity.bit_exact and record.repeatable


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--price 1", "--price needs --price-source"),
        ("--only speed", "no part 'speed': choose arrivals, cold, rates"),
        ("--only none --price 1 --price-source x", "need the throughput"),
        ("--rounds 0", "rounds is 0, but it must be at least 1"),
        ("--out /no/such/folder/file.json", "there is no folder /no/such/folder"),
        ("--against missing.json", "missing.json cannot be read"),
        ("--out course.py", "course.py is there already: name a new file"),
        ("--percentile 99", "give --against too"),
        ("--only cold,none", "give parts with commas between, or none"),
        ("--only tokens", "mlp in float32 generates no tokens"),
        ("--price-source a-bill", "--price-source needs --price: give both"),
    ],
)
def test_the_command_says_what_is_wrong_before_it_measures(
    options, says, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(fresh, "run", _measures)
    monkeypatch.chdir(ROOT)
    line = ["--model", "mlp", *options.split()]
    line = line if "--device" in line else ["--device", "cpu", *line]
    assert command.main(line) == 2
    assert says in capsys.readouterr().err


def test_the_command_refuses_a_record_of_something_else(tmp_path, capsys) -> None:
    path = tmp_path / "record.json"
    few = "--device cpu --model mlp --rounds 1 --warmup 1 --repeats 8 --only none".split()
    assert command.main([*few, "--out", str(path)]) == 0
    content = json.loads(path.read_text())
    content["record"]["settings"]["batch"] = 9
    path.write_text(json.dumps(content))
    capsys.readouterr()
    assert command.main([*few, "--against", str(path)]) == 2
    text = capsys.readouterr().err
    assert "setting batch 9 and 1" in text and "…" not in text  # nothing was measured

    content["record"]["settings"]["batch"] = 1
    content["record"]["environment"]["cpu"] = "another"
    path.write_text(json.dumps(content))
    assert command.main([*few, "--against", str(path)]) == 2
    text = capsys.readouterr().err
    assert "cpu 'another' and" in text and "warm times" not in text


def test_a_percentile_that_cannot_be_compared_is_refused_before_it_is_measured(
    tmp_path, capsys, monkeypatch
) -> None:
    path = tmp_path / "record.json"
    bench.save(record(what="mlp", settings=runs.Plan("mlp", "cpu").settings), path)
    monkeypatch.setattr(fresh, "run", _measures)
    line = ["--device", "cpu", "--model", "mlp", "--against", str(path), "--percentile"]
    for p, says in (("99", "measure at least 5"), ("101", "above 0 and below 100")):
        assert command.main([*line, p]) == 2
        assert says in capsys.readouterr().err


def test_a_device_that_is_not_here_is_named(capsys) -> None:
    assert command.main("--device cuda --only none".split()) == 2
    assert "no device 'cuda'; it has" in capsys.readouterr().err


def test_a_folder_that_takes_no_files_is_refused(monkeypatch, capsys, tmp_path) -> None:
    def refuses(dir):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(command.tempfile, "TemporaryFile", refuses)
    assert command.main(["--device", "cpu", "--out", str(tmp_path / "new.json")]) == 2
    assert "nothing can be written in" in capsys.readouterr().err


def test_a_part_that_fails_does_not_cost_the_others(monkeypatch, capsys, tmp_path) -> None:
    def fails(plan):
        raise fresh.Died("SIGKILL")

    monkeypatch.setitem(runs._MEASURED, "rates", fails)
    path = tmp_path / "record.json"
    few = "--device cpu --model mlp --rounds 1 --warmup 1 --repeats 8 --only rates,recovery".split()
    priced = "--price 1 --price-source a-bill".split()
    assert command.main([*few, *priced, "--out", str(path)]) == 2
    kept = bench.load(path)
    assert "SIGKILL" in kept.missing["rates"] and kept.usd_per_million is None
    assert kept.recovery.answered == runs.REQUESTS
    printed = capsys.readouterr()
    assert "not measured, rates: the process ended with SIGKILL" in printed.out
    assert "… this failed: the process ended" in printed.err


def test_ctrl_c_leaves_no_file(tmp_path, monkeypatch) -> None:
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(fresh, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):  # course.py says "stopped."
        command.main(["--device", "cpu", "--out", str(tmp_path / "x.json")])
    assert list(tmp_path.iterdir()) == []


def _measures(*arguments, **settings):
    raise AssertionError("nothing may be measured before this is refused")
