"""The cases and the judgement of chosen layouts, exercise 4 of lab 07. Everything is invented."""

import math
import random
from typing import Any, cast

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, not_asked_for, not_judged, row
from utils.labs.lab07.planning import AXES, Layout, best, fit, memory_gb, options, step
from utils.labs.values import near
from utils.labs.wrong_answers import message_of

SAYS = says("lab07")

TOLERANCE = 1e-9
MARGIN = 1.02
"""By which the best layout is faster than any other, so that no rounding decides."""
KINDS = ("data", "tensor", "pipeline", "several", "none")
CASES = 4
WEIGHTS = {"layouts that fit": 2, "step": 2, "choice": 2}


def plan_cases(rng: random.Random) -> list[Facts]:
    """Four times five questions: of each kind of answer one, in any order but in the first case."""
    cases = []
    for number in range(CASES):
        kinds = list(KINDS)
        if number:
            rng.shuffle(kinds)
        cases.append({"questions": [_question(rng, kind) for kind in kinds]})
    return cases


def _question(rng: random.Random, kind: str) -> Facts:
    while True:
        layers = rng.choice((16, 24, 32, 40, 48, 64, 80))
        question = {
            "model": {
                "layers": layers,
                "width": 512 * rng.randint(2, 16),
                "length": rng.choice((2048, 4096, 8192)),
                "sequences": 2 ** rng.randint(4, 10),
            },
            "cluster": {
                "chips": 2 ** rng.randint(4, 9),
                "chips_per_server": rng.choice((4, 8, 16)),
                "memory_gb": 8 * rng.randint(2, 16),
                "tflops": 10 * rng.randint(5, 40),
                "inside_gb_per_s": 10 * rng.randint(5, 60),
                "between_gb_per_s": rng.randint(4, 60),
            },
        }
        fitting = sorted((step(question, item), item) for item in fit(question))
        clear = len(fitting) < 2 or fitting[0][0] * MARGIN < fitting[1][0]
        if clear and _kind([item for _, item in fitting]) == kind and _apart(question):
            return question


def _kind(fitting: list[Layout]) -> str:
    if not fitting:
        return "none"
    used = [
        axis for axis, size in zip(AXES, fitting[0], strict=True) if axis != "data" and size > 1
    ]
    return "several" if len(used) > 1 else (used or ["data"])[0]


def _apart(question: Facts) -> bool:
    """Whether no layout fills the memory to within a percent, so that no rounding decides."""
    room = question["cluster"]["memory_gb"]
    return all(abs(memory_gb(question, item) / room - 1) > 0.01 for item in options(question))


def plan_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{len(case['questions'])} models and clusters, the first " + label(case["questions"][0])


def label(question: Facts) -> str:
    """A model and its cluster, for messages."""
    model, cluster = question["model"], question["cluster"]
    return (
        f"{model['layers']} layers of width {model['width']}, {model['sequences']} sequences of"
        f" {model['length']}, on {cluster['chips']} chips of {cluster['memory_gb']} GB"
    )


def judge_plans(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the layouts that fit, the seconds of a step, and the choice."""
    response = facts["response"]
    strange = next((item for item in response if isinstance(item, str)), None)
    if strange is not None:
        message = SAYS["does-nothing-4"].format(strange=strange)
        kind = strange.partition(" without")[0]
        return not_asked_for(WEIGHTS, message, kind, "a dict of 3", others="not judged")
    pairs = list(zip(case["questions"], response, strict=True))
    counts = [item["fits"] for item in response]
    known = message_of(
        "lab07.ex4", case, lambda f: [q["fits"] for q in f["response"]] == counts, ""
    )
    texts = [
        [_about_fits(*pair, known) for pair in pairs],
        [_about_step(case, *pair) for pair in pairs],
        [_about_choice(*pair) for pair in pairs],
    ]
    values: list[list[tuple[Any, Any]]] = [
        [(item["fits"], len(fit(question))) for question, item in pairs],
        [],  # of the layout that is named, be it the best or not
        [(_layout(item), best(question)) for question, item in pairs],
    ]
    results = [
        _criterion(name, weight, case, text, beside)
        for (name, weight), text, beside in zip(WEIGHTS.items(), texts, values, strict=True)
    ]
    # To say of each question that nothing fits is right of some, and shows nothing.
    if all(item["layout"] is None for item in response):
        results[1:] = [not_judged(item) for item in results[1:]]
    return results


def _criterion(
    name: str, weight: int, case: Facts, texts: list[str], values: list[tuple[Any, Any]]
) -> Criterion:
    """values: what was said to each question, and what is right; empty if a card shows neither."""
    wrong = [place for place, text in enumerate(texts) if text]
    labels = [f"question {n + 1} ({label(item)})" for n, item in enumerate(case["questions"])]
    message = ""
    if wrong:
        message = texts[wrong[0]] if values else f"{labels[wrong[0]]}: {texts[wrong[0]]}"
    rows = [row(labels[p], *values[p]) for p in wrong if values]
    return all_right(name, weight, wrong, len(texts), message, rows=rows)


def _about_fits(question: Facts, response: Facts, known: str) -> str:
    count, right = response["fits"], len(fit(question))
    if isinstance(count, str):
        return f"found {count} as 'fits': return how many layouts fit"
    if count == right:
        return ""
    advice = known or "compare memory and rules, layout by layout, with the task"
    return SAYS["none-everywhere"].format(count=count, advice=advice)


def _layout(response: Facts) -> Layout | str | None:
    layout = response["layout"]
    if not isinstance(layout, dict):
        return layout
    sizes = [layout[axis] for axis in AXES]
    strange = [size for size in sizes if isinstance(size, str) or size != int(size) or size < 1]
    return f"{strange[0]} as a size" if strange else cast(Layout, tuple(map(int, sizes)))


def _about_step(case: Facts, question: Facts, response: Facts) -> str:
    """Whether the seconds are those of the layout that is named, be it the best or not."""
    layout, seconds = _layout(response), response["step_s"]
    if layout is None:
        return "" if seconds is None else "a step without a layout: return None for both"
    if isinstance(layout, str):
        return f"found {layout}: return whole numbers for data, tensor and pipeline"
    if math.prod(layout) != question["cluster"]["chips"]:
        return f"data {layout[0]}, tensor {layout[1]}, pipeline {layout[2]} are not all chips"
    right = step(question, layout)
    if isinstance(seconds, str) or seconds is None:
        return f"found {seconds} as 'step_s': return seconds"
    if near(seconds, right, TOLERANCE):
        return ""
    place = case["questions"].index(question)

    def alike(facts: Facts) -> bool:
        other = facts["response"][place]
        return other["layout"] == response["layout"] and near(seconds, other["step_s"], 1e-9)

    advice = SAYS["milliseconds"].format(seconds=seconds, value=layout[0])
    advice += f" {layout[1]}, pipeline {layout[2]}"
    return message_of("lab07.ex4", case, alike, advice)


def _about_choice(question: Facts, response: Facts) -> str:
    layout, right = _layout(response), best(question)
    if layout == right:
        return ""
    if isinstance(layout, str):
        return f"found {layout}: return whole numbers for data, tensor and pipeline"
    if layout is None:
        return "None is for where nothing fits, and here something does"
    named = f"data {layout[0]}, tensor {layout[1]}, pipeline {layout[2]}"
    if layout not in list(options(question)):
        return f"{named} is not allowed: which rule of the task does it break?"
    if right is None or layout not in fit(question):
        return f"{named} needs {memory_gb(question, layout):.3g} GB a chip, and does not fit"
    return SAYS["the-slowest"].format(named=named, step=step(question, layout))
