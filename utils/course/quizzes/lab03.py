"""The questions at the end of lab 03. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "y is a pending tensor on the XLA device. Which line makes its graph run?",
        {
            "a": ("y.shape", "Shapes and dtypes are known while recording; no value is needed."),
            "b": ("y.detach()", "This records another node. It cuts gradients, not the graph."),
            "c": ('print(f"{y}")', "The text shows values, so they must be computed and copied."),
            "d": ("y.sum().backward()", "Gradients are recorded too: backward adds nodes."),
        },
        "67e225eb4c79086b",
    ),
    "q2": Question(
        "Twelve training steps call xm.optimizer_step(optimizer) and nothing else that could run"
        " a graph; then the last loss is read once. How many executions?",
        {
            "a": (
                "12",
                "xm.optimizer_step updates the weights; without barrier=True it marks no step.",
            ),
            "b": ("1", "All twelve steps are one graph, and the read runs what it needs of it."),
            "c": ("13", "That needs a marker in each step and a pending value in the end."),
            "d": ("0", "Nothing ran in the loop, but a read needs a value."),
        },
        "694e907ffc3eade8",
    ),
    "q3": Question(
        "A job shows 8 steps, 8 executions and 7 compiles. What do you look at first?",
        {
            "a": (
                "what differs between the graphs of two steps: a shape, a Python number, a step"
                " that is not ended",
                "An equal graph is not compiled again: find the difference.",
            ),
            "b": (
                "the learning rate schedule",
                "A Python learning rate is an input of the graph,"
                " not a part of it: it compiles nothing anew.",
            ),
            "c": (
                "more warm-up steps",
                "Warm-up hides compiles only if the graphs come back. Here"
                " nearly each step brings a new one.",
            ),
            "d": (
                "a step marker after every layer",
                "More markers make more and smaller graphs; those that change still compile anew.",
            ),
        },
        "72f04c5753d3b721",
    ),
    "q4": Question(
        "loss.item() right after torch_xla.sync() costs no execution. Why is it still good to read"
        " rarely?",
        {
            "a": (
                "each read compiles a small graph",
                "After the sync the value is there: it is copied, nothing is compiled.",
            ),
            "b": (
                "the read removes the loss from the graph cache",
                "Reads do not touch the cache.",
            ),
            "c": (
                "there is no reason",
                "Executions are not the only cost. What does Python do during the read?",
            ),
            "d": (
                "Python waits for the device, and then the device waits for Python",
                "While Python waits it records nothing, so the device runs dry after each step.",
            ),
        },
        "783311798e72a6a4",
    ),
    "q5": Question(
        "A benchmark on a device becomes 20 times faster when its last line, the wait, is deleted."
        " What was measured?",
        {
            "a": (
                "a device that overlaps the calls",
                "Overlap hides the host's work behind the"
                " device's. It does not take the device's own time away.",
            ),
            "b": ("how fast Python records and enqueues", "The clock stopped before the work did."),
            "c": ("the compile cache", "Compiles are paid in the warm-up, in both versions."),
            "d": ("the time of a single call", "Not even that: no call was waited for."),
        },
        "d941f9e01aaea069",
    ),
}
