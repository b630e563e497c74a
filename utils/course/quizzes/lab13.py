"""The questions at the end of lab 13. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "Servers are used for two fifths of the hours that are billed. You bring that to four"
        " fifths. What becomes of the compute cost of a million tokens?",
        {
            "a": (
                "it falls by two fifths",
                "That is the change of the utilisation. Billed hours are used hours over it.",
            ),
            "b": (
                "it halves",
                "Half as many hours are billed for the same work, whatever the price.",
            ),
            "c": (
                "it stays: the price of an hour has not changed",
                "Of an hour, no. How many hours are billed for a million tokens?",
            ),
            "d": (
                "it halves, and so does the engineering",
                "The port was paid once. Do engineers idle with the servers?",
            ),
        },
        "1513867a45ab52d8",
    ),
    "q2": Question(
        "An option costs more to port and more per run than another. At how many runs do both cost"
        " the same?",
        {
            "a": (
                "at the extra engineering over the extra cost of a run",
                "With its sign, that number of runs is negative.",
            ),
            "b": ("at infinitely many", "There both ports vanish, and the dearer run stays."),
            "c": (
                "at none",
                "It is behind from the start and loses ground with each run. No break-even is a"
                " clear answer.",
            ),
            "d": ("at one", "At one run it is already dearer, by both."),
        },
        "badf85700e05f087",
    ),
    "q3": Question(
        "A page compares two platforms: same region, same way of buying, same tokens. One side's"
        " tokens per second times FLOP per token is 1.6 times its dense peak. What follows?",
        {
            "a": (
                "its software is very good",
                "No software does more arithmetic than the units can.",
            ),
            "b": (
                "the number rests on a peak for sparse matrices, or on a format with another peak",
                "A dense model cannot reach it. Ask what was run, and in which format.",
            ),
            "c": (
                "nothing, as long as both prices are right",
                "The price of an hour buys tokens: a speed that cannot be makes them too cheap.",
            ),
            "d": (
                "the FLOP per token are wrong, so the comparison holds",
                "They may be. Until that is found out, what does hold?",
            ),
        },
        "4bd598601879e5f2",
    ),
    "q4": Question(
        "A run moves from 16 to 256 servers of the same kind. Writing a checkpoint takes as long as"
        " before. What becomes of the best interval, roughly?",
        {
            "a": (
                "it stays: each server fails as rarely as before",
                "But each of them stops all. How often does any fail?",
            ),
            "b": (
                "a sixteenth",
                "The time between failures is a sixteenth. Is the interval proportional to it?",
            ),
            "c": (
                "a quarter",
                "It goes with the root of the time between failures, as long as writing is short"
                " against that.",
            ),
            "d": (
                "it grows, because more work is lost and checkpoints are dearer",
                "More lost per failure, and more failures: both speak for saving more often.",
            ),
        },
        "a437d96316b1e24f",
    ),
    "q5": Question(
        "In a tornado the price has the shortest bar, and the MFU the longest. What does that say?",
        {
            "a": (
                "the price does not matter",
                "It is in every line. Its range is small, because it can be looked up.",
            ),
            "b": (
                "a cheaper price could not change the choice",
                "Within its range. What of a discount outside of it?",
            ),
            "c": (
                "a percent more MFU saves more than a percent off the price",
                "For a percent of each both save about as much. What differs is how much is known.",
            ),
            "d": (
                "to measure the MFU narrows the answer more than to negotiate within that range of"
                " prices",
                "A bar is steepness times ignorance: it says what is worth finding out.",
            ),
        },
        "df17991e42d4d69f",
    ),
}
