"""Batch inference: each id has one result or one reason, whatever is killed or read."""

import csv
import io
import json
import os
import random
import runpy
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.labs.test_grading_cluster import process
from utils import cli
from utils.cost import tco
from utils.course import files
from utils.facts import figure
from utils.serving import batch
from utils.serving.batch import job as jobs
from utils.serving.batch import places, pools, table
from utils.serving.batch.overnight import overnight, requests_per_s

MODEL = """
import os, pathlib, signal
HERE = pathlib.Path(__file__).parent

def make(batch, buckets):
    def model(bucket, texts):
        assert bucket in buckets and len(texts) <= batch and max(map(len, texts)) <= bucket
        for text in texts:
            once = text == "unlucky" and not (HERE / "killed").exists()
            if once:
                (HERE / "killed").touch()
            if once or text == "poison":
                os.kill(os.getpid(), signal.SIGKILL)
        if "raises" in texts:
            raise ArithmeticError("no logarithm of 0")
        return [float("nan") if text == "nan" else text.upper() for text in texts]
    return model
"""
ITEMS = {f"i{n}": "a" * (n % 11 + 1) for n in range(40)}


def made(folder: Path) -> batch.Made:
    (folder / "model.py").write_text(MODEL)
    return batch.Made(f"{folder / 'model.py'}:make", 4, (4, 16))


def write(folder: Path, items: dict[str, str], name: str = "items.csv") -> Path:
    text = io.StringIO()
    csv.writer(text).writerows([("id", "text"), *items.items()])
    (folder / name).write_text(text.getvalue())
    return folder / name


def job(folder: Path, out: Any = None, **settings: Any) -> batch.Job:
    items = folder / "items.csv"
    if not items.exists():
        write(folder, ITEMS)
    return batch.Job(str(items), str(out or folder / "out"), made(folder), 6, **settings)


