"""The cases and the judgement of the scheduler, exercise 1 of lab 16."""

import random
from collections import Counter
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, first_of, none_judged, times
from utils.labs.lab16.traffic import Traffic

SAYS = says("lab16")

WEIGHTS = {"slots wasted": 3, "decodes stalled": 2, "overtaken": 2}


def plan_cases(rng: random.Random) -> list[Facts]:
    """A few requests at once; then a steady load with long prompts between short ones."""
    fixed = [[0, 40, 3], [0, 9, 6], [0, 5, 2], [1, 7, 4], [2, 3, 5]]
    return [
        {"requests": fixed, "slots": 3, "budget": 16, "most_steps": 60},
        *(_load(rng, slots) for slots in (3, 6)),
    ]


def _load(rng: random.Random, slots: int) -> Facts:
    budget = 4 * slots + rng.randint(0, 4)
    step, requests = 0, []
    for number in range(24):
        # Every sixth prompt takes several steps; those behind it are short.
        prompt = rng.randint(3, 6) * budget if number % 6 == 2 else rng.randint(2, budget)
        requests.append([step, prompt, rng.randint(1, 12)])
        step += rng.choice((0, 0, 1, 1, 2))
    work = sum(prompt + output for _, prompt, output in requests)
    return {"requests": requests, "slots": slots, "budget": budget, "most_steps": work}


def plan_words(case: Facts) -> str:
    """What a card says of a case."""
    return (
        f"{len(case['requests'])} requests, {case['slots']} slots, {case['budget']} tokens a step"
    )


class _Seen:
    """What goes wrong in the steps that the plans make."""

    def __init__(self, case: Facts, plans: list[Any]) -> None:
        self.traffic = Traffic(case["requests"], case["slots"], case["budget"])
        self.calls: dict[str, list[int]] = {name: [] for name in WEIGHTS}  # one for each count
        self.overtaken: list[tuple[int, int]] = []  # who, by whom
        self.admitted_to: list[int] = []  # how many others ran when requests were admitted
        self.pieces = self.most_prompts = self.fitting = 0
        self.wrong = ""
        for call, plan in enumerate(plans):
            if self.traffic.forward() and not self.wrong:
                self._step(call, plan)
        self.unfinished = not self.wrong and self.traffic.forward()

    def _step(self, call: int, plan: Any) -> None:
        traffic = self.traffic
        running, waiting = sorted(traffic.running), traffic.waiting
        self.wrong = _invalid(plan, traffic, [*running, *waiting])
        if self.wrong:
            return
        tokens = {number: count for number, count in plan if count}
        can = {number: traffic.seen(number)["left"] for number in (*running, *waiting)}
        prompts = [n for n in can if traffic.left[n]]
        able = [*running, *waiting[: max(traffic.slots - len(running), 0)]]
        empty = min(traffic.budget, sum(can[n] for n in able)) - sum(tokens.values())
        begun = [n for n in prompts if n in tokens]
        overtaken = [
            (old, max(begun)) for old in prompts
            if old < max(begun, default=0) and tokens.get(old, 0) < can[old]
        ]  # fmt: skip
        stalled = [n for n in running if n not in tokens and n not in prompts]
        for name, count in zip(WEIGHTS, (empty, len(stalled), len(overtaken)), strict=True):
            self.calls[name] += [call] * count
        self.overtaken += overtaken
        self.admitted_to += [len(running)] * any(n in waiting for n in tokens)
        self.fitting += any(n not in tokens and can[n] <= empty for n in able if n in prompts)
        most = traffic.budget - traffic.slots  # a prompt alone gets as much at least
        self.pieces += sum(tokens[n] < min(can[n], most) for n in begun)
        self.most_prompts = max(self.most_prompts, len(begun))
        traffic.run(list(tokens.items()))


def _invalid(plan: Any, traffic: Traffic, known: list[int]) -> str:
    """Why a step cannot be run; "" if it can."""
    if isinstance(plan, str):
        return f"`plan` returned {plan}: return a dict, from ids to tokens"
    for number, tokens in plan:
        if number not in known:
            return f"request {number} neither runs nor waits: plan what you are given"
        if not isinstance(tokens, int) or tokens < 0:
            return f"request {number} gets {tokens} tokens: give an int from 0 on"
        if tokens > (left := traffic.seen(number)["left"]):
            return SAYS["one-token-a-step"] if not traffic.left[number] else (
                f"request {number} gets {times(tokens, 'token')}, and has {left} left"
            )  # fmt: skip
    total = sum(tokens for _, tokens in plan)
    if total > traffic.budget:
        return SAYS["decodes-are-tokens-too"].format(total=total, budget=traffic.budget)
    ran = {*traffic.running, *(number for number, tokens in plan if tokens)}
    return "" if len(ran) <= traffic.slots else SAYS["more-than-slots"].format(count=len(ran))


def judge_plans(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: token slots wasted, decodes that stood still, requests overtaken."""
    seen = _Seen(case, facts["plans"])
    texts = _why_wasted(seen), SAYS["prompts-first"], _why_overtaken(seen)
    rows = [
        criterion(
            name, WEIGHTS[name], not calls, str(len(calls)), "0", text, call=min(calls or [0])
        )
        for (name, calls), text in zip(seen.calls.items(), texts, strict=True)
    ]
    if seen.wrong:
        return none_judged(rows, seen.wrong)
    if seen.unfinished:  # what stands still overtakes nobody, and is no merit
        left = next(
            n for n, asked in enumerate(case["requests"]) if seen.traffic.answered[n] < asked[2]
        )
        text = SAYS["starved"].format(steps=case["most_steps"], number=left)
        return none_judged(rows, _why_overtaken(seen) or text)
    return rows


def _why_wasted(seen: _Seen) -> str:
    return first_of(
        (not any(seen.admitted_to), SAYS["static-batches"]),
        (seen.most_prompts == 1, SAYS["one-prompt-a-step"]),
        (not seen.pieces and not seen.fitting, SAYS["whole-prompts"]),
        otherwise=SAYS["slots-left"],
    )


def _why_overtaken(seen: _Seen) -> str:
    if not seen.overtaken:
        return ""
    (who, by), _ = Counter(seen.overtaken).most_common(1)[0]
    return SAYS["overtaken"].format(who=who, by=by)
