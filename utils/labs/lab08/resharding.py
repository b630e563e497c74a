"""Exercise 4, from four files to two ranks: cases, and whether every element is in its place."""

import random
from collections.abc import Iterator
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, tally, times
from utils.labs.lab08.tensors import region, whole

SAYS = says("lab08")

FILES, RANKS = 4, 2
STATES = ("", ".exp_avg", ".exp_avg_sq")
"""What AdamW keeps beside a weight is cut as the weight is."""


def reshard_cases(rng: random.Random) -> list[Facts]:
    """Even rows, uneven rows, other axes, a mesh of two by two, and a file that is lost."""
    plans = (
        [("even", "even"), ("copies", "copies")],
        [("rows", "rows"), ("rows", "rows"), ("copies", "copies")],
        [("rows", "columns"), ("columns", "rows"), ("copies", "rows")],
        [("mesh", "columns"), ("rows", "copies"), ("pairs", "rows"), ("columns", "rows")],
        [("rows", "rows"), ("copies", "copies")],
    )
    cases = [_case(rng, plan) for plan in plans]
    cases[-1]["lost"] = rng.choice([0, 1])
    return cases


def _case(rng: random.Random, plan: list[tuple[str, str]]) -> Facts:
    tensors = []
    for number, (before, after) in enumerate(plan):
        shape = [rng.randint(6, 13), rng.randint(5, 11)]
        if (before, after) == ("even", "even"):
            shape = [4 * rng.randint(2, 3), rng.randint(5, 8)]
        if before == "rows" and after == "rows" and number:
            shape = shape[:1]
        pieces = _pieces(rng, before, shape)
        wanted = [
            {"start": piece["start"], "shape": piece["shape"]}
            for piece in sorted(_pieces(rng, after, shape, RANKS), key=lambda p: p["file"])
        ]
        dtype = rng.choice(["float32", "float16", "float64"])
        for state in STATES:
            own = {"name": f"layer{number}{state}", "shape": shape, "wanted": wanted}
            tensors.append(
                {
                    **own,
                    "dtype": "float32" if state else dtype,
                    "pieces": rng.sample(pieces, len(pieces)),
                }
            )
    copies = [{"file": file, "start": [], "shape": []} for file in range(FILES)]
    step = {"name": "step", "shape": [], "dtype": "int64"}
    tensors.append({**step, "wanted": [{"start": [], "shape": []}] * RANKS, "pieces": copies})
    return {"seed": rng.randrange(10**6), "tensors": tensors, "lost": None}


