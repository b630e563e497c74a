"""The cases and the judgement of choosing an instance, exercise 5 of lab 01."""

import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, first_of, not_asked_for, not_judged, times
from utils.labs.lab01.sheets import MARKETS, offer
from utils.labs.values import near
from utils.labs.wrong_answers import message_of, replies

SAYS = says("lab01")

NAMES = (
    *("trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge"),
    *("trn2-ultraserver", "inf2.48xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"),
    *("p5e.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge"),
)
GIB = 2**30

KINDS = ("cheapest", "ask too", "ask only", "nothing", "by the hour", "ask too")
"""Every price is known; some that fits has none; none that fits has one; nothing fits; the cheapest
by the hour is another one than by the hour and GiB.
"""


def offer_cases(rng: random.Random) -> list[Facts]:
    """One case per entry of KINDS."""
    return [_case(rng, kind) for kind in KINDS]


def _case(rng: random.Random, kind: str) -> Facts:
    while True:
        offers = [offer(name) for name in rng.sample(NAMES, 7)]
        size = rng.choice([item["hbm_gib"] for item in offers]) * GIB
        per_parameter = rng.choice((12, 14, 16, 18))
        activations = round(rng.uniform(0.05, 0.2) * size / GIB, 1)
        # Full to some percent: in GB in place of GiB one instance more, or less, would fit.
        state = size * rng.choice((rng.uniform(0.95, 0.99), 1.04)) - activations * GIB
        case = {
            "job": {
                "parameters": float(f"{state / per_parameter:.3g}"),
                "bytes_per_parameter": per_parameter,
                "activation_gib": activations,
                "network_gb_per_s": rng.choice((5, 12.5, 40, 90, 150, 350, 700)),
                "market": rng.choice(MARKETS),
            },
            "offers": offers,
        }
        if _suits(case, kind):
            return case


def _suits(case: Facts, kind: str) -> bool:
    right = truth(case)
    fits = len(case["offers"]) - len(right["rejected"])
    priced = fits - len(right["ask"])
    reasons = set(right["rejected"].values())
    kept = [item for item in case["offers"] if item["name"] not in right["rejected"]]
    smallest = min(kept, key=lambda item: item["hbm_gib"])["name"] if kept else None
    return {
        "cheapest": priced > 1 and not right["ask"] and right["instance"] != smallest,
        "by the hour": priced > 1 and right["instance"] != cheapest_per_gib(case, right),
        "ask too": priced > 1 and bool(right["ask"]) and "network" in reasons,
        "ask only": not priced and bool(right["ask"]),
        "nothing": not fits and "network" in reasons,
    }[kind]


def cheapest_per_gib(case: Facts, right: Facts) -> str | None:
    """What a price per GiB would choose; by the job's market, among those that fit."""
    shares = {
        item["name"]: price / item["hbm_gib"]
        for item in case["offers"]
        if item["name"] not in right["rejected"]
        and (price := item[f"usd_per_hour_{case['job']['market']}"]) is not None
    }
    return min(shares, key=shares.__getitem__, default=None)


def truth(case: Facts) -> Facts:
    """The right choice."""
    job = case["job"]
    needed = job["parameters"] * job["bytes_per_parameter"] + job["activation_gib"] * GIB
    rejected, prices, ask = {}, {}, []
    for item in case["offers"]:
        network = item["network_gbps"]
        if needed > item["hbm_gib"] * GIB:
            rejected[item["name"]] = "memory"
        elif network is None or network < 8 * job["network_gb_per_s"]:
            rejected[item["name"]] = "network"
        elif (price := item[f"usd_per_hour_{job['market']}"]) is None:
            ask.append(item["name"])
        else:
            prices[item["name"]] = price
    best = min(prices, key=prices.__getitem__, default=None)
    return {"instance": best, "usd_per_hour": prices.get(best), "ask": ask, "rejected": rejected}


WORDS = (
    "{job[parameters]:g} parameters of {job[bytes_per_parameter]} bytes, {job[activation_gib]:g}"
    " GiB activations, {job[network_gb_per_s]:g} GB/s, {job[market]}"
)
_FORM = (
    "{'instance': name or None, 'usd_per_hour': price or None, 'ask': [names],"
    " 'rejected': {name: 'memory' or 'network'}}"
)


