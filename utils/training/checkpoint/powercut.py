"""What a disk may hold after a power cut: a model of the order in which a file system may lose
what it was given.

A kill leaves all that the system was given; a power cut leaves what was forced to the disk, and
of the rest any part. The model knows one folder: bytes of a file are safe after fsync of the file,
and until then any prefix of them may be there; a new name, a rename or a removal is safe after
fsync of the folder, and until then each may have happened or not. Two assumptions are kinder than
what the calls promise: bytes are missing from the end only, and names change in the order of the
calls. See Pillai and others, "All File Systems Are Not Created Equal", OSDI 2014, for file systems
that do better than the model, and for some that reorder.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["create", "write", "fsync", "replace", "unlink", "fsync folder"]


@dataclass(frozen=True)
class Call:
    """One call to the system: `kind`, the file's name, and the new name or the bytes written."""

    kind: Kind
    name: str = ""
    to: str = ""
    content: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.name, self.to and f"-> {self.to}")))


def saving(
    name: str, content: str, aside: bool = True, sync_file: bool = True, sync_folder: bool = True
) -> list[Call]:
    """The calls of a save of `content` as `name`; without `aside` over the old file.

    >>> [str(call) for call in saving("ck", "new")][:3]
    ['create ck.part', 'write ck.part', 'fsync ck.part']
    """
    written = f"{name}.part" if aside else name
    calls = [Call("create", written), Call("write", written, content=content)]
    if sync_file:
        calls.append(Call("fsync", written))
    if aside:
        calls.append(Call("replace", written, to=name))
    if sync_folder:
        calls.append(Call("fsync folder"))
    return calls


def after_kill(disk: dict[str, str], calls: Sequence[Call]) -> Iterator[dict[str, str]]:
    """What the folder may hold if the process dies before, within or after the calls: {name:
    content}. disk: what it holds before."""
    for number in range(len(calls) + 1):
        yield _read_seen(disk, calls[:number])
        if number < len(calls) and calls[number].kind == "write":
            half = calls[number].content[: len(calls[number].content) // 2]
            cut = Call("write", calls[number].name, content=half)
            yield _read_seen(disk, [*calls[:number], cut])


def after_power_cut(disk: dict[str, str], calls: Sequence[Call]) -> Iterator[dict[str, str]]:
    """What the disk may hold if the power fails before, between or after the calls."""
    for number in range(len(calls) + 1):
        yield from at_the_end(disk, calls[:number])


def worst(states: Iterator[dict[str, str]], name: str, good: Sequence[str]) -> str:
    """The worst that may be found at `name`: "kept" if it always holds one of `good`, otherwise
    "torn" or "lost"."""
    results = {state.get(name) for state in states}
    if None in results:
        return "lost"
    return "kept" if results <= set(good) else "torn"


def _read_seen(disk: dict[str, str], calls: Sequence[Call]) -> dict[str, str]:
    """What programs see after the calls, all of which the system knows."""
    held = dict(disk)
    for call in calls:
        if call.kind == "create":
            held[call.name] = ""
        elif call.kind == "write":
            held[call.name] += call.content
        elif call.kind == "replace":
            held[call.to] = held.pop(call.name)
        elif call.kind == "unlink":
            del held[call.name]
    return held


def at_the_end(disk: dict[str, str], calls: Sequence[Call]) -> Iterator[dict[str, str]]:
    """What the disk may hold if the power fails when all the calls are done."""
    # Names and bytes are kept apart, as in inodes: a rename moves a name, whatever its bytes are.
    names = {name: number for number, name in enumerate(disk)}
    bytes_safe = {number: text for number, text in enumerate(disk.values())}
    bytes_given = dict(bytes_safe)
    # What happened to the names since the folder was forced to the disk, as states of all names.
    history = [dict(names)]
    for call in calls:
        if call.kind == "create":
            if call.name in names:
                bytes_given[names[call.name]] = ""
                bytes_safe[names[call.name]] = ""  # cut to nothing, which may be there at once
            else:
                number = max(bytes_given, default=-1) + 1
                bytes_given[number] = bytes_safe[number] = ""
                names[call.name] = number
                history.append(dict(names))
        elif call.kind == "write":
            bytes_given[names[call.name]] += call.content
        elif call.kind == "fsync":
            bytes_safe[names[call.name]] = bytes_given[names[call.name]]
        elif call.kind == "replace":
            names[call.to] = names.pop(call.name)
            history.append(dict(names))
        elif call.kind == "unlink":
            del names[call.name]
            history.append(dict(names))
        else:
            history = [dict(names)]
    for known in history:
        for cut in (0.0, 0.5, 1.0):
            yield {
                name: _partly(bytes_safe[number], bytes_given[number], cut)
                for name, number in known.items()
            }


def _partly(safe: str, given: str, cut: float) -> str:
    return given[: len(safe) + round((len(given) - len(safe)) * cut)]
