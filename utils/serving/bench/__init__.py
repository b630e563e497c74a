"""A benchmark of inference that says what it measured, how sure it is, and where.

    samples = measure(step, devices.get("xla"))     # times of calls, the first apart
    print(samples.summary)                          # p50, p95, p99 with intervals

`open_loop` sends requests when they are due. `cold_and_warm`, `throughput`, `tokens`, `fidelity`
and `recovery` measure the rest, `usd_per_million` and `joules_per_query` turn a throughput into
money and energy. A `Record` keeps all of it as JSON, and `compare` tests one against an earlier
one. Nothing here imports torch before it measures. `python3 course.py bench` does it all for a
model of the course.

Where to look: `timing` (calls, open loop, tokens, throughput), `quantiles` (percentiles and their
intervals), `cold`, `workers` (processes side by side, recovery), `agreement` (fidelity), `money`
(and energy); `environment`, `records` (JSON, and in words), `comparison`; `workloads` and `runs`
are what the command adds.
"""

from utils.serving.bench.agreement import Fidelity, fidelity
from utils.serving.bench.cold import ColdStart, cold_and_warm
from utils.serving.bench.comparison import Comparison, Unlike, compare
from utils.serving.bench.environment import Environment
from utils.serving.bench.money import Given, joules_per_query, usd_per_million
from utils.serving.bench.quantiles import (
    Quantile,
    Summary,
    interval,
    percentile,
    samples_needed,
    summary,
)
from utils.serving.bench.records import Record, Unreadable, from_json, load, save, to_json
from utils.serving.bench.timing import (
    CLOCK,
    Arrivals,
    Rate,
    Samples,
    Tokens,
    measure,
    open_loop,
    throughput,
    time_call,
    tokens,
)
from utils.serving.bench.workers import Recovery, recovery, side_by_side
