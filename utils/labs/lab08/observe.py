"""How the answers of lab 08 are run, and what is seen of them, as plain values. Judges nothing."""

import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from utils.labs import Answer, Facts, Observer, apart, invoke, journal
from utils.labs.lab08 import killing, storing, writing
from utils.labs.lab08.tensors import index_of, region, wanted_by, whole
from utils.labs.plain import describe, entries, number, text, to_list
from utils.xla import fresh

SECONDS = 10.0
"""For one process of a check, which takes less than half a second."""


def partner(answer: Answer, name: str) -> Answer:
    """The function `name` of the cell that defined `answer`."""
    result = getattr(answer, "__globals__", {}).get(name)
    if not callable(result):
        raise NameError(f"`{name}` is not defined as a function: the cell has to define both")
    return result


def observe_kills(resume: Answer, case: Facts) -> Facts:
    """One life without a kill and a save, then as many as there are kills, and one to the end."""
    save = partner(resume, "save")
    lives: list[Facts] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "run")
        folder.mkdir()
        for number, kill in enumerate([None, *case["kills"], None]):
            plan = {**case, "saves": number > 0}
            path = folder / "training.ckpt" if number else Path(scratch, "nothing.ckpt")
            notes, key, raised = Path(scratch, f"journal{number}"), secrets.token_bytes(16), ""
            try:
                cause = apart.run_apart(
                    *(journal.dying, killing.segment, resume, save, plan, path, notes, key, kill),
                    seconds=SECONDS,
                    environment=fresh.FAST,
                )
            except Exception as error:
                if number < 2:
                    raise
                cause, raised = "raised", f"{type(error).__name__}: {error}"[:200]
            lives.append(
                {"ended": cause, "raised": raised, "journal": journal.lines_of(notes, key)}
            )
            if number < 2 and not any(wanted in line for line in lives[-1]["journal"]
                                      for wanted in (("end",), ("saved",))[number]):  # fmt: skip
                raise RuntimeError(f"the answer ended its process ({cause})")
            if raised:
                break
    return {"lives": lives}


def observe_storage(latest: Answer, case: Facts) -> Facts:
    """What is written and harmed in one process, and what is found of it in another."""
    write = partner(latest, "write")
    with tempfile.TemporaryDirectory() as scratch:
        asked = (latest, write, case, Path(scratch))
        raised = apart.run_apart(fresh.run, writing.write_apart, *asked, seconds=SECONDS)
        return apart.run_apart(fresh.run, storing.all_else, *asked, raised, seconds=SECONDS)


def observe_fleet(answer: Answer, case: Facts) -> Facts:
    """The interval and the money lost per day that the answer gives for a fleet."""
    (response,) = invoke.responses("lab08.ex3", answer, [(case["fleet"],)], ("utils.cost.tco",))
    names = ("hours", "lost_per_day")
    given = entries(response, *names)
    if isinstance(given, str):
        return {"kind": given, **dict.fromkeys(names)}
    return {"kind": "", **{name: number(to_list(given[name], 1)) for name in names}}


def observe_resharding(answer: Answer, case: Facts) -> Facts:
    """What each of the new ranks gets, and what was read for it."""
    ranks = []
    for rank in range(len(case["tensors"][0]["wanted"])):
        reads: list[tuple[str, int]] = []
        asked = (
            index_of(case["tensors"], case["lost"]),
            wanted_by(case["tensors"], rank),
            _reader(case, reads),
        )
        seen: Facts = {"raised": "", "tensors": None}
        try:
            (response,) = invoke.responses(
                "lab08.ex4", answer, [asked], ("utils.training.checkpoint",)
            )
        except ValueError as error:
            # Asked for where something is missing; a mistake elsewhere.
            if case["lost"] is None:
                raise
            seen["raised"] = type(error).__name__
        else:
            seen["tensors"] = (
                {text(name): _array(value) for name, value in list(response.items())[:_MOST]}
                if isinstance(response, dict)
                else describe(response)
            )
        ranks.append({**seen, "reads": [list(read) for read in reads[:_MOST_READS]]})
    return {"ranks": ranks}


_MOST, _MOST_READS = 40, 400


def _reader(case: Facts, reads: list[tuple[str, int]]) -> Callable[[int, str], Any]:
    """The function that reads one tensor of one file, and remembers what it read."""
    known = {tensor["name"]: tensor for tensor in case["tensors"]}

    def read(file: int, name: str) -> Any:
        for piece in known[name]["pieces"] if name in known else []:
            if piece["file"] == file != case["lost"]:
                reads.append((name, file))
                item = known[name]
                full = whole(case["seed"], name, item["shape"], item["dtype"])
                return full[region(piece["start"], piece["shape"])].copy()
        raise FileNotFoundError(f"file {file!r} holds no piece of {name!r}: read(file, name)")

    return read


def _array(value: Any) -> Facts | str:
    """An array as plain values; anything else as what it is."""
    import numpy as np

    if not isinstance(value, np.ndarray | np.generic):
        return describe(value)
    if value.size > 400:
        return f"an array of {value.size} elements"
    kind = {"dtype": text(str(value.dtype)), "shape": list(value.shape)}
    return {**kind, "values": [number(item) for item in value.ravel().tolist()]}


OBSERVERS = {
    "ex1": Observer("resume", observe_kills, apart=True),
    "ex2": Observer("latest", observe_storage, apart=True),
    "ex3": Observer("choose_interval", observe_fleet),
    "ex4": Observer("reshard", observe_resharding),
}
