"""Which names each cell of a notebook defined when it was last run, so that an answer that was left
by an earlier version of a cell is not taken for the present one.
"""

import re
import symtable
import sys
from typing import Any

ANY = "*"
"""Stands for names that are not known."""
HIDDEN = r"\bimport \*|\bexec\(|run_line_magic\('(?:run|load|time)"


class Cells:
    """What has been run in this kernel, by the ids that front ends give to cells."""

    def __init__(self) -> None:
        self.latest: dict[str, set[str]] = {}
        self.ever: dict[str, str] = {}
        self.shell: Any = None

    def watch(self) -> None:
        """Begin to note what cells define; outside of a kernel of Jupyter there are none."""
        shell = running_shell()
        if shell is not None and self.shell is None:
            self.shell = shell
            shell.events.register("post_run_cell", self._ran)

    def _ran(self, result: Any) -> None:
        cell_id = getattr(result.info, "cell_id", None)
        if cell_id:
            source = result.info.raw_cell
            if source.startswith("%%"):  # such as %%time, below which stands Python
                source = source.partition("\n")[2]
            source = "" if result.error_before_exec else self.shell.transform_cell(source)
            self.ran(cell_id, source)

    def ran(self, cell_id: str, source: str) -> None:
        """Note that a cell has been run, with this source; it is empty if Python could not read it.

        >>> cells = Cells()
        >>> cells.ran("ex1-code", "def double(number): return 2 * number")
        >>> cells.ran("ex1-code", "def dubble(number): return 2 * number")
        >>> cells.left_over("double")
        ['dubble']
        """
        self.latest[cell_id] = names_in(source)
        self.ever |= dict.fromkeys(self.latest[cell_id], cell_id)

    def left_over(self, name: str) -> list[str] | None:
        """None if a cell defines `name` in its last version, or if none ever did. Otherwise a
        variable of that name is left from an earlier version of a cell: what that cell defines now.
        """
        if name not in self.ever or any({name, ANY} & names for names in self.latest.values()):
            return None
        return sorted(self.latest[self.ever[name]])


def names_in(source: str) -> set[str]:
    """The names that a text of Python binds at its top level; none if it is no Python, and `ANY`
    if it runs what cannot be seen here.

    >>> sorted(names_in("import math as m; x = 1\\ndef f(a):\\n    b = a\\nprint(y)"))
    ['f', 'm', 'x']
    """
    try:
        symbols = symtable.symtable(source, "<cell>", "exec").get_symbols()
    except (SyntaxError, ValueError):
        return set()
    names = {item.get_name() for item in symbols if item.is_assigned() or item.is_imported()}
    return names | {ANY} if re.search(HIDDEN, source) else names


def running_shell() -> Any:
    """The shell of a kernel of Jupyter, or None: elsewhere there are no cells."""
    IPython = sys.modules.get("IPython")
    shell = IPython.get_ipython() if IPython else None
    return shell if hasattr(shell, "kernel") else None


cells = Cells()
"""The cells of this kernel."""
