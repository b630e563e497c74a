"""Who computes: this process, processes of this machine, or the workers of a Dask scheduler.

A pool takes a bucket with its texts and gives a future of an `Answer`. The future fails with `Lost`
if the process that computed was killed, and with anything else only if the run cannot go on.
Results come back to the process that writes, so workers need no storage.
"""

import pickle
import queue
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from os import getpid
from threading import Lock
from typing import Any, Protocol

from utils.course.catalog import ROOT, version_of
from utils.serving.batch import models

TRIES = 3
"""Deaths after which a worker that is being made, or a cluster, is given up."""
_FOREVER_S = 20 * 86400.0
"""For processes that end with their caller; more than a poll may wait would be refused."""


class Lost(RuntimeError):
    """The worker that computed was killed; `cause` is such as "SIGKILL"."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the worker ended with {cause}")
        self.cause = cause


@dataclass(frozen=True)
class Made:
    """What makes the model: its name, items of a batch, and buckets."""

    model: str
    batch: int
    buckets: tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """entries: of each text, as `models.answer` gives them. ahead, later: graphs that the process
    named `who` compiled beforehand, and since.
    """

    entries: tuple[dict[str, Any], ...]
    who: str
    ahead: int
    later: int


class Pool(Protocol):
    """capacity: how many pieces are worth being handed over at a time."""

    @property
    def capacity(self) -> int: ...

    def submit(self, bucket: int, texts: Sequence[str]) -> "Future[Answer]":
        """Compute these texts."""


def _handle(made: Made) -> Callable[[tuple[int, Sequence[str]]], Answer]:
    model = models.load(made.model, made.batch, made.buckets)

    def handle(request: tuple[int, Sequence[str]]) -> Answer:
        entries = models.answer(model, made.batch, *request)
        counts = (getattr(model, "ahead", 0), getattr(model, "later", 0))
        return Answer(tuple(entries), str(getpid()), *counts)

    return handle


class Inline:
    """Computes in this process, while the caller waits."""

    capacity = 1

    def __init__(self, made: Made) -> None:
        self._handle = _handle(made)

    def submit(self, bucket: int, texts: Sequence[str]) -> "Future[Answer]":
        """A future that has ended."""
        future: Future[Answer] = Future()
        future.set_result(self._handle((bucket, texts)))
        return future


class Processes:
    """So many processes, each with the model; one that is killed is replaced. Use in a with-block,
    at whose end they leave. They leave too when this process is killed.
    """

    def __init__(self, made: Made, count: int) -> None:
        from utils.serving.bench.workers import Worker  # late: their server loads torch_xla

        if count < 1:
            raise ValueError(f"{count} workers: give 1 or more, or use Inline")
        # The device is asked for by the model, if it needs one.
        self._start = partial(Worker, lambda device: _handle(made), "cpu", _FOREVER_S)
        self.capacity = 2 * count
        self._threads = ThreadPoolExecutor(count)
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(count):
            self._idle.put(self._start())

    def submit(self, bucket: int, texts: Sequence[str]) -> "Future[Answer]":
        """Compute in the process that is free first."""
        return self._threads.submit(self._computed, bucket, texts)

    def _computed(self, bucket: int, texts: Sequence[str]) -> Answer:
        from utils.serving.bench.workers import Gone

        worker = self._idle.get()
        try:
            for _ in range(TRIES):
                try:
                    worker.wait_ready()
                    break
                except Gone as gone:
                    cause = gone.cause
                    worker = self._start()
            else:
                raise RuntimeError(
                    f"a worker ended with {cause} while it made the model, {TRIES} times running:"
                    " is there memory for so many?"
                )
            try:
                worker.send(0, (bucket, texts))
                return worker.receive()[1]
            except (Gone, ConnectionError) as error:
                worker.close()
                worker = self._start()
                raise Lost(getattr(error, "cause", "a broken pipe")) from None
        finally:
            self._idle.put(worker)

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *error: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().close()


# What Dask's workers run. A model is made once in each, and used by one thread at a time.

_one = Lock()


@cache
def _version() -> str:
    return version_of(ROOT)


@cache
def _known(made: Made) -> Callable[[tuple[int, Sequence[str]]], Answer]:
    return _handle(made)


def remote(version: str, packed: bytes) -> bytes:
    """An Answer to (Made, bucket, texts), both pickled. Raises RuntimeError if the course here is
    another version.
    """
    if version != _version():
        raise RuntimeError("a worker has another version of the course: bring all to the same")
    made, bucket, texts = pickle.loads(packed)
    with _one:
        return pickle.dumps(_known(made)((bucket, texts)))


def _sent() -> Callable[[str, bytes], bytes]:
    # Dask sends a function of this kind along; one with a name in a module the scheduler too would
    # import, and it needs no course.
    def work(version: str, packed: bytes) -> bytes:
        from utils.serving.batch import pools

        return pools.remote(version, packed)

    return work


@dataclass(frozen=True)
class Cluster:
    """The workers of a Dask scheduler."""

    client: Any
    made: Made
    version: str

    @property
    def capacity(self) -> int:
        """Two pieces for each thread of a worker."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return 2 * max(1, sum(worker["nthreads"] for worker in workers))

    def submit(self, bucket: int, texts: Sequence[str]) -> "Future[Answer]":
        """Compute on any worker. Dask itself gives out again what a lost worker had."""
        outer: Future[Answer] = Future()
        outer.set_running_or_notify_cancel()
        self._send(pickle.dumps((self.made, bucket, texts)), outer, 1)
        return outer

    def _send(self, packed: bytes, outer: "Future[Answer]", number: int) -> None:
        key = f"batch-{time.time_ns():x}-{id(outer):x}"
        inner = self.client.submit(_sent(), self.version, packed, key=key, pure=False)
        inner.add_done_callback(partial(self._ended, packed, outer, number))

    def _ended(self, packed: bytes, outer: "Future[Answer]", number: int, inner: Any) -> None:
        from distributed import KilledWorker

        answer, error = fetch(inner)
        if error is None:
            outer.set_result(answer)
            return
        if isinstance(error, KilledWorker):
            outer.set_exception(Lost("KilledWorker of Dask, which gave it to several"))
        elif inner.status == "error":
            outer.set_exception(error)
        elif self.client.status == "running" and number < TRIES:
            self._send(packed, outer, number + 1)
        else:
            outer.set_exception(RuntimeError(f"the scheduler is gone ({error})"))


