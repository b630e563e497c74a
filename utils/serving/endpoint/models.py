"""What an endpoint can serve: the small model of the course, or a Hugging Face checkpoint's folder.

Imports torch and torch_xla, as everything here is theirs.
"""

from pathlib import Path

import torch_xla

from utils.serving.endpoint.driver import Served
from utils.serving.endpoint.texts import Checkpoint, Letters, Texts
from utils.serving.engine import Engine, Settings, letters, llama
from utils.serving.engine.runner import Runner
from utils.xla.meter import Meter

BUCKETS = (8, 32, 128)


def load(folder: Path | None, cache: Path, slots: int = 4, context: int = 0) -> Served:
    """A model on XLA's device, all its graphs compiled.

    folder: of a checkpoint shaped as Llama, None for the small model. cache: where that one is
    kept. context: the most tokens of a prompt and its answer, 0 for all that the model allows.

    Raises ValueError or FileNotFoundError for a folder that cannot be served.
    """
    device = torch_xla.device()  # before any backward pass: see letters
    texts: Texts
    if folder is None:
        model, vocabulary = letters.load(cache)
        name, texts = "letters", Letters(vocabulary)
    else:
        folder = folder.resolve()
        model, texts = llama.load(folder, context), Checkpoint(folder)
        name = folder.name
    context = context or model.context
    buckets = tuple(bucket for bucket in BUCKETS if bucket <= context) or BUCKETS[:1]
    # The driver counts who waits, before the engine sees them.
    settings = Settings(context, slots, buckets=buckets, max_waiting=2**31)
    runner = Runner(model, settings, device)
    with Meter() as warming:
        runner.warm_up()
    later = Meter().__enter__()  # stays open as long as the process serves
    return Served(
        name,
        Engine(runner),
        texts,
        model.stop,
        warming.reading.compiles,
        lambda: later.so_far().compiles,
    )
