"""How the answers of exercises 2 to 5 are run, each in a process of its own."""

from collections.abc import Callable
from typing import Any

from utils.labs import Answer, Facts
from utils.labs.lab11 import decoder, tuned
from utils.labs.lab11.entered import compile_the_rest, measure
from utils.labs.plain import describe, number


def generating(generate: Answer, case: Facts) -> Facts:
    """What the answer of exercise 4 returned, and the tokens that entered the model for it."""
    import torch
    import torch_xla

    model = decoder.draw(case["seed"]).to(torch_xla.device())
    prompts = [list(ids) for ids in case["prompts"]]
    worked = [0] * len(model.layers)
    for place, layer in enumerate(model.layers):
        layer.qkv.register_forward_pre_hook(_counting(worked, place, layer.qkv))
    with torch.no_grad():
        facts, response, tensors = measure(
            "lab11.ex4", generate, model, model.tokens, prompts, case["count"]
        )
    nodes = facts["graph_nodes"]
    fours = [nodes[k : k + 4] for k in range(len(nodes) - 3)]
    listed = isinstance(response, list | tuple)
    return {
        **facts,
        "shapes": [],
        "graph_nodes": [],
        "entered": max(sum(tensor.numel() for tensor in tensors), *worked),
        "grows": any(sorted(set(four)) == four for four in fours),
        "texts": [_text(item) for item in response[: 2 * len(prompts)]] if listed else None,
    }


def _counting(worked: list[int], place: int, own: Any) -> Callable[..., None]:
    """Counts the tokens that go into a layer: without a cache, all of them for each new one."""

    def count(module: Any, inputs: tuple[Any, ...]) -> None:
        if module is own:  # and not a copy of it
            worked[place] += inputs[0].numel() // inputs[0].shape[-1]

    return count


def _text(value: Any) -> list[Any] | str:
    """The ids of one text; of anything else what it is."""
    if not isinstance(value, list | tuple):
        return describe(value)
    return [number(item) for item in value[:200]]


def tuning(fine_tune: Answer, case: Facts) -> Facts:
    """What the answer of exercise 2 returned, and the model that it left."""
    import torch_xla

    device = torch_xla.device()
    model, batches = tuned.draw(case["seed"]).to(device), tuned.batches(case)
    compile_the_rest(len(batches))
    inputs = [[list(ids) for ids in rows] for rows in batches], list(case["rates"])
    facts, _, _ = measure("lab11.ex2", fine_tune, model, model, *inputs)
    return {**facts, **_outcome(facts, model, case["seed"], 2, batches[0])}


def accumulating(accumulate: Answer, case: Facts) -> Facts:
    """What the answer of exercise 3 returned, and the model that it left."""
    import torch
    import torch_xla

    model, steps = tuned.draw(case["seed"]).to(torch_xla.device()), tuned.micro_batches(case)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=case["lr"])
    compile_the_rest(len(steps))
    given = [[(x.clone(), y.clone()) for x, y in step] for step in steps]
    facts, _, _ = measure("lab11.ex3", accumulate, model, model, optimizer, given)
    probe = tuned.sentences(case["seed"], [9, 5])
    return {**facts, **_outcome(facts, model, case["seed"], 2, probe)}


def serving(serve: Answer, case: Facts) -> Facts:
    """What the answer of exercise 5 returned, and whether base and adapters stayed as they were."""
    import torch_xla

    model = tuned.draw(case["seed"], case["slots"]).to(torch_xla.device())
    adapters, kept = _adapters(case), _adapters(case)
    held = dict(model.named_parameters())
    compile_the_rest(len(case["requests"]))
    facts, _, tensors = measure(
        "lab11.ex5", serve, model, model, adapters, tuned.requests(case), waits=True
    )
    same = all(
        adapters.get(name, {}).get("weights", {}).get(part) is not None
        and adapters[name]["weights"][part].equal(tensor)
        for name, item in kept.items()
        for part, tensor in item["weights"].items()
    )
    after = dict(model.named_parameters())
    asked = [ids.tolist() for _, ids in tuned.requests(case)]
    entered = [tensor.tolist() for tensor in tensors if tensor.dim() == 2]
    return {
        **facts,
        **_outcome(facts, model, case["seed"], case["slots"], asked[0]),
        "adapters_kept": same,
        "own": after.keys() == held.keys() and all(after[n] is held[n] for n in held),
        "answered": sum(_in_some(entered, rows) for rows in asked),
    }


def _in_some(entered: list[list[list[int]]], rows: list[list[int]]) -> bool:
    """Whether these sentences entered, whole or without their last id."""
    cut = [ids[:-1] for ids in rows]
    return any([ids[: len(cut[0])] for ids in item] == cut for item in entered)


def _adapters(case: Facts) -> dict[str, Any]:
    return {name: tuned.adapter(*item) for name, item in case["adapters"].items()}


def _outcome(facts: Facts, model: Any, seed: int, rank: int, rows: list[list[int]]) -> Facts:
    """What the model is afterwards: how far its frozen weights have moved, and the mean loss of
    some sentences with its adapters. What a stopped answer left pending is not run.
    """
    import torch

    if facts["returned"]["stopped"]:
        return {"base_moved": 0.0, "loss_after": "stopped"}

    # Found by the names they had: a model that was changed may have others.
    again, result = (
        tuned.draw(seed, rank),
        {n: p.detach().cpu() for n, p in model.state_dict().items()},
    )
    frozen = [name for name, item in again.named_parameters() if not item.requires_grad]
    whole = all(n in result and result[n].shape == p.shape for n, p in again.state_dict().items())
    if not whole:
        return {"base_moved": "missing", "loss_after": "missing"}
    state = again.state_dict()
    moved = max((result[name] - state[name]).abs().max().item() for name in frozen)
    again.load_state_dict({name: result[name] for name in state})
    inputs, targets = tuned.pad(rows, max(map(len, rows)) - 1)
    with torch.no_grad():
        logits = again(inputs).transpose(1, 2)
        loss = torch.nn.functional.cross_entropy(logits, targets)
    return {"base_moved": number(moved), "loss_after": number(loss.item())}
