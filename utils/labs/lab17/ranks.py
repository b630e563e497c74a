"""Incidents 3 and 4 of lab 17: several ranks complain, one of them has the reason."""

import random

from utils.labs import Facts

WEIGHTS = {"rank": 5, "cause": 4, "action": 3}
FORM = "`first_failure` returned {strange}: return {{'rank': ..., 'cause': ..., 'action': ...}}"
ACTIONS = {
    "sram": "replace",
    "hbm": "replace",
    "dma": "replace",
    "repairable hbm": "reload",
    "inputs": "inputs",
    "compiling": "wait",
}
"""Causes, and what to do."""
_HBM = "TDRV:exec  (FATAL-RT-UNDEFINED-STATE) Uncorrectable HBM memory error is detected."
_HBM += " Execution results may be invalid. Please "
_LINES = {
    "sram": "TDRV:exec  (FATAL-RT-UNDEFINED-STATE) [ND {d}][NC {c}] Uncorrectable memory error is"
    " detected, metadata: 0x16. Please terminate or stop/start this instance to prevent future"
    " impact from the hardware error.",
    "hbm": _HBM + "terminate this instance to prevent future impact from the hardware error.",
    "repairable hbm": _HBM + "reload the neuron driver or reboot your EC2 instance to prevent"
    " future impact from the hardware error.",
    "dma": "TDRV:exec  [MLA {d}][NC {c}] DMA TX engine {c} is in an abort state",
    "inputs": "TDRV:generate_custom_notification_msg  nd{d}:nc{c}:h_model.id1001: Received"
    " notification generated at runtime: failed to run scatter/gather (indirect memory copy), due"
    " to out-of-bound access.",
    "compiling": "neuronx-cc: compilation of graph {c} began",
}
_HANG = "TDRV:exec  (FATAL-RT-UNDEFINED-STATE) missing collectives status on Neuron Device {d} NC"
_HANG += " {c}, model 0 - suspected hang in collectives operation 0 out of 100"
_WAITS = "CCOM  Timeout waiting for RX (waited 120 sec) - retrying"
_GONE = "CCOM  RX, connection closed by remote peer"


def make_incident(rng: random.Random, cause: str) -> Facts:
    """An incident with 4 to 6 ranks: the cause on one, what follows from it on the others."""
    count = rng.randint(4, 6)
    culprit = rng.randrange(1, count)
    # Another rank compiled long ago: one before the rank that compiles now.
    others = [rank for rank in range(count) if rank != culprit]
    slow = rng.choice(others[:culprit] if cause == "compiling" else others)
    lines: list[list[tuple[int, str, str]]] = [[] for _ in range(count)]

    def say(rank: int, second: float, level: str, text: str) -> None:
        place = {"d": rng.randrange(16), "c": rng.randrange(4)}
        lines[rank].append((round(second * 1000), level, text.format(**place)))

    for rank in range(count):
        say(rank, rng.uniform(0, 5), "INFO", "NRT:nrt_init  Neuron Runtime is ready")
        if rank != slow:
            say(rank, 130 + rng.uniform(0, 3), "ERROR", _WAITS)
    say(slow, 8, "INFO", "neuronx-cc: compilation of graph 1 began")
    say(slow, 160, "INFO", "neuronx-cc: compilation of graph 1 ended")
    at = rng.uniform(1000, 2000)
    say(culprit, at, "INFO" if cause == "compiling" else "ERROR", _LINES[cause])
    if cause == "compiling":
        for rank in others:
            for turn in range(1, rng.randint(2, 4)):
                say(rank, at + 121 * turn + rng.uniform(0, 9), "ERROR", _WAITS)
    else:
        say(culprit, at + 1, "ERROR", "NMGR:dlr_infer  Inference completed with err")
        for rank in others:
            follows = rng.choice((_HANG, _GONE)) if rank else _HANG
            say(rank, at + 30 + rng.uniform(0, 9), "ERROR", follows)
            if rng.random() < 0.5:
                say(rank, at + 41, "ERROR", "NRT:nrt_infodump  Failure in nrt_execute()")
        benign = "kernel: efa 0000:a0:1a.0: Failed to process command DEREG_MR (opcode 8)"
        say(others[-1], at + 60, "ERROR", benign + " comp_status 7 err -22")
        if culprit != 0 and rng.random() < 0.5:
            say(0, at + 62, "ERROR", "NMGR:dlr_infer  Inference completed with err")
    logs = []
    for mine in lines:
        mine.sort()
        logs.append("\n".join(f"{_clock(ms)} {level:5} {text}" for ms, level, text in mine))
    right = {"rank": culprit, "cause": cause, "action": ACTIONS[cause]}
    return {"logs": logs, "right": right, "words": {"cause": cause}}


def _clock(ms: int) -> str:
    minutes, rest = divmod(ms, 60_000)
    return f"2026-Nov-20 23:{minutes:02}:{rest / 1000:06.3f}"


def rank_cases(rng: random.Random) -> list[Facts]:
    """Eight incidents, of each cause at least one, in two cases."""
    causes = rng.sample(list(ACTIONS), len(ACTIONS))
    incidents = [make_incident(rng, cause) for cause in (*causes, "compiling", "repairable hbm")]
    return [{"incidents": incidents[:3]}, {"incidents": incidents[3:]}]


def rank_words(case: Facts) -> str:
    """What a card says of a case."""
    counts = ", ".join(str(len(incident["logs"])) for incident in case["incidents"])
    return f"runs of {counts} ranks"
