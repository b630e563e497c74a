"""An engine's steps without a model: requests come, a plan says what each step computes."""

from typing import Any

Plan = list[tuple[int, int]]
"""Request and tokens, for each request that a step computes something of."""


class Traffic:
    """requests: [step of arrival, tokens of the prompt, tokens of the answer], in order of arrival.
    slots: requests that may run at once. budget: tokens of a step.
    """

    def __init__(self, requests: list[list[int]], slots: int, budget: int) -> None:
        self.requests, self.slots, self.budget = requests, slots, budget
        self.step = 0
        self.left = [prompt for _, prompt, _ in requests]  # of the prompt
        self.answered = [0] * len(requests)
        self.running: list[int] = []

    @property
    def waiting(self) -> list[int]:
        """Requests that have arrived and have no slot, the oldest first."""
        return [
            number
            for number, (arrival, _, _) in enumerate(self.requests)
            if arrival <= self.step and not self.answered[number] and number not in self.running
        ]

    def seen(self, number: int) -> dict[str, Any]:
        """A request as a scheduler sees it. It cannot see how long the answer gets."""
        decoding = not self.left[number]
        return {"id": number, "left": self.left[number] or 1, "decoding": decoding}

    def forward(self) -> bool:
        """Go to the next step that has something to compute; False if there is none."""
        coming = [arrival for arrival, *_ in self.requests if arrival > self.step]
        if not self.running and not self.waiting and coming:
            self.step = min(coming)
        return bool(self.running or self.waiting)

    def run(self, plan: Plan) -> None:
        """One step. The last token of a prompt gives the first one of the answer."""
        self.running += [number for number, _ in plan if number not in self.running]
        for number, tokens in plan:
            self.left[number] = max(self.left[number] - tokens, 0)
            self.answered[number] += not self.left[number]
            if self.answered[number] == self.requests[number][2]:
                self.running.remove(number)
        self.step += 1
