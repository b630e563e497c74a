"""What the rows of the capstone's card have in common, and those of a life's end: evaluation,
benchmark and compiles.
"""

import re
from typing import Any

from utils.course.earlier import WANTED
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, times

SAYS = says("lab15")

TOLERANCE = 1e-4
"""How far a loss may lie from the same loss computed one sentence at a time.

Float32 on two devices and in other orders of sums: a test keeps right answers below a twentieth of
it, and the wrong answers kept for this lab lie outside.
"""

MOST_COMPILES = 12
"""In one life, which trains, evaluates twice and is measured: 2 for the steps (AdamW has no moments
in the first), 3 buckets before the merge and 3 after it, 1 for the benchmark; 3 to spare."""

MOST_TO_TRAIN = 4
"""Of these for the steps: 2, and 2 to spare for another way to write them."""

HOMES = {
    name: f"lab {item.lab[3:]}, exercise {item.exercise[2:]}"
    for item in WANTED["lab15"]
    for name in item.functions
}
NAMES = ("earlier answers", "adapters", "training", "killed and resumed", "evaluation",
         "benchmark", "compiles")  # fmt: skip
WEIGHTS = (1, 2, 2, 4, 3, 1, 1)


def row(place: int, message: str, measured: str = "", target: str = "") -> Criterion:
    """A criterion that is met if there is no message."""
    return criterion(NAMES[place], WEIGHTS[place], not message, measured, target, message)


def far_off(said: Any, right: float) -> bool:
    """Whether a returned loss is no number, or beyond the tolerance."""
    return isinstance(said, str) or abs(said - right) > TOLERANCE


def in_words(value: Any) -> str:
    """A loss with four decimals; a description as it is."""
    return value if isinstance(value, str) else f"{value:.4f}"


def evaluation(life: Facts) -> Criterion:
    """The losses of all sentences, before and after the merge."""
    result, calls = life["evaluations"], life["calls"]
    order = [name for name in calls if name in ("bucketed_losses", "merge")]
    returned, target = life["returned"], f"within {TOLERANCE:g}, before and after"
    measured = f"{len(result)} evaluations"
    if order != ["bucketed_losses", "merge", "bucketed_losses"]:
        message = SAYS["never-merges"].format(value=", ".join(order)[:80])
        return row(4, message, measured, target)
    for when, item in zip(("before", "after"), result, strict=True):
        response, truth = item["said"], item["truth"]
        if not item["own"] or len(truth) != 12:
            message = "evaluate run.model, on all of task.sentences"
            return row(4, message, measured, target)
        right = response is not None and len(response) == len(truth)
        off = [k for k, loss in enumerate(truth) if not right or far_off(response[k], loss)]
        if off:
            k = off[0]
            message = (
                f"`bucketed_losses` ({HOMES['bucketed_losses']}) gives"
                f" {in_words(response[k]) if right else 'something else than a float a sentence'}"
                f" for sentence {k + 1}, {when} the merge, and alone its loss is {truth[k]:.4f}: a"
                " mean over the real targets of a sentence, without its padding"
            )
            return row(4, message, f"{len(truth) - len(off)} of 12 right", target)
        if returned[when] != response:
            message = f'return {{"{when}": ...}}: what `mine.bucketed_losses` gave {when} the merge'
            return row(4, message, measured, target)
    before, after = (entry["truth"] for entry in result)
    far = max(abs(a - b) for a, b in zip(before, after, strict=True))
    message = ""
    if far > TOLERANCE:
        message = (
            f"`merge` ({HOMES['merge']}) changes the model: losses move by up to {far:.2g}. The"
            " weight becomes W + alpha / rank · B A, with the same factor as in `forward`"
        )
    return row(4, message, "equal" if not message else f"off by {far:.2g}", target)


def benchmark(life: Facts) -> Criterion:
    """The timing of the merged model by `mine.bench`."""
    seen, home = life.get("bench"), HOMES["bench"]
    if not seen:
        return row(5, f"`mine.bench` ({home}) is never called: time the merged model with it")
    calls, log = seen["log"].count("f"), seen["log"]
    measured, target = f"{seen['ran']} executions of {times(calls, 'call')}", "1 a call"
    message = ""
    if seen["exact"] != seen["right"]:
        message = (
            f"on a device whose times are known `bench` ({home}) is not exact: settle before the"
            " first call, and in each sample between the call and the clock, with the result held"
        )
    elif re.fullmatch("s*(fs+)+", log) is None:
        message = f"`bench` ({home}) has to settle after each step that it times"
    elif seen["ran"] < calls:
        message = SAYS["a-step-without-a-result"]
    elif any(isinstance(item, str) or item <= 0 for item in seen["said"]):
        message = f"`bench` ({home}) gave no times: first_s and median_s, in seconds"
    return row(5, message, measured, target)


def compiles(whole: Facts, resumed: Facts) -> Criterion:
    """The graphs of the life that goes on, and those of the steps of the one without a kill."""
    made, trained = resumed["compiles"], whole["trained_by"] or 0
    message = ""
    if max(made, trained) > MOST_COMPILES or trained > MOST_TO_TRAIN:
        message = (
            f"{times(trained, 'compile')} came while it was trained. Pad each batch to"
            " task.longest, so that all have one shape"
            if trained > MOST_TO_TRAIN
            else f"{made} compiles, few of them in training: which shape is new each time?"
            " Evaluation needs one graph a bucket, before and after the merge, the benchmark one"
        )
    target = f"at most {MOST_TO_TRAIN} to train, {MOST_COMPILES} in a life"
    return row(6, message, f"{trained} to train, {made} in a life", target)
