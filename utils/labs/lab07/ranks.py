"""Ranks of one machine as threads: each calls the learner's function with its own gradients, and
they meet in an all-reduce as ranks of a cluster do.

On a cluster a rank that never comes lets the others wait for ever. Here that is seen at once: when
every other rank has ended, those who wait are told so.
"""

import threading
from typing import Any

from utils.labs import Answer, Facts
from utils.labs.plain import describe, number

_MOST_ROUNDS = 200
_MOST_ITEMS = 2000


class Stuck(RuntimeError):
    """Ends a rank that would wait for ever."""


class Group:
    """An all-reduce among `count` ranks.

    rounds: how many all-reduces came to their end; problem: why one could not, or None; sent_bytes
    and dtypes: what one rank put in, over all rounds.
    """

    def __init__(self, count: int) -> None:
        self.count, self.rounds, self.sent_bytes = count, 0, 0
        self.dtypes: set[str] = set()
        self.problem: Facts | None = None
        self._waiting: dict[int, Any] = {}
        self._ended: set[int] = set()
        self._sum: Any = None
        self._changed = threading.Condition()

    def all_reduce(self, rank: int, tensor: Any) -> Any:
        """The sum over all ranks, in the tensor's own format. Every rank has to call it."""
        import torch

        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"all_reduce takes a tensor, not {describe(tensor)}")
        with self._changed:
            if self.rounds >= _MOST_ROUNDS:
                raise Stuck(f"more than {_MOST_ROUNDS} all-reduces")
            mine = self.rounds
            self._waiting[rank] = tensor.detach().clone()
            self._look()
            self._changed.wait_for(lambda: self.problem or self.rounds > mine)
            if self.rounds == mine:
                raise Stuck("this rank would wait for ever")
            return self._sum.clone()

    def end(self, rank: int) -> None:
        """A rank has returned, and will come to no further all-reduce."""
        with self._changed:
            self._ended.add(rank)
            self._look()

    def _look(self) -> None:
        """Finish the round if all are there, or say why it never will be."""
        if self.problem or not self._waiting:
            return
        if len(self._waiting) + len(self._ended) < self.count:
            return
        arrived = [self._waiting[rank] for rank in sorted(self._waiting)]
        forms = [(list(entry.shape), str(entry.dtype).removeprefix("torch.")) for entry in arrived]
        if self._ended:
            waiting, ended = sorted(self._waiting), sorted(self._ended)
            self.problem = {"kind": "hang", "waiting": waiting, "ended": ended}
        elif any(form != forms[0] for form in forms):
            other = next(place for place, form in enumerate(forms) if form != forms[0])
            self.problem = {"kind": "mismatch", "rank": other, "shapes": [forms[0], forms[other]]}
        else:
            # As a ring does: one after the other, rounded to the format each time.
            self._sum = arrived[0]
            for item in arrived[1:]:
                self._sum = self._sum + item
            self._waiting = {}
            self.rounds += 1
            self.sent_bytes += arrived[0].numel() * arrived[0].element_size()
            self.dtypes.add(forms[0][1])
        self._changed.notify_all()


def data(case: Facts) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """The weights [w1, b1, w2, b2] of a classifier and the samples (x, y) of each rank, float64."""
    import torch

    generator = torch.Generator().manual_seed(case["seed"])
    kind = {"dtype": torch.float64, "generator": generator}
    features, hidden, classes = case["features"], case["hidden"], case["classes"]
    shapes = [(hidden, features), (hidden,), (classes, hidden), (classes,)]
    weights = [torch.randn(shape, **kind) / 2 for shape in shapes]
    samples = []
    for place, count in enumerate(case["samples"]):
        # The ranks see different data, so that it shows how each is weighted.
        x = torch.randn(count, features, **kind) * (1 + place % 3)
        samples.append((x, torch.randint(0, classes, (count,), generator=generator)))
    return weights, samples


def _parameters(weights: list[Any], x: Any, y: Any, dtype: Any) -> list[Any]:
    """The parameters of one rank in its format, with the gradient of the mean loss of its samples:
    None without samples, because no backward ran.
    """
    import torch

    leaves = [weight.clone().requires_grad_() for weight in weights]
    if len(y):
        hidden = torch.tanh(x @ leaves[0].T + leaves[1])
        torch.nn.functional.cross_entropy(hidden @ leaves[2].T + leaves[3], y).backward()
    results = [torch.nn.Parameter(item.detach().to(dtype)) for item in leaves]
    for parameter, leaf in zip(results, leaves, strict=True):
        if leaf.grad is not None:
            parameter.grad = leaf.grad.float().to(dtype)
    return results


def average_on_ranks(answer: Answer, case: Facts) -> Facts:
    """What the answer returns on every rank, and how the ranks met."""
    import torch

    torch.set_num_threads(1)
    weights, samples = data(case)
    dtype = getattr(torch, case["dtype"])
    group = Group(len(samples))
    returned: list[Any] = [None] * group.count
    errors: list[BaseException | None] = [None] * group.count

    def work(rank: int) -> None:
        x, y = samples[rank]
        try:
            parameters = _parameters(weights, x, y, dtype)
            response = answer(parameters, len(y), lambda tensor: group.all_reduce(rank, tensor))
            returned[rank] = _plain(response)
        except BaseException as error:  # raised anew below, in the thread that is listened to
            errors[rank] = error
        finally:
            group.end(rank)

    threads = [
        threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(group.count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        if error is not None and not (isinstance(error, Stuck) and group.problem):
            raise error
    return {
        "returned": returned,
        "problem": group.problem,
        "rounds": group.rounds,
        "sent_bytes": group.sent_bytes,
        "dtypes": sorted(group.dtypes),
    }


def _plain(response: Any) -> Any:
    """A list of tensors as lists of numbers; otherwise what it is."""
    import torch

    if not isinstance(response, list | tuple):
        return describe(response)
    results = []
    for item in response[:20]:
        if not isinstance(item, torch.Tensor) or item.numel() > _MOST_ITEMS:
            return f"{describe(response)} with {describe(item)} in it"
        results.append([number(value) for value in item.detach().double().flatten().tolist()])
    return results
