"""Answers that resemble each other more than independent ones do, as evidence for the instructor.

Each statement of an answer becomes the words of its syntax tree: what it calls and reads of others
by name, its own names as "own", its literals by their type. Five words in a row are a fingerprint;
an answer is the set of its fingerprints. So other names, comments, literals and another order of
statements change nothing, and an expression computed in two steps changes little. Fingerprints and
what is left out of them follow winnowing (Schleimer, Wilkerson and Aiken, "Winnowing: Local
Algorithms for Document Fingerprinting", 2003), without its thinning, which only long texts need.

Left out is what the task gives (the released stub), and between students what more than one in
twenty of the class has, at least ten: many find the most natural way. Answers with fewer than
`LEAST` fingerprints left are not judged. Two are shown as similar if, of all fingerprints that
either has, at least `SHARE` are in both.

Both numbers were chosen on half of the exercises and measured on the others, see `MEASURED`.

Libraries were weighed: copydetect 0.5 compares all pairs, which for a class of 10,000 takes days,
and its fingerprints run over the borders of statements, so that another order hides a copy.
"""

import ast
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from utils.labs.grading.lab import Lab, parse_python

Prints = np.ndarray[Any, np.dtype[np.uint32]]
"""Fingerprints, sorted."""

WORDS = 5
"""In a fingerprint."""
LEAST = 20
SHARE = 0.55
COMMON_SHARE, COMMON_LEAST = 0.05, 10
"""A fingerprint that more students have than this share of the class, and than this number, says
nothing about who took it from whom.
"""
MEASURED = {"independent": (2, 302), "copies": (347, 4)}
"""On the exercises that the two numbers were not chosen on: how many pairs of independent answers
are shown as similar, of how many; and how many disguised copies are, and are not. The tests make
the pairs and hold these counts.
"""
MOST_CHARS = 50_000
MOST_SHOWN = 40
"""Pairs on the page; the table has all of them."""
MOST_PAIRS = 100_000
_ROWS_AT_A_TIME = 512


@dataclass(frozen=True)
class Pair:
    """Two forms of an answer that resemble each other, and who handed them in.

    ones, others: indices of students; together at least two. With all in one form, `ones` is the
    first of them. share: of their fingerprints. shared: how many fingerprints they have in common.
    """

    exercise: str
    ones: tuple[int, ...]
    others: tuple[int, ...]
    share: float
    shared: int


# Fingerprints


def fingerprints(source: str) -> dict[int, set[int]]:
    """Of an answer's source: each fingerprint and the numbers of the lines that it stands on.

    Empty for what is not Python or too long.

    >>> one = fingerprints("def f(x):\\n    total = x.sum()  # all\\n    return total / len(x)")
    >>> two = fingerprints("def f(y):\\n    s = y.sum()\\n    return s / len(y)")
    >>> one == two, fingerprints("def f(")
    (True, {})
    """
    if len(source) > MOST_CHARS:
        return {}
    try:
        tree = parse_python(source)
        own = set(_own_names(tree))
        results: dict[int, set[int]] = defaultdict(set)
        for statement in ast.walk(tree):
            if isinstance(statement, ast.stmt) and not _says_nothing(statement):
                words = [*_words(statement, own), "end"]
                blocks = getattr(statement, "body", None)
                first, last = statement.lineno, statement.end_lineno or statement.lineno
                last = max(first, blocks[0].lineno - 1) if blocks else last
                for k in range(max(1, len(words) - WORDS + 1)):
                    text = "\0".join(words[k : k + WORDS])
                    number = zlib.crc32(text.encode("utf-8", "surrogateescape"))
                    results[number].update(range(first, last + 1))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return dict(results)


def _own_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether it is an import or a docstring."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Import | ast.ImportFrom)


_ELSEWHERE = ("body", "orelse", "finalbody", "handlers", "cases", "annotation", "returns")
"""Parts of a statement that are statements of their own, or only tell types."""


def _words(node: ast.AST, own: set[str]) -> Iterator[str]:
    """A statement without its blocks, as words."""
    if isinstance(node, ast.Load | ast.Store | ast.Del):
        return
    if isinstance(node, ast.Name):
        yield "own" if node.id in own else node.id
    elif isinstance(node, ast.Attribute):
        yield f".{node.attr}"
    elif isinstance(node, ast.Constant):
        number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        yield "number" if number else type(node.value).__name__
    elif isinstance(node, ast.keyword):
        yield f"{node.arg or '**'}="
    else:
        yield type(node).__name__
    outer = isinstance(node, ast.stmt | ast.arg)
    for name, value in ast.iter_fields(node):
        if not (outer and name in _ELSEWHERE):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _words(child, own)


def prints_of(source: str, given: Iterable[int]) -> Prints:
    """The fingerprints of an answer without those that are `given`, sorted."""
    return np.array(sorted(fingerprints(source).keys() - set(given)), dtype=np.uint32)


# Pairs


def share_of(one: Prints, other: Prints) -> float:
    """Of all fingerprints that one of two answers has, the share that both have; 0 where one of
    them is too short to be judged.
    """
    if min(len(one), len(other)) < LEAST:
        return 0.0
    both = len(np.intersect1d(one, other, assume_unique=True))
    return both / (len(one) + len(other) - both)


def uncommon(prints: list[Prints]) -> list[Prints]:
    """The fingerprints of each student without those that much of the class has."""
    if not prints:
        return []
    most = max(COMMON_LEAST, COMMON_SHARE * len(prints))
    values, counts = np.unique(np.concatenate(prints), return_counts=True)
    common = values[counts > most]
    return [np.setdiff1d(entry, common, assume_unique=True) for entry in prints]


