"""The rate of the Tensor Engine: half while it warms up, and again after it was idle.

From Trainium2 on the array begins a busy period at part of its rate, and ramps up after some
microseconds; it becomes cold again when it was busy for less than half of a window of that length
(AWS, Neuron Explorer).
"""

from collections import deque

from utils.nki.simulator.timing.constants import Constants


class Array:
    """The state of one array: when it began to warm up, and when it was busy of late."""

    def __init__(self, constants: Constants, warm_up: bool) -> None:
        self.window = constants.warm_up if warm_up else 0.0
        self.rate = constants.cold_rate
        self.below = constants.cold_below
        self.began = 0.0
        self.busy: deque[list[float]] = deque()

    def run(self, start: float, duration: float) -> float:
        """How long an instruction takes that begins now and takes `duration` at full rate."""
        if not self.window:
            return duration
        if not self.busy:
            self.began = start
            self.busy.append([start, start])
        elif start > self.busy[-1][1]:
            if self._was_idle(start):
                self.began = start
            self.busy.append([start, start])
        cold = self.began + self.window - start
        if cold > 0:
            work = cold * self.rate
            duration = duration / self.rate if duration <= work else cold + duration - work
        self.busy[-1][1] = max(self.busy[-1][1], start + duration)
        return duration

    def _was_idle(self, now: float) -> bool:
        since = now - self.window
        while self.busy and self.busy[0][1] <= since:
            self.busy.popleft()
        share = sum(end - max(begin, since) for begin, end in self.busy) / self.window
        return share < self.below
