"""The models that `course.py bench` measures: small, made from a seed, the same on every device.

torch, and what needs it, is imported late: it takes seconds to load.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from utils.xla.devices import Device

if TYPE_CHECKING:
    from torch import Tensor, nn

WORKLOADS = {
    "mlp": "a perceptron of three layers, 256 features",
    "cnn": "two convolutions on images of 3 x 32 x 32",
    "gpt": "a GPT of two layers and width 64, 64 tokens to logits",
}
FORMATS = ("float32", "bfloat16")
SEED = 0
CLASSES, LENGTH, PROMPT = 96, 64, 16


def model(name: str) -> "nn.Module":
    """The model in evaluation mode, on the CPU, with weights of `SEED`.

    Raises: ValueError for a name that is not in `WORKLOADS`.
    """
    import torch

    from utils.xla import networks

    if name not in WORKLOADS:
        raise ValueError(f"there is no model {name!r}: choose {', '.join(WORKLOADS)}")
    made = {
        "mlp": lambda: networks.mlp(features=256, hidden=512, classes=CLASSES),
        "cnn": lambda: networks.cnn(classes=CLASSES),
        "gpt": lambda: networks.TinyGPT(CLASSES, context=LENGTH),
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return made[name]().eval()


def inputs(name: str, batch: int) -> "Tensor":
    """A batch on the CPU: rows of numbers, images, or int64 token ids [batch, 64]."""
    import torch

    random = torch.Generator().manual_seed(SEED + 1)
    if name == "gpt":
        return torch.randint(CLASSES, (batch, LENGTH), generator=random)
    return torch.randn(batch, *{"mlp": (256,), "cnn": (3, 32, 32)}[name], generator=random)


def step(
    name: str, device: Device, batch: int = 1, dtype: str = "float32", compiled: bool = False
) -> "Callable[[], Tensor]":
    """One request of `batch` items: its inputs go to the device, logits [..., 96] stay there.

    dtype: "float32", or "bfloat16" for products of matrices in it, by autocast.
    compiled: as of `runs.Plan`.
    """
    import torch

    if dtype not in FORMATS:
        raise ValueError(f"there is no format {dtype!r} here: choose {' or '.join(FORMATS)}")
    there, here = model(name).to(device.torch), inputs(name, batch)
    network = device.compiled(there) if compiled else there

    def call() -> "Tensor":
        with torch.no_grad(), device.autocast(dtype == "bfloat16"):
            return network(here.to(device.torch))

    return call


def generation(device: Device) -> "tuple[Callable[[], Tensor], Callable[[], Tensor]]":
    """`begin` and `step` of `utils.serving.bench.tokens`: the GPT continues a prompt of 16 tokens.

    In float32, with the cache of fixed shape of `utils.training.finetune.decoding`: one graph
    takes the prompt in, one makes every other token. Each call returns an id on the device, int64
    [1, 1];
    there is room for 49 of a text, and a later one raises IndexError.
    """
    import torch

    from utils.training.finetune import decoding

    there = model("gpt").to(device.torch)
    prompt = inputs("gpt", 1)[:, :PROMPT]
    text: dict[str, Any] = {}

    def advance(ids: "Tensor") -> "Tensor":
        if text["length"] + ids.shape[1] > LENGTH:
            raise IndexError(f"the text has {text['length']} tokens, its cache holds {LENGTH}")
        start = torch.tensor([text["length"]]).to(device.torch)
        with torch.no_grad():
            logits = decoding.advance(there, text["cache"], ids, start)
        text["length"] += ids.shape[1]
        text["newest"] = logits[:, -1:].argmax(-1)
        return text["newest"]

    def begin() -> "Tensor":
        text.update(cache=decoding.empty(there, 1, LENGTH), length=0)
        return advance(prompt.to(device.torch))

    return begin, lambda: advance(text["newest"])
