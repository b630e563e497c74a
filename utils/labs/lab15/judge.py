"""The cases of lab 15 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab15 import capstone, launches, marks, porting

JUDGES = {
    "ex1": Judge(porting.port_cases, porting.judge_port, porting.port_words),
    "ex2": Judge(marks.mark_cases, marks.judge_marks, marks.mark_words),
    "ex3": Judge(launches.launch_cases, launches.judge_launches, launches.launch_words),
    "ex4": Judge(capstone.capstone_cases, capstone.judge_capstone, capstone.capstone_words),
}
