"""Functions that an answer may call and not look into.

They run in a thread of their own. What the answer holds is a queue to it: no closure and no
attribute leads to the model behind, whose weights would tell what is wrong with it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

Function = Callable[..., Any]


@contextmanager
def doors(*functions: Function) -> Iterator[list[Function]]:
    """A function for each of `functions` that does the same, until the block ends.

    >>> with doors(len, max) as (length, largest):
    ...     length([3, 4]), largest(3, 4)
    (2, 4)
    """
    calls: SimpleQueue = SimpleQueue()
    # Through the queue, because a thread keeps its arguments as an attribute.
    calls.put(functions)
    threading.Thread(target=_serve, args=(calls,), daemon=True).start()
    try:
        yield [_door(calls, place) for place in range(len(functions))]
    finally:
        calls.put(None)


def _serve(calls: SimpleQueue) -> None:
    functions = calls.get()
    for place, given, named, reply in iter(calls.get, None):
        try:
            reply.put((functions[place](*given, **named), None))
        except Exception as error:
            # Without the frames, which hold what is behind.
            reply.put((None, error.with_traceback(None)))


def _door(calls: SimpleQueue, place: int) -> Function:
    def call(*given: Any, **named: Any) -> Any:
        reply: SimpleQueue = SimpleQueue()
        calls.put((place, given, named, reply))
        result, error = reply.get()
        if error is not None:
            raise error
        return result

    return call
