"""Two traces of one step, and what in them asks for two graphs.

A difference that follows from another one is left out: when a batch is longer, every operator after
it has other shapes, and only the batch is to blame.
"""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from utils.xla.doctor import advice
from utils.xla.doctor.baked import is_baked
from utils.xla.doctor.batch import is_last_batch
from utils.xla.doctor.trace import (
    CREATE,
    IGNORED,
    RESHAPES,
    VIEWS,
    WRITES,
    Call,
    Spec,
    Trace,
    Where,
    data_dependent,
    elements,
    uploaded,
)


@dataclass(frozen=True)
class Finding:
    """One reason for another graph; `where` is None where no line of the user's is known."""

    kind: str
    what: str
    where: Where | None
    advice: str


def differences(
    old: Trace, new: Trace, *, from_first: bool, history: Sequence[Trace] = ()
) -> tuple[list[Finding], int]:
    """Why `new` has other graphs than `old`, empty if no reason is seen; and how many operators
    only one of them has.

    from_first: `old` is the first run of the step ever, in which state may have come into being.
    history: all earlier runs.
    """
    comparison = _Comparison(old, new, from_first, history or [old])
    return comparison.findings, comparison.distance


class _Comparison:
    def __init__(self, old: Trace, new: Trace, from_first: bool, history: Sequence[Trace]) -> None:
        self.from_first = from_first
        self.old, self.new, self.history = old, new, history
        self.diverged = False  # other operators have run, so other tensors are no surprise
        self.distance = 0  # the operators that only one has
        self.read: dict[str, Where | None] = {
            repr(call.value): call.where
            for call in (*new.read, *new.calls)
            if call.value is not None
        }
        self.blamed: set[tuple[Any, ...]] = set()
        self.findings: list[Finding] = []
        self.shapes: set[tuple[Any, Any]] = set()
        self.dtypes: set[tuple[Any, Any]] = set()
        self.sizes: set[tuple[int, int]] = set()
        before = [call for call in old.calls if call.name not in IGNORED]
        after = [call for call in new.calls if call.name not in IGNORED]
        self._inputs(old, new, after)
        pairs: list[tuple[Call, Call]] = []
        hunks: list[tuple[list[Call], list[Call]]] = []
        stretches = list(_align(before, after))
        shared = any(alike and _strong(now) for _, now, alike in stretches)
        for was, now, alike in stretches:
            if alike:
                pairs += zip(was, now, strict=True)
                for earlier, later in zip(was, now, strict=True):
                    self._pair(earlier, later)
            else:
                # A dry run has no inputs, and cuts a program where a step ends: what stands around
                # the steps comes before the first operators of one.
                if from_first and not (pairs or new.inputs) and _strong(was + now):
                    self._before_the_step(was, now, shared)
                    continue
                hunks.append((was, now))
                self.diverged |= bool(_strong(was + now))
                self.distance += len(_strong(was + now))
        self._hunks(hunks, {call.where for _, call in pairs})
        if not self.findings:
            self._equal_numbers(pairs)
        if not self.findings:
            self._kept(old, new, pairs, hunks)

    def _add(self, kind: str, what: str, where: Where | None, tip: str) -> None:
        finding = Finding(kind, what, where, tip)
        if finding not in self.findings:
            self.findings.append(finding)

    def _has(self, kind: str) -> bool:
        return any(finding.kind == kind for finding in self.findings)

    def _inputs(self, old: Trace, new: Trace, calls: list[Call]) -> None:
        earlier = dict(old.inputs)
        for name, leaf in new.inputs:
            was = earlier.get(name)
            if isinstance(leaf, Spec) and isinstance(was, Spec):
                self._spec(was, leaf, f"input {name}", _first_use(calls, leaf))

    def _spec(self, was: Spec, now: Spec, whose: str, where: Where | None) -> None:
        """Blame a tensor whose shape or dtype has changed, unless that is known already."""
        if was.shape != now.shape and (was.shape, now.shape) not in self.shapes:
            what = f"{whose}: {was.shape} became {now.shape}"
            last = is_last_batch(was, now, self.history, self.new)
            tip = advice.shape(was.shape[0] if was.shape else 1, last)
            self._add("shape", what, where, tip)
        if was.dtype != now.dtype and (was.dtype, now.dtype) not in self.dtypes:
            what = f"{whose}: {_short(was.dtype)} became {_short(now.dtype)}"
            self._add("dtype", what, where, advice.DTYPE)
        self._know(was, now)

    def _know(self, was: Spec, now: Spec) -> None:
        if was.shape != now.shape:
            self.shapes.add((was.shape, now.shape))
            if len(was.shape) == len(now.shape):
                self.sizes |= {p for p in zip(was.shape, now.shape, strict=True) if p[0] != p[1]}
            self.sizes.add((elements(was), elements(now)))
        if was.dtype != now.dtype:
            self.dtypes.add((was.dtype, now.dtype))

    def _pair(self, was: Call, now: Call) -> None:
        if len(was.leaves) != len(now.leaves):
            return
        same, result = True, False
        for place, (old, new) in enumerate(zip(was.leaves, now.leaves, strict=True)):
            if isinstance(old, Spec) and isinstance(new, Spec):
                whose = f"a tensor in {now.name}"
                if (old.shape, old.dtype) != (new.shape, new.dtype):
                    same = False
                    if self.diverged:
                        self._know(old, new)
                    else:
                        self._spec(old, new, whose, now.where)
                elif _different(old.value, new.value) and not result:
                    result = self._number(now, place, old, old.value, new.value)
            elif type(old) is not type(new) or _different(old, new):
                same = False
                if not result and not self._follows(was, now, old, new):
                    result = self._number(now, place, old, old, new)
        changed = [p for p in zip(was.results, now.results, strict=False) if p[0] != p[1]]
        written = now.name in WRITES and data_dependent(now)
        if written or (same and changed and not now.reads):
            self._data_dependent(now, changed)
        for old, new in changed:
            self._know(old, new)

    def _data_dependent(self, call: Call, changed: list[tuple[Spec, Spec]]) -> None:
        if changed:
            what = f"the values decide how much {call.name} returns"
            what += f": {changed[0][0].shape} became {changed[0][1].shape}"
        else:
            what = f"the values decide how many elements {call.name} writes"
        self._add("data-dependent", what, call.where, advice.data_dependent(call.name))

    def _number(self, call: Call, place: int, old_leaf: Any, was: Any, now: Any) -> bool:
        """Blame an argument if it is baked; of one line and one change only once."""
        if call.reads or not is_baked(call, place, old_leaf):
            return False
        if call.backward and (self._has("shape") or self._has("data-dependent")):
            return True  # it follows from what forward has done
        change = (call.where, repr(was), repr(now))
        if change in self.blamed:
            return True
        self.blamed.add(change)
        if isinstance(was, Spec) != isinstance(now, Spec):
            self._number_or_tensor(call, place, was, now)
            return True
        what = f"{advice.argument(call, place)}: {was!r} became {now!r}{advice.inside(call)}"
        if not isinstance(now, bool) and repr(now) in self.read and now not in (0, 1, -1):
            what += f", a value read from the device ({self.read[repr(now)]})"
            self._add("data-dependent", what, call.where, advice.data_dependent(call.name))
        else:
            self._add("constant", what, call.where, advice.constant(call, place, was, now))
        return True

    def _number_or_tensor(self, call: Call, place: int, was: Any, now: Any) -> None:
        """Such as a sum that starts as a number of Python and goes on as a tensor."""
        old, new = ("a tensor" if isinstance(end, Spec) else repr(end) for end in (was, now))
        what = f"{advice.argument(call, place)}: {old} became {new}"
        if call.name.rstrip("_") != "add":
            self._add("constant", what, call.where, advice.NUMBER_OR_TENSOR)
        elif isinstance(now, Spec):
            self._add(
                "first step", f"{what}, as in a sum that starts at {was}", call.where, advice.SUM
            )
        else:
            self._add("constant", f"{what}, as in a sum that starts again", call.where, advice.SUM)

    def _follows(self, was: Call, now: Call, old: Any, new: Any) -> bool:
        """Whether a number has changed only because a shape has."""
        if not isinstance(old, int) or not isinstance(new, int) or not self.sizes:
            return False
        reshaped = now.name in RESHAPES and was.tensors != now.tensors
        near = any(abs(old - a) <= 2 and old - a == new - b for a, b in self.sizes)
        ratio = any(a and b and old * b == new * a for a, b in self.sizes if old and new)
        return reshaped or near or ratio

    def _hunks(self, hunks: list[tuple[list[Call], list[Call]]], seen: set[Where | None]) -> None:
        # What backward does follows from what forward has done.
        for was, now in sorted(hunks, key=lambda h: all(call.backward for call in h[0] + h[1])):
            strong = _strong([*now, *was])
            if not strong:
                continue
            first = next((call for call in strong if call.where), strong[0])
            before, after = ({call.name for call in _strong(calls)} for calls in (was, now))
            made = before and before <= CREATE and not after & CREATE
            state = any(call.optimizer for call in strong) or made
            growing = all(call.backward or call.optimizer for call in strong)
            backward = all(call.backward for call in strong)
            known = self._has("branch") or self._has("dtype")
            resized = self._resized() and {call.where for call in strong} <= seen
            # Backward sums over what forward has repeated, so a shape may decide what it does; but
            # only a gradient that is there is added to.
            adds = {call.name.rstrip("_") for call in strong} == {"add"}
            if backward and (known or (resized and not adds)):
                continue
            elif self.from_first and (state or growing):
                self._first_step(next((c for c in strong if c.optimizer), first))
            elif {call.name for call in strong} == {"to"} and not (was and now):
                to = _short(first.results[0].dtype)
                what = f"a conversion to {to} {'added' if now else 'missing'}"
                self._add("dtype", what, first.where, advice.DTYPE)
            elif resized:
                continue  # a loop over a size, or one operator more for a longer batch
            elif growing and not self._has("branch"):
                self._gradients(was, now, first)
            else:
                self._branch(was, now, first)

    def _resized(self) -> bool:
        return any(self._has(kind) for kind in ("shape", "constant", "data-dependent"))

    def _first_step(self, call: Call) -> None:
        made = f"the first step made state here ({call.name})"
        if call.optimizer or call.backward:
            made = "the first step made its state, such as momentum or gradients"
        if not any(finding.what.startswith("the first step made") for finding in self.findings):
            self._add("first step", f"{made}; now it is an input", call.where, advice.FIRST_STEP)

    def _before_the_step(self, was: list[Call], now: list[Call], shared: bool) -> None:
        was, now = _strong(was), _strong(now)
        self.distance += len(was + now)
        first = next((call for call in now + was if call.where), (now + was)[0])
        before, after = advice.names(was), advice.names(now)
        if {call.name for call in was} <= CREATE and not now:
            return self._first_step(first)
        if not shared:
            what = f"a step that shares nothing with the first: {before} became {after}"
            return self._add("branch", what, first.where, advice.OTHER_STEP)
        what = f"before the first step stood {before}, and before this one {after}"
        if not now:
            what = f"only the first step has what stands before it: {before}"
        if not was:
            what = f"what follows a step comes before this one for the first time: {after}"
        self._add("first step", what, first.where, advice.BEFORE_A_STEP)

    def _gradients(self, was: list[Call], now: list[Call], first: Call) -> None:
        """Only backward or the optimizer has done something else."""
        before, after = (
            Counter(line for call in trace.calls for line in call.switched)
            for trace in (self.old, self.new)
        )
        where = next(iter(after - before), None)
        what = advice.changed_operators(was, now) + advice.inside(first)
        what += "; requires_grad has changed" if where else ""
        self._add("branch", what, where or first.where, advice.GRADIENTS)

    def _branch(self, was: list[Call], now: list[Call], first: Call) -> None:
        if not any(
            finding.kind == "branch" and finding.where == first.where for finding in self.findings
        ):
            what = advice.changed_operators(was, now) + advice.inside(first)
            self._add("branch", what, first.where, advice.branch(was + now))

    def _equal_numbers(self, pairs: list[tuple[Call, Call]]) -> None:
        """Equal numbers share one input of the graph, so becoming equal is another graph."""
        old, new = (
            (list(_numbers(calls)) for calls in zip(*pairs, strict=True)) if pairs else ([],) * 2
        )
        if len(old) != len(new):
            return
        first_old: dict[Any, int] = {}
        first_new: dict[Any, int] = {}
        for place, ((was, _), (now, call)) in enumerate(zip(old, new, strict=True)):
            a, b = first_old.setdefault(was, place), first_new.setdefault(now, place)
            if a != b:
                other = new[min(a, b)][1]
                verb = "became equal to" if b < a else "is no longer equal to"
                at = f" ({other.where})" if other.where else ""
                what = f"a number of {call.name} {verb} one of {other.name}{at}"
                what += f": {(now if b < a else was)[0]:.6g}, and equal numbers share one input"
                self._add("constant", what, call.where, advice.EQUAL)
                return

    def _kept(
        self,
        old: Trace,
        new: Trace,
        pairs: list[tuple[Call, Call]],
        hunks: list[tuple[list[Call], list[Call]]],
    ) -> None:
        """Where the operators are the same, what is alive at the step marker may not be."""
        switched = [now for was, now in pairs if was.gradients != now.gradients]
        if len(old.markers) != len(new.markers):
            what = f"step markers in the step: {len(old.markers)} became {len(new.markers)}"
            where = next(iter(set(new.markers) ^ set(old.markers)), None)
            self._add("kept", what, where, advice.MARKERS)
        elif old.kept != new.kept:
            alive = [" + ".join(str(len(item)) for item in trace.kept) for trace in (old, new)]
            what = f"results alive at the step marker: {alive[0]} became {alive[1]}"
            before, after = (Counter(sum(trace.kept, ())) for trace in (old, new))
            label, where = next(iter((after - before) or (before - after)), ("", None))
            if label:
                what += f", {'with' if after - before else 'without'} {label}"
            if switched:
                on = "on" if switched[0].gradients else "off"
                what += f"; gradients are {on}, and autograd keeps results for backward"
            self._add("kept", what, switched[0].where if switched else where, advice.KEPT)
        elif hunks:
            was, now = hunks[0]
            self._branch(was, now, (now or was)[0])


