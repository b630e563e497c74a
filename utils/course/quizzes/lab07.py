"""The questions at the end of lab 07. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "In the layout of exercise 1 on 1 by 4 the hidden layer becomes twice as wide. What"
        " becomes of the payload of the collective?",
        {
            "a": (
                "it doubles",
                "Each device has twice as many hidden values, and sums them before it sends.",
            ),
            "b": (
                "it doubles, and there is one more",
                "The number of collectives depends on the layout, not on a size.",
            ),
            "c": (
                "it stays",
                "What is reduced are the outputs of all rows: the hidden width is not in it. That"
                " is why wide layers are cut in this way.",
            ),
            "d": (
                "it halves: each device holds less of the sum",
                "Parts of a sum are as large as the sum.",
            ),
        },
        "f0c62b2f1d229716",
    ),
    "q2": Question(
        "Training is data parallel on four devices. You give each of them twice as many rows. What"
        " becomes of the gradients' all-reduces in a step?",
        {
            "a": (
                "twice the bytes: there are twice as many rows",
                "Rows are summed before anything is sent.",
            ),
            "b": (
                "the same number and bytes, for twice the work",
                "Gradients are as large as the weights. More rows between two all-reduces is why"
                " large batches hide communication.",
            ),
            "c": (
                "the same bytes, twice the number",
                "One for each parameter, however many rows there were.",
            ),
            "d": (
                "half the bytes for each row, so half in all",
                "For each row, yes. How many rows does a step have now?",
            ),
        },
        "b3f24e9461311c1b",
    ),
    "q3": Question(
        "The last batch of an epoch leaves rank 5 of 8 without samples, and it skips the step. What"
        " is seen?",
        {
            "a": (
                "a loss that is a little too large",
                "That needs a step that ends. Do seven ranks get through an all-reduce of eight?",
            ),
            "b": (
                "an error that names rank 5",
                "Nobody knows that it will not come. A timeout may name those who waited.",
            ),
            "c": (
                "nothing: the others average among themselves",
                "A collective is among all ranks of its group, here or not.",
            ),
            "d": (
                "nothing moves, until a timeout ends the job",
                "Seven ranks wait in the all-reduce. Let every rank come, with zeros if it has"
                " nothing.",
            ),
        },
        "7c7b3466e803fad9",
    ),
    "q4": Question(
        "A layout fits into the memory with tensor 4 and with tensor 8, in servers of 8 chips."
        " Where does 16 go wrong first?",
        {
            "a": (
                "its all-reduces in every layer would cross the network between servers",
                "They are on the path of every layer and every sequence, and that network is many"
                " times slower.",
            ),
            "b": (
                "its memory: activations are held sixteen times",
                "Tensor divides activations. Memory is the least of its problems.",
            ),
            "c": (
                "nowhere: more division is always faster",
                "Computing is divided by the number of chips in any layout. What is added?",
            ),
            "d": (
                "the gradients: there are more to reduce",
                "A chip then has fewer parameters, so fewer gradients.",
            ),
        },
        "d69e34a3a5af2df9",
    ),
    "q5": Question(
        "A curve shows an efficiency of 1.3 on 16 chips against 2. What do you ask first?",
        {
            "a": (
                "which network it has",
                "No network makes chips faster than alone.",
            ),
            "b": (
                "how large the batch was",
                "A larger batch may raise the efficiency towards 1, not over it.",
            ),
            "c": (
                "what the run on 2 chips did that the one on 16 did not",
                "Another precision, recomputation to fit into memory, a cold cache: something made"
                " the first row slow.",
            ),
            "d": (
                "nothing: more cache explains it",
                "On some machines it can. Then the first row shows it: a sample takes more"
                " chip-seconds there. Ask before you believe.",
            ),
        },
        "a4bea976d2f021c4",
    ),
}
