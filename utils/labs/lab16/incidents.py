"""The cases and the judgement of postmortems, exercise 6 of lab 16. All metrics are made: by a
small model of a service, in which what is asked for flows through what can be computed.
"""

import random
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, not_of_the_form, row

SAYS = says("lab16")

WEIGHTS = {"causes": 3, "since": 2}
MINUTES, CALM = 45, 10
"""Of an incident, and at its beginning, in which nothing happens."""

METRIC = {
    "load": "requests_per_s",
    "long prompts": "prompt_tokens",
    "cache lost": "cached_share",
    "compiling": "compiles",
    "replica failed": "replicas",
    "scaled in": "replicas",
    "fewer blocks": "kv_blocks",
}
"""Causes, and the metric of each."""

SYMPTOM = "ttft_p99_ms"
_LOGGED = {
    "replica failed": "replica {n}: runtime stopped answering, removed from the router",
    "scaled in": "autoscaler: 4 to 3 replicas, mean load of the last hour is low",
}
_RUMOURS = (
    "deploy: router 2.4.{n}, no change of configuration",
    "deploy: engine 0.9.{n}, new default of a log level",
    "autoscaler: 4 replicas, nothing to do",
    "marketing: a newsletter goes out",
    "replica {n}: health check took 1.2 s, and passed when it was tried again",
    "storage: disk of the metrics at 71 %",
)


def make_incident(rng: random.Random, cause: str, blip: str = "") -> Facts:
    """An incident. blip: a metric that is off for one minute, long before."""
    start = rng.randint(18, 26)
    follows = start + rng.randint(3, 5)  # when what follows from the incident begins
    rate, prompt, cached = rng.uniform(6, 14), rng.uniform(500, 1500), rng.uniform(0.5, 0.7)
    factor, blocks = rng.uniform(1.6, 2.2), rng.randrange(3000, 5000, 100)
    base_work = rate * (prompt * (1 - cached) + 400)
    capacity = base_work / 0.85 / 4  # of a replica, in tokens a second; an answer counts as 400
    waiting, waited, rows = 0.0, [0.0, 0.0], []
    for minute in range(MINUTES):
        now, later = minute >= start, minute >= follows
        # Clients try again when nothing comes, which follows; and full caches forget.
        at_once = rate * (factor if cause == "load" and now else 1.0)
        asked = at_once * (1.6 if later and cause != "load" else 1.0)
        length = prompt * (factor * 1.2 if cause == "long prompts" and now else 1.0)
        hit = cached * (0.15 if cause == "cache lost" and now else 0.5 if later else 1.0)
        replicas = 3 if cause in _LOGGED and now else 4
        compiles = rng.randint(2, 6) if cause == "compiling" and now else 0
        kv = blocks * (0.5 if cause == "fewer blocks" and now else 1.0)
        work = asked * (length * (1 - hit) + 400) * (1.3 if kv < blocks else 1.0)
        room = capacity * replicas * (0.6 if compiles else 1.0)
        # Clients give up after a minute.
        waiting = min(max(waiting + 60 * asked * (work / room - 1), 0.0), 60 * asked)
        waited.append(waiting)  # a percentile shows two minutes later what the queue is
        fill = 0.55 * work / base_work * blocks / kv * 4 / replicas + waiting / 600
        noise = [rng.uniform(0.96, 1.04) for _ in range(6)]
        rows.append({
            "requests_per_s": round(asked * noise[0], 1),
            "prompt_tokens": round(length * noise[1]),
            "cached_share": round(hit * noise[2], 2),
            "replicas": replicas,
            "kv_blocks": round(kv),
            "kv_used": round(min(fill * noise[3], 1.0), 2),
            "compiles": compiles,
            "preemptions": round(30 * max(fill - 0.9, 0.0) * noise[4]),
            "waiting": round(waiting),
            SYMPTOM: round((150 + 1000 * waited[minute] / asked) * noise[5]),
        })  # fmt: skip
    metrics: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    if blip:
        at = rng.randint(CALM + 1, 15)
        values = {"compiles": 4, "replicas": 3, "cached_share": 0.2}
        metrics[blip][at] = values.get(blip, round(metrics[blip][at] * 2.1, 1))
    log: list[list[Any]] = [[rng.randint(2, start - 1), text] for text in rng.sample(_RUMOURS, 3)]
    log += [[start, _LOGGED[cause]]] if cause in _LOGGED else []
    log += [[first_off(metrics, SYMPTOM) + 2, f"pager: {SYMPTOM} is beyond its limit"]]
    log = [[minute, text.format(n=rng.randint(1, 4))] for minute, text in sorted(log)]
    return {"metrics": metrics, "log": log, "cause": cause, "start": start}