def outcome(out: str | Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The result of each id and the reason of each that has none; fails if an id has two."""
    where = places.place(str(out))
    entries = {
        kind: [
            json.loads(line)
            for name in sorted(where.names(kind)) if name != "read.jsonl"
            for line in where.read(f"{kind}/{name}").splitlines()
        ]
        for kind in ("results", "aside")
    }  # fmt: skip
    ids = Counter(entry["id"] for result in entries.values() for entry in result)
    assert set(ids.values()) <= {1}
    return (
        {entry["id"]: entry["result"] for entry in entries["results"]},
        {entry["id"]: entry["reason"] for entry in entries["aside"]},
    )


EXPECTED = {name: text.upper() for name, text in ITEMS.items()}


class Killed(BaseException):
    """In place of SIGKILL where the process has to live on."""


@contextmanager
def at_line(number: int, act: Callable[[], None]) -> Iterator[list[int]]:
    """Acts before the line of that number, of all that run in the batch and in writing a file.
    Gives how many ran.
    """
    watched = {files.__file__, *(module.__file__ for module in (jobs, places, pools, table))}
    count = [0]

    def trace(frame: Any, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in watched:
            return None
        if event == "line":
            count[0] += 1
            if count[0] == number:
                act()
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(former)


def kill_in_a_fork(number: int, make: Callable[[], batch.Job]) -> bool:
    """Whether a run in a process of its own was ended by SIGKILL at that line."""
    child = os.fork()
    if child == 0:
        with at_line(number, lambda: os.kill(os.getpid(), signal.SIGKILL)):
            batch.run(make(), batch.Inline(make().made))
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def lines_of(make: Callable[[], batch.Job]) -> int:
    with at_line(0, lambda: None) as count:
        batch.run(make(), batch.Inline(make().made))
    return count[0]


@pytest.mark.parametrize("kills, seed", [(5, 1), pytest.param(50, 2, marks=pytest.mark.exhaustive)])
def test_a_run_that_is_killed_anywhere_goes_on_and_writes_the_same_files(tmp_path, kills, seed):
    rng = random.Random(seed)
    lines = lines_of(lambda: job(tmp_path, tmp_path / "whole"))
    results = sorted((tmp_path / "whole" / "results").iterdir())
    assert outcome(tmp_path / "whole") == (EXPECTED, {}) and len(results) == 7
    for number in range(kills):
        out = tmp_path / f"out{number}"
        assert kill_in_a_fork(rng.randint(1, lines), lambda out=out: job(tmp_path, out))
        kill_in_a_fork(rng.randint(1, lines), lambda out=out: job(tmp_path, out))
        report = batch.run(job(tmp_path, out), batch.Inline(made(tmp_path)))
        assert (report.results, report.aside, report.items) == (40, 0, 40)
        for path in results:
            assert (out / "results" / path.name).read_bytes() == path.read_bytes()
        assert len(list((out / "results").glob("*.jsonl"))) == 7


@pytest.mark.parametrize("scheme", ["s3", "memory"])
@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_the_same_on_s3_and_on_a_file_system_of_fsspec(tmp_path, scheme, kills):
    import boto3
    from moto import mock_aws

    from tests.launch.launch_cloud import KEYS

    rng = random.Random(kills)
    with mock.patch.dict(os.environ, KEYS), mock_aws():
        boto3.client("s3", "us-east-1").create_bucket(Bucket="items")
        items = f"{scheme}://items/{tmp_path.name}/items.csv"
        source = write(tmp_path, {**ITEMS, "no": "raises"})
        places.place(items.rpartition("/")[0]).write("items.csv", source.read_text())

        def make(out: int) -> batch.Job:
            return batch.Job(items, f"{scheme}://items/{tmp_path.name}/out{out}", made(tmp_path), 6)

        def die() -> None:
            raise Killed

        lines = lines_of(lambda: make(0))
        for number in range(1, kills + 1):
            with pytest.raises(Killed), at_line(rng.randint(1, lines), die):
                batch.run(make(number), batch.Inline(made(tmp_path)))
            batch.run(make(number), batch.Inline(made(tmp_path)))
            reasons = {"no": "ArithmeticError: no logarithm of 0"}
            assert outcome(make(number).out) == (EXPECTED, reasons)
        with pytest.raises(FileNotFoundError):
            places.content(f"{scheme}://items/none.csv")


def test_items_that_fail_or_kill_their_process_are_set_aside_and_no_other_is_lost(tmp_path):
    poison = {"p1": "poison", "p2": "raises", "p3": "nan", "u": "unlucky"}
    write(tmp_path, ITEMS | poison)
    texts: list[str] = []
    with batch.Processes(made(tmp_path), 2) as pool:
        report = batch.run(job(tmp_path), pool, texts.append)
    results, reasons = outcome(tmp_path / "out")
    assert results == EXPECTED | {"u": "UNLUCKY"}
    assert reasons.pop("p3").startswith("ValueError: Out of range float values")
    assert reasons == {
        "p1": "its worker ended 3 times, the last time with SIGKILL",
        "p2": "ArithmeticError: no logarithm of 0",
    }
    assert (report.computed, report.results, report.aside) == (44, 41, 3)
    # The poisonous item in its shard and three times alone, the unlucky one in the other half.
    assert sum("the worker ended with SIGKILL" in line for line in texts) == 5
    # Once more, after the model was corrected.
    again = batch.Job(**{**vars(job(tmp_path)), "again": True})
    (tmp_path / "model.py").write_text("def make(*_):\n    return lambda _, texts: texts\n")
    report = batch.run(again, batch.Inline(again.made))
    assert outcome(tmp_path / "out")[1] == {} and report.aside == 0
    assert 3 <= report.computed <= 18  # the shards of the three


@pytest.mark.parametrize(
    "poison", [{}, pytest.param({"p": "poison"}, marks=pytest.mark.exhaustive)]
)
def test_workers_of_a_scheduler_are_killed_and_nothing_is_lost_or_doubled(
    tmp_path, monkeypatch, poison
):
    # Dask gives a task out four times by default; a worker takes seconds to start.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    write(tmp_path, ITEMS | poison | {"u": "unlucky"})
    texts: list[str] = []
    root = Path(jobs.__file__).parents[3]
    with process("scheduler", "--host", "127.0.0.1", "--port", "0") as scheduler:
        assert scheduler.stderr is not None
        address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at:" in line)
        with process("worker", address, "--nthreads", "1", "--nworkers", "2", paths=root):
            with batch.connect(made(tmp_path), address) as pool:
                pool.client.wait_for_workers(2, timeout=60)
                batch.run(job(tmp_path), pool, texts.append)
    results, reasons = outcome(tmp_path / "out")
    assert results == EXPECTED | {"u": "UNLUCKY"}
    assert list(reasons) == list(poison) and all("KilledWorker" in r for r in reasons.values())
    assert any("KilledWorker" in line for line in texts)


BAD = {
    "a.csv": (
        b'id,text\n1,one\n2\n3,\xff\xfe\n4,a,b\n,none\n5,\n1,uno\n"6"x,six\n7,seven\n\n8,"torn\nrow',
        ["1", "7"],
        {3: "1 values for 2 columns", 4: "text is not UTF-8", 5: "3 values for 2 columns",
         6: "id is empty", 7: "text is empty", 9: "not CSV: ',' expected after '\"'",
         12: "not CSV: unexpected end of data"},
        {8: "seen in row 2, which counts; this row has another text", 12: "may be torn"},
    ),
    "a.jsonl": (
        b'{"id": 1, "text": "one"}\n[2]\n{"id": "1", "text": "one"}\n{"id": true, "text": "x"}\n'
        b'{"id": "3", "text": "\\ud800"}\n{"id": "4"}\n{"id": "5", "text": "f',
        ["1"],
        {2: "not an object", 4: "id is True, not a text", 5: "text is not UTF-8",
         6: "no column 'text'", 7: "not JSON: Unterminated string"},
        {3: "which counts; this row has the same text", 7: "may be torn"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_every_row_is_an_item_or_has_a_reason_or_a_note(tmp_path, name):
    data, ids, reasons, notes = BAD[name]
    (tmp_path / name).write_bytes(data)
    result = table.read(str(tmp_path / name))
    assert [item.id for item in result.items] == ids
    for entries, expected, key in (
        (result.aside, reasons, "reason"),
        (result.notes, notes, "note"),
    ):
        assert [entry["row"] for entry in entries] == list(expected)
        assert all(expected[entry["row"]] in entry[key] for entry in entries)


@pytest.mark.parametrize(
    "name, data, message",
    [
        ("a.txt", b"x", "no table that can be read"),
        ("a.csv", b"", "no rows"),
        ("a.parquet", b"PAR1", "pyarrow|torn"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        table.read(str(tmp_path / name))


def test_a_folder_belongs_to_one_table_one_setting_and_one_run(tmp_path):
    batch.run(job(tmp_path), batch.Inline(made(tmp_path)))
    report = batch.run(job(tmp_path), batch.Inline(made(tmp_path)))
    assert (report.starts, report.computed, report.results) == (2, 0, 40)
    other = batch.Job(**{**vars(job(tmp_path)), "shard": 7})
    with pytest.raises(ValueError, match="shard 6, not 7: name a new folder"):
        batch.run(other, batch.Inline(other.made))
    write(tmp_path, ITEMS | {"new": "a"})
    with pytest.raises(ValueError, match="holds a run with table"):
        batch.run(job(tmp_path), batch.Inline(made(tmp_path)))
    with places.alone(places.place(str(tmp_path / "out"))):
        with pytest.raises(ValueError, match="another run writes"):
            batch.run(job(tmp_path), batch.Inline(made(tmp_path)))


def test_the_script_runs_a_job_and_says_what_is_wrong(tmp_path, capsys):
    path = Path(cli.__file__).parents[2] / "notebooks" / "scripts" / "batch_inference.py"
    script = runpy.run_path(str(path))
    model, items = made(tmp_path).model, str(write(tmp_path, ITEMS))
    words = [items, str(tmp_path / "out"), "--model", model, "--buckets", "4,16", "--shard", "6"]
    for rest, status in (([], 0), (["--batch", "3"], 1), (["--scheduler", "nowhere"], 1)):
        assert script["main"](script["parse"]([*words, *rest])) == status
    output = capsys.readouterr()
    assert "40 results of 40 items in 7 shards, 0 rows set aside, 0 notes" in output.out
    assert "with batch 16, not 3: name a new folder" in output.err
    assert "no Dask scheduler answers at nowhere" in output.err
    assert outcome(tmp_path / "out") == (EXPECTED, {})


def test_shards_that_somebody_changed_are_computed_again(tmp_path):
    batch.run(job(tmp_path), batch.Inline(made(tmp_path)))
    torn, empty, doubled, *_ = sorted((tmp_path / "out" / "results").iterdir())
    torn.write_bytes(torn.read_bytes()[:-9])
    empty.write_text("")
    doubled.write_text(doubled.read_text() * 2)
    report = batch.run(job(tmp_path), batch.Inline(made(tmp_path)))
    assert report.computed == 16 and outcome(tmp_path / "out") == (EXPECTED, {})


def test_too_long_items_are_set_aside_and_money_counts_all_starts(tmp_path):
    write(tmp_path, {"long": "a" * 17, "short": "a"})
    texts: list[str] = []
    hour = {"instance": "trn1.2xlarge", "machines": 2}
    for start in (1, 2):
        late = batch.Job(**{**vars(job(tmp_path, **hour)), "began": job(tmp_path).began - 3600})
        report = batch.run(late, batch.Inline(late.made), texts.append)
        assert report.starts == start
        assert report.usd == pytest.approx(start * 2 * late.usd_per_hour / 2, rel=1e-3)
    assert (report.items, report.results, report.aside) == (2, 1, 1)
    (entry,) = map(json.loads, (tmp_path / "out/aside/read.jsonl").read_text().splitlines())
    assert entry["reason"] == "17 characters, and the largest bucket has 16"
    assert "1/1 items" in texts[0] and "USD so far at the price of trn1.2xlarge" in texts[0]


def test_the_courses_model_compiles_each_bucket_once_and_ahead(tmp_path):
    texts = {str(n): ("the old ship waits " * 4)[: n + 1] for n in range(60)}
    write(tmp_path, texts | {"odd": "?!"})
    letters = batch.Made("letters", 4, (16, 64))
    mine = batch.Job(str(tmp_path / "items.csv"), str(tmp_path / "out"), letters, 8)
    with batch.Processes(letters, 1) as pool:
        report = batch.run(mine, pool)
    assert (report.processes, report.ahead, report.later) == (1, 2, 0)
    results, reasons = outcome(tmp_path / "out")
    assert list(reasons) == ["odd"] and "'!'" in reasons["odd"]
    assert [results[str(n)]["characters"] for n in range(60)] == list(range(1, 61))
    bits = [results[str(n)]["bits"] for n in range(60)]
    # Padding and neighbours change nothing: a longer beginning only adds to the bits.
    assert bits[0] == 0 and bits == sorted(bits)


def other_job(folder: Path, *buckets: int, size: int = 1) -> batch.Job:
    return batch.Job(**{**vars(job(folder)), "made": batch.Made("letters", size, buckets)})


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda folder: other_job(folder, 4, size=0), "1 or more"),
        (lambda folder: other_job(folder, 8, 4), "buckets ascend"),
        (lambda _: places.place("s3:///x"), "names no bucket"),
        (lambda _: places.place("nowhere://x"), "install the package of fsspec for nowhere://"),
        (lambda _: batch.Inline(batch.Made("none.py:make", 1, (4,))), "a file that exists"),
        (lambda _: batch.Processes(batch.Made("letters", 1, (4,)), 0), "1 or more"),
        (lambda _: requests_per_s("tpu", 1, 1), "'trainium' or 'gpu'"),
        (lambda _: overnight(tokens_in=0), "1 token or more"),
        (lambda _: overnight(within_hours=0.5), "give more hours or fewer segments"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, call, message):
    with pytest.raises(ValueError, match=message):
        call(tmp_path)


def test_the_night_follows_from_items_segments_lengths_and_published_runs():
    scenario, night = tco.scenario("overnight-batch"), overnight()
    assert night.inputs["work"].value == scenario.inputs["work"].value == 500_000 * 12
    for option in night.options:
        # The scenario's own throughputs are these, rounded.
        path = f"{option}.units_per_second"
        assert night.inputs[path].value == pytest.approx(scenario.inputs[path].value, rel=0.005)
        path = f"{option}.instances"
        assert night.inputs[path].value == scenario.inputs[path].value
        assert night.cost(option).total == pytest.approx(scenario.cost(option).total, rel=0.01)
        fewer = {path: night.inputs[path].value - 1}
        assert night.cost(option).hours <= 10 < night.cost(option, fewer).hours


@pytest.mark.parametrize(
    "tokens_in, tokens_out, servers",
    [
        (750, 250, [22, 6]),
        (1500, 125, [26, 7]),
        (1500, 250, [32, 8]),
        (1500, 500, [45, 11]),
        (3000, 250, [53, 13]),
    ],
)
def test_the_guide_shows_the_servers_of_a_night(tokens_in, tokens_out, servers):
    night = overnight(tokens_in=tokens_in, tokens_out=tokens_out)
    assert [night.inputs[f"{o}.instances"].value for o in night.options] == servers
    guide = Path(cli.__file__).parent / "site" / "guide" / "commands.md"
    row = f"| {tokens_in:,}, {tokens_out} | {servers[0]} | {servers[1]} |"
    assert row in guide.read_text(encoding="utf-8")


@given(st.integers(1, 4000), st.integers(1, 1000), st.sampled_from(["trainium", "gpu"]))
def test_longer_requests_are_fewer_per_second(tokens_in, tokens_out, option):
    here = requests_per_s(option, tokens_in, tokens_out)
    assert requests_per_s(option, tokens_in + 100, tokens_out) < here
    assert requests_per_s(option, tokens_in, tokens_out + 100) < here


def test_the_two_times_of_an_h100_give_both_runs_back_and_a_third_with_a_known_error():
    for tokens_in, tokens_out, error in ((2048, 128, 0), (1000, 1000, 0), (5000, 500, 0.444)):
        published = figure(f"inference.h100_llama31_8b_{tokens_in}_{tokens_out}").value
        modelled = requests_per_s("gpu", tokens_in, tokens_out) * tokens_out
        assert modelled / published - 1 == pytest.approx(error, abs=1e-3)
