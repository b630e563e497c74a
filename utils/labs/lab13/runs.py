"""The cases and the judgement of the cost of a million tokens, exercise 1 of lab 13."""

import random
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, not_of_the_form
from utils.labs.lab13.observe import FACTOR
from utils.labs.values import near, right_values
from utils.labs.wrong_answers import Known, column

SAYS = says("lab13")

PER_CASE = 10
TOLERANCE = 1e-9
PARTS = ("compute", "engineering", "total")

PLAIN = {"startup_hours": 0, "utilisation": 0.5, "failed_runs_per_good_run": 0, "good_runs": 1}
"""Values at which nothing is added, so that the first jobs show one thing at a time. Half, because
a check doubles the utilisation."""
STAGES = (
    ("price",),
    ("utilisation", "startup_hours"),
    ("failed_runs_per_good_run",),
    ("good_runs",),
    (),
)


def job_cases(rng: random.Random) -> list[Facts]:
    """Fifty jobs: each ten have more to them than the ten before."""
    allowed: set[str] = set()
    cases = []
    for stage in STAGES:
        allowed |= set(stage) or set(PLAIN)
        kept = {name: value for name, value in PLAIN.items() if name not in allowed}
        cases.append({"jobs": [_job(rng) | kept for _ in range(PER_CASE)]})
    return cases


def _job(rng: random.Random) -> Facts:
    return {
        "billion_tokens": round(10 ** rng.uniform(-1, 3.3), 2),
        "servers": rng.randint(2, 200),
        "price_per_server_hour": round(rng.uniform(1.5, 120), 3),
        "tokens_per_second_per_server": rng.randint(2_000, 300_000),
        "startup_hours": rng.randint(1, 30) / 20,
        "utilisation": rng.randint(11, 50) / 100,
        "failed_runs_per_good_run": rng.randint(1, 30) / 10,
        "share_of_failed_run": rng.randint(5, 90) / 100,
        "engineers": rng.randint(2, 6),
        "weeks": rng.randint(2, 26),
        "pay_per_week": rng.randint(20, 60) * 100,
        "good_runs": rng.randint(2, 60),
    }


def job_words(case: Facts) -> str:
    """What a card says of a case."""
    return "ten jobs, the first of them " + label(case["jobs"][0])


def label(job: Facts) -> str:
    """A job by its inputs, for messages."""
    return (
        f"{job['billion_tokens']:g} billion tokens on {job['servers']} servers, utilisation"
        f" {job['utilisation']:g}, {job['failed_runs_per_good_run']:g} failed runs,"
        f" {job['good_runs']} good"
    )


def truth(job: Facts) -> dict[str, float]:
    """The cost of a million tokens in its parts."""
    tokens = job["billion_tokens"] * 1e9
    running = tokens / (job["tokens_per_second_per_server"] * job["servers"]) / 3600
    failed = job["failed_runs_per_good_run"]
    starting = job["startup_hours"] * (1 + failed)
    computing = running * (1 + failed * job["share_of_failed_run"])
    hours = (starting + computing) / job["utilisation"]
    compute = hours * job["servers"] * job["price_per_server_hour"]
    port = job["engineers"] * job["weeks"] * job["pay_per_week"] / job["good_runs"]
    parts = {"compute": compute / tokens * 1e6, "engineering": port / tokens * 1e6}
    return {**parts, "total": sum(parts.values())}


_ADVICE = {
    "compute": "billed hours × servers × price, over the millions of tokens of one good run; billed"
    " are the used hours over the utilisation",
    "engineering": "engineers × weeks × pay, shared by the good runs, over the millions of tokens"
    " of one of them",
    "total": "compute and engineering added up",
}


def judge_jobs(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: compute, engineering, total, and how they change with the inputs."""
    jobs, response = case["jobs"], facts["response"]
    weights = {"compute": 3, "engineering": 2, "total": 1, "properties": 1}
    if odd := not_of_the_form(response, weights, SAYS["the-total-alone"], "a dict of 3"):
        return odd
    labels, rights = [label(job) for job in jobs], [truth(job) for job in jobs]
    results = []
    for part in PARTS:
        values, right = column(part)(facts), [item[part] for item in rights]
        known, weight = Known("lab13.ex1", case, column(part), facts), weights[part]
        results.append(
            right_values(part, weight, values, right, labels, known, _ADVICE[part], TOLERANCE)
        )
    if not results[2].passed and not (results[0].passed and results[1].passed):
        # A sum of wrong parts says nothing that they do not say.
        consistent = all(_adds_up(item) for item in response)
        results[2] = not_judged(results[2]) if consistent else results[2]
    return [*results, _properties(facts, jobs)]


def _adds_up(parts: dict[str, Any]) -> bool:
    numbers = [parts[name] for name in PARTS]
    if any(isinstance(number, str) for number in numbers):
        return False
    return near(numbers[2], numbers[0] + numbers[1], TOLERANCE)


def _properties(facts: Facts, jobs: list[Facts]) -> Criterion:
    name, weight = "properties", 1
    answers = [facts[item] for item in ("response", "busier", "longer", "exchanged")]
    numbers = [
        item[part] if isinstance(item, dict) else item
        for answer in answers
        for item in answer
        for part in PARTS
    ]
    if not all(isinstance(number, int | float) and number > 0 for number in numbers):
        message = "asked again with other values, it returned something else than positive numbers"
        first = all(isinstance(n, int | float) and n > 0 for n in numbers[: len(jobs) * len(PARTS)])
        return criterion(name, weight, False, "not judged", "", message if first else "")
    broken: dict[int, str] = {}
    for job, plain, busier, longer, exchanged in zip(jobs, *answers, strict=True):
        texts = [
            (not near(busier["compute"], plain["compute"] / 2, TOLERANCE),
             f"twice the utilisation makes compute {busier['compute'] / plain['compute']:.3g} times"
             " what it was: half is right"),
            (not near(busier["engineering"], plain["engineering"], TOLERANCE),
             "engineering changes with the utilisation: people do not idle with the servers"),
            (longer["engineering"] > plain["engineering"] * (1 + TOLERANCE),
             SAYS["runs-multiply-the-port"]),
            (not near(longer["compute"], plain["compute"], TOLERANCE),
             "compute of a good run changes with how many good runs there are: each pays its own"),
            (not near(exchanged["total"], FACTOR * plain["total"], TOLERANCE),
             SAYS["a-fixed-fee"].format(FACTOR=FACTOR, value=exchanged['total'] / plain['total'])),
        ]  # fmt: skip
        for place, (is_broken, text) in enumerate(texts):
            if is_broken:
                broken.setdefault(place, f"{label(job)}: {text}")
    message = next(iter(broken.values()), "")
    shown = f"{5 - len(broken)} of 5"
    return criterion(name, weight, not broken, shown, "all, in each job", message)
