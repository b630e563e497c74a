"""The questions at the end of lab 01. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "A product lies just below the ridge of a core in bf16. You store and compute it in fp8,"
        " at twice the rate, with half the bytes. What bounds it now?",
        {
            "a": (
                "compute: it does twice the FLOP per byte",
                "It does, but where does the ridge lie at twice the rate?",
            ),
            "b": (
                "memory: only the ridge has moved",
                "The ridge has doubled. Half the bytes double something, too.",
            ),
            "c": (
                "memory as before: intensity and ridge have both doubled",
                "Twice the FLOP per byte against twice the ridge: it runs in half the time, with"
                " the same bound.",
            ),
            "d": (
                "nothing can be said without the shape",
                "The shape has not changed, and what has changed acts on both sides alike.",
            ),
        },
        "60f568140783c53f",
    ),
    "q2": Question(
        "A page prints a chip's rate as more than the sum of its cores' documented rates. What do"
        " you use for a kernel that runs on one core?",
        {
            "a": (
                "the chip's rate over the number of cores",
                "A kernel would then run faster than the documented core, clock and array allow.",
            ),
            "b": (
                "the core's documented rate, and say that the pages disagree",
                "It agrees with clock times array. A figure is quoted, not corrected.",
            ),
            "c": ("the mean of both", "A mean of two sources is a third one that nobody wrote."),
            "d": (
                "the larger, to be safe",
                "A bound from too high a rate is safe only in the sense that it is never reached.",
            ),
        },
        "d3f95a31e306ef22",
    ),
    "q3": Question(
        "A model trains in mixed precision with ZeRO stage 1 and just does not fit. Which change"
        " saves the most on each of 64 data-parallel ways?",
        {
            "a": (
                "stage 2",
                "It shares the gradients too, 2 of the 4 bytes that are still whole.",
            ),
            "b": (
                "stage 3",
                "It shares weights and gradients: nearly all of the 4 bytes that are still whole.",
            ),
            "c": (
                "twice as many ways",
                "Stage 1 has shared the optimizer among 64 already: little of it is left.",
            ),
            "d": (
                "moments in BF16",
                "They are shared among 64: half of an eighth of a byte, about.",
            ),
        },
        "436b8b10a8dce6c2",
    ),
    "q4": Question(
        "The cheapest offer with a known price fits. Two others fit, too, and nobody publishes"
        " their price. What do you report?",
        {
            "a": (
                "the cheapest known one, and the two to ask about",
                "What is unknown stays visible, and the choice can be made now or after asking.",
            ),
            "b": (
                "the cheapest known one",
                "True so far, but whoever reads it takes it for the cheapest of all.",
            ),
            "c": (
                "one of the two: no price was found, so none is above it",
                "Unknown is not 0.",
            ),
            "d": (
                "nothing, until all prices are known",
                "Then prices that are known are of no use, and some never will be.",
            ),
        },
        "1515bd55d31500c3",
    ),
    "q5": Question(
        "An all-reduce of a few kilobytes takes far longer on a ring of 64 chips than the message"
        " over the bandwidth says. What helps?",
        {
            "a": (
                "links of twice the bandwidth",
                "Nearly all of the time is latency. The bandwidth hardly appears in it.",
            ),
            "b": (
                "half the bytes, with BF16 in place of FP32",
                "The same: 2(n − 1) latencies stay.",
            ),
            "c": (
                "more chips, so that each piece becomes smaller",
                "Each chip more adds two steps, and each has its latency.",
            ),
            "d": (
                "fewer steps: a torus, a switch, or many small messages sent as one",
                "The steps are what it pays for. Buckets of gradients exist for this reason.",
            ),
        },
        "9e35f5a070c0ad1b",
    ),
}
