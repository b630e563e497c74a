"""What the silicon can do: engines, memories, links, rooflines and number formats of a chip.

Models only, in NumPy and plain Python: figures come from `utils.facts`, nothing here needs torch.

- `hardware`, `roofline`, `training_memory`: peaks, ridge points, what fits into memory
- `landscape`: chips of five vendors side by side
- `topology`, `collectives`: links between chips, and how long collectives take on them
- `formats`, `mx`, `accumulate`, `sparsity`: what a number format holds, rounds and loses

May import: facts, course. Used by: nki, cost, xla, training, serving, show, labs, lessons 01, 05,
07.
"""
