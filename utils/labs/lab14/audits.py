"""The cases and the judgement of answers against an audit, exercise 4 of lab 14."""

import random
from typing import Any

from utils.cost.decision.findings import DYNAMIC, OWN, PACKAGED
from utils.cost.decision.questions import KERNELS, SHAPES
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import about_all, all_right, not_judged
from utils.labs.wrong_answers import message_of

SAYS = says("lab14")

SCALES = {"kernels": KERNELS, "shapes": SHAPES}
OTHERS = ("cuda-call", "scalar-read", "amp-cuda", "device-string", "pin-memory")
KINDS = (
    "clean", "worse", "much worse", "harder", "packages only", "notes", "few", "split",
    "doubtful", "unread",
)  # fmt: skip
LEAST, MOST = (2, 4), (5, 8)
"""Thresholds of kernels and of shapes: below and above those of the example."""


def audit_cases(rng: random.Random) -> list[Facts]:
    """Three projects, then five, then one of every kind."""
    groups = [
        ["worse", "few", "harder"],
        ["clean", "packages only", "notes", "much worse", "split"],
        rng.sample(KINDS, len(KINDS)),
    ]
    return [{"projects": [_project(rng, kind) for kind in group]} for group in groups]


def _project(rng: random.Random, kind: str) -> Facts:
    own, dynamic = (rng.randint(*ends) for ends in zip(LEAST, MOST, strict=True))
    answers = {"kernels": rng.choice(KERNELS[:2]), "shapes": rng.choice(SHAPES[:2])}
    listed: list[tuple[str, str, int]] = [
        (rng.choice(OTHERS), rng.choice(("error", "warning", "note")), rng.randint(3, 40))
        for _ in range(3)
    ]
    unread = 0
    match kind:
        case "clean":  # what is not found proves nothing
            answers = {"kernels": "known replacements", "shapes": "bucketable"}
        case "worse" | "much worse":
            answers = {"kernels": "none", "shapes": "static"}
            more = rng.randint(1, 4) if kind == "much worse" else 0  # at the threshold counts
            if kind == "worse":
                own, dynamic = LEAST
            severity = "error" if more else "warning"
            listed += [(rng.choice(OWN), severity, own + more)]
            listed += [(rng.choice(DYNAMIC), severity, dynamic + more)]
        case "harder":  # the answer is worse than what is found
            answers = {"kernels": "central", "shapes": "data-dependent"}
            listed += [(rng.choice(PACKAGED), "error", 1), (rng.choice(DYNAMIC), "warning", 2)]
        case "packages only":  # however many, they are none of one's own
            answers = {"kernels": "none", "shapes": "static"}
            listed += [(name, "error", own + 1) for name in rng.sample(PACKAGED, 2)]
            listed += [(rng.choice(DYNAMIC), "warning", dynamic - 1)]
        case "notes":
            answers = {"kernels": "none", "shapes": "static"}
            listed += [(rng.choice(OWN), "note", own + 2), (DYNAMIC[0], "note", dynamic + 3)]
            listed += [(DYNAMIC[1], "warning", 1)]
        case "few":
            answers, (own, dynamic) = {"kernels": "none", "shapes": "static"}, MOST
            listed += [(rng.choice(OWN), "error", own - 1)]
            listed += [(rng.choice(DYNAMIC), "error", dynamic - 1)]
        case "split":  # each rule alone is below the threshold
            answers = {"kernels": "known replacements", "shapes": "bucketable"}
            listed += [(OWN[0], "error", own - 1), (OWN[1], "error", 1)]
            listed += [(DYNAMIC[0], "warning", dynamic - 2), (DYNAMIC[1], "warning", 1)]
            listed += [(DYNAMIC[0], "warning", 1)]
        case "doubtful":
            answers = {"kernels": "central", "shapes": "data-dependent"}
            if rng.random() < 0.5:
                listed += [(rng.choice(OWN), "error", own)]
            else:
                listed += [(rng.choice(DYNAMIC), "warning", 1)]
        case _:
            unread = rng.randint(1, 5)
    rng.shuffle(listed)
    findings = [{"rule": r, "severity": s, "count": n} for r, s, n in listed]
    return {
        "answers": answers,
        "audit": {"findings": findings, "files": rng.randint(20, 400), "unread": unread},
        "thresholds": {"own_kernels": own, "dynamic_findings": dynamic},
        "kind": kind,
    }


def audit_words(case: Facts) -> str:
    """What a card says of a case."""
    first = case["projects"][0]
    response = ", ".join(f"{name} {value!r}" for name, value in first["answers"].items())
    return f"{len(case['projects'])} projects, the first answers {response}"


