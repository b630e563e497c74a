"""The questions at the end of lab 10. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        (
            "A product of 4096 x 4096 matrices keeps blocks of four rows of tiles, "
            "512 rows of the result, and walks through all of B for each. How often"
            " is B loaded?"
        ),
        {
            "a": (
                "once",
                ("Then all of B would have to stay in SBUF: it is loaded for each block of rows."),
            ),
            "b": ("8 times", "4096 / 512 blocks, and each of them reads B from beginning to end."),
            "c": ("32 times", "That is once for each row of tiles: what a block of one row costs."),
            "d": ("512 times", "A block is 512 rows; what counts is how many blocks there are."),
        },
        "96f27fe3a6647540",
    ),
    "q2": Question(
        (
            "All bytes are moved once, and still the Tensor Engine is busy for 60 %"
            " of the time only. The first product begins after 40 % of it. What "
            "helps?"
        ),
        {
            "a": ("larger blocks", "Traffic is at its least already."),
            "b": ("products in FP8", "They would end sooner, and wait as long for the first load."),
            "c": (
                "load in the order in which the first products need it",
                ("Then products begin after the first tiles, and the other loads run beside them."),
            ),
            "d": (
                "a second PSUM tile",
                ("That helps where products wait for PSUM to be emptied, not for operands."),
            ),
        },
        "2c83784965e91748",
    ),
    "q3": Question(
        (
            "An RMSNorm of FP32 rows moves each byte once. The Vector Engine is "
            "busy for 94 % of the time, Scalar for 20 %, DMA for 55 %. What makes "
            "it faster?"
        ),
        {
            "a": (
                "fusing it with the operator before",
                "Good for the pair, but here the Vector Engine is what all wait for.",
            ),
            "b": (
                "letting the Scalar Engine square and sum the rows",
                (
                    "The full engine loses a pass, and the other has room: afterwards DMA "
                    "is the limit."
                ),
            ),
            "c": ("longer transfers", "DMA has time to spare."),
            "d": ("nothing, it is at the bound", "The bound of its bytes is at 55 % of its time."),
        },
        "70eabbaf68f9accc",
    ),
    "q4": Question(
        (
            "Attention with keys on the partitions needs no transposes of "
            "probabilities. What does it need instead?"
        ),
        {
            "a": (
                "nothing, it is better in all respects",
                (
                    "A query's maximum and sum are then over partitions, where no engine "
                    "reduces quickly."
                ),
            ),
            "b": (
                "each query's maximum from somewhere else, before the exponential",
                (
                    "Scores are computed once more, with queries on the partitions, and the"
                    " maxima enter as a product of one row."
                ),
            ),
            "c": (
                "V transposed",
                "V has the keys on its rows, which is how the second product wants it.",
            ),
            "d": ("scores in HBM", "They stay on the chip both ways."),
        },
        "953349cc974d1e4c",
    ),
}