def _align(old: list[Call], new: list[Call]) -> Iterator[tuple[list[Call], list[Call], bool]]:
    """Stretches of calls, in order; alike are calls of the same operators, on the same lines where
    there are several ways.
    """
    a, b = ([(_alike(call), call.where, call.library) for call in calls] for calls in (old, new))
    differ = (place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    start = next(differ, min(len(a), len(b)))
    yield old[:start], new[:start], True
    matcher = SequenceMatcher(None, a[start:], b[start:], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        was, now = old[start + i : start + j], new[start + k : start + m]
        # By itself, another line is no other graph.
        yield was, now, tag == "equal" or [*map(_alike, was)] == [*map(_alike, now)]


def _alike(call: Call) -> str:
    """The operator; `a += b` and `a + b` are one."""
    return call.operator.replace("_.", ".")


def _strong(calls: list[Call]) -> list[Call]:
    """Those that may be another graph by themselves."""
    return [call for call in calls if call.name not in VIEWS and not uploaded(call)]


def _numbers(calls: tuple[Call, ...]) -> Iterator[tuple[tuple[float, Any], Call]]:
    for call in calls:
        for leaf, scalar in zip(call.leaves, call.scalars, strict=True):
            if scalar and isinstance(leaf, int | float) and call.results:
                yield (_float32(leaf), call.results[0].dtype), call


def _float32(number: float) -> float:
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return float(number)


def _different(old: Any, new: Any) -> bool:
    return repr(old) != repr(new)


def _first_use(calls: list[Call], leaf: Spec) -> Where | None:
    return next((call.where for call in calls if leaf in call.tensors), None)


def _short(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