def count_findings(project: Facts, rules: tuple[str, ...]) -> int:
    """How often an audit found the rules, notes left out."""
    findings = project["audit"]["findings"]
    return sum(e["count"] for e in findings if e["rule"] in rules and e["severity"] != "note")


def audited_answers(project: Facts) -> dict[str, str]:
    """What the audit alone says."""
    limits = project["thresholds"]
    own, packaged, dynamic = (count_findings(project, rules) for rules in (OWN, PACKAGED, DYNAMIC))
    many = own >= limits["own_kernels"], dynamic >= limits["dynamic_findings"]
    return {
        "kernels": KERNELS[2 if many[0] else 1 if own or packaged else 0],
        "shapes": SHAPES[2 if many[1] else 1 if dynamic else 0],
    }


def truth(project: Facts) -> dict[str, Any]:
    """The answers to use, those overruled and those doubted."""
    there, used, overruled, doubted = audited_answers(project), {}, [], []
    for field, scale in SCALES.items():
        response = project["answers"][field]
        used[field] = max(response, there[field], key=scale.index)
        if used[field] != response:
            overruled.append(field)
        elif response == scale[-1] and there[field] == scale[0]:
            doubted.append(field)
    if project["audit"]["unread"]:
        doubted.append("unread")
    return {"used": used, "overruled": overruled, "doubted": sorted(doubted)}


def judge_audits(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: what is used, what is overruled and what is doubted."""
    pairs = list(zip(case["projects"], facts["projects"], strict=True))
    wrong = [
        (place, field)
        for place, (project, response) in enumerate(pairs)
        for field, value in truth(project)["used"].items()
        if response["used"].get(field) != value
    ]
    message = _about_used(case, facts, *wrong[0]) if wrong else ""
    fields = len(SCALES) * len(pairs)
    first = all_right("used", 3, [place for place, _ in wrong], fields, message)
    rest = [
        about_all("overruled", 1, [_about_overruled(*pair) for pair in pairs]),
        about_all("doubted", 1, [_about_doubted(*pair) for pair in pairs]),
    ]
    # Nothing overruled and nothing doubted is right for some, and no work at all.
    return [first, *(rest if len(wrong) < fields else map(not_judged, rest))]


def _about_used(case: Facts, facts: Facts, place: int, field: str) -> str:
    """What is wrong with the answer that is used for a field of a project."""
    response, scale = facts["projects"][place], SCALES[field]
    if not response["kind"].startswith("a dict") or not response["used"]:
        return SAYS["a-tuple"].format(kind=response["kind"])
    given, answered = response["used"].get(field), case["projects"][place]["answers"][field]
    if given is None:
        return f"{field}: nothing is said of what the rule goes by"
    if given not in scale:
        return SAYS["true-for-weeks"].format(field=field, given=given, names=", ".join(scale))

    def of_field(facts: Facts) -> list[str | None]:
        return [item["used"].get(field) for item in facts["projects"]]

    own = of_field(facts)
    if known := message_of("lab14.ex4", case, lambda o: of_field(o) == own, "", like=facts):
        return f"{field}: {known}"
    if scale.index(given) < scale.index(answered):
        return SAYS["an-answer-made-easier"].format(field=field, answered=answered, given=given)
    if given == answered:
        return f"{field}: {SAYS['the-answer-stays']}"
    return f"{field}: answered {answered!r}, you go by {given!r}: neither said nor found"


def _about_overruled(project: Facts, response: Facts) -> str:
    given, right = response["overruled"], truth(project)["overruled"]
    if isinstance(given, str):
        return f"overruled is {given}: return a list of fields, empty if there are none"
    if sorted(given) == sorted(right):
        return ""
    if extra := [item for item in given if item not in right]:
        return SAYS["what-is-equal-is-overruled"].format(value=extra[0])
    missing = next(item for item in right if item not in given)
    return SAYS["nothing-is-overruled"].format(missing=missing)


def _about_doubted(project: Facts, response: Facts) -> str:
    given, right = response["doubted"], truth(project)["doubted"]
    if isinstance(given, str):
        return f"doubted is {given}: return a list, empty if there is no doubt"
    if sorted(given) == sorted(right):
        return ""
    if "unread" in right and "unread" not in given:
        return SAYS["unread-files-are-nothing"]
    if "unread" in given and "unread" not in right:
        return SAYS["unread-always"]
    extra = [item for item in given if item not in right]
    if extra:
        return SAYS["every-easier-finding-is-doubted"].format(value=extra[0])
    missing = next(item for item in right if item not in given)
    return SAYS["no-doubt"].format(missing=missing)
