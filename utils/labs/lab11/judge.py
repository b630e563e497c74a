"""The cases of lab 11 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab11 import adapters, loops, swaps, texts

JUDGES = {
    "ex1": Judge(adapters.lora_cases, adapters.judge_lora, adapters.lora_words),
    "ex2": Judge(loops.tuning_cases, loops.judge_tuning, loops.tuning_words),
    "ex3": Judge(loops.accumulating_cases, loops.judge_accumulating, loops.accumulating_words),
    "ex4": Judge(texts.text_cases, texts.judge_texts, texts.text_words),
    "ex5": Judge(swaps.swap_cases, swaps.judge_swaps, swaps.swap_words),
}
