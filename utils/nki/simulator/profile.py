"""`nki.profile`: how long a kernel would take on a NeuronCore, and why. Everything is an estimate.

    profile = nki.profile(kernel)(nki.Shape((4096, 8192), "bfloat16"), ...)
    print(profile)                    time, busiest engine, bytes, critical path
    profile.as_compiled               the same after a model of what the compiler does
    profile.save_trace("kernel.json")  for Perfetto

Arrays give only their shapes: nothing is computed unless `values=True`.
"""

import functools
import json
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from utils.chip import roofline
from utils.chip.hardware import machine
from utils.nki.simulator import capacity
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.instructions.collectives import World
from utils.nki.simulator.launch import run
from utils.nki.simulator.program import Program
from utils.nki.simulator.timing import Schedule, constants, schedule, without_collecting
from utils.nki.simulator.timing.compiled import RULES, compile_program, spilled_bytes
from utils.nki.simulator.timing.measures import Measures, measures, occupancy
from utils.nki.simulator.timing.path import (
    LineTime,
    Step,
    critical_path,
    engine_of,
    events,
    line_times,
    source,
)
from utils.nki.simulator.timing.work import GPSIMD, QUEUES, SYNC

NAMES = {
    "tensor": "Tensor Engine", "vector": "Vector Engine", "scalar": "Scalar Engine",
    "gpsimd": "GpSimd Engine", "dma": "DMA",
}  # fmt: skip
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
WAITING = 0.5
"""An engine that is busy for less of the time bounds nothing: the kernel waits."""
MOST_STEPS = 8
NANO = 1e-9
ENGINES = ("tensor", "vector", "scalar", "gpsimd", "dma")


