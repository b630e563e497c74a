"""Cases and criteria of lab 99."""

import random

from utils.labs import Criterion, Facts, Judge


def double_cases(rng: random.Random) -> list[Facts]:
    return [{"number": rng.randint(3, 9) * size} for size in (1, 10)]


def judge_double(case: Facts, facts: Facts) -> list[Criterion]:
    right = 2 * case["number"]
    return [
        Criterion(
            "value", 1, facts["value"] == right, str(facts["value"]), str(right), "add it to itself"
        )
    ]


def mean_cases(rng: random.Random) -> list[Facts]:
    return [{"values": [rng.randint(1, 9) for _ in range(count)]} for count in (1, 4)]


def judge_mean(case: Facts, facts: Facts) -> list[Criterion]:
    count = len(case["values"])
    right = sum(case["values"]) / count
    return [
        Criterion("mean", 3, facts["mean"] == right, f"{facts['mean']:g}", f"{right:g}", "off"),
        Criterion(
            "reads",
            1,
            facts["reads"] <= count,
            str(facts["reads"]),
            f"at most {count}",
            "each value is read once",
        ),
    ]


JUDGES = {"ex1": Judge(double_cases, judge_double), "ex2": Judge(mean_cases, judge_mean)}
