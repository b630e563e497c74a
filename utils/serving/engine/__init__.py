"""A small engine that serves a language model: continuous batching on graphs of fixed shape.

    from utils.serving.engine import Engine, Request, Settings, letters, runner
    model, vocabulary = letters.train()
    engine = Engine(runner.Runner(model, Settings(context=128), "cpu"))
    for token in engine.stream(Request(vocabulary.encode("the old "), max_tokens=40)):
        print(vocabulary.decode([token]), end="")

- `requests`, `sampling`: what is asked for, what has become of it, how a token is chosen
- `blocks`: the allocator of cache blocks, and the prefixes that they keep
- `scheduler`: who computes what in each step; pre-emption, cancellation
- `loop`: the engine: steps, streaming, stops, counts
- `llama`, `runner`, `letters`: the model, its cache on a device, and a small trained one

All but the last line is plain Python and NumPy. The modules of the last line import torch when they
are imported, as everything in them is torch's: name them when you need them.
"""

from utils.serving.engine.blocks import BlockPool
from utils.serving.engine.loop import Counts, Engine, Overloaded, Runner
from utils.serving.engine.requests import Request, Sequence, Settings
from utils.serving.engine.sampling import Sampling, choose, probabilities
from utils.serving.engine.scheduler import Chunk, Scheduler, Step
