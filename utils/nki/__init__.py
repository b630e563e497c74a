"""Kernels of the Neuron Kernel Interface on a CPU: their values, and an estimate of their time.

- `simulator`: executes kernels under the rules of a NeuronCore, and models how long they take
- `package`: what a kernel imports as `nki`; put this folder on PYTHONPATH
- `kernels`: the kernels of the lessons; `validation`: estimates against published measurements
- `tool`: the command `nki` and a plugin of pytest, as the wheel trn-nki has them
- `puzzles`: twenty kernels to write, with checks, stars and a board of one's own bests
- `bench`: how fast the simulator itself is; `interrupt`: an exception for another thread

Needs NumPy only. May import: facts, course, chip. Used by: show, labs, cli, lessons 09 and 10, and
by authors of kernels without the course.
"""
