"""The claims and questions at the end of lesson 06, with what to say to each answer."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-145",
        {
            "confirmed": "section 2 counted the vCPUs for each process: do 16 workers fit there?",
            "wrong": "for loads that only wait, section 2 finds no fault with many workers",
            "outdated": "no release has changed it: what decides how many are right?",
        },
    ),
    "c2": ClaimQuestion(
        "A-092",
        {
            "confirmed": "look for its name in the present SDK, section 6",
            "wrong": "not in an SDK of two years ago",
        },
    ),
    "c3": ClaimQuestion(
        "A-091",
        {
            "confirmed": "what does capture take, by the guide: a command, or a compiled graph?",
            "outdated": "the name is old, but the line did not work under that name either",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "A load takes 45 ms, a step 15 ms, one worker. What share of the time is waiting?",
        {
            "a": ("75 %", "That is without a worker: 45 of 45 + 15."),
            "b": ("67 %", "Each batch takes as long as its load, and 15 ms of it are the step."),
            "c": ("33 %", "That is the share that is work."),
            "d": ("0 %", "That takes three workers."),
        },
        "2773bed63727a9b7",
    ),
    "q2": Question(
        "Loads are fast enough on average, and the loop still waits now and then. What first?",
        {
            "a": (
                "more workers",
                "The rate suffices; they help only by fetching ahead.",
            ),
            "b": ("a deeper prefetch", "It lets a slow load be paid from batches in stock."),
            "c": ("a larger batch", "Then the slow loads are as many and the step is longer."),
            "d": (
                "MpDeviceLoader",
                "Its queues are a prefetch too, on the device: look here first.",
            ),
        },
        "363529806e3952e1",
    ),
    "q3": Question(
        "In a trace, the span 'backward' takes 3 ms and the device executes for 80. Why?",
        {
            "a": ("the trace lost events", "Then the device's lane would be the shorter one."),
            "b": ("backward is fused away", "Its products are in the device's 80 ms."),
            "c": ("the span is recording", "The work runs later, on other threads."),
            "d": ("80 ms are one step late", "They may be late, but they are not this span's."),
        },
        "acdb762d1fafa91a",
    ),
    "q4": Question(
        "A timer without a wait averages over 200 training steps (section 7). How wrong is it?",
        {
            "a": ("useless", "For one step it would be; what does it miss of 200?"),
            "b": ("by one step in 200", "The host is at most a step ahead of the device."),
            "c": ("by a factor of two", "Nothing doubles: the markers wait for each other."),
            "d": ("not at all", "Something runs on when the clock stops."),
        },
        "3b6a10d7c2b26d64",
    ),
    "q5": Question(
        "The job hangs before its first step; the dataset returns tensors on the device. Fix?",
        {
            "a": ("raise the timeout", "It turns the hang into an error, and mends nothing."),
            "b": ("fewer workers", "One is enough to hang."),
            "c": ("pin the memory", "Nothing has come as far as a transfer."),
            "d": (
                "give CPU tensors",
                "A fork has a copy of the client without its threads.",
            ),
        },
        "fd59ea5070f5ed8f",
    ),
}
