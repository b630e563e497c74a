"""The questions at the end of lesson 05. Each feedback says what the option gets right or wrong."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-098",
        {
            "confirmed": "section 9 says which format needs one, and why another does not",
            "outdated": "it was true of one format from the start, and still is: not of all",
        },
    ),
    "c2": ClaimQuestion(
        "A-095",
        {
            "wrong": "section 10 prints a documented FP8 rate of that chip",
            "vendor-claim": "for a data type that a chip has, its documentation is a source",
        },
    ),
    "c3": ClaimQuestion(
        "C-067",
        {
            "confirmed": "compare the two rates of that chip in the table of section 10",
            "opinion": "a documented rate settles it: section 10",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "BF16, rounding to nearest: a weight of 0.6 is to be changed by 0.001. What happens?",
        {
            "a": ("it changes by 0.001", "BF16 has no number that near to 0.6."),
            "b": ("it does not change", "Between 0.5 and 1 half a spacing is 0.00195."),
            "c": ("it changes by one spacing", "That takes more than half a spacing."),
            "d": ("it depends on the gradient", "The step is given; rounding sees only that."),
        },
        "a866845358ddc555",
    ),
    "q2": Question(
        "A training in BF16 converges too slowly, with no NaN. What do you look at first?",
        {
            "a": ("loss scaling", "BF16 has the range of FP32: small gradients survive."),
            "b": ("the share of weights that a step changes", "It shows a stall at once."),
            "c": ("the batch size", "Perhaps later; first see whether weights move at all."),
            "d": ("the order of summation", "Products are summed in FP32 already."),
        },
        "6785dd85bee46fc5",
    ),
    "q3": Question(
        "Which of these does not help weights that stall?",
        {
            "a": ("an FP32 master copy", "It remembers what rounding drops."),
            "b": ("stochastic rounding", "Small steps happen now and then, right on average."),
            "c": ("multiplying the loss by 1024", "Adam divides it out; the step is as small."),
            "d": ("weights in FP32, products in BF16", "That is autocast: the weights can follow."),
        },
        "f2603dc24fa71b3a",
    ),
    "q4": Question(
        "Why does autocast offer no FP8?",
        {
            "a": ("FP8 is slower", "On chips that have it, its peak rate is as high or higher."),
            "b": ("its tensors need scales", "Somebody has to choose and keep them."),
            "c": ("it cannot hold zero", "Every format here but the block scale holds zero."),
            "d": ("gradients are never small", "They are, and that is the difficulty."),
        },
        "a2e80823ded9ce2a",
    ),
}
