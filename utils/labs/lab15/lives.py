"""The capstone as it runs in a process of its own: the glue with the learner's earlier answers,
each watched as it is called. One life may be killed; what it had saved is told by a file.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from utils.course import earlier
from utils.labs import Answer, Facts
from utils.labs.journal import Journal
from utils.labs.lab06.device import LazyDevice, call_ticks
from utils.labs.lab15 import looks
from utils.labs.plain import describe, number, numbers
from utils.labs.watch import compiles, launches

FAKE = {
    "pending_ticks": 700,
    "record_ticks": 30,
    "compile_ticks": [9000, 4000, 0, 0, 0, 0, 0],
    "work_ticks": [1000, 1100, 900, 1300, 1000, 1200, 1500],
}
"""A device of lab 06 on which a benchmark is exact: one call, two to warm up, four to measure."""


NAMES = earlier.functions("lab15")

STORM = 8
"""More compiles than this while it is trained end a life: each batch brings new graphs."""


class Stopped(RuntimeError):
    """An earlier answer raised: which, and what."""


class Enough(BaseException):
    """Ends a life of which all is seen. Not an Exception, so that no answer catches it."""


class Watch:
    """The learner's functions, each noting what it was called with and what came of it.

    kill_at: the step before which this process kills itself. journal: where saves are noted. short:
    whether the life is over when it comes to its evaluation.
    """

    def __init__(
        self, mine: Facts, task: Any, journal: Journal, kill_at: int | None, short: bool
    ) -> None:
        self._mine, self._task, self._journal = mine, task, journal
        self._kill_at, self._short, self._before = kill_at, short, 0
        self._begun: Any = None
        self._drawn: list[list[list[int]]] = []
        self.run: Any = None
        self.facts: Facts = {"calls": [], "truths": [], "evaluations": [], "trained_by": None}

    def parts(self) -> SimpleNamespace:
        """What the glue gets as `mine`: each earlier answer, watched."""
        return SimpleNamespace(
            add_lora=self._add_lora,
            resume=self._resume,
            save=self._save,
            bucketed_losses=self._bucketed_losses,
            merge=self._merge,
            bench=self._bench,
        )

    def compiled(self) -> int:
        """Graphs that the answer compiled since it called `resume`."""
        return compiles() - self._before

    def _call(self, name: str, *given: Any, **named: Any) -> Any:
        # As numbers: a report at grading shows no words that come out of a sandbox.
        self.facts["calls"].append(NAMES.index(name))
        try:
            return self._mine[name](*given, **named)
        except Exception as error:
            response = {
                "part": NAMES.index(name),
                "kind": type(error).__name__[:40],
                "message": str(error)[:200],
            }
            self.facts["raised"] = response
            raise Stopped from error

    def _end_as_unlike(self, what: str) -> NoReturn:
        """End the life: this is not the task's model with its adapters, and no twin can follow."""
        self.facts["unlike"] = what
        raise Enough

    def _add_lora(self, model: Any, names: Any, *given: Any, **named: Any) -> Any:
        task = self._task
        asked = dict(zip(("rank", "alpha"), given, strict=False)) | named
        if set(names) != set(task.names) or asked != {"rank": task.rank, "alpha": task.alpha}:
            self._end_as_unlike("asked")
        return self._call("add_lora", model, set(names), *given, **named)

    def _resume(self, path: Any, run: Any) -> Any:
        self.run = run
        self.facts["begun"] = looks.state(run)
        if self._short:
            try:
                self._begun = self._twin(run.model)
            except RuntimeError:
                self._end_as_unlike("model")
        # Adapters that are made on the device compile when this look reads them.
        self._before = compiles()
        result = self._call("resume", path, run)
        self.facts["resumed"] = looks.state(run)
        return result

    def _save(self, path: Any, run: Any) -> Any:
        state = looks.state(run)
        result = self._call("save", path, run)
        self._journal.note(state)
        return result

    def _merge(self, model: Any) -> Any:
        if self._short:
            raise Enough
        return self._call("merge", model)

    def _bucketed_losses(self, model: Any, sentences: Any) -> Any:
        if self.run is not None and "end" not in self.facts:
            self.facts["end"] = looks.state(self.run)
            self.facts["trained_by"] = self.compiled()
        if self._short:
            if self._begun is not None:
                end = looks.adapters(self.run.model)
                self.facts["astray"] = looks.astray(self._begun, self._task, self._drawn, end)
            self.facts["calls"].append(NAMES.index("bucketed_losses"))
            raise Enough
        twin = self._twin(model)
        truth = [looks.loss(twin, [ids]) for ids in sentences]
        response = self._call("bucketed_losses", model, sentences)
        own = self.run is not None and model is self.run.model
        seen = {"response": numbers(response)["items"], "truth": truth, "own": own}
        self.facts["evaluations"].append(seen)
        return response

    def _bench(self, step: Answer, settle: Answer, *given: Any, **named: Any) -> Any:
        log: list[str] = []
        before = launches()
        response = self._call("bench", _noting(step, log, "f"), _noting(settle, log, "s"),
                          *given, **named)  # fmt: skip
        ran = launches() - before
        device = LazyDevice(FAKE)
        exact = self._call("bench", device.step, device.settle, device.clock, 2, 4)
        self.facts["calls"].pop()
        self.facts["bench"] = {
            "log": "".join(log[:400]),
            "ran": ran,
            "response": _times(response),
            "exact": _times(exact),
            "right": _right_times(),
        }
        return response

    def watch_batches(self, batches: type[Any]) -> None:
        """Look at every batch that is drawn, and at the loss that it should give."""
        draw = batches.next

        def watched(item: Any) -> Any:
            if (
                self._kill_at is not None
                and self.run is not None
                and self.run.step >= self._kill_at
            ):
                os.kill(os.getpid(), signal.SIGKILL)
            if compiles() > STORM:  # each more takes the compiler longer than all the rest
                self.facts["storm"] = len(self.facts["truths"])
                raise Enough
            drawn = draw(item)
            if self.run is not None and self._kill_at is None:
                # Of the life without a kill their count is enough: its losses are never told.
                loss = 0.0 if self._short else looks.loss(self._twin(self.run.model), drawn)
                self.facts["truths"].append(loss)
                self._drawn.append(drawn)
            return drawn

        batches.next = watched

    def _twin(self, model: Any) -> Any:
        """The model as it is now, on the CPU; random states stay as they are."""
        import random

        import numpy as np
        import torch

        state = {name: item.detach().cpu() for name, item in model.state_dict().items()}
        twin, task = self._task.model(), self._task
        calls = self.facts["calls"]
        if NAMES.index("add_lora") in calls and NAMES.index("merge") not in calls:
            # What it draws would make a life that is looked at another than one that is not.
            before = random.getstate(), np.random.get_state()
            with torch.random.fork_rng(devices=[]):
                self._mine["add_lora"](twin, set(task.names), task.rank, task.alpha)
            random.setstate(before[0])
            np.random.set_state(before[1])
        twin.load_state_dict(state)
        return twin


