"""The claims and questions at the end of lesson 12, with what to say to each answer."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-159",
        {
            "confirmed": "it was so once; which software does the second chip get now?",
            "wrong": "when these two chips were named, it was the plan; section 11",
            "opinion": "what the makers support on which chip is announced, with dates",
        },
    ),
    "c2": ClaimQuestion(
        "C-041",
        {
            "confirmed": "who else has measured it? Look for model, load and percentile",
            "wrong": "no measurement says the opposite; who made the one there is?",
            "unverifiable": "a test is named in public: by whom?",
        },
    ),
    "c3": ClaimQuestion(
        "D-031",
        {
            "opinion": "whether a power can be read can be looked up, in release notes",
            "wrong": "mind the condition; what does the driver show by now?",
            "unverifiable": "mind the condition; what does the driver show by now?",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "A report: 400 requests per second, mean latency 20 ms, 64 clients that wait for their"
        " answers and send at once. What do you say?",
        {
            "a": ("a fast server", "Multiply the first two numbers."),
            "b": (
                "the numbers contradict each other",
                "400 x 0.02 is 8 in the system, and 64 clients always are.",
            ),
            "c": (
                "the p99 is missing",
                "It is; but look at the three numbers that are there first.",
            ),
            "d": ("too few clients", "Little's law tells how many there are."),
        },
        "678ee27d9d8850c1",
    ),
    "q2": Question(
        "A load test shows p99 = 6 ms. Its client sends on reply; once the server stood still"
        " for 4 s. What did users see who came at random?",
        {
            "a": ("6 ms, too", "Those who came in the 4 s waited for seconds. How many were they?"),
            "b": (
                "4 s at most once",
                "Once for the client, which sent once. Users did not stop coming.",
            ),
            "c": (
                "waits up to 4 s, as many as came then",
                "The client omitted them: it waited with the server.",
            ),
            "d": ("nothing of it", "The server answered nobody for 4 s."),
        },
        "f6779bfcfb13e519",
    ),
    "q3": Question(
        "Decoding for one user is bound by bandwidth. Which change helps the time per token"
        " the most?",
        {
            "a": ("twice the FLOPS", "Most of them are idle already: section 10."),
            "b": ("weights in half the bytes", "Half the bytes to read for each token."),
            "c": (
                "a batch twice as large",
                "It helps throughput; each token takes as long, or longer.",
            ),
            "d": ("a longer wait for batches", "It adds to the latency."),
        },
        "f0e0e5aae95b6433",
    ),
    "q4": Question(
        "A new compiler: median 2 % lower, p = 0.001, 500 calls before and after, one process"
        " each. What next?",
        {
            "a": ("ship it", "Identical programs give such p values too: section 15."),
            "b": ("more calls", "They come from the same two processes."),
            "c": (
                "a lower p value",
                "The test answers another question: are these two processes alike?",
            ),
            "d": ("more processes", "What varies from process to process has to be repeated."),
        },
        "b9e1a9ebdc3f31e3",
    ),
}
