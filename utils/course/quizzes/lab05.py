"""The questions at the end of lab 05. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "A BF16 weight is 1.0 and every step subtracts 0.001. What is it after 100 steps, rounded"
        " to nearest each time?",
        {
            "a": ("about 0.9", "That is the sum without rounding. How wide is a step below 1?"),
            "b": (
                "1.0",
                "Below 1 the values are 2**-8 apart; 0.001 is less than half of that, so each"
                " subtraction is rounded back.",
            ),
            "c": ("0.99609375", "One step of 2**-8 below, but no single update is large enough."),
            "d": ("0.0", "Updates are lost here, not the weight."),
        },
        "79e0df27c0453d2b",
    ),
    "q2": Question(
        "The same weight with stochastic rounding, averaged over many trainings?",
        {
            "a": (
                "about 0.9, each training somewhere near",
                "On average nothing is lost. A single training is off by some steps.",
            ),
            "b": ("0.9 in every training", "Only the mean is exact: each step adds noise."),
            "c": ("1.0", "A chance of 0.001 / 2**-8, about a quarter, is not none."),
            "d": (
                "below 0.9, because noise adds up",
                "Noise adds up to a spread; without a lean the mean stays.",
            ),
        },
        "0806f1616b6e4cd8",
    ),
    "q3": Question(
        "A product of BF16 matrices with k = 4096 is off by some thousandths. What do you look at"
        " first?",
        {
            "a": (
                "the BF16 operands",
                "They are given. Products of two BF16 numbers are exact in FP32.",
            ),
            "b": ("the order of the tiles", "In FP32 the order moves the seventh digit."),
            "c": (
                "the dtype in which tiles are added",
                "Partial sums in BF16 lose up to 2**-9 of the sum with every tile.",
            ),
            "d": ("float64 for the sum", "FP32 is enough for 1e-6, and the chip has no float64."),
        },
        "f78d14b5b4529066",
    ),
    "q4": Question(
        "A checkpoint holds FP8 weights with scales made for a maximum of 448. It is to run where"
        " e4m3 ends at 240. What is needed?",
        {
            "a": ("nothing: both are e4m3", "Codes above 240 mean infinity or NaN there."),
            "b": (
                "half the values, and scales adjusted to it",
                "Halved, all magnitudes are at most 224, and the scale takes the factor of two"
                " back. Only subnormal values may lose a bit.",
            ),
            "c": (
                "saturation at 240",
                "It keeps the largest values finite, and makes them wrong by up to a half.",
            ),
            "d": ("e5m2 in place of it", "It has the range, and one mantissa bit less."),
        },
        "f1db69a1610a306d",
    ),
    "q5": Question(
        "One value of a block of 32 is a thousand times the others. What does its MX scale do to"
        " them in e2m1?",
        {
            "a": (
                "nothing: each element has its own exponent",
                "Two exponent bits span 0.5 to 6, far less than a factor of a thousand.",
            ),
            "b": ("it is chosen for the others", "It follows the largest magnitude alone."),
            "c": (
                "they become zero",
                "The scale follows the largest, and the others lie far below half of the smallest"
                " element. Only this block suffers.",
            ),
            "d": ("the whole tensor suffers", "Other blocks have scales of their own."),
        },
        "479aa8649a29d6dc",
    ),
}
