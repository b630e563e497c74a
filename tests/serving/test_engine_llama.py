"""The engine with a Llama: held to a plain loop, to transformers, and to the meter on XLA."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings

from tests.serving.test_engine import Traffic, check_answers, check_step, serve, traffic
from utils.cost.planner.architecture import Architecture
from utils.serving.engine import Engine, Request, Sampling, Settings, letters, llama, runner
from utils.serving.engine.sampling import probabilities, sample
from utils.training.finetune import outside
from utils.xla import fresh
from utils.xla.corpus import text

pytestmark = pytest.mark.usefixtures("xla_device")  # before any backward on the CPU
SIZES = Architecture(
    "tiny", layers=2, width=16, heads=4, key_value_heads=2, feed_forward=24, vocabulary=5
)


def tiny() -> llama.Llama:
    """Random weights in float64: sums in another order never change the greatest logit."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = llama.Llama(SIZES, context=64).double()
        for weight in model.parameters():
            weight.data.mul_(3)  # or every token is followed by itself
        return model


MODEL = tiny()


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Products as small as these take longer on several threads, much longer on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def _plain(prompt: tuple[int, ...], count: int, sampling: Sampling) -> list[int]:
    result: list[int] = []
    with torch.no_grad():
        while len(result) < count:
            logits = MODEL(torch.tensor([[*prompt, *result]]))[0, -1]
            result.append(sample(logits.numpy(), sampling, len(prompt) + len(result)))
    return result


def plain(request: Request) -> list[int]:
    answer = _plain(tuple(request.prompt), request.max_tokens, request.sampling)
    for end in range(1, len(answer)):
        if any(answer[max(0, end - len(run)) : end] == [*run] for run in request.stop):
            return answer[:end]
    return answer


def make(shapes: Settings) -> Engine:
    return Engine(runner.Runner(MODEL, shapes))


@settings(max_examples=25)
@given(traffic(16))
def test_every_schedule_gives_the_tokens_of_a_plain_loop(plan: Traffic) -> None:
    sequences, _ = serve(plan, make, check_step)
    check_answers(plan, sequences, plain)


@pytest.mark.exhaustive
@settings(max_examples=600)
@given(traffic(40))
def test_many_more_schedules(plan: Traffic) -> None:
    sequences, _ = serve(plan, make, check_step)
    check_answers(plan, sequences, plain)


def test_a_plain_loop_stops_and_shapes_must_fit_the_model() -> None:
    greedy = llama.plain_loop(MODEL, [1, 2], 12)
    assert greedy == plain(Request([1, 2], 12)) and len({*greedy}) > 1
    end = next(place for place in range(1, 12) if greedy[place] not in greedy[:place])
    assert llama.plain_loop(MODEL, [1, 2], 12, ((greedy[end],),)) == greedy[: end + 1]
    with pytest.raises(ValueError, match="allow 65 tokens, the model 64"):
        runner.Runner(MODEL, Settings(context=65))
    one = runner.Runner(MODEL, Settings(context=16, slots=2, block_size=4, blocks=9))
    assert one.cache_bytes == 2 * 2 * 36 * 2 * 4 * 8  # keys and values, layers, places, heads, ...


# A checkpoint of transformers


@pytest.fixture(scope="module")
def theirs():
    return outside.tiny_llama(layers=2, context=48).double()


def test_a_checkpoint_of_transformers_gives_its_greedy_tokens(theirs, tmp_path: Path) -> None:
    theirs.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len([*tmp_path.glob("*.safetensors")]) > 1
    model = llama.load(tmp_path, dtype=torch.float64)
    ids = torch.randint(0, 64, (2, 20), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(model(ids), theirs(ids).logits, atol=1e-5)
    server = Engine(runner.Runner(model, Settings(context=48, block_size=4, buckets=(8,))))
    asked = [server.submit(Request(row[:length].tolist(), 24)) for row in ids for length in (3, 20)]
    server.run()
    for sequence in asked:
        prompt = torch.tensor([sequence.request.prompt])
        greedy = theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24, do_sample=False,
            eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
        assert sequence.tokens == greedy[0].tolist()


def test_tied_heads_and_stretched_positions_are_those_of_transformers(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    rope = {
        "rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
    }  # fmt: skip
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
        tie_word_embeddings=True, rope_parameters=rope, eos_token_id=[7, 9],
    )  # fmt: skip
    theirs = LlamaForCausalLM(config).double()
    theirs.save_pretrained(tmp_path)
    model = llama.load(tmp_path, context=40, dtype=torch.float64)
    assert model.stop == ((7,), (9,)) and model.lm_head.weight is model.embed_tokens.weight
    assert sum(parameter.numel() for parameter in model.parameters()) == model.sizes.parameters
    ids = torch.arange(40)[None]
    with torch.no_grad():
        assert torch.allclose(model(ids), theirs(ids).logits, atol=1e-5)
    (tmp_path / "config.json").write_text(json.dumps(json.loads(
        (tmp_path / "config.json").read_text()) | {"rope_parameters": None, "rope_theta": 500.0,
        "rope_scaling": {key: rope[key] for key in rope if key != "rope_theta"}}))  # fmt: skip
    older = llama.load(tmp_path, context=40, dtype=torch.float64)
    assert torch.equal(older.cos, model.cos)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "model_type is 'gpt2', and this engine serves .* 'llama' only"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"head_dim": 16}, "head_dim is 16, .* 8 only"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope type is 'yarn', allowed are"),
        ({"vocab_size": 65}, "are not those of its config.json"),
        ({"max_position_embeddings": 4}, "context is 5, this checkpoint allows 1 to 4"),
    ],
)
def test_other_checkpoints_are_refused(theirs, tmp_path: Path, change, message: str) -> None:
    theirs.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        llama.load(tmp_path, context=5)
    for weights in tmp_path.glob("*.safetensors"):
        weights.unlink()
    file.write_text(json.dumps(theirs.config.to_dict()))
    with pytest.raises(FileNotFoundError, match="no .*safetensors"):
        llama.load(tmp_path)


