"""The claims and questions at the end of lesson 04, with what to say to each answer."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-115",
        {
            "wrong": "how many compiles had the second week in section 11?",
            "unverifiable": "section 11 ran two weeks of it",
            "opinion": "section 11 counted it",
        },
    ),
    "c2": ClaimQuestion(
        "A-081",
        {
            "confirmed": "see what section 8 says of the cache on a device, and who says it",
            "unverifiable": "the documentation names the folder: section 8",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "Which change compiles a new graph?",
        {
            "a": ("other weights of the same shapes", "Weights are inputs: any values do."),
            "b": ("a dropout probability from 0.1 to 0.2", "An ordinary number is an input."),
            "c": ("a window x[:, i : i + 4] that moves", "The start is an attribute of the slice."),
            "d": ("a learning rate from 0.013 to 0.011", "Also an ordinary number, so an input."),
        },
        "04333d19b5859234",
    ),
    "q2": Question(
        "A job recompiles once, in its very last step. What first?",
        {
            "a": ("the compiler has lost its cache", "A process keeps the graphs it used last."),
            "b": ("the schedule ends at exactly 0", "0, 1 and -1 are constants, not inputs."),
            "c": ("AdamW's step count has grown", "The count is an ordinary number in each step."),
            "d": ("the loss has become small", "Values in tensors are not in the identity."),
        },
        "89dbe23b839bc46b",
    ),
    "q3": Question(
        "Millions of steps on sentences of 25 to 270 tokens. Which padding?",
        {
            "a": ("none", "Hundreds of lengths, each a compile."),
            "b": ("all to 270", "One compile, and most of the tokens are padding in every step."),
            "c": ("to the longest of each batch", "As many shapes as there are longest lengths."),
            "d": ("to a few learned buckets", "A few compiles, paid once, and little padding."),
        },
        "5fd0804e95f7247a",
    ),
    "q4": Question(
        "The cache folder is full of entries, and the second run is as slow as the first. Look at",
        {
            "a": ("the hits and failed loads", "An entry helps only if it is found and loads."),
            "b": ("the size of the folder", "Entries that are never loaded take space too."),
            "c": ("the learning rate", "It is an input, and in no key."),
            "d": ("the number of workers", "The second run of one worker should hit already."),
        },
        "f9ab622f2bdfd661",
    ),
    "q5": Question(
        "Eight workers start at once on an empty shared cache without locks. They compile",
        {
            "a": ("each graph once", "For that the others would have to wait, or to come later."),
            "b": ("an eighth of the graphs each", "Nobody divides the work among them."),
            "c": ("each graph eight times", "Each finds the folder empty: compile ahead instead."),
            "d": ("nothing", "Somebody must fill the cache first."),
        },
        "647044f6cb55f981",
    ),
}
