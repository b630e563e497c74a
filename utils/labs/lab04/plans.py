"""The cases and the judgement of the plan to compile before a job, exercise 5 of lab 04.

A model in pure Python: the seconds are given, nothing is compiled.
"""

import random
from itertools import groupby, pairwise

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, times

SAYS = says("lab04")

Graph = tuple[str, int, int]

MOST_TIMES_BOUND = 1.10
"""Time of a plan, relative to what no plan can beat: the longest compile, or all divided by all
workers. The cases are drawn so that longest first stays within 1.05 of it.
"""


def plan_cases(rng: random.Random) -> list[Facts]:
    """Jobs of two, four and eight workers."""
    return [_case(rng, 2, 2), _case(rng, 4, 6), _case(rng, 8, 12)]


def _case(rng: random.Random, workers: int, steps: int) -> Facts:
    """A job for which longest first is near the bound, and the orders at hand are not; and whoever
    takes the step after an evaluation for a first one plans a graph that nobody runs.
    """
    while True:
        lengths = [128 * place for place in range(1, workers + 1)]
        job = [_worker(rng, lengths, steps) for _ in range(workers)]
        needed = graphs_of(job)
        if after_an_evaluation(job) <= needed:
            continue
        others = {
            (kind, rows, length)
            for _, rows, length in needed
            for kind in ("first", "train", "eval")
        }
        # In an order that says nothing.
        names = rng.sample(sorted(others), len(others))
        seconds = {graph: _compile_seconds(rng, graph) for graph in names}
        bound = lower_bound(seconds, needed, workers)
        given = [[g for g in names if g in needed], sorted(needed), in_order(job)]
        poor = [deal(order, workers) for order in given] + [
            to_the_first_free(order, seconds, workers) for order in given
        ]
        good = longest_first(needed, seconds, workers)
        ahead = all(seconds_of(item, seconds) > 1.12 * bound for item in poor)
        if seconds_of(good, seconds) <= 1.05 * bound and (ahead or workers == 2):
            listed = [[list(graph), cost] for graph, cost in seconds.items()]
            return {"job": [[list(step) for step in worker] for worker in job], "seconds": listed}


