"""`nki tune FILE::KERNEL --param TILE=128,256`: the best of declared choices.

All choices are estimated first, from shapes alone. Then the fastest are run with numbers, until so
many of them as --verify says are equal to the reference. Each outcome goes into a journal at once,
and the same command goes on where an earlier one was stopped.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from utils.facts.tables import columns
from utils.nki.simulator import VERSION
from utils.nki.simulator.profile import bytes_text, time_text
from utils.nki.simulator.target import choose
from utils.nki.tool import trial
from utils.nki.tool.asked import choices_of, place_of, shape_text
from utils.nki.tool.failures import FINE, FOUND, Refused
from utils.nki.tool.journal import Journal
from utils.nki.tool.profiling import add_call

MOST = 10_000
"""Choices of one search."""

Choice = dict[str, Any]
Submit = Callable[[trial.Job], "concurrent.futures.Future[trial.Outcome]"]


def add(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("kernel", help="FILE::KERNEL")
    add_call(parser)
    parser.add_argument(
        "--param", action="append", required=True, type=choices_of, metavar="NAME=VALUE,VALUE",
        help="an argument of the kernel, or a name at the top of its file",
    )  # fmt: skip
    parser.add_argument("--reference", metavar="FILE::FUNCTION", help="of NumPy, for the values")
    parser.add_argument("--terms", type=int, help="numbers that an element sums")
    parser.add_argument("--verify", type=int, default=1, help="how many of the fastest to verify")
    parser.add_argument("--journal", type=Path, help="default: KERNEL.tune.json in this folder")
    parser.add_argument("--jobs", type=int, default=_cores(), help="processes at a time")
    parser.add_argument("--scheduler", metavar="tcp://...", help="of Dask, in place of processes")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def key_of(choice: Choice) -> str:
    """A choice as the table and the journal name it.

    >>> key_of({"TILE": 128, "kind": "fast"})
    "TILE=128 kind='fast'"
    """
    return " ".join(f"{name}={value!r}" for name, value in choice.items())


def choices(params: list[tuple[str, tuple[Any, ...]]]) -> list[Choice]:
    """Every combination of the declared values, in their order. Raises Refused for too many."""
    names = [name for name, _ in params]
    if len(set(names)) < len(names):
        raise Refused(f"--param names one of {', '.join(names)} twice")
    count = math.prod(len(values) for _, values in params)
    if count > MOST:
        raise Refused(f"{count:,} combinations are too many for one search; at most {MOST:,}")
    return [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(values for _, values in params))
    ]


def search_of(given: argparse.Namespace) -> dict[str, Any]:
    """What makes a search this one: outcomes of another are not taken."""
    path, name = place_of(given.kernel)
    search = {
        "kernel": f"{path.name}::{name}",
        "text": trial.digest_of(path),
        "shapes": [shape_text(shape) for shape in given.shape],
        "arguments": dict(given.arg),
        "target": choose(given.target).name,
        "cores": given.cores,
        "params": [[name, list(values)] for name, values in given.param],
        "reference": "",
        "terms": given.terms,
        "version": VERSION,
    }
    if given.reference:
        file, function = place_of(given.reference)
        search["reference"] = f"{file.name}::{function} {trial.digest_of(file)}"
    return search


def job_of(given: argparse.Namespace) -> trial.Job:
    """What all trials of a search share."""
    places = {"kernel": place_of(given.kernel)}
    if given.reference:
        places["reference"] = place_of(given.reference)
    return {
        "version": VERSION,
        "reference": "",
        **{role: f"{path}::{name}" for role, (path, name) in places.items()},
        "texts": {str(path): path.read_text(encoding="utf-8") for path, _ in places.values()},
        "shapes": [shape_text(shape) for shape in given.shape],
        "arguments": dict(given.arg),
        "target": choose(given.target).name,
        "cores": given.cores,
        "terms": given.terms,
        "limit_s": given.limit,
    }


@contextlib.contextmanager
def _places(given: argparse.Namespace) -> Iterator[tuple[Submit, int]]:
    """Where trials run: how to hand one over, and how many at a time."""
    if given.scheduler:
        try:
            from distributed import Client  # late: a second to import, and a package of its own
        except ImportError:
            raise Refused("--scheduler needs Dask: pip install 'trn-nki[dask]'") from None
        try:
            client = Client(given.scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise Refused(f"there is no scheduler at {given.scheduler}: {error}") from None
        with client:
            yield lambda job: client.submit(trial.run, job, pure=False), MOST
        return
    if given.jobs < 1:
        raise Refused(f"--jobs {given.jobs}: at least 1")
    pool = concurrent.futures.ThreadPoolExecutor(given.jobs)
    try:
        yield lambda job: pool.submit(trial.run, job), given.jobs
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _outcomes(
    submit: Submit, jobs: dict[str, trial.Job], most: int
) -> Iterator[tuple[str, trial.Outcome]]:
    """Outcomes by key as they come; at most so many trials are under way."""
    todo = list(jobs.items())
    under_way: dict[Any, str] = {}
    while todo or under_way:
        while todo and len(under_way) < most:
            key, job = todo.pop(0)
            under_way[submit(job)] = key
        for future in _ended(list(under_way)):
            key = under_way.pop(future)
            try:
                yield key, future.result()
            except Exception as error:  # Dask gives up a trial that ends its workers
                yield key, {"error": f"{trial.LOST}: {type(error).__name__}: {error}"}


def _ended(futures: list[Any]) -> list[Any]:
    if isinstance(futures[0], concurrent.futures.Future):
        done, _ = concurrent.futures.wait(futures, return_when="FIRST_COMPLETED")
        return list(done)
    from distributed import wait

    return list(wait(futures, return_when="FIRST_COMPLETED").done)


def time_of(outcome: trial.Outcome) -> float:
    """What choices are ranked by: seconds as compiled, which also those have that do not fit."""
    return outcome["compiled"]


def ranking(result: list[Choice], outcomes: dict[str, trial.Outcome]) -> list[Choice]:
    """The choices that have an estimate, the fastest first; of equal ones the first declared."""
    timed = [c for c in result if "compiled" in outcomes.get(f"estimate {key_of(c)}", {})]
    return sorted(timed, key=lambda choice: time_of(outcomes[f"estimate {key_of(choice)}"]))


def main(given: argparse.Namespace) -> int:
    """Run the command; returns its exit status: 0 if a choice is estimated and verified."""
    result, shared = choices(given.param), job_of(given)
    _, kernel = place_of(given.kernel)
    path = given.journal or Path(f"{kernel}.tune.json")
    with Journal(path, search_of(given)) as journal, _places(given) as (submit, most):
        if journal.outcomes:
            print(f"going on: {len(journal.outcomes)} outcomes are in {path}")
        jobs = {
            f"estimate {key_of(choice)}": shared | {"kind": "estimate", "choice": choice}
            for choice in result
        }
        _estimate(journal, submit, jobs, most)
        order = ranking(result, journal.outcomes)
        _verify(journal, submit, order, shared | {"first": result[0]}, given.verify)
        print("\n".join(table(result, journal.outcomes)))
    best = next((c for c in order if _verdict(c, journal.outcomes) == "equal"), None)
    if best is None:
        print("no choice is verified")
        return FOUND
    estimate = journal.outcomes[f"estimate {key_of(best)}"]
    print(f"best: {key_of(best)}, {time_text(time_of(estimate))}")
    return FINE


def _estimate(journal: Journal, submit: Submit, jobs: dict[str, trial.Job], most: int) -> None:
    left = {key: job for key, job in jobs.items() if key not in journal.outcomes}
    done = len(jobs) - len(left)
    timed = {k: time_of(o) for k, o in journal.outcomes.items() if k in jobs and "compiled" in o}
    for key, outcome in _outcomes(submit, left, most):
        journal.add(key, outcome)
        done += 1
        if "compiled" in outcome:
            timed[key] = time_of(outcome)
        text = time_text(timed[key]) if key in timed else _first_line(outcome["error"])
        line = f"[{done}/{len(jobs)}] {key}: {text}"
        if timed:
            best = min(timed, key=timed.__getitem__)
            line += f"; best so far {best.removeprefix('estimate ')}, {time_text(timed[best])}"
        print(line, flush=True)


def _verify(
    journal: Journal, submit: Submit, order: list[Choice], shared: trial.Job, wanted: int
) -> None:
    """Run the fastest with numbers, until so many are equal to what is expected."""
    equal = 0
    for choice in order:
        if equal >= wanted:
            return
        key = f"values {key_of(choice)}"
        if key not in journal.outcomes:
            job = shared | {"kind": "values", "choice": choice}
            for _, outcome in _outcomes(submit, {key: job}, 1):
                journal.add(key, outcome)
            print(f"{key_of(choice)}: values {_verdict(choice, journal.outcomes)}", flush=True)
        equal += _verdict(choice, journal.outcomes) == "equal"


def _verdict(choice: Choice, outcomes: dict[str, trial.Outcome]) -> str:
    outcome = outcomes.get(f"values {key_of(choice)}")
    if outcome is None:
        return "not run"
    if "error" in outcome:
        return f"failed: {_first_line(outcome['error'])}"
    return f"wrong: {outcome['wrong']}" if outcome["wrong"] else "equal"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def table(result: list[Choice], outcomes: dict[str, trial.Outcome]) -> list[str]:
    """All choices as lines, the fastest first, then those without an estimate."""
    order = ranking(result, outcomes)
    rows = [("choice", "as compiled", "as written", "HBM", "busiest", "values")]
    for choice in order:
        outcome = outcomes[f"estimate {key_of(choice)}"]
        rows.append(
            (
                key_of(choice),
                time_text(time_of(outcome)),
                time_text(outcome["written"]) if outcome["written"] else "does not fit",
                bytes_text(outcome["hbm_bytes"]),
                outcome["busiest"],
                _verdict(choice, outcomes),
            )
        )
    for choice in result:
        if choice not in order:
            error = outcomes[f"estimate {key_of(choice)}"]["error"]
            rows.append((key_of(choice), "none", "", "", "", _first_line(error)))
    return columns(rows)
