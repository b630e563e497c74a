"""The cases and the judgement of diagnoses, exercise 5 of lab 06.

The records are drawn after those that `programs` leaves; a test diagnoses both.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, none_judged, row, times
from utils.labs.values import near
from utils.labs.wrong_answers import message_of

SAYS = says("lab06")

WARM_UP = 3
MOST = 0.25
"""Of what is counted, per step, and of the share of waiting. The records that are drawn lie below
0.21 or above 0.35."""
CAUSES = ("no marker", "fallback", "recompiles", "reads", "starved")
HEALTHY = "healthy"
"""In the order of causes: what comes first brings about what comes later."""
GROUPS = {
    "graphs": (2, ("no marker", "recompiles")),
    "host": (2, ("fallback", "reads")),
    "loader": (1, ("starved",)),
    "no false alarm": (1, (HEALTHY,)),
}
NUMBERS = 2
READ = "aten::_local_scalar_dense"
OPERATORS = ("aten::nonzero", "aten::histc", "aten::_linalg_eigvals", "aten::_unique2")


def record_cases(rng: random.Random) -> list[Facts]:
    """First a record of each kind without anything else, then with all that is harmless."""
    kinds = [*CAUSES, HEALTHY]
    plain = [_record(rng, kind, plain=True) for kind in kinds]
    mixed = [_record(rng, kind) for kind in [*kinds, *kinds, HEALTHY, "no marker"]]
    rng.shuffle(mixed)
    return [{"records": some} for some in (plain, mixed[:7], mixed[7:])]


def record_words(case: Facts) -> str:
    """What a card says of a case."""
    steps = [record["steps"] for record in case["records"]]
    return f"{len(steps)} records of {min(steps)} to {max(steps)} steps"


def _record(rng: random.Random, kind: str, plain: bool = False) -> Facts:
    steps = rng.randint(9, 16)
    after = steps - WARM_UP
    grows = kind == "no marker"
    host = rng.sample(OPERATORS, rng.randint(1, 2)) if kind == "fallback" else []
    reads = _some(rng, steps, after // 5)
    if kind == "reads" or grows:
        reads = [1 if plain or grows else rng.randint(1, 2) for _ in range(steps)]
    compiles = [1, rng.randint(0, 1), 0] + [0] * after
    if kind == "recompiles":
        compiles = [1] * WARM_UP + _some(rng, after, max(after * 2 // 5 + 1, rng.randint(4, after)))
    elif kind == "fallback":
        compiles = [2, 1, 0, *_some(rng, after, rng.randint(0, after // 2))]
    elif grows:
        compiles = [1] * steps
    elif not plain:
        compiles[-1] = rng.randint(0, 1)  # the last batch is smaller
    marks = 0 if grows else 1 if plain else rng.randint(1, 2)
    now = {} if plain else {"UncachedCompile": rng.randint(2, 40), "MarkStep": rng.randint(3, 90)}
    if not plain:
        now |= {rng.choice(OPERATORS): rng.randint(3, 60), READ: rng.randint(1, 50)}
    counters, nodes = [dict(now)], []
    size, more = rng.randint(40, 400), rng.randint(30, 200)
    for step in range(steps):
        ran = [size + more * step] if grows else [size + (step > 0)]
        counted = {name: rng.randint(1, 3) for name in host}
        if not plain and not host and step == 0 and rng.random() < 0.5:
            counted = {rng.choice(OPERATORS): 1}  # while the program is set up
        ran = [3] * sum(counted.values()) + ran
        counted |= {
            READ: reads[step],
            "UncachedCompile": min(compiles[step], len(ran)),
            "CachedCompile": len(ran) - min(compiles[step], len(ran)),
            "MarkStep": marks,
        }
        for name, number in counted.items():
            if number:
                now[name] = now.get(name, 0) + number
        counters.append(dict(now))
        nodes.append(ran)
    works = [rng.randint(40, 120) / 10 for _ in range(steps)]
    slow = rng.uniform(0.7, 4.0) if kind == "starved" else rng.uniform(0.0, 0.15)
    waits = [round(work * slow * rng.uniform(0.9, 1.1), 2) for work in works]
    # Workers start, and what is new compiles.
    waits[0] += rng.randint(200, 900) / 10
    for step, count in enumerate(compiles):
        works[step] += count * rng.randint(300, 900) / 10
    if kind == "starved":
        waits[WARM_UP:] = [max(w, 0.6 * work) for w, work in zip(waits, works, strict=True)][3:]
    return {
        "steps": steps,
        "counters": counters,
        "graph_nodes": nodes,
        "wait_ms": waits,
        "work_ms": works,
    }


def _some(rng: random.Random, steps: int, count: int) -> list[int]:
    """count of so many steps, each 1, the others 0."""
    chosen = set(rng.sample(range(steps), min(count, steps)))
    return [int(step in chosen) for step in range(steps)]


# What is right


def _count(record: Facts, name: str, first: int = WARM_UP) -> int:
    counters = record["counters"]
    return counters[-1].get(name, 0) - counters[first].get(name, 0)


def _operators(record: Facts) -> set[str]:
    return {name for name in record["counters"][-1] if name.startswith("aten::") and name != READ}


def numbers(record: Facts) -> dict[str, float]:
    """The number that belongs to each cause."""
    after = record["steps"] - WARM_UP
    waits, works = (sum(record[name][WARM_UP:]) for name in ("wait_ms", "work_ms"))
    graphs = [item for step in record["graph_nodes"][WARM_UP:] for item in step]
    return {
        "no marker": graphs[-1] / graphs[0] if graphs else 1.0,
        "fallback": sum(_count(record, name) for name in _operators(record)) / after,
        "recompiles": _count(record, "UncachedCompile") / after,
        "reads": _count(record, READ) / after,
        "starved": waits / (waits + works),
    }


def right_diagnosis(record: Facts) -> tuple[str, float | None]:
    """The first cause that holds, with its number; `HEALTHY` and None if none does."""
    result = numbers(record)
    if _count(record, "MarkStep") < record["steps"] - WARM_UP:
        return "no marker", result["no marker"]
    cause = next((item for item in CAUSES[1:] if result[item] > MOST), HEALTHY)
    return cause, result.get(cause)


_SINCE = SAYS["counters-as-they-stand"]
_NO_FALLBACK = SAYS["reads-are-fallbacks"].format(READ=READ)


def judge_diagnoses(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion for each group of causes, one for the numbers."""
    response = list(zip(case["records"], facts["response"], strict=True))
    rows = [_causes(name, weight, kinds, response) for name, (weight, kinds) in GROUPS.items()]
    rows.append(_numbers(case, response))
    if strange := [item for item in facts["response"] if isinstance(item, str)]:
        return none_judged(rows, SAYS["does-nothing-5"].format(value=strange[0]))
    if len({item["cause"] for item in facts["response"]}) == 1:
        # The same of all is right of some by chance.
        kinds = {right_diagnosis(record)[0] for record in case["records"]}
        if len(kinds) > 1:
            record, answer = next(
                (r, s) for r, s in response if s["cause"] != right_diagnosis(r)[0]
            )
            reason = _reason(record, answer["cause"])
            return none_judged(rows, SAYS["always-recompiles"].format(reason=reason))
    return rows


