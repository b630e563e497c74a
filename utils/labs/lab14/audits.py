"""The cases and the judgement of answers against an audit, exercise 4 of lab 14."""

import random
from collections.abc import Callable
from typing import Any

from utils.cost.decision.findings import DYNAMIC, OWN, PACKAGED
from utils.cost.decision.questions import KERNELS, SHAPES
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import about_all, all_right, not_judged

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
        ["worse", "much worse", "harder"],
        ["clean", "packages only", "notes", "few", "split"],
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


Count = Callable[[Facts, tuple[str, ...]], int]


SEVERITIES = ("error", "warning", "note")


def _counts(
    project: Facts, rules: tuple[str, ...], severities: tuple[str, ...] = SEVERITIES[:2]
) -> list[int]:
    findings = project["audit"]["findings"]
    return [e["count"] for e in findings if e["rule"] in rules and e["severity"] in severities]


def counted(project: Facts, rules: tuple[str, ...]) -> int:
    """How often an audit found the rules, notes left out."""
    return sum(_counts(project, rules))


def audited_answers(
    project: Facts, count: Count = counted, own: tuple[str, ...] = OWN, above: int = 0
) -> dict[str, str]:
    """What the audit alone says. above: added to the thresholds."""
    limits = {name: limit + above for name, limit in project["thresholds"].items()}
    mine, packaged = count(project, own), count(project, PACKAGED)
    dynamic = count(project, DYNAMIC)
    many = mine >= limits["own_kernels"], dynamic >= limits["dynamic_findings"]
    return {
        "kernels": KERNELS[2 if many[0] else 1 if mine or packaged else 0],
        "shapes": SHAPES[2 if many[1] else 1 if dynamic else 0],
    }


def truth(project: Facts, **way: Any) -> dict[str, Any]:
    """The answers to use, those overruled and those doubted. way: as in `audited_answers`."""
    there, used, overruled, doubted = audited_answers(project, **way), {}, [], []
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


WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    (SAYS["notes-count"], {"count": lambda p, rules: sum(_counts(p, rules, SEVERITIES))}),
    (SAYS["errors-only"], {"count": lambda p, rules: sum(_counts(p, rules, ("error",)))}),
    (SAYS["the-largest-entry"], {"count": lambda p, rules: max(_counts(p, rules), default=0)}),
    (SAYS["entries-are-counted"], {"count": lambda p, rules: len(_counts(p, rules))}),
    (SAYS["packages-as-ones-own"], {"own": OWN + PACKAGED}),
    (SAYS["more-than-the-threshold"], {"above": 1}),
)
"""What wrong ways there are to read an audit."""


def judge_audits(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: what is used, what is overruled and what is doubted."""
    projects, response = case["projects"], facts["projects"]
    pairs = list(zip(projects, response, strict=True))
    known = {field: _recognise(field, projects, response) for field in SCALES}
    message = next((text for p, entry in pairs if (text := _about_used(p, entry, known))), "")
    fields = len(SCALES) * len(projects)
    wrong = [
        place
        for place, (p, entry) in enumerate(pairs)
        for field, value in truth(p)["used"].items()
        if entry["used"].get(field) != value
    ]
    first = all_right("used", 3, wrong, fields, message)
    rest = [
        about_all("overruled", 1, [_about_overruled(*pair) for pair in pairs]),
        about_all("doubted", 1, [_about_doubted(*pair) for pair in pairs]),
    ]
    # Nothing overruled and nothing doubted is right for some, and no work at all.
    return [first, *(rest if len(wrong) < fields else map(not_judged, rest))]


def _recognise(field: str, projects: list[Facts], response: list[Facts]) -> str:
    """What a wrong way is called that gives all that is said of a field; "" if none does."""
    given = [item["used"].get(field) for item in response]
    if given == [project["answers"][field] for project in projects]:
        return SAYS["the-answer-stays"]
    for text, way in WAYS:
        if given == [truth(project, **way)["used"][field] for project in projects]:
            return text
    return ""


def _about_used(project: Facts, response: Facts, known: dict[str, str]) -> str:
    if not response["kind"].startswith("a dict") or not response["used"]:
        return SAYS["a-tuple"].format(kind=response["kind"])
    right = truth(project)["used"]
    for field, value in right.items():
        given, answered = response["used"].get(field), project["answers"][field]
        if given == value:
            continue
        if given is None:
            return f"{field}: nothing is said of what the rule goes by"
        if given not in SCALES[field]:
            return SAYS["true-for-weeks"].format(
                field=field, given=given, names=", ".join(SCALES[field])
            )
        if known.get(field):
            return f"{field}: {known[field]}"
        scale = SCALES[field]
        if scale.index(given) < scale.index(answered):
            return SAYS["an-answer-made-easier"].format(field=field, answered=answered, given=given)
        if given == answered:
            return f"{field}: the audit finds worse than {answered!r}, and it overrules the answer"
        return f"{field}: answered {answered!r}, you go by {given!r}: neither said nor found"
    return ""


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