def time_text(seconds: float) -> str:
    """Seconds in a unit of their size, to three digits.

    >>> time_text(0.0000425), time_text(0)
    ('42.5 us', '0 ns')
    """
    scale, unit = next(((s, u) for s, u in UNITS if seconds >= s), UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def bytes_text(count: float) -> str:
    """Bytes in a unit of their size, to three digits.

    >>> bytes_text(12)
    '12 B'
    """
    scale, unit = next(((s, u) for s, u in BYTES if count >= s), BYTES[-1])
    return f"{count / scale:.3g} {unit}"


class Interval(NamedTuple):
    """What an engine did: seconds from the start of the kernel; `line` is "file:number"."""

    core: int
    engine: str
    start: float
    end: float
    name: str
    line: str


@dataclass(frozen=True, eq=False)
class Profile:
    """An estimate of a kernel's run on one NeuronCore (two for a grid of two).

    seconds: the estimate; low, high: between which the time of a real run is expected. written: the
    program as the author wrote it, if this one is what the compiler made of it by `rules`.
    """

    schedule: Schedule
    written: Program | None = None
    rules: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.table()

    @property
    def program(self) -> Program:
        """The recorded program."""
        return self.schedule.program

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self.program.kernel

    @property
    def target(self) -> str:
        """The name of the target, such as "trn2"."""
        return self.program.target.name

    @property
    def seconds(self) -> float:
        """The estimate."""
        return self.schedule.nanoseconds * NANO

    @functools.cached_property
    def as_written(self) -> "Profile | None":
        """The profile of the instructions as the author wrote them; None if they do not fit."""
        if self.written is None:
            return self
        try:
            capacity.check(self.written)
        except NkiValidationError:
            return None
        plan = self.schedule
        return profile_of(self.written, schedule=plan.kind, rotation=plan.rotation)

    @functools.cached_property
    def as_compiled(self) -> "Profile":
        """The profile after all rules of what the compiler does (`timing.compiled.RULES`)."""
        if self.written is not None:
            return self
        plan = self.schedule
        return profile_of(
            self.program, schedule=plan.kind, rotation=plan.rotation, as_compiled=True
        )

    @property
    def uncertainty(self) -> float:
        """Share of the estimate, either way, that four of five published measurements stay within
        to which nothing was fitted (`uncertainty` in utils/facts/data/nki_timing.yaml).
        """
        return constants.table()["uncertainty"]["value"]

    @property
    def low(self) -> float:
        """The least time that a real run is expected to take, in seconds."""
        return self.seconds / (1 + self.uncertainty)

    @property
    def high(self) -> float:
        """The longest time that a real run is expected to take, in seconds."""
        return self.seconds * (1 + self.uncertainty)

    @functools.cached_property
    def measures(self) -> Measures:
        """Counts, bytes and FLOP."""
        return measures(self.schedule.graph, self.program)

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """Instructions by (engine, name)."""
        return self.measures.counts

    @property
    def hbm_read(self) -> int:
        """Bytes read from HBM."""
        return self.measures.hbm_read

    @property
    def hbm_written(self) -> int:
        """Bytes written to HBM."""
        return self.measures.hbm_written

    @property
    def hbm_ratio(self) -> float:
        """Bytes moved to and from HBM over the ideal: each argument and each result once."""
        return self.measures.hbm / self.measures.ideal if self.measures.ideal else 1.0

    @property
    def flop(self) -> float:
        """Of matrix products, without transposes."""
        return sum(self.measures.flop.values())

    @property
    def intensity(self) -> float:
        """FLOP per byte of HBM."""
        return self.flop / self.measures.hbm if self.measures.hbm else 0.0

    @property
    def mfu(self) -> float:
        """Share of the Tensor Engine's peak for the data types of the products."""
        if not self.seconds:
            return 0.0
        peak = self.measures.peak
        at_peak = sum(flop / peak[dtype] for dtype, flop in self.measures.flop.items())
        return at_peak / self.seconds / self.schedule.graph.cores

    @functools.cached_property
    def busy(self) -> dict[str, float]:
        """Seconds of work for each engine and core; of the DMA engines the mean of all."""
        graph, spent = self.schedule.graph, dict.fromkeys(ENGINES, 0.0)
        issuing: dict[int, float] = {}
        for node, work in enumerate(graph.works):
            held = self.schedule.times.stop[node] - self.schedule.times.start[node]
            if work.transfer is not None:
                spent["dma"] += work.transfer.busy / self.schedule.constants.dma_engines
                issuing[graph.queue[node]] = issuing.get(graph.queue[node], 0.0) + held
            if work.queue <= GPSIMD:
                spent[QUEUES[work.queue]] += held
        for start, stop, _ in self.schedule.times.loads:
            spent["scalar"] += stop - start
        cores = graph.cores
        rings = [t for queue, t in issuing.items() if queue % len(QUEUES) > SYNC]
        spent["dma"] = max(spent["dma"] / cores, *rings, 0.0) * cores
        return {name: time * NANO / cores for name, time in spent.items()}

    @functools.cached_property
    def moving(self) -> float:
        """Share of the time for which DMA engines move bytes, the mean of all engines."""
        graph, total = self.schedule.graph, self.seconds
        spent = sum(work.transfer.busy for work in graph.works if work.transfer is not None)
        lanes = self.schedule.constants.dma_engines * graph.cores
        return spent * NANO / lanes / total if total else 0.0

    @property
    def utilisation(self) -> dict[str, float]:
        """Share of the time for which each engine is busy; for DMA, moving data or beginning to."""
        total = self.seconds
        return {name: time / total if total else 0.0 for name, time in self.busy.items()}

    @property
    def busiest(self) -> str:
        """The engine with most work."""
        return max(self.busy, key=self.busy.__getitem__)

    @property
    def why(self) -> str:
        """Why the kernel takes as long as it does, in a sentence."""
        if not self.program.instructions:
            return "It does nothing."
        name = self.busiest
        share = self.utilisation[name]
        own = ((count, called) for (on, called), count in self.counts.items() if on == name)
        work = "{:,} {}".format(*max(own))
        if share < WAITING:
            return (
                f"No engine is busy half of the time: they wait for each other. The busiest is the "
                f"{NAMES[name]} with {share:.0%} ({work})."
            )
        text = f"The {NAMES[name]} is busy for {share:.0%} of the time, with {work} among others."
        if name != "dma":
            return text
        moved = self.moving
        if moved < share / 2:
            return (
                f"{text} Most of it goes into starting transfers, not into moving bytes: there are "
                "many, and they are small."
            )
        return f"{text} It moves {self.hbm_ratio:.3g} times the bytes of the arguments and results."

    @functools.cached_property
    def occupancy(self) -> dict[str, list[tuple[float, int]]]:
        """How full "sbuf" and "psum" are: (seconds, bytes per partition from then on)."""
        return occupancy(self.schedule)

    @property
    def sbuf_peak(self) -> int:
        """The most bytes per partition that tiles take in SBUF."""
        return max(level for _, level in self.occupancy["sbuf"])

    @property
    def psum_peak(self) -> int:
        """The most bytes per partition that tiles take in PSUM, in whole banks."""
        return max(level for _, level in self.occupancy["psum"])

    def lines(self) -> list[LineTime]:
        """Time by line of source."""
        return line_times(self.schedule, self.critical_path)

    def table(self) -> str:
        """The profile as lines of text."""
        pairs = self._rows()
        width = max(len(name) for name, _ in pairs)
        lines = [f"{self.kernel}: an estimate"]
        lines += [f"  {name:<{width}}  {value}" for name, value in pairs]
        lines.append("  the critical path, where the time goes:")
        for share, what, where, waited in self._steps():
            lines.append(f"    {share:>5}  {what}; waited for {waited}")
            lines.append(f"           {where}")
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        """The profile as two tables."""
        lines = [f"**{self.kernel}** (estimate)", "", "| | |", "| --- | --- |"]
        lines += [f"| {name} | {value} |" for name, value in self._rows()]
        lines += ["", "| of the critical path | what | where | waited for |"]
        lines += ["| ---: | --- | --- | --- |"]
        for share, what, where, waited in self._steps():
            place, _, text = where.partition("  ")
            code = text.replace("|", "\\|")
            lines.append(f"| {share} | {what} | {place} `{code}` | {waited} |")
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, str]]:
        """What is worth knowing, as pairs."""
        low, high = time_text(self.low), time_text(self.high)
        results = [
            ("time", f"{time_text(self.seconds)} (estimate; {low} to {high})"),
            ("on", f"{self.target}, schedule {self.schedule.kind}"),
            ("why", self.why),
            *self._both(),
        ]
        results += [(NAMES[name], f"{share:.1%} busy") for name, share in self.utilisation.items()]
        if self.measures.hbm:
            moved = f"{bytes_text(self.hbm_read)} read, {bytes_text(self.hbm_written)} written"
            results.append(("HBM", f"{moved}: {self.hbm_ratio:.3g} times the ideal"))
        bound = self.bound
        if self.flop:
            results.append(("arithmetic intensity", f"{self.intensity:.4g} FLOP/B"))
            results.append(("MFU", f"{self.mfu:.1%}"))
        if bound is not None:
            least = f"{time_text(bound.seconds)} at least, bound by {bound.bound}"
            results.append(("roofline", least))
        target = self.program.target
        results.append(
            ("SBUF", f"at most {self.sbuf_peak:,} of {target.sbuf_bytes:,} bytes per partition")
        )
        banks = self.psum_peak // target.psum_bank_bytes
        results.append(("PSUM", f"at most {banks} of {target.psum_banks} banks"))
        return results

    def _both(self) -> list[tuple[str, str]]:
        """As compiled: which rules, and the estimate of the kernel as it was written."""
        if self.written is None:
            return []
        before = self.as_written
        spilled = spilled_bytes(self.program)
        return [
            ("as compiled", f"by {', '.join(self.rules)}; {bytes_text(spilled)} spilled"),
            ("as written", time_text(before.seconds) if before else "does not fit into SBUF"),
        ]

    def _steps(self) -> list[tuple[str, str, str, str]]:
        """The parts of the critical path that take longest: seconds, what, where, waited for."""
        total = sum(item.seconds for item in self.critical_path) or 1.0
        merged: dict[tuple[str, str, str, str], list[float]] = {}
        for entry in self.critical_path:
            where = f"{Path(entry.file).name}:{entry.line}"
            key = (f"{entry.name} on {entry.engine}", where, entry.text, entry.waited_for)
            merged.setdefault(key, [0, 0.0])
            merged[key][0] += 1
            merged[key][1] += entry.seconds
        longest = sorted(merged.items(), key=lambda item: -item[1][1])[:MOST_STEPS]
        return [
            (
                f"{spent:.0%}" if (spent := seconds / total) >= 0.01 else "< 1%",
                f"{count} x {what}",
                f"{where}  {text}",
                waited,
            )
            for (what, where, text, waited), (count, seconds) in longest
        ]

    @functools.cached_property
    def critical_path(self) -> tuple[Step, ...]:
        """What the end waited for, back to the beginning, in the order of time."""
        return critical_path(self.schedule)

    @functools.cached_property
    def intervals(self) -> list[Interval]:
        """What each engine did, for drawings; of a DMA the time from its first byte to its last."""
        graph, plan, made = self.schedule.graph, self.schedule, []
        for node, work in enumerate(graph.works):
            file, number, _ = source(graph.instructions[node].line)
            start, end = plan.times.start[node], plan.times.stop[node]
            if work.transfer is not None:
                start, end = plan.times.first[node], plan.times.end[node] - plan.constants.dma_done
            core = graph.queue[node] // len(QUEUES)
            name = graph.instructions[node].name or work.name
            engine = engine_of(plan, node)
            made.append(Interval(core, engine, start * NANO, end * NANO, name, f"{file}:{number}"))
        for start, stop, node in plan.times.loads:
            core = graph.queue[node] // len(QUEUES)
            made.append(Interval(core, "scalar", start * NANO, stop * NANO, "load table", ""))
        return made

    def longest(self, name: str) -> float:
        """Seconds of the longest instruction of this name: of a DMA the data phase of one engine,
        of others from the start until the result is there.
        """
        plan, longest = self.schedule, 0.0
        for node, work in enumerate(plan.graph.works):
            if work.name == name:
                moved = work.transfer
                took = moved.longest if moved else plan.times.end[node] - plan.times.start[node]
                longest = max(longest, took)
        return longest * NANO

    @property
    def bound(self) -> roofline.Estimate | None:
        """The least time of this FLOP and these bytes on the roofline, or None without products."""
        if not self.flop or not self.measures.hbm:
            return None
        core = machine(self.program.target.chip, "core")
        work = roofline.Work(self.kernel, self.flop, self.measures.hbm)
        return roofline.bound(work, core, self._dtype(), "dma")

    def _dtype(self) -> str:
        most = max(self.measures.flop, key=self.measures.flop.__getitem__)
        known = {"float32": "fp32", "tfloat32": "tf32", "float16": "fp16"}
        return known.get(most, "fp8" if most.startswith("float8") else "bf16")

    def trace_json(self) -> str:
        """Events for chrome://tracing and https://ui.perfetto.dev."""
        content = {"traceEvents": events(self.schedule), "displayTimeUnit": "ns"}
        return json.dumps(content)

    def save_trace(self, path: str | Path) -> Path:
        """Writes `trace_json` to a file."""
        Path(path).write_text(self.trace_json(), encoding="utf-8")
        return Path(path)


