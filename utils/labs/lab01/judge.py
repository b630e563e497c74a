"""The cases of lab 01 and what is right for them, from the facts. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab01 import fabrics, fitting, gemms, offers, ridges, tables

JUDGES = {
    "ex1": Judge(gemms.gemm_cases, gemms.judge_gemm_times, gemms.WORDS.format_map),
    "ex2": Judge(ridges.ridge_cases, ridges.judge_ridges, ridges.ridge_words),
    "ex3": Judge(fitting.fitting_cases, fitting.judge_fit, fitting.WORDS.format_map),
    "ex4": Judge(tables.table_cases, tables.judge_wrong_row, tables.table_words),
    "ex5": Judge(offers.offer_cases, offers.judge_choice, offers.WORDS.format_map),
    "ex6": Judge(fabrics.fabric_cases, fabrics.judge_all_reduce, fabrics.fabric_words),
}
