"""Several processes under torchrun on this machine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from utils.xla.spmd.session import QUICK

SECONDS = 120.0


def torchrun(script: Path, ranks: int = 2, seconds: float = SECONDS) -> tuple[dict[str, Any], ...]:
    """What each rank printed as one line of JSON, in the order of their key "rank".

    Every rank has one CPU device and one thread. Nothing of this process's devices is inherited.

    Raises: RuntimeError with the end of their words if a rank failed or printed no such line;
    TimeoutError after `seconds`, when the ranks have been ended; ValueError for less than one rank.
    """
    if ranks < 1:
        raise ValueError(f"{ranks} ranks: at least 1 is needed")
    kept = {k: v for k, v in os.environ.items() if k not in ("CPU_NUM_DEVICES", "XLA_FLAGS")}
    only_here = {"PJRT_DEVICE": "CPU", "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    with subprocess.Popen(
        [*command, f"--nproc-per-node={ranks}", str(script)],
        env={**kept, **only_here, "XLA_FLAGS": QUICK},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as launcher:
        try:
            printed, errors = launcher.communicate(timeout=seconds)
        except BaseException as error:
            launcher.terminate()  # it then ends its ranks; killed, it would leave them running
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(
                    f"{script.name} did not end within {seconds:g} s on {ranks} ranks and was"
                    " ended: does one rank wait for another? If the machine is busy, run it again"
                ) from None
            raise
    lines = [json.loads(item) for item in printed.splitlines() if item.startswith("{")]
    if launcher.returncode or len(lines) != ranks:
        # torchrun's own report comes after the ranks' words and says nothing of the cause.
        own = re.split(r"^[EW]\d{4} .*\btorch/distributed/", errors, flags=re.M)[0]
        text = "\n".join((printed + own).splitlines()[-12:])
        raise RuntimeError(f"{len(lines)} of {ranks} ranks gave their line; the end of it:\n{text}")
    return tuple(sorted(lines, key=lambda line: line["rank"]))
