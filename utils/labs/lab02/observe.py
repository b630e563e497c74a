"""What the answers of lab 02 do, as counts and plain values. Judges nothing.

The audit of an answer's source runs here too: it is a measurement, as the counts are.
"""

import inspect
import linecache
import os
import tempfile
from types import ModuleType
from typing import Any
from unittest.mock import patch

from utils.labs import Answer, Facts, Observer, training
from utils.labs.lab02 import machines
from utils.labs.lab02.problems import histogram_inputs, masked_inputs, other_weights
from utils.labs.plain import describe, numbers
from utils.labs.watch import Steps, counts, numbers_of, unused

_MOST_FINDINGS = 20


def observe_classify(answer: Answer, case: Facts) -> Facts:
    """The class that the answer gives to each finding, by its capital letter."""
    response = answer()
    given = response if isinstance(response, dict) else {}
    texts = {
        name.upper(): item.strip().lower()[:20] if isinstance(item, str) else describe(item)
        for name, item in given.items()
        if isinstance(name, str) and len(name) == 1
    }
    return {"kind": describe(response), "response": texts}


def source_of(answer: Answer) -> str:
    """The source of the whole cell or file in which an answer was written; "" if it is unknown."""
    code = getattr(inspect.unwrap(answer), "__code__", None)
    return "".join(linecache.getlines(code.co_filename)) if code else ""


def _audit(answer: Answer, target: str) -> Facts:
    """What the audit finds in the answer's cell at the level of a warning or above."""
    from utils.audit import audit_source

    source = source_of(answer)
    # Modules that other cells have imported, in a line of their own above the cell.
    names = getattr(answer, "__globals__", {}).items()
    of_torch = [(n, m.__name__) for n, m in names if isinstance(m, ModuleType)]
    imports = "; ".join(f"import {m} as {n}" for n, m in of_torch if m.startswith("torch"))
    report = audit_source(f"{imports}\n{source}", name="answer.py", target=target)
    matches = [(item.rule, item.line - 1) for item in report.at_least("warning")]
    results = [(rule, line) for rule, line in matches if line]
    return {"read": bool(source) and not report.broken, "findings": results[:_MOST_FINDINGS]}


class Places:
    """Counts the forward passes of a model by where it and its input are."""

    def __init__(self, model: Any, steps: Steps) -> None:
        self.on: dict[str, int] = {}

        # A function and no method: a copy of the model then reports here, too.
        def look(module: Any, inputs: tuple[Any, ...]) -> None:
            steps.begin()
            tensors = (*inputs, *module.parameters())
            kinds = {tensor.device.type for tensor in tensors if hasattr(tensor, "device")}
            place = kinds.pop() if len(kinds) == 1 else "mixed"
            self.on[place] = self.on.get(place, 0) + 1

        model.register_forward_pre_hook(look)


def observe_port(answer: Answer, case: Facts) -> Facts:
    """The losses of a ported `train`, what it cost the device, and the audit of its source."""
    import torch_xla

    from utils.xla.meter import Meter

    torch_xla.device()
    spare = next(unused)
    trained, batches = training.draw(case, spare)
    model, _ = training.draw(other_weights(case), spare)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = os.path.join(folder, "weights.pt")
        save_as_on_cuda(trained.state_dict(), checkpoint)
        with Meter() as meter:
            seen = Steps()
            places = Places(model, seen)
            returned = numbers_of(answer, model, batches, case["lr"], checkpoint)
            facts = seen.facts()
    return {
        **facts,
        **counts(meter.reading),
        "on_device": places.on.get("xla", 0),
        "returned": returned,
        "audit": _audit(answer, "xla"),
    }


def save_as_on_cuda(state: Any, path: str) -> None:
    """Save tensors of the CPU marked as a CUDA machine marks its own: whoever loads them has to
    say where they go."""
    import torch

    with patch.object(torch.serialization, "location_tag", lambda storage: "cuda:0"):
        torch.save(state, path)


