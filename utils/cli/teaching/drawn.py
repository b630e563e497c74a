"""Exam questions with drawn numbers, by lesson: the labs draw their inputs and know what is right.

Each function takes a random generator and returns what is asked, the answer, and how it is found.
"""

import math
import random
from collections.abc import Callable

from utils.chip.formats import round_to
from utils.labs.lab01 import fabrics, gemms
from utils.labs.lab08 import intervals
from utils.labs.lab13 import runs

Drawn = tuple[str, str, str]


def product(rng: random.Random) -> Drawn:
    """What bounds a matrix product, and how long it takes at least."""
    case = gemms.gemm_cases(rng)[0]
    sheet, place = case["sheet"], rng.randrange(len(case["gemms"]))
    item, (seconds, limit) = case["gemms"][place], gemms.truth(case)[place]
    rates = sheet[f"{item['on']}_tflops"]
    bandwidth = sheet["hbm_tb_per_s"] / (sheet["cores"] if item["on"] == "core" else 1)
    return (
        f"A product of [{item['m']}, {item['k']}] and [{item['k']}, {item['n']}] in"
        f" {item['dtype']} runs on one {item['on']} of {sheet['name']}, which computes"
        f" {rates[item['dtype']]:g} TFLOP/s and has {bandwidth:.4g} TB/s to HBM. What bounds it,"
        " and how long does it take at least?",
        f"{limit}, {seconds * 1e6:.3g} µs",
        "2mkn FLOP at the rate; three matrices over HBM, each once; the longer of the two times",
    )


def ring(rng: random.Random) -> Drawn:
    """The time of an all-reduce on a ring."""
    case = fabrics.fabric_cases(rng)[1]
    fabric = case["fabrics"][1]
    size = case["elements"] * fabrics.DTYPE_BYTES[case["dtype"]]
    return (
        f"{fabric['sizes'][0]} chips in a ring add up {size / 1e6:.4g} MB of gradients. A chip"
        f" sends {fabric['link_gb_per_s'] / 2:g} GB/s in one direction, and a step has a latency of"
        f" {fabric['latency_us']:g} µs. How long does the all-reduce take?",
        f"{fabrics.truth(case)[1] * 1e3:.3g} ms",
        "2 (n − 1) steps, each of one latency and of S/n bytes at the bandwidth of one direction",
    )


def executions(rng: random.Random) -> Drawn:
    """How often a training loop executes that reads its loss at times."""
    every, times = rng.randint(3, 9), rng.randint(5, 20)
    steps = every * times
    return (
        f"A training loop on PyTorch/XLA has {steps} steps, and each ends with torch_xla.sync()."
        f" Every {every}th step calls loss.item() right before its sync."
        " How many executions are there?",
        str(steps + times),
        "a read of a pending loss runs the forward pass once more; after the sync the value exists",
    )


def buckets(rng: random.Random) -> Drawn:
    """How many graphs padding to buckets leaves, and how much is padding."""
    limits = sorted(rng.sample(range(40, 260, 20), 3))
    lengths = [rng.randint(20, limits[-1]) for _ in range(8)]
    padded = [min(limit for limit in limits if limit >= length) for length in lengths]
    share = 1 - sum(lengths) / sum(padded)
    return (
        f"Sequences of {', '.join(map(str, lengths))} tokens are padded to the buckets"
        f" {', '.join(map(str, limits))} and computed one at a time. How many graphs are compiled,"
        " and which share of the computed tokens is padding?",
        f"{len(set(padded))} graphs, {share:.1%} padding",
        f"padded lengths {', '.join(map(str, padded))}: {sum(padded)} tokens for {sum(lengths)}",
    )


