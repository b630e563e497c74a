"""`course.py serve`, one process for all tests here: asked by OpenAI's client and by locust."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from utils.course.catalog import ROOT
from utils.serving.engine import letters, llama

PROMPTS = ["the old ", "the old harbour", "a", "the grey pilot finds the", "at dawn ", "but "]
GRAPHS = 4  # buckets of 8, 32 and 128 tokens, and decoding


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """Where the server keeps the model that it trains."""
    return tmp_path_factory.mktemp("serve")


@pytest.fixture(scope="module")
def answers(server, cache: Path) -> dict[str, str]:
    """Greedy tokens of a plain loop, with the server's model."""
    model, vocabulary = letters.load(cache)
    return {
        prompt: vocabulary.decode(llama.plain_loop(model, vocabulary.encode(prompt), 30))
        for prompt in PROMPTS
    }


@pytest.fixture(scope="module")
def server(cache: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    command = [sys.executable, ROOT / "course.py", "--inside", "serve", "--port=0"]
    process = subprocess.Popen(
        [*command, f"--cache={cache}"], stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | {"PJRT_DEVICE": "CPU"},
    )  # fmt: skip
    assert process.stdout
    ready = process.stdout.readline()
    assert ready.startswith(f"{GRAPHS} graphs compiled. Serving 'letters' at http://127.0.0.1:")
    yield process, re.findall(r"http\S+/v1", ready)[0]
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def client(server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server[1], api_key="none", max_retries=0) as result:
        yield result


def metrics(client: openai.OpenAI) -> dict[str, float]:
    text = httpx.get(str(client.base_url).replace("/v1/", "/metrics")).text
    return {
        sample.name + "".join(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_client_of_openai_gets_the_tokens_of_a_plain_loop(client, answers) -> None:
    assert [model.id for model in client.models.list()] == ["letters"]
    assert client.models.retrieve("letters").object == "model"
    prompt, expected = PROMPTS[0], answers[PROMPTS[0]]
    asked = {"model": "letters", "prompt": prompt, "temperature": 0, "max_tokens": 30}
    whole = client.completions.create(**asked)
    assert whole.choices[0].text == expected and whole.choices[0].finish_reason == "length"
    assert whole.usage.model_dump(include={"prompt_tokens", "completion_tokens"}) == {
        "prompt_tokens": len(prompt), "completion_tokens": 30
    }  # fmt: skip
    chat = {"model": "letters", "temperature": 0, "max_completion_tokens": 30}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "The Old "}]
    output = client.chat.completions.create(messages=messages, **chat).choices[0].message
    assert (output.role, output.content) == ("assistant", expected)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *events, last = client.chat.completions.create(messages=messages, **chat, **options)
    assert "".join(event.choices[0].delta.content for event in events) == expected
    assert [event.choices[0].finish_reason for event in events] == [None] * 29 + ["length"]
    assert not last.choices and last.usage.total_tokens == len(prompt) + 30


def test_stops_and_seeds(client, answers) -> None:
    asked = {"model": "letters", "prompt": PROMPTS[0], "temperature": 0, "max_tokens": 30}
    first, second = answers[PROMPTS[0]].split()[:2]
    stopped = client.completions.create(**asked, stop=[f"{second} ", "nowhere"])
    assert stopped.choices[0].text == f"{first} " and stopped.choices[0].finish_reason == "stop"
    assert stopped.usage.completion_tokens == len(f"{first} {second} ")
    pieces = client.completions.create(**asked, stop=f"{second} ", stream=True)
    assert "".join(piece.choices[0].text for piece in pieces) == f"{first} "
    warm = asked | {"temperature": 1.5, "top_p": 0.95}
    texts = [client.completions.create(**warm, seed=seed).choices[0].text for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    least = client.completions.create(**warm | {"top_p": 1e-6, "seed": 5}).choices[0].text
    assert least == answers[PROMPTS[0]]  # only the most probable token is left


@pytest.mark.parametrize(
    ("change", "error", "code", "message"),
    [
        ({"model": "gpt-4o"}, openai.NotFoundError, "model_not_found", "only 'letters'"),
        ({"temperature": 3}, openai.BadRequestError, "invalid_value", r"\$.temperature"),
        ({"max_tokens": "9"}, openai.BadRequestError, "invalid_value", r"\$.max_tokens"),
        ({"max_tokens": 400}, openai.BadRequestError, "invalid_value", "context holds 128"),
        ({"prompt": []}, openai.BadRequestError, "invalid_value", "1 token or more"),
        ({"prompt": [999]}, openai.BadRequestError, "invalid_value", "has the token 999"),
        ({"n": 2}, openai.BadRequestError, "invalid_value", r"\$.n"),
        ({"suffix": "x"}, openai.BadRequestError, "invalid_value", "unknown field `suffix`"),
        ({"prompt": "a" * 2_000_000}, openai.APIStatusError, "request_too_large", "1,000,000"),
    ],
)
def test_what_cannot_be_served_is_an_error_of_the_clients_kind(
    client, change, error, code: str, message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        client.completions.create(**{"model": "letters", "prompt": "the "} | change)
    assert raised.value.code == code
    if code == "request_too_large":
        assert raised.value.status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "change", "status"),
    [
        ("POST", "completions", {"content": b'{"model": "letters", "pro'}, 400),
        ("POST", "completions", {"content": b"\xff\xfe"}, 400),
        ("POST", "completions", {"content": iter([b"[" * 700_000] * 2)}, 413),  # no length given
        ("GET", "completions", {}, 405),
        ("GET", "embeddings", {}, 404),
        ("GET", "models/gpt-4o", {}, 404),
        ("GET", "models", {"headers": {"Host": "rebound.example"}}, 404),
    ],
)
def test_what_no_client_sends_gets_a_status_too(client, method, path, change, status) -> None:
    response = httpx.request(method, f"{client.base_url}{path}", **change)
    assert response.status_code == status
    assert response.json()["error"].keys() == {"message", "type", "param", "code"}


def test_a_load_of_locust_gets_whole_and_equal_answers_from_the_first_graphs(
    client, answers, tmp_path: Path
) -> None:
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    before, users = metrics(client), 8
    options = ["--headless", f"-u{users}", f"-r{users}", "--run-time=120s", "--json"]
    run = subprocess.run(
        [sys.executable, "-m", "locust", *options, "-f", Path(__file__).parent / "locustfile.py",
         "--host", str(client.base_url).removesuffix("/v1/"), "--only-summary"],
        env=os.environ | {"ANSWERS": str(tmp_path / "answers.json"), "USERS": str(users)},
        capture_output=True, text=True, timeout=180, cwd=tmp_path,
    )  # fmt: skip
    (result,) = json.loads(run.stdout)
    assert (result["num_requests"], result["num_failures"]) == (users * len(answers), 0), run.stderr
    after = metrics(client)
    assert after["course_responses_total200"] >= before.get("course_responses_total200", 0) + 48
    prompts = users * sum(map(len, answers))
    assert after["course_tokens_totalprompts"] - before["course_tokens_totalprompts"] == prompts
    assert after["course_tokens_totalanswers"] - before["course_tokens_totalanswers"] == 48 * 30
    steps = after["course_engine_decodes_total"] - before["course_engine_decodes_total"]
    assert 48 * 29 / 4 <= steps < 48 * 29 / 2  # of 4 slots, more than half are in use
    assert after["course_engine_cached_tokens_total"] > before["course_engine_cached_tokens_total"]
    assert after["course_blocks_free"] == after["course_blocks"]
    graphs = after["course_graphs_totalstart"], after["course_graphs_totallater"]
    assert graphs == (GRAPHS, 0)


def test_ctrl_c_ends_it_and_an_answer_under_way_says_that_it_was_cut_off(server, client) -> None:
    """The last test here: the server is gone then."""
    asked = {"model": "letters", "prompt": "the ", "temperature": 0, "max_tokens": 124}
    with pytest.raises(openai.APIError, match="the answer was cut off"):
        for number, _ in enumerate(client.completions.create(**asked, stream=True)):
            if number == 0:
                server[0].send_signal(signal.SIGINT)
    out, _ = server[0].communicate(timeout=60)
    assert server[0].returncode == 0
    assert out.startswith("Ended; 1 answers were cut off.") and "0 graphs since start" in out
