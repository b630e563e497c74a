"""Exercise 4, the capstone: whether the earlier answers fit together, and which does not."""

import random
import re
from typing import Any

from utils.course.earlier import KINDS, WANTED, Problem, functions
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, times
from utils.labs.lab08.resuming import PARTS

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


def far_off(response: Any, right: float) -> bool:
    """Whether a returned loss is no number, or beyond the tolerance."""
    return isinstance(response, str) or abs(response - right) > TOLERANCE


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
        response, truth = item["response"], item["truth"]
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
    elif any(isinstance(item, str) or item <= 0 for item in seen["response"]):
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


ASTRAY = 0.05
"""How far adapters may end from where they are led, as a share of the way there.

Rounding differs between two devices, and AdamW enlarges it where a gradient is nearly zero. Tests
keep right answers below a tenth of it, and the nearest wrong one, gradients that add up, far above.
"""


_UNLIKE = {"asked": SAYS["another-rank"], "model": SAYS["adapters-in-a-copy"]}


def capstone_cases(rng: random.Random) -> list[Facts]:
    """One training that is killed one step after its second checkpoint."""
    every = rng.choice([2, 3])
    kill = 2 * every + 1
    rank = rng.choice([2, 3])
    return [
        {
            "seed": rng.randrange(10**6),
            "steps": kill + 2,
            "save_every": every,
            "names": rng.choice([["qkv", "up"], ["project", "up"], ["qkv", "down"]]),
            "rank": rank,
            "alpha": float(rng.choice([4, 5]) * rank),
        }
    ]


def capstone_words(case: Facts) -> str:
    """What a card says of a case."""
    kill = case["steps"] - 2
    return (
        f"{case['steps']} steps, saved every {case['save_every']}, killed after step {kill},"
        f" adapters of rank {case['rank']} with alpha {case['alpha']:g} at"
        f" {' and '.join(case['names'])}"
    )


def judge_capstone(case: Facts, facts: Facts) -> list[Criterion]:
    """Seven criteria, from the parts that it needs to the compiles of a life."""
    problems = [_problem(*problem) for problem in facts["problems"]]
    there = f"{len(HOMES) - sum(len(p.wanted.functions) for p in problems)} of {len(HOMES)}"
    target = f"{len(HOMES)} of {len(HOMES)}"
    if problems:
        response = "; ".join(map(str, problems)) + ". The capstone needs them: solve these first"
        return _nothing_but(0, response, there, target)
    whole, resumed = _name(facts["whole"]), _name(facts["resumed"])
    for life in (whole, resumed):
        if raised := life.get("raised"):
            return _nothing_but(0, _exception_text(raised, life), there, target)
    if "unlike" in whole:
        return _nothing_but(1, _UNLIKE[whole["unlike"]])
    if "storm" in whole:
        message = SAYS["a-length-for-each-batch"].format(storm=whole["storm"])
        return _nothing_but(6, message, f"{whole['compiles']} to train")
    for name in ("add_lora", "resume", "bucketed_losses"):
        if name not in whole["calls"]:
            message = SAYS["no-adapters"].format(name=name, value=HOMES[name])
            return _nothing_but(1 if name == "add_lora" else 3, message)
    return [
        row(0, "", there, target),
        _adapters(case, whole["effect"], whole),
        _training(case, whole, resumed),
        _resuming(case, whole, facts["killed"], resumed),
        evaluation(resumed),
        benchmark(resumed),
        compiles(whole, resumed),
    ]


def _name(life: Facts) -> Facts:
    """A life with the names of the parts in place of their numbers."""
    names = functions("lab15")
    made = {**life, "calls": [names[number] for number in life.get("calls", [])]}
    if "raised" in life:
        made["raised"] = {**life["raised"], "part": names[life["raised"]["part"]]}
    return made


def _nothing_but(place: int, message: str, measured: str = "", target: str = "") -> list[Criterion]:
    rows = [not_judged(row(k, "")) for k in range(len(NAMES))]
    rows[place] = row(place, message, measured, target)
    return rows


def _problem(exercise_id: str, kind: str, detail: str) -> Problem:
    wanted = next(item for item in WANTED["lab15"] if item.id == exercise_id)
    if kind not in KINDS:
        raise ValueError(f"unknown problem {kind!r}")
    return Problem(wanted, kind, detail)


def _exception_text(raised: Facts, life: Facts) -> str:
    part = raised["part"]
    response = f"`{part}` ({HOMES[part]}) raised {raised['kind']}"
    response += f": {raised['message']}" if raised["message"] else ""
    advice = "does your glue hand over what that exercise describes?"
    if part == "resume" and life["calls"].count("resume") == 1 and "resumed" not in life:
        advice = (
            "it has to load into the model, optimizer and scheduler that `run` has, and make none"
            " of its own: this optimizer holds the adapters alone. And is the run that is resumed"
            " made as the one that was saved, adapters first?"
        )
    return f"{response}. {advice}"