def _noting(function: Answer, log: list[str], letter: str) -> Callable[[], Any]:
    def note() -> Any:
        log.append(letter)
        return function()

    return note


def _times(response: Any) -> list[float | str]:
    given = response if isinstance(response, dict) else {}
    return [number(given.get(name)) for name in ("first_s", "median_s")]


def _right_times() -> list[float]:
    ticks = sorted(call_ticks(FAKE, call) for call in range(3, 7))
    second = 2.0**-20
    return [call_ticks(FAKE, 0) * second, (ticks[1] + ticks[2]) / 2 * second]


def live(
    answer: Answer,
    mine: Facts,
    case: Facts,
    path: Path,
    journal: Path,
    key: bytes,
    kill_at: int | None,
    short: bool,
) -> Facts:
    """One life: from the glue's first line to its end, to its evaluation, or until it is killed."""
    import random

    import numpy as np
    import torch
    import torch_xla
    import torch_xla.core.xla_model as xm

    from utils.labs.lab15.tuning import Batches, Task

    torch.set_num_threads(1)
    os.chdir(path.parent)
    torch_xla.device()
    random.seed(case["seed"])
    np.random.seed(case["seed"])
    torch.manual_seed(case["seed"])
    xm.set_rng_state(case["seed"])
    fields: Facts = {
        name: tuple(value) if isinstance(value, list) else value for name, value in case.items()
    }
    task = Task(**fields)
    watch = Watch(mine, task, Journal(journal, key), kill_at, short)
    watch.watch_batches(Batches)
    response: Any = None
    try:
        response = answer(watch.parts(), task, path)
    except (Stopped, Enough):
        pass
    except Exception:
        # Learners may catch and raise again what an earlier answer raised.
        if "raised" not in watch.facts:
            raise
    made = watch.compiled()
    given = response if isinstance(response, dict) else {}
    returned = {name: numbers(given.get(name))["items"] for name in ("losses", "before", "after")}
    seen = {**watch.facts, "compiles": made, "kind": describe(response), "returned": returned}
    return {**seen, "effect": looks.effect(mine)} if short and "add_lora" in mine else seen
