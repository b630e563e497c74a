"""The cases of lab 12 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab12 import benches, fleets, layers, omitted, quantiles

JUDGES = {
    "ex1": Judge(benches.bench_cases, benches.judge_bench, benches.bench_words),
    "ex2": Judge(
        quantiles.percentile_cases, quantiles.judge_percentiles, quantiles.percentile_words
    ),
    "ex3": Judge(omitted.log_cases, omitted.judge_open_loops, omitted.log_words),
    "ex4": Judge(fleets.fleet_cases, fleets.judge_fleets, fleets.fleet_words),
    "ex5": Judge(layers.model_cases, layers.judge_reports, layers.model_words),
}
