"""The eight incidents that lab 17 shows, two for each exercise. All are invented, in the forms that
AWS documents.
"""

import json
from typing import Any


def _device(number: int, *processes: tuple[int, str, str]) -> dict[str, Any]:
    """A device of two cores as `neuron-ls -a -j` lists it; processes: pid, command, version."""
    names = ("pid", "command", "neuron_runtime_version")
    return {
        "neuron_device": number,
        "nc_count": 2,
        "neuroncore_ids": [2 * number, 2 * number + 1],
        "neuron_processes": [dict(zip(names, process, strict=True)) for process in processes],
    }


_LOOKER = (555, "neuron-monitor -c monitor.conf", "NA")
_KERNEL = (4711, "python -m ipykernel_launcher -f kernel-3.json", "2.0.0")
_OTHER = (8080, "vllm serve llama", "2.0.0")
_REFUSED = (
    "2026-Nov-20 09:12:04.0323 28078:28078 ERROR   NRT:nrt_allocate_neuron_cores"
    "               NeuronCore(s) not available - Requested:{} Available:0"
)
LISTINGS = [
    (json.dumps([_device(0, _LOOKER, _KERNEL), *(_device(n, _LOOKER) for n in (1, 2, 3))]),
     _REFUSED.format("nc0-nc1")),
    (json.dumps([_device(0, _LOOKER), _device(1, _LOOKER, _OTHER), _device(2, _LOOKER, _OTHER),
                 _device(3, _LOOKER)]),
     _REFUSED.format("nc1-nc3")),
]  # fmt: skip
"""Incidents 1 and 2: a listing and a log. 1: PID 4711, and cores 2-3 are free. 2: PID 8080, and no
three neighbours are free."""

_READY = "2026-Nov-20 23:00:02.114 INFO  NRT:nrt_init  Neuron Runtime is ready"
_WAITS = "ERROR CCOM  Timeout waiting for RX (waited 120 sec) - retrying"
_HANG = (
    "ERROR TDRV:exec  (FATAL-RT-UNDEFINED-STATE) missing collectives status on Neuron Device 0 NC"
    " 0, model 0 - suspected hang in collectives operation 0 out of 100"
)
LOGS = [
    [
        f"{_READY}\n2026-Nov-20 23:20:31.500 {_HANG}",
        f"{_READY}\n2026-Nov-20 23:02:11.020 {_WAITS}\n2026-Nov-20 23:20:01.118 ERROR TDRV:exec"
        "  [MLA 3][NC 1] DMA TX engine 1 is in an abort state\n2026-Nov-20 23:20:02.118 ERROR"
        " NMGR:dlr_infer  Inference completed with err",
        f"{_READY}\n2026-Nov-20 23:20:32.417 {_HANG}",
    ],
    [
        f"{_READY}\n2026-Nov-20 23:22:40.900 {_WAITS}\n2026-Nov-20 23:24:44.310 {_WAITS}",
        f"{_READY}\n2026-Nov-20 23:22:41.007 {_WAITS}",
        f"{_READY}\n2026-Nov-20 23:20:38.250 INFO  neuronx-cc: compilation of graph 3 began",
    ],
]
"""Incidents 3 and 4: the logs of three ranks. 3: rank 1, dma, replace. 4: rank 2, compiling, wait.
"""


def _report(
    *halves: tuple[float, float], host_ms: float = 0.8, models: int = 2, completed: int = 460
) -> dict[str, Any]:
    cores = {
        str(core): {
            "neuroncore_utilization": sum(pair) / 2,
            "v3d": {
                f"nc_v3.{2 * core + half}": {"neuroncore_utilization": value}
                for half, value in enumerate(pair)
            },
        }
        for core, pair in enumerate(halves)
    }
    latency = {"total_latency": {"p50": 0.01 + host_ms / 1000}, "device_latency": {"p50": 0.01}}
    return {
        "neuroncore_counters": {"neuroncores_in_use": cores},
        "execution_stats": {
            "period": 5.0,
            "error_summary": {"numerical": 0, "transient": 0, "hardware": 0},
            "execution_summary": {"completed": completed, "completed_with_num_err": 0},
            "latency_stats": latency,
        },
        "memory_used": {"loaded_models": [{"model_id": 10001 + n} for n in range(models)]},
    }


_BUSY = _report((85.1, 84.4), (85.9, 84.0))
_PAUSE = _report((0.0, 0.0), (0.0, 0.0), completed=0)
_PAUSE["execution_stats"]["latency_stats"] = {"total_latency": None, "device_latency": None}
REPORTS = [
    [_BUSY, _PAUSE, _BUSY, *[_report((85.0, 0.7), (84.8, 85.3))] * 3],
    [_BUSY, _BUSY, *[_report((38.5, 38.9), (38.1, 38.6), host_ms=14.2, completed=205)] * 3],
]
"""Incidents 5 and 6: reports of neuron-monitor. 5: idle core since report 3; 1 is a pause. 6: host
since report 2."""

_ASKED = {"aws.amazon.com/neuron": "16"}


def _task(namespace: str, labels: dict[str, str], limits: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "train", "resources": {"requests": limits, "limits": limits}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": namespace, "labels": labels},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


CLUSTER = {
    "nodes": [
        {"name": "node-0", "allocatable": {**_ASKED, "cpu": "190"}, "used": {}},
        {"name": "node-1", "allocatable": {**_ASKED, "cpu": "190"}, "used": {}},
    ],
    "claim_templates": ["four-connected"],
}
TASKS = [
    (_task("default", {}, {"aws.amazon.com/neuron": 32}), CLUSTER),
    (_task("hyperpod-ns-search", {}, {"aws.amazon.com/neuron": 16}), CLUSTER),
]
"""Incidents 7 and 8: a job and its cluster. 7: too many. 8: no queue."""
