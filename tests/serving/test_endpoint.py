"""The endpoint with a runner that waits when it is asked to: overload, slow readers, failures."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tornado.httpserver import HTTPServer

from tests.serving.test_engine import VOCABULARY, Cells
from utils.cli.commands import serve
from utils.serving.endpoint import app, protocol
from utils.serving.endpoint.driver import Driver, Served
from utils.serving.endpoint.texts import Checkpoint, Letters, Writer
from utils.serving.engine import Engine, Request, Settings, llama
from utils.training.finetune import outside
from utils.xla import fresh
from utils.xla.corpus import Vocabulary

SETTINGS = Settings(context=4096, slots=2, block_size=16, buckets=(8,), share_prefixes=False)


class Gated(Cells):
    """Computes nothing while its gate is closed; broken, it fails."""

    vocabulary, broken = VOCABULARY, False

    def __init__(self, shapes: Settings) -> None:
        super().__init__(shapes)
        self.gate = threading.Event()
        self.gate.set()

    def _one(self, token, place, blocks):
        return np.eye(VOCABULARY)[(token + 1) % VOCABULARY]

    def prefill(self, tokens, start, blocks):
        assert self.gate.wait(60)
        return super().prefill(tokens, start, blocks)

    def decode(self, rows):
        if self.broken:
            raise RuntimeError("the device is gone")
        return super().decode(rows)


class Server:
    """An endpoint in a loop of its own, in a thread."""

    def __init__(self) -> None:
        self.runner = Gated(SETTINGS)
        self.engine = Engine(self.runner)
        self.listening = socket.create_server(("127.0.0.1", 0))
        # What a slow reader does not take must not vanish in the kernel's buffers.
        self.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.port = self.listening.getsockname()[1]
        self.ready, self.thread = threading.Event(), threading.Thread(target=self._run)
        self.thread.start()
        assert self.ready.wait(60)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self.loop, self.ended = asyncio.get_running_loop(), asyncio.Event()
        served = Served("digits", self.engine, Letters(Vocabulary("01234")))
        self.driver = Driver(lambda: served)
        await self.driver.start(waiting=1)
        server = HTTPServer(app.application(self.driver, late_pieces=8))
        self.listening.setblocking(False)
        server.add_sockets([self.listening])
        self.ready.set()
        await self.ended.wait()
        server.stop()
        await self.driver.stop()
        await server.close_all_connections()

    def until(self, condition) -> None:
        """Wait until a condition holds, in the loop, where all that is counted is settled."""

        async def wait() -> None:
            while not condition():
                await asyncio.sleep(0.01)

        asyncio.run_coroutine_threadsafe(asyncio.wait_for(wait(), 60), self.loop).result()

    def connect(self, count: int, stream: bool = True) -> socket.socket:
        """A connection that has asked for `count` tokens."""
        result = socket.socket()
        result.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        result.connect(("127.0.0.1", self.port))
        body = (
            f'{{"model": "digits", "prompt": "01", "max_tokens": {count}, "temperature": 0,'
            f' "stream": {str(stream).lower()}}}'
        )
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
        result.sendall(f"{head}\r\n\r\n{body}".encode())
        return result

    def ask(self, count: int) -> httpx.Response:
        asked = {"model": "digits", "prompt": "01", "max_tokens": count, "temperature": 0}
        return httpx.post(f"http://127.0.0.1:{self.port}/v1/completions", json=asked, timeout=60)

    @property
    def free(self) -> int:
        return self.engine.scheduler.pool.free


@pytest.fixture
def server() -> Iterator[Server]:
    result = Server()
    yield result
    result.runner.gate.set()
    result.loop.call_soon_threadsafe(result.ended.set)
    result.thread.join()
    assert result.free == SETTINGS.blocks - 1 and not result.driver.open


def test_one_more_than_may_wait_gets_429_and_the_others_their_answers(server: Server) -> None:
    server.runner.gate.clear()
    held = [server.connect(6, stream=False) for _ in range(3)]  # two slots, and one that waits
    server.until(lambda: len(server.driver.open) == 3)
    refused = server.ask(6)
    assert refused.status_code == 429 and refused.headers["Retry-After"] == "1"
    assert refused.json()["error"]["type"] == "rate_limit_error"
    server.runner.gate.set()
    for connection in held:
        assert b'"text":"234012"' in connection.recv(4096).replace(b" ", b"")
    assert server.ask(6).json()["choices"][0]["text"] == "234012"


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_cancels_its_request(server: Server, stream: bool) -> None:
    server.runner.gate.clear()
    going = server.connect(4000, stream)
    server.until(lambda: len(server.engine.scheduler.running) == 1)  # its prompt waits at the gate
    waiting, behind = server.connect(4000, stream), server.connect(4000, stream)
    server.until(lambda: len(server.driver.open) == 3)
    for connection in (going, behind, waiting):
        connection.close()
    server.until(lambda: server.driver._calls.qsize() == 5)  # two begin, three are cancelled
    server.runner.gate.set()
    server.until(lambda: not server.driver.open and server.free == SETTINGS.blocks - 1)
    assert (server.engine.counts.prefill_tokens, server.engine.counts.decode_tokens) == (2, 0)
    text = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text
    assert 'course_responses_total{status="499"} 3.0' in text
    assert "course_first_token_seconds_count 1.0" in text


def test_a_reader_who_is_slow_is_cut_off_and_nobody_waits_for_him(server: Server) -> None:
    slow = server.connect(4000)
    assert server.ask(1000).json()["choices"][0]["text"] == "23401" * 200
    server.until(lambda: not server.driver.open and server.free == SETTINGS.blocks - 1)
    assert server.engine.counts.decode_tokens < 4000
    parts = b"".join(iter(partial(slow.recv, 65536), b""))
    assert parts.startswith(b"HTTP/1.1 200") and b"[DONE]" not in parts


def test_an_engine_that_fails_says_so_to_all_and_to_those_who_come_later(server: Server) -> None:
    address = f"http://127.0.0.1:{server.port}/health"
    assert httpx.get(address).status_code == 200
    server.runner.gate.clear()
    server.runner.broken = True
    streaming, whole = server.connect(9), server.connect(9, stream=False)
    server.until(lambda: len(server.driver.open) == 2)
    server.runner.gate.set()
    assert b" 503 " in whole.recv(4096)
    server.until(lambda: not server.driver.open)
    assert b"the answer was cut off: error" in streaming.recv(65536)
    assert server.ask(3).status_code == 503
    assert "the device is gone" in httpx.get(address).json()["error"]["message"]


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**30), st.floats(allow_nan=False),
    st.text(max_size=3), st.lists(st.integers(-1, 7), max_size=3), st.just({"a": []}),
)  # fmt: skip
STOPS = st.lists(st.text(min_size=1, max_size=2), max_size=4)
VALID = st.fixed_dictionaries(
    {
        "model": st.just("digits"),
        "prompt": st.text("01234", min_size=1, max_size=5),
        "max_tokens": st.just(3),
    },
    optional={"stop": STOPS, "stream": st.booleans(), "temperature": st.floats(0, 2)},
)


def test_no_request_breaks_it(server: Server) -> None:
    fields = sorted(protocol.Completion.__struct_fields__)
    changes = st.dictionaries(st.sampled_from([*fields, "tools"]), JUNK, max_size=2)

    @settings(max_examples=80)
    @given(VALID, changes, st.sampled_from(["completions", "chat/completions"]))
    def ask(asked, changed, path) -> None:
        if path != "completions":
            message = {"role": "user", "content": asked["prompt"]}
            asked = {"messages": [message]} | {k: v for k, v in asked.items() if k != "prompt"}
        body = json.dumps(asked | changed).encode()
        response = client.post(f"http://127.0.0.1:{server.port}/v1/{path}", content=body)
        allowed = (400,) if "tools" in changed else (200, 400, 404) if changed else (200,)
        assert response.status_code in allowed, (body, response.text)

    with httpx.Client() as client:
        ask()
    assert server.ask(6).json()["choices"][0]["text"] == "234012"


@pytest.mark.usefixtures("xla_device")
def test_what_cannot_be_served_is_said_before_anything_is(tmp_path: Path, capsys) -> None:
    assert serve.main(["--port=0", f"--model={tmp_path}"]) == 1
    assert "config.json" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert serve.main([f"--port={taken.getsockname()[1]}"]) == 1
    assert "in use" in capsys.readouterr().err


def a_checkpoint_served(folder: Path) -> tuple[str, int, list[int], list[int]]:
    from utils.serving.endpoint import models

    served = models.load(folder, folder, slots=2, context=40)
    prompt = served.texts.encode("né 東")
    expected = llama.plain_loop(llama.load(folder), prompt, 12)
    return served.name, served.graphs, [*served.engine.stream(Request(prompt, 12))], expected


TEXTS = st.text("ab", max_size=4)


@given(st.lists(TEXTS, max_size=8), st.lists(TEXTS.filter(bool), max_size=3))
def test_a_text_ends_before_its_first_stop_however_it_comes(pieces, stops) -> None:
    writer, given_out = Writer(stops), ""
    for number, piece in enumerate(pieces):
        given_out += writer.push(piece, last=number == len(pieces) - 1)
        if writer.stopped:
            break
    text = "".join(pieces)
    ends = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    assert writer.stopped == bool(ends)
    assert given_out == (text[: min(ends)[1]] if ends else text)


def test_texts_of_a_checkpoint_are_those_of_its_tokenizer(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    with pytest.raises(ValueError, match="has no tokenizer.json"):
        Checkpoint(tmp_path)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())  # a token for each byte
    inner = Tokenizer(models.BPE({"<s>": 256} | {c: n for n, c in enumerate(letters)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    theirs = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>")
    theirs.save_pretrained(tmp_path)
    texts = Checkpoint(tmp_path)
    ids = texts.encode("né 東")
    decode = texts.decoder()
    assert [decode(item) for item in [256, *ids]] == ["", "n", "", "é", " ", "", "", "東"]
    with pytest.raises(ValueError, match="no template of chats"):
        texts.chat([{"role": "user", "content": "né"}])
    theirs.chat_template = "{% for m in messages %}<s>{{ m.content }}{% endfor %}"
    theirs.save_pretrained(tmp_path)
    assert Checkpoint(tmp_path).chat([{"role": "user", "content": "né 東"}]) == [256, *ids]
    model = outside.tiny_llama(vocabulary=257)
    model.save_pretrained(tmp_path)
    name, graphs, tokens, expected = fresh.run(
        partial(a_checkpoint_served, tmp_path), environment=outside.ENVIRONMENT, seconds=300
    )
    assert (name, graphs, tokens) == (tmp_path.name, 3, expected)  # 8 and 32 tokens, decoding
    assert len({*tokens}) > 1
