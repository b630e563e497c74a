"""`nki compare OLD NEW`: two kernels with the same arguments, or two records, side by side."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from utils.facts.tables import columns
from utils.nki.simulator.launch import simulate
from utils.nki.simulator.profile import bytes_text, time_text
from utils.nki.tool.asked import Asked, made_arrays, shape_text
from utils.nki.tool.close import differences
from utils.nki.tool.failures import FINE, FOUND, Refused, author_errors, time_limit
from utils.nki.tool.figures import Figures, figures_of, read_figures
from utils.nki.tool.profiling import add_call, call_of, profile


def add(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("old", help="FILE::KERNEL, or a record of nki profile --record")
    parser.add_argument("new", help="the same")
    add_call(parser)
    parser.add_argument("--terms", type=int, help="numbers that an element sums")


def results_of(
    asked: Asked, arrays: list[np.ndarray], limit_s: float, constants: dict[str, Any] | None = None
) -> list[np.ndarray]:
    """What a call returns, as a list of arrays. Raises Refused, KernelFailed."""
    with time_limit(limit_s):
        kernel, arguments = asked.kernel(constants)
        with author_errors():
            made = simulate(kernel)(*arrays, **arguments)
    return to_arrays(made)


def to_arrays(made: Any) -> list[np.ndarray]:
    """Arrays of a result, which may be one or a tuple of them."""
    return [np.asarray(item) for item in (made if isinstance(made, (tuple, list)) else (made,))]


def unequal(actual: list[np.ndarray], expected: list[np.ndarray], terms: int | None = None) -> str:
    """What is wrong with the results of a call; "" if nothing is."""
    if len(actual) != len(expected):
        return f"{len(actual)} results, expected {len(expected)}"
    for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
        problem = differences(one, other, _coarser(one, other), terms)
        if problem:
            return f"result {index}: {problem}" if len(actual) > 1 else problem
    return ""


def _coarser(one: np.ndarray, other: np.ndarray) -> Any:
    """The type of a result; a reference in float64 is compared as what the kernel returns."""
    return one.dtype if one.dtype.itemsize <= other.dtype.itemsize else other.dtype


def table(old: Figures, new: Figures) -> list[str]:
    """Two records side by side, as lines."""
    rows: list[tuple[str, ...]] = [("", "old", "new", "new / old")]
    rows.append(("kernel", old.kernel, new.kernel, ""))
    rows.append(("target", old.target, new.target, ""))

    def row(name: str, one: float, two: float, show: Any) -> None:
        rows.append((name, show(one), show(two), f"{two / one:.3f}" if one else ""))

    if old.as_written_s is None or new.as_written_s is None:
        fits = [f"{'does not fit' if it.as_written_s is None else 'fits'}" for it in (old, new)]
        rows.append(("as written", fits[0], fits[1], ""))
    else:
        row("time as written", old.as_written_s, new.as_written_s, time_text)
    row("time as compiled", old.as_compiled_s, new.as_compiled_s, time_text)
    row("read from HBM", old.hbm_read_bytes, new.hbm_read_bytes, bytes_text)
    row("written to HBM", old.hbm_written_bytes, new.hbm_written_bytes, bytes_text)
    row("SBUF, of a partition", old.sbuf_peak_bytes, new.sbuf_peak_bytes, bytes_text)
    row("PSUM, of a partition", old.psum_peak_bytes, new.psum_peak_bytes, bytes_text)
    rows.append(("busiest engine", old.busiest, new.busiest, ""))
    for engine in dict.fromkeys((*old.busy, *new.busy)):
        one, two = old.busy.get(engine, 0.0), new.busy.get(engine, 0.0)
        rows.append((f"{engine} busy", f"{one:.1%}", f"{two:.1%}", ""))
    for name in sorted({*old.instructions, *new.instructions}):
        one, two = old.instructions.get(name, 0), new.instructions.get(name, 0)
        if one != two:
            row(name, one, two, "{:,}".format)
    return columns(rows)


def main(given: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    sides = (given.old, given.new)
    if all("::" not in text for text in sides):
        old, new = (read_figures(Path(text)) for text in sides)
        if (old.shapes, old.target) != (new.shapes, new.target):
            print("note: the two records are of different shapes or chips")
        print("\n".join([*table(old, new), "values: not compared, a record holds none"]))
        return FINE
    if not all("::" in text for text in sides):
        raise Refused("compare two kernels (FILE::KERNEL) or two records, not one of each")
    calls = [call_of(given, text) for text in sides]
    shapes = [shape_text(shape) for shape in given.shape]
    records = [
        figures_of(profile(call, given.target, given.limit), shapes, call.arguments)
        for call in calls
    ]
    print("\n".join(table(*records)))
    expected, actual = (results_of(call, made_arrays(given.shape), given.limit) for call in calls)
    problem = unequal(actual, expected, given.terms)
    print(f"values: {'different: ' + problem if problem else 'equal, up to what the types allow'}")
    return FOUND if problem else FINE
