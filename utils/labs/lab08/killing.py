"""Exercise 1 as it runs in a process of its own: train, save, be killed, resume; everything that
happens is written to a journal, because this process may not live to tell.
"""

import hashlib
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from utils.labs import Answer, Facts
from utils.labs.forbidden import forbid
from utils.labs.journal import Journal
from utils.labs.plain import describe
from utils.training.checkpoint.kills import die, kill_at_byte

SHUT = tuple(
    f"utils.training.checkpoint.{name}"
    for name in ("background", "files", "folder", "program", "states")
)
"""What the course has for this already; `kills` stays open, because the check kills by it."""


def digest(*values: Any) -> str:
    """A short text that is the same for equal values, and tensors equal to the bit."""
    result = hashlib.sha256()
    for value in values:
        content = (
            value.detach().cpu().numpy().tobytes() if hasattr(value, "detach") else repr(value)
        )
        result.update(content if isinstance(content, bytes) else content.encode())
    return result.hexdigest()[:12]


def parts(run: Any) -> Facts:
    """Everything that the training depends on, each as a short text; the step and the random state
    of the device as numbers.
    """
    import numpy as np
    import torch
    import torch_xla.core.xla_model as xm

    slots = [run.optimizer.state.get(parameter, {}) for parameter in run.model.parameters()]
    groups = [param_group["lr"] for param_group in run.optimizer.param_groups]
    state: Any = np.random.get_state()
    name, keys, *rest = state
    return {
        "weights": digest(*run.model.state_dict().values()),
        "moments": digest(*(s.get(n) for s in slots for n in ("exp_avg", "exp_avg_sq"))),
        "updates": digest(*(float(s.get("step", 0)) for s in slots)),
        "rate": digest(groups, run.scheduler.last_epoch),
        "step": run.step,
        "order": digest([int(row) for row in run.batches.order]),
        "position": digest(int(run.batches.position)),
        "generator": digest(run.batches.generator.get_state()),
        "python": digest(random.getstate()),
        "numpy": digest(name, keys.tolist(), rest),
        "torch": digest(torch.get_rng_state()),
        "device": xm.get_rng_state(),
    }


def _arm(kill: Facts, folder: Path) -> None:
    """Make the save that follows deadly."""
    if kill["at"] == "rename":
        sys.addaudithook(lambda event, _: die() if event in ("os.rename", "os.link") else None)
    else:
        sizes = [item.stat().st_size for item in folder.rglob("*") if item.is_file()]
        kill_at_byte(int(kill["share"] * max(sizes, default=0)))


def _begin(run: Any, number: int) -> None:
    """Draw from other random numbers than a new run does: who trains again from step 0, and does
    not put back what was saved, gets other weights."""
    import numpy as np
    import torch
    import torch_xla.core.xla_model as xm

    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)
    xm.set_rng_state(number)
    run.batches.generator.manual_seed(number)


def _on_device(run: Any, name: str) -> None:
    if any(parameter.device.type != "xla" for parameter in run.model.parameters()):
        raise RuntimeError(
            f"`{name}` leaves the model on the host: model.cpu() moves the model itself. Copy the"
            " tensors of its state_dict() instead, or hand it to torch.save as it is"
        )


def segment(
    resume: Answer,
    save: Answer,
    case: Facts,
    path: Path,
    journal: Path,
    key: bytes,
    kill: Facts | None,
) -> None:
    """One life of the training process: from resuming to the end, or until it is killed.

    kill: where to die, or None. The first life, without a kill, saves nothing.
    """
    import torch

    from utils.labs.lab08.training import Run

    torch.set_num_threads(1)
    os.chdir(tempfile.mkdtemp(dir=journal.parent))  # a file outside of `path` is gone after a kill
    noted = Journal(journal, key)

    def note(**what: Any) -> None:
        noted.note(what)

    trained, train_step = [0], Run.train_step
    counted: Any = Run  # a method is replaced on purpose, so that steps are counted
    counted.train_step = _counting(train_step, trained)
    run = Run(case["seed"], case["rows_per_batch"])
    with forbid("lab08.ex1", *SHUT):
        note(begun=parts(run))
        resume(path, run)
        if type(run.step) is not int:
            raise TypeError(f"run.step is {describe(run.step)} after `resume`: set it to an int")
        _on_device(run, "resume")
        note(resumed=parts(run), trained=trained[0])
        if not run.step:
            _begin(run, case["begin"])
        while run.step < case["steps"]:
            note(step=run.step, loss=run.train_step())
            if not case["saves"]:
                note(after=parts(run))
            elif kill and kill["at"] == "step" and run.step >= kill["step"]:
                die()
            elif run.step % case["save_every"] == 0:
                deadly = kill if kill and run.step >= kill["step"] else None
                note(saving=run.step, state=parts(run))
                if deadly:
                    _arm(deadly, path.parent)
                save(path, run)
                if deadly:
                    die()
                _on_device(run, "save")
                note(saved=run.step, state=parts(run))
    note(end=parts(run))


def _counting(train_step: Callable[[Any], float], count: list[int]) -> Callable[[Any], float]:
    def counted(run: Any) -> float:
        count[0] += 1
        return train_step(run)

    return counted
