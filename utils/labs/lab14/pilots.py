"""The cases and the judgement of what a pilot is worth, exercise 5 of lab 14."""

import random
from statistics import median
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import about_all, not_asked_for, not_judged, times
from utils.labs.values import right_values
from utils.labs.wrong_answers import Known

SAYS = says("lab14")

TOLERANCE = 1e-6
"""Relative; of a value of nothing, the share of the larger mean cost that counts as nothing."""
OPTIONS = ("trainium", "gpu")
RESULTS = ("slow", "medium", "fast", "very fast")
KINDS = ("skewed", "not worth it", "never changes", "uneven", "noise", "three results")


def pilot_cases(rng: random.Random) -> list[Facts]:
    """A pilot that may change the choice, one that may not, and one of every kind."""
    groups = [["changes"], ["never changes", "not worth it"], rng.sample(KINDS, len(KINDS))]
    return [{"pilots": [_pilot(rng, kind) for kind in group]} for group in groups]


def _pilot(rng: random.Random, kind: str) -> Facts:
    while True:
        pilot = _draw(rng, kind)
        if _suits(pilot, kind):
            return pilot


def _draw(rng: random.Random, kind: str) -> Facts:
    """Draws of both costs. What a result shifts is the mean of Trainium's cost."""
    gpu = rng.randint(300, 900)
    names = list(RESULTS[: {"three results": 3, "uneven": 4}.get(kind, 2)])
    sizes = rng.sample(range(6, 11), len(names))  # no two results are equally likely
    if kind == "uneven":
        sizes = rng.sample((3, 6, 12, 24), 4)
    shifts = [gpu * rng.uniform(-0.3, 0.3) for _ in names]
    if kind == "noise":
        shifts = [gpu * rng.uniform(-0.02, 0.02)] * len(names)
    if kind == "never changes":
        sign = rng.choice((-1, 1))
        shifts = [sign * gpu * rng.uniform(0.06, 0.3) for _ in names]
    rows = []
    for name, size, shift in zip(names, sizes, shifts, strict=True):
        for _ in range(size):
            cost = gpu + shift + rng.gauss(0, 0.12 * gpu)
            if kind == "skewed" and rng.random() < 0.25:  # seldom, and then expensive
                cost += gpu
            rows.append((name, max(20, round(cost)), round(gpu * rng.uniform(0.9, 1.1))))
    rng.shuffle(rows)
    draws = {
        "trainium": [row[1] for row in rows],
        "gpu": [row[2] for row in rows],
        "result": [row[0] for row in rows],
    }
    worth = value({"draws": draws})
    share = rng.uniform(1.1, 1.6) if kind == "not worth it" else rng.uniform(0.3, 0.9)
    price = round(share * worth, 2) if worth > 0 else round(0.01 * gpu, 2)
    return {"draws": draws, "price": price, "kind": kind}


def _suits(pilot: Facts, kind: str) -> bool:
    """Whether no choice is a close call, and the kind is what it says."""
    gaps = [abs(gap) for gap in (_gap(pilot), *(_gap(pilot, name) for name in _results(pilot)))]
    mean_cost = mean(pilot["draws"]["gpu"])
    if min(gaps) < 0.004 * mean_cost:
        return False
    worth, changes = value(pilot), len(set(after(pilot).values())) > 1
    if kind == "never changes":
        return not changes and worth == 0
    if kind == "noise":
        return worth < 0.03 * mean_cost
    if not changes or worth < 0.01 * mean_cost:
        return False
    return kind != "skewed" or _is_skewed(pilot)


def _is_skewed(pilot: Facts) -> bool:
    """Whether the option that is cheaper on average is cheaper in less than half of the draws of a
    result, and by the median the dearer one.
    """
    for name, option in after(pilot).items():
        other = next(item for item in OPTIONS if item != option)
        mine, theirs = costs(pilot, option, name), costs(pilot, other, name)
        more = sum(a < b for a, b in zip(mine, theirs, strict=True)) < len(mine) / 2
        if more and median(mine) > median(theirs):
            return True
    return False


def pilot_words(case: Facts) -> str:
    """What a card says of a case."""
    first = case["pilots"][0]
    results = len(set(first["draws"]["result"]))
    return (
        f"{times(len(case['pilots']), 'pilot')}, first with {len(first['draws']['result'])} draws,"
        f" {results} results, at a price of {first['price']:g}"
    )


