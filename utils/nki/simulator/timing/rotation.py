"""Where tiles lie: each `nl.ndarray` in SBUF and PSUM is a logical tile that needs a place.

The compiler gives a tile a fresh place until the memory is full, then the one whose tile was used
last the longest time ago; the first writes of the new tile wait for the last uses of the old one.
So a tile allocated in a loop is double-buffered, or buffered more often, without being asked.
Without rotation a tile takes the place that a tile of the same line of source just gave up, which
is what one fixed address amounts to.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

from utils.nki.simulator.capacity import usable_bytes
from utils.nki.simulator.enums import ON_CHIP, MemoryRegion
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.target import Target

Users = list[int]
"""Instructions that must be over before a place is written again."""


@dataclass(eq=False, slots=True)
class Place:
    """Bytes of each partition that a tile has, or had and gave up with these last users."""

    storage: Storage
    size: int
    users: Users
    fresh: bool = True
    free: bool = False


class Memory:
    """The places of one memory; those given up, the longest unused first."""

    def __init__(self, capacity: int, unit: int, rotation: bool) -> None:
        self.capacity, self.unit, self.rotation = capacity, unit, rotation
        self.used = 0
        self.given: list[Place] = []
        self.held: dict[Storage, Place] = {}
        self.unused: deque[Place] = deque()
        self.of_site: dict[Any, list[Place]] = {}

    def take(self, storage: Storage) -> Users:
        """A place for a tile; whom its first writes must wait for."""
        size = -(-storage.row_bytes // self.unit) * self.unit
        users: Users = []
        before = len(self.unused)
        result = None if self.rotation else self._same_site(storage)
        if result is not None:
            users = list(result.users)
        else:
            while self.used + size > self.capacity and (old := self._oldest()) is not None:
                users += old.users
                self.used -= old.size
                spare = min(old.size, self.capacity - self.used - size)
                if spare > 0:  # what the new tile leaves of the place keeps the old users
                    self.used += spare
                    self.unused.appendleft(Place(old.storage, spare, old.users, free=True))
            self.used += size
        fresh = result is None and before == len(self.unused)
        place = self.held[storage] = Place(storage, size, [], fresh)
        self.given.append(place)
        return users

    def give_up(self, storage: Storage, users: Users) -> None:
        """The last use of a tile is past: its place may be taken, after `users`."""
        place = self.held.pop(storage)
        place.users, place.free = users, True
        self.unused.append(place)
        if not self.rotation:
            self.of_site.setdefault(_site(storage), []).append(place)

    def _same_site(self, storage: Storage) -> Place | None:
        """The place of the same line of source that was given up last, unless it is taken."""
        places = self.of_site.get(_site(storage), [])
        while places:
            place = places.pop()
            if place.free:
                place.free = False
                return place
        return None

    def _oldest(self) -> Place | None:
        """The place that was given up first, unless it is taken."""
        while self.unused:
            place = self.unused.popleft()
            if place.free:
                place.free = False
                return place
        return None


def _site(storage: Storage) -> Any:
    return storage.line, storage.row_bytes


def memories(on: Target, rotation: bool) -> dict[MemoryRegion, Memory]:
    """SBUF in bytes, PSUM in banks, of each partition."""
    units = {MemoryRegion.sbuf: 1, MemoryRegion.psum: on.psum_bank_bytes}
    return {item: Memory(usable_bytes(on, item), units[item], rotation) for item in ON_CHIP}