def judge_choice(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: what fits, the cheapest known price, and the offers without a price."""
    if facts["rejected"] is None or facts["ask"] is None:
        entry = "rejected" if facts["rejected"] is None else "ask"
        result = facts["kind"]
        if result.startswith("a dict"):
            result += f" with {facts[f'{entry}_kind']} as {entry!r}"
        message = SAYS["the-name-alone"].format(got=result, FORM=_FORM)
        weights = dict.fromkeys(("what fits", "cheapest known", "unknown prices"), 2)
        return not_asked_for(weights, message, facts["kind"], "a dict", others="not judged")
    right = truth(case)
    fits = _judge_rejected(case, facts["rejected"], right["rejected"])
    cheapest = _judge_instance(case, facts, right)
    ask = _judge_ask(case, facts["ask"], right["ask"])
    if not fits.passed and fits.message:
        cheapest, ask = (item if item.passed else not_judged(item) for item in (cheapest, ask))
    return [fits, cheapest, ask]


def _judge_rejected(case: Facts, response: Facts, right: Facts) -> Criterion:
    message = ""
    off = [e["name"] for e in case["offers"] if response.get(e["name"]) != right.get(e["name"])]
    strange = [
        why
        for name, why in response.items()
        if why not in ("memory", "network") and (name in right or why == "None")
    ]
    if off or set(response) - {item["name"] for item in case["offers"]}:
        message = message_of("lab01.ex5", case, lambda facts: facts["rejected"] == response, "")
        if strange:
            message = SAYS["all-names-with-a-reason-or-none"].format(value=strange[0])
        elif not message and not off:
            message = "a name is rejected that nobody offers"
        elif not message:
            message = _about_fit(off[0], response.get(off[0]), right.get(off[0]))
    counted = f"{len(case['offers']) - len(off)} of {len(case['offers'])}"
    return criterion("what fits", 2, not message, counted, "all", message)


def _about_fit(name: str, response: str | None, right: str | None) -> str:
    if response and not right:
        return SAYS["unknown-prices-rejected"].format(name=name)
    if right == "memory":
        if response == "network":
            return SAYS["the-network-first"].format(name=name)
        return f"{name}: state and activations do not fit its HBM"
    if right == "network":
        return f"{name} has the memory, but not the network"
    return f"{name}: compare bytes with bytes"


def _judge_instance(case: Facts, facts: Facts, right: Facts) -> Criterion:
    response, price = facts["instance"], facts["price"]
    passed = response == right["instance"] and near(price, right["usd_per_hour"])
    offers = {item["name"]: item for item in case["offers"]}
    own = offers.get(response, {}).get(f"usd_per_hour_{case['job']['market']}")
    other_market = SAYS["the-other-markets-price"]
    others = (f["instance"] for text, f in replies("lab01.ex5", case) if text == other_market)
    message = first_of(
        (response in right["ask"], SAYS["none-as-0"] if price == 0 else other_market),
        (response == right["instance"], SAYS["no-price"]),
        (response is None, "some that fit have a price: the cheapest of those is asked for"),
        (response in right["rejected"], "it does not fit: choose among what does"),
        (
            response not in offers,
            "return the name of an offer, or None if there is none with a known price",
        ),
        ((own is not None and not near(price, own)) or response in others, other_market),
        otherwise=SAYS["the-dearest"],
    )
    shown = "done" if passed else "other" if response else "none"
    return criterion("cheapest known", 2, passed, shown, "name and price", message)


def _judge_ask(case: Facts, response: list[str], right: list[str]) -> Criterion:
    missing, extra = set(right) - set(response), set(response) - set(right)
    left_out = SAYS["unknown-prices-left-out"].format(times=times(len(missing), "offer"))
    message = first_of((missing, left_out), (extra, SAYS["everybody-is-asked"]))
    shown = f"{len(set(right) & set(response))} of {len(right)}"
    return criterion("unknown prices", 2, not message, shown, "all that fit", message)
