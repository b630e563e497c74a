"""The claims and questions at the end of lesson 13.

Each feedback says what the option gets right or wrong.
"""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-124",
        {
            "confirmed": "Who measured the percentage, on which chips, against which machines?",
            "vendor-claim": "A customer did name a percentage. Of the machines that this sentence"
            " is about?",
            "unverifiable": "What was said, and of which machines, can be looked up.",
            "opinion": "A percentage of a cost is no matter of taste: it was read somewhere.",
        },
    ),
    "c2": ClaimQuestion(
        "A-116",
        {
            "confirmed": "The multiplication is right. But who has measured the percentage, and on"
            " which instances? Section 13.",
            "wrong": "The multiplication is right; what it rests on can be neither shown nor"
            " refuted. Section 13.",
            "opinion": "A percentage of a bill could be measured. Has anybody?",
        },
    ),
    "c3": ClaimQuestion(
        "B-009",
        {
            "confirmed": "Who says so, and what remains when credits pay all usage? Section 7.",
            "wrong": "For somebody with enough credits the bill of the servers may be nought; the"
            " rest of the cost is another matter. Section 7.",
            "unverifiable": "No document is missing here: look at what sort of sentence it is, and"
            " at who profits from it.",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "A server has a price per peak FLOP that is a third lower. What else do you need before you"
        " can say which costs less for your model?",
        {
            "a": ("the throughput of your model on both", "Peak times MFU is what you pay for."),
            "b": ("the power that both draw", "In the cloud the price of an hour holds it."),
            "c": (
                "the memory bandwidth of both",
                "It is one reason for a throughput, not the throughput itself.",
            ),
            "d": (
                "nothing, if the date and the region are the same",
                "Then the prices may be compared; the work is not yet.",
            ),
        },
        "dda607a7fdfc2acf",
    ),
    "q2": Question(
        "Two platforms cost the same at 180 runs; you plan 50, and one saves engineering. What"
        " follows?",
        {
            "a": ("the port pays, because its servers are cheaper", "From the 181st run on."),
            "b": (
                "the port does not pay, unless it gets shorter or the runs more",
                "Both are inputs that you can change, and the break-even says by how much.",
            ),
            "c": ("credits decide", "They pay usage; people remain."),
            "d": (
                "nothing, without a Monte Carlo",
                "A break-even far outside of what is believed answers without one.",
            ),
        },
        "bb0209064ecfd74c",
    ),
    "q3": Question(
        "In ten thousand draws one platform is cheaper in 55 %. What is the best next step?",
        {
            "a": (
                "take it: it is cheaper on average",
                "You may; but ask what it costs to know more.",
            ),
            "b": (
                "draw a million times",
                "The ranges stay as wide; only the percentage gets more digits.",
            ),
            "c": (
                "measure the input that is worth most to know",
                "If that costs less than it is worth.",
            ),
            "d": (
                "narrow the ranges until the answer is clear",
                "A range is what you know, not what you would like.",
            ),
        },
        "b43ce72cbb0fb534",
    ),
    "q4": Question(
        "The demand for a service on ten servers halves. What do dollars per million tokens do?",
        {
            "a": (
                "nothing: half the servers serve half the tokens",
                "If spares, whole servers, people and storage could be halved too.",
            ),
            "b": ("they rise", "What does not shrink with the demand is spread over fewer tokens."),
            "c": ("they halve", "The bill falls towards half, and so do the tokens."),
            "d": ("they double", "Only if no server at all were given back."),
        },
        "18a76d5b13fe187c",
    ),
}
