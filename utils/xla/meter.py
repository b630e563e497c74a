"""The meter: a with-block that counts what PyTorch/XLA did inside it.

Counts, not seconds, are what a lesson or a check may rely on: on a quiet or a busy machine they are
the same. They come from the counters of torch_xla itself (`torch_xla.debug.metrics`), read as
differences, so nothing is reset.
"""

from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True)
class Reading:
    """What happened between the start and the end of a `Meter` block.

    compiles: graphs that the compiler had to translate because no earlier graph was equal.
    executions: graphs handed to the device to run; one that torch_xla then refuses, as a read
        under full_graph=True, is counted too.
    step_markers: step markers passed (`torch_xla.sync`, `xm.mark_step`, loader boundaries).
    reads: transfers from device to host, such as the one in `.item()`.
    writes: transfers from host to device. Uncertain while a loader uploads in its own threads.
    fallbacks: operators that ran on the host because XLA has no lowering, with their number, such
        as (("aten::nonzero", 1),).
    graph_nodes: the number of nodes in the IR graph of each execution, in order, as far as they
        were recorded in the block: at most the last 1,024, and none for torch.compile.
    compile_seconds: time spent in the compiler, in seconds. Varies from run to run: show it, never
        assert it.
    """

    compiles: int
    executions: int
    step_markers: int
    reads: int
    writes: int
    fallbacks: tuple[tuple[str, int], ...]
    graph_nodes: tuple[int, ...]
    compile_seconds: float

    def __str__(self) -> str:
        """
        >>> print(Reading(1, 5, 5, 0, 0, (), (6,) * 5, 0.02))
        1 compile, 5 executions, 5 step markers, 0 reads, 0 writes
        """
        counts = ("compiles", "executions", "step_markers", "reads", "writes")
        text = ", ".join(_count(getattr(self, name), name.replace("_", " ")) for name in counts)
        if self.fallbacks:
            text += ", on the host: " + ", ".join(f"{op} x{n}" for op, n in self.fallbacks)
        return text


def _count(number: int, plural: str) -> str:
    return f"{number} {plural.removesuffix('s') if number == 1 else plural}"


_SENTINEL = "CourseMeter"
"""A counter of our own: when it is gone, somebody has cleared the counters of torch_xla."""


class Meter:
    """Counts what runs inside a with-block.

    On entry everything still pending is run and waited for, so that work of earlier cells is not
    booked to the block. On exit the device is waited for, but nothing is synced: what the block
    left pending stays pending and is not counted. After the block, `reading` holds a frozen
    `Reading`, and its fields can be read from the meter itself.

    >>> import torch, torch_xla
    >>> x = torch.ones(3, 5).to(torch_xla.device())
    >>> with Meter() as m:
    ...     y = x * 3
    ...     total = y.sum()
    >>> m.executions
    0
    >>> with Meter() as m:
    ...     print((x * 3).sum().item())
    45.0
    >>> m.executions, m.reads
    (1, 1)

    Blocks must not be nested: the inner one would run what is pending in the outer one. What
    other threads of the process do during the block is counted as well.
    """

    _open = False
    _reading: Reading | None = None

    def __enter__(self) -> "Meter":
        import torch_xla

        if Meter._open:
            raise RuntimeError(
                "a Meter block is open already: end it before you start the next, because a meter"
                " runs what is pending when it starts"
            )
        self._reading = None
        settle()
        torch_xla._XLAC._xla_increment_counter(_SENTINEL, 1)
        self._before = _Snapshot()
        Meter._open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        Meter._open = False
        _wait()
        self._reading = _Snapshot().since(self._before)

    def so_far(self) -> Reading:
        """What has happened since the block started, read at once: nothing is waited for."""
        return _Snapshot().since(self._before)

    @property
    def reading(self) -> Reading:
        """The counts of the block. Raises RuntimeError before its end."""
        if self._reading is None:
            raise RuntimeError(
                "nothing is counted: read the meter after its with-block has ended; a block that"
                " was interrupted while it waited for the device has no counts"
            )
        return self._reading

    def __getattr__(self, name: str) -> object:
        if name in Reading.__dataclass_fields__:
            return getattr(self.reading, name)
        raise AttributeError(
            f"a Meter has no {name!r}; it has reading, {', '.join(Reading.__dataclass_fields__)}"
        )

    def __repr__(self) -> str:
        return str(self._reading) if self._reading else "Meter (nothing counted)"


def settle() -> None:
    """Run everything that is pending and wait until the device has finished it.

    `torch_xla.sync(wait=True)` alone returns early on XLA's CPU backend; `xm.wait_device_ops` does
    wait.
    """
    import torch_xla

    torch_xla.sync()
    _wait()


def _wait() -> None:
    import torch_xla.core.xla_model as xm

    xm.wait_device_ops()


class _Snapshot:
    """The counters of torch_xla at one moment."""

    def __init__(self) -> None:
        import torch_xla.debug.metrics as metrics

        self.counters = {name: metrics.counter_value(name) for name in metrics.counter_names()}
        self.metrics = {name: metrics.metric_data(name) for name in metrics.metric_names()}

    def samples(self, metric: str) -> int:
        return (self.metrics.get(metric) or (0,))[0]

    def since(self, before: "_Snapshot") -> Reading:
        def counted(name: str) -> int:
            return self.counters.get(name, 0) - before.counters.get(name, 0)

        def sampled(name: str) -> int:
            return self.samples(name) - before.samples(name)

        if counted(_SENTINEL) < 0 or any(sampled(name) < 0 for name in before.metrics):
            raise RuntimeError(
                "the counters of torch_xla were cleared inside the Meter block, so nothing can be"
                " counted. metrics.clear_all() does that, and so does each new graph of"
                " torch.compile(backend='openxla'): call it before the block"
            )
        fallbacks = (
            (name, counted(name))
            for name in sorted(self.counters)
            # .item() is listed as a fallback although it is only a read, and is counted as that.
            if name.startswith("aten::") and name != "aten::_local_scalar_dense"
        )
        # torch_xla keeps the latest samples of a metric only.
        recent: list[tuple[float, float]] = (self.metrics.get("TensorsGraphSize") or (0, 0, []))[2]
        first = max(0, len(recent) - sampled("TensorsGraphSize"))
        seconds = [
            (snapshot.metrics.get("CompileTime") or (0, 0))[1] / 1e9 for snapshot in (before, self)
        ]
        return Reading(
            compiles=counted("UncachedCompile"),
            # Each run looks its graph up among the compiled ones, at once; the counter of
            # executions proper is posted late, by a background thread.
            # torch.compile(backend="openxla") looks up once, without running, and then runs through
            # a path of its own.
            executions=counted("UncachedCompile")
            + counted("CachedCompile")
            - counted("DynamoExtractCompiledGraph")
            + sampled("RunCachedGraphInputData"),
            step_markers=counted("MarkStep"),
            reads=sampled("InboundData"),
            writes=sampled("OutboundData"),
            fallbacks=tuple((name, count) for name, count in fallbacks if count),
            graph_nodes=tuple(int(nodes) for _, nodes in recent[first:]),
            compile_seconds=seconds[1] - seconds[0],
        )