def _adapters(case: Facts, effect: Facts, whole: Facts) -> Criterion:
    scale, begun, end = 6.0, whole["begun"], whole.get("end")
    gain, alone = effect["gain"], effect["trained"]
    right = case["rank"] * sum(_in_and_out(name) for name in case["names"])
    measured = f"{begun['trained']} parameters trained"
    home = HOMES["add_lora"]
    if effect["raised"]:
        message = f"`add_lora` ({home}) raised {effect['raised']} on a model of one layer"
    elif effect["start"] > 1e-6:
        message = f"`add_lora` ({home}) changes the output at once: B has to begin with zeros"
    elif alone != 2 * (5 + 4):
        message = SAYS["lab-11-freezes-nothing"].format(home=home, alone=times(alone, "value"))
    elif abs(gain - scale) > 0.01 * scale:
        message = SAYS["lab-11-without-the-factor"].format(home=home, gain=gain)
    elif begun["trained"] != right:
        message = (
            f"{begun['trained']} values are trainable when `resume` is called, and {right} are the"
            " adapters: call `mine.add_lora` with the task's names, rank and alpha, and let it"
            " freeze the rest"
        )
    elif not begun["held"]:
        message = SAYS["an-optimizer-of-everything"]
    elif end and end["base"] != begun["base"]:
        message = "frozen weights of the base changed while it was trained"
    else:
        message = ""
    return row(1, message, measured, f"{right} parameters")


def _in_and_out(name: str) -> int:
    """Inputs and outputs of a linear layer of the task's model, which is 16 wide."""
    return {"qkv": 16 + 48, "project": 16 + 16, "up": 16 + 64, "down": 64 + 16}[name]


def _training(case: Facts, whole: Facts, resumed: Facts) -> Criterion:
    """The batches of the life without a kill; the losses of the one that goes on."""
    steps, drawn = case["steps"], len(whole["truths"])
    truths, losses = resumed["truths"], resumed["returned"]["losses"]
    measured, message = f"{drawn} of {steps} batches", ""
    if drawn != steps:
        message = f"{drawn} batches were drawn after `resume`: one for each of {steps} steps"
    elif losses is None or len(losses) != len(truths):
        message = 'return {"losses": [...], ...} with a Python float for each step of this life'
    elif wrong := [k for k, loss in enumerate(losses) if far_off(loss, truths[k])]:
        k = wrong[0]
        message = SAYS["padding-learned"].format(in_words=in_words(losses[k]), value=truths[k])
    elif whole["end"]["weights"] == whole["begun"]["weights"]:
        message = "no weight changed: zero_grad, backward, then run.optimizer.step()"
    elif whole["end"]["step"] != steps:
        message = f"run.step is {whole['end']['step']} at the end: count it up after each step"
    elif (off := whole["astray"]) is None or not off <= ASTRAY:
        message = SAYS["climbs"].format(value=f", {off:.0%} of the way off" if off else "")
    return row(2, message, measured, f"{steps}, with the right losses")


def _resuming(case: Facts, whole: Facts, killed: Facts, resumed: Facts) -> Criterion:
    every, kill = case["save_every"], case["steps"] - 2
    due = list(range(every, kill + 1, every))
    saved, twin = killed["saved"], {item["step"]: item for item in whole["saved"]}
    home, target = HOMES["resume"], "equal to the bit"
    measured = "not resumed"
    after = resumed.get("resumed", {})
    last = saved[-1] if saved else {}
    wrong = [name for name in PARTS if after.get(name) != last.get(name)]
    if killed["ended"] != "SIGKILL":
        message = (
            f"the process ended before it was killed ({killed['ended']}): does the loop train"
            " until run.step is task.steps?"
        )
    elif [item["step"] for item in saved] != due:
        message = SAYS["saved-before-it-is-counted"].format(
            value=[item["step"] for item in saved], due=due
        )
    elif odd := [n for n in PARTS if last[n] != twin.get(last["step"], {}).get(n)]:
        message = (
            f"two runs that were not killed differ at step {last['step']} already, in"
            f" {PARTS[odd[0]]}: something in `fine_tune` is drawn anew in each process"
        )
    elif after["step"] == 0 and last["step"]:
        message = (
            f"after the kill `resume` ({home}) left the run at step 0: hand it the same path in"
            " each life, and let it put back what was saved"
        )
    elif wrong:
        measured = f"{len(PARTS) - len(wrong)} of {len(PARTS)} parts"
        message = f"`save` and `resume` ({home}) do not bring back {PARTS[wrong[0]]}" + (
            f", and {times(len(wrong) - 1, 'other part')}" if wrong[1:] else ""
        )
    elif after["trained"] != last["trained"] or not after["held"]:
        message = SAYS["lab-08-trains-everything-again"].format(home=home)
    elif differs := [n for n in PARTS if resumed["end"][n] != whole["end"][n]]:
        measured = "another end"
        message = SAYS["drawn-before-resume"].format(part=PARTS[differs[0]])
    else:
        measured, message = target, ""
    return row(3, message, measured, target)
