"""How the LoRA of exercise 1 is run: added to a network, trained for one step, merged."""

from typing import Any

from utils.labs import Answer, Facts
from utils.labs.forbidden import forbid
from utils.labs.lab11 import nested
from utils.labs.lab11.entered import SHUT
from utils.labs.plain import describe, number


def adapt(add_lora: Answer, merge: Answer, layer: Any, case: Facts) -> Facts:
    """Runs in a process of its own."""
    import torch
    import torch_xla

    torch.set_num_threads(1)
    device = torch_xla.device() if case["device"] == "xla" else torch_xla.device() and "cpu"
    model, x = nested.draw(case)
    model, x = model.to(device), x.to(device)
    given = dict(model.named_parameters())
    keys, start = list(model.state_dict()), model(x).detach().cpu()
    with forbid("lab11.ex1", *SHUT):
        add_lora(model, set(case["names"]), case["rank"], case["alpha"])
        out = model(x)
        if out.requires_grad:
            out.square().mean().backward()
        torch_xla.sync()  # all that was made so far in one graph; each compile takes its time
        facts: Facts = {
            "layers": _kinds(model, layer),
            "peft": _of_peft(model),
            "trainable": sum(p.numel() for p in model.parameters() if p.requires_grad),
            "unfrozen": [name for name, p in given.items() if p.requires_grad],
            "start_off": _off(out, start),
            "learning": {},
            "ranks": {},
            "base_gradients": 0,
            "maps": {},
        }
        facts["base_gradients"] = sum(p.grad is not None for p in given.values())
        for (first, *_), own in _adapters(model, case, layer):
            facts["learning"][first] = sum(_moves(item) for item in own)
            facts["ranks"][first] = max((_rank(item) for item in own), default=0)
        with torch.no_grad():
            facts["maps"] = _fill(model, case, layer)
            filled = model(x).cpu()
        merge(model)  # by itself, as a learner calls it
        torch_xla.sync()
        facts["merge_off"] = _off(model(x), filled)
    facts["merged"] = _kinds(model, layer)
    facts["same_keys"] = sorted(model.state_dict()) == sorted(keys)
    return facts


def _at(model: Any, place: str) -> Any:
    for part in place.split("."):
        model = getattr(model, part, None)
    return model


def _kinds(model: Any, layer: Any) -> dict[str, str]:
    """What is at the place of each linear layer that there was: "lora", "linear", or something
    else; and whether what was shared still is.
    """
    from torch import nn

    kinds = {}
    inside = [f"blocks.{k}.{name}" for k in range(2) for name in nested.IN_BLOCKS]
    for place in [*inside, "head"]:
        result = _at(model, place)
        is_lora = isinstance(layer, type) and isinstance(result, layer)
        kinds[place] = "lora" if is_lora else "linear" if type(result) is nn.Linear else "other"
        if kinds[place] == "linear" and (result._forward_hooks or result._forward_pre_hooks):
            kinds[place] = "hooked"
    kinds["shared"] = str(_at(model, "blocks.0.out") is _at(model, "blocks.1.out"))
    return kinds


def _of_peft(model: Any) -> bool:
    return any(
        kind.__module__.partition(".")[0] == "peft"
        for module in model.modules()
        for kind in type(module).__mro__
    )


def _adapters(model: Any, case: Facts, layer: Any) -> Any:
    """The places of each layer with an adapter, and the parameters that it trains."""
    if not isinstance(layer, type):
        return
    for where in nested.places(case):
        result = _at(model, where[0])
        is_lora = isinstance(result, layer)
        if is_lora:
            yield where, [parameter for parameter in result.parameters() if parameter.requires_grad]


def _moves(parameter: Any) -> bool:
    return parameter.grad is not None and bool((parameter.grad.cpu() != 0).any())


def _rank(parameter: Any) -> int:
    import torch

    values = parameter.detach().cpu()
    return int(torch.linalg.matrix_rank(values)) if values.ndim == 2 else 0


def _fill(model: Any, case: Facts, layer: Any) -> Facts:
    """Fill each adapter with random numbers. What it computes then: of each layer its matrix, what
    it makes of zeros, and its adapter's matrices.
    """
    import torch
    import torch_xla

    seen, pending = {}, {}
    generator = torch.Generator().manual_seed(case["seed"])
    for where, own in list(_adapters(model, case, layer)):
        result, matrices = _at(model, where[0]), []
        if not 0 < len(own) <= _MOST_MATRICES:
            continue
        for item in own:
            values = 0.4 * torch.randn(item.shape, generator=generator)
            item.copy_(values.to(item.device))
            matrices.append(values.tolist())
        width = case["inner"] if where[0].endswith("out") else case["width"]
        unit = torch.cat([torch.zeros(1, width), torch.eye(width)])
        # Two at once, as in a batch of sentences; all are read later, so that they are one graph.
        pending[where[0]] = result(torch.stack([unit, unit]).to(own[0].device))[1]
        seen[where[0]] = {"matrices": matrices}
    torch_xla.sync()
    for place, made in pending.items():
        offset, *rows = made.cpu().tolist()
        seen[place] |= {"offset": offset, "rows": rows}
    return seen


_MOST_MATRICES = 4


def _off(result: Any, right: Any) -> float | str:
    """The largest distance of two outputs, relative to the largest output if that is above 1;
    anything else than such an output as what it is.
    """
    import torch

    if not isinstance(result, torch.Tensor) or result.shape != right.shape:
        return describe(result)
    return number(((result.detach().cpu() - right).abs().max() / right.abs().max().clamp(1)).item())
