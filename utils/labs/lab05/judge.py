"""The judges of lab 05. Needs no device: runs apart from the answers."""

from utils.labs import Judge
from utils.labs.lab05 import blocks, products, rounding, scales, stochastic, updates

JUDGES = {
    "ex1": Judge(rounding.rounding_cases, rounding.judge_rounding, rounding.rounding_words),
    "ex2": Judge(
        stochastic.stochastic_cases, stochastic.judge_stochastic, stochastic.stochastic_words
    ),
    "ex3": Judge(products.product_cases, products.judge_product, products.WORDS.format_map),
    "ex4": Judge(updates.update_cases, updates.judge_update, updates.WORDS.format_map),
    "ex5": Judge(scales.scale_cases, scales.judge_scales, scales.scale_words),
    "ex6": Judge(blocks.block_cases, blocks.judge_blocks, blocks.block_words),
}
