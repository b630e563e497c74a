"""The same small GPT trained under nine recipes: which format holds what, and how updates round.

    from utils.training.precision import RECIPES, train
    curve = train(RECIPES["pure BF16"])

Everything runs on the XLA device. What is in FP8 is quantised and dequantised: the values are those
of FP8, the arithmetic is not, because XLA's CPU backend has none.
"""

from utils.training.precision.recipes import RECIPES, Curve, Recipe, Update, train
from utils.training.precision.rounding import quantise_fp8, stochastic_bf16
