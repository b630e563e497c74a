"""The cases of lab 08 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab08 import intervals, resharding, resuming, storage

JUDGES = {
    "ex1": Judge(resuming.kill_cases, resuming.judge_kills, resuming.WORDS.format_map),
    "ex2": Judge(storage.storage_cases, storage.judge_storage, storage.storage_words),
    "ex3": Judge(intervals.fleet_cases, intervals.judge_fleets, intervals.fleet_words),
    "ex4": Judge(resharding.reshard_cases, resharding.judge_resharding, resharding.reshard_words),
}
