"""The claims and questions at the end of lesson 02, with what to say to each answer."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-072",
        {
            "confirmed": "count the changes of section 4 that are not the name of the device",
            "opinion": "a port can be counted line by line: section 4 did",
            "vendor-claim": "anybody can count: you ran the ported script in section 5",
        },
    ),
    "c2": ClaimQuestion(
        "A-098",
        {
            "confirmed": "what does the scaler protect from, and has BF16 that problem? Section 6",
            "outdated": "it was never so for BF16: its exponent has as many bits as that of FP32",
        },
    ),
    "c3": ClaimQuestion(
        "A-070",
        {
            "wrong": "it does not say that this is all; which lines of section 4 name a device?",
            "outdated": "so it would be for TorchNeuron: the claim speaks of an XLA device",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "A ported script runs without an error, and the loss falls. One line says"
        ' device = "cuda" if torch.cuda.is_available() else "cpu". Where did it train?',
        {
            "a": ("on the accelerator, through XLA", "Nothing in that line names XLA."),
            "b": ("on the host's CPU", "No CUDA, so the other branch, and no word about it."),
            "c": ("nowhere: the line raises", "is_available() answers False; nothing raises."),
            "d": ("on both in turn", "The string is chosen once."),
        },
        "bfbda3ed8210ca9b",
    ),
    "q2": Question(
        "Why does the port drop the GradScaler together with FP16?",
        {
            "a": ("XLA cannot scale", "It can, and the scaler stays enabled: at a price."),
            "b": ("BF16 rounds less than FP16", "It rounds more: it has fewer digits."),
            "c": (
                "BF16 has the range of FP32, and a scaler reads a value in each step",
                "No underflow to fear, and one wait and one cut less in each step.",
            ),
            "d": ("the optimizer scales by itself", "AdamW adapts steps; it undoes no underflow."),
        },
        "02f0a494b0b0d06d",
    ),
    "q3": Question(
        "An operator falls back to the host in the middle of a training step. What is counted?",
        {
            "a": (
                "a compile in every step",
                "The two halves are compiled once; shapes stay the same.",
            ),
            "b": ("nothing, but a warning is printed", "It is counted, and nothing is printed."),
            "c": (
                "a second step marker",
                "Nobody marked a step; the graph runs because its value is needed.",
            ),
            "d": (
                "an execution more, a read and a copy back, in every step",
                "The graph is cut where the host needs its value.",
            ),
        },
        "ce52fdeff3a2006b",
    ),
    "q4": Question(
        "CPU and XLA differ by 3e-7 in the loss. Is that too much?",
        {
            "a": (
                "compare it with the spread of runs that are correct",
                "Their error against float64 says what rounding alone does to this model.",
            ),
            "b": ("yes: the same program must give the same bits", "Sums in another order do not."),
            "c": ("no: anything below 1e-3 is noise", "A wrong GELU is below that as well."),
            "d": ("yes, because the CPU is right", "The CPU has an error of the same size."),
        },
        "240b3de05f96161e",
    ),
}
