"""What the answers to lab 99 do."""

from utils.labs import Facts, Observer
from utils.labs.forbidden import forbid


def observe_double(answer, case: Facts) -> Facts:
    with forbid("lab99.ex1", "utils.chip.topology"):  # which knows the size of a ring
        return {"value": answer(case["number"])}


def observe_mean(answer, case: Facts) -> Facts:
    reads = []

    def read(index: int) -> float:
        reads.append(index)
        return case["values"][index]

    return {"mean": answer(read, len(case["values"])), "reads": len(reads)}


OBSERVERS = {"ex1": Observer("double", observe_double), "ex2": Observer("mean", observe_mean)}
