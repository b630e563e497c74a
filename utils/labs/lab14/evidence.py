"""The cases and the judgement of a checklist that fills itself, exercise 7 of lab 14."""

import datetime
import random
from collections.abc import Callable
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged
from utils.labs.lab14.examples import ITEMS

SAYS = says("lab14")

OPEN, DONE, FAILED = "open", "done", "failed"
STATES = (OPEN, DONE, FAILED)

ALL_ITEMS: tuple[Facts, ...] = (
    ITEMS[0],
    {"item": "graphs", "reads": "graphs after warm-up", "compare": "<=", "limit": 0, "on": "any",
     "days": 60, "after": ["kernels"]},
    ITEMS[1] | {"after": ["graphs"]},
    {"item": "quality", "reads": "accepted answers", "compare": ">=", "limit": 0.9, "on": "device",
     "days": 60, "after": ["parity"]},
    {"item": "throughput", "reads": "throughput over break-even", "compare": ">=", "limit": 1,
     "on": "device", "days": 45, "after": ["parity"]},
    ITEMS[2] | {"after": ["throughput", "quality"]},
    {"item": "capacity", "reads": "servers promised in writing", "compare": ">=", "limit": 8,
     "on": "any", "days": 120, "after": []},
)  # fmt: skip

ORDER = tuple(all_item["item"] for all_item in ALL_ITEMS)
"""None comes before what it rests on, so that the first wrong state is no consequence."""

KINDS = (
    "good", "missing", "bad", "vendor", "assumed", "laptop", "stale", "future", "other code",
    "no value", "undecided", "all outside", "contradiction", "old beside new", "at the limit",
    "last day", "other machine",
)  # fmt: skip
"""What may be recorded of an item."""


def evidence_cases(rng: random.Random) -> list[Facts]:
    """One project that has all, some with one weakness each, and some with many."""
    groups = [
        [[], ["missing"], ["bad"]],
        [["vendor"], ["laptop"], ["stale"], ["other code"]],
        [["undecided"], ["all outside"], ["contradiction"], ["old beside new"]],
        [["assumed"], ["future"], ["no value"], ["at the limit"], ["last day"], ["other machine"]],
        [rng.sample(KINDS, 4) for _ in range(7)],
    ]
    return [{"projects": [_project(rng, kinds) for kinds in group]} for group in groups]


def _project(rng: random.Random, kinds: list[str]) -> Facts:
    today = datetime.date(2025, 1, 1) + datetime.timedelta(rng.randint(0, 600))
    code = rng.choice(("a1", "b7", "c4", "d9"))
    items = [dict(all_item) for all_item in ALL_ITEMS]
    places = rng.sample(range(len(items)), len(kinds))
    if kinds in (["laptop"], ["contradiction"]):  # where it matters, and where more rests on it
        places = [2]
    if kinds == ["other machine"]:
        places = [rng.choice((2, 3, 4))]
    at = dict(zip(places, kinds, strict=True))
    record = [
        entry
        for place, item in enumerate(items)
        for entry in _entries(rng, item, at.get(place, "good"), today, code)
    ]
    rng.shuffle(record)
    rng.shuffle(items)
    return {"items": items, "record": record, "today": str(today), "code": code, "kinds": kinds}


