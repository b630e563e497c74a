"""`python -m utils.training.coldstart SETTINGS`: the training process that `start` starts, a tiny
GPT, a few steps, and what the two compile caches did meanwhile.

It runs under torch 2.9 and 2.7 and needs nothing else. A process of its own, because a process can
have one persistent cache, named before its device is opened, and because its counters then count
nothing but this training. What it imports comes late, because torch_xla reads the environment when
it is loaded.
"""

import json
import platform
import resource
import signal
import sys
import time
from typing import Any

from utils.xla import corpus, env

COUNTERS = {
    "compiles": "UncachedCompile",
    "reuses": "CachedCompile",
    "hits": "PersistentCacheHit",
    "misses": "PersistentCacheMiss",
    "failures": "PersistentCacheDeserializeFailure",
}


def main() -> None:
    """Read the settings, a JSON object, from the command line; write the result to stdout."""
    # A notebook's interrupt reaches every process of its kernel, and is not meant for this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = json.loads(sys.argv[1])
    # A damaged entry can end the process by a signal; nobody wants the image of its memory.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(json.dumps(train(settings)))


def train(settings: dict[str, Any]) -> dict[str, Any]:
    """Train as `utils.training.coldstart.start` describes; returns counts, seconds and losses."""
    env.set_defaults()
    import torch
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.debug.metrics as metrics
    import torch_xla.runtime as runtime

    if settings["cache"]:
        runtime.initialize_cache(settings["cache"], readonly=settings["readonly"])
    device = torch_xla.device()
    batches, vocabulary = _batches(settings)
    model, optimizer = _model(settings, vocabulary, device)
    batches = [tuple(part.to(device) for part in batch) for batch in batches]
    losses, seconds = [], []
    for ids, targets in batches:
        begin = time.perf_counter()
        loss = _step(model, optimizer, ids, targets)
        torch_xla.sync()
        xm.wait_device_ops()
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    return {
        **{name: metrics.counter_value(counter) or 0 for name, counter in COUNTERS.items()},
        "graph_seconds": _seconds(metrics.metric_data("CompileTime")),
        "load_seconds": sum(_seconds(metrics.metric_data("PersistentCacheLoad"))),
        "step_seconds": seconds,
        "losses": losses,
        "torch": torch.__version__,
        "torch_xla": torch_xla.__version__,
        "python": platform.python_version(),
    }


def _batches(settings: dict[str, Any]) -> tuple[list[tuple[Any, Any]], int]:
    """One batch for each step, ids and next ids, and the size of the vocabulary. All on the CPU."""
    import torch

    text = corpus.text(20_000)
    letters = corpus.Vocabulary.of(text)
    data = torch.tensor(letters.encode(text))
    generator = torch.Generator().manual_seed(0)
    batches = []
    for step in range(settings["steps"]):
        length = settings["lengths"][step % len(settings["lengths"])]
        begins = torch.randint(len(data) - length, (settings["batch"], 1), generator=generator)
        windows = data[begins + torch.arange(length + 1)]
        batches.append((windows[:, :-1].contiguous(), windows[:, 1:].contiguous()))
    return batches, len(letters)


def _model(settings: dict[str, Any], vocabulary: int, device: Any) -> tuple[Any, Any]:
    import torch

    from utils.xla.networks import TinyGPT

    torch.manual_seed(0)
    model = TinyGPT(
        vocabulary,
        width=settings["width"],
        heads=settings["heads"],
        layers=settings["layers"],
        context=settings["context"],
    )
    # The weights take their type on the CPU: a conversion on the device would be one more graph.
    model = model.to(getattr(torch, settings["dtype"])).to(device)
    make = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[settings["optimizer"]]
    return model, make(model.parameters(), lr=settings["lr"])


def _step(model: Any, optimizer: Any, ids: Any, targets: Any) -> Any:
    from utils.xla.networks import next_token_loss

    optimizer.zero_grad()
    loss = next_token_loss(model(ids), targets)
    loss.backward()
    optimizer.step()
    return loss


def _seconds(metric: tuple[int, float, list[tuple[float, float]]] | None) -> list[float]:
    """The samples of a metric of torch_xla, which are in nanoseconds."""
    return [nanoseconds / 1e9 for _, nanoseconds in metric[2]] if metric else []


if __name__ == "__main__":
    main()
