"""Lab 08: right answers pass however they are written, wrong ones are told apart, what is expected
agrees with other ways to compute it, and nothing an answer does can break a check or a grading.
"""

import math
import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import answer_from, cases_of, changed, names_of, right_answers, verdict_of
from utils.labs.lab08 import devices, examples, intervals, resharding, resuming, storage
from utils.labs.lab08.tensors import region, whole

RIGHT = right_answers("lab08")


CONTENT = 'content = b"%d\\n" % step + data'


IN_THIS_PROCESS = ["lab08.ex3", "lab08.ex4"]


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab08")


def verdict_on(source: str, exercise_id: str, seed: object, names: dict):
    return verdict_of(exercise_id, answer_from(source, exercise_id, names), seed)


# Right answers


def test_the_interval_and_the_shards_of_many_seeds_are_solved(names: dict) -> None:
    for exercise_id, seed in product(IN_THIS_PROCESS, range(6)):
        verdict = verdict_on(RIGHT[exercise_id[-3:]], exercise_id, seed, names)
        assert verdict.state == "passed", (seed, verdict)


# Wrong answers


TRAINS_AGAIN = """
def save(path, run):
    path.with_name("part").write_text(str(run.step))
    os.replace(path.with_name("part"), path)


def resume(path, run):
    for _ in range(int(path.read_text()) if path.exists() else 0):
        x, y = run.batches.next()
        run.optimizer.zero_grad()
        loss = run.model(x.to("xla")).sub(y.to("xla")).square().mean()
        loss.backward()
        run.optimizer.step()
        run.scheduler.step()
        torch_xla.sync()
        run.step += 1
"""
FORGES_THE_JOURNAL = """
def save(path, run):
    path.write_text("nothing")


def resume(path, run):
    if not path.exists():
        return
    known = []
    journals = sorted(path.parent.parent.glob("journal*"))
    for journal in journals[:-1]:
        known += [line[line.index("{"):] for line in journal.read_text().splitlines()]
    states = [json.loads(line)["state"] for line in known if '"saved"' in line]
    steps = [line for line in known if '"step"' in line]
    with open(journals[-1], "a") as file:
        for line in [json.dumps({"resumed": states[-1], "trained": 0}), *steps]:
            file.write(line + "\\n")
            file.write("0" * 64 + " " + line + "\\n")
    os._exit(0)
"""
REMEMBERS = """
known = {}


def write(folder, step, data, keep):
    known[folder, step] = data
    (folder / f"step{step}").write_bytes(b"")


def latest(folder):
    steps = [int(item.name[4:]) for item in folder.glob("step*")]
    return (max(steps), known.get((folder, max(steps)), b"")) if steps else None
"""


@pytest.mark.parametrize(
    ("exercise_id", "source", "most"),
    [
        pytest.param("lab08.ex1", TRAINS_AGAIN, 1, id="trains again by code of its own"),
        pytest.param("lab08.ex1", FORGES_THE_JOURNAL, 0, id="forges the journal"),
        pytest.param("lab08.ex2", REMEMBERS, 3, id="remembers what it wrote"),
    ],
)
def test_a_checkpoint_cannot_be_feigned(exercise_id, source, most, names) -> None:
    """most: points out of 10 for what it does rightly nevertheless."""
    verdict = verdict_on(source, exercise_id, "public", names)
    assert verdict.state == "tried" and verdict.points <= most, verdict


def test_a_half_written_cell_says_what_is_missing() -> None:
    only: dict = {"__name__": "notebook"}
    exec("def resume(path, run):\n    pass\n", only)
    verdict = verdict_of("lab08.ex1", only["resume"], "public")
    assert "`save` is not defined" in verdict.error


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "raise SystemExit(0)"])
@pytest.mark.parametrize(("exercise", "name"), [("ex1", "save"), ("ex2", "latest")])
def test_an_answer_that_ends_itself_is_an_error(exercise, name, end, names) -> None:
    lines = RIGHT[exercise].splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith(f"def {name}("))
    lines.insert(at + 1, f"    {end}")
    verdict = verdict_on("\n".join(lines), f"lab08.{exercise}", "public", names)
    assert (verdict.state, verdict.points) == ("error", 0), verdict


def test_no_value_of_latest_breaks_the_check(names: dict) -> None:
    tail = "\n\n\nvalues = iter({!r} * 100)\n\n\ndef latest(folder):\n    return next(values)\n"
    values = [None, 1, (1,), (1, 2), ("1", b""), (True, b""), (10**400, b""), [90, b"x"], {1, 2}]
    source = changed(RIGHT["ex2"], (CONTENT, CONTENT)) + tail.format(values)
    verdict = verdict_on(source, "lab08.ex2", "public", names)
    assert verdict.state == "tried" and verdict.points <= 1, verdict


# What is expected