def _entries(
    rng: random.Random, item: Facts, kind: str, today: datetime.date, code: str
) -> list[Facts]:
    def entry(value: Any, age: int | None = None, /, **changes: Any) -> Facts:
        days = rng.randint(1, item["days"] - 5) if age is None else age
        return {
            "reads": item["reads"], "value": value, "from": "measured", "on": "device",
            "date": str(today - datetime.timedelta(days)), "code": code, **changes,
        }  # fmt: skip

    good, bad = _values(rng, item)
    other = rng.choice([element for element in ("a0", "b7", "c3", "d9") if element != code])
    inside, outside = sorted((good, _farther(item, good))), sorted((bad, _farther(item, bad, -1)))
    made: dict[str, Callable[[], list[Facts]]] = {
        "good": lambda: [entry(rng.choice((good, inside)))],
        "missing": lambda: [],
        "bad": lambda: [entry(bad)],
        "vendor": lambda: [entry(good, **{"from": "vendor claim"})],
        "assumed": lambda: [entry(good, **{"from": rng.choice(("assumed", "modelled"))})],
        "laptop": lambda: [entry(good, on="laptop")],
        "other machine": lambda: [entry(good, on="GPU server")],
        "stale": lambda: [entry(good, item["days"] + rng.randint(1, 90))],
        "future": lambda: [entry(good, -rng.randint(1, 9))],
        "other code": lambda: [entry(good, code=other)],
        "no value": lambda: [entry(None)],
        "undecided": lambda: [entry(sorted((good, bad)))],
        "all outside": lambda: [entry(outside)],
        "contradiction": lambda: [entry(good), entry(bad)],
        "old beside new": lambda: [entry(bad, item["days"] + rng.randint(1, 90)), entry(good)],
        "at the limit": lambda: [entry(item["limit"])],
        "last day": lambda: [entry(good, item["days"])],
    }
    return made[kind]()


def _values(rng: random.Random, item: Facts) -> tuple[float, float]:
    """One that meets the limit, and one that does not."""
    limit = item["limit"]
    if limit == 0:
        return 0, rng.randint(1, 6)
    if item["compare"] == ">=" and limit >= 2:
        return limit + rng.randint(0, 4), limit - rng.randint(1, 5)
    return round(limit * rng.uniform(1.02, 1.08), 4), round(limit * rng.uniform(0.4, 0.95), 4)


def _farther(item: Facts, value: float, sign: int = 1) -> float:
    """A value on the same side of the limit: farther from it, or for bad ones (sign -1) too."""
    if item["limit"] >= 2:
        return value + sign
    if item["compare"] == "<=":
        return max(0, value - 1) if sign > 0 else value + 2
    return round(value * 1.02, 4) if sign > 0 else round(value * 0.9, 4)


def evidence_words(case: Facts) -> str:
    """What a card says of a case."""
    first = case["projects"][0]
    return (
        f"{len(case['projects'])} projects of {len(first['items'])} items, the first with"
        f" {len(first['record'])} entries"
    )


def counts(item: Facts, entry: Facts, project: Facts) -> bool:
    """Whether an entry is evidence for an item."""
    return not why_not(item, entry, project)


def why_not(item: Facts, entry: Facts, project: Facts) -> str:
    """Why an entry is no evidence for an item; "" if it is."""
    age = (_date(project["today"]) - _date(entry["date"])).days
    if entry["from"] != "measured":
        return SAYS["claims-count"].format(source=entry["from"])
    if item["on"] == "device" and entry["on"] != "device":
        return SAYS["a-laptop-will-do"].format(machine=entry["on"])
    if entry["code"] != project["code"]:
        return SAYS["any-version"]
    if age > item["days"]:
        return SAYS["never-stale"].format(age=age, days=item["days"])
    if age < 0:
        return SAYS["the-future-is-fresh"]
    if entry["value"] is None:
        return "it has no value"
    return ""


def _date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def meets(item: Facts, value: Any) -> bool | None:
    """Whether a value meets the limit; None for an interval that lies on both sides."""
    ends = _ends({"value": value})
    met = [end <= item["limit"] if item["compare"] == "<=" else end >= item["limit"]
           for end in ends]  # fmt: skip
    return None if any(met) and not all(met) else met[0]


def alone(item: Facts, project: Facts) -> str:
    """The state of an item by its own evidence."""
    entries = [entry for entry in project["record"] if entry["reads"] == item["reads"]]
    response = {meets(item, e["value"]) for e in entries if counts(item, e, project)}
    if len(response) != 1 or None in response:
        return OPEN
    return DONE if response.pop() else FAILED


