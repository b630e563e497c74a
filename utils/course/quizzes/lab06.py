"""The questions at the end of lab 06. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "Loading a batch takes three times as long as a step. With 2 workers the loop waits for a"
        " third of the time. What does a `prefetch_factor` of 8 in place of 2 change?",
        {
            "a": (
                "the loop hardly waits any more",
                "For some batches at the start, until what was put aside is used up. And then?",
            ),
            "b": (
                "nothing in the long run, and the memory for 12 more batches",
                "Two workers give two batches while three are used. Only a rate helps against a"
                " rate: a third worker, or cheaper loads.",
            ),
            "c": (
                "the wait share falls to a quarter of what it was",
                "Prefetching evens out loads that differ. Are these too few, or too uneven?",
            ),
            "d": (
                "it makes the wait longer, because workers get in each other's way",
                "They may, if they share cores. That is a matter of workers, not of prefetch.",
            ),
        },
        "8ff8619555945266",
    ),
    "q2": Question(
        "Which of these belongs into the loader's workers, and not into the step?",
        {
            "a": (
                "dropout, because it is random",
                "It works on activations, which exist on the device only.",
            ),
            "b": (
                "`x.to(device)`",
                "Workers are processes of their own: a forked one that uses the XLA device hangs."
                " MpDeviceLoader uploads in threads of the training process.",
            ),
            "c": (
                "cutting and padding texts to one of a few lengths",
                "It needs no device, and it decides the shapes, so it keeps the compiler quiet.",
            ),
            "d": (
                "the read of the loss",
                "The loss does not exist when the loader works. What it needs is a place in the"
                " loop that is rare.",
            ),
        },
        "8366ddd6e4e2ac5d",
    ),
    "q3": Question(
        "A benchmark of a forward pass calls `model(x)` a hundred times and settles once at the"
        " end. It reports a tiny time per call. What has it most likely measured?",
        {
            "a": (
                "a forward pass, cached after the first",
                "Compiled graphs are kept, values are not: a graph that runs again computes again.",
            ),
            "b": (
                "a hundred forward passes that overlap",
                "They would, if they ran. Who holds the results?",
            ),
            "c": (
                "the compilation, spread over a hundred calls",
                "Then the time would be large. Was there anything to compile?",
            ),
            "d": (
                "a hundred recordings and no computation",
                "The results were dropped before settle came: what nobody holds is not computed.",
            ),
        },
        "0075324e140f2228",
    ),
    "q4": Question(
        "In a profile the host spends 60 % of the time waiting for data and the device executes"
        " for 55 % of it. At most how much shorter can the run become if data never has to be"
        " waited for?",
        {
            "a": (
                "by the waiting that no execution covers: from 5 to 45 % of the time",
                "60 and 55 overlap by 15 at least and by 55 at most: what lies under the execution"
                " costs nothing. Only the profile says which it is.",
            ),
            "b": ("by 60 %", "Then the device would have to execute its 55 % in the other 40."),
            "c": (
                "by 5 %",
                "So little only if all of the execution lies under the waiting. Need it?",
            ),
            "d": (
                "not at all, since the device executes most of the time",
                "For 45 % of the time it stands still. What happens in these moments?",
            ),
        },
        "2bd53a133b6c4f5b",
    ),
    "q5": Question(
        "After each of 50 steps `UncachedCompile` is one more, `MarkStep` as before, and the graphs"
        " have 51, 90, 129, 168 … nodes. What do you change first?",
        {
            "a": (
                "pad the batches to one length",
                "Equal shapes would be compiled anew as well, as long as the graphs differ.",
            ),
            "b": (
                "read the loss less often",
                "Then fewer graphs run, and each is larger still: the reads are what runs them.",
            ),
            "c": (
                "end each step with a marker",
                "Each graph holds all the steps before it, 39 nodes each. The compiles follow.",
            ),
            "d": (
                "start more workers",
                "Nothing here says that anybody waits for data.",
            ),
        },
        "cd9367e4253e3c17",
    ),
}
