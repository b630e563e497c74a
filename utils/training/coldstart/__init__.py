"""Cold and warm starts: a training process of its own with a persistent compile cache.

`run` starts one and returns what it counted; `start` leaves it in the background meanwhile;
`read` reads what `python3 course.py cache-lab` measured with the pair of torch and torch-xla
that can load its cache on a CPU. `python -m utils.training.coldstart` is the training process
itself.
"""

from utils.training.coldstart.process import Running, Start, run, start
from utils.training.coldstart.recording import Flip, Recording, Trial, read
