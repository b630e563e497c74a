"""The cases and the judgement of all-reduce times, exercise 6 of lab 01."""

import random
from collections.abc import Callable
from typing import Any

from utils.chip.topology import Topology, all_reduce_seconds, ring, switch, torus
from utils.facts import figure
from utils.labs import Criterion, Facts
from utils.labs.criteria import among
from utils.labs.values import right_values
from utils.labs.wrong_answers import Known

DTYPE_BYTES = {"fp32": 4, "bf16": 2}
LINKS = (
    "trainium1.link.bandwidth",
    "trainium2.link.bandwidth_intra_instance",
    "trainium3.link.bandwidth",
    "h100.link.bandwidth",
    "b200.link.bandwidth",
)


def fabric_cases(rng: random.Random) -> list[Facts]:
    """A message whose latency counts most, one in between, one whose bandwidth counts most."""
    widths = rng.sample(("fp32", "bf16", rng.choice(list(DTYPE_BYTES))), 3)
    return [_case(rng, *item) for item in zip((5, 6.5, 9), widths, strict=True)]


def _case(rng: random.Random, power: float, dtype: str) -> Facts:
    fabrics = [
        ("ring", [rng.randint(3, 6)]),
        ("ring", [rng.randint(8, 32)]),
        ("torus", [rng.randint(3, 5)] * 2),
        ("torus", rng.sample((3, 4, 5, 6), 3)),
        ("switched", [rng.choice((4, 6, 8))]),
        ("switched", [rng.choice((16, 48, 64, 72, 144))]),
    ]
    return {
        "elements": int(10 ** rng.uniform(power, power + 0.5)),
        "dtype": dtype,
        "fabrics": [
            {
                "kind": kind,
                "sizes": sizes,
                "link_gb_per_s": figure(rng.choice(LINKS)).to("GB/s"),
                "latency_us": rng.randint(4, 60) / 4,
            }
            for kind, sizes in fabrics
        ],
    }


def fabric_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{case['elements']} {case['dtype']} numbers on {len(case['fabrics'])} fabrics"


def label(fabric: Facts) -> str:
    """The name of a fabric in messages, such as "torus of 4 × 4 chips"."""
    return f"{fabric['kind']} of {' × '.join(map(str, fabric['sizes']))} chips"


def truth(case: Facts) -> list[float]:
    """Seconds of the all-reduce on every fabric of a case, in their order."""
    size = case["elements"] * DTYPE_BYTES[case["dtype"]]
    kinds: dict[str, Callable[..., Topology]] = {"ring": ring, "torus": torus, "switched": switch}
    return [
        all_reduce_seconds(
            size,
            kinds[fabric["kind"]](*fabric["sizes"]),
            fabric["link_gb_per_s"] * 0.5e9,  # of one direction
            fabric["latency_us"] * 1e-6,
        )
        for fabric in case["fabrics"]
    ]


_ADVICE = {
    "ring": "2(n − 1) steps, each of one latency and of S/n bytes at what a chip sends one way",
    "torus": "axis by axis: each is a ring with its share of the links, and has S over the axes"
    " before it to reduce",
    "switched": "two steps, in each of which a chip sends (n − 1)/n of S to the others at once",
}


def judge_all_reduce(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion per kind of fabric: ring, torus and switched."""
    right, response, results = truth(case), facts["response"], []
    width = f"and {case['dtype']} has {DTYPE_BYTES[case['dtype']]} bytes"
    for kind, advice in _ADVICE.items():
        places = [p for p, fabric in enumerate(case["fabrics"]) if fabric["kind"] == kind]
        some = [case["fabrics"][p] for p in places]

        def of_kind(facts: Facts, places: list[int] = places) -> list[Any]:
            return [facts["response"][p] for p in places]

        known = Known("lab01.ex6", case, of_kind, width=width)
        pairs = [response[p] for p in places], [right[p] for p in places]
        values = right_values(kind, 1, *pairs, list(map(label, some)), known, advice)
        results.append(among(values, some, case["fabrics"]))
    return results
