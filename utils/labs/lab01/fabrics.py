"""The cases and the judgement of all-reduce times, exercise 6 of lab 01."""

import math
import random

from utils.chip.topology import Topology, all_reduce_seconds, ring, switched, torus
from utils.course.misconceptions import says
from utils.facts import figure
from utils.labs import Criterion, Facts
from utils.labs.criteria import among
from utils.labs.values import Ways, right_values

SAYS = says("lab01")

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


def _topology(kind: str, sizes: list[int]) -> Topology:
    return torus(*sizes) if kind == "torus" else {"ring": ring, "switched": switched}[kind](*sizes)


def _size(case: Facts) -> int:
    return case["elements"] * DTYPE_BYTES[case["dtype"]]


def seconds(size: float, fabric: Facts, rate: float = 0.5e9, latency: float = 1e-6) -> float:
    """rate, latency: factors of what the fabric says, here of one direction and in seconds."""
    return all_reduce_seconds(
        size,
        _topology(fabric["kind"], fabric["sizes"]),
        fabric["link_gb_per_s"] * rate,
        fabric["latency_us"] * latency,
    )


def truth(case: Facts) -> list[float]:
    """Seconds of the all-reduce on every fabric of a case, in their order."""
    return [seconds(_size(case), fabric) for fabric in case["fabrics"]]


_ADVICE = {
    "ring": "2(n − 1) steps, each of one latency and of S/n bytes at what a chip sends one way",
    "torus": "axis by axis: each is a ring with its share of the links, and has S over the axes"
    " before it to reduce",
    "switched": "two steps, in each of which a chip sends (n − 1)/n of S to the others at once",
}


def ways(case: Facts, fabric: Facts) -> Ways:
    """What wrong ways give for one fabric."""
    size, sizes, chips = _size(case), fabric["sizes"], math.prod(fabric["sizes"])
    right, moved = seconds(size, fabric), seconds(size, fabric, latency=0)
    waited = right - moved
    less_by_one = (chips - 1) / chips
    width = f"and {case['dtype']} has {DTYPE_BYTES[case['dtype']]} bytes"
    results = [
        (SAYS["both-directions"].format(width=width), moved / 2 + waited),
        (SAYS["one-link-of-two"].format(width=width), 2 * moved + waited),
        (SAYS["no-latency"], moved),
        (SAYS["latency-once"], moved + fabric["latency_us"] * 1e-6),
        (SAYS["a-latency-to-send-and-one-to-receive"], moved + 2 * waited),
        (SAYS["latency-alone"], waited),
        (SAYS["milliseconds"], moved + 1e6 * waited),
        (SAYS["milliseconds"], moved + 1e3 * waited),
        (SAYS["milliseconds"], moved + waited / 1e3),
        (SAYS["half-of-it"], right / 2),
        (SAYS["bits-3"], 8 * moved + waited),
        (SAYS["gibibytes-3"], moved * 1e9 / 2**30 + waited),
        (SAYS["tb-for-gb"], 1e3 * moved + waited),
        (SAYS["tb-for-gb"], moved / 1e3 + waited),
        (SAYS["twice-in-place-of-half"].format(width=width), moved / 4 + waited),
        ("return seconds: these are milliseconds", 1e3 * right),
        (SAYS["microseconds"], 1e6 * right),
    ]
    if fabric["kind"] == "torus":
        rate, alpha = fabric["link_gb_per_s"] * 0.5e9, fabric["latency_us"] * 1e-6
        axes = len(sizes)
        loop = {**fabric, "kind": "ring", "sizes": [chips]}

        def on_axis(a: int, share: float, width: int = axes) -> float:
            return 2 * (a - 1) * (alpha + width * share / rate)

        shares = _steps(size, sizes)
        more = sum(2 * a * (alpha + axes * share / rate) for a, share in shares)
        results += [
            (SAYS["a-torus-as-one-ring"], seconds(size, loop)),
            (SAYS["all-links-on-each-axis"], moved / axes + waited),
            (SAYS["all-axes-at-once"], max(on_axis(*step) for step in shares)),
            (SAYS["all-axes-at-once"], max(on_axis(a, size / a) for a in sizes)),
            (SAYS["all-of-it-on-each-axis"], sum(on_axis(a, size / a) for a in sizes)),
            (SAYS["all-of-it-on-each-axis"], sum(on_axis(a, size / a, 1) for a in sizes)),
            ("an axis of a chips takes a − 1 steps each way, not a", more),
        ]
    else:
        longer = moved / less_by_one, waited / less_by_one
        for part in (right / less_by_one, longer[0] + waited, moved + longer[1]):
            results.append((SAYS["n-steps"], part))
    if fabric["kind"] == "ring":
        direct = seconds(size, {**fabric, "kind": "switched"})
        results += [
            (SAYS["all-of-it-in-each-step"], chips * moved + waited),
            ("on a ring a piece passes from chip to chip", direct),
        ]
    if fabric["kind"] == "switched":
        loop, whole = {**fabric, "kind": "ring"}, moved * chips + waited
        # First, because a small message tells one factor of its bytes hardly from another.
        results = [
            (SAYS["a-switch-as-a-ring"], seconds(size, loop)),
            ("both halves take a step: two latencies", moved + waited / 2),
            ("a chip sends each of the others one piece, S/n, not the whole of S", whole),
            ("pieces for n − 1 others leave through the same links", moved / (chips - 1) + waited),
            *results,
        ]
    return results


def _steps(size: float, sizes: list[int]) -> list[tuple[int, float]]:
    """Each axis, and the bytes of one step along it."""
    results = []
    for item in sizes:
        size /= item
        results.append((item, size))
    return results


def judge_all_reduce(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion per kind of fabric: ring, torus and switched."""
    right, response = truth(case), facts["said"]
    results = []
    for kind, advice in _ADVICE.items():
        places = [p for p, fabric in enumerate(case["fabrics"]) if fabric["kind"] == kind]
        some = [case["fabrics"][p] for p in places]
        pairs = [response[p] for p in places], [right[p] for p in places]
        labels, known = map(label, some), [ways(case, fabric) for fabric in some]
        values = right_values(kind, 1, *pairs, list(labels), known, advice)
        results.append(among(values, some, case["fabrics"]))
    return results