def rounding(rng: random.Random) -> Drawn:
    """A sum in BF16."""
    power, step = rng.randint(3, 9), rng.choice((0.2, 0.4, 0.6, 0.9))
    start, spacing = 2**power, 2.0 ** (power - 7)
    result = float(round_to(start + step * spacing, "bf16"))
    return (
        f"A weight in BF16 is {start}, and {step * spacing:g} is added to it; the sum is rounded to"
        " the nearest BF16 value. What is the weight now? (BF16 stores 7 bits of mantissa.)",
        f"{result:g}",
        f"between {start} and {2 * start} values lie 2^({power} − 7) = {spacing:g} apart; less than"
        " half of that is lost",
    )


def interval(rng: random.Random) -> Drawn:
    """Young's interval between checkpoints."""
    fleet = intervals.fleet_cases(rng)[0]["fleet"]
    write, rate = intervals.write_hours(fleet), intervals.failures_per_hour(fleet)
    return (
        f"Writing a checkpoint takes {write * 60:.3g} minutes, and the fleet fails every"
        f" {1 / rate:.4g} hours on average. After how many hours of work should a checkpoint be"
        " written, by Young's formula?",
        f"{math.sqrt(2 * write / rate):.3g} h",
        "the square root of 2 × time to write × time between failures, both in hours",
    )


def tiles(rng: random.Random) -> Drawn:
    """How many tiles an array has, and what the last of them holds."""
    rows = 128 * rng.randint(2, 30) + rng.randint(1, 127)
    return (
        f"A kernel works on an array of {rows} rows, one row on each partition. How many tiles are"
        " there, and how many partitions does the last one use?",
        f"{-(-rows // 128)} tiles, {rows % 128} partitions",
        "a tile has at most 128 partitions",
    )


def percentile(rng: random.Random) -> Drawn:
    """A percentile of a few samples, and how little it says."""
    samples = sorted(round(rng.lognormvariate(3, 0.6), 1) for _ in range(20))
    share = rng.choice((50, 75, 90, 95))
    mixed = ", ".join(f"{value:g}" for value in rng.sample(samples, len(samples)))
    return (
        f"Twenty requests took {mixed} ms. What is p{share}: the smallest sample that {share} % of"
        " the samples do not exceed?",
        f"{samples[-(-share * 20 // 100) - 1]:g} ms",
        f"sorted, the sample number {-(-share * 20 // 100)} of 20",
    )


def million_tokens(rng: random.Random) -> Drawn:
    """What a million tokens of a training cost in computing."""
    job = rng.choice(runs.job_cases(rng)[1]["jobs"])
    return (
        f"A run trains on {job['billion_tokens']:g} billion tokens with {job['servers']} servers of"
        f" {job['tokens_per_second_per_server']} tokens/s each. It takes {job['startup_hours']:g} h"
        f" to start, no run fails, and {job['utilisation']:.0%} of the billed hours are used. A"
        f" server costs {job['price_per_server_hour']:g} an hour. What do the servers cost per"
        " million tokens?",
        f"{runs.truth(job)['compute']:.4g}",
        "(computing + start) hours / utilisation × servers × price, over the millions of tokens",
    )


def cache(rng: random.Random) -> Drawn:
    """How much a token takes in a KV cache."""
    layers, heads, width = rng.choice((24, 32, 48, 80)), rng.choice((4, 8, 16)), 128
    size, room = 2 * layers * heads * width * 2, rng.randint(4, 40)
    return (
        f"A model has {layers} layers with {heads} key-value heads of {width} numbers. Its KV"
        f" cache is in BF16, and {room} GB are left for it. How many bytes does a token take, and"
        " how many tokens fit?",
        f"{size} bytes, {int(room * 1e9 // size)} tokens",
        "keys and values: 2 × layers × heads × width × 2 bytes",
    )


QUESTIONS: dict[str, tuple[Callable[[random.Random], Drawn], ...]] = {
    "01": (product, ring),
    "03": (executions,),
    "04": (buckets,),
    "05": (rounding,),
    "08": (interval,),
    "09": (tiles,),
    "12": (percentile,),
    "13": (million_tokens,),
    "16": (cache,),
}
"""By the number of the lesson that teaches it."""
