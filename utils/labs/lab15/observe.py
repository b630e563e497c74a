"""How the answers of lab 15 are run, and what is seen of them, as plain values. Judges nothing."""

import secrets
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from utils.course.earlier import Earlier
from utils.labs import Answer, Facts, Observer, apart, invoke, journal, training
from utils.labs.guard import Originals
from utils.labs.lab02.observe import Places, save_as_on_cuda, source_of
from utils.labs.lab02.problems import other_weights
from utils.labs.lab15 import lives, recording
from utils.labs.plain import describe, text
from utils.labs.watch import Steps, counts, numbers_of, unused
from utils.xla import devices, fresh

SECONDS = 25.0
"""For one life of the capstone, which takes one or two."""


def observe_port(answer: Answer, case: Facts) -> Facts:
    """The same training on the CPU, on XLA and on a device that records, there in both precisions.

    XLA comes first: a process whose first `backward` was on the CPU has no other on XLA.
    """
    from utils.xla.meter import Meter

    devices.get("xla").torch  # noqa: B018  the device has to be there first
    spare = next(unused)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = str(Path(folder, "weights.pt"))

        def problem() -> tuple[Any, list[Any]]:
            trained, batches = training.draw(case, spare)
            save_as_on_cuda(trained.state_dict(), checkpoint)
            return training.draw(other_weights(case), spare)[0], batches

        model, batches = problem()
        with Meter() as meter:
            places = Places(model, Steps())
            given = (model, batches, case["lr"], checkpoint)
            xla = numbers_of(answer, *given, devices.get("xla"), False)
        seen = {**xla, **counts(meter.reading), "on_device": places.on.get("xla", 0)}
        model, batches = problem()
        cpu = numbers_of(answer, model, batches, case["lr"], checkpoint, devices.get("cpu"), False)
        result: Facts = {"xla": seen, "cpu": cpu, "named": _name(answer), "fake": {}}
        for name, log_name, mixed in (("own", "log", False), ("mixed", "mixed_log", True)):
            model, batches = problem()
            log: list[str] = []
            device = recording.RecordingDevice(log)
            with recording.watch(model, log):
                response = numbers_of(answer, model, batches, case["lr"], checkpoint, device, mixed)
            result["fake"][log_name] = "".join(log[:2000])
            result[name] = response["items"] if mixed else response
    return result


def _name(answer: Answer) -> list[list[Any]] | None:
    """The backends that the answer's cell names; None if its source is not known."""
    try:
        source = source_of(answer)
        return recording.names_of_backends(source) if source else None
    except (SyntaxError, ValueError):
        return None


def observe_marks(answer: Answer, case: Facts) -> Facts:
    """Pairs of verdict and statement, one per snippet; None if it is no list."""
    response = answer(list(case["names"]))
    pairs = None
    if isinstance(response, list | tuple):
        given = [
            item if isinstance(item, list | tuple) else (item, None) for item in response[:100]
        ]
        pairs = [[text(item) for item in (*pair, None, None)[:2]] for pair in given]
    return {"kind": describe(response), "response": pairs}


def observe_launches(answer: Answer, case: Facts) -> Facts:
    """The mistakes that were named in each plan, sorted; None where it is no collection."""
    calls = [(plan, case["facts"]) for plan in case["plans"]]
    response = invoke.responses("lab15.ex3", answer, calls, ("utils.launch",))
    kinds = (set, frozenset, list, tuple)
    results = [
        sorted({text(name) for name in islice(item, 40)}) if isinstance(item, kinds) else None
        for item in response
    ]
    odd: Any = next(
        (item for item, names in zip(response, results, strict=True) if names is None), set()
    )
    return {"kind": describe(odd), "response": results}


def observe_capstone(answer: Answer, case: Facts) -> Facts:
    """One life without a kill, one that is killed, and one that goes on after it."""
    mine = getattr(answer, "__globals__", {}).get("mine")
    if not isinstance(mine, Earlier):
        raise NameError("`mine` is not there: run the cell with earlier.answers() first")
    # Their cells are run here: what they replace is put back, as what the answer's own cells do.
    originals = Originals()
    mine = mine.again()
    originals.put_back()
    parts = dict(mine.functions)
    problems = [
        # Where it was looked for is said by `mine` itself, and differs at grading.
        [problem.wanted.id, problem.kind, problem.detail if problem.kind != "missing" else ""]
        for problem in mine.problems
    ]
    with tempfile.TemporaryDirectory() as scratch:
        key = secrets.token_bytes(16)

        def life(name: str, kill_at: int | None = None, short: bool = False) -> Any:
            folder = Path(scratch, name)
            folder.mkdir(exist_ok=True)
            asked = (parts, case, folder / "run.ckpt", folder / "saved", key, kill_at, short)
            run = fresh.run if kill_at is None else journal.dying
            options: Facts = {"seconds": SECONDS, "environment": fresh.FAST}
            return apart.run_apart(run, lives.live, answer, *asked, **options)

        def saves(name: str) -> list[Facts]:
            return journal.lines_of(Path(scratch, name, "saved"), key)

        def kill() -> tuple[Facts, Any]:
            ended = life("killed", kill_at=case["steps"] - 2)
            seen = {"ended": ended if isinstance(ended, str) else "it came to its end"}
            return {**seen, "saved": saves("killed")}, life("killed")

        if problems:
            life("whole", short=True)  # an answer that is not attempted says so first
            return {"problems": problems, "whole": {}, "resumed": {}}
        with ThreadPoolExecutor(2) as pool:  # the two have nothing of each other
            first, second = pool.submit(life, "whole", short=True), pool.submit(kill)
            whole = first.result()
            if "raised" in whole or "unlike" in whole:
                return {"problems": [], "whole": whole, "resumed": {}}
            whole["saved"] = saves("whole")
            end, resumed = second.result()
        return {"problems": [], "whole": whole, "killed": end, "resumed": resumed}


OBSERVERS = {
    "ex1": Observer("train", observe_port),
    "ex2": Observer("mark", observe_marks),
    "ex3": Observer("find", observe_launches),
    "ex4": Observer("fine_tune", observe_capstone, apart=True),
}
