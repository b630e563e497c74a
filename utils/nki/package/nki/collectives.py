"""nki.collectives: importable; its operations between devices are not simulated."""

from dataclasses import dataclass

from utils.nki.simulator import surface as _surface
from utils.nki.simulator.language.loops import NKIObject


@dataclass
class ReplicaGroup(NKIObject):
    """Groups of ranks that take part in a collective."""

    groups: list[list[int]]


def __getattr__(name: str) -> object:
    return _surface.outside(__name__, name)
