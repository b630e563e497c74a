"""How the answer of exercise 4 is run, in a process of its own."""

from collections.abc import Callable
from typing import Any

from utils.labs import Answer, Facts
from utils.labs.lab11 import decoder
from utils.labs.lab11.entered import measured
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
        facts, response, tensors = measured(
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
