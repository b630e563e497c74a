"""Several processes under torchrun on this machine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from utils.spmd.session import QUICK

SECONDS = 120.0


def torchrun(script: Path, ranks: int = 2, seconds: float = SECONDS) -> tuple[dict[str, Any], ...]:
    """What each rank printed as one line of JSON, in the order of their key "rank".

    Every rank has one CPU device and one thread. Nothing of this process's devices is inherited.

    Raises: RuntimeError with the end of their words if a rank failed or printed no such line;
    subprocess.TimeoutExpired after `seconds`.
    """
    kept = {k: v for k, v in os.environ.items() if k not in ("CPU_NUM_DEVICES", "XLA_FLAGS")}
    only_here = {"PJRT_DEVICE": "CPU", "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*command, f"--nproc-per-node={ranks}", str(script)],
        env={**kept, **only_here, "XLA_FLAGS": QUICK},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    lines = [json.loads(each) for each in done.stdout.splitlines() if each.startswith("{")]
    if done.returncode or len(lines) != ranks:
        # torchrun's own report comes after the ranks' words and says nothing of the cause.
        own = re.split(r"^[EW]\d{4} .*\btorch/distributed/", done.stderr, flags=re.M)[0]
        said = "\n".join((done.stdout + own).splitlines()[-12:])
        raise RuntimeError(f"{len(lines)} of {ranks} ranks gave their line; the end of it:\n{said}")
    return tuple(sorted(lines, key=lambda line: line["rank"]))
