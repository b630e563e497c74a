"""What the answers of lab 16 return, as plain values. Judges nothing.

The course's own engine is closed while an answer runs.
"""

from collections.abc import Callable
from typing import Any

from utils.labs import Answer, Facts, Observer, invoke, limit, where
from utils.labs.forbidden import forbid
from utils.labs.lab16.branches import Branches, Odd
from utils.labs.lab16.traffic import Traffic
from utils.labs.plain import describe, entries, maybe_entries, number, text, to_list

_SHUT = ("utils.serving.engine",)
_MOST = 100
"""Items that are kept: more is wrong in any case."""


def _within(exercise: str, call: Callable[[], Any]) -> Any:
    """What a call returns, with the course's engine closed to it, and not for ever."""
    with forbid(f"lab16.{exercise}", *_SHUT):
        response, stopped = limit.within(call, invoke.SECONDS)
    if stopped:
        raise RuntimeError(invoke.ENDLESS)
    return response


# ex1: a scheduler


def observe_plans(answer: Answer, case: Facts) -> Facts:
    """The plan of each step, up to one that cannot be run."""
    traffic = Traffic(case["requests"], case["slots"], case["budget"])
    plans: list[Any] = []

    def run() -> None:
        while traffic.forward() and len(plans) < case["most_steps"]:
            running = [traffic.seen(item) for item in sorted(traffic.running)]
            waiting = [traffic.seen(item) for item in traffic.waiting]
            known = {item["id"] for item in (*running, *waiting)}
            plan = answer(running, waiting, case["slots"], case["budget"])
            if not isinstance(plan, dict):
                plans.append(describe(plan))
                return
            pairs: list[Any] = [list(map(number, pair)) for pair in list(plan.items())[:_MOST]]
            plans.append(pairs)
            if not all(n in known and isinstance(t, int) and t >= 0 for n, t in pairs):
                return
            traffic.run([(n, t) for n, t in pairs if t])

    _within("ex1", run)
    return {"plans": plans}


# ex2 and ex3: blocks


def observe_blocks(answer: Answer, case: Facts) -> Facts:
    """What each operation returns, and the tables of all sequences after it."""

    def run() -> list[Facts]:
        blocks, live = answer(case["count"], case["size"]), set[int]()
        seen: list[Facts] = []
        for name, *given in case["operations"]:
            try:
                response = getattr(blocks, name)(*given)
                if name == "free":
                    live.remove(given[0])
                elif name == "fork" or response is not None:
                    live.add(given[-1] if name == "fork" else given[0])
                tables = [[item, _list(blocks.table(item))] for item in sorted(live)]
            except NotImplementedError:
                raise
            except Exception as error:  # it may follow from a wrong step before
                seen.append({"error": _exception_text(error, answer)})
                return seen
            seen.append(
                {"response": _pairs(response) if name == "append" else None, "tables": tables}
            )
        return seen

    return {"seen": _within("ex2", run)}


def _exception_text(error: Exception, answer: Answer) -> str:
    """An exception in words, with the line of the answer that it comes from."""
    place = where(error, answer)
    return f"{type(error).__name__}: {str(error)[:80]}" + bool(place) * f" ({place})"


def _list(value: Any) -> list[Any] | str:
    given = to_list(value, _MOST)
    is_list = isinstance(given, list | tuple)
    return [number(item) for item in given[:_MOST]] if is_list else describe(given)


def _pairs(value: Any) -> Any:
    """A list of pairs of numbers, None, or what else it is."""
    if not isinstance(value, list | tuple):
        return None if value is None else describe(value)
    return [_list(pair) for pair in value[:_MOST]]


def observe_prefixes(answer: Answer, case: Facts) -> Facts:
    """What each start of a request returns. One that gets no blocks is left out from then on."""

    def run() -> list[Any]:
        cache, seen, refused = answer(case["count"], case["size"]), [], set()
        for name, request, *given in case["operations"]:
            if name == "finish":
                if request not in refused:
                    cache.finish(request)
                continue
            texts = cache.start(request, list(given[0]), *given[1:])
            if texts is None:
                refused.add(request)
            elif isinstance(texts, tuple | list) and len(texts) == 2:
                texts = [_list(texts[0]), number(texts[1])]
            else:
                texts = describe(texts)
            seen.append(texts)
        return seen

    return {"seen": _within("ex3", run)}


# ex4: speculative sampling


def observe_speculation(answer: Answer, case: Facts) -> Facts:
    """All that comes out, with its probability, and how often each model ran at most."""
    return {"models": _within("ex4", lambda: [_outputs(answer, item) for item in case["models"]])}


def _outputs(answer: Answer, model: Facts) -> Facts:
    branches, passes, odd = Branches(), [0, 0], ""

    def run() -> list[Any] | str:
        ran = [0, 0]

        def target(proposed: list[int]) -> list[list[float]]:
            ran[0] += 1
            rows = range(len(proposed) + 1)
            return [list(model["target"][_key(proposed[:row])]) for row in rows]

        def draft(proposed: list[int]) -> list[float]:
            ran[1] += 1
            return list(model["draft"][_key(proposed)])

        response = _list(answer(target, draft, model["count"], branches.coin, branches.draw))
        passes[:] = map(max, passes, ran)
        return response

    results: dict[str, list[Any]] = {}
    try:
        for response, probability in branches.all(run):
            results.setdefault(str(response), [response, 0.0])[1] += probability
    except Odd as error:
        odd = str(error)
    return {"outputs": list(results.values())[:1000], "passes": passes, "odd": odd}


def _key(tokens: Any) -> str:
    return " ".join(str(int(token)) for token in tokens)


# ex5: replicas for a service level


def observe_capacity(answer: Answer, case: Facts) -> Facts:
    """What is said of each service."""
    calls = [
        ([tuple(request) for request in element["requests"]], element["replica"], element["level"])
        for element in case["services"]
    ]
    response = invoke.responses("lab16.ex5", answer, calls, _SHUT)
    names = ("replicas", "goodput_per_s", "usd_per_million")
    return {"response": [maybe_entries(item, *names) for item in response]}


# ex6: postmortems


def observe_postmortems(answer: Answer, case: Facts) -> Facts:
    """What is said of each incident."""
    calls = [(element["metrics"], element["log"]) for element in case["incidents"]]
    texts = []
    for item in invoke.responses("lab16.ex6", answer, calls, _SHUT):
        given = entries(item, "cause", "since")
        if isinstance(given, dict):
            given = {"cause": text(given["cause"]), "since": number(given["since"])}
        texts.append(given)
    return {"response": texts}


OBSERVERS = {
    "ex1": Observer("plan", observe_plans),
    "ex2": Observer("Blocks", observe_blocks, apart=True),
    "ex3": Observer("PrefixCache", observe_prefixes, apart=True),
    "ex4": Observer("speculate", observe_speculation),
    "ex5": Observer("capacity", observe_capacity),
    "ex6": Observer("diagnose", observe_postmortems),
}
