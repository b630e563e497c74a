"""The claims and questions at the end of lesson 09.

Each feedback says what the option gets right or wrong.
"""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-108",
        {
            "confirmed": "How many partitions has a tile, and how many columns may the moving"
            " operand have? Sections 2, 3 and 6.",
            "outdated": "Has a chip or a release before had longer tiles? Section 6 names the"
            " page: it is that of the first generation.",
            "unverifiable": "Section 6 has the limits with their source.",
        },
    ),
    "c2": ClaimQuestion(
        "A-103",
        {
            "wrong": "It was the right line for years: what has changed, and when? See section 13.",
            "confirmed": "Section 13 runs this very import.",
            "opinion": "Whether an import compiles can be tried.",
        },
    ),
    "c3": ClaimQuestion(
        "A-032",
        {
            "confirmed": "Both program an accelerator by hand. But does a CUDA thread know tiles,"
            " engines or PSUM?",
            "wrong": "What measurement or document could contradict a comparison of this kind?",
            "unverifiable": "Everything about NKI that bears on it is documented; what is missing"
            " is not evidence.",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "A tile is (16, 4096), and the kernel is bound by the Vector Engine. What helps first?",
        {
            "a": ("a smaller data type", "It may help a little; most lanes stay idle."),
            "b": ("a layout of (128, 512)", "The same elements, in an eighth of the cycles."),
            "c": ("two instructions of half the width", "The same cycles, and one start more."),
            "d": ("a matmul with ones", "It adds up; nothing says that a sum is wanted."),
        },
        "0248446b0bd76676",
    ),
    "q2": Question(
        "You need x @ y; x is [64, 128] and y is [128, 512], both in SBUF as they stand. What now?",
        {
            "a": ("nc_matmul(stationary=x, moving=y)", "Their partitions differ, 64 and 128."),
            "b": ("nc_matmul(stationary=y, moving=x)", "x still has K on its free axis."),
            "c": ("transpose x, then it is the stationary operand", "K = 128 is then in both."),
            "d": ("transpose y, then it is the moving operand", "y has K where it belongs."),
        },
        "6000f32e52e4f9d8",
    ),
    "q3": Question(
        "BF16 tiles a, b, c; you want a * b + c. How many roundings to BF16 at least?",
        {
            "a": ("none", "The result is a BF16 tile, so it is rounded when it is written."),
            "b": ("one", "When the result is written; an FP32 tile holds the product."),
            "c": ("two", "Only if the product is written to a BF16 tile."),
            "d": ("three", "Reading rounds nothing, nor do operations by themselves."),
        },
        "68ab8d2ec871399e",
    ),
    "q4": Question(
        "Your kernel passes in the simulator, and its result on the chip changes from run to run."
        " What do you look for first?",
        {
            "a": ("memory that it reads before anybody has written it", "It holds what was there."),
            "b": ("the rounding of BF16", "It rounds in the same way in every run."),
            "c": ("the order of sums", "An instruction adds in the same order in every run."),
            "d": ("an operand with the wrong layout", "It would be wrong in the simulator too."),
        },
        "c1ba095d8361dfd8",
    ),
}