def fetch(inner: Any) -> tuple[Any, Any]:
    """What a task on Dask returned, unpickled, and None; or None and what went wrong: an exception
    or a status.
    """
    if inner.status != "finished":
        return None, inner.exception() if inner.status == "error" else inner.status
    try:
        return pickle.loads(inner.result()), None
    except Exception as failure:  # its worker went before the result was fetched
        return None, failure


@contextmanager
def client_of(address: str, name: str, answer_s: float = 10) -> Iterator[Any]:
    """A client of the scheduler at `address`.

    Raises ValueError if Dask is missing here, or no scheduler answers within `answer_s` seconds.
    """
    try:
        from distributed import Client  # late: a second, and the group `grade` installs it
    except ImportError:
        raise ValueError(
            "--scheduler needs Dask: `python3 course.py setup --everything` installs it"
        ) from None
    try:
        client = Client(address, timeout=answer_s, set_as_default=False, name=name)
    except (OSError, ValueError, TypeError) as error:  # TimeoutError is an OSError
        raise ValueError(
            f"no Dask scheduler answers at {address} ({error or type(error).__name__}):"
            " start one with `dask scheduler`, and give the address that it prints"
        ) from None
    with client:
        yield client


@contextmanager
def connect(made: Made, address: str) -> Iterator[Cluster]:
    """The cluster of a scheduler; its workers need the course, and one thread each.

    Raises ValueError if Dask is missing here, or no scheduler answers at `address`.
    """
    with client_of(address, "course-batch") as client:
        yield Cluster(client, made, _version())
