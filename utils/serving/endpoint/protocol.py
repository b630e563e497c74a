"""Requests as OpenAI's interface writes them, checked by msgspec, and the shapes of answers.

What this endpoint cannot do is refused, never ignored: an unknown field, `n=2` or tools give 400.
"""

import secrets
import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from utils.serving.engine import Sampling

Positive = Annotated[int, Meta(ge=1)]
Stop = Annotated[str, Meta(min_length=1)]


class StreamOptions(Struct, forbid_unknown_fields=True):
    """include_usage: one more event before the end says how many tokens there were."""

    include_usage: bool = False


class Asked(Struct, forbid_unknown_fields=True, kw_only=True):
    """What both kinds of requests have. The last block allows nothing but what changes nothing."""

    model: str
    max_tokens: Positive | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=0)] = 0
    seed: Annotated[int, Meta(ge=0)] | None = None
    stop: Stop | Annotated[list[Stop], Meta(max_length=4)] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None

    user: str | None = None
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    presence_penalty: Literal[0] | None = None
    frequency_penalty: Literal[0] | None = None

    @property
    def stops(self) -> list[str]:
        """The texts that end an answer."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    @property
    def sampling(self) -> Sampling:
        """How tokens are chosen: as with OpenAI at temperature 1, with a seed by chance, unless the
        request says otherwise.
        """
        seed = secrets.randbits(48) if self.seed is None else self.seed
        temperature = 1.0 if self.temperature is None else self.temperature
        return Sampling(temperature, self.top_k, self.top_p or 1.0, seed)


class Completion(Asked):
    """prompt: a text, or ids of tokens."""

    prompt: str | list[int]
    echo: Literal[False] | None = None
    best_of: Literal[1] | None = None


class Part(Struct):
    """A part of a message's content. Of text only."""

    type: Literal["text"]
    text: str


class Message(Struct):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part]

    @property
    def plain(self) -> dict[str, str]:
        """Role and text, as templates of chats read them."""
        content = self.content
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        return {"role": self.role, "content": text}


class Chat(Asked):
    """messages: one or more. max_completion_tokens: the newer name of max_tokens."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    max_completion_tokens: Positive | None = None


Kind = TypeVar("Kind", bound=Asked)


def decode(body: bytes, kind: type[Kind]) -> Kind:
    """The request in a body. Raises ValueError, with what was found and where."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:  # also the error of values that are not allowed
        raise ValueError(str(error)) from error


def refusal(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """An error as OpenAI writes it, which its clients turn into exceptions."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class Form:
    """Answers to one request: `whole`, or `event` after `event` and then `usage`."""

    def __init__(self, model: str, chat: bool) -> None:
        self.chat = chat
        self.id = ("chatcmpl-" if chat else "cmpl-") + secrets.token_hex(12)
        self.head = {"id": self.id, "created": int(time.time()), "model": model}

    def whole(self, text: str, finish: str, usage: Mapping[str, int]) -> dict[str, Any]:
        """An answer in one piece."""
        content = {"message": {"role": "assistant", "content": text}} if self.chat else {}
        kind = "chat.completion" if self.chat else "text_completion"
        return self._answer(kind, content or {"text": text}, finish) | {"usage": usage}

    def event(self, text: str, finish: str, first: bool) -> dict[str, Any]:
        """The next piece of an answer, the last one with how it ended."""
        if not self.chat:
            return self._answer("text_completion", {"text": text}, finish)
        delta = ({"role": "assistant"} if first else {}) | {"content": text}
        return self._answer("chat.completion.chunk", {"delta": delta}, finish)

    def usage(self, usage: Mapping[str, int]) -> dict[str, Any]:
        """The event without a piece that ends an answer whose request asked for it."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return self.head | {"object": kind, "choices": [], "usage": usage}

    def _answer(self, kind: str, content: Mapping[str, Any], finish: str) -> dict[str, Any]:
        choice = {"index": 0, **content, "logprobs": None, "finish_reason": finish or None}
        return self.head | {"object": kind, "choices": [choice]}


def usage(prompt: int, completion: int) -> dict[str, int]:
    """Tokens of a request and of its answer, as OpenAI counts them."""
    total = prompt + completion
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
