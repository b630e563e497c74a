"""The questions at the end of lab 08. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        "A training is resumed with weights, AdamW's state, schedule, step and data in place, and"
        " all random states begin anew. What do you see?",
        {
            "a": (
                "an error at the first step",
                "Nothing is missing that the step asks for: every generator has some state.",
            ),
            "b": (
                "nothing: the losses are those of the run without a kill",
                "Dropout and noise would have been others. Which numbers do they come from?",
            ),
            "c": (
                "other losses than without the kill, and a curve that looks healthy",
                "The noise of the first steps comes again. Only a comparison to the bit shows it.",
            ),
            "d": (
                "a loss that explodes",
                "That is what a missing schedule can do. Other noise is noise all the same.",
            ),
        },
        "1b9ebdfec40f559f",
    ),
    "q2": Question(
        "`save` writes to a temporary name and calls os.replace, without fsync. What can lose the"
        " checkpoint?",
        {
            "a": (
                "kill -9 right after os.replace",
                "The system has all the bytes by then, and writes them whoever has died.",
            ),
            "b": (
                "a power cut some seconds after os.replace",
                "The new name may be on the disk, and the bytes still in memory.",
            ),
            "c": (
                "kill -9 in the middle of the write",
                "Then half a temporary file lies there, and the old checkpoint beside it.",
            ),
            "d": (
                "a second process that reads meanwhile",
                "It sees the old file or the new one, never a half: that is what atomic means.",
            ),
        },
        "bd6339ec33e604bd",
    ),
    "q3": Question(
        "Why is a checksum compared before torch.load or pickle sees the bytes?",
        {
            "a": (
                "because a damaged file may load without an error, or run what it holds",
                "A flipped bit in a weight loads well. A pickle is a program.",
            ),
            "b": (
                "because loading is slow",
                "It is, and a checksum reads every byte too. What if loading succeeds?",
            ),
            "c": (
                "because a checksum repairs the file",
                "It tells that something is wrong, not what it was.",
            ),
            "d": (
                "because it keeps others from changing the file",
                "Whoever can change the bytes can change a checksum beside them: that takes a"
                " signature.",
            ),
        },
        "3c00a88c5552ba97",
    ),
    "q4": Question(
        "The fleet grows fourfold with the same kind of servers, and a checkpoint takes as long as"
        " before, far less than the time between failures. What becomes of the best interval?",
        {
            "a": ("it stays", "Failures come four times as often: what does one lose now?"),
            "b": (
                "it is a quarter",
                "Then four times as much would be written. Work done again and writing share the"
                " loss.",
            ),
            "c": (
                "it doubles",
                "More failures ask for more checkpoints, not for fewer.",
            ),
            "d": (
                "it halves, about",
                "It goes with the root of the time between failures, as long as writing is short.",
            ),
        },
        "088f8bb7d3bcccc8",
    ),
    "q5": Question(
        "Four files hold a weight cut along its rows and AdamW's moments. Two devices are to go on"
        " with the weight cut along its columns. What happens to the moments?",
        {
            "a": (
                "they begin at zero: they belong to the old devices",
                "They belong to the weights. What size would the first update have?",
            ),
            "b": (
                "they are cut along columns too, element by element with the weight",
                "A moment has the shape of its weight and is read by the same update.",
            ),
            "c": (
                "they stay cut along rows",
                "The update of an element needs its moments on the same device.",
            ),
            "d": (
                "they are copied whole to both devices",
                "That is right in value, and takes the memory that cutting was to save.",
            ),
        },
        "87758aa272e5ddc3",
    ),
}
