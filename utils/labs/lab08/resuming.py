"""Exercise 1, save and resume: cases, and whether killed lives went on as if nothing had been."""

import random
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, times

SAYS = says("lab08")

PARTS = {
    "weights": "the weights",
    "moments": SAYS["no-optimizer"],
    "updates": "the count of updates in AdamW (run.optimizer)",
    "rate": SAYS["no-scheduler"],
    "step": "the number of steps done (run.step)",
    "order": SAYS["another-order"],
    "position": SAYS["the-epoch-from-its-start"],
    "generator": SAYS["orders-that-come-again"],
    "python": "Python's random state",
    "numpy": "NumPy's random state",
    "torch": SAYS["seeded-anew"],
    "device": SAYS["the-host-only"],
}
WORDS = (
    "{steps} steps of {rows_per_batch} rows, saved every {save_every}, killed after step"
    " {kills[0][step]}, then within the save after step {kills[1][step]} ({kills[1][share]:.0%} of"
    " the bytes), then in that after {kills[2][step]}"
)
ROWS = 40


def kill_cases(rng: random.Random) -> list[Facts]:
    """One training, killed at a step, within the bytes of a save and before a rename."""
    rows, every = rng.choice([10, 12, 13]), rng.randint(2, 3)
    # The first save that is resumed from lies within an epoch, and not in the first steps.
    usable = [step for step in (2 * every, 3 * every) if step % (ROWS // rows)]
    saved = rng.choice(usable or [4])
    every = every if usable else 4
    kills = [
        {"at": "step", "step": saved + rng.randint(1, every)},
        {"at": "bytes", "step": saved + 2 * every, "share": round(rng.uniform(0, 0.9), 2)},
        {"at": "rename", "step": saved + 3 * every},
    ]
    return [
        {
            "seed": rng.randrange(10**6),
            "begin": rng.randrange(10**6),
            "rows_per_batch": rows,
            "save_every": every,
            "steps": saved + 3 * every + rng.randint(1, 2),
            "kills": kills,
        }
    ]


def first_value(life: Facts, key: str) -> Any:
    """The first value of a key in the journal of a life; None if it has none."""
    return next((line[key] for line in life["journal"] if key in line), None)


def steps_of(life: Facts) -> list[tuple[int, float]]:
    """Number and loss of each step that a life has noted."""
    return [(line["step"], line["loss"]) for line in life["journal"] if "step" in line]


def judge_kills(case: Facts, facts: Facts) -> list[Criterion]:
    """Six criteria: three groups of the state, the losses, kills within a save, and no harm."""
    whole, *lives = facts["lives"]
    states = {line["after"]["step"]: line["after"] for line in whole["journal"] if "after" in line}
    losses = dict(steps_of(whole))
    last = (case["kills"][0]["step"] - 1) // case["save_every"] * case["save_every"]
    wrong = _differs(lives[1], saves_of(lives[0], last))
    lost = _why_lost(lives[1], wrong, first_value(whole, "begun"), last)
    judged = [
        *_judge_state(lives[1], wrong, saves_of(lives[0], last), first_value(whole, "begun")),
        _judge_losses(lives, losses, states[case["steps"]], last),
        _judge_within(case, lives, wrong),
        _judge_harmless(whole, lives),
    ]
    # To begin anew, or to train again, gives the same losses: that is no resuming.
    if lost:
        return [not_judged(item, lost * (not place)) for place, item in enumerate(judged)]
    return judged


def _end_of(life: Facts) -> str:
    return life["raised"] or f"it ended its process ({life['ended']})"


def saves_of(life: Facts, step: int) -> list[Facts]:
    """The state before and after the save at a step, as far as the life got."""
    lines = [item for item in life["journal"] if "state" in item]
    return [line["state"] for line in lines if line["state"]["step"] == step]


def _differs(life: Facts, right: list[Facts]) -> list[str]:
    """The parts that are as in none of some states; all of them if nothing was resumed."""
    resumed = first_value(life, "resumed")
    if resumed is None:
        return list(PARTS)
    return [name for name in PARTS if resumed[name] not in [item[name] for item in right]]


GROUPS = {
    "model and optimizer": ("weights", "moments", "updates", "rate", "step"),
    "data": ("order", "position", "generator"),
    "random states": ("python", "numpy", "torch", "device"),
}


def _why_lost(life: Facts, wrong: list[str], begun: Facts, last: int) -> str:
    """Why nothing was resumed after the first kill; "" if something was."""
    resumed = first_value(life, "resumed")
    if resumed is None and "Weights only load failed" in life["raised"]:
        return SAYS["an-array"]
    if resumed is None:
        return f"`resume` does not come back from the checkpoint: {_end_of(life)}"
    if life["journal"][1]["trained"]:
        done = times(life["journal"][1]["trained"], "step")
        return SAYS["done-again"].format(done=done)
    if len(wrong) == len(PARTS) and all(resumed[name] == begun[name] for name in PARTS):
        return SAYS["a-file-of-its-own"].format(last=last)
    return ""


def _judge_state(
    life: Facts, wrong: list[str], right: list[Facts], begun: Facts
) -> list[Criterion]:
    """Whether each part of the state is as it was when it was saved."""
    resumed = first_value(life, "resumed")
    criteria = []
    for group, names in GROUPS.items():
        off = [name for name in names if name in wrong]
        texts = [_name(name, resumed, right, begun) for name in off] if resumed else []
        measured = f"{len(names) - len(off)} of {len(names)} parts"
        target = f"{len(names)} of {len(names)} parts"
        criteria.append(criterion(group, 2, not off, measured, target, "; ".join(texts)))
    return criteria


def _name(name: str, resumed: Facts, right: list[Facts], begun: Facts) -> str:
    """What is wrong with one part of the state, and what to do."""
    what, value = PARTS[name], resumed[name]
    if name == "step" and isinstance(value, int):
        return SAYS["no-steps"].format(value=value, step=right[0]["step"])
    if name == "device" and (syncs := _syncs_late(value, right[0][name])):
        return SAYS["a-sync-after-the-state"].format(what=what, syncs=times(syncs, "sync"))
    if value == begun[name]:
        return SAYS["no-numpy"].format(what=what)
    return f"{what}: put back, but not as it was at the save (saved too early, or used since?)"


_MULTIPLIER, _INCREMENT = 7012063, 1012031
"""How torch_xla's step marker advances the state of the device."""


def _syncs_late(value: Any, right: Any) -> int:
    """How many syncs lie between two states of the device; 0 if it is not a few."""
    for count in range(1, 4):
        right = (right * _MULTIPLIER + _INCREMENT) % 2**64 if isinstance(right, int) else None
        if right == value:
            return count
    return 0


def _judge_losses(lives: list[Facts], losses: dict, right: Facts, last: int) -> Criterion:
    """Whether every loss after the first kill, and the weights at the end, are equal to the bit."""
    done = [item for life in lives[1:] for item in steps_of(life)]
    equal = [step for step, loss in done if losses.get(step) == loss]
    wanted = [step for step in losses if step >= last]
    lost = [step for step in wanted if step not in equal]
    end = first_value(lives[-1], "end")
    target, name = "equal to the bit", "losses and weights"
    if off := [(step, loss) for step, loss in done if losses.get(step) != loss]:
        step, loss = off[0]
        measured = f"{len(equal)} of {len(done)} equal"
        message = f"the loss of step {step + 1} is not that of the run without a kill"
        if step in losses:
            message += f": {loss:.6g}, and {losses[step]:.6g} there"
        return criterion(name, 2, False, measured, target, message)
    if end is None or lost:
        measured = f"{len(wanted) - len(lost)} of {len(wanted)} equal"
        message = "the training never reached its end: see the other lines"
        return criterion(name, 2, False, measured, target, message)
    passed = end["weights"] == right["weights"]
    message = "all losses agree, and the weights at the end do not"
    return criterion(name, 2, passed, target if passed else "weights not equal", target, message)


_ASIDE = (
    "write the new file beside it, in the same folder, and put it in place by os.replace when it"
    " is complete"
)
_MOMENTS = {"bytes": SAYS["in-place"], "rename": SAYS["the-old-one-removed-first"]}


def _judge_within(case: Facts, lives: list[Facts], wrong: list[str]) -> Criterion:
    """Whether the last good checkpoint is there after each kill within a save.

    wrong: parts that were not put back after the first kill either: these are judged there.
    """
    name, weight, survived = "killed within a save", 3, 0
    target = "2 of 2 survived"
    if "step" in wrong or "weights" in wrong:
        return not_judged(criterion(name, weight, False, "", target, ""))
    last: Facts = {}
    for kill, before, life in zip(case["kills"], lives, lives[1:], strict=False):
        done = [line["saved"] for line in before["journal"] if "saved" in line]
        last = {"step": done[-1], "states": saves_of(before, done[-1])} if done else last
        if kill["at"] == "step":
            continue
        resumed, moment = first_value(life, "resumed"), _MOMENTS[kill["at"]]
        whole = {last["step"]: last["states"], kill["step"]: saves_of(before, kill["step"])}
        if resumed is None:
            message = f"{moment} `resume` finds no whole file ({_end_of(life)}): {_ASIDE}"
        elif resumed["step"] not in whole:
            message = (
                f"{moment} the training goes on from step {resumed['step']}, and step"
                f" {last['step']} had been saved: {_ASIDE}; remove nothing before"
            )
        elif more := set(_differs(life, whole[resumed["step"]])) - set(wrong):
            part = next(item for item in PARTS if item in more)
            message = f"{moment} {PARTS[part]}: not as it was at the save. {_ASIDE}"
        else:
            survived += 1
            continue
        return criterion(name, weight, False, f"{survived} of 2 survived", target, message)
    message = "the training ended before it was killed again"
    return criterion(name, weight, survived == 2, f"{survived} of 2 survived", target, message)


def _judge_harmless(whole: Facts, lives: list[Facts]) -> Criterion:
    """Whether a save, and a resume without a checkpoint, leave the run as it is."""
    begun, resumed = first_value(whole, "begun"), first_value(whole, "resumed")
    changed, when = [n for n in PARTS if resumed[n] != begun[n]], "`resume` without a checkpoint"
    for line in lives[0]["journal"] if not changed else []:
        if "saved" in line:
            before, after = saves_of(lives[0], line["saved"])
            changed, when = [n for n in PARTS if after[n] != before[n]], "`save`"
            break
    message = ""
    if changed:
        message = f"{when} changes {PARTS[changed[0]]}: the training is then another one"
    if changed == ["device"]:
        message += ". A torch_xla.sync() does that; the step has ended with one already"
    measured = f"{times(len(changed), 'part')} changed"
    return criterion("harmless", 1, not changed, measured, "0 parts changed", message)
