"""The other files of a tree that a file imports from: found by name, read once, kept for a time."""

import ast
import os
from typing import TYPE_CHECKING

from utils.audit.scopes import Names
from utils.audit.tensor_kinds import Tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from utils.audit.tensor_kinds import Defined

KEPT = 120  # files whose syntax trees are held at a time
FOLLOWED = 4  # imports of imports
LARGEST = 400_000  # bytes of a file that is read for what its functions return


class Modules:
    """Finds functions and classes by their imported names. `parse` makes a tree of a source."""

    def __init__(self, root: str, parse: "Callable[[str], ast.Module]") -> None:
        self.root = root
        self._parse = parse
        self._files: dict[str, Tensors | None] = {}
        self._there: dict[str, bool] = {}
        self._found: dict[tuple[str, str], tuple[str, str] | None] = {}

    def read(self, path: str) -> Tensors | None:
        """What is known of a file; None for what is no Python."""
        if path in self._files:
            self._files[path] = known = self._files.pop(path)  # the latest last
            return known
        try:
            if os.path.getsize(path) > LARGEST:
                return self.keep(path, None)
            with open(path, encoding="utf-8") as file:
                tree = self._parse(file.read())
        except (OSError, ValueError):
            return self.keep(path, None)
        return self.keep(path, Tensors(Names(tree), self, os.path.dirname(path)))

    def held(self, path: str) -> Tensors | None:
        """What is known of a file if it was read lately."""
        return self._files.get(path)

    def keep(self, path: str, known: Tensors | None) -> Tensors | None:
        """Hold what is known of a file, and let go of what was not asked for lately."""
        self._files[path] = known
        if len(self._files) > KEPT:
            del self._files[next(iter(self._files))]
        return known

    def look(self, name: str, folder: str, depth: int = FOLLOWED) -> "Defined | None":
        """The function or class of a full name such as `.layers.Conv`, seen from a folder."""
        place = self._place(name, folder)
        if place is None or not depth:
            return None
        path, rest = place
        known = self.read(path)
        if known is None:
            return None
        kept = known.names.module.names.get(rest, ())
        for item in kept:
            if item.kind == "definition" and item.node is not None:
                return known, item.node
            if item.kind == "import" and item.target != name:
                return self.look(item.target, os.path.dirname(path), depth - 1)
        return None

    def module(self, name: str, folder: str) -> Tensors | None:
        """What is known of the file of a module; None where the tree has none."""
        place = self._place(f"{name}.x", folder)
        return self.read(place[0]) if place else None

    def holds(self, name: str, folder: str) -> bool:
        """The tree has a source file of a relative name such as `..ops.nms_cuda`."""
        return self._place(f"{name}.x", folder) is not None

    def _is_file(self, path: str) -> bool:
        if path not in self._there:
            self._there[path] = os.path.isfile(path)
        return self._there[path]

    def _place(self, name: str, folder: str) -> tuple[str, str] | None:
        """The file, and the name within it."""
        key = (name, folder)
        if key not in self._found:
            self._found[key] = self._find(name, folder)
        return self._found[key]

    def _find(self, name: str, folder: str) -> tuple[str, str] | None:
        level = len(name) - len(name.lstrip("."))
        parts = name[level:].split(".")
        starts = [folder]
        if level:
            for _ in range(level - 1):
                starts[0] = os.path.dirname(starts[0])
        else:
            while folder != self.root and len(folder) > len(self.root):
                folder = os.path.dirname(folder)
                starts.append(folder)
            starts.append(os.path.join(self.root, "src"))
        if len(parts) == 1 and not level:
            return None
        for start in starts:
            place = os.path.join(start, *parts[:-1])
            for path in (f"{place}.py", os.path.join(place, "__init__.py")):
                if self._is_file(path):
                    return path, parts[-1]
        return None
