"""The cases and the judgement of break-even points, exercise 2 of lab 13."""

import math
import random
from collections.abc import Sequence
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, not_judged, not_of_the_form, row
from utils.labs.values import Ways, near
from utils.labs.wrong_answers import Known, column

SAYS = says("lab13")

AGREE = 1e-6
"""How far apart the two costs may lie where they are said to agree, relative to them: what finds a
root by halving an interval forty times lies well within."""
NAMES = ("first", "second")
CLEAR = 1.15
"""A break-even lies at least so far from the end of what is allowed, as a factor."""

KINDS = {
    "runs": ("first wins later", "second wins later"),
    "of the first": ("mfu", "utilisation"),
    "never": ("less than one run", "cheaper twice", "parallel", "mfu over one",
              "utilisation over one", "engineering alone"),
}  # fmt: skip
"""Where two costs meet, and where they do not."""
EVERY = [kind for kinds in KINDS.values() for kind in kinds]


def flip_cases(rng: random.Random) -> list[Facts]:
    """Questions with a break-even in the number of runs, in the first option's MFU or utilisation,
    without any, and all of them mixed.
    """
    mixed = rng.sample(EVERY, len(EVERY))
    groups = [[*KINDS["runs"], "first wins later"], [*KINDS["of the first"]] * 2, KINDS["never"]]
    return [{"questions": [_question(rng, kind) for kind in group]} for group in [*groups, mixed]]


def _option(rng: random.Random) -> Facts:
    return {
        "price_per_server_hour": round(rng.uniform(2, 110), 3),
        "peak_tflops_per_server": rng.randint(300, 20_000),
        "mfu": rng.randint(15, 60) / 100,
        "utilisation": rng.randint(30, 95) / 100,
        "engineering": rng.randint(2, 200) * 1000,
    }


def _question(rng: random.Random, kind: str) -> Facts:
    first_word = kind.partition(" ")[0]
    what = first_word if first_word in ("mfu", "utilisation") else "runs"
    if kind == "engineering alone":
        what = rng.choice(("mfu", "utilisation"))
    while True:
        task = {"exaflop_per_run": round(10 ** rng.uniform(1, 4.5), 1), "runs": rng.randint(2, 40)}
        first, second = _option(rng), _option(rng)
        if kind == "parallel":
            first = {**second, "engineering": first["engineering"]}
            if not _hides_behind_rounding(task, first, second):
                continue
        question = {"what": what, "task": task, "first": first, "second": second}
        if _kind(question) == kind and _is_clear(question):
            return question


def _hides_behind_rounding(task: Facts, first: Facts, second: Facts) -> bool:
    """Whether equal servers seem to pay back the higher engineering if they are computed by taking
    engineering off again. Always, so that no draw hides it.
    """
    ports = [option["engineering"] / task["runs"] for option in (first, second)]
    one, two = ((compute(task, second) + port) - port for port in ports)
    return (two - one) * (first["engineering"] - second["engineering"]) > 0


def _kind(question: Facts) -> str:
    """Which of the kinds a question is."""
    first, second, what = question["first"], question["second"], question["what"]
    task, at = question["task"], crossing(question)
    if what != "runs":
        if at is None or at <= 0:
            return "engineering alone"
        return what if at < 1 else f"{what} over one"
    rates = compute(task, first), compute(task, second)
    ports = first["engineering"], second["engineering"]
    if rates[0] == rates[1]:
        return "parallel"
    if (rates[0] < rates[1]) == (ports[0] <= ports[1]):
        return "cheaper twice"
    assert at is not None  # the rates differ
    if at < 1:
        return "less than one run"
    return "first wins later" if rates[0] < rates[1] else "second wins later"


def _is_clear(question: Facts) -> bool:
    """Whether no break-even lies at the end of what is allowed, nor far from any use, and one port
    is cheaper than the other.
    """
    at = crossing(question)
    ports = sorted(question[name]["engineering"] for name in NAMES)
    if ports[1] < CLEAR * ports[0]:
        return False
    if at is None or at <= 0:
        return True
    if question["what"] == "runs":
        return CLEAR < at < 200 or at < 1 / CLEAR
    return 0.1 < at < 1 / CLEAR or CLEAR < at < 20


def compute(task: Facts, option: Facts) -> float:
    """Money for the servers of one run."""
    rate = option["peak_tflops_per_server"] * 1e12 * option["mfu"]
    hours = task["exaflop_per_run"] * 1e18 / rate / 3600
    return hours * option["price_per_server_hour"] / option["utilisation"]


def costs(question: Facts, at: float | None = None) -> tuple[float, float]:
    """Money per run of both options; at: another value of what is asked about."""
    task, first, second = (question[name] for name in ("task", *NAMES))
    if at is not None:
        if question["what"] == "runs":
            task = {**task, "runs": at}
        else:
            first = {**first, question["what"]: at}
    return tuple(
        compute(task, option) + option["engineering"] / task["runs"] for option in (first, second)
    )


def crossing(question: Facts) -> float | None:
    """Where both costs agree, allowed or not; None if they agree nowhere."""
    task, first, second = (question[name] for name in ("task", *NAMES))
    if question["what"] == "runs":
        saved = compute(task, second) - compute(task, first)
        return (first["engineering"] - second["engineering"]) / saved if saved else None
    left = costs(question)[1] - first["engineering"] / task["runs"]
    return compute(task, first) * first[question["what"]] / left if left else None


