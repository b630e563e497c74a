"""The claims and questions at the end of lesson 03, with what to say to each answer."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-073",
        {
            "wrong": "what ran in section 1 before anything was marked or read?",
            "outdated": "not for PyTorch/XLA; the claim names no other software",
        },
    ),
    "c2": ClaimQuestion(
        "A-076",
        {
            "confirmed": "how many executions had five steps with it in section 7?",
            "outdated": "section 7 looked at the present version; nothing says that it ever did",
        },
    ),
    "c3": ClaimQuestion(
        "A-071",
        {
            "confirmed": "it still answers; look at what section 9 prints besides",
            "wrong": "it does give the device here; what does section 9 print besides?",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "Ten steps; each prints its loss and then calls torch_xla.sync(). How many executions?",
        {
            "a": ("10", "That would hold if the loss were printed after the sync."),
            "b": ("20", "The print runs the forward pass, the sync the whole step."),
            "c": ("11", "Each print needs a value of its own step, not only the last one."),
            "d": ("1", "Each sync ends a graph, so there are at least as many as steps."),
        },
        "2f5227346b3d2c5d",
    ),
    "q2": Question(
        "Which of these lines makes Python wait for the device?",
        {
            "a": ("torch_xla.sync()", "Once compiled, the graph is started and sync returns."),
            "b": ("loss.backward()", "Gradients are recorded like everything else."),
            "c": ("loss.item() after a sync", "No execution, but the value must arrive."),
            "d": ("loss.detach()", "Another recorded node; nobody asks for a value."),
        },
        "3ba6ef7e5256bfc8",
    ),
    "q3": Question(
        "A job records fast, shows nothing for minutes, then dies in the compiler. What first?",
        {
            "a": ("a smaller learning rate", "The compiler does not depend on it."),
            "b": ("the number of nodes in the graph", "A missing marker shows there at once."),
            "c": ("more loader workers", "The host is not waiting for data here."),
            "d": ("a marker after every layer", "Perhaps later; first find out what has grown."),
        },
        "4a5b8b246f217b65",
    ),
    "q4": Question(
        "A benchmark calls (a @ b).sum() and sync() in a loop, and is absurdly fast. Why?",
        {
            "a": ("XLA fuses the loop", "Each sync ends a graph; nothing is fused across it."),
            "b": ("matmul is cached", "Graphs are cached, results are not."),
            "c": ("sync does not wait", "True too, but even with a wait it stays as fast."),
            "d": ("nobody keeps the result", "So nothing is computed: give it a name."),
        },
        "14b97af29b8df104",
    ),
}
