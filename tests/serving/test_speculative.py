"""Speculative decoding gives the large model's distribution, whatever the draft."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from utils.serving import speculative
from utils.serving.engine import Sampling
from utils.serving.engine.sampling import choose, probabilities

VOCABULARY = 4


def distribution(draw: st.DrawFn) -> np.ndarray:
    weights = draw(st.lists(st.integers(0, 9), min_size=VOCABULARY, max_size=VOCABULARY))
    weights = np.array(weights, dtype=float) + (sum(weights) == 0)
    return weights / weights.sum()


@st.composite
def pairs(draw: st.DrawFn, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Draft [length, vocabulary] and target [length + 1, vocabulary]."""
    rows = [distribution(draw) for _ in range(2 * length + 1)]
    return np.array(rows[:length]), np.array(rows[length:])


class Told:
    """A source of uniform numbers that are given."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = [*numbers]

    def random(self) -> float:
        return self.numbers.pop(0)


def exactly(draft: np.ndarray, target: np.ndarray, check=speculative.verify) -> np.ndarray:
    """The distribution of the first token of a step with one drafted token, integrated over both
    uniform numbers: on a grid so fine that the error is below 1/200.
    """
    grid = (np.arange(200) + 0.5) / 200
    result = np.zeros(VOCABULARY)
    for token in np.flatnonzero(draft[0]):
        kept = sum(len(check([token], draft, target, Told(number, 0.5))) == 2 for number in grid)
        result[token] += draft[0, token] * kept / 200
        for second in grid if kept < 200 else ():
            other = check([token], draft, target, Told(1 - 1e-12, second))[0]
            result[other] += draft[0, token] * (1 - kept / 200) / 200
    return result


@settings(max_examples=40)
@given(pairs(1))
def test_one_drafted_token_changes_no_probability(pair):
    draft, target = pair
    assert exactly(draft, target) == pytest.approx(target[0], abs=0.015)


def no_correction(drafted, draft, target, random):
    """A usual mistake: what is refused is drawn from the whole target."""
    first = drafted[0]
    if random.random() * draft[0, first] < target[0, first]:
        return [first, 0]
    return [choose(target[0], random.random())]


def test_without_the_correction_the_check_above_fails():
    draft, target = np.array([[0.8, 0.2, 0, 0]]), np.array([[0.2, 0.8, 0, 0]] * 2)
    assert exactly(draft, target) == pytest.approx(target[0], abs=0.015)
    assert abs(exactly(draft, target, no_correction) - target[0]).max() > 0.1


@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_whole_answer_is_distributed_as_the_large_model_alone(length):
    random = np.random.default_rng(0)
    tables = random.normal(size=(2, VOCABULARY + 1, VOCABULARY)) * 2

    def model(table):
        return lambda ids: np.array([table[token] for token in ids])

    counts = np.zeros((VOCABULARY,) * 3)
    for seed in range(3000):
        made = speculative.speculate(
            model(tables[0]), model(tables[1]), [4], 3, length, Sampling(1.0, seed=seed)
        )
        counts[made.tokens] += 1
    step = [probabilities(row, Sampling(1.0)) for row in tables[0]]
    wanted = np.einsum("a,ab,bc->abc", step[4], np.array(step[:4]), np.array(step[:4]))
    common = wanted.ravel() * 3000 > 5  # the rest together is one more class
    seen = [*counts.ravel()[common], counts.ravel()[~common].sum()]
    meant = [*wanted.ravel()[common], wanted.ravel()[~common].sum()]
    assert stats.chisquare(seen, 3000 * np.array(meant)).pvalue > 0.001


def counting(ids):
    """A model sure that each token is followed by the next one."""
    return np.array([10.0 * np.eye(VOCABULARY)[(token + 1) % VOCABULARY] for token in ids])


def stuck(ids):
    return np.array([10.0 * np.eye(VOCABULARY)[token] for token in ids])


def test_greedy_answers_and_their_passes_by_hand():
    good = speculative.speculate(counting, counting, [0], 10, 4)
    assert good.tokens == (1, 2, 3, 0, 1, 2, 3, 0, 1, 2)
    assert (good.passes, good.drafted, good.accepted) == (2, 8, 8)
    bad = speculative.speculate(counting, stuck, [0], 10, 4)
    assert bad.tokens == good.tokens
    assert (bad.passes, bad.accepted, bad.drafted) == (10, 0, 4 * 6 + 3 + 2 + 1)


@settings(max_examples=60)
@given(pairs(3), st.integers(0, 2**32 - 1))
def test_tokens_come_from_where_the_large_model_may_go(pair, seed):
    draft, target = pair
    random = np.random.default_rng(seed)
    drafted = [choose(row, random.random()) for row in draft]
    made = speculative.verify(drafted, draft, target, random)
    assert 1 <= len(made) <= 4 and made[:-1] == drafted[: len(made) - 1]
    assert all(target[place, token] > 0 for place, token in enumerate(made))


@settings(max_examples=60)
@given(pairs(1))
def test_acceptance_is_what_both_share(pair):
    (draft,), (target, _) = pair
    shared = speculative.acceptance(draft, target)
    assert shared == pytest.approx(1 - abs(draft - target).sum() / 2)


@given(st.floats(0, 1), st.integers(0, 8))
def test_tokens_of_a_pass(accepted, length):
    tokens = speculative.tokens_per_pass(accepted, length)
    assert 1 <= tokens <= length + 1
    assert speculative.speedup(accepted, length, 0.0) == tokens


def test_what_does_not_fit_is_refused():
    random, row = np.random.default_rng(0), np.eye(VOCABULARY)[:1]
    with pytest.raises(ValueError, match="1 drafted tokens need 1 rows of draft and 2 of target"):
        speculative.verify([0], row, row, random)
    with pytest.raises(ValueError, match="token 1 at place 0 was not drawn from its draft"):
        speculative.verify([1], row, np.eye(VOCABULARY)[:2], random)
    with pytest.raises(ValueError, match="accepted is 0 to 1"):
        speculative.tokens_per_pass(1.5, 2)
