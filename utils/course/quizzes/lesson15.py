"""The claims and questions at the end of lesson 15, with what to say to each answer."""

from utils.course.quiz import ClaimQuestion, Question

CLAIMS = {
    "c1": ClaimQuestion(
        "A-064",
        {
            "confirmed": "for what software? Section 1 has a row on machines",
            "wrong": "it was good advice while another way to train was supported",
            "opinion": "which machines the software runs on is no matter of taste",
        },
    ),
    "c2": ClaimQuestion(
        "B-068",
        {
            "confirmed": "in which release of the SDK? Look at the figure of section 1",
            "wrong": "they did, up to a release that the figure of section 1 names",
            "vendor-claim": "whoever starts an image can see what it holds",
        },
    ),
    "c3": ClaimQuestion(
        "B-055",
        {
            "outdated": "section 7 names both among the usual ways",
            "vendor-claim": "samples and guides for both are public, and anybody can run them",
            "unverifiable": "section 7 names a source for each of the two",
        },
    ),
}

QUIZ = {
    "q1": Question(
        "A script for PyTorch/XLA pads every batch to one of three lengths. What of that is still"
        " needed on TorchNeuron?",
        {
            "a": ("nothing: it is eager", "Eager operators are compiled too, for each shape."),
            "b": ("nothing, with dynamic=True", "TorchNeuron rejects it."),
            "c": ("all of it", "Each set of shapes is compiled, by operator or by graph."),
            "d": ("one length must do", "Three lengths are three compiles, and then no more."),
        },
        "5083677b09202938",
    ),
    "q2": Question(
        "A model runs well on TorchNeuron, and slowly. torch.compile raised no error. What do you"
        " try first?",
        {
            "a": ("fullgraph=True", "If the graph breaks, it now says where."),
            "b": ("more step markers", "There are none: what would they end?"),
            "c": ('mode="max-autotune"', "Only the default mode has an effect there."),
            "d": ("a larger instance", "Find out what runs before you pay for more of it."),
        },
        "7a3021ea7501b91c",
    ),
    "q3": Question(
        "A stub called neuron runs your script to its end. What do you know about Trainium?",
        {
            "a": ("that every operator is there", "The CPU computed them."),
            "b": ("that the losses agree", "They are the CPU's."),
            "c": ("that no tensor stays on the host", "The stub would not notice; xla does."),
            "d": ("only which calls the script makes", "That, and that it names no other backend."),
        },
        "d8ed15e65bad8e4f",
    ),
    "q4": Question(
        "You have two hours, two dollars and want to see one device cell. Which step comes first?",
        {
            "a": ("start, and set an alarm", "An alarm tells you; what ends the machine?"),
            "b": ("the plan, and the quota it names", "A quota of 0 is found before the day."),
            "c": ("a HyperPod cluster", "It is meant for weeks, and is only planned here."),
            "d": ("a Studio space", "It takes no Trainium2, and perhaps has no driver."),
        },
        "7511d76f2340fbf4",
    ),
}
