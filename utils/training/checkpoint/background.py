"""Save while training goes on: the state is copied to the host, then a thread writes it."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from utils.training.checkpoint import folder as folders


class Background:
    """Saves in the background, one at a time.

    `save` waits until the save before is on the disk, copies the state and returns. The error of a
    save is raised by the next call, so none is lost; leave the block, or call `wait`, before the
    program ends.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run, Background(run) as saver:
    ...     saver.save(1, {"x": 1})
    ...     saver.wait()
    ...     folders.steps(run)
    [1]
    """

    def __init__(self, folder: Path, keep: int = 3) -> None:
        self.folder, self.keep = Path(folder), keep
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def save(self, step: int, state: Any) -> None:
        """Begin to save `state` after `step` steps.

        Raises: what the save before raised, such as files.NotSaved; this one is not begun then.
        """
        self.wait()
        content = folders.encode(state)  # a copy: training may change the state from here on
        self._thread = threading.Thread(
            target=self._write, args=(step, content), name=f"checkpoint {step}"
        )
        self._thread.start()

    def wait(self) -> None:
        """Return when nothing is being written any more. Raises what the last save raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _write(self, step: int, content: bytes) -> None:
        try:
            folders.write(self.folder, step, content, self.keep)
        except BaseException as error:
            self._error = error

    def __enter__(self) -> "Background":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.wait()
        elif self._thread is not None:  # The error of the block is the one to be seen.
            self._thread.join()
