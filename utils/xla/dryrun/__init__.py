"""The dry run: anybody's training script for a few steps on XLA's CPU backend, unedited and
bounded, and what it would do to a Trainium chip.

`dry_run_script(path, arguments)` runs a script in a copy of its folder, `dry_run(function)` a
function; both return a `Report`. Requests for CUDA and Neuron devices go to the XLA device, and the
report says which. A step ends where the script's own step marker does; in a script without any,
after `optimizer.step()`, before `model.zero_grad()` where weights are updated by hand, and between
batches of a loader that are not trained on. Steps of an evaluation are listed, but they do not use
up the number of steps of a script that trains.

Of the compile cache it says which graphs there are, who asked for them, after how many steps no
more are compiled, and how many graphs of a second run are known. What it cannot say: seconds,
numerics of the chip, what the Neuron compiler refuses beyond the published list in
`facts/data/neuron_operators.yaml`, and what happens between several processes.
"""

from utils.xla.dryrun.bounds import Bounds
from utils.xla.dryrun.report import Report, as_text
from utils.xla.dryrun.start import dry_run, dry_run_script