def _ends(entry: Facts) -> list[float]:
    return entry["value"] if isinstance(entry["value"], list) else [entry["value"]]


def truth(project: Facts) -> dict[str, str]:
    """The state of each item: open until all that it comes after is done."""
    by_name = {item["item"]: item for item in project["items"]}

    def state(name: str) -> str:
        ready = all(state(item) == DONE for item in by_name[name]["after"])
        return alone(by_name[name], project) if ready else OPEN

    return {name: state(name) for name in by_name}


def judge_checklists(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the items that are done, those that failed, and those that are open."""
    rights = [truth(project) for project in case["projects"]]
    items = [
        (project, right, name, response["states"].get(name))
        for project, right, response in zip(
            case["projects"], rights, facts["projects"], strict=True
        )
        for name in ORDER
    ]
    parts = [_judge_state(state, n, items) for state, n in ((DONE, 2), (FAILED, 1), (OPEN, 2))]
    # An answer that calls everything open, or everything done, knows nothing.
    if len({given for *_, given in items} & set(STATES)) < 2:
        texts = [part.message for part in parts]
        kinds = [response["kind"] for response in facts["projects"]]
        if bad := [kind for kind in kinds if not kind.startswith("a dict")]:
            texts[0] = SAYS["states-as-a-list"].format(kind=bad[0])
        return [not_judged(item, text) for item, text in zip(parts, texts, strict=True)]
    return parts


def _judge_state(
    state: str, weight: int, items: list[tuple[Facts, dict[str, str], str, str | None]]
) -> Criterion:
    """Whether the items in this state are said to be. items: each with its project, the right
    states of all, its name and the state that is given.
    """
    asked = [item for item in items if item[1][item[2]] == state]
    wrong = [item for item in asked if item[-1] != state]
    message = _about_item(*wrong[0]) if wrong else ""
    names = {DONE: "done is done", FAILED: "failed is failed", OPEN: "open stays open"}
    good = f"{len(asked) - len(wrong)} of {len(asked)}"
    return criterion(names[state], weight, not message, good, "all", message)


def _about_item(project: Facts, states: dict[str, str], name: str, given: str | None) -> str:
    if given is None:
        return f"{name}: no state: every item has one"
    if given not in STATES:
        return SAYS["no-such-state"].format(name=name, given=given, states=", ".join(STATES))
    item = next(entry for entry in project["items"] if entry["item"] == name)
    entries = [entry for entry in project["record"] if entry["reads"] == item["reads"]]
    good = [entry for entry in entries if counts(item, entry, project)]
    right = states[name]
    if right == OPEN:
        if waits := [entry for entry in item["after"] if states[entry] != DONE]:
            return SAYS["nothing-comes-before"].format(name=name, given=given, value=waits[0])
        if not entries:
            return SAYS["done-unless-something-fails"].format(name=name, given=given)
        if not good:
            reason = why_not(item, entries[0], project)
            return f"{SAYS['all-entries-good-or-bad'].format(name=name, given=given)} {reason}"
        if len({meets(item, entry["value"]) for entry in good}) > 1:
            return SAYS["the-last-entry-only"].format(name=name, given=given)
        return SAYS["the-middle-of-an-interval"].format(name=name, given=given)
    if len(entries) > len(good):
        return f"{name}: an entry that is no evidence decides nothing beside a good one: {right}"
    ages = [(_date(project["today"]) - _date(entry["date"])).days for entry in good]
    if given == OPEN and max(ages) == item["days"]:
        return SAYS["the-last-day-is-too-old"].format(name=name, days=item["days"])
    if given == FAILED and any(item["limit"] in _ends(entry) for entry in good):
        return SAYS["strictly-better"].format(name=name, compare=item["compare"])
    if any(isinstance(entry["value"], list) for entry in good):
        return SAYS["good-evidence-is-not-used"].format(name=name, right=right)
    if right == FAILED:
        return f"{name}: good evidence misses the limit: that is failed, not {given}"
    return SAYS["good-evidence-decides"].format(name=name)
