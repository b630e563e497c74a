"""The questions at the end of lab 12. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "A benchmark of 60 calls reports a p99 of 40 ms, and another one 44 ms. What follows?",
        {
            "a": (
                "the first is faster by a tenth",
                "That is what the two numbers say. What do 60 calls say of a p99?",
            ),
            "b": (
                "nothing, because a p99 cannot be compared",
                "It can, with enough samples: 368 give it an interval at 95 %.",
            ),
            "c": (
                "nothing yet: of 60 samples the p99 has no upper end at 95 %",
                "More than half of all samples of 60 have nothing beyond the true p99.",
            ),
            "d": (
                "both are wrong: a p99 is taken of 100 calls",
                "Of 100 it has no upper end either.",
            ),
        },
        "58aea32842211685",
    ),
    "q2": Question(
        "Four workers report a p99 each, of equally many requests. What is the p99 of all of them?",
        {
            "a": (
                "the mean of the four",
                "Only if all four have the same distribution. One slow worker makes up a quarter"
                " of all requests, and most of the slowest hundredth.",
            ),
            "b": (
                "between the smallest and the largest of the four; no more is known",
                "Merge the samples, or histograms of them, not the percentiles.",
            ),
            "c": (
                "the largest of the four",
                "It is at most that. Three fast workers make the slow one's tail a smaller share.",
            ),
            "d": (
                "more than each of the four",
                "Beyond the largest of the four lies at most a hundredth of each worker's"
                " requests, so of all of them too.",
            ),
        },
        "c0bcf416ab3384cf",
    ),
    "q3": Question(
        "A service stalls for 2 s in an hour, and answers in 5 ms otherwise. A client that waits"
        " for each answer sends 100 requests per second. How many slow requests does it report, and"
        " how many users waited?",
        {
            "a": ("200 and 200", "While the client waits it sends nothing. What does it report?"),
            "b": ("1 and 1", "Users go on to arrive while the service stands still."),
            "c": ("200 and 1", "The other way round: who waits, the client or the users?"),
            "d": (
                "1 and about 200, or more until the queue is gone",
                "Of 360,000 requests its p99.9 shows nothing of it.",
            ),
        },
        "ca4ffa5235fdf4d2",
    ),
    "q4": Question(
        "A recompiled model has the same top-1 answer in every row, and its logits differ by up to"
        " 4e-4. Is it right?",
        {
            "a": (
                "that cannot be told from the logits: rounding may be as large, or a fault hidden"
                " below it",
                "Derive what rounding does, module by module, and look there.",
            ),
            "b": (
                "yes: top-1 agreement is what counts",
                "For these rows. A wrong constant may turn the next one.",
            ),
            "c": (
                "no: 4e-4 is far more than one rounding of float32",
                "One rounding, yes. A difference of large numbers may leave as much behind.",
            ),
            "d": (
                "yes, if the mean divergence is small as well",
                "It is small for rounding and for a small fault alike.",
            ),
        },
        "80f617bc83f6d60f",
    ),
}