def first_off(metrics: dict[str, list[Any]], name: str) -> int:
    """The first minute from which a metric stays off its calm value for three; -1 if none."""
    calm = sorted(metrics[name][:CALM])[CALM // 2]
    off = [abs(value - calm) > 0.2 * calm for value in metrics[name]]
    return next((m for m in range(len(off) - 2) if all(off[m : m + 3])), -1)


def incident_cases(rng: random.Random) -> list[Facts]:
    """One incident of each cause in any order, some with a metric that was off for a minute."""
    causes = rng.sample(list(METRIC), len(METRIC))
    incidents = []
    for number, cause in enumerate([*causes, rng.choice(causes)]):
        others = sorted({*METRIC.values()} - {METRIC[cause]})
        incidents.append(make_incident(rng, cause, rng.choice(others) if number % 2 else ""))
    return [{"incidents": incidents[:2]}, {"incidents": incidents[2:]}]


def incident_words(case: Facts) -> str:
    """What a card says of a case."""
    pages = ", ".join(str(item["log"][-1][0]) for item in case["incidents"])
    return f"{len(case['incidents'])} incidents, the last lines of their logs in minutes {pages}"


def judge_postmortems(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: the causes, and when they began."""
    response, incidents = facts["response"], case["incidents"]
    form = "`diagnose` returned {strange}: return {{'cause': ..., 'since': ...}}"
    if odd := not_of_the_form(response, WEIGHTS, form):
        return odd
    pairs = list(zip(incidents, response, strict=True))
    causes = [p for p, (right, mine) in enumerate(pairs) if mine["cause"] != right["cause"]]
    minutes = [p for p, (right, mine) in enumerate(pairs) if mine["since"] != right["start"]]
    shown = [
        row(f"incident {p + 1}", response[p][key], incidents[p][right])
        for some, key, right in ((causes, "cause", "cause"), (minutes, "since", "start"))
        for p in some[:3]
    ]
    first = len(causes[:3])
    texts = (
        _against(*pairs[causes[0]]) if causes else "",
        _why_since(*pairs[minutes[0]]) if minutes else "",
    )
    total = len(pairs)
    return [
        all_right("causes", WEIGHTS["causes"], causes, total, texts[0], rows=shown[:first],
                  response=[item["cause"] for item in response]),
        all_right("since", WEIGHTS["since"], minutes, total, texts[1], rows=shown[first:],
                  response=[item["since"] for item in response]),
    ]  # fmt: skip


def _against(incident: Facts, response: Facts) -> str:
    """The evidence that speaks against a diagnosis."""
    named, metrics = response["cause"], incident["metrics"]
    if named not in METRIC:
        return SAYS["no-such-cause"].format(response=named, causes=", ".join(METRIC))
    name = METRIC[named]
    if name == METRIC[incident["cause"]]:
        line = next(text for minute, text in incident["log"] if text == _log(incident, text))
        return SAYS["the-log-says"].format(response=named, minute=incident["start"], line=line)
    off, calm = first_off(metrics, name), sorted(metrics[name][:CALM])[CALM // 2]
    symptom = first_off(metrics, SYMPTOM)
    if off >= 0:
        return SAYS["it-follows"].format(
            response=named, name=name, off=off, symptom=SYMPTOM, first=symptom
        )
    spikes = [m for m, value in enumerate(metrics[name]) if abs(value - calm) > 0.2 * calm]
    if spikes:
        return SAYS["a-minute-alone"].format(
            response=named, name=name, minute=spikes[0], symptom=SYMPTOM, first=symptom
        )
    return SAYS["did-not-change"].format(
        response=named, name=name, calm=calm, now=metrics[name][symptom], first=symptom
    )


def _log(incident: Facts, text: str) -> str:
    """The text if it is the line of the cause."""
    begins = _LOGGED[incident["cause"]].partition(":")[2]
    return text if text.endswith(begins) else ""


def _why_since(incident: Facts, response: Facts) -> str:
    symptom, minute = first_off(incident["metrics"], SYMPTOM), response["since"]
    pager = incident["log"][-1][0]
    if minute in (symptom, pager):
        return SAYS["since-the-symptom"].format(minute=minute)
    if isinstance(minute, int) and minute < incident["start"]:
        return SAYS["before-it-began"].format(minute=minute)
    return SAYS["another-minute"].format(minute=minute)
