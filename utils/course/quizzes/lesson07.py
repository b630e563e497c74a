"""The claims and questions at the end of lesson 07, with what to say to each answer."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-085",
        {
            "confirmed": "what had the two ranks of section 8 in common, and what does DDP do?",
            "outdated": "PyTorch/XLA on Neuron never had DDP: what replaced its work?",
        },
    ),
    "c2": ClaimQuestion(
        "A-117",
        {
            "confirmed": "what did section 1 to 6 have to say before anything was divided?",
            "vendor-claim": "this can be checked: does a link know how a model is to be divided?",
        },
    ),
    "c3": ClaimQuestion(
        "A-087",
        {
            "confirmed": "weights, gradients and both states of Adam for all, on every core?",
            "outdated": "no release has changed what Adam keeps for a parameter",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "Data parallel on 8 devices instead of 4, same batch for each. What becomes of the bytes of"
        " the all-reduces on one device, as the compiled text counts them?",
        {
            "a": ("they double", "Each device still has one gradient for each parameter."),
            "b": ("they halve", "No parameter is divided."),
            "c": ("they stay", "Results are as large as the parameters; the steps get more."),
            "d": ("it depends on the batch", "Its size is in the terms, not in the sums."),
        },
        "5d9b4b82bd43b275",
    ),
    "q2": Question(
        "The first matrix of a perceptron is divided by rows, the second by columns: the wrong way"
        " round. What does the compiler do?",
        {
            "a": ("it refuses", "Any annotation can be made to work."),
            "b": ("it sends more", "Right results, larger sums: only counting shows it."),
            "c": ("it computes something else", "An annotation never changes what is computed."),
            "d": ("it ignores the annotation", "It may repair a poor one, but it starts from it."),
        },
        "e1f709b404c27c1f",
    ),
    "q3": Question(
        "A run on four virtual CPU devices takes as long as on one. What follows for Trainium?",
        {
            "a": ("the layout does not scale", "Then no layout would: they share the same cores."),
            "b": ("communication dominates", "There are no links here to be slow."),
            "c": ("the batch is too small", "Perhaps, but this run cannot say so."),
            "d": ("nothing", "Counts and bytes carry over, seconds do not."),
        },
        "623556f3792557f7",
    ),
    "q4": Question(
        "torchrun starts 64 ranks from equal weights; after a step every rank has others. What"
        " first?",
        {
            "a": ("the world size that the library sees", "If it is 1, nobody averages anything."),
            "b": ("the learning rate", "It is the same everywhere; the gradients are not."),
            "c": ("the EFA variables", "Inside one instance nothing passes through EFA."),
            "d": ("the random seed", "They started equal, and equal updates keep them so."),
        },
        "223566fbbcb018a2",
    ),
    "q5": Question(
        "Tensor parallel across EFA instead of NeuronLink: why is that worse than data parallel"
        " across EFA?",
        {
            "a": ("its messages are larger", "Often they are smaller than the gradients."),
            "b": (
                "its sums are waited for in every layer",
                "Gradients are summed once per step, while the backward pass goes on.",
            ),
            "c": ("EFA cannot all-reduce", "It carries any collective."),
            "d": ("it needs more memory", "It needs less: that is what it is for."),
        },
        "1700fb55c290284f",
    ),
}
