"""A device that records what is asked of it, and what a training does meanwhile, for exercise 1."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from utils.xla.devices import Device

ENTERED, LEFT = "A", "a"
FORWARD, BACKWARD, UPDATE, MARK, WAIT = "FBUMW"


class RecordingDevice(Device):
    """The CPU, under another name: `log` gets a letter for everything that is asked of it."""

    _note: Callable[[str], None]

    def __init__(self, log: list[str]) -> None:
        super().__init__("own")
        object.__setattr__(self, "_note", log.append)

    @property
    def torch(self) -> Any:
        """torch's name of the device: the CPU."""
        import torch

        return torch.device("cpu")

    def compiled(self, model: Any) -> Any:
        """The model as it is."""
        return model

    def mark_step(self) -> None:
        """Note a step marker."""
        self._note(MARK)

    def wait(self) -> None:
        """Note a wait."""
        self._note(WAIT)

    def autocast(self, enabled: bool = True) -> AbstractContextManager:
        """A context that notes mixed precision, or one that does nothing."""
        return self._autocast() if enabled else contextlib.nullcontext()

    @contextlib.contextmanager
    def _autocast(self) -> Iterator[None]:
        import torch

        self._note(ENTERED)
        try:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                yield
        finally:
            self._note(LEFT)


@contextlib.contextmanager
def watch(model: Any, log: list[str]) -> Iterator[None]:
    """Within the block `log` gets a letter for each forward pass, backward pass and update."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    first = next(model.parameters())
    handles = [
        model.register_forward_pre_hook(lambda *_: log.append(FORWARD)),
        first.register_post_accumulate_grad_hook(lambda *_: log.append(BACKWARD)),
        register_optimizer_step_pre_hook(lambda *_: log.append(UPDATE)),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def names_of_backends(source: str) -> list[list[Any]]:
    """[name, line] of what names a backend in code; comments and docstrings may.

    >>> names_of_backends("x = y.to('cuda:0')\\nimport torch_xla  # and cuda\\n")
    [['cuda', 1], ['xla', 2]]
    """
    import ast
    import re

    tree = ast.parse(source)
    texts = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    results = set()
    for node in ast.walk(tree):
        words = [getattr(node, part, None) for part in ("id", "attr", "arg", "module", "name")]
        if isinstance(node, ast.Constant) and id(node) not in texts:
            words.append(node.value)
        if isinstance(node, ast.Import | ast.ImportFrom):
            words += [alias.name for alias in node.names]
        for word in words:
            match = re.search(r"cuda|xla|neuron", word) if isinstance(word, str) else None
            if match:
                results.add((getattr(node, "lineno", 0), match[0]))
    return [[name, line] for line, name in sorted(results)][:20]
