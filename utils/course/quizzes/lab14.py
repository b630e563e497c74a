"""The questions at the end of lab 14. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "The costs are clearly in favour of Trainium, capacity is signed, and the data must stay"
        " where no blocks of Trainium are listed. What do you look at first?",
        {
            "a": ("the size of the saving", "No saving moves a place."),
            "b": (
                "where the signed capacity is",
                "A promise in writing beats a list of regions, if it is for the right place.",
            ),
            "c": ("the votes of the preferences", "They count once nothing is closed any more."),
            "d": ("whether the data may move", "First read what is signed: it may be there."),
        },
        "71ba15791bc21f54",
    ),
    "q2": Question(
        'A colleague defends a verdict: "It would flip if no machine could be had at all." What is'
        " wrong with that?",
        {
            "a": ("it cannot happen", "It does happen: machines were sold out."),
            "b": ("the rule does not look at it", "It does: that row closes both."),
            "c": (
                "it is so in every case, so it says nothing of this one",
                "A defence names what separates this case from another one.",
            ),
            "d": ("nothing", "Then every verdict could be defended with the same sentence."),
        },
        "a18e8ebaf3801bc6",
    ),
    "q3": Question(
        "The team answers that its kernels are central; the audit of its tree finds none, in a"
        " thousand files. What does the rule go by?",
        {
            "a": (
                "central, with a doubt",
                "What is not found proves nothing: it may be a binary, or another tree.",
            ),
            "b": ("none", "Then an audit of the wrong folder would mend any answer."),
            "c": ("known replacements, in the middle", "A mean of two words is a third one."),
            "d": ("nothing until one of them yields", "A rule can go on, and say what to ask."),
        },
        "a908bf865b9298ce",
    ),
    "q4": Question(
        "Trainium is cheaper on average by a tenth, and no result of the pilot could make the GPU"
        " the better choice. What is the pilot worth?",
        {
            "a": ("a tenth of the costs", "That is what the choice is worth, not the pilot."),
            "b": ("as much as it costs", "A price says nothing about a value."),
            "c": (
                "it depends on how sure the mean is",
                "Only if some result could change it.",
            ),
            "d": (
                "nothing",
                "What cannot change what one does is worth nothing, as a decision.",
            ),
        },
        "a5c3197b5e9e86e6",
    ),
    "q5": Question(
        "The measured saving is 4 to 31 per cent, and the checklist asks for at least 10. Which"
        " state has the item?",
        {
            "a": ("done: its middle lies above", "Its lower end is a possible value, too."),
            "b": (
                "open: measure until the interval is narrower",
                "It neither meets nor misses the limit, and time alone does not change that.",
            ),
            "c": ("failed: it might be 4", "It might be 31 as well. That it fails is not shown."),
            "d": ("done, with a note", "Whoever reads the list reads done."),
        },
        "00135189d89a7dd0",
    ),
}
