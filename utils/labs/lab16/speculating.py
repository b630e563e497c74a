"""The cases and the judgement of speculative sampling, exercise 4 of lab 16.

Nothing is sampled: the observation has every outcome with its probability, so equal means equal.
"""

import itertools
import random
from collections.abc import Iterator

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import about_all, none_judged
from utils.labs.wrong_answers import message_of

SAYS = says("lab16")

WEIGHTS = {"distribution": 3, "tokens": 2, "passes": 2}
TOLERANCE = 1e-9
"""Probabilities are sums of a few hundred products in float64; wrong ones are off by 1e-3."""

Outputs = dict[tuple[int, ...], float]
"""Tokens that come out, with their probability."""


def speculation_cases(rng: random.Random) -> list[Facts]:
    """Two models and a draft that is the target itself; then other sizes."""
    first = _model(rng, 2, 3)
    same = {**first, "draft": first["target"]}
    sizes = ((1, 3), (2, 3), (3, 2), (2, 4))
    return [{"models": [first, same]}, {"models": [_model(rng, *size) for size in sizes]}]


def _model(rng: random.Random, count: int, words: int) -> Facts:
    """Two models, each a distribution over the words behind every text of up to `count` words."""
    texts = [
        " ".join(map(str, text))
        for length in range(count + 1)
        for text in itertools.product(range(words), repeat=length)
    ]
    tables = [{text: _distribution(rng, words) for text in texts} for _ in range(2)]
    return {"count": count, "words": words, "target": tables[0], "draft": tables[1]}


def _distribution(rng: random.Random, words: int) -> list[float]:
    weights = [rng.randint(1, 20) for _ in range(words)]
    if words > 2 and rng.random() < 0.4:
        weights[rng.randrange(words)] = 0  # never said
    return [weight / sum(weights) for weight in weights]


def speculation_words(case: Facts) -> str:
    """What a card says of a case."""
    first = case["models"][0]
    return (
        f"{len(case['models'])} pairs of models, the first with {first['words']} words and"
        f" {first['count']} proposed"
    )


def _row(model: Facts, which: str, text: tuple[int, ...]) -> list[float]:
    return model[which][" ".join(map(str, text))]


def outputs(model: Facts) -> Outputs:
    """The right distribution of what comes out."""
    result: Outputs = {}
    for text, probability in _branches(model, (), 1.0):
        result[text] = result.get(text, 0.0) + probability
    return result


def _branches(
    model: Facts, text: tuple[int, ...], share: float
) -> Iterator[tuple[tuple[int, ...], float]]:
    p, q = (_row(model, which, text) for which in ("target", "draft"))
    if len(text) == model["count"]:
        yield from (((*text, word), share * item) for word, item in enumerate(p))
        return
    missing = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    for word, (a, b) in enumerate(zip(p, q, strict=True)):
        if accepted := min(a, b):
            yield from _branches(model, (*text, word), share * accepted)
        if left := share * (b - accepted):
            yield from (((*text, w), left * item / sum(missing)) for w, item in enumerate(missing))


def distance(model: Facts, result: Outputs) -> float:
    """How far what comes out is from the target: total variation of texts that are continued by
    the target itself, up to all that may come out.
    """
    off, longest = 0.0, model["count"] + 1
    for text in itertools.product(range(model["words"]), repeat=longest):
        after = [1.0]  # probability of the rest of the text, from the end
        for place in reversed(range(longest)):
            after.append(after[-1] * _row(model, "target", text[:place])[text[place]])
        right = after[-1]
        mine = sum(result.get(text[:n], 0.0) * after[longest - n] for n in range(longest + 1))
        off += abs(mine - right) / 2
    return off


def judge_speculation(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the distribution, how many tokens come out on average, passes."""
    models, all_seen = case["models"], facts["models"]
    known = _recognise(case, all_seen)
    texts: dict[str, list[str]] = {name: [] for name in WEIGHTS}
    if odd := next(filter(None, map(_odd, models, all_seen)), ""):
        return none_judged([about_all(*item, [""]) for item in WEIGHTS.items()], known or odd)
    for model, seen in zip(models, all_seen, strict=True):
        result = _outputs(seen)
        off, passes = distance(model, result), seen["passes"]
        mean, right = (sum(len(t) * n for t, n in f.items()) for f in (result, outputs(model)))
        empty = () in result  # which is no step at all
        name = "nothing-in-its-place" if empty else "another-distribution"
        other = known or SAYS["no-chance" if len(result) == 1 else name]
        fewer = known or SAYS["too-few-tokens"].format(mean=mean, right=right)
        again = SAYS["a-pass-for-each"].format(passes=passes[0], count=model["count"])
        draft = f"the draft ran {passes[1]} times for {model['count']} proposed tokens"
        texts["distribution"].append(
            f"{other} (off by {off:.2g})" if off > TOLERANCE or empty else ""
        )
        texts["tokens"].append(fewer if mean < right - TOLERANCE else "")
        texts["passes"].append(
            again if passes[0] != 1 else draft if passes[1] != model["count"] else ""
        )
    rows = [about_all(name, WEIGHTS[name], some) for name, some in texts.items()]
    # Fast and wrong is no merit.
    return [rows[0], *none_judged(rows[1:])] if any(texts["distribution"]) else rows


def _odd(model: Facts, seen: Facts) -> str:
    """Why nothing of an answer can be judged; "" if it can."""
    if seen["odd"]:
        return SAYS[f"odd-{seen['odd']}"]
    words = range(model["words"])
    for text, _ in seen["outputs"]:
        if not isinstance(text, list) or not all(word in words for word in text):
            return f"`speculate` returned {text}: return a list of tokens"
        if len(text) > model["count"] + 1:
            return SAYS["more-than-proposed"].format(count=len(text), proposed=model["count"])
    return ""


def _outputs(seen: Facts) -> Outputs:
    return {tuple(text): probability for text, probability in seen["outputs"]}


def _recognise(case: Facts, all_seen: list[Facts]) -> str:
    """The sentence of the recorded wrong answer that gives what came out of all models, but for
    those whose outputs are right; "" if there is none.
    """
    wrong = [
        (place, _outputs(seen))
        for place, (model, seen) in enumerate(zip(case["models"], all_seen, strict=True))
        if not _odd(model, seen) and not _is_same(_outputs(seen), outputs(model))
    ]

    def alike(facts: Facts) -> bool:
        others = facts["models"]
        return all(
            not others[place]["odd"] and _is_same(result, _outputs(others[place]))
            for place, result in wrong
        )

    return message_of("lab16.ex4", case, alike, "") if wrong else ""


def _is_same(some: Outputs, others: Outputs) -> bool:
    texts = {*some, *others}
    return all(abs(some.get(t, 0.0) - others.get(t, 0.0)) <= TOLERANCE for t in texts)
