"""The addresses of the endpoint, and a server that begins and ends. For this machine only."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from tornado import iostream, netutil, web
from tornado.httpserver import HTTPServer

from utils.serving.endpoint import protocol
from utils.serving.endpoint.driver import Driver, Piece, Served, Stream
from utils.serving.endpoint.metrics import Metrics
from utils.serving.engine import Overloaded, Request
from utils.serving.engine.loop import check

LARGEST_BYTES = 1_000_000
"""Of a request. More is refused with 413 while it comes, and not kept."""

GONE = 499, "Client closed request"
"""Seen in the metrics only, as there is nobody to send it to."""

_KINDS = {404: "not_found_error", 429: "rate_limit_error"}


class Refused(web.HTTPError):
    """A request that is not served: status, a message for people, a code for programs."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(status)
        self.message, self.code = message, code


class Handler(web.RequestHandler):
    """What all addresses have: errors in OpenAI's shape, answers as JSON, and counted."""

    def initialize(self, driver: Driver, metrics: Metrics, late_pieces: int) -> None:
        """Take what the application hands to all."""
        self.driver, self.metrics, self.late_pieces = driver, metrics, late_pieces

    def prepare(self) -> None:
        """Refuse what leads nowhere."""
        if type(self) is Handler:
            raise Refused(404, f"there is no {self.request.path} here, see course.py serve --help")

    def json(self, value: object) -> None:
        """Answer with a value."""
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(value))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with an error in OpenAI's shape."""
        error = kwargs["exc_info"][1]
        message, code = HTTPStatus(status_code).phrase, None
        if isinstance(error, Refused):
            message, code = error.message, error.code
        if status_code == HTTPStatus.TOO_MANY_REQUESTS:
            self.set_header("Retry-After", "1")
        other = "invalid_request_error" if status_code < 500 else "server_error"
        self.json(protocol.refusal(message, _KINDS.get(status_code, other), code))

    def on_finish(self) -> None:
        """Count the answer."""
        self.metrics.responses.labels(self.get_status()).inc()

    def log_exception(self, *details: Any) -> None:
        """Say on stderr what is the server's fault, not what is the client's."""
        if not issubclass(details[0], (web.HTTPError, iostream.StreamClosedError)):
            super().log_exception(*details)


class Health(Handler):
    """Whether requests can be served."""

    def get(self) -> None:
        """200, or 503 once the engine has failed."""
        if self.driver.error:
            raise Refused(503, f"the engine failed: {self.driver.error}")
        self.json({"status": "ok"})


class Numbers(Handler):
    """Metrics for Prometheus."""

    def get(self) -> None:
        """All of them, as text."""
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.finish(generate_latest(self.metrics.registry))


class Models(Handler):
    """The one model, in a list or by its name."""

    def get(self, name: str | None = None) -> None:
        """What is served here."""
        served = self.driver.served
        model = {"id": served.name, "object": "model", "created": 0, "owned_by": "course"}
        if name not in (None, served.name):
            raise _unknown(name, served.name)
        self.json(model if name else {"object": "list", "data": [model]})


