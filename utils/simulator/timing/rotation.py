"""Where tiles lie: each `nl.ndarray` in SBUF and PSUM is a logical tile that needs a place.

The compiler gives a tile a fresh place until the memory is full, then the one whose tile was used
last the longest time ago; the first write of the new tile waits for the last uses of the old one.
So a tile allocated in a loop is double-buffered, or buffered more often, without being asked.
Without rotation a tile takes the place that a tile of the same line of source just gave up, which
is what one fixed address amounts to.
"""

from collections import deque
from typing import Any

from utils.simulator.enums import MemoryRegion
from utils.simulator.memory import Storage
from utils.simulator.target import Target

Users = list[int]
"""Instructions that must be over before a place is written again."""


class Places:
    """The places of one memory: bytes in use, and retired tiles, the longest retired first."""

    def __init__(self, capacity: int, unit: int, rotation: bool) -> None:
        self.capacity, self.unit, self.rotation = capacity, unit, rotation
        self.used = 0
        self.peak = 0
        self.retired: deque[tuple[int, Users, Any]] = deque()
        self.of_site: dict[Any, list[tuple[int, Users, Any]]] = {}
        self.gone: set[int] = set()

    def size(self, storage: Storage) -> int:
        return -(-storage.row_bytes // self.unit) * self.unit

    def take(self, storage: Storage) -> Users:
        """A place for a tile; whom its first writes must wait for."""
        size = self.size(storage)
        if not self.rotation:
            free = self.of_site.get(_site(storage))
            if free:
                place = free.pop()
                self.gone.add(id(place))
                return place[1]
        users: Users = []
        while self.used + size > self.capacity and self.retired:
            place = self.retired.popleft()
            if id(place) in self.gone:
                self.gone.discard(id(place))
                continue
            freed, old, site = place
            if not self.rotation:
                self.of_site[site].remove(place)
            users += old
            self.used -= freed
            spare = self.capacity - self.used - size
            if spare > 0 and freed > spare:
                # What the new tile leaves of the old place keeps the old users.
                self.used += spare
                rest = (spare, old, site)
                self.retired.appendleft(rest)
                if not self.rotation:
                    self.of_site[site].append(rest)
        self.used += size
        self.peak = max(self.peak, self.used)
        return users

    def give_up(self, storage: Storage, users: Users) -> None:
        """The last use of a tile is past: its place may be taken, after `users`."""
        place = (self.size(storage), users, _site(storage))
        self.retired.append(place)
        if not self.rotation:
            self.of_site.setdefault(place[2], []).append(place)


def _site(storage: Storage) -> Any:
    return storage.line, storage.row_bytes


def memories(on: Target, rotation: bool) -> dict[MemoryRegion, Places]:
    """SBUF in bytes, PSUM in banks of a partition."""
    return {
        MemoryRegion.sbuf: Places(on.sbuf_bytes, 1, rotation),
        MemoryRegion.psum: Places(on.psum_bytes, on.psum_bank_bytes, rotation),
    }
