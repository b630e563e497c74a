"""The cases of lab 13 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab13 import comparisons, fleets, flips, ranking, runs, saving

JUDGES = {
    "ex1": Judge(runs.job_cases, runs.judge_jobs, runs.job_words),
    "ex2": Judge(flips.flip_cases, flips.judge_flips, flips.flip_words),
    "ex3": Judge(
        comparisons.comparison_cases, comparisons.judge_comparisons, comparisons.comparison_words
    ),
    "ex4": Judge(saving.saving_cases, saving.judge_saving, saving.saving_words),
    "ex5": Judge(ranking.ranking_cases, ranking.judge_ranking, ranking.ranking_words),
    "ex6": Judge(fleets.fleet_cases, fleets.judge_fleets, fleets.fleet_words),
}