def _bounds(rng: random.Random, length: int, parts: int, even: bool) -> list[int]:
    """Where a length is cut: evenly, with what is left in the first parts or not in the last one;
    the last part may be empty.
    """
    if even or rng.random() < 0.5:
        item = -(-length // parts)
        return [min(length, item * k) for k in range(parts + 1)]
    return [0, *sorted(rng.sample(range(1, length), parts - 1)), length]


def _pieces(rng: random.Random, how: str, shape: list[int], parts: int = FILES) -> list[Facts]:
    """Pieces of a tensor in so many files."""
    if how == "copies":
        return [{"file": f, "start": [0] * len(shape), "shape": shape} for f in range(parts)]
    if how in ("mesh", "pairs"):
        grid = []
        rows = _bounds(rng, shape[0], 2, False) if how == "mesh" else [0, shape[0]]
        columns = _bounds(rng, shape[1], 2, False)
        for file in range(parts):
            row, column = file // 2 % (len(rows) - 1), file % 2
            start = [rows[row], columns[column]]
            size = [rows[row + 1] - start[0], columns[column + 1] - start[1]]
            grid.append({"file": file, "start": start, "shape": size})
        return grid
    axis = 1 if how == "columns" else 0
    bounds = _bounds(rng, shape[axis], parts, how == "even")
    pieces = []
    for file in range(parts):
        start, size = [0] * len(shape), list(shape)
        start[axis], size[axis] = bounds[file], bounds[file + 1] - bounds[file]
        pieces.append({"file": file, "start": start, "shape": size})
    return pieces


def reshard_words(case: Facts) -> str:
    """What a card says of a case."""
    names = len(case["tensors"])
    lost = "" if case["lost"] is None else f", file {case['lost']} is lost"
    shapes = [tensor["shape"] for tensor in case["tensors"] if "." not in tensor["name"]]
    return f"{names} tensors in {FILES} files, weights {shapes[:-1]}, for {RANKS} ranks{lost}"


def _overlaps(piece: Facts, wanted: Facts) -> bool:
    return all(
        max(a, b) < min(a + n, b + m)
        for a, n, b, m in zip(
            piece["start"], piece["shape"], wanted["start"], wanted["shape"], strict=True
        )
    )


def regions_of(tensor: Facts, rank: int, lost: int | None) -> set[str]:
    """The regions, each read once, that hold what a rank wants of a tensor."""
    wanted = tensor["wanted"][rank]
    return {
        str((piece["start"], piece["shape"]))
        for piece in tensor["pieces"]
        if piece["file"] != lost and _overlaps(piece, wanted)
    }


def has_all(tensor: Facts, rank: int, lost: int | None) -> bool:
    """Whether the files that are left hold all that a rank wants of a tensor."""
    import numpy as np

    known = np.zeros(tensor["shape"], bool)
    for piece in tensor["pieces"]:
        if piece["file"] != lost:
            known[region(piece["start"], piece["shape"])] = True
    wanted = tensor["wanted"][rank]
    return bool(known[region(wanted["start"], wanted["shape"])].all())


def judge_resharding(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the elements, how often files are read, and gaps that are refused."""
    ranks, lost = facts["ranks"], case["lost"]
    gaps = [
        [tensor["name"] for tensor in case["tensors"] if not has_all(tensor, rank, lost)]
        for rank in range(RANKS)
    ]
    values = _judge_values(case, ranks, gaps)
    judged = [_judge_reads(case, ranks, gaps), _judge_gaps(case, ranks, gaps)]
    if lost is None and not any(
        isinstance(rank["tensors"], dict) and rank["tensors"] for rank in ranks
    ):
        judged = [not_judged(item) for item in judged]
    return [values, *judged]


def _whole_ranks(ranks: list[Facts], gaps: list[list[str]]) -> Iterator[tuple[int, Facts]]:
    """The ranks for which nothing is lost, with what was returned."""
    return ((rank, ranks[rank]) for rank in range(RANKS) if not gaps[rank])


def _judge_values(case: Facts, ranks: list[Facts], gaps: list[list[str]]) -> Criterion:
    """Whether every tensor has its shape, type and elements."""
    good, total, message = 0, 0, ""
    for rank, seen in _whole_ranks(ranks, gaps):
        for tensor in case["tensors"]:
            fault = _fault(case, tensor, rank, seen)
            total, good = total + 1, good + (not fault)
            message = message or fault
    return tally("elements", 5, good, total, message, " tensors")


def _fault(case: Facts, tensor: Facts, rank: int, seen: Facts) -> str:
    """What is wrong with one tensor of one rank, or nothing."""
    wanted, name = tensor["wanted"][rank], tensor["name"]
    if seen["raised"]:
        return f"rank {rank}: `reshard` raised {seen['raised']}, and every piece was there"
    if not isinstance(seen["tensors"], dict):
        return SAYS["does-nothing-2"].format(tensors=seen["tensors"])
    here = f"rank {rank}, {name} {tensor['shape']}"
    result = seen["tensors"].get(name)
    if result is None or isinstance(result, str):
        return f"{here}: {f'found {result}' if result else 'it is missing'}, return an array"
    if result["shape"] != wanted["shape"]:
        text = SAYS["the-whole-for-each"].format(
            given=here, shape=result["shape"], shape_2=wanted["shape"]
        )
        return text + (
            ": only the region of the rank" if result["shape"] == tensor["shape"] else ""
        )
    if result["dtype"] != tensor["dtype"]:
        return f"{here}: the elements are {result['dtype']}, saved were {tensor['dtype']}"
    full = whole(case["seed"], name, tensor["shape"], tensor["dtype"])
    right = full[region(wanted["start"], wanted["shape"])].ravel().tolist()
    if result["values"] == right:
        return ""
    off = sum(a != b for a, b in zip(result["values"], right, strict=True))
    text = SAYS["copies-are-added"].format(given=here, off=off, right=len(right))
    if set(result["values"]) <= set(full.ravel().tolist()):
        return SAYS["joined-in-the-order-of-the-list"].format(text=text)
    if name.count(".") and any(value == 0 for value in result["values"]):
        return SAYS["moments-from-zero"].format(text=text)
    return f"{text}: copy where the piece and the region overlap, on every axis"


def _judge_reads(case: Facts, ranks: list[Facts], gaps: list[list[str]]) -> Criterion:
    """Whether each region that is needed was read once, and no other."""
    least, read, message = 0, 0, ""
    for rank, seen in _whole_ranks(ranks, gaps):
        for tensor in case["tensors"]:
            files = [file for name, file in seen["reads"] if name == tensor["name"]]
            want = regions_of(tensor, rank, case["lost"])
            least, read = least + len(want), read + len(files)
            if len(files) > len(want) and not message:
                message = _waste(tensor, rank, files, want)
    if read < least:
        message = "`read` was not called for every piece that is needed"
    passed = read == least
    return criterion("reads", 2, passed, times(read, "read"), times(least, "read"), message)


def _waste(tensor: Facts, rank: int, files: list[Any], want: set[str]) -> str:
    here = f"rank {rank}, {tensor['name']}: {times(len(files), 'read')}, {len(want)} would do"
    if len(set(files)) < len(files):
        return SAYS["read-again-for-each-row"].format(given=here)
    regions = {str((p["start"], p["shape"])) for p in tensor["pieces"] if p["file"] in files}
    if len(regions) < len(files):
        return SAYS["every-copy-is-read"].format(given=here)
    return SAYS["everything-is-read"].format(given=here)


def _judge_gaps(case: Facts, ranks: list[Facts], gaps: list[list[str]]) -> Criterion:
    """Whether a rank whose elements are lost is refused."""
    asked = [rank for rank in range(RANKS) if gaps[rank]]
    good, message = 0, ""
    for rank in asked:
        if ranks[rank]["raised"] == "ValueError":
            good += 1
        elif ranks[rank]["raised"]:
            message = message or (
                f"rank {rank}: file {case['lost']} is lost, and `reshard` raised"
                f" {ranks[rank]['raised']}: raise ValueError, which names what is missing"
            )
        else:
            message = message or (
                SAYS["whatever-was-in-memory"].format(
                    rank=rank, lost=case["lost"], value=gaps[rank][0]
                )
            )
    if not asked:
        return criterion("gaps", 3, True, "none", "", "")
    return tally("gaps", 3, good, len(asked), message, " refused")
