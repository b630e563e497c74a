"""The cases and the judgement of chosen layouts, exercise 4 of lab 07. Everything is invented."""

import math
import random
from typing import Any, cast

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, not_asked_for, not_judged, row
from utils.labs.lab07.planning import AXES, Layout, allowed, best, fit, memory_gb, step
from utils.labs.values import near

SAYS = says("lab07")

TOLERANCE = 1e-9
MARGIN = 1.02
"""By which the best layout is faster than any other, so that no rounding decides."""
KINDS = ("data", "tensor", "pipeline", "several", "none")
CASES = 4
WEIGHTS = {"layouts that fit": 3, "step": 2, "choice": 3}


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
    return all(abs(memory_gb(question, item) / room - 1) > 0.01 for item in allowed(question))


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


_FITS: tuple[tuple[str, Facts], ...] = (
    (SAYS["no-memory"], {"giga": float("inf")}),
    (SAYS["across-servers"], {"across": True}),
    (SAYS["parts-of-layers"], {"parts": True}),
    ("each replica has as many sequences as the others: data divides sequences", {"rows": True}),
    (SAYS["parameters-whole"], {"states": "nothing"}),
    ("tensor divides the parameters, too", {"states": "pipeline"}),
    ("pipeline divides the parameters, too", {"states": "tensor"}),
    (SAYS["parameters-divided-by-all"], {"states": "all"}),
    (SAYS["weights-alone"], {"bytes": 2}),
    ("16 bytes a parameter", {"bytes": 4}),
    ("16 bytes a parameter", {"bytes": 12}),
    (SAYS["no-activations"], {"no_activations": True}),
    ("a stage has up to pipeline sequences in flight, not one", {"flight": "one"}),
    ("a stage has no more sequences in flight than there are stages", {"flight": "every"}),
    ("tensor divides the activations, too", {"whole": True}),
    (SAYS["activations-of-all-layers"], {"stages": True}),
    ("a GB is 10^9 bytes", {"giga": 2.0**30}),
)  # fmt: skip
_STEPS: tuple[tuple[str, Facts], ...] = (
    (SAYS["no-bubble"], {"bubble": "none"}),
    (SAYS["a-bubble-over-stages"], {"bubble": "stages"}),
    (SAYS["a-bubble-over-stages"], {"bubble": "idle share"}),
    ("the bubble stretches the all-reduces of the layers, too: they lie inside of the stages",
     {"bubble": "compute"}),
    (SAYS["forward-only"], {"flop": 2}),
    (SAYS["one-chip-computes"], {"one_chip": True}),
    ("four all-reduces a layer: two forward, two backward", {"calls": 2}),
    ("four all-reduces a layer, not one", {"calls": 1}),
    ("every sequence of the replica has its all-reduces", {"once": True}),
    ("a chip has the all-reduces of its own stage only: layers / pipeline", {"stages": True}),
    ("a ring sends 2 (n - 1) / n of the bytes", {"ring": "once"}),
    (SAYS["there-and-not-back"], {"ring": "half"}),
    (SAYS["gradients-of-all-parameters"], {"gradients": "nothing"}),
    ("a chip reduces the gradients of its own parameters: tensor divides them, too",
     {"gradients": "pipeline"}),
    ("a chip reduces the gradients of its own parameters: pipeline divides them, too",
     {"gradients": "tensor"}),
    (SAYS["gradients-inside"], {"fast": True}),
    ("gradients take 2 bytes a parameter here", {"gradient_bytes": 4}),
    (SAYS["no-gradients"], {"no_gradients": True}),
    (SAYS["no-layers"], {"no_tensor": True}),
    ("nothing overlaps here: the gradients are added", {"overlap": True}),
)  # fmt: skip


def judge_plans(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the layouts that fit, the seconds of a step, and the choice."""
    response = facts["said"]
    strange = next((item for item in response if isinstance(item, str)), None)
    if strange is not None:
        message = SAYS["does-nothing-4"].format(strange=strange)
        kind = strange.partition(" without")[0]
        return not_asked_for(WEIGHTS, message, kind, "a dict of 3", others="not judged")
    pairs = list(zip(case["questions"], response, strict=True))
    known = _rule(pairs)
    texts = [
        [_about_fits(*pair, known) for pair in pairs],
        [_about_step(*pair) for pair in pairs],
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


def _rule(pairs: list[tuple[Facts, Facts]]) -> str:
    """The wrong rule that gives all of these numbers of layouts, as text; "" if none does."""
    for text, rules in _FITS:
        if all(response["fits"] == len(fit(question, **rules)) for question, response in pairs):
            return text
    return ""


def _about_fits(question: Facts, said: Facts, known: str) -> str:
    count, right = said["fits"], len(fit(question))
    if isinstance(count, str):
        return f"found {count} as 'fits': return how many layouts fit"
    if count == right:
        return ""
    advice = known or "compare memory and rules, layout by layout, with the task"
    return SAYS["none-everywhere"].format(count=count, advice=advice)


def _layout(said: Facts) -> Layout | str | None:
    layout = said["layout"]
    if not isinstance(layout, dict):
        return layout
    sizes = [layout[axis] for axis in AXES]
    strange = [size for size in sizes if isinstance(size, str) or size != int(size) or size < 1]
    return f"{strange[0]} as a size" if strange else cast(Layout, tuple(map(int, sizes)))


def _about_step(question: Facts, said: Facts) -> str:
    """Whether the seconds are those of the layout that is named, be it the best or not."""
    layout, seconds = _layout(said), said["step_s"]
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
    known = [text for text, rules in _STEPS if near(seconds, step(question, layout, **rules), 1e-9)]
    advice = SAYS["milliseconds"].format(seconds=seconds, value=layout[0])
    advice += f" {layout[1]}, pipeline {layout[2]}"
    return [*known, advice][0]


def _about_choice(question: Facts, said: Facts) -> str:
    layout, right = _layout(said), best(question)
    if layout == right:
        return ""
    if isinstance(layout, str):
        return f"found {layout}: return whole numbers for data, tensor and pipeline"
    if layout is None:
        return "None is for where nothing fits, and here something does"
    named = f"data {layout[0]}, tensor {layout[1]}, pipeline {layout[2]}"
    if layout not in list(allowed(question)):
        return f"{named} is not allowed: which rule of the task does it break?"
    if right is None or layout not in fit(question):
        return f"{named} needs {memory_gb(question, layout):.3g} GB a chip, and does not fit"
    return SAYS["the-slowest"].format(named=named, step=step(question, layout))