@web.stream_request_body
class Answers(Handler):
    """Completions, whole or as server-sent events. The body is kept up to its limit only."""

    kind: type[protocol.Completion | protocol.Chat] = protocol.Completion
    stream: Stream | None = None
    gone = False

    def prepare(self) -> None:
        """Refuse a body that says that it is too large, before it comes."""
        self.body, self.began_s = bytearray(), time.monotonic()
        length = self.request.headers.get("Content-Length", "0")
        if length.isdecimal() and int(length) > LARGEST_BYTES:
            raise _too_large()

    def data_received(self, chunk: bytes) -> None:
        """Keep the next part of the body, if it is not too large."""
        self.body += chunk[: LARGEST_BYTES + 1 - len(self.body)]

    def on_connection_close(self) -> None:
        """Cancel the request of a client that has gone."""
        self.gone = True
        if self.stream:
            self.driver.cancel(self.stream)

    def on_finish(self) -> None:
        """Count the answer, and let a server that ends go on."""
        super().on_finish()
        if self.stream:
            self.stream.answered.set()

    async def post(self) -> None:
        """Answer a request."""
        if len(self.body) > LARGEST_BYTES:
            raise _too_large()
        served = self.driver.served
        try:
            asked = protocol.decode(bytes(self.body), self.kind)
            if asked.model != served.name:
                raise _unknown(asked.model, served.name)
            # In another thread: a long text takes a while, and others are answered meanwhile.
            request = await asyncio.to_thread(self._request, asked)
            check(request, served.engine.settings.context, served.engine.runner.vocabulary)
            if self.gone:
                return self.set_status(*GONE)
            self.stream = self.driver.submit(request, asked.stops, self.late_pieces, self._cut)
        except ValueError as error:
            raise Refused(400, str(error), "invalid_value") from error
        except Overloaded as error:
            raise Refused(429, str(error), "rate_limit_exceeded") from error
        self.metrics.tokens.labels("prompts").inc(len(request.prompt))
        try:
            await self._answer(asked, len(request.prompt), self.stream)
        except iostream.StreamClosedError:
            self.set_status(*GONE)

    async def _answer(self, asked: protocol.Asked, prompt: int, stream: Stream) -> None:
        form = protocol.Form(asked.model, self.kind is protocol.Chat)
        texts: list[str] = []
        before: Piece | None = None
        async for piece in stream.read():
            self._measure(piece, before)
            before = piece
            if piece.finish in ("cancelled", "error"):
                return self._broken(piece, begun=asked.stream and texts)
            if piece.text or piece.finish:
                if asked.stream:
                    self.set_header("Content-Type", "text/event-stream")
                    self._event(form.event(piece.text, piece.finish, first=not texts))
                    stream.blocked = True
                    await self.flush()  # at once, unless the client does not take what was written
                    stream.blocked = False
                texts.append(piece.text)
        usage = protocol.usage(prompt, piece.tokens)
        if not asked.stream:
            return self.json(form.whole("".join(texts), piece.finish, usage))
        if asked.stream_options and asked.stream_options.include_usage:
            self._event(form.usage(usage))
        self.finish("data: [DONE]\n\n")

    def _request(self, asked: protocol.Completion | protocol.Chat) -> Request:
        served = self.driver.served
        if isinstance(asked, protocol.Chat):
            prompt = served.texts.chat([message.plain for message in asked.messages])
            left = max(1, served.engine.settings.context - len(prompt))
            most = asked.max_completion_tokens or asked.max_tokens or left
        else:
            given = asked.prompt
            prompt = served.texts.encode(given) if isinstance(given, str) else given
            most = asked.max_tokens or 16
        return Request(prompt, most, asked.sampling, served.stop)

    def _measure(self, piece: Piece, before: Piece | None) -> None:
        new = piece.tokens - (before.tokens if before else 0)
        if new and before:
            self.metrics.next_token.observe(piece.at_s - before.at_s)
        elif new:
            self.metrics.first_token.observe(piece.at_s - self.began_s)
        self.metrics.tokens.labels("answers").inc(new)

    def _event(self, value: object) -> None:
        self.write(b"data: " + msgspec.json.encode(value) + b"\n\n")

    def _broken(self, piece: Piece, begun: object) -> None:
        # The client has gone, the server ends, or the engine has failed.
        if self.gone:
            raise iostream.StreamClosedError
        message = f"the answer was cut off: {piece.finish}"
        if not begun:
            raise Refused(503, message)
        self._event(protocol.refusal(message, "server_error"))

    def _cut(self) -> None:
        if stream := getattr(self.request.connection, "stream", None):
            stream.close()


class ChatAnswers(Answers):
    """The same for chats."""

    kind = protocol.Chat


def _unknown(name: str | None, known: str) -> Refused:
    return Refused(404, f"there is no model {name!r} here, only {known!r}", "model_not_found")


def _too_large() -> Refused:
    return Refused(413, f"a request has at most {LARGEST_BYTES:,} bytes", "request_too_large")


def application(driver: Driver, late_pieces: int = 64) -> web.Application:
    """All addresses. late_pieces: how many pieces a slow client may be behind before it is cut off.

    Requests must name this machine as their host, so that no page of the web can ask through a
    name of its own that leads here.
    """
    shared = {"driver": driver, "metrics": Metrics(driver), "late_pieces": late_pieces}
    addresses: list[tuple[str, type[Handler]]] = [
        ("/health", Health),
        ("/metrics", Numbers),
        ("/v1/models(?:/(.+))?", Models),
        ("/v1/completions", Answers),
        ("/v1/chat/completions", ChatAnswers),
    ]
    result = web.Application(
        default_handler_class=Handler, default_handler_args=shared, log_function=lambda _: None
    )
    rules: list[Any] = [(address, handler, shared) for address, handler in addresses]
    result.add_handlers(r"(127\.0\.0\.1|localhost)", rules)
    return result


async def serve(
    make: Callable[[], Served], port: int, waiting: int, say: Callable[[str], None]
) -> None:
    """Serve on 127.0.0.1 until SIGINT or SIGTERM. port: 0 for any that is free.

    Raises OSError for a port that is taken, and what `make` raises.
    """
    (listening,) = sockets = netutil.bind_sockets(port, "127.0.0.1")
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    logging.getLogger("tornado.general").setLevel(logging.ERROR)  # not each broken request
    driver = Driver(make)
    try:
        served = await driver.start(waiting)
    except BaseException:
        listening.close()
        raise
    # Bodies are limited by the handlers: this limit would only give 400 instead of 413.
    server = HTTPServer(application(driver), max_body_size=2**63, body_timeout=60.0)
    server.add_sockets(sockets)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    say(f"{served.graphs} graphs compiled. Serving {served.name!r} at {address}; Ctrl-C ends it.")
    await ended.wait()
    server.stop()
    under_way = len(driver.open)
    await driver.stop()
    await server.close_all_connections()
    counts = served.engine.counts
    say(f"Ended; {under_way} answers were cut off. {counts}; {served.later()} graphs since start.")
