"""The inputs of lab 02's exercises, drawn from a seed.

The observation moves them to the device; the judgement computes the truth. Both start here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from utils.labs import training

Case = dict[str, Any]

PROCESSES = 2
"""Processes of the training in exercise 5."""


def other_weights(case: Case) -> Case:
    """The training problem whose model the port gets: its weights are not those in the file."""
    return {**case, "seed": case["seed"] + 1}


def shared_training(case: Case) -> tuple[Any, list[list[training.Batch]]]:
    """The model of a training that processes share, and the batches of each, one per step, on the
    CPU.
    """
    model, batches = training.draw({**case, "steps": PROCESSES * case["steps"]})
    return model, [batches[rank::PROCESSES] for rank in range(PROCESSES)]


def histogram_inputs(case: Case) -> tuple[list[Any], Any]:
    """The values of each call, float32 [values], and the edges, float32 [edges], on the CPU.

    Every value is a multiple of 1/4 and every edge a multiple of 1/2, so that values lie on edges
    and nothing is rounded.
    """
    import torch

    with _random_state_of(case):
        edges = torch.arange(case["edges"], dtype=torch.float32, device="cpu") / 2
        quarters = range(-2, 2 * case["edges"])
        calls = [
            torch.randint(quarters.start, quarters.stop, (case["values"],), device="cpu") / 4
            for _ in range(case["calls"])
        ]
    return calls, edges


def masked_inputs(case: Case, spare_rows: int = 0) -> list[tuple[Any, Any, Any]]:
    """For each number in case["kept"]: logits float32 [rows, classes], targets int64 [rows] and a
    mask, bool [rows], with that many True, on the CPU.

    `spare_rows` rows with False in the mask are appended: they change the shape, and so the graph,
    but not the loss.
    """
    import torch

    rows, classes = case["rows"], case["classes"]
    kind = {"device": "cpu"}
    made = []
    with _random_state_of(case):
        for kept in case["kept"]:
            logits = 3 * torch.randn(rows, classes, dtype=torch.float32, **kind)
            targets = torch.randint(0, classes, (rows,), **kind)
            mask = torch.zeros(rows, dtype=torch.bool, **kind)
            mask[torch.randperm(rows, **kind)[:kept]] = True
            padding = (0, 0, 0, spare_rows)
            logits = torch.nn.functional.pad(logits, padding)
            targets, mask = (torch.nn.functional.pad(t, (0, spare_rows)) for t in (targets, mask))
            made.append((logits, targets, mask))
    return made


@contextmanager
def _random_state_of(case: Case) -> Iterator[None]:
    """A check must not disturb the learner's random state."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case["seed"])
        yield
