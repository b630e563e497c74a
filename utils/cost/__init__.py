"""What a run costs and whether to choose Trainium for it: models, each input with its range.

- `tco`: dollars per run, per million tokens, with uncertainty and break-even
- `decision`: Trainium, GPU or neither, as a rule that can be executed; the pilot and its evidence
- `planner`: layouts of a model on a cluster: memory, traffic, time of a step, goodput

May import: facts, course, chip, audit. Used by: training, serving, launch, show, labs, lessons 07,
13, 14.
"""
