"""The judges of lab 10. Runs apart from the answers, with numbers that they never see."""

from utils.labs import Judge
from utils.labs.lab10 import advice, attention, convolution, fusion, products
from utils.labs.lab10.timed import words

JUDGES = {
    "ex1": Judge(products.sizes, products.judge_traffic, words),
    "ex2": Judge(products.fast_sizes, products.judge_fast, words),
    "ex3": Judge(fusion.sizes, fusion.judge, words),
    "ex4": Judge(convolution.sizes, convolution.judge, words),
    "ex5": Judge(advice.cases, advice.judge, lambda case: f"{len(case['profiles'])} profiles"),
    "ex6": Judge(attention.sizes, attention.judge, words),
}
