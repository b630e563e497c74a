"""Instruments for PyTorch/XLA: what is recorded, compiled, executed, moved, and when.

- `defaults`, `env`, `devices`, `device_cells`: what torch_xla needs, which machine this is, and
  code that runs on every backend
- `meter`, `graph`, `hlo`, `doctor`: counts, graphs, their FLOP and bytes, why a graph is new
- `parity`, `fresh`, `children`: values within derived tolerances; code in a process of its own
- `spmd`, `buckets`, `manifest`: sharded programs, padding, checked folders of compiled graphs
- `networks`, `corpus`: the small models and the text that everything is measured with

torch_xla takes seconds to load and reads its environment once, so it is imported where it is used,
after `defaults.set_defaults`; modules that need no tensors import torch late, too.

May import: facts, course, chip, cost. Used by: training, serving, show, labs, most lessons.
"""
