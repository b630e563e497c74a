"""The engine in a thread of its own, for requests of an asyncio loop.

What the loop wants done, and the tokens that come, cross the border as calls in queues; nothing
else is shared, except that the loop reads counts.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

from utils.serving.endpoint.texts import Texts, Writer
from utils.serving.engine import Engine, Overloaded, Request
from utils.serving.engine import Sequence as Underway


@dataclass(frozen=True)
class Served:
    """What a server serves. stop: runs of ids that end any answer. graphs: how many were compiled
    at the start. later: how many since.
    """

    name: str
    engine: Engine
    texts: Texts
    stop: tuple[tuple[int, ...], ...] = ()
    graphs: int = 0
    later: Callable[[], int] = lambda: 0


@dataclass(frozen=True)
class Piece:
    """text: the next piece of an answer. tokens: generated so far. finish: "" for all but the last
    one, then "stop", "length", "cancelled" or "error". at_s: when it came, on the monotonic clock.
    """

    text: str
    tokens: int
    finish: str
    at_s: float


class Stream:
    """An answer on its way from the engine to a handler, which reads it in pieces.

    blocked: set by the handler while its client takes nothing more. If `limit` pieces wait then,
    the client is cut off: its request is cancelled and `on_slow` called. answered: set by the
    handler when it is done.
    """

    underway: Underway | None = None

    def __init__(self, limit: int, on_slow: Callable[[], None]) -> None:
        self.limit, self.on_slow = limit, on_slow
        self.blocked = self.cut = False
        self.pieces: asyncio.Queue[Piece] = asyncio.Queue()
        self.answered = asyncio.Event()

    async def read(self) -> AsyncIterator[Piece]:
        """The pieces, as they come."""
        while True:
            piece = await self.pieces.get()
            yield piece
            if piece.finish:
                return


class Driver:
    """Makes an engine in its thread, and lets it step while there is anything to do.

    served: what `make` returned, once `start` has. most: requests that may be under way, those
    that wait included. open: those that are.
    """

    served: Served
    error: Exception | None = None

    def __init__(self, make: Callable[[], Served]) -> None:
        self._make = make
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Served] = self._loop.create_future()
        self.open: set[Stream] = set()
        self.most = 0

    async def start(self, waiting: int) -> Served:
        """Wait for the engine. waiting: requests that may wait beside those in slots.

        Raises what `make` raises.
        """
        self._thread.start()
        self.served = await self._ready
        self.most = self.served.engine.settings.slots + waiting
        return self.served

    async def stop(self) -> None:
        """Cancel what is under way, end the thread, and give readers a second to say so."""
        streams = [*self.open]
        for stream in streams:
            self.cancel(stream)
        self._calls.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        readers = [asyncio.ensure_future(stream.answered.wait()) for stream in streams]
        if readers:
            _, late = await asyncio.wait(readers, timeout=1)
            for reader in late:
                reader.cancel()

    def submit(
        self, request: Request, stops: Sequence[str], limit: int, on_slow: Callable[[], None]
    ) -> Stream:
        """Let the engine serve a request. Raises Overloaded if too many are under way."""
        if len(self.open) >= self.most:
            raise Overloaded(
                f"{self.most} requests are under way, which is the most: send it again later"
            )
        stream = Stream(limit, on_slow)
        self.open.add(stream)
        self._calls.put(partial(self._begin, stream, request, stops))
        return stream

    def cancel(self, stream: Stream) -> None:
        """Stop a request and free its blocks; one that has finished stays as it is."""
        self._calls.put(partial(self._cancel, stream))

    # In the engine's thread

    def _run(self) -> None:
        try:
            served = self._make()
        except Exception as error:  # whatever a model can fail with; `start` raises it
            self._call(self._ready.set_exception, error)
            return
        self._call(self._ready.set_result, served)
        engine = served.engine
        while True:
            try:
                while not (engine.busy and self._calls.empty()):
                    call = self._calls.get()
                    if call is None:
                        return
                    call()
                engine.step()
            except Exception as error:  # whatever a device can fail with: nothing can be served now
                self.error = error
                for stream in [*self.open]:
                    self._cancel(stream, "error")

    def _begin(self, stream: Stream, request: Request, stops: Sequence[str]) -> None:
        decode, writer = self.served.texts.decoder(), Writer(stops)

        def on_token(token: int) -> None:
            assert stream.underway is not None
            finish = stream.underway.finish  # "stop" is a token of the model's that ends a text
            text = writer.push("" if finish == "stop" else decode(token), last=bool(finish))
            if writer.stopped:
                self.served.engine.cancel(stream.underway)
                finish = "stop"
            self._give(stream, text, finish)

        if self.error:
            self._give(stream, "", "error")
        else:
            stream.underway = self.served.engine.submit(request, on_token)

    def _cancel(self, stream: Stream, finish: str = "cancelled") -> None:
        if stream.underway and not stream.underway.finish:
            self.served.engine.cancel(stream.underway)
            self._give(stream, "", finish)

    def _give(self, stream: Stream, text: str, finish: str) -> None:
        tokens = len(stream.underway.generated) if stream.underway else 0
        self._call(self._put, stream, Piece(text, tokens, finish, time.monotonic()))

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    # In the loop's

    def _put(self, stream: Stream, piece: Piece) -> None:
        if piece.finish:
            self.open.discard(stream)
        elif stream.blocked and stream.pieces.qsize() >= stream.limit:
            if not stream.cut:
                stream.cut = True
                self.cancel(stream)
                stream.on_slow()
            return
        stream.pieces.put_nowait(piece)
