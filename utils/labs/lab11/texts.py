"""The cases and the judgement of the static cache, exercise 4 of lab 11."""

import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, did_nothing, not_judged, times
from utils.labs.lab11.decoder import IDS
from utils.labs.lab11.loops import compiles_at_most
from utils.labs.lab11.truth import write

SAYS = says("lab11")

BUCKET = 32
"""No prompt is longer, so it can be padded to this."""

MOST_COMPILES = 3
"""The prompt, the next token, and one that brings the tokens together."""

LEAST_AHEAD = 2e-4
"""By how much the likeliest token leads in float64, at least.

Derivation: over all tokens of correct runs in float32, with the cache and without, the logits lay
at most 1.5e-5 from those in float64. So rounding never decides. The tests measure it.
"""


def text_cases(rng: random.Random) -> list[Facts]:
    """Two prompts with 8 new tokens; three, one as long as the bucket, with 64."""
    return [_case(rng, 8, [5, 9]), _case(rng, 64, [rng.randint(4, 9), BUCKET, 12])]


def _case(rng: random.Random, count: int, lengths: list[int]) -> Facts:
    """A model that is sure of every token, and does not repeat itself."""
    while True:
        seed = rng.randrange(10**6)
        prompts = [[rng.randrange(IDS) for _ in range(n)] for n in lengths]
        made = [write(seed, tuple(prompt), count) for prompt in prompts]
        varied = all(len(set(text)) >= min(5, count // 4 + 3) for text, _ in made)
        if varied and all(ahead >= LEAST_AHEAD for _, ahead in made):
            return {"prompts": prompts, "count": count, "seed": seed}


def text_words(case: Facts) -> str:
    """What a card says of a case."""
    lengths = ", ".join(str(len(prompt)) for prompt in case["prompts"])
    return f"prompts of {lengths} ids, count = {case['count']}"


def judge_texts(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: the ids, the tokens that enter, executions and compiles."""
    prompts, count = case["prompts"], case["count"]
    right = [write(case["seed"], tuple(prompt), count)[0] for prompt in prompts]
    ids = [len(prompt) for prompt in prompts]
    stopped = facts["returned"]["stopped"]
    tokens = _tokens(case, facts, right)
    least, most = sum(ids) + len(ids) * (count - 1), len(ids) * (BUCKET + count)
    cached = criterion(
        "tokens that enter",
        2,
        least <= facts["entered"] <= most,
        times(facts["entered"], "token"),
        f"{least} to {most}",
        "fewer than there are: each prompt and each new token goes through the model once"
        if facts["entered"] < least
        else SAYS["without-a-cache"].format(BUCKET=BUCKET),
    )
    one_by_one = _executions(case, facts)
    message = SAYS["read-and-no-sync" if facts["grows"] else "the-cache-grows"]
    compiled = compiles_at_most(2, MOST_COMPILES, facts, message)
    rows = [tokens, cached, one_by_one, compiled]
    if did_nothing(facts):
        return [tokens, *map(not_judged, rows[1:])]
    if not facts["on_device"] >= facts["steps"] > 0:
        message = SAYS["tokens-outside-the-given-model"]
        return [not_judged(tokens, message), *map(not_judged, rows[1:])]
    if stopped and facts["waiting"] > 1:
        return [*map(not_judged, rows[:2]), one_by_one, not_judged(compiled)]
    if stopped:
        return [*map(not_judged, rows[:3]), compiled]
    if not one_by_one.passed or not tokens.passed:
        # One graph is no merit of what makes other tokens, or makes them all at once.
        return [*rows[:3], not_judged(compiled)]
    if not cached.passed:
        return [not_judged(tokens), cached, not_judged(one_by_one), not_judged(compiled)]
    return rows


def _tokens(case: Facts, facts: Facts, right: list[list[int]]) -> Criterion:
    prompts, count, texts, message = case["prompts"], case["count"], facts["texts"], ""
    kind = facts["returned"]["kind"]
    good = 0
    if facts["returned"]["stopped"]:
        message = "the check stopped the answer, because its graphs go on and on: fix that first"
    elif texts is None or len(texts) != len(right):
        message = f"`generate` returned {kind}: return a list of {len(right)} lists, one per prompt"
    elif strange := [item for item in texts if isinstance(item, str)]:
        message = f"`generate` returned {kind} with {strange[0]}: return lists of ints"
    else:
        good = sum(reply == text for reply, text in zip(texts, right, strict=True))
        wrong = next((k for k, text in enumerate(right) if texts[k] != text), None)
        if wrong is not None:
            response, text = texts[wrong], right[wrong]
            message = f"text {wrong}: {_difference(response, text, prompts[wrong], count)}"
    measured = f"{good} of {len(right)} equal" if not facts["returned"]["stopped"] else "not judged"
    return criterion("tokens", 3, not message, measured, "all, as without a cache", message)


def _difference(response: list, text: list[int], prompt: list[int], count: int) -> str:
    if response == prompt + text:
        return SAYS["with-the-prompt"]
    if len(response) != count:
        return SAYS["one-token-less"].format(times=times(len(response), "id"), count=count)
    if strange := [item for item in response if not isinstance(item, int)]:
        return f"{strange[0]} is among the ids: return ints"
    if response[:-1] == text[1:]:
        return SAYS["without-the-first"]
    place = next(k for k, (a, b) in enumerate(zip(response, text, strict=True)) if a != b)
    if place == 0:
        return SAYS["the-last-place-of-the-padding"]
    if place == 1:
        return SAYS["one-place-late"]
    return SAYS["nothing-is-kept"].format(place=place)


def _executions(case: Facts, facts: Facts) -> Criterion:
    prompts, count, ran = case["prompts"], case["count"], facts["executions"]
    least, most = count, len(prompts) * (count + 3)
    message = (
        SAYS["no-sync"] if ran < least or facts["waiting"] > 1 else SAYS["a-place-that-is-read"]
    )
    passed = least <= ran <= most and facts["waiting"] <= 1
    measured = times(ran, "execution")
    if facts["waiting"] > 1:
        measured += f", up to {times(facts['waiting'], 'token')} waiting"
    return criterion("executions", 2, passed, measured, f"{least} to {most}", message)