def _worker(rng: random.Random, lengths: list[int], steps: int) -> list[Graph]:
    """What one worker runs: training with a short batch at the end, then evaluation; sometimes an
    evaluation before all training, or one in between.
    """
    train = [("train", 8192 // length, length) for length in rng.choices(lengths, k=steps - 1)]
    length = rng.choice(lengths[:2])
    short = ("train", max(1, 8192 // length // rng.choice((2, 4))), length)
    first, *rest = rng.sample(lengths, 2)
    after = [("eval", 4096 // item, item) for item in (first, *rest)]
    order = rng.random()
    if order < 0.35:
        train.insert(0, after[0])
    elif order < 0.75:
        train.insert(rng.randint(1, len(train)), after.pop(0))
    return [*train, short, *after]


def _compile_seconds(rng: random.Random, graph: Graph) -> int:
    kind, _, length = graph
    share = {"first": 1.1, "train": 1.0, "eval": 0.4}[kind]
    return int(share * (40 + length / 8) * rng.uniform(0.8, 1.2))


def in_order(job: list[list[Graph]]) -> list[Graph]:
    """The graphs of a job, worker by worker, in the order in which they are met."""
    results: dict[Graph, None] = {}
    for worker in job:
        begun = False
        for kind, rows, length in worker:
            is_first = kind == "train" and not begun
            begun |= is_first
            results[("first" if is_first else kind, rows, length)] = None
    return list(results)


def after_an_evaluation(job: list[list[Graph]]) -> set[Graph]:
    """The training steps that follow an evaluation, as if training began with them."""
    return {
        ("first", *step[1:])
        for worker in job
        for last, step in pairwise(worker)
        if last[0] == "eval" and step[0] == "train"
    }


def graphs_of(job: list[list[Graph]]) -> set[Graph]:
    """The graphs that a job needs, each once."""
    return set(in_order(job))


def lower_bound(seconds: dict[Graph, int], needed: set[Graph], workers: int) -> float:
    """No plan for these graphs is done earlier."""
    costs = [seconds[graph] for graph in needed]
    return max(max(costs), sum(costs) / workers)


def seconds_of(queues: list[list[Graph]], seconds: dict[Graph, int]) -> int:
    """Seconds until the last worker has compiled its queue."""
    return max(sum(seconds[graph] for graph in queue) for queue in queues)


def deal(graphs: list[Graph], workers: int) -> list[list[Graph]]:
    """One after the other to the workers in turn."""
    return [graphs[worker::workers] for worker in range(workers)]


def to_the_first_free(
    graphs: list[Graph], seconds: dict[Graph, int], workers: int
) -> list[list[Graph]]:
    """In this order, each to the worker that is free first."""
    queues: list[list[Graph]] = [[] for _ in range(workers)]
    for graph in graphs:
        min(queues, key=lambda queue: sum(seconds[item] for item in queue)).append(graph)
    return queues


def longest_first(graphs: set[Graph], seconds: dict[Graph, int], workers: int) -> list[list[Graph]]:
    """The graphs in order of falling cost, each to the worker that is free first."""
    order = sorted(sorted(graphs), key=lambda graph: -seconds[graph])
    return to_the_first_free(order, seconds, workers)


def plan_words(case: Facts) -> str:
    """What a card says of a case."""
    workers, steps = len(case["job"]), sum(map(len, case["job"]))
    if workers > 2:
        return f"{workers} workers, {steps} steps in all"
    runs = [
        [
            (kind, [f"{r}×{n}" for _, r, n in steps])
            for kind, steps in groupby(worker, lambda s: s[0])
        ]
        for worker in case["job"]
    ]
    response = [", ".join(f"{kind} {', '.join(shapes)}" for kind, shapes in run) for run in runs]
    return "; ".join(f"worker {number} runs {words}" for number, words in enumerate(response))


def judge_plan(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: every graph is compiled, none in vain, and in time."""
    job, workers = [[tuple(step) for step in worker] for worker in case["job"]], len(case["job"])
    seconds = {tuple(graph): cost for graph, cost in case["seconds"]}
    needed = graphs_of(job)
    bound = lower_bound(seconds, needed, workers)
    most = int(MOST_TIMES_BOUND * bound)
    fault = _fault(facts, workers)
    queues = [] if fault else [[tuple(graph) for graph in queue] for queue in facts["queues"]]
    planned = [graph for queue in queues for graph in queue]
    missing = sorted(needed - set(planned))
    strange = [graph for graph in planned if graph not in needed]
    extra = len(planned) - len(set(planned)) + len(set(strange))
    complete = criterion(
        "every graph",
        3,
        not fault and not missing,
        f"{len(needed) - len(missing)} of {times(len(needed), 'graph')}",
        "all",
        fault or (_missing_message(missing, strange) if missing else ""),
    )
    lean = criterion(
        "no compile too many", 2, not extra, str(extra), "0", _extra_message(strange, needed)
    )
    longest = 0 if missing or strange else seconds_of(queues, seconds)
    short = criterion(
        "time until all are there",
        3,
        longest <= most,
        f"{longest} s",
        f"at most {most} s",
        SAYS["dealt-out-in-turn"],
    )
    if fault or missing:
        # A plan is not lean or short by what it leaves out.
        return [complete, not_judged(lean), not_judged(short)]
    return [complete, lean, not_judged(short) if extra else short]


_ONE_FIRST = SAYS["an-evaluation-begins-the-training-again"]


def _missing_message(missing: list[Graph], strange: list[Graph]) -> str:
    kinds = {kind for kind, _, _ in missing}
    message = "first" if "first" in kinds else min(kinds)
    why = {
        "first": SAYS["no-first-step"],
        "eval": SAYS["no-evaluation"],
        "train": SAYS["the-last-batch-forgotten"],
    }[message]
    _, rows, length = next(graph for graph in missing if graph[0] == message)
    if message == "train" and ("first", rows, length) in strange:
        why = _ONE_FIRST
    return SAYS["empty-queues"].format(phase=message, rows=rows, length=length, why=why)


def _extra_message(strange: list[Graph], needed: set[Graph]) -> str:
    if not strange:
        return SAYS["each-its-own"]
    kind, rows, length = strange[0]
    hint = "no step of the job runs it"
    if kind == "train" and ("first", rows, length) in needed:
        hint = SAYS["the-first-step-is-trained-again"]
    elif kind == "first" and ("train", rows, length) in needed:
        hint = _ONE_FIRST
    return SAYS["all-of-the-table"].format(kind=kind, rows=rows, length=length, hint=hint)


def _fault(facts: Facts, workers: int) -> str:
    """What makes a return value no plan at all; empty if it is one."""
    queues = facts["queues"]
    if facts["stopped"]:
        return (
            "the check stopped the answer after some seconds: the best plan is not asked for, only"
            " one that is near"
        )
    if queues is None or any(isinstance(queue, str) for queue in queues):
        what = facts["kind"] if queues is None else f"{facts['kind']} with {_first_text(queues)}"
        return SAYS["does-nothing-4"].format(what=what)
    if len(queues) != workers:
        return SAYS["one-list"].format(times=times(len(queues), "queue"), workers=workers)
    for graph in (graph for queue in queues for graph in queue):
        if isinstance(graph, str):
            return SAYS["pairs-with-seconds"].format(graph=graph)
        if not (graph[0] in ("first", "train", "eval") and isinstance(graph[1], int)):
            return f"({graph[0]!r}, {graph[1]}, {graph[2]}) is in a queue: it is no graph"
    return ""


def _first_text(items: list) -> str:
    return next(item for item in items if isinstance(item, str))
