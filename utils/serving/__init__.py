"""Serving on a clock of its own: requests arrive, wait, are batched and answered, and nothing runs.

    from utils import serving
    due = serving.poisson(rate_per_s=50, count=2000, seed=1)
    run = serving.open_loop(due, serving.Linear(0.010, 0.002), servers=1)
    run.latencies_s, run.throughput_per_s, run.utilisation

The seconds that go in may be measured or stated; those that come out are modelled, and the same on
every machine. Standard library and NumPy only. `bench` measures a model that really runs: on cpu,
xla, cuda or neuron. `engine` serves a language model: continuous batches on graphs of fixed shape;
`traffic` puts it under load on a clock, `endpoint` behind HTTP, as `course.py serve` does. `batch`
computes tables of items and loses none. `tokens` models what a million tokens cost on an instance
at a service level, and `published` holds that model to published runs. `speculative` and
`quantised` are drafts and fewer bits, `vllm` what vLLM on Neuron has of all this.

May import: facts, course, chip, cost, xla, training. Used by: cli, labs, lessons 12 and 16.
"""

from utils.serving.clock import (
    NEVER,
    Linear,
    Pause,
    Policy,
    Request,
    Run,
    Service,
    closed_loop,
    open_loop,
)
from utils.serving.generation import decode, largest_batch, prefill, weight_bytes
from utils.serving.queues import (
    Fleet,
    Little,
    burst,
    correct_omission,
    erlang_c,
    little,
    md1_wait_s,
    poisson,
    smallest_fleet,
    steady,
)
