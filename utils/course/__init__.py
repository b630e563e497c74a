"""What the course consists of, and what a notebook of it needs to be one.

- `catalog`, `notebooks`, `labgen`, `readme`: lessons and labs as they lie in the repository
- `lesson`, `quiz`, `progress`, `earlier`: predictions, questions, points, answers to earlier labs
- `home`, `tracks`, `running`: the first page, ways through the course, the notebooks that run
- `copies`, `merge`, `parcel`: the learner's own copies, brought up to date, carried elsewhere
- `runner`: executes notebooks; `kernel_server`: forks kernels for tests; `kernels`: ends idle ones
- `paths`: the ways to put a model on Trainium, and the lessons that serve them
- `shown`: a result as text and as HTML

May import: facts. Used by: every room above.
"""
