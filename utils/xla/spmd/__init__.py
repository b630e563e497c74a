"""SPMD on virtual devices, and what the compiler made of it: `with spmd.Compiled() as program`.

One process, several devices, one program: annotations say how tensors are divided, the partitioner
writes the communication. Here it is counted in the compiled text: kind, number, bytes, groups.
"""

from utils.xla.spmd.collectives import KINDS, Collective, collectives, totals
from utils.xla.spmd.memory import Memory, memory
from utils.xla.spmd.session import ENVIRONMENT, Compiled, Program, environment, run, start
