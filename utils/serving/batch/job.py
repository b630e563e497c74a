"""A batch run: shards of one bucket each, written whole, so that a run goes on after any death.

    manifest.json            the table, the settings, and the seconds of all starts
    results/00001.jsonl      {"id", "result"} of each item of a shard
    aside/00001.jsonl        {"id", "row", "reason"} of its items that have no result
    aside/read.jsonl         rows of the table that are no items
    notes.jsonl              ids seen twice, an end that may be torn

Which item is in which shard follows from the table and the settings alone. Only the process that
calls `run` writes, first what is set aside, then the results: where a shard has these, it is done.
So each id has one result, or one reason, whatever was killed. `run` reads all of it again at its
end and compares ids.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from utils.facts import figure
from utils.serving.batch import places, table
from utils.serving.batch.places import Place
from utils.serving.batch.pools import TRIES, Answer, Lost, Made, Pool
from utils.serving.batch.table import Entry, Item
from utils.xla.buckets import bucket_of

Say = Callable[[str], None]
MANIFEST, READ, NOTES = "manifest.json", "aside/read.jsonl", "notes.jsonl"


@dataclass(frozen=True)
class Job:
    """What is to be done.

    items, out: a table and a folder, as paths or addresses. made: the model. shard: items of a
    file. instance: whose price counts, "" for none; price: how it is bought; machines: how many.
    again: whether items that failed when they were computed are computed again. began: of the
    clock that money counts by: make a job before its pool, and a new one for each start.

    Raises ValueError for numbers below 1 or buckets that are not ascending.
    """

    items: str
    out: str
    made: Made
    shard: int = 256
    id_column: str = "id"
    text_column: str = "text"
    instance: str = ""
    price: str = "on_demand"
    machines: int = 1
    again: bool = False
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if min(self.shard, self.made.batch, self.machines, *self.made.buckets) < 1:
            raise ValueError(f"shard, batch, machines and buckets are 1 or more, found {self}")
        if list(self.made.buckets) != sorted(set(self.made.buckets)):
            raise ValueError(f"buckets ascend, found {self.made.buckets}")

    @property
    def usd_per_hour(self) -> float | None:
        """Of all machines, from the facts. Raises utils.facts.Unknown where there is no price."""
        if not self.instance:
            return None
        return figure(f"{self.instance}.price.{self.price}").to("USD/h") * self.machines


@dataclass(frozen=True)
class Shard:
    """Items of one bucket, in the table's order."""

    name: str
    bucket: int
    items: tuple[Item, ...]


@dataclass
class Report:
    """What a run did. items, results, aside: of the whole table, and rows set aside of all kinds.
    computed: items of this start. ahead, later: graphs compiled before the first item by each
    process, and afterwards. seconds, usd: of all starts; usd is None without a price.
    """

    items: int = 0
    results: int = 0
    aside: int = 0
    notes: int = 0
    shards: int = 0
    starts: int = 1
    computed: int = 0
    processes: int = 0
    ahead: int = 0
    later: int = 0
    seconds: float = 0.0
    usd: float | None = None

    def __str__(self) -> str:
        text = f"{self.results} results of {self.items} items in {self.shards} shards"
        text += f", {self.aside} rows set aside, {self.notes} notes"
        text += f"\nstart {self.starts}: {self.computed} items computed"
        if self.ahead or self.later:
            text += f"; graphs compiled: {self.ahead} ahead, {self.later} later"
            text += f" (processes: {self.processes})"
        return text + ("" if self.usd is None else f"; {self.usd:.4f} USD in all starts")


def run(job: Job, pool: Pool, say: Say = lambda line: None) -> Report:
    """Compute what is not done yet. Returns when every item has a result or is set aside.

    Raises: ValueError for a table that cannot be read, a folder of another table or other settings,
    or one that another run writes to; whatever ends the pool. What was written until then stays.
    """
    out = places.place(job.out)
    with places.alone(out):
        return _Run(job, pool, out, say).whole()


