"""A cold start, stage by stage, in a Python of its own, and the warm calls after it.

`utils.xla.fresh` cannot tell it: its processes are forks that have imported torch already. Here a
new interpreter starts, and each stage ends with a look at the clock, which on Linux is the same
for all processes. Cold is the process, not the machine: files that were read lately are still in
memory, and a compiler with a cache on disk (Neuron's, lesson 04) finds what it compiled before. To
measure without it, give that process an empty cache by `environment`.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import msgspec

from utils.course.catalog import ROOT
from utils.serving.bench.timing import CLOCK, Clock, Samples, Waited, measure
from utils.xla import children

CHILD = Path(__file__).with_name("child.py")
STAGES = ("process_s", "import_s", "device_s", "model_s", "first_s")


@dataclass(frozen=True)
class ColdStart:
    """What passes before the first answer, in seconds, stage after stage.

    process_s: until Python runs. import_s: torch, and torch_xla for an xla device. device_s: until
    the device answers. model_s: weights made and moved. warm: the calls; the first compiles.
    """

    process_s: float
    import_s: float
    device_s: float
    model_s: float
    warm: Samples

    @property
    def first_s(self) -> float:
        """The first call."""
        return self.warm.first_s

    @property
    def stages(self) -> dict[str, float]:
        """Name to seconds, in order."""
        return {name: getattr(self, name) for name in STAGES}

    @property
    def first_answer_s(self) -> float:
        """From the start of the process to the first answer: the sum of the stages."""
        return sum(self.stages.values())


def cold_and_warm(
    make: Callable[[Any], Callable[[], Any]],
    kind: str = "cpu",
    warmup: int = 3,
    repeats: int = 30,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 300.0,
) -> ColdStart:
    """Start a new Python, make the model in it, and call it.

    Args:
        make: of a `utils.xla.devices.Device`, returns one call. Any function that cloudpickle can
        send. kind: of device, as `utils.xla.devices.get` takes it.
        warmup, repeats: as of `measure`.
        environment: variables of that process beside those of this one.

    Raises: RuntimeError with what the process said if it failed; TimeoutError.
    """
    if warmup < 1 or repeats < 1:
        raise ValueError(f"warmup {warmup}, repeats {repeats}: each must be at least 1")
    payload = cloudpickle.dumps(make)
    variables = os.environ | {"PYTHONPATH": str(ROOT)} | dict(environment or {})
    with tempfile.TemporaryDirectory(prefix="course-cold-") as folder:
        answer = Path(folder, "answer.json")
        settings = [kind, str(warmup), str(repeats), str(answer), repr(CLOCK())]
        # -P: the folder of the script would come before the standard library.
        command = [sys.executable, "-P", str(CHILD), *settings]
        try:
            done = children.run(command, timeout_s, payload, env=variables)
        except subprocess.TimeoutExpired:
            raise TimeoutError(
                f"the cold start was not done after {timeout_s:g} s and was ended: give it a larger"
                " timeout_s or fewer repeats"
            ) from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            last = lines[-1] if lines else "it said nothing"
            raise RuntimeError(f"the cold start ended with exit {done.returncode}: {last}")
        return msgspec.json.decode(answer.read_bytes(), type=ColdStart)


def stages(
    process_s: float,
    import_s: float,
    open_device: Callable[[], Waited],
    build: Callable[[Waited], Callable[[], Any]],
    warmup: int,
    repeats: int,
    clock: Clock = CLOCK,
) -> ColdStart:
    """Go through the stages that follow the imports, in this process.

    open_device: returns the device. build: of it, returns one call.
    """
    begin = clock()
    device = open_device()
    device.wait()
    opened = clock()
    step = build(device)
    device.wait()
    built = clock()
    warm = measure(step, device, warmup, repeats, clock)
    return ColdStart(process_s, import_s, opened - begin, built - opened, warm)