def profile(
    kernel: Any, *, target: str | None = None, schedule: str = "list", rotation: bool = True,
    warm_up: bool | None = None, values: bool = False, ranks: int = 1,
    as_compiled: bool | Iterable[str] = False,
) -> Callable[..., Profile]:  # fmt: skip
    """Estimate how long a kernel takes: `profile(kernel)(arrays or nki.Shape, ...)`.

    target: "trn1", "trn2" or "trn3"; None: as for simulating. schedule: "list" reorders independent
    instructions as the compiler does, "as written" does not. rotation: whether a tile allocated in
    a loop takes another place each time. warm_up: whether the Tensor Engine begins at half rate;
    None: where the chip does. values: compute results too. ranks: estimate the first of so many
    that meet in `nki.collectives`; arguments are those of one rank. as_compiled: estimate what the
    compiler makes of the kernel, by all its rules or those of these names; it may spill then.
    """
    world = World(ranks, alone=True) if ranks > 1 else None

    rules = _rules(as_compiled)

    def profiled(*args: Any, **kwargs: Any) -> Profile:
        with without_collecting(), capacity.spilling() if "spill" in rules else nullcontext():
            program = run(kernel, args, kwargs, values=values, target=target, world=world)
        options: dict[str, Any] = {"rotation": rotation, "warm_up": warm_up}
        return profile_of(program, schedule=schedule, as_compiled=rules, **options)

    return profiled


def profile_of(
    program: Program, *, schedule: str = "list", rotation: bool = True, warm_up: bool | None = None,
    as_compiled: bool | Iterable[str] = False,
) -> Profile:  # fmt: skip
    """The profile of a program that was recorded before; options as for `profile`."""
    rules = _rules(as_compiled)
    made = compile_program(program, rules)
    plan = _schedule(made, schedule, rotation=rotation, warm_up=warm_up)
    return Profile(plan, program, rules) if rules else Profile(plan)


def _rules(as_compiled: bool | Iterable[str]) -> tuple[str, ...]:
    """The names of the rules that were asked for."""
    if isinstance(as_compiled, bool):
        return tuple(RULES) if as_compiled else ()
    order = list(RULES)
    return tuple(sorted(as_compiled, key=lambda name: order.index(name) if name in RULES else -1))


_schedule = schedule