@dataclass(frozen=True)
class _Piece:
    """A part of a shard that is being computed. deaths: how many workers it has outlived."""

    shard: Shard
    items: tuple[Item, ...]
    deaths: int = 0


@dataclass
class _Run:
    job: Job
    pool: Pool
    out: Place
    say: Say
    report: Report = field(default_factory=Report)
    graphs: dict[str, Answer] = field(default_factory=dict)
    entries: dict[str, dict[str, Entry]] = field(default_factory=dict)

    def whole(self) -> Report:
        job, report = self.job, self.report
        self.began, usd_per_hour = time.monotonic(), job.usd_per_hour
        result = table.read(job.items, job.id_column, job.text_column)
        longest = job.made.buckets[-1]
        read = [*result.aside]
        for item in result.items:
            if len(item.text) > longest:
                reason = f"{len(item.text)} characters, and the largest bucket has {longest}"
                read.append({"row": item.row, "id": item.id, "reason": reason})
        self.shards = shards(job, (item for item in result.items if len(item.text) <= longest))
        report.items, report.shards = len(result.items), len(self.shards)
        report.notes = len(result.notes)
        self._begin(result.sha256)
        for name, entries in ((READ, read), (NOTES, result.notes)):
            self._write(name, entries)
        due = self._due()
        self.total = sum(len(shard.items) for shard in self.shards)
        self.done = self.total - sum(len(shard.items) for shard in due)
        if due and self.done:
            self.say(f"start {report.starts}: {self.done} of {self.total} items are done already")
        self._compute(due)
        if missing := self._due(again=False):
            raise RuntimeError(f"shard {missing[0].name} is not what was written: run once more")
        rejected = sum(len(self._lines(f"aside/{s.name}", self.aside)) for s in self.shards)
        report.results, report.aside = self.total - rejected, len(read) + rejected
        report.processes = len(self.graphs)
        report.ahead = sum(answer.ahead for answer in self.graphs.values())
        report.later = sum(answer.later for answer in self.graphs.values())
        report.seconds, report.usd = self._spent(usd_per_hour)
        self._keep()
        return report

    def _begin(self, sha256: str) -> None:
        job, made = self.job, self.job.made
        same = {
            "table": sha256, "model": made.model, "buckets": list(made.buckets),
            "batch": made.batch, "shard": job.shard, "columns": [job.id_column, job.text_column],
        }  # fmt: skip
        self.manifest: dict[str, Any] = {"same": same, "starts": 0, "seconds": 0.0}
        try:
            self.manifest = json.loads(self.out.read(MANIFEST))
        except FileNotFoundError:
            pass
        for name, value in same.items():
            if (before := self.manifest["same"][name]) != value:
                raise ValueError(
                    f"{job.out} holds a run with {name} {before}, not {value}: name a new folder"
                )
        self.report.starts = self.manifest["starts"] = self.manifest["starts"] + 1
        self.before_s = self.manifest["seconds"]
        self._keep()

    def _keep(self) -> None:
        self.manifest["seconds"] = round(self._spent(None)[0], 3)
        self.out.write(MANIFEST, json.dumps(self.manifest, indent=1) + "\n")

    def _spent(self, usd_per_hour: float | None) -> tuple[float, float | None]:
        seconds = self.before_s + time.monotonic() - self.job.began
        return seconds, usd_per_hour and seconds / 3600 * usd_per_hour

    def _write(self, name: str, entries: Iterable[Entry]) -> None:
        self.out.write(name, "".join(json.dumps(entry) + "\n" for entry in entries))

    def _lines(self, name: str, present: set[str]) -> list[Entry]:
        if name.rpartition("/")[2] not in present:
            return []
        return [json.loads(line) for line in self.out.read(name).splitlines()]

    def _due(self, again: bool | None = None) -> list[Shard]:
        """Shards whose files do not name each of their items once."""
        again = self.job.again if again is None else again
        results, self.aside = self.out.names("results"), self.out.names("aside")
        due = []
        for shard in self.shards:
            try:
                rejected = self._lines(f"aside/{shard.name}", self.aside)
                lines = self._lines(f"results/{shard.name}", results) + rejected
                ids = sorted(entry["id"] for entry in lines)
            except (ValueError, KeyError, TypeError):  # changed by somebody else
                self.say(f"shard {shard.name} cannot be read: it is computed again")
                ids, rejected = [], []
            good = ids == sorted(item.id for item in shard.items) and shard.name in results
            if not good or (again and rejected):
                due.append(shard)
        return due

    def _compute(self, due: list[Shard]) -> None:
        waiting = deque(_Piece(shard, shard.items) for shard in due)
        suspects: deque[_Piece] = deque()  # single items that a worker died with; one at a time
        running: dict[Future[Answer], _Piece] = {}
        while waiting or suspects or running:
            while waiting and len(running) < self.pool.capacity:
                self._submit(waiting.popleft(), running)
            if not running:
                self._submit(suspects.popleft(), running)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                piece = running.pop(future)
                try:
                    self._take(piece, future.result())
                except Lost as lost:
                    for part in self._parts(piece, lost):
                        (suspects if len(part.items) == 1 else waiting).append(part)

    def _submit(self, piece: _Piece, running: dict[Future[Answer], _Piece]) -> None:
        texts = [item.text for item in piece.items]
        running[self.pool.submit(piece.shard.bucket, texts)] = piece

    def _parts(self, piece: _Piece, lost: Lost) -> list[_Piece]:
        """Halves of what a worker died with, so that the item that ends it is found."""
        count, deaths = len(piece.items), piece.deaths + 1
        self.say(f"{lost}: {count} items of shard {piece.shard.name} are computed again")
        if count > 1:
            halves = piece.items[: count // 2], piece.items[count // 2 :]
            return [_Piece(piece.shard, half) for half in halves]
        if deaths < TRIES:
            return [_Piece(piece.shard, piece.items, deaths)]
        reason = f"its worker ended {TRIES} times, the last time with {lost.cause}"
        self._take(piece, Answer(({"reason": reason},), "", 0, 0))
        return []

    def _take(self, piece: _Piece, answer: Answer) -> None:
        if answer.who:
            self.graphs[answer.who] = answer
        shard, known = piece.shard, self.entries.setdefault(piece.shard.name, {})
        known |= {item.id: entry for item, entry in zip(piece.items, answer.entries, strict=True)}
        if len(known) < len(shard.items):
            return
        results, rejected = [], []
        for item in shard.items:
            entry = known[item.id]
            if "result" in entry:
                results.append({"id": item.id, **entry})
            else:
                rejected.append({"id": item.id, "row": item.row, **entry})
        if rejected or shard.name in self.aside:
            self._write(f"aside/{shard.name}", rejected)
        self._write(f"results/{shard.name}", results)
        del self.entries[shard.name]
        self.report.computed += len(shard.items)
        self.report.aside += len(rejected)
        self._keep()
        self.say(self._progress())

    def _progress(self) -> str:
        report, done = self.report, self.done + self.report.computed
        rate = report.computed / max(time.monotonic() - self.began, 1e-9)
        text = f"{done}/{self.total} items · {rate:.3g}/s · {(self.total - done) / rate:.0f} s left"
        usd = self._spent(self.job.usd_per_hour)[1]
        if usd is not None:
            text += f" · {usd:.4f} USD so far at the price of {self.job.instance}"
        return text + (f" · {report.aside} set aside" if report.aside else "")


def shards(job: Job, items: Iterable[Item]) -> list[Shard]:
    """The items by bucket, in the table's order, `job.shard` to a shard."""
    filled: dict[int, list[Item]] = {bucket: [] for bucket in job.made.buckets}
    for item in items:
        filled[bucket_of(len(item.text), job.made.buckets)].append(item)
    cuts = [
        (bucket, tuple(result[begin : begin + job.shard]))
        for bucket, result in filled.items()
        for begin in range(0, len(result), job.shard)
    ]
    return [Shard(f"{n:05}.jsonl", bucket, cut) for n, (bucket, cut) in enumerate(cuts, 1)]
