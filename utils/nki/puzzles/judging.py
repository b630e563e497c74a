"""The verdict on a kernel: values on several sizes and seeds, cheats by name, stars for time."""

import ast
import random
import re
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from utils.nki.puzzles import mistakes, references, sources
from utils.nki.puzzles.catalog import TARGET, Puzzle, Sizes, size_of
from utils.nki.puzzles.observing import LIMIT_S, Job, Outcome, apart
from utils.nki.simulator.profile import time_text
from utils.nki.tool.close import differences

GOOD, NEAR, AT_BOUND = 2.0, 1.1, 1.25
RULE = (
    f"1 for right values, 2 for an estimate of at most {GOOD:g} times our best, 3 for at most "
    f"{NEAR:g} times our best or {AT_BOUND:g} times the bound"
)
MEANINGS = {
    "stub": "nothing was written yet",
    "no-python": "the file cannot be read as Python",
    "no-kernel": "the file has no function of the puzzle's name",
    "wrong-value": "the result differs from NumPy",
    "rule": "the kernel breaks a rule of the machine, or raises",
    "precomputed": "the result does not come from the arguments",
    "reads-expected": "the file looks for the result or the check",
    "host-computation": "the file computes with NumPy, torch or the like",
    "host-output": "something else than an instruction writes the result",
    "state": "something is kept from one call to the next",
    "one-shape": "only the sizes of the example work",
    "import": "the file imports what a kernel does not need",
}
"""The refusals by code."""
Run = Callable[[Job], list[Outcome]]


