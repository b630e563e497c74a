"""Input pipelines: what waiting for data costs, measured on any clock and predicted exactly.

`Watched(loader, clock)` measures any loop over batches. `predict(...)` says what torch's DataLoader
and torch_xla's MpDeviceLoader would do, from the times that loads and steps take. `VirtualLoader`
runs a real load function in virtual time, on a `FakeClock`: no second passes, and the answer is the
same on every machine.
"""

from utils.training.loading.clocks import Clock, FakeClock, RealClock
from utils.training.loading.dataset import Stored
from utils.training.loading.schedule import Schedule, Uploader, predict, workers_needed
from utils.training.loading.virtual import VirtualLoader
from utils.training.loading.watch import Waits, Watched

__all__ = [
    "Clock",
    "FakeClock",
    "RealClock",
    "Schedule",
    "Stored",
    "Uploader",
    "VirtualLoader",
    "Waits",
    "Watched",
    "predict",
    "workers_needed",
]
