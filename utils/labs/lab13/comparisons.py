"""The cases and the judgement of errors in comparisons, exercise 3 of lab 13."""

import datetime
import random
from collections.abc import Sequence

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, criterion, not_asked_for, not_judged, times

SAYS = says("lab13")

GROUPS: dict[str, tuple[int, tuple[str, ...]]] = {
    "circumstances": (2, ("region", "purchase", "currency", "old price")),
    "work": (1, ("work", "quality")),
    "throughput": (2, ("vendor claim", "peak", "sparse peak")),
    "money": (2, ("price unit", "credits")),
}
"""Criterion to its weight and its errors; one more is for false alarms."""
NAMES = tuple(name for _, names in GROUPS.values() for name in names)
ALARMS = 1
KINDS = {
    "peak": ("just under the peak", "just over the peak"),
    "quality": ("quality unknown", "quality missed", "another target"),
    "price unit": ("a chip taken for a server", "a server taken for a chip"),
}
"""Errors that can be made in several ways."""
SIDES = ("first", "second")
SIZES = (7, 8, 8, 8, 8)

REGIONS = ("us-east-1", "us-west-2", "eu-north-1", "eu-west-1", "ap-northeast-1", "ap-south-1")
PURCHASES = ("on_demand", "capacity_block", "savings_plan", "reserved", "spot")
CURRENCIES = ("USD", "EUR", "GBP", "JPY")


def comparison_cases(rng: random.Random) -> list[Facts]:
    """Thirty-nine comparisons: first one without an error, then each kind of error alone, once on
    either side, the last eight with none to three.
    """
    kinds = [item for name in NAMES for item in KINDS.get(name, (name,))]
    singles: list[tuple[list[str], Sequence[str]]] = [
        ([kind], (side,)) for kind in kinds for side in SIDES
    ]
    rng.shuffle(singles)
    singles.insert(0, ([], SIDES))
    counts = [0, 3, 1, 2, 0, 3, 2, 1]
    several = [(_together(rng, count), SIDES) for count in counts]
    planned, cases = [*singles, *several], []
    for size in SIZES:
        some, planned = planned[:size], planned[size:]
        cases.append({"comparisons": [_comparison(rng, *item) for item in some]})
    return cases


def _together(rng: random.Random, count: int) -> list[str]:
    """Errors that can be made in one comparison: throughput is stated in one way."""
    while True:
        result = rng.sample(NAMES, count)
        if not {"peak", "sparse peak"} <= set(result):
            return [rng.choice(KINDS.get(name, (name,))) for name in result]


def _comparison(rng: random.Random, errors: list[str], where: Sequence[str] = SIDES) -> Facts:
    """Two sides that agree where they have to and differ where they may, with errors put in, each
    on a side of `where`.
    """
    target = rng.randint(170, 240) / 100
    same: Facts = {
        "region": rng.choice(REGIONS),
        "purchase": rng.choice(PURCHASES),
        "currency": rng.choice(CURRENCIES),
        "billion_tokens": rng.randint(5, 900) / 10,
        "target_loss": target,
    }
    both_credited = rng.random() < 0.4
    sides = {}
    for name in SIDES:
        chips = rng.choice((4, 8, 16))
        peak = rng.randint(20, 200) * 1e14
        flop = round(6.0 * rng.randint(3, 90) * 1e9)
        share = rng.uniform(0.15, 0.62) if rng.random() < 0.8 else rng.uniform(0.8, 0.97)
        changed = datetime.date(2025, rng.randint(2, 10), rng.randint(1, 28))
        # The day of the change itself is not before it.
        read = changed + datetime.timedelta(days=rng.choice((0, 3, 20, 60)))
        sides[name] = same | {
            "price_read": read.isoformat(),
            "price_last_changed": changed.isoformat(),
            "price_per_hour": round(rng.uniform(2, 90), 2),
            "price_is_per": rng.choice(("server", "chip")),
            "servers": rng.randint(1, 64),
            "chips_per_server": chips,
            "peak_flop_per_second": peak,
            "flop_per_token": flop,
            "tokens_per_second": round(peak * share / flop),
            "throughput_from": rng.choice(("own run", "independent benchmark")),
            "reached_loss": round(target - rng.randint(0, 6) / 100, 2),
            "credits": rng.randint(1, 9) * 100 if both_credited else 0,
        }
    for error in errors:
        _put_in(rng, error, sides, rng.choice(where))
    for side in sides.values():
        per_server = side["price_is_per"] == "server"
        wrong = side.pop("miscounted", False)
        factor = 1 if per_server != wrong else side["chips_per_server"]
        speed = side["tokens_per_second"] * side["servers"]
        side["hours"] = side["billion_tokens"] * 1e9 / speed / 3600
        bill = side["hours"] * side["servers"] * side["price_per_hour"] * factor
        # Credits pay at most half, so that a cost stays one.
        side["credits"] = min(side["credits"], round(bill / 2, 2))
        side["cost"] = bill - side["credits"]
    return sides