def test_the_example_of_the_fleet_is_what_the_task_says() -> None:
    fleet = examples.FLEET
    every, write = intervals.best_hours(fleet), intervals.write_hours(fleet)
    rate = intervals.failures_per_hour(fleet)
    assert math.isclose(rate, 0.2) and round(every, 3) == 1.346
    assert round(math.sqrt(2 * write / rate), 3) == 1.491
    share = intervals.lost_share(every, write, 0.2, rate)
    assert round(share, 4) == 0.2979 and round(every / (1 - share), 3) == 1.918
    assert round(intervals.lost_per_day(fleet, every), -1) == 7150


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_no_other_interval_is_better_and_young_fails_where_failures_are_frequent(seed: int) -> None:
    for number, case in enumerate(cases_of("lab08.ex3", seed)):
        fleet = case["fleet"]
        write, rate = intervals.write_hours(fleet), intervals.failures_per_hour(fleet)
        best, restart = intervals.best_hours(fleet), fleet["restart_minutes"] / 60
        grid = [best * factor for factor in (0.5, 0.9, 0.98, 1.02, 1.1, 2)]
        lost = [intervals.lost_share(item, write, restart, rate) for item in grid]
        assert min(lost) > intervals.lost_share(best, write, restart, rate)
        off = math.sqrt(2 * write / rate) / best - 1
        assert off > 2 * intervals.INTERVAL if number else 0 < off < intervals.INTERVAL


def test_a_fleet_that_is_played_loses_what_is_expected() -> None:
    fleet = cases_of("lab08.ex3", "played")[3]["fleet"]
    write, rate = intervals.write_hours(fleet), intervals.failures_per_hour(fleet)
    every, restart = intervals.best_hours(fleet), fleet["restart_minutes"] / 60
    chance, hours, segments = random.Random(8), [], 20_000

    def passes(length: float) -> tuple[bool, float]:
        until = chance.expovariate(rate)
        return until >= length, min(until, length)

    for _ in range(segments):
        took, waiting = 0.0, [every + write]
        while waiting:
            passed, time = passes(waiting[-1])
            took += time
            if passed:
                waiting.pop()
            elif len(waiting) == 1:
                waiting.append(restart)
        hours.append(took)
    mean = sum(hours) / segments
    error = math.sqrt(sum((hour - mean) ** 2 for hour in hours)) / segments
    expected = every / (1 - intervals.lost_share(every, write, restart, rate))
    assert abs(mean - expected) < 5 * error


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_pieces_cover_every_tensor_and_the_least_reads_are_known(seed: int) -> None:
    cases = cases_of("lab08.ex4", seed)
    for case, tensor in ((item, t) for item in cases for t in item["tensors"]):
        values = whole(case["seed"], tensor["name"], tensor["shape"], tensor["dtype"])
        assert len(set(values.ravel().tolist())) == values.size
        places = set(product(*map(range, tensor["shape"])))
        held = [set(product(*(range(s.start, s.stop) for s in region(p["start"], p["shape"]))))
                for p in tensor["pieces"]]  # fmt: skip
        assert set().union(*held) == places
        for rank, wanted in enumerate(tensor["wanted"]):
            at = region(wanted["start"], wanted["shape"])
            asked = set(product(*(range(s.start, s.stop) for s in at)))
            regions = {frozenset(item) for item in held if item & asked}
            assert len(resharding.regions_of(tensor, rank, None)) == len(regions)
            left = [h for h, p in zip(held, tensor["pieces"], strict=True)
                    if p["file"] != case["lost"]]  # fmt: skip
            assert resharding.has_all(tensor, rank, case["lost"]) == (asked <= set().union(*left))
    assert any(
        not resharding.has_all(item, rank, cases[-1]["lost"])
        for item in cases[-1]["tensors"]
        for rank in range(2)
    )


@given(st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_kills_come_after_a_save_within_an_epoch(seed: int) -> None:
    (case,) = cases_of("lab08.ex1", seed)
    first, second, third = case["kills"]
    every, per_epoch = case["save_every"], resuming.ROWS // case["rows_per_batch"]
    last = (first["step"] - 1) // every * every
    assert 4 <= last < first["step"] <= last + every and last % per_epoch
    assert [second["step"] - last, third["step"] - last] == [2 * every, 3 * every]
    assert third["step"] < case["steps"] <= 23
    (files,) = cases_of("lab08.ex2", seed)
    assert files["steps"] == sorted(files["steps"]) != sorted(files["steps"], key=str)
    assert {kill["at"] for kill in files["kills"]} == set(storage.KILLS)


def test_an_answer_reshards_what_xla_puts_on_real_devices(names: dict) -> None:
    reshard = answer_from(RIGHT["ex4"], "lab08.ex4", names)
    assert devices.compare(reshard) == dict.fromkeys(devices.SHAPES, True)
