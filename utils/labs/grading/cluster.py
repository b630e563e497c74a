"""Grade on several machines: the same tasks as on this one, run by the workers of a Dask scheduler.

What travels are submissions and hidden cases; seeds, records and the gradebook stay here. A worker
gets tasks only after it has shown that it has this version of the course and can make a sandbox;
each of its threads is one place for a task. Dask gives the tasks of a worker that is lost to
another one, and here each submission counts once, whatever happened to it before.

Results come as pickles, so workers are as trusted as this machine; submissions run in their
sandboxes only. Nothing is encrypted unless the address begins with tls:// (see CLUSTER.md).
"""

import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from distributed import Client, WorkerPlugin, get_worker

from utils.course.catalog import ROOT, version_of
from utils.labs.grading import lab, sandbox
from utils.labs.grading.lab import Lab
from utils.labs.grading.sandbox import SandboxError
from utils.labs.grading.task import Place, Result, Task, not_run, run
from utils.serving.batch.pools import client_of, fetch

PLUGIN = "course-sandboxes"
PLACES = "course-sandbox"
"""The resource of a worker that is fit to grade: one of each of its threads."""
ANSWER_S = 10
"""For a scheduler to answer at its address."""
WAIT_S = 60
"""For the first worker, and between two words about missing ones."""
TRIES = 4
"""How often a submission is given out whose worker is lost. Dask itself does so three times before
it takes the task to be what ends them."""

Say = Callable[[str], None]


# Dask imports what has a name at the top of a module, and sends other functions and classes along
# as they are. What the next three return runs where the course may be missing.


def plugin_for(version: str) -> WorkerPlugin:
    """What lets a worker take tasks, now or when it joins, if it is fit; `reason` says if not."""

    class Sandboxes(WorkerPlugin):
        reason = ""

        async def setup(self, worker: Any) -> None:
            import asyncio

            def unfit() -> str:
                try:
                    from utils.labs.grading import cluster
                except ImportError as error:
                    return f"the course cannot be imported there ({error})"
                return cluster.unfit(version)

            self.reason = await asyncio.to_thread(unfit)
            if not self.reason:
                await worker.set_resources(**{"course-sandbox": worker.state.nthreads})

    return Sandboxes()


def _reason() -> Callable[..., str]:
    return lambda dask_worker: str(dask_worker.plugins["course-sandboxes"].reason)


def _pack() -> Callable[[bytes], bytes]:
    def work(task: bytes) -> bytes:
        import pickle

        from utils.labs.grading.cluster import grade_task

        return pickle.dumps(grade_task(pickle.loads(task)))

    return work


def unfit(version: str) -> str:
    """Why this process cannot grade for somebody with that version; "" if it can."""
    if version != version_of(ROOT):
        return "it has another version of the course: bring both to the same"
    try:
        sandbox.prepare()
    except SandboxError as error:
        return str(error)
    return ""


@cache
def _place(name: str) -> tuple[Place, sandbox.Slots]:
    threads = get_worker().state.nthreads
    return Place(lab.load(ROOT, name), ROOT, sandbox.prepare()), sandbox.Slots(threads)


def grade_task(task: Task) -> Result:
    """What a worker does."""
    place, slots = _place(task.lab)
    with slots.take() as slot:
        return run(task, place, slot)


@dataclass
class Cluster:
    """The workers of a scheduler, as a pool of tasks. `say` hears of what goes wrong."""

    client: Client
    chosen: Lab
    say: Say
    started: str = field(default_factory=lambda: f"{time.time_ns():x}")

    @property
    def capacity(self) -> int:
        """How many tasks are worth being handed over: two for each place there is now."""
        return 2 * max(1, self.places())

    def places(self) -> int:
        """How many tasks the workers can run at a time."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return int(sum(worker["resources"].get(PLACES, 0) for worker in workers))

    def look(self) -> None:
        """Say which workers are refused and why. Raises SandboxError if no worker is fit."""
        address = self.client.scheduler.address
        if not self.client.scheduler_info(n_workers=-1)["workers"]:
            self.say(f"{address} has no workers yet; waiting {WAIT_S} s for the first one")
            try:
                self.client.wait_for_workers(1, timeout=WAIT_S)
            except OSError:  # TimeoutError is one
                raise SandboxError(
                    f"{address} has no workers: start some with `dask worker {address}`"
                ) from None
        reasons = self.client.run(_reason(), on_error="return")
        for worker, reason in reasons.items():
            if reason:
                self.say(f"worker {worker} is not used: {reason}")
        deadline = time.monotonic() + 10
        while not self.places():
            if time.monotonic() > deadline:
                raise SandboxError(f"no worker of {address} can grade; see why above")
            time.sleep(0.1)
        self.say(f"{self.places()} sandboxes at a time, on the workers of {address}")

    def submit(self, task: Task) -> "Future[Result]":
        """Run a task on any fit worker. The future fails only if grading cannot go on."""
        outer: Future[Result] = Future()
        outer.set_running_or_notify_cancel()
        self._send(task, outer, 1)
        return outer

    def _send(self, task: Task, outer: "Future[Result]", number: int) -> None:
        key = f"grade-{self.started}-{task.submission.slug}-{number}"
        packed = pickle.dumps(task)
        inner = self.client.submit(_pack(), packed, key=key, resources={PLACES: 1}, pure=False)
        inner.add_done_callback(partial(self._ended, task, outer, number))

    def _ended(self, task: Task, outer: "Future[Result]", number: int, inner: Any) -> None:
        if outer.done():
            return
        result, error = fetch(inner)
        if error is None:
            outer.set_result(result)
            return
        if self.client.status != "running":
            outer.set_exception(SandboxError(f"the scheduler is gone ({error})"))
        elif number < TRIES:
            self._send(task, outer, number + 1)
        else:
            reason = f"its workers failed {number} times ({error}); grade again to try it once more"
            outer.set_result(not_run(task, self.chosen, reason))


@contextmanager
def connect(address: str, chosen: Lab, root: Path, say: Say) -> Iterator[Cluster]:
    """The cluster of a scheduler. Says which workers are refused and why.

    Raises ValueError if no scheduler answers at `address`, SandboxError if no worker is fit.
    """
    with client_of(address, "course-grade", ANSWER_S) as client:
        cluster = Cluster(client, chosen, say)
        client.register_plugin(plugin_for(version_of(root)), name=PLUGIN)
        cluster.look()
        yield cluster
