"""What the course consists of, and what a notebook of it needs to be one.

- `catalog`, `notebooks`, `labgen`, `readme`: lessons and labs as they lie in the repository
- `lesson`, `quiz`, `progress`, `earlier`: predictions, questions, points, answers to earlier labs
- `copies`, `merge`, `parcel`: the learner's own copies, brought up to date, carried elsewhere
- `runner`: executes notebooks; `kernel_server`: forks kernels for tests
- `shown`: a result as text and as HTML

May import: facts. Used by: every room above.
"""
