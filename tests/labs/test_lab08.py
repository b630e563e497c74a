"""Lab 08: right answers pass however they are written, wrong ones are told apart, what is expected
agrees with other ways to compute it, and nothing an answer does can break a check or a grading.
"""

import json
import math
import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import (
    answer_from,
    cases_of,
    changed,
    names_of,
    right_answers,
    verdict_of,
    wrong_entries,
)
from utils.labs import decide, observe_case
from utils.labs.grading import shown
from utils.labs.lab08 import devices, examples, intervals, resharding, resuming, storage
from utils.labs.lab08.observe import OBSERVERS
from utils.labs.lab08.tensors import region, whole

RIGHT = right_answers("lab08")
WRONG = wrong_entries("lab08")

PART = 'part = path.with_name(path.name + ".part")'

CONTENT = 'content = b"%d\\n" % step + data'

STORED = "file.write(hashlib.sha256(content).digest() + content)"

COMPARED = "hashlib.sha256(content).digest() == digest"

HOURS = "min((k / 10_000 / rate for k in range(1, 10_000)), key=lost_share)"


EXERCISES = [f"lab08.{name}" for name in OBSERVERS]
IN_THIS_PROCESS = ["lab08.ex3", "lab08.ex4"]


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab08")


def verdict_on(source: str, exercise_id: str, seed: object, names: dict):
    return verdict_of(exercise_id, answer_from(source, exercise_id, names), seed)


# Right answers

