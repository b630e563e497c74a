"""The cases of lab 16 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab16 import allocating, finding, incidents, scheduling, sizing, speculating

JUDGES = {
    "ex1": Judge(scheduling.plan_cases, scheduling.judge_plans, scheduling.plan_words),
    "ex2": Judge(allocating.block_cases, allocating.judge_blocks, allocating.block_words),
    "ex3": Judge(finding.prefix_cases, finding.judge_prefixes, finding.prefix_words),
    "ex4": Judge(
        speculating.speculation_cases, speculating.judge_speculation, speculating.speculation_words
    ),
    "ex5": Judge(sizing.capacity_cases, sizing.judge_capacity, sizing.capacity_words),
    "ex6": Judge(incidents.incident_cases, incidents.judge_postmortems, incidents.incident_words),
}
