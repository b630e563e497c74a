"""The questions at the end of lab 04. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "A linear warm-up sets the SGD learning rate to 0.2, 0.4, 0.6, 0.8 and then 1.0 for the"
        " rest of the job. After the first step, how many compiles does it cause?",
        {
            "a": (
                "none",
                "Ordinary rates are inputs of the graph. Is every one of these ordinary?",
            ),
            "b": ("one", "0.2 to 0.8 share a graph as inputs; 1.0 is built in and has its own."),
            "c": ("four", "A rate is handed to the graph as an input, unless it is 0, 1 or −1."),
            "d": (
                "one for each step",
                "A graph that is known is not compiled again, whatever the rate.",
            ),
        },
        "f7bc73e95968da8a",
    ),
    "q2": Question(
        "A batch of 26 rows is padded to 32. The mean of the loss is taken over all 32 rows, with"
        " the loss of padded rows set to 0. What is wrong?",
        {
            "a": ("nothing", "The sum is right. What is it divided by?"),
            "b": (
                "the padded rows have a gradient",
                "A loss that is set to 0 has none. The rows that are real have the wrong one.",
            ),
            "c": (
                "the shape changes again",
                "32 rows are 32 rows: the graph is the same.",
            ),
            "d": (
                "loss and gradients are too small, by 26/32",
                "Padded rows must be left out of the divisor, too: the small batch would count"
                " less than its rows deserve.",
            ),
        },
        "d4275c1772bab766",
    ),
    "q3": Question(
        "Sentences of 1 to 512 tokens are padded to the powers of two from 8 on. What is true of"
        " the tokens?",
        {
            "a": (
                "those of a sentence with 8 tokens or more are less than doubled, with 7 graphs",
                "A bucket is less than twice what it holds, and there are 7 powers of two from 8"
                " to 512.",
            ),
            "b": (
                "they are the fewest possible with 7 graphs",
                "Powers of two know nothing of how often each length occurs.",
            ),
            "c": (
                "on average half of them are padding",
                "That is the worst case of a bucket, not the average.",
            ),
            "d": (
                "they depend on the order of the sentences",
                "Each sentence goes to its bucket whatever came before it.",
            ),
        },
        "51a5f741901ca1fa",
    ),
    "q4": Question(
        "A colleague adds one bucket to six that were the best six for their data. What is sure"
        " about the best seven?",
        {
            "a": (
                "they are the six and one more",
                "To add a bucket changes what the others are worth: they may all move.",
            ),
            "b": (
                "they need fewer tokens, in every step",
                "Not every batch has a sequence for which the new bucket is better.",
            ),
            "c": (
                "they need no more tokens in all, and one compile more",
                "The six and any other are a choice of seven, so the best seven are no worse.",
            ),
            "d": (
                "they take longer to find than seconds",
                "The number of choices explodes, but the number of different questions does not.",
            ),
        },
        "4fe8c91f75e742da",
    ),
    "q5": Question(
        "All graphs of a job were compiled beforehand, in a run without data of its own. After an"
        " hour, at the end of the first epoch, the job stops to compile. What do you look at"
        " first?",
        {
            "a": (
                "the learning rate schedule",
                "An ordinary rate is an input. Only one that becomes 0 or 1 would be a new graph.",
            ),
            "b": (
                "what runs at the end of an epoch for the first time: a short last batch, the"
                " evaluation",
                "Both are graphs of their own, and an hour of equal steps does not show them.",
            ),
            "c": (
                "whether the cache has lost its files",
                "Then the first step would have compiled, too.",
            ),
            "d": (
                "the number of workers that compiled",
                "It decides how long compiling beforehand took, not what was compiled.",
            ),
        },
        "c00c080cf4585706",
    ),
}