OTHER_WAYS = {
    "pickled arrays in a temporary file of the folder": (
        "lab08.ex1",
        """
import copy, pickle, tempfile


def plain(state):
    if isinstance(state, torch.Tensor):
        return ("tensor", state.detach().cpu().numpy().copy())
    if isinstance(state, dict):
        return {key: plain(value) for key, value in state.items()}
    return [plain(each) for each in state] if isinstance(state, list) else copy.deepcopy(state)


def tensors(state):
    if isinstance(state, tuple) and len(state) == 2 and state[0] == "tensor":
        return torch.from_numpy(state[1])
    if isinstance(state, dict):
        return {key: tensors(value) for key, value in state.items()}
    return [tensors(each) for each in state] if isinstance(state, list) else state


def parts(run):
    return run.model, run.optimizer, run.scheduler


def save(path, run):
    hosts = random.getstate(), np.random.get_state(), torch.random.get_rng_state()
    batches = {k: v for k, v in vars(run.batches).items() if k not in ("x", "y", "generator")}
    content = [plain(each.state_dict()) for each in parts(run)]
    content += [hosts, xm.get_rng_state(), run.step, batches, run.batches.generator.get_state()]
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        pickle.dump(content, file)
    Path(file.name).replace(path)


def resume(path, run):
    try:
        content = pickle.loads(path.read_bytes())
    except FileNotFoundError:
        return
    for part, state in zip(parts(run), content):
        part.load_state_dict(tensors(state))
    torch_xla.sync()
    hosts, device, run.step, batches, order = content[3:]
    vars(run.batches).update(batches)
    run.batches.generator.set_state(order)
    random.setstate(hosts[0])
    np.random.set_state(hosts[1])
    torch.random.set_rng_state(hosts[2])
    xm.set_rng_state(device)
""",
    ),
    "by xm.save, with a link to the newest": (
        "lab08.ex1",
        changed(
            RIGHT["ex1"],
            (PART, 'part = path.with_name(f"{run.step}-{os.getpid()}")'),
            ("torch.save(state, file)", "xm.save(state, file)"),
            # It makes lists of tuples.
            ('random.setstate(state["python"])',
             'version, words, spare = state["python"]\n'
             "    random.setstate((version, tuple(words), spare))"),
            ('set_state(state["numpy"])', 'set_state(tuple(state["numpy"]))'),
            (
                "    os.replace(part, path)\n",
                '    link = path.with_name("link")\n    link.unlink(missing_ok=True)\n'
                "    link.symlink_to(part.name)\n    os.rename(link, path)\n",
            ),
        ),
    ),
    "a line of JSON with a CRC, and the step in the name": (
        "lab08.ex2",
        """
import zlib


def write(folder, step, data, keep):
    about = {"step": step, "bytes": len(data), "crc": zlib.crc32(data, step)}
    part = folder / f".{step}.{os.getpid()}.tmp"
    for left in folder.glob(".*.tmp"):
        left.unlink()
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        stored = json.dumps(about).encode() + b"\\n" + data
        while stored:
            stored = stored[os.write(descriptor, stored):]
        os.fdatasync(descriptor)
        os.close(descriptor)
        part.rename(folder / f"{step:012}.state")
    except OSError:
        part.unlink(missing_ok=True)
        raise
    for old in sorted(folder.glob("*.state"), reverse=True)[keep:]:
        old.unlink()


def latest(folder):
    found = sorted(folder.glob("*.state"), reverse=True)
    for path in found:
        try:
            line, data = path.read_bytes().split(b"\\n", 1)
            about = json.loads(line)
            if about == {"step": int(path.stem), "bytes": len(data),
                         "crc": zlib.crc32(data, int(path.stem))}:
                return about["step"], data
        except (ValueError, KeyError):
            pass
    if found:
        raise ValueError
""",
    ),
    "a sum in a file of its own": (
        "lab08.ex2",
        """
from os import fsync


def put(path, content):
    with open(path.with_suffix(".part"), "wb") as file:
        file.write(content)
        file.flush()
        fsync(file)
    path.with_suffix(".part").replace(path)


def write(folder, step, data, keep):
    put(folder / f"data{step}.bin", data)
    put(folder / f"data{step}.sum", hashlib.blake2b(b"%d " % step + data).hexdigest().encode())
    steps = sorted(int(each.stem[4:]) for each in folder.glob("data*.sum"))
    for old in steps[:-keep]:
        for end in ("sum", "bin"):
            (folder / f"data{old}.{end}").unlink(missing_ok=True)


def latest(folder):
    steps = sorted((int(each.stem[4:]) for each in folder.glob("data*.sum")), reverse=True)
    for step in steps:
        try:
            data = (folder / f"data{step}.bin").read_bytes()
        except OSError:
            continue
        known = (folder / f"data{step}.sum").read_bytes()
        if hashlib.blake2b(b"%d " % step + data).hexdigest().encode() == known:
            return [step, bytearray(data)]
    if steps:
        raise ValueError("none")
""",
    ),
    "a packed checksum after the content": (
        "lab08.ex2",
        changed(
            RIGHT["ex2"],
            (STORED, "file.write(content + hashlib.md5(content).digest())"),
            ("digest, content = found[:32], found[32:]",
             "digest, content = found[-16:], found[:-16]"),
            (COMPARED, "hashlib.md5(content).digest() == digest"),
        ),
    ),
    "the closed form": (
        "lab08.ex3",
        """
def choose_interval(fleet):
    from scipy.special import lambertw

    groups = fleet.pop("groups")
    rate = sum(g["number"] / g["hours_between_failures_of_one"] for g in groups)
    rate += fleet["interruptions_per_day"] / 24
    seconds = fleet["parameters"] * fleet["bytes_per_parameter"] / fleet["writers"]
    write = seconds / fleet["bytes_per_second_per_writer"] / 3600
    tau = (1 + lambertw(-np.exp(-1 - rate * write)).real) / rate
    useful = rate * tau / np.expm1(rate * (tau + write))
    useful /= np.exp(rate * fleet["restart_minutes"] / 60)
    return {"lost_per_day": (1 - useful) * 24 * fleet["price_per_hour"], "hours": tau, "x": None}
""",
    ),
    "Daly's formula of higher order": (
        "lab08.ex3",
        changed(
            RIGHT["ex3"],
            (HOURS, "math.sqrt(2 * write / rate) * (1 + math.sqrt(rate * write / 2) / 3"
                    " + rate * write / 18) - write"),
        ),
    ),
    "minimised": (
        "lab08.ex3",
        changed(
            RIGHT["ex3"],
            (HOURS, '__import__("scipy.optimize").optimize.minimize_scalar('
                    'lost_share, bounds=(1e-9, 1 / rate), method="bounded").x'),
        ),
    ),
    "every element has a place": (
        "lab08.ex4",
        """
def reshard(index, wanted, read):
    from itertools import product

    made = {}
    for name in list(wanted):
        want, about = wanted.pop(name), index.pop(name)
        target = np.zeros(want["shape"], about["dtype"])
        missing = set(product(*(range(a, a + n) for a, n in zip(want["start"], want["shape"]))))
        for piece in sorted(about["pieces"], key=lambda piece: -piece["file"]):
            ranges = (range(a, a + n) for a, n in zip(piece["start"], piece["shape"]))
            useful = missing & set(product(*ranges))
            if useful:
                values = read(piece["file"], name)
                for place in useful:
                    there = tuple(i - a for i, a in zip(place, want["start"]))
                    target[there] = values[tuple(i - a for i, a in zip(place, piece["start"]))]
                missing -= useful
        if missing:
            raise ValueError(sorted(missing)[:3])
        made[name] = target
    return made
""",
    ),
    "the whole in between": (
        "lab08.ex4",
        """
def cut(at):
    return tuple(slice(a, a + n) for a, n in zip(at["start"], at["shape"]))


def reshard(index, wanted, read):
    made = {"more": None}
    for name, want in wanted.items():
        full = np.zeros(index[name]["shape"], index[name]["dtype"])
        known = np.zeros(full.shape, bool)
        needed = np.zeros(full.shape, bool)
        needed[cut(want)] = True
        for piece in index[name]["pieces"]:
            at = cut(piece)
            if (needed[at] & ~known[at]).any():
                full[at] = read(piece["file"], name)
                known[at] = True
        if (needed & ~known).any():
            raise ValueError(name)
        made[name] = full[cut(want)]
    return made
""",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [pytest.param(*answer, id=way.replace(" ", "-")) for way, answer in OTHER_WAYS.items()],
)
def test_other_right_ways_pass(exercise_id: str, source: str, names: dict) -> None:
    # Each check of exercise 1 trains five times, each of exercise 2 starts processes too.
    for seed in map(str, range(2 if exercise_id in IN_THIS_PROCESS else 1)):
        verdict = verdict_on(source, exercise_id, seed, names)
        assert verdict.state == "passed", verdict


def test_the_interval_and_the_shards_of_many_seeds_are_solved(names: dict) -> None:
    for exercise_id, seed in product(IN_THIS_PROCESS, range(6)):
        verdict = verdict_on(RIGHT[exercise_id[-3:]], exercise_id, seed, names)
        assert verdict.state == "passed", (seed, verdict)


# Wrong answers


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [
        pytest.param(w[0], w[2], id=f"{w[0]}-{w[1].replace(' ', '-')}")
        for w in WRONG
        if w[1] in ("in place", "keeps all") or (w[0] in IN_THIS_PROCESS and w[1] != "for ever")
    ],
)
def test_a_wrong_answer_loses_points_with_any_seed(exercise_id, source, names) -> None:
    verdict = verdict_on(source, exercise_id, "a private one", names)
    assert verdict.state in ("tried", "error") and verdict.points < 10.0, verdict
    assert [c.measured for c in verdict.criteria if not shown.known(c.measured)] == []


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_what_does_nothing_wins_nothing(exercise_id: str) -> None:
    for value in (None, 0, [], {}, ""):
        verdict = verdict_of(exercise_id, lambda *_, value=value: value, "public")
        assert verdict.points == 0, verdict


