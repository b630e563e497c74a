"""Incidents 1 and 2 of lab 17: cores are not available. Listings as `neuron-ls -j` prints them."""

import json
import random
from typing import Any

from utils.labs import Facts

WEIGHTS = {"pids": 5, "cores": 5}
FORM = "`holders` returned {strange}: return {{'pids': [...], 'cores': ...}}"
DEVICES = 16
_RUNS = ("python train.py --config 7b.yaml", "torchrun --nproc_per_node=16 train.py",
         "python -m ipykernel_launcher -f kernel-3.json", "vllm serve llama")  # fmt: skip
_LOOKERS = ("neuron-monitor -c monitor.conf", "neuron-ls -a -j", "neuron-top")


def make_incident(rng: random.Random, kind: str) -> Facts:
    """An incident. kind: "gap" has free cores, and before them too short a range; "none" has none
    that suffice; "start" has them at once.
    """
    per_device = rng.choice((2, 4))  # logical cores of a device, of trn1.32xlarge and trn2.48xlarge
    size = rng.choice((per_device + 1, 2 * per_device, 2 * per_device + 1))
    need = -(-size // per_device)  # free devices in a row
    asked = rng.randint(3, 5) * per_device - rng.choice((1, 2))
    held = {
        device: 0 for device in range(asked // per_device, (asked + size - 1) // per_device + 1)
    }
    pids = rng.sample(range(2000, 400000), 4)
    second = max(held)
    if kind == "none" or rng.random() < 0.5:  # two runs hold what is asked for
        held[second] = 1
    # Everything else is taken by a third run, but for the free ranges of the kind.
    taken = {device: 2 for device in range(DEVICES) if device not in held} | held
    free = [*range(need)] if kind == "start" else [*range(second + 1, second + need)]
    if kind == "gap":
        start = second + need + 1
        free += range(start, start + need)
    for device in free:
        taken.pop(device)
    watchers = {device: _LOOKERS[0] for device in range(DEVICES)}
    commands = rng.sample(_RUNS, 3)
    listing: list[dict[str, Any]] = [
        {
            "neuron_device": device,
            "nc_count": per_device,
            "neuroncore_ids": list(range(device * per_device, (device + 1) * per_device)),
            "neuron_processes": [
                {"pid": pids[3], "command": watchers[device], "neuron_runtime_version": "NA"},
                *([{
                    "pid": pids[taken[device]], "command": commands[taken[device]],
                    "neuron_runtime_version": "2.0.0",
                }] if device in taken else []),
            ],
        }
        for device in range(DEVICES)
    ]  # fmt: skip
    log = "\n".join((
        "2026-Nov-20 09:12:03.0323 28078:28078 INFO    NRT:nrt_init  initialising",
        "2026-Nov-20 09:12:04.0323 28078:28078 ERROR   NRT:nrt_allocate_neuron_cores"
        f"               NeuronCore(s) not available - Requested:nc{asked}-nc{asked + size - 1}"
        " Available:0",
        "2026-Nov-20 09:12:04.0324 28078:28078 ERROR   NRT:nrt_init  failed",
    ))  # fmt: skip
    wanted = set(range(asked, asked + size))
    touched = [item for item in listing if wanted & {*item["neuroncore_ids"]}]
    unused = [core for item in listing if not _pids([item]) for core in item["neuroncore_ids"]]
    return {
        "listing": json.dumps(listing),
        "log": log,
        "right": {"pids": _pids(touched), "cores": _range(unused, size)},
        "words": {"asked": f"nc{asked} to nc{asked + size - 1}", "size": size},
    }


def _pids(items: list[dict[str, Any]]) -> list[int]:
    """Processes that use the runtime on these devices."""
    processes = [process for item in items for process in item["neuron_processes"]]
    return sorted({p["pid"] for p in processes if p["neuron_runtime_version"] != "NA"})


def _range(ids: list[int], size: int) -> str | None:
    """The first range of so many neighbours among ascending core ids."""
    for start in ids:
        if set(range(start, start + size)) <= set(ids):
            return f"{start}-{start + size - 1}"
    return None


def core_cases(rng: random.Random) -> list[Facts]:
    """Six incidents in two cases."""
    return [
        {"incidents": [make_incident(rng, kind) for kind in kinds]}
        for kinds in (("start", "gap"), ("gap", "none", "start", "gap"))
    ]


def core_words(case: Facts) -> str:
    """What a card says of a case."""
    asked = ", ".join(incident["words"]["asked"] for incident in case["incidents"])
    return f"{len(case['incidents'])} listings; asked for: {asked}"
