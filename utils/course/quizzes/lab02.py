"""The questions at the end of lab 02. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "A script makes its optimizer and then calls model.cuda(). You change that to"
        " model.to(torch_xla.device()). What happens?",
        {
            "a": (
                "the first optimizer step raises",
                "Nothing raises: the optimizer steps parameters that have no gradients.",
            ),
            "b": (
                "it runs, and the loss never falls",
                "The model has new parameters on the device, the optimizer the old ones.",
            ),
            "c": (
                "it trains as before, only slower",
                "It runs at full speed. Which parameters does the optimizer hold?",
            ),
            "d": (
                "it trains as before: a module keeps its parameters when it moves",
                "On CUDA it does. On XLA `to` makes new ones.",
            ),
        },
        "7da96e85a727cc3d",
    ),
    "q2": Question(
        'A script with device = "cuda" if torch.cuda.is_available() else "cpu" runs on a machine'
        " with Trainium. How do you notice that something is wrong?",
        {
            "a": (
                "it raises, because there is no NVIDIA driver",
                "is_available() answers False without raising; that is what it is for.",
            ),
            "b": (
                "PyTorch warns that CUDA is missing",
                "A program that asks first gets an answer, not a warning.",
            ),
            "c": ("the losses are wrong", "A CPU computes the same losses."),
            "d": (
                "only by looking where the tensors are, or at an accelerator that does nothing",
                "Right losses, no error: this one has to be looked for.",
            ),
        },
        "3dfb24914d18e999",
    ),
    "q3": Question(
        "After 100 steps the meter shows aten::bincount x100 on the host. What does each of these"
        " steps pay for it?",
        {
            "a": (
                "a read that the host waits for, work on the host, and an upload of the result",
                "And what was pending runs before the step is over, as a graph of its own.",
            ),
            "b": (
                "a compile",
                "Not by itself: the shapes are the same each time. What has to move, though?",
            ),
            "c": (
                "nothing: the operator runs while the device does something else",
                "It needs its input, so it waits for the device, and the next graph waits for it.",
            ),
            "d": (
                "wrong counts",
                "A fallback computes the right values. That is why it goes unnoticed.",
            ),
        },
        "a149aab284549f29",
    ),
    "q4": Question(
        "The same torch.manual_seed(0), the model made once on the CPU and once on the XLA device:"
        " the first losses differ. What do you do?",
        {
            "a": (
                "widen the tolerance until they agree",
                "These are other random numbers, not rounding: no tolerance would mean anything.",
            ),
            "b": (
                "call torch.cuda.manual_seed_all(0) as well",
                "That seeds generators of CUDA, which nothing here uses.",
            ),
            "c": (
                "make the model on the CPU in both runs, then move it",
                "The same numbers then start both: a device has a generator of its own.",
            ),
            "d": (
                "train longer, until the losses meet",
                "Two runs from different weights need not meet, and would prove nothing if they"
                " did.",
            ),
        },
        "f7c5f43123768000",
    ),
    "q5": Question(
        "The audit of a ported script is clean. What do you know?",
        {
            "a": (
                "the port is right",
                "An audit reads text. Does the text say what the optimizer holds, or how often a"
                " graph runs?",
            ),
            "b": (
                "none of the idioms that the audit knows is left; losses and counts are to be"
                " measured",
                "The audit is the first of three looks: then parity, then the meter.",
            ),
            "c": (
                "no operator runs on the host",
                "It knows a few such operators by name. Which ones run there is counted when they"
                " run.",
            ),
            "d": (
                "the script runs on XLA",
                "It does not even know that the model is moved: a script for the CPU is clean,"
                " too.",
            ),
        },
        "27a1f998ec089412",
    ),
}