def truth(question: Facts) -> tuple[float | None, str, str]:
    """The break-even, and the cheaper option below and above it."""
    at, runs = crossing(question), question["what"] == "runs"
    if at is not None and (at < 1 if runs else not 0 < at < 1):
        at = None
    around = (1.0, 2.0) if runs else (0.5, 1.0)
    if at is not None:
        around = (at / 1.01, at * 1.01)
    below, above = (NAMES[a > b] for a, b in (costs(question, item) for item in around))
    return at, below, above


def flip_words(case: Facts) -> str:
    """What a card says of a case."""
    item = case["questions"][0]
    return f"{len(case['questions'])} questions, the first about {label(item)}"


def label(question: Facts) -> str:
    """A question by its input and engineering costs, for messages."""
    what = {"runs": "runs", "mfu": "the first's MFU", "utilisation": "the first's utilisation"}
    engineering = [f"{question[name]['engineering']:,}" for name in NAMES]
    return f"{what[question['what']]}, engineering {engineering[0]} and {engineering[1]}"


def judge_flips(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: the break-even, and the cheaper option below and above it."""
    response = facts["response"]
    weights = {"break-even": 4, "cheaper": 3}
    if odd := not_of_the_form(response, weights, SAYS["the-value-alone"], "a dict of 3"):
        return odd
    pairs = list(zip(case["questions"], response, strict=True))
    known = Known("lab13.ex2", case, column("at"), facts)
    texts = [
        _about_value(question, item["at"], known, place)
        for place, (question, item) in enumerate(pairs)
    ]
    rights = [truth(question) for question in case["questions"]]
    values = [(item["at"], right[0]) for item, right in zip(response, rights, strict=True)]
    first = _criterion("break-even", 4, case, texts, values)
    others = [
        "" if text else _about_names(question, item)
        for text, (question, item) in zip(texts, pairs, strict=True)
    ]
    names = [
        (f"{item['below']}, {item['above']}", f"{right[1]}, {right[2]}")
        for item, right in zip(response, rights, strict=True)
    ]
    second = _criterion("cheaper", 3, case, others, names)
    right = all((item["below"], item["above"]) == truth(question)[1:] for question, item in pairs)
    # Which is cheaper on either side of a wrong value tells nothing more.
    return [first, second if first.passed or right or not second.passed else not_judged(second)]


def _criterion(
    name: str, weight: int, case: Facts, texts: list[str], pairs: list[tuple[Any, Any]]
) -> Criterion:
    """pairs: what was said to each question, and what is right."""
    # A None where there is a break-even says little of how it came about.
    wrong = sorted(
        (place for place, text in enumerate(texts) if text),
        key=lambda place: texts[place].startswith("None means"),
    )
    message = texts[wrong[0]] if wrong else ""
    target = "all, costs agree" if name == "break-even" else "all"
    rows = [row(label(case["questions"][p]), *pairs[p]) for p in wrong]
    lines = [mine for mine, _ in pairs]
    return all_right(name, weight, wrong, len(texts), message, target, rows, lines)


def _about_value(question: Facts, at: Any, known: Sequence[Ways] = ((),), place: int = 0) -> str:
    """What is wrong with a break-even; "" if nothing is. known: what the
    recorded wrong answers give; those at `place` belong to this question."""
    right, what = truth(question)[0], question["what"]
    if isinstance(at, str):
        return SAYS["infinity-for-never"].format(at=at)
    if at is None:
        return "" if right is None else _where_they_cross(question)
    if what == "runs" and at < 1:
        return SAYS["any-number-of-runs"].format(at=at)
    if what != "runs" and not 0 < at <= 1:
        return SAYS["an-mfu-over-one"].format(at=at)
    one, two = costs(question, at)
    if right is not None and math.isclose(one, two, rel_tol=AGREE):
        return ""
    if right is None and what == "runs" and crossing(question) is None:
        return SAYS["engineering-taken-off-again"]
    if right is not None and what == "runs" and at in (math.ceil(right), math.floor(right)):
        return SAYS["whole-runs"]
    if text := next((text for text, number in known[place] if near(at, number, 1e-9)), ""):
        return text
    if right is None:
        return "the costs agree nowhere within what is allowed: return None"
    return SAYS["engineering-of-one-run"].format(at=at, one=one, two=two)


def _where_they_cross(question: Facts) -> str:
    """Why there is a break-even: the cheaper option at either end of what is allowed."""
    ends = {"one run": 1, "a million runs": 1e6}
    if question["what"] != "runs":
        ends = {f"{question['what']} {end:g}": end for end in (0.01, 1)}
    response = [
        f"with {name} the first costs {one:,.0f} and the second {two:,.0f}"
        for name, (one, two) in ((name, costs(question, end)) for name, end in ends.items())
    ]
    return SAYS["upside-down"].format(answer=", ".join(response))


def _about_names(question: Facts, response: Facts) -> str:
    """What is wrong with the names of the cheaper; "" if nothing is."""
    right = truth(question)
    given = response["below"], response["above"]
    strange = [item for item in given if item not in NAMES]
    if strange:
        return SAYS["other-names"].format(value=strange[0])
    if given == right[1:]:
        return ""
    if right[0] is None:
        if given[0] != given[1]:
            return SAYS["never-and-both"]
        return SAYS["never-but-who"]
    if given[0] == given[1]:
        return SAYS["the-same-on-both-sides"]
    if question["what"] == "runs":
        return SAYS["sides-exchanged"]
    return SAYS["a-higher-share-is-dearer"]