def pairs(exercise: str, prints: list[Prints], seen_elsewhere: set[int]) -> tuple[list[Pair], int]:
    """The similar pairs of a class, and how many students had enough to judge.

    prints: of each student, as from `prints_of`. seen_elsewhere: students whose answers resemble
    the published solution; two of these are no pair. Answers of one form are looked at once, and
    an inverted index finds which have anything in common.
    """
    forms: dict[bytes, list[int]] = defaultdict(list)
    for student, own in enumerate(uncommon(prints)):
        if len(own) >= LEAST:
            forms[own.tobytes()].append(student)
    sets = [np.frombuffer(form, dtype=np.uint32) for form in forms]
    members = [tuple(students) for students in forms.values()]
    results = [
        Pair(exercise, who[:1], who[1:], 1.0, len(own))
        for who, own in zip(members, sets, strict=True)
        if len(who) > 1 and not seen_elsewhere.issuperset(who)
    ]
    if len(sets) < 2:
        return results, sum(map(len, members))
    from scipy.sparse import csr_matrix  # late: slow to load

    sizes = np.array([len(own) for own in sets])
    _, columns = np.unique(np.concatenate(sets), return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ones = np.ones(len(columns), dtype=np.int32)
    index = csr_matrix((ones, columns, starts))
    by_print = index.T.tocsr()
    for start in range(0, len(sets), _ROWS_AT_A_TIME):
        block = (index[start : start + _ROWS_AT_A_TIME] @ by_print).tocoo()
        row, column, both = block.row + start, block.col, block.data
        share = both / (sizes[row] + sizes[column] - both)
        for k in np.flatnonzero((share >= SHARE) & (row < column)):
            who, others = members[row[k]], members[column[k]]
            if not seen_elsewhere.issuperset(who + others):
                results.append(Pair(exercise, who, others, float(share[k]), int(both[k])))
        if len(results) > MOST_PAIRS:
            break
    results.sort(key=lambda pair: (-pair.shared * pair.share, pair.ones, pair.others))
    return results[:MOST_PAIRS], sum(map(len, members))


# In the results of a grading


@dataclass(frozen=True)
class Similar:
    """What was found in a class. students: names and slugs in the order of the indices.

    pairs: the strongest evidence first. like_published: by exercise, share and student. judged: by
    exercise, of how many answers there was enough.
    """

    students: list[tuple[str, str]]
    pairs: list[Pair]
    like_published: dict[str, list[tuple[float, int]]]
    judged: dict[str, int]


def compare(lab: Lab, out: Path, students: Iterable[tuple[str, str]]) -> Similar:
    """Compare the answers that a grading kept in `out`, of these names and slugs."""
    known = list(students)
    given = {name: fingerprints(stub.source).keys() for name, stub in lab.stubs.items()}
    prints: dict[str, list[Prints]] = {e.name: [] for e in lab.exercises}
    for _, slug in known:
        sources = answers_of(lab, out, slug)
        for name, entries in prints.items():
            entries.append(prints_of(sources.get(name, ""), given[name]))
    results: list[Pair] = []
    like_published, judged = {}, {}
    for name, entries in prints.items():
        published = prints_of(lab.published.get(name, ""), given[name])
        shares = [(share_of(own, published), student) for student, own in enumerate(entries)]
        alike = sorted((s for s in shares if s[0] >= SHARE), key=lambda s: (-s[0], s[1]))
        like_published[name] = alike
        more, judged[name] = pairs(name, entries, {student for _, student in alike})
        results += more
    results.sort(key=lambda pair: -pair.shared * pair.share)
    return Similar(known, results, like_published, judged)


def answers_of(lab: Lab, out: Path, slug: str) -> dict[str, str]:
    """The answers of a student by exercise, from the notebook that was graded; {} if none was."""
    path = out / "submitted" / slug / lab.path.stem / lab.path.name
    try:
        cells = json.loads(path.read_bytes())["cells"]
    except (OSError, ValueError, KeyError):
        return {}
    exercise_of = {stub.id: name for name, stub in lab.stubs.items()}
    named = ((c["metadata"].get("nbgrader", {}).get("grade_id"), c["source"]) for c in cells)
    return {exercise_of[name]: source for name, source in named if name in exercise_of}


def evidence(lab: Lab, out: Path, similar: Similar) -> Iterator[Mapping[str, Any]]:
    """The pairs that the page shows, each with its two answers as lines that are marked or not."""
    often = Counter(k for p in similar.pairs for k in {*p.ones[:1], *p.others[:1]})
    for pair in similar.pairs[:MOST_SHOWN]:
        sides = (pair.ones[0], pair.others[0])
        sources = [
            answers_of(lab, out, similar.students[k][1]).get(pair.exercise, "") for k in sides
        ]
        printed = [fingerprints(source) for source in sources]
        given = fingerprints(lab.stubs[pair.exercise].source).keys()
        both = printed[0].keys() & printed[1].keys() - given
        yield {
            "pair": pair,
            "often": max(often[k] for k in sides),
            "sides": [
                (
                    similar.students[side],
                    len(who) - 1,
                    _mark(source, {n for number in both for n in own[number]}),
                )
                for side, who, source, own in zip(
                    sides, (pair.ones, pair.others), sources, printed, strict=True
                )
            ],
        }


def _mark(source: str, numbers: set[int]) -> list[tuple[bool, str]]:
    return [(number in numbers, line) for number, line in enumerate(source.split("\n"), 1)]
