"""Twenty kernels to write, in five steps of difficulty: tasks, checks, stars, a board of bests.

- `puzzles.yaml`: the tasks as data, read by `catalog`; `picture`: their tiles as text
- `references`: what each has to return, in NumPy; `mistakes`: what usual wrong kernels return
- `sources`: what a file may not say; `observing`: a kernel run in a process of its own; `judging`:
  the verdict, with stars; `board`: one's own bests; `command`: `nki puzzle`
- `solutions`: kernels of ours, a file for each step; `recording`: writes their estimates down

Times are estimates of the course's model. The process keeps accidents away, not attackers: a
kernel is run as the user who asks for it.

May import: what `utils.nki` may, its simulator and tool. Used by: the command `nki`, show.
"""
