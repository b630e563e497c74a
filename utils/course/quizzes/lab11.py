"""The questions at the end of lab 11. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "A new adapter begins with A drawn at random and B = 0. What happens in its first step?",
        {
            "a": (
                "nothing ever: B · A = 0 has no gradient",
                "B · A is zero, but the gradient of B contains A, which is not.",
            ),
            "b": (
                "B moves, A does not yet",
                "The gradient of A contains B. From the second step on both move.",
            ),
            "c": (
                "both move",
                "Write down the gradient of A: which matrix is a factor of it?",
            ),
            "d": (
                "A moves, B does not yet",
                "The other way round: the gradient of a factor contains the other factor.",
            ),
        },
        "0a3c825ff3be2683",
    ),
    "q2": Question(
        "Next week the same model is fine-tuned again. What compiles, if all else stays?",
        {
            "a": (
                "other data and another schedule of the learning rate, as a tensor",
                "Both are data. Neither is a part of a graph.",
            ),
            "b": (
                "an adapter that starts from another seed",
                "Its values are inputs of the graph.",
            ),
            "c": (
                "rank 8 in place of rank 4",
                "The rank is a shape of two matrices in every layer that has an adapter.",
            ),
            "d": (
                "a shorter last batch, padded to the same shape",
                "Rows that count for nothing are data as well.",
            ),
        },
        "21be6ebc566d6425",
    ),
    "q3": Question(
        "Four micro-batches have 10, 10, 10 and 2 real tokens. The gradient is the mean of their"
        " four mean losses. What is wrong with it?",
        {
            "a": (
                "nothing: a mean of means is the mean",
                "It is if all have the same count.",
            ),
            "b": (
                "it is four times too large",
                "A sum of the means would be. What weight has a token of the last one?",
            ),
            "c": (
                "the tokens of the last one weigh five times as much as the others",
                "1 / (4 · 2) for each of them, 1 / (4 · 10) for the others.",
            ),
            "d": (
                "the tokens of the last one count too little",
                "Two tokens share a quarter of the loss. How many share the other quarters?",
            ),
        },
        "3fb93ca835a742dd",
    ),
    "q4": Question(
        "A static cache has room for 2,048 places, a prompt has 100 tokens. What does a new token"
        " cost, compared with a cache of just the right length?",
        {
            "a": (
                "the same, because masked places are skipped",
                "The mask takes them out of the softmax; the products are computed all the same.",
            ),
            "b": (
                "attention over 2,048 places, and no compile",
                "That is the exchange: work thrown away, for one graph that fits all lengths.",
            ),
            "c": (
                "a compile each",
                "The place is data, and so is the mask.",
            ),
            "d": (
                "the whole model for 2,048 tokens",
                "Only one token goes through the layers. What does it attend to?",
            ),
        },
        "ea9c14ad1a581a3f",
    ),
    "q5": Question(
        "Adapters of rank 2, 4 and 8 are to be served from one graph. Which way needs least?",
        {
            "a": (
                "merge each into a copy of the base",
                "One graph indeed, and the memory of three bases.",
            ),
            "b": (
                "three models with slots of 2, 4 and 8",
                "Three shapes: three graphs, for every bucket of lengths.",
            ),
            "c": (
                "train all with rank 8 once more",
                "It would fit, and is not needed: what does an adapter of rank 2 with more rows of"
                " zeros compute?",
            ),
            "d": (
                "slots of rank 8, filled up with zeros",
                "The same outputs for a little more work in thin matrices.",
            ),
        },
        "96533ffd5555fcef",
    ),
}