def observe_histogram(answer: Answer, case: Facts) -> Facts:
    """The bins and counts of every call, and what the calls cost the device."""
    import torch
    import torch_xla

    from utils.xla.meter import Meter, settle

    device = torch_xla.device()
    calls, edges = histogram_inputs(case)
    # Edges that no value reaches: they change the shape, and so the graph.
    spare = next(unused)
    far = torch.arange(spare, dtype=torch.float32, device="cpu") + 1e6
    edges = torch.cat([edges, far]).to(device)
    halves = [(values / 2).to(device) for values in calls]
    settle()
    with Meter() as meter:
        returned = []
        for half in halves:
            # Pending, as the output of a model is.
            returned.append(answer(half * 2.0, edges))
            torch_xla.sync()
    pairs = [_tensors(item, 2) for item in returned]
    for pair in pairs:
        if pair["items"]:
            pair["items"][1]["values"] = _without_spare(pair["items"][1]["values"], spare)
    return {**_operators(meter.reading), "returned": pairs}


def _without_spare(values: list[Any] | None, spare: int) -> list[Any] | None:
    return values and values[: max(len(values) - spare, 0)]


def _operators(reading: Any) -> Facts:
    return {**counts(reading), "fallbacks": [name for name, _ in reading.fallbacks]}


def _tensors(value: Any, count: int) -> Facts:
    """What a tuple of tensors is, and their values."""
    items = None
    if isinstance(value, list | tuple) and len(value) == count:
        items = [_tensor(item) for item in value]
    return {"kind": describe(value), "items": items}


def _tensor(value: Any) -> Facts:
    """What a tensor is, where it is, and its values if it has at most one dimension."""
    import torch

    if not isinstance(value, torch.Tensor):
        return {"kind": describe(value), "place": "", "dtype": "", "dimensions": 0, "values": None}
    dimensions = value.dim()
    kind = describe(value) + (f", dimensions: {dimensions}" if dimensions else "")
    flat = value.detach().reshape(-1)[:1000]
    return {
        "kind": kind,
        "place": value.device.type,
        "dtype": str(value.dtype).removeprefix("torch."),
        "dimensions": dimensions,
        "values": numbers(flat.tolist())["items"] if dimensions <= 1 else None,
    }


def observe_masked_loss(answer: Answer, case: Facts) -> Facts:
    """The losses, the gradients of the real rows, and what the calls cost the device."""
    import torch
    import torch_xla

    from utils.xla.meter import Meter, settle

    device = torch_xla.device()
    rows = case["rows"]
    problems = [
        (logits.to(device).requires_grad_(), targets.to(device), mask.to(device))
        for logits, targets, mask in masked_inputs(case, spare_rows=next(unused))
    ]
    settle()
    with Meter() as meter:
        returned = []
        for logits, targets, mask in problems:
            loss = answer(logits, targets, mask)
            returned.append(loss)
            if isinstance(loss, torch.Tensor) and loss.dim() == 0 and loss.requires_grad:
                loss.backward()
            torch_xla.sync()
    gradients = [problem[0].grad for problem in problems]
    return {
        **_operators(meter.reading),
        "losses": [_tensor(item) for item in returned],
        "gradients": [
            None if g is None else numbers(g[:rows].flatten().tolist())["items"] for g in gradients
        ],
    }


def observe_legacy(answer: Answer, case: Facts) -> Facts:
    """The port of a script of PyTorch/XLA on a machine without a chip and on one with Neuron, and
    the audit of its source.
    """
    plain, neuron = (machines.on_machine(answer, case, chip) for chip in (False, True))
    return {"plain": plain, "neuron": neuron, "audit": _audit(answer, "torchneuron")}


OBSERVERS = {
    "ex1": Observer("classify", observe_classify),
    "ex2": Observer("train", observe_port),
    "ex3": Observer("histogram", observe_histogram),
    "ex4": Observer("masked_loss", observe_masked_loss),
    "ex5": Observer("train_ported", observe_legacy, apart=True),
}
