"""Questions and claims of lesson 10. Each feedback says what the option gets right or wrong."""

from utils.course.quiz import ClaimQuestion, Question

QUIZ = {
    "q1": Question(
        (
            "A kernel moves 1.05 times the least bytes, DMA is busy 98 % of the time, "
            "the Tensor Engine 20 %. What makes it faster?"
        ),
        {
            "a": ("larger blocks", "They cut traffic, and there is hardly any left to cut."),
            "b": (
                "two buffers for each tile",
                "Loads already run all the time; nothing waits that could overlap.",
            ),
            "c": (
                (
                    "nothing in this kernel: only less data, a shorter type or fusion with a "
                    "neighbour"
                ),
                "It is as fast as its bytes. Fewer bytes can only come from outside of it.",
            ),
            "d": ("products in FP8", "The Tensor Engine is idle most of the time already."),
        },
        "c5f25656d4d64f56",
    ),
    "q2": Question(
        (
            "A product of 4096 x 4096 matrices uses blocks of 4 x 4 tiles of 128 x 512."
            " B, (K, N), is loaded how many times?"
        ),
        {
            "a": ("4", "That is the number of tiles of a block, not of blocks."),
            "b": (
                "8",
                (
                    "There are 4096 / 128 = 32 rows of tiles, and a block of 4 of them shares "
                    "one load of B."
                ),
            ),
            "c": ("32", "Without blocks each row of tiles would load B anew."),
            "d": ("once", "Only if a block spans all rows of the result."),
        },
        "2ca2c16f52a041fb",
    ),
    "q3": Question(
        (
            "A timeline shows no engine busy for more than 40 % of the time. Where do "
            "you look first?"
        ),
        {
            "a": ("at the roofline", "It says what would be possible, not what waits."),
            "b": (
                "at the instruction with the most cycles",
                "It may be the one that everything waits for, or not at all.",
            ),
            "c": (
                "at the critical path",
                (
                    "It names, from the end backwards, what each instruction waited for: "
                    "latency, a semaphore, a place in memory."
                ),
            ),
            "d": ("at the compiler's version", "Before that there is something to read."),
        },
        "13b5de075250cd4f",
    ),
    "q4": Question(
        (
            "Norms take 6 % of a step on the device. Somebody offers a kernel that "
            "makes them four times faster. What does the step gain?"
        ),
        {
            "a": ("four times", "That is the gain of the part."),
            "b": ("about 5 %", "1 / (0.94 + 0.06 / 4) is 1.047."),
            "c": ("24 %", "Shares are not multiplied by the factor."),
            "d": ("6 %", "That would need norms that cost nothing."),
        },
        "0abe53a6e90c1747",
    ),
    "q5": Question(
        (
            "DMA is busy 98 % of the time, but bytes move for only 30 % of it. Each transfer "
            "brings 128 rows of 64 values. What first?"
        ),
        {
            "a": (
                "fetch wider tiles, in fewer transfers",
                "A transfer costs its beginning, a row its descriptor; a wide one pays them once.",
            ),
            "b": (
                "an FP8 type",
                "Half the bytes, in as many transfers: those are what it waits for.",
            ),
            "c": (
                "a second place for each tile",
                "Transfers already begin one after the other without a pause.",
            ),
            "d": ("work on the Vector Engine", "It waits, like every engine but DMA."),
        },
        "a8e8016be72d5b28",
    ),
}


CLAIMS = {
    "c1": ClaimQuestion(
        "A-130",
        {
            "wrong": "Which instruction set does a CUDA extension contain?",
            "opinion": "It can be tried: build one, and load it on an instance without a GPU.",
            "outdated": "No release has changed it.",
        },
    ),
    "c2": ClaimQuestion(
        "A-156",
        {
            "confirmed": "Could anybody show it for *any* model, and at what price?",
            "wrong": "What would contradict it? NKI reaches every engine of the core.",
            "outdated": "NKI has grown since; the sentence is of another kind.",
        },
    ),
}
