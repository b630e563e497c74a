"""The claims and questions at the end of lesson 14.

Each feedback says what the option gets right or wrong.
"""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "D-022",
        {
            "confirmed": "Section 3 audits a small tree. Is what it finds a small change, and who"
            " says that it usually is?",
            "wrong": "For some model it will be so. Who is it that says it of all?",
            "opinion": "It is a statement of fact: somebody made it, and lines can be counted.",
        },
    ),
    "c2": ClaimQuestion(
        "B-024",
        {
            "confirmed": "For the hardware perhaps. Which generations does today's software for"
            " training run on? Section 6.",
            "opinion": "It rests on something that can be looked up: what the software supports.",
            "wrong": "Nothing was wrong with it while training still ran on PyTorch/XLA.",
        },
    ),
    "c3": ClaimQuestion(
        "D-027",
        {
            "vendor-claim": "A vendor would rather not say it. Did the press report it too?",
            "opinion": "Whether machines were to be had in a given quarter is no matter of taste.",
            "unverifiable": "Section 6 names a source of this year.",
        },
    ),
    "c4": ClaimQuestion(
        "A-120",
        {
            "confirmed": "Which ways of customising a model does the service's own interface list?"
            " Section 1 has the source.",
            "outdated": "Was there a release that had it and lost it?",
            "vendor-claim": "The vendor's own interface does not say so.",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "Trainium is cheaper in 60 % of the draws, by 5 % in the middle, and the preferences are"
        " level. What follows?",
        {
            "a": ("Trainium, since it is cheaper", "Less than two to one, and little of it."),
            "b": ("GPU, since nothing is proved", "Nothing speaks for the GPU either."),
            "c": (
                "either; measure first, if that costs less than it is worth",
                "The ranges of the inputs decide here, not the machines.",
            ),
            "d": ("neither", "Both doors are open: there is a choice, and it matters little."),
        },
        "60369e09e63133fe",
    ),
    "q2": Question(
        "The costs are equal at one MFU, and the verdict becomes Trainium only at a higher one."
        " Why?",
        {
            "a": ("the rule is against Trainium", "It is the same the other way round."),
            "b": (
                "equal at the best guesses is near an even chance, which has no vote",
                "The rule asks how sure the saving is, and what it pays for.",
            ),
            "c": ("compiling is left out", "Both ask the same model, compiling included."),
            "d": ("the draws are too few", "More draws make the same curve smoother."),
        },
        "0999d9c76b17d493",
    ),
    "q3": Question(
        "To know everything beforehand is worth less than the pilot costs. What do you do?",
        {
            "a": (
                "decide without it, or measure one thing in a few days",
                "No result of the pilot could save what it costs.",
            ),
            "b": (
                "pilot all the same: it teaches the team",
                "Then call it training, and pay it from there.",
            ),
            "c": (
                "widen the ranges until it is worth it",
                "Ranges say what is believed, and are no lever.",
            ),
            "d": (
                "choose Trainium: a pilot is not needed",
                "What is cheap to get wrong is not therefore right.",
            ),
        },
        "7c0a2484485fea77",
    ),
    "q4": Question(
        "Which answers of the questionnaire should the source tree give rather than the team?",
        {
            "a": ("deadline and team", "Nothing in the code knows them."),
            "b": ("quality gate", "Whether an evaluation exists is for people to say."),
            "c": ("region and capacity", "Those are for the provider, in writing."),
            "d": ("kernels and shapes", "Both stand in the code, where people forget them."),
        },
        "81a6accc92d5ef6a",
    ),
}