def mean(numbers: list[float]) -> float:
    """The arithmetic mean."""
    return sum(numbers) / len(numbers)


def _results(pilot: Facts) -> list[str]:
    return sorted(set(pilot["draws"]["result"]))


def costs(pilot: Facts, option: str, result: str | None = None) -> list[float]:
    """The drawn costs of an option; with a result, those of the draws that have it."""
    draws = pilot["draws"]
    pairs = zip(draws[option], draws["result"], strict=True)
    return [cost for cost, item in pairs if result in (None, item)]


def _gap(pilot: Facts, result: str | None = None) -> float:
    return mean(costs(pilot, "gpu", result)) - mean(costs(pilot, "trainium", result))


def now(pilot: Facts, result: str | None = None) -> str:
    """The option that is cheaper on average, without a pilot or after one of its results."""
    return min(OPTIONS, key=lambda option: mean(costs(pilot, option, result)))


def after(pilot: Facts) -> dict[str, str]:
    """The option that is cheaper on average, for each result of the pilot."""
    return {name: now(pilot, name) for name in _results(pilot)}


def value(pilot: Facts) -> float:
    """What is saved, on average, by choosing after the result: summed without a loss where the
    choice never changes.
    """
    chosen = now(pilot)
    total = len(pilot["draws"]["result"])
    saved = 0.0
    for name, option in after(pilot).items():
        if option != chosen:
            gap = mean(costs(pilot, chosen, name)) - mean(costs(pilot, option, name))
            saved += len(costs(pilot, option, name)) / total * gap
    return saved


def judge_pilots(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the choices, the value of the pilot, and whether to run it."""
    pilots, response = case["pilots"], facts["pilots"]
    if bad := next((item for item in response if not item["kind"].startswith("a dict")), None):
        message = SAYS["one-number"].format(kind=bad["kind"])
        return not_asked_for({"choices": 2, "value": 3, "pilot": 1}, f"{message} and pilot")
    pairs = list(zip(pilots, response, strict=True))
    choices = about_all("choices", 2, [_about_choices(*pair) for pair in pairs])
    values = _judge_values(case, facts)
    verdicts = about_all("pilot", 1, [_about_pilot(*pair) for pair in pairs])
    # Without a value, whether it is more than the price is a guess.
    return [choices, values, verdicts if values.passed else not_judged(verdicts)]


def _about_choices(pilot: Facts, response: Facts) -> str:
    if response["now"] != now(pilot):
        if response["now"] not in OPTIONS:
            return f'now is {response["now"]}: it is "trainium" or "gpu"'
        return SAYS["what-is-cheaper-more-often"]
    for name, option in after(pilot).items():
        if name not in response["after"]:
            return SAYS["one-choice-for-all-results"].format(name=name)
        if response["after"][name] != option:
            return SAYS["never-a-choice"].format(name=name)
    if extra := [name for name in response["after"] if name not in after(pilot)]:
        return f"after: {extra[0]} is no result that occurs among the draws"
    return ""


def _judge_values(case: Facts, facts: Facts) -> Criterion:
    def values(facts: Facts) -> list[Any]:
        return [item["value"] for item in facts["pilots"]]

    pilots, known = case["pilots"], Known("lab14.ex5", case, values)
    advice = (
        "the mean cost of choosing now, less that of choosing after each result, weighed by how"
        " often it comes: 0 where no result changes the choice"
    )
    labels = [f"a pilot with {len(pilot['draws']['result'])} draws" for pilot in pilots]
    right = [value(pilot) for pilot in pilots]
    response = [
        0.0
        if isinstance(item, float) and abs(item) <= TOLERANCE * max(pilot["draws"]["gpu"])
        else item
        for pilot, item in zip(pilots, values(facts), strict=True)
    ]
    return right_values("value", 3, response, right, labels, known, advice, TOLERANCE)


def _about_pilot(pilot: Facts, response: Facts) -> str:
    worth = value(pilot) > pilot["price"]
    if response["pilot"] is worth:
        return ""
    if not isinstance(response["pilot"], bool):
        return SAYS["a-sentence"].format(pilot=response["pilot"])
    if worth:
        return SAYS["the-price-turned-round"]
    if value(pilot) == 0:
        return SAYS["always-a-pilot"]
    return "the value is less than the price: choose without it"