@pytest.mark.parametrize("seed", range(8))
def test_probabilities_are_those_of_transformers(seed: int) -> None:
    from transformers.generation import logits_process as theirs

    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(1, 40, generator=generator, dtype=torch.float64) * 2
    temperature, top_k, top_p = 0.4 + seed / 4, 3 + 4 * seed, (seed + 1) / 9
    scores = logits
    for warper in (
        theirs.TemperatureLogitsWarper(temperature),
        theirs.TopKLogitsWarper(top_k),
        theirs.TopPLogitsWarper(top_p),
    ):
        scores = warper(None, scores)
    ours = probabilities(logits[0].numpy(), Sampling(temperature, top_k, top_p))
    assert ours.tolist() == pytest.approx(scores.softmax(-1)[0].tolist(), abs=1e-12)


# Graphs


def graphs_of_an_engine() -> dict[str, object]:
    import torch_xla

    from utils.xla.meter import Meter

    shapes = Settings(24, slots=3, block_size=4, blocks=9, buckets=(4, 8), tokens_per_step=12)
    with Meter() as making:
        server = Engine(runner.Runner(tiny(), shapes, torch_xla.device()))
    with Meter() as warming:
        server.runner.warm_up()
    with Meter() as serving:
        asked = [
            server.submit(Request([1] * length, count, Sampling(temperature, seed=length)))
            for length, count, temperature in ((13, 9, 0), (1, 20, 0), (13, 11, 0.9), (6, 2, 0))
        ]
        for _ in range(3):
            server.step()
        server.cancel(server.submit(Request([2] * 9, 3)))
        asked.append(server.submit(Request([1] * 13, 5)))
        server.run()
    fewer_bits = runner.Runner(tiny(), shapes, torch_xla.device(), runner.QuantisedCells)
    fewer_bits.warm_up()
    with Meter() as quantised:
        answer = [*Engine(fewer_bits).stream(Request([1] * 13, 9))]
    counts = server.counts
    return {
        "making": making.compiles,
        "warming": (warming.compiles, warming.executions),
        "serving": (serving.compiles, serving.executions - counts.chunks - counts.decodes),
        "on the host": warming.fallbacks + serving.fallbacks,
        "pre-empted, cached": (counts.preemptions > 0, counts.cached_tokens > 0),
        "with a quantised cache": (quantised.compiles, quantised.fallbacks, len(answer)),
        "answers": [(item.request, item.generated) for item in asked],
    }


def test_a_graph_for_each_bucket_and_one_for_decoding_whatever_the_traffic() -> None:
    result = fresh.run(graphs_of_an_engine, environment=fresh.FAST, seconds=300)
    answers = result.pop("answers")
    assert result == {
        "making": 0,
        "warming": (3, 3),
        "serving": (0, 0),
        "on the host": (),
        "pre-empted, cached": (True, True),
        "with a quantised cache": (0, (), 9),
    }
    assert len(answers) == 5
    for request, generated in answers:
        assert generated == plain(request)


# The model of the course


def test_the_small_model_writes_words_of_its_text_through_the_engine() -> None:
    model, vocabulary = letters.train()
    prompt = vocabulary.encode("the old ")
    server = Engine(runner.Runner(model, Settings(context=128)))
    answer = [*server.stream(Request(prompt, 100))]
    assert answer == llama.plain_loop(model, prompt, 100)
    words = vocabulary.decode(answer).replace(".", " ").split()[:-1]  # the last one may be cut
    assert len(words) > 12 and {*words} <= {*text(40_000).replace(".", " ").split()}


def test_the_same_seed_trains_the_same_model() -> None:
    before = torch.random.get_rng_state()
    one, two, other = (letters.train(steps=2, seed=seed)[0] for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    pairs = [*zip(one.parameters(), two.parameters(), other.parameters(), strict=True)]
    assert all(torch.equal(first, second) for first, second, _ in pairs)
    assert not torch.equal(pairs[0][0], pairs[0][2])
