"""The generated text and the small networks: the same everywhere, and of the promised shapes."""

import hashlib

import pytest

from utils.xla import corpus, env

DIGEST = "efc6f64a23ef6729"


def test_the_text_is_the_same_on_every_machine() -> None:
    digest = hashlib.sha256(corpus.text(10_000).encode()).hexdigest()
    assert digest.startswith(DIGEST)
    assert len(corpus.text(777, seed=3)) == 777 and corpus.text(777, seed=3) != corpus.text(777)


def test_a_vocabulary_encodes_its_text_and_names_a_stranger() -> None:
    text = corpus.text(5_000)
    letters = corpus.Vocabulary.of(text)
    assert letters.decode(letters.encode(text)) == text
    with pytest.raises(ValueError, match="'Q'"):
        letters.encode("Q")


def test_sentences_differ_in_length() -> None:
    lengths = {len(sentence) for sentence in corpus.sentences(200)}
    assert len(lengths) > 50 and min(lengths) < 35 and max(lengths) > 150


@pytest.fixture(scope="module", autouse=True)
def _device_before_any_backward() -> None:
    env.set_defaults()
    import torch_xla

    torch_xla.device()


def test_shapes_of_the_networks() -> None:
    import torch

    from utils.xla.networks import TinyGPT, cnn, mlp, next_token_loss

    assert mlp()(torch.zeros(5, 32)).shape == (5, 10)
    assert cnn()(torch.zeros(5, 3, 8, 8)).shape == (5, 10)
    gpt = TinyGPT(25, width=32, heads=2, layers=1, context=16)
    ids = torch.zeros(3, 12, dtype=torch.int64)
    assert gpt(ids).shape == (3, 12, 25)
    assert next_token_loss(gpt(ids), ids).shape == ()
    with pytest.raises(ValueError, match="multiple of heads"):
        TinyGPT(25, width=33, heads=2)


def test_a_gpt_does_not_see_the_future() -> None:
    import torch

    from utils.xla.networks import TinyGPT

    torch.manual_seed(0)
    gpt = TinyGPT(25, width=32, heads=2, layers=2, context=16)
    ids = torch.randint(0, 25, (1, 12))
    changed = ids.clone()
    changed[0, -1] = (ids[0, -1] + 1) % 25
    assert torch.equal(gpt(ids)[0, :-1], gpt(changed)[0, :-1])
