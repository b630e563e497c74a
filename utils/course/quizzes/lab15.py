"""The questions at the end of lab 15. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "A loop calls device.mark_step() after each update. What does the call do on an eager"
        " device?",
        {
            "a": (
                "it waits until the step is computed",
                "That is device.wait(). Who needs to know where a step ends?",
            ),
            "b": (
                "nothing: each operator was handed over when it was called",
                "So the same loop is right on lazy and eager devices.",
            ),
            "c": (
                "it compiles the step",
                "An eager device compiles operators as they come, or what torch.compile is given.",
            ),
            "d": (
                "it raises, because there is no graph",
                "Then no loop could be the same everywhere. What is there to do for it?",
            ),
        },
        "06897ad465e3e888",
    ),
    "q2": Question(
        "With TorchNeuron a program runs eagerly. Sentences come in 400 different lengths. What"
        " do buckets still save?",
        {
            "a": (
                "nothing: only lazy graphs depend on shapes",
                "Operators are compiled too, and kept by their shapes.",
            ),
            "b": (
                "reads from the device",
                "Padding reads nothing. What is made anew for each shape?",
            ),
            "c": (
                "compilations: operators and compiled graphs are made for shapes",
                "The reason survives the backend, and so does the padding.",
            ),
            "d": (
                "memory of the optimizer",
                "That depends on the parameters, not on the sentences.",
            ),
        },
        "67c992673f060332",
    ),
    "q3": Question(
        "An instance shuts itself down when the hours are over, with"
        " InstanceInitiatedShutdownBehavior left at `stop`. What is paid on?",
        {
            "a": (
                "the disk: the instance is stopped, not ended",
                "And an instance that is stopped is started again by a click.",
            ),
            "b": (
                "nothing",
                "A stopped instance keeps something. Where is its file system?",
            ),
            "c": (
                "the whole instance",
                "A stopped one is not paid by the hour. What of it stays?",
            ),
            "d": (
                "the quota",
                "A quota is a limit and costs nothing.",
            ),
        },
        "d62470d5ab9175cc",
    ),
    "q4": Question(
        "`resume` passed lab 08 and makes its own AdamW over run.model.parameters() before it"
        " loads the state. Why does the capstone refuse it?",
        {
            "a": (
                "because AdamW has no state after a kill",
                "It loads one. How many parameters does that state speak of?",
            ),
            "b": (
                "because XLA tensors cannot be loaded",
                "They are, in lab 08 and here. What else is new about this run?",
            ),
            "c": (
                "because the learning rate differs",
                "The state brings the rate along. Which tensors does the new optimizer hold?",
            ),
            "d": (
                "because this run's optimizer holds the adapters alone, and the new one all",
                "What a function makes for itself, its caller cannot choose.",
            ),
        },
        "1c1aa1aeecfb975d",
    ),
}