class Case(msgspec.Struct, frozen=True):
    """Sizes, and the seed of the numbers."""

    sizes: Sizes
    seed: int
    timed: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a check came to. Times in microseconds, estimates for `target`; stars 0 to 3.

    refusal: a key of `MEANINGS`, None for a kernel that passed. failing: the smallest case that
    failed. cases: how many were run.
    """

    puzzle: int
    name: str
    passed: bool
    refusal: str | None
    message: str
    failing: Case | None = None
    cases: int = 0
    target: str = TARGET
    estimate_us: float | None = None
    bound_us: float
    best_us: float | None
    stars: int = 0


def stars_of(seconds: float, puzzle: Puzzle) -> int:
    """Stars of a kernel with right values, by `RULE`."""
    best = puzzle.best()
    if seconds <= AT_BOUND * puzzle.bound().seconds:
        return 3
    if best is None:
        return 1
    return 3 if seconds <= NEAR * best else 2 if seconds <= GOOD * best else 1


def draw_cases(puzzle: Puzzle, seed: int | None = None) -> list[Case]:
    """The cases of a check: the example with the public seed 0 and twice with one that nobody
    knows, others of hidden sizes, and the timed one. The first numbers come again at the end.
    """
    rng = random.Random(secrets.randbits(64) if seed is None else seed)
    hidden = rng.randrange(1, 2**32)
    cases = [Case(puzzle.shown, 0), Case(puzzle.shown, hidden)]
    others = []
    for _ in range(40):
        sizes = {name: rng.choice(values) for name, values in puzzle.sizes.items()}
        if sizes != puzzle.shown and sizes not in others:
            others.append(sizes)
    others = [{name: max(values) for name, values in puzzle.sizes.items()}, *others]
    cases += [Case(sizes, rng.randrange(2**32)) for sizes in others[:3]]
    cases.append(Case(puzzle.timed, rng.randrange(2**32), True))
    return [*cases, Case(puzzle.shown, 0)]


def check(puzzle: Puzzle, source: str, seed: int | None = None, run: Run = apart) -> Verdict:
    """The verdict on the source of a file. seed: chooses hidden cases, for tests. run: where."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        return _refused(
            puzzle, "no-python", f"line {line} is not valid Python: {getattr(error, 'msg', error)}"
        )
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    if puzzle.id not in functions:
        there = ", ".join(functions) or "none"
        return _refused(
            puzzle, "no-kernel",
            f"the file (in the notebook, the cell with the check) has no function {puzzle.id}; "
            f"its functions: {there}",
        )  # fmt: skip
    if result := sources.first(tree):
        return _refused(puzzle, result.code, f"line {result.line} {result.message}")
    if _is_stub(functions[puzzle.id]):
        return _refused(
            puzzle, "stub",
            f"{puzzle.id} is still the stub: replace its `raise` by a kernel.\n"
            f"Hints: nki puzzle show {puzzle.number} --hint 1; in the notebook, above the cell",
        )  # fmt: skip
    cases = draw_cases(puzzle, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / f"puzzle_{puzzle.id}.py"
        path.write_text(source, encoding="utf-8")
        job = {
            "puzzle": puzzle.id, "path": str(path), "limit_s": LIMIT_S,
            "cases": [msgspec.to_builtins(case) for case in cases],
        }  # fmt: skip
        outcomes = [_in_own_lines(outcome, path) for outcome in run(job)]
    return _judged(puzzle, cases, outcomes)


def _in_own_lines(outcome: Outcome, path: Path) -> Outcome:
    """Places in the copy that was run, as lines of the author's file, which they are too."""
    place = re.compile(re.escape(str(path)) + r":(\d+)")
    return {
        key: place.sub(r"line \1", value) if isinstance(value, str) else value
        for key, value in outcome.items()
    }


def _is_stub(function: ast.FunctionDef) -> bool:
    body = [node for node in function.body if not isinstance(node, ast.Expr)]
    return not body or (isinstance(body[0], ast.Raise) and "NotImplemented" in ast.unparse(body[0]))


def _judged(puzzle: Puzzle, cases: list[Case], outcomes: list[Outcome]) -> Verdict:
    pairs = list(zip(cases, outcomes, strict=False))
    problems = [(case, outcome, _problem(puzzle, case, outcome)) for case, outcome in pairs]
    failing = sorted(
        (item for item in problems if item[2]), key=lambda item: puzzle.bytes_moved(item[0].sizes)
    )
    if failing:
        case, outcome, problem = failing[0]
        code, message = _named(puzzle, problems, case, outcome, problem)
        message = f"{_sizes_text(case)}: {message}"
        return _refused(puzzle, code, message, failing=case, cases=len(pairs))
    by_shape: dict[str, set[str]] = {}
    for case, outcome in pairs:
        by_shape.setdefault(str(case.sizes), set()).add(outcome["program"])
    if any(len(programs) > 1 for programs in by_shape.values()):
        return _refused(
            puzzle, "state",
            "two calls with equal sizes gave different instructions: something is kept between "
            "calls. A compiled kernel does the same each time",
            cases=len(pairs),
        )  # fmt: skip
    seconds = next(outcome["seconds"] for case, outcome in pairs if case.timed)
    stars = stars_of(seconds, puzzle)
    return Verdict(
        puzzle=puzzle.number, name=puzzle.id, passed=True, refusal=None, cases=len(pairs),
        message=_praise(puzzle, seconds, stars), estimate_us=seconds * 1e6, stars=stars,
        bound_us=puzzle.bound().seconds * 1e6,
        best_us=_microseconds(puzzle.best()),
    )  # fmt: skip


def _problem(puzzle: Puzzle, case: Case, outcome: Outcome) -> str:
    """What is wrong with one case, "" for nothing."""
    if "error" in outcome:
        return str(outcome["error"])
    if "host" in outcome:
        return str(outcome["host"])
    if not outcome["written"]:
        return "no instruction writes the result"
    unequal = _unequal(puzzle, case, outcome["results"], _expected(puzzle, case))
    return f"{unequal}. {outcome['doubt']}" if unequal and "doubt" in outcome else unequal


def _expected(puzzle: Puzzle, case: Case, function: Callable | None = None) -> np.ndarray:
    arrays = puzzle.arrays(case.sizes, case.seed)
    return (function or references.REFERENCES[puzzle.id])(*map(references.wide, arrays))


def _unequal(puzzle: Puzzle, case: Case, results: list[np.ndarray], expected: np.ndarray) -> str:
    if len(results) != 1:
        return f"{len(results)} results; one is asked for"
    kind = puzzle.result.dtype
    if results[0].dtype.name != kind:
        return f"the result is {results[0].dtype.name}; {kind} is asked for"
    return differences(results[0], expected, kind, size_of(puzzle.terms, case.sizes))


def _named(
    puzzle: Puzzle, problems: list[tuple[Case, Outcome, str]], case: Case, outcome: Outcome,
    problem: str,
) -> tuple[str, str]:  # fmt: skip
    """The code of a refusal and its sentence, the most telling first."""
    if "error" in outcome and "reads-expected" in problem:
        return "reads-expected", problem
    if re.search("the kernel returns <(sbuf|psum)", problem):
        return "host-output", problem
    if "host" in outcome or ("written" in outcome and not outcome["written"]):
        return "host-output", f"{problem}. Results are written by nisa.dma_copy to nl.shared_hbm"
    shown = [(c, not p) for c, _, p in problems if c.sizes == puzzle.shown]
    public = all(right for c, right in shown if c.seed == 0)
    private = all(right for c, right in shown if c.seed != 0)
    if not outcome.get("fed", True) and "doubt" not in outcome:
        return "precomputed", "no instruction carries an argument into the result"
    if public and not private:
        return "precomputed", "right for the shown numbers, wrong for others of the same sizes"
    first_of_public = next((right for c, right in shown if c.seed == 0), False)
    if first_of_public and not public:
        return "state", "the same arguments gave the right result once, and a wrong one later"
    text = next(filter(None, (_mistake(puzzle, *item) for item in problems if item[2])), "")
    code = "rule" if "error" in outcome else "wrong-value"
    if text:
        return code, f"{text}. ({problem})"
    if public and private and _one_shape(puzzle, problems):
        return "one-shape", (
            "right for the sizes of the example, wrong for others: take sizes from the arguments' "
            f"shapes, and loop over tiles. ({problem})"
        )
    return code, problem


def _mistake(puzzle: Puzzle, case: Case, outcome: Outcome, problem: str) -> str:
    """The sentence of a known mistake that one case shows, or ""."""
    return mistakes.recognise(
        puzzle.id,
        problem,
        outcome.get("results"),
        lambda function: _expected(puzzle, case, function),
        lambda results, expected: _unequal(puzzle, case, results, expected),
    )


def _one_shape(puzzle: Puzzle, problems: list[tuple[Case, Outcome, str]]) -> bool:
    """Whether cases fail exactly where sizes differ from the example's: all, or one of them."""
    for name, (shown, *_) in puzzle.sizes.items():
        if all(bool(p) == (c.sizes[name] != shown) for c, _, p in problems):
            return True
    return all(bool(p) == (c.sizes != puzzle.shown) for c, _, p in problems)


def _sizes_text(case: Case) -> str:
    return ", ".join(f"{name} = {size}" for name, size in case.sizes.items())


def _praise(puzzle: Puzzle, seconds: float, stars: int) -> str:
    best, bound = puzzle.best(), puzzle.bound()
    text = (
        f"right. {time_text(seconds)} on {TARGET} (estimate), {seconds / bound.seconds:.2f} times "
        f"the bound of {time_text(bound.seconds)} by {bound.bound}"
    )
    if best is not None:
        text += f", {seconds / best:.2f} times our best of {time_text(best)}"
    return f"{text}. Stars: {stars} of 3"


def _microseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


def _refused(
    puzzle: Puzzle, code: str, message: str, failing: Case | None = None, cases: int = 0
) -> Verdict:
    return Verdict(
        puzzle=puzzle.number, name=puzzle.id, passed=False, refusal=code, message=message,
        failing=failing, cases=cases, bound_us=puzzle.bound().seconds * 1e6,
        best_us=_microseconds(puzzle.best()),
    )  # fmt: skip