def test_an_answer_that_trains_from_the_start_again_wins_nothing(names: dict) -> None:
    """Its losses are right to the bit: nothing was lost but all the work."""
    source = next(w[2] for w in WRONG if w[:2] == ("lab08.ex1", "does nothing"))
    verdict = verdict_on(source, "lab08.ex1", 5, names)
    assert (verdict.state, verdict.points) == ("tried", 0)


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
    steps = [int(each.name[4:]) for each in folder.glob("step*")]
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


def garbage() -> list:
    return [
        *(None, True, "text", b"bytes", float("nan"), 10**400, 1j, [], [1.0] * 100_000, ("a", 1)),
        *({}, {"hours": None, "lost_per_day": "x" * 999}, {"hours": float("inf")}),
        {"hours": -1, "lost_per_day": 1e308},
        {"hours": 5e-324, "lost_per_day": 10**400},
        {"hours": 1e308, "lost_per_day": [[]]},
        {"layer0": [[1.0]], "step": 3, 7: 7, "x" * 999: None},
        {f"layer{k}": range(3) for k in range(100)},
    ]


@pytest.mark.parametrize("exercise_id", IN_THIS_PROCESS)
def test_no_returned_value_breaks_the_check(exercise_id: str) -> None:
    import numpy as np

    arrays = [{"layer0": np.full(shape, 1j)} for shape in ((), (3, 3), (0, 4), (500, 500))]
    arrays += [{"step": np.array(None)}, {"step": np.array("x" * 99)}, {"layer0": np.ma.array([1])}]
    for value in [*garbage(), *arrays]:
        cases = cases_of(exercise_id, "first")
        seen = [observe_case(exercise_id, lambda *_, value=value: value, case) for case in cases]
        assert all("facts" in each for each in seen), seen
        text = json.dumps(seen, allow_nan=False)
        assert len(text) < 100_000
        verdict = decide(exercise_id, cases, json.loads(text), 10.0)
        assert verdict.state == "tried" and verdict.points == 0, (value, verdict)
        assert any(each.message for each in verdict.criteria)


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
        lost = [intervals.lost_share(each, write, restart, rate) for each in grid]
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
    error = math.sqrt(sum((each - mean) ** 2 for each in hours)) / segments
    expected = every / (1 - intervals.lost_share(every, write, restart, rate))
    assert abs(mean - expected) < 5 * error


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_pieces_cover_every_tensor_and_the_least_reads_are_known(seed: int) -> None:
    cases = cases_of("lab08.ex4", seed)
    for case, tensor in ((each, t) for each in cases for t in each["tensors"]):
        values = whole(case["seed"], tensor["name"], tensor["shape"], tensor["dtype"])
        assert len(set(values.ravel().tolist())) == values.size
        places = set(product(*map(range, tensor["shape"])))
        held = [set(product(*(range(s.start, s.stop) for s in region(p["start"], p["shape"]))))
                for p in tensor["pieces"]]  # fmt: skip
        assert set().union(*held) == places
        for rank, wanted in enumerate(tensor["wanted"]):
            at = region(wanted["start"], wanted["shape"])
            asked = set(product(*(range(s.start, s.stop) for s in at)))
            regions = {frozenset(each) for each in held if each & asked}
            assert len(resharding.needed(tensor, rank, None)) == len(regions)
            left = [h for h, p in zip(held, tensor["pieces"], strict=True)
                    if p["file"] != case["lost"]]  # fmt: skip
            assert resharding.covered(tensor, rank, case["lost"]) == (asked <= set().union(*left))
    assert any(
        not resharding.covered(each, rank, cases[-1]["lost"])
        for each in cases[-1]["tensors"]
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
    assert {each["at"] for each in files["kills"]} == set(storage.KILLS)


def test_an_answer_reshards_what_xla_puts_on_real_devices(names: dict) -> None:
    reshard = answer_from(RIGHT["ex4"], "lab08.ex4", names)
    assert devices.compare(reshard) == dict.fromkeys(devices.SHAPES, True)


# Grading
