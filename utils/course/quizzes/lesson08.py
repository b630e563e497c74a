"""The claims and questions at the end of lesson 08, with what to say to each answer."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "B-054",
        {
            "wrong": "the service names instance types; look for those that begin with trn",
            "vendor-claim": "AWS says so, and whoever calls the service can see its list of types",
            "unverifiable": "the definition of the service's API is public, and lists the types",
        },
    ),
    "c2": ClaimQuestion(
        "A-148",
        {
            "confirmed": "which service would start the run, and whose code would save? Section 14",
            "outdated": "there was no time when that service trained from nothing",
            "opinion": "what a service offers can be looked up",
        },
    ),
    "c3": ClaimQuestion(
        "B-056",
        {
            "wrong": "sections 10 to 12 say what becomes of a large fleet without checkpoints",
            "opinion": "half of it you have computed, and the other half is a list that AWS keeps",
            "unverifiable": "where and for which servers capacity is sold ahead is published",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "After a resume the first loss equals that of the uninterrupted run, and the second does"
        " not. What was not put back?",
        {
            "a": ("the weights", "Then the first forward pass would differ already."),
            "b": ("the data position", "Other texts, other loss, at once."),
            "c": ("the optimizer", "It is missing in the first update, and shows after it."),
            "d": ("the step count", "It shows only where the run should have ended."),
        },
        "03f41ea85278ec10",
    ),
    "q2": Question(
        "A program writes to a temporary file and renames it. A hundred kills lose nothing. What"
        " can still lose the checkpoint?",
        {
            "a": ("a kill at the rename", "The system renames completely or not at all."),
            "b": ("a power cut", "Nothing was forced to the disk: a name over an empty file."),
            "c": ("a kill after the rename", "The system knows the file by its new name."),
            "d": ("nothing", "A kill leaves all that the system was given. What does not?"),
        },
        "27b56a4bde0e2658",
    ),
    "q3": Question(
        "All checkpoints in the folder are damaged. What should the program do?",
        {
            "a": ("begin at step 0", "It would overwrite what could still be mended or copied."),
            "b": ("load the newest anyway", "Its weights may be anything; the loss won't tell."),
            "c": ("delete them and begin", "Somebody may have a copy of the other half."),
            "d": ("stop, and say what is wrong with each", "A person decides what that loses."),
        },
        "ebf77613e4308d67",
    ),
    "q4": Question(
        "A fleet grows to four times as many servers; a save takes as long as before. What becomes"
        " of the best interval?",
        {
            "a": ("about half", "Failures come four times as often, under a square root."),
            "b": ("a quarter", "Saving costs too, and would cost four times as much."),
            "c": ("the same", "The interval belongs to a program on a fleet."),
            "d": ("twice as long", "More failures, more work to lose: rather sooner."),
        },
        "02bc52d4e2fb5507",
    ),
}
