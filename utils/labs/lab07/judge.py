"""The cases of lab 07 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab07 import averages, curves, natives, plans, predict, sharding

JUDGES = {
    "ex1": Judge(sharding.annotated_cases, sharding.judge_annotated, sharding.WORDS.format_map),
    "ex2": Judge(predict.predict_cases, predict.judge_predict, sharding.SIZES.format_map),
    "ex3": Judge(averages.average_cases, averages.judge_average, averages.average_words),
    "ex4": Judge(plans.plan_cases, plans.judge_plans, plans.plan_words),
    "ex5": Judge(curves.curve_cases, curves.judge_curves, curves.curve_words),
    "ex6": Judge(natives.native_cases, natives.judge_native, natives.native_words),
}
