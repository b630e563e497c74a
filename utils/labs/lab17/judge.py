"""The cases of lab 17 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab17 import cores, monitor, ranks, tasks

JUDGES = {
    "ex1": Judge(cores.core_cases, cores.judge_holders, cores.core_words),
    "ex2": Judge(ranks.rank_cases, ranks.judge_ranks, ranks.rank_words),
    "ex3": Judge(monitor.monitor_cases, monitor.judge_slow, monitor.monitor_words),
    "ex4": Judge(tasks.task_cases, tasks.judge_pending, tasks.task_words),
}
