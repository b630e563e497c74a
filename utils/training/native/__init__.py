"""Native distributed training: one job with DDP, FSDP2 and DTensor's tensor parallelism, on gloo
ranks of one machine or, by the same script, on the ranks of several.

- `predicted`: what a layout sends in a step, from shapes and the mesh; needs no torch
- `job`: the job itself, its collectives counted, its results compared with one process
- `ranks`: runs a function on ranks that are processes of this machine
- `overlap`: when gathers and computation run, modelled
"""
