"""The cases and the judgement of explained scaling curves, exercise 5 of lab 07. All invented."""

import random
from dataclasses import replace
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, not_asked_for, not_judged, row, times
from utils.labs.lab07.scaling import GOOD, chip_seconds, efficiency, losses, speed, truth
from utils.labs.values import near
from utils.labs.wrong_answers import message_of

SAYS = says("lab07")

TOLERANCE = 1e-6
MISLEADING = ("weak scaling", "batch grown", "baseline")
LOST = ("communication", "input", "imbalance", "none")
CAUSES = (*MISLEADING, *LOST)
CASES = 4
WEIGHTS = {"misleading claims": 2, "lost time": 2, "numbers": 1}


def curve_cases(rng: random.Random) -> list[Facts]:
    """Four times seven curves, each cause once a time; the claims of the last three alternate."""
    cases = []
    for number in range(CASES):
        causes = list(CAUSES)
        rng.shuffle(causes)
        curves = [_curve(rng, cause, number, place) for place, cause in enumerate(causes)]
        cases.append({"curves": curves})
    return cases


def _curve(rng: random.Random, cause: str, number: int, place: int) -> Facts:
    # Chips of the first row: where nothing is wrong, one is not always the fewest.
    fewest = (2, 4) if cause == "none" and number % 2 else (1, 1, 2, 4)
    while True:
        result = _drawn(rng, cause, ("step", "training")[(number + place) % 2], fewest)
        if truth(result)[0] == cause and _clear(result):
            return result


def _drawn(rng: random.Random, cause: str, claim: str, fewest: tuple[int, ...]) -> Facts:
    claim = {"weak scaling": "step", "batch grown": "training"}.get(cause, claim)
    # A batch that grows is no error of a claim about training, if it costs no samples.
    grows = cause in ("weak scaling", "batch grown") or (claim == "training" and rng.random() < 0.5)
    first, count = rng.choice(fewest), rng.randint(4, 6)
    batch, seconds = 2 ** rng.randint(6, 10) * first, rng.uniform(2e-4, 2e-2)
    samples = rng.randint(2, 90) * 1e5
    lost = {item: rng.uniform(0.005, 0.02) for item in ("communication", "input", "imbalance")}
    if cause in lost:
        lost[cause] = rng.uniform(0.25, 1.2)
        other = rng.choice([item for item in lost if item != cause])
        lost[other] = rng.uniform(0.05, 0.5) * lost[cause]
    elif cause in MISLEADING:
        lost[rng.choice(list(lost))] = rng.uniform(0.02, 0.5)
    slow = rng.uniform(1.25, 2.5) if cause == "baseline" else 1.0
    rows: list[Facts] = []
    for place in range(count):
        chips = first * 2**place
        size = batch * 2**place if grows else batch
        share = place / (count - 1)
        drift = 1 + 0.05 * share * rng.random()
        compute = seconds * size / chips * drift * (1 if place else slow)
        times_now = {item: compute * value * share for item, value in lost.items()}
        slowest = compute + times_now["imbalance"]
        target = samples * (1 + (rng.uniform(0.4, 2.5) * share if cause == "batch grown" else 0))
        rows.append(
            {
                "chips": chips,
                "samples_per_step": size,
                "compute_s": compute,
                "slowest_compute_s": slowest,
                "communication_s": times_now["communication"],
                "input_wait_s": times_now["input"],
                "step_s": slowest + times_now["communication"] + times_now["input"],
                "samples_to_target": round(target),
            }
        )
    for entry in rows:
        entry["claimed_speedup"] = speed(entry) / speed(rows[0])
    return {"claim": claim, "rows": rows}


def _clear(curve: Facts) -> bool:
    """Whether nothing lies at the edge of a rule."""
    first, last = curve["rows"][0], curve["rows"][-1]
    ordered = sorted(losses(last).values())
    unfair = chip_seconds(first) / chip_seconds(last)
    return (
        abs(efficiency(curve) / GOOD - 1) > 0.02
        and ordered[-1] > 1.2 * ordered[-2]
        and not 1.02 < unfair < 1.2
    )


def curve_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{times(len(case['curves']), 'scaling curve')}, the first {label(case['curves'][0])}"


def label(curve: Facts) -> str:
    """A curve by what it claims, for messages."""
    last = curve["rows"][-1]
    return (
        f"claims a {curve['claim']} {last['claimed_speedup']:.3g} times as fast on"
        f" {last['chips']} chips"
    )


