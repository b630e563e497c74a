"""The claims and questions at the end of lesson 01.

Each feedback says what the option gets right or wrong.
"""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-017",
        {
            "confirmed": "Section 5 divides the rates of one chip by each other; what could have"
            " been compared instead?",
            "vendor-claim": "There is such a figure of the vendor, but not of this: look at what"
            " has how many chips in section 11.",
            "outdated": "It has not been true of a chip at any time: see the ratios of section 5.",
        },
    ),
    "c2": ClaimQuestion(
        "C-012",
        {
            "wrong": "Divide two chip rates of section 5, and look at the clocks of section 1.",
            "unverifiable": "Both halves are in primary sources: section 5 has the rates, section 1"
            " the clocks.",
            "vendor-claim": "The rates are documentation, and the clocks explain them within a few"
            " percent.",
        },
    ),
    "c3": ClaimQuestion(
        "C-008",
        {
            "confirmed": "Look at the status of the process in section 6: who says it?",
            "wrong": "Nobody says otherwise either. What can be known from public sources?",
            "vendor-claim": "The vendor has not said it: see the status in section 6.",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "A kernel with 50 FLOP/B runs on a core whose ridge is at 200. The next core has twice the"
        " FLOP/s and the same memory. What does the kernel gain?",
        {
            "a": ("twice the speed", "Only work above the ridge follows the FLOP/s."),
            "b": ("nothing", "It waits for memory; the ridge only moves further away."),
            "c": ("it becomes slower", "The roof rises, and the slope stays where it was."),
            "d": ("half as much again", "Nothing of its least time depends on the FLOP/s."),
        },
        "7e426df4ccf3b9da",
    ),
    "q2": Question(
        "Decoding with 8 rows becomes nearly twice as fast with FP8 weights. Why?",
        {
            "a": ("the array does two products per cell", "True of some chips, but it waits here."),
            "b": ("FP8 needs fewer FLOP", "The number of FLOP is the same."),
            "c": ("half the bytes come from memory", "The weights were the whole traffic."),
            "d": ("the ridge moves to the left", "It moves to the right: the roof rises."),
        },
        "0441d33e03f572d5",
    ),
    "q3": Question(
        "7 billion parameters with ZeRO-1 do not fit. You double the number of devices. Now?",
        {
            "a": ("half of everything, it fits", "Only what is sharded is divided further."),
            "b": ("the optimizer's part shrinks further", "And weights and gradients stay whole."),
            "c": ("the activations halve", "They depend on the sequences of one device."),
            "d": ("nothing changes at all", "One of the three parts does change."),
        },
        "d894a9c4ff44e127",
    ),
    "q4": Question(
        "A table prints 2.5 PFLOPS for a chip. What do you ask before you compare it?",
        {
            "a": ("how many cores the chip has", "Good to know, and no help in comparing chips."),
            "b": ("what it costs", "Later: first find out what the number is."),
            "c": ("the clock", "It would let you check the number, not compare it."),
            "d": ("dtype, dense or sparse, who says so", "One chip has several such numbers."),
        },
        "7389c55c3b20dce4",
    ),
}