def _causes(
    name: str, weight: int, kinds: Sequence[str], response: list[tuple[Facts, Any]]
) -> Criterion:
    asked = [(r, s) for r, s in response if right_diagnosis(r)[0] in kinds and isinstance(s, dict)]
    wrong = [p for p, (r, s) in enumerate(asked) if s["cause"] != right_diagnosis(r)[0]]
    message = _reason(asked[wrong[0]][0], asked[wrong[0]][1]["cause"]) if wrong else ""
    causes = [s["cause"] for _, s in asked]
    rows = [row(_label(asked[p][0]), causes[p], right_diagnosis(asked[p][0])[0]) for p in wrong]
    result = all_right(name, weight, wrong, len(asked), message, rows=rows, response=causes)
    return among(result, [record for record, _ in asked], [record for record, _ in response])


def _label(record: Facts) -> str:
    return f"a record of {times(record['steps'], 'step')}"


def _reason(record: Facts, cause: str) -> str:
    right, result = right_diagnosis(record)[0], numbers(record)
    if cause not in (*CAUSES, HEALTHY):
        named = SAYS["names-of-its-own"].format(cause=cause)
        return f"{named} was returned: give one of {', '.join((*CAUSES, HEALTHY))}"
    if cause == HEALTHY:
        return (
            f"a record with a fault was called healthy, of {times(record['steps'], 'step')}."
            " After the warm-up: is there a marker in each step, and does any counter grow with"
            " the steps? How long are the waits?"
        )
    if cause == "no marker":
        return "a record with a marker in each step was said to have none: MarkStep counts on"
    if cause == "fallback":
        why = _SINCE if _operators(record) else _NO_FALLBACK
        return f"no operator ran on the host after the warm-up. {why}"
    if right == "no marker":
        return SAYS["compiles-first"].format(cause=cause)
    if right == "fallback":
        return (
            f'"{cause}" is a consequence: an operator runs on the host, which cuts the graph, and'
            " what comes of it has another shape each time"
        )
    if cause == "starved":
        return (
            f"after the warm-up {result['starved']:.0%} of the time is waiting, and the limit is"
            f" {MOST:.0%}: leave out the first three steps here, too"
        )
    if result[cause] == 0:
        return f'"{cause}" was said, and nothing of it happens after the warm-up'
    return SAYS["any-at-all"].format(cause=cause, value=result[cause], MOST=MOST)


def _numbers(case: Facts, response: list[tuple[Facts, Any]]) -> Criterion:
    right = [right_diagnosis(record) for record, _ in response]
    known = [
        p for p, (_, s) in enumerate(response) if isinstance(s, dict) and s["cause"] == right[p][0]
    ]
    wrong = [p for p in known if not near(response[p][1]["number"], right[p][1], 1e-3)]
    message = "" if wrong else "a number counts with the right cause: fix these first"
    for place in wrong[:1]:
        cause, number = right[place][0], response[place][1]["number"]
        if cause == HEALTHY:
            message = SAYS["a-number-for-health"]
        elif not isinstance(number, int | float):
            message = f"the number for {cause} is {number}: give a number"
        else:
            advice = "see the table for what is counted, and per what"
            message = f"{cause}: " + message_of(
                "lab06.ex5", case, _alike(response, place), advice, READ=READ
            )
    rows = [row(_label(response[p][0]), response[p][1]["number"], right[p][1]) for p in wrong]
    wrong += [place for place in range(len(response)) if place not in known]
    return all_right("numbers", NUMBERS, wrong, len(response), message, rows=rows)


def _alike(response: list[tuple[Facts, Any]], place: int) -> Callable[[Facts], int]:
    """How many numbers of a record's answer are those of an answer, if that at a place is."""

    def alike(known: Facts) -> int:
        pairs = zip(known["response"], (item for _, item in response), strict=True)
        same = [a["cause"] == b["cause"] and near(b["number"], a["number"], 1e-3) for a, b in pairs]
        return same[place] * sum(same)

    return alike
