"""Save what a training run needs to go on, so that no moment of death loses or alters it.

`save(folder, step, state)` and `latest(folder)` are the pair that a program needs; `Background`
saves while training goes on; `random_states` and `set_random_states` are what is most often
forgotten. `program` is a training to try them on, `kills` ends it.
"""

from utils.training.checkpoint.background import Background
from utils.training.checkpoint.files import CheckpointError, Damaged, NotSaved, Torn
from utils.training.checkpoint.folder import (
    Found,
    NoneGood,
    latest,
    load,
    path_of,
    save,
    set_aside,
    steps,
)
from utils.training.checkpoint.kills import MOMENTS, Kill
from utils.training.checkpoint.program import PARTS, Outcome, Plan, train
from utils.training.checkpoint.states import on_host, random_states, set_random_states
