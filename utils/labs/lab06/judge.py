"""The cases of lab 06 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab06 import benches, loads, profiles, records, waits

JUDGES = {
    "ex1": Judge(loads.load_cases, loads.judge_load, loads.load_words),
    "ex2": Judge(waits.wait_cases, waits.judge_waits, waits.wait_words),
    "ex3": Judge(benches.bench_cases, benches.judge_bench, benches.bench_words),
    "ex4": Judge(profiles.profile_cases, profiles.judge_profiles, profiles.profile_words),
    "ex5": Judge(records.record_cases, records.judge_diagnoses, records.record_words),
}