def _put_in(rng: random.Random, error: str, sides: dict[str, Facts], place: str) -> None:
    side = sides[place]
    if error in ("region", "purchase", "currency"):
        values = {"region": REGIONS, "purchase": PURCHASES, "currency": CURRENCIES}[error]
        side[error] = rng.choice([value for value in values if value != side[error]])
    elif error == "old price":
        days = datetime.timedelta(days=rng.choice((1, 12, 130, 400)))
        changed = datetime.date.fromisoformat(side["price_last_changed"])
        side["price_read"] = (changed - days).isoformat()
    elif error == "work":
        side["billion_tokens"] = round(side["billion_tokens"] * rng.choice((0.5, 0.8, 1.25)), 3)
    elif error == "quality unknown":
        side["reached_loss"] = None
    elif error == "quality missed":
        side["reached_loss"] = round(side["target_loss"] + rng.randint(1, 9) / 100, 2)
    elif error == "another target":
        side["target_loss"] = round(side["target_loss"] + 0.1, 2)
    elif error == "vendor claim":
        side["throughput_from"] = "vendor"
    elif error in (*KINDS["peak"], "sparse peak"):
        under, over = KINDS["peak"]
        # A share of a sparse peak is still more than the dense one.
        factor = {under: 0.994, over: 1.006}.get(error) or rng.choice((1.2, 2, 4))
        side["tokens_per_second"] = factor * side["peak_flop_per_second"] / side["flop_per_token"]
    elif error in KINDS["price unit"]:
        side |= {"miscounted": True, "price_is_per": error.split()[1]}
    else:
        for name in SIDES:
            sides[name]["credits"] = 0
        side["credits"] = rng.randint(2, 9) * 100


def truth(comparison: Facts) -> set[str]:
    """The errors of a comparison, from what it says."""
    first, second = (comparison[name] for name in SIDES)
    both = (first, second)
    results = {name for name in ("region", "purchase", "currency") if first[name] != second[name]}
    if any(item["price_read"] < item["price_last_changed"] for item in both):
        results.add("old price")
    if first["billion_tokens"] != second["billion_tokens"]:
        results.add("work")
    missed = [
        item["reached_loss"] is None or item["reached_loss"] > item["target_loss"] for item in both
    ]
    if any(missed) or first["target_loss"] != second["target_loss"]:
        results.add("quality")
    if any(item["throughput_from"] == "vendor" for item in both):
        results.add("vendor claim")
    for share in map(share_of_peak, both):
        if share > 1.01:
            results.add("sparse peak")
        elif share > 0.99:
            results.add("peak")
    if any(abs(bill(item) - item["credits"] - item["cost"]) > 0.01 * bill(item) for item in both):
        results.add("price unit")
    if bool(first["credits"]) != bool(second["credits"]):
        results.add("credits")
    return results


def share_of_peak(side: Facts) -> float:
    """The stated throughput as a share of the dense peak."""
    return side["tokens_per_second"] * side["flop_per_token"] / side["peak_flop_per_second"]


def bill(side: Facts) -> float:
    """What the hours of the servers cost, before credits."""
    units = side["chips_per_server"] if side["price_is_per"] == "chip" else 1
    return side["price_per_hour"] * units * side["servers"] * side["hours"]


def comparison_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{times(len(case['comparisons']), 'comparison')} of two ways to do the same work"


