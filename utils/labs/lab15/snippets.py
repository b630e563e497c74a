"""Lines of programs for PyTorch/XLA on Neuron, and statements to choose evidence from: exercise 2.

Each stands for what becomes of it with TorchNeuron, the native backend.
"""

from utils.facts import fact

VERDICTS = {
    "unchanged": "the line stays as it is, and so does its reason",
    "drop": "nothing takes its place, because what it is for happens without it",
    "replace": "a name or an argument in it has a counterpart, in the same place",
    "elsewhere": "what it is about is still so, and is set or seen in another place",
}

SNIPPETS = {
    "device": "model.to(torch_xla.device())",
    "step marker": "optimizer.step()\ntorch_xla.sync()",
    "mixed precision": 'with torch.autocast("xla", dtype=torch.bfloat16):\n    loss = loss_of(x)',
    "process group": 'torch.distributed.init_process_group("xla", init_method="xla://")',
    "buckets": "x = pad(x, to=min(b for b in (64, 128, 256) if b >= x.shape[1]))",
    "cache": "export NEURON_COMPILE_CACHE_URL=/cache    # in the shell, before the job",
    "fallbacks": 'on_the_host = [n for n in met.counter_names() if n.startswith("aten::")]',
    "accelerator": "device = torch.accelerator.current_accelerator()\nx = x.to(device)",
}
"""By name: lines as they stand in a program for PyTorch/XLA."""

STATEMENTS = (
    "torchneuron-status",
    "torchneuron-device",
    "torchneuron-eager",
    "torchneuron-adaptive",
    "torchneuron-compile",
    "torchneuron-autocast",
    "torchneuron-distributed",
    "torchneuron-accelerator",
    "torchneuron-fallback",
    "torchneuron-profiler",
    "torchneuron-deterministic",
    "neuron-cache-torchneuron",
    "neuron-cache-location",
    "neuron-xla-lazy",
)
"""Keys of statements with their sources; each verdict rests on one of them."""


def show() -> None:
    """Print the snippets and the statements."""
    for name, code in SNIPPETS.items():
        print(f"{name}\n    " + code.replace("\n", "\n    "))
    print()
    for key in STATEMENTS:
        print(f"{key}: {fact(key).text}")
