"""The claims and questions at the end of lesson 11, with what to say to each answer."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-113",
        {
            "wrong": "what did the recorded second process compile in section 7?",
            "unverifiable": "section 7 has the recorded hits of a second process",
            "opinion": "section 7 counts it",
        },
    ),
    "c2": ClaimQuestion(
        "B-040",
        {
            "confirmed": "when were the graphs of this lesson compiled: before the run, or in it?",
            "wrong": "there is a way to do it ahead, and for one kind of use it was the only one",
        },
    ),
    "c3": ClaimQuestion(
        "B-042",
        {
            "confirmed": "which torch does its last release pin, and what runs on TorchNeuron?",
            "wrong": "it was the way, as long as training meant PyTorch/XLA",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "A team changes only `alpha`, from 16 to 8, with rank 8, and everything compiles again."
        " Why?",
        {
            "a": ("alpha is part of a shape", "Only the rank is. What is alpha divided by it?"),
            "b": ("the scale became exactly 1", "1 is a constant of the graph; 1.5 is an input."),
            "c": ("every number is baked in", "From 16 to 12 would compile nothing."),
            "d": ("AdamW begins anew", "Then the first week would have done so too."),
        },
        "66e705b7b7422e27",
    ),
    "q2": Question(
        "Monday's job is a new process with the same shapes, and compiles two graphs. What helps?",
        {
            "a": ("a smaller rank", "Another shape: another two graphs."),
            "b": ("more steps", "The compiles stay, spread over more steps."),
            "c": ("a cache on disk whose hits are watched", "Its keys are those of last week."),
            "d": ("merging last week's adapter", "Weights are inputs; that changes no key."),
        },
        "0d995583904fa86b",
    ),
    "q3": Question(
        "A server generates with a static cache, and compiles for each new token. What first?",
        {
            "a": ("a read without a step marker", "The graph goes on growing: section 11."),
            "b": ("the cache is too long", "Its length is fixed, whatever it is."),
            "c": ("the adapter is not merged", "The same graph with two more products."),
            "d": ("the prompt is in a bucket", "That is one graph, once."),
        },
        "69cb5f130458719a",
    ),
    "q4": Question(
        "LoRA on 13B, batch and length as before. Which part of the memory hardly shrinks?",
        {
            "a": ("the moments of AdamW", "They are kept for trained parameters only."),
            "b": ("the gradients", "Frozen weights have none."),
            "c": ("the master weights", "Only what is trained has a master copy."),
            "d": ("the activations", "The gradient still passes through every layer."),
        },
        "8b365a056c2d28b0",
    ),
}