def _read_seen(name: str, comparison: Facts) -> str:
    """What in a comparison shows an error."""
    first, second = (comparison[item] for item in SIDES)
    if name in ("region", "purchase", "currency"):
        return f"one says {first[name]}, the other {second[name]}"
    if name == "old price":
        side = next(e for e in (first, second) if e["price_read"] < e["price_last_changed"])
        return f"read on {side['price_read']}, and it changed on {side['price_last_changed']}"
    if name == "work":
        return f"{first['billion_tokens']:g} and {second['billion_tokens']:g} billion tokens"
    if name == "quality":
        reached = [f"{e['reached_loss']} for {e['target_loss']:g}" for e in (first, second)]
        return f"the losses reached, for their targets, are {' and '.join(reached)}"
    if name == "vendor claim":
        return "one throughput is what a vendor says"
    if name in ("peak", "sparse peak"):
        return (
            "tokens per second times FLOP per token is"
            f" {max(map(share_of_peak, (first, second))):.3g} of the dense peak"
        )
    if name == "price unit":
        sides = ((e, bill(e) - e["credits"]) for e in (first, second))
        side, right = next(
            pair for pair in sides if abs(pair[1] - pair[0]["cost"]) > 0.01 * bill(pair[0])
        )
        return (
            f"price, servers and hours make {right:,.2f} and it says {side['cost']:,.2f}:"
            " of a server, or of one of its chips?"
        )
    return f"credits are {first['credits']:g} and {second['credits']:g}"


_ALARM = {
    "region": "both say the same region",
    "purchase": "both are bought in the same way",
    "currency": "both are in the same currency",
    "old price": SAYS["the-day-itself"],
    "work": "both do the same tokens; servers, hours and speed may differ",
    "quality": SAYS["losses-that-differ"],
    "vendor claim": "only what the vendor says is one: an independent benchmark is not",
    "peak": "nothing runs at 99 % to 101 % of its dense peak",
    "sparse peak": "nothing runs at more than its dense peak",
    "price unit": "the cost follows: a price per chip counts for each chip of each server, and"
    " credits are taken off",
    "credits": SAYS["credits-that-differ"],
}


def judge_comparisons(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion per group of errors, and one for false alarms."""
    response, right = facts["response"], [truth(comparison) for comparison in case["comparisons"]]
    strange = next((item for item in response if isinstance(item, str)), None)
    if strange is not None:
        more = SAYS["braces"] if strange == "a dict of 0" else ""
        message = SAYS["one-name"].format(strange=strange, more=more)
        weights = {name: weight for name, (weight, _) in GROUPS.items()} | {"false alarms": ALARMS}
        return not_asked_for(weights, message, strange, "a set", others="not judged")
    results = [
        _judge_group(name, weight, names, case, [set(item) for item in response], right)
        for name, (weight, names) in GROUPS.items()
    ]
    alarms = _judge_alarms(case, response, right)
    # Who names nothing raises no alarm, which is no merit.
    silent = not any(set(a) & b for a, b in zip(response, right, strict=True)) and any(right)
    return [*results, not_judged(alarms) if silent and alarms.passed else alarms]


def _judge_group(
    name: str,
    weight: int,
    names: tuple[str, ...],
    case: Facts,
    response: list[set[str]],
    right: list[set[str]],
) -> Criterion:
    """Whether the errors of a group are named where they are, and nowhere else."""
    own, wrong, message = set(names), [], ""
    for place, (here, there) in enumerate(zip(response, right, strict=True)):
        missing, extra = (there - here) & own, (here - there) & own
        wrong += [place] * bool(missing or extra)
        if (missing or extra) and not message:
            which = f"comparison {place + 1}"
            if missing:
                first = min(missing, key=NAMES.index)
                also = _confusion(first, extra)
                message = SAYS["the-first-side-only"].format(
                    which=which,
                    first=first,
                    also=also,
                    seen=_read_seen(first, case["comparisons"][place]),
                )
            else:
                first = min(extra, key=NAMES.index)
                message = SAYS["dates-that-differ"].format(
                    which=which, first=first, value=_ALARM[first]
                )
    return all_right(
        name, weight, wrong, len(response), message, response=[item & own for item in response]
    )


def _confusion(missed: str, extra: set[str]) -> str:
    peaks = {"peak", "sparse peak"}
    return f", not {min(extra & peaks)!r}" if missed in peaks and extra & peaks else ""


def _judge_alarms(case: Facts, response: list[list[str]], right: list[set[str]]) -> Criterion:
    count, message = 0, ""
    for place, (here, there) in enumerate(zip(response, right, strict=True)):
        extra = [name for name in here if name not in there]
        count += len(extra)
        if extra and not message:
            unknown = [name for name in extra if name not in NAMES]
            message = f"comparison {place + 1}: " + (
                SAYS["names-of-ones-own"].format(value=unknown[0])
                if unknown
                else f"{extra[0]!r} is named, and is no error there"
            )
    return criterion("false alarms", ALARMS, not count, str(count), "none", message)