def _read_seen(cause: str, curve: Facts) -> str:
    """What in a curve shows its cause."""
    first, last = curve["rows"][0], curve["rows"][-1]
    if cause == "weak scaling":
        return SAYS["claims-believed"].format(
            samples_per_step=first["samples_per_step"], samples_per_step_2=last["samples_per_step"]
        )
    if cause == "batch grown":
        return SAYS["samples-believed"].format(
            samples_to_target=first["samples_to_target"],
            samples_to_target_2=last["samples_to_target"],
        )
    if cause == "baseline":
        return SAYS["first-rows-believed"].format(
            chip_seconds=chip_seconds(first), chip_seconds_2=chip_seconds(last)
        )
    if cause == "none":
        return SAYS["always-something"].format(
            value=last["chips"] / first["chips"], claimed_speedup=last["claimed_speedup"]
        )
    lost = ", ".join(f"{item} {value:.3g} s" for item, value in losses(last).items())
    return SAYS["the-slowest-chip"].format(step_s=last["step_s"], lost=lost)


def _no_alarm(cause: str, curve: Facts) -> str:
    """Why a cause that was named is none."""
    first, last = curve["rows"][0], curve["rows"][-1]
    if cause == "weak scaling":
        if curve["claim"] == "training":
            return SAYS["every-growing-batch"]
        return "samples_per_step is the same in all rows"
    if cause == "batch grown":
        if curve["claim"] == "step":
            return "the claim is about one step, not about training"
        return "samples_to_target is the same in all rows: this batch cost nothing"
    if cause == "baseline":
        return SAYS["any-first-row"].format(
            chip_seconds=chip_seconds(first), chip_seconds_2=chip_seconds(last)
        )
    return ""


def judge_curves(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: causes of misleading claims, causes of lost time, and the numbers."""
    response = facts["response"]
    strange = next((item for item in response if isinstance(item, str)), None)
    if strange is not None:
        message = SAYS["does-nothing-5"].format(strange=strange)
        kind = strange.partition(" without")[0]
        return not_asked_for(WEIGHTS, message, kind, "a dict of 2", others="not judged")
    pairs = list(zip(case["curves"], response, strict=True))
    causes = [truth(curve)[0] for curve in case["curves"]]
    named = [(item["cause"], cause) for item, cause in zip(response, causes, strict=True)]
    results = []
    for (name, weight), group in zip(WEIGHTS.items(), (MISLEADING, LOST), strict=False):
        own = [
            (place, _about_cause(*pairs[place]))
            for place, cause in enumerate(causes)
            if cause in group
        ]
        results.append(_criterion(name, weight, case, own, named))
    numbers = [
        (place, _about_number(case, curve, item))
        for place, (curve, item) in enumerate(pairs)
        if item["cause"] == causes[place]
    ]
    values = [(item["number"], truth(curve)[1]) for curve, item in pairs]
    third = _criterion("numbers", WEIGHTS["numbers"], case, numbers, values)
    # One name for all of them is right of some.
    same = len({item["cause"] for item in response}) < 2
    all_named = len(numbers) == len(pairs)
    return [
        *(not_judged(item, item.message) if same else item for item in results),
        third if all_named or not third.passed else not_judged(third),
    ]


def _criterion(
    name: str, weight: int, case: Facts, texts: list[tuple[int, str]], values: list[tuple[Any, Any]]
) -> Criterion:
    """texts: the places of some curves, and what is wrong with each. values: what was said of each
    curve of the case, and what is right.
    """
    wrong = [number for number, (_, text) in enumerate(texts) if text]
    if not wrong:
        return all_right(name, weight, [], len(texts), "")
    places = [texts[number][0] for number in wrong]
    rows = [row(f"curve {p + 1} ({label(case['curves'][p])})", *values[p]) for p in places]
    result = all_right(name, weight, wrong, len(texts), texts[wrong[0]][1], rows=rows)
    return replace(result, call=places[0])


def _about_cause(curve: Facts, response: Facts) -> str:
    cause, right = response["cause"], truth(curve)[0]
    if cause == right:
        return ""
    if cause not in CAUSES:
        return SAYS["a-name-of-its-own"].format(cause=cause)
    why = _no_alarm(cause, curve) if right not in MISLEADING else ""
    return SAYS["communication-everywhere"].format(
        cause=cause, value=why or _read_seen(right, curve)
    )


def _about_number(case: Facts, curve: Facts, response: Facts) -> str:
    value, (cause, right) = response["number"], truth(curve)
    if isinstance(value, str):
        return SAYS["no-number"].format(cause=cause, value=value)
    if near(value, right, TOLERANCE):
        return ""
    place = case["curves"].index(curve)

    def alike(facts: Facts) -> bool:
        other = facts["response"][place]
        return other["cause"] == cause and near(value, other["number"], TOLERANCE)

    advice = f"{value:.4g} is not the number that the task asks for"
    return f"{cause}: {message_of('lab07.ex5', case, alike, advice)}"
