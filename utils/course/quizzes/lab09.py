"""The questions at the end of lab 09. Each feedback names what the option gets right or wrong."""

from utils.course.quiz import Question

QUIZ = {
    "q1": Question(
        (
            "A tile [128, 512] in SBUF and a tile [1, 512] in SBUF are to be added row "
            "by row. What works?"
        ),
        {
            "a": (
                "nisa.tensor_tensor: it broadcasts the row",
                (
                    "It reads both tiles element by element, in the same partitions. Partition "
                    "7 has no path to partition 0."
                ),
            ),
            "b": (
                "nisa.tensor_scalar with the row as operand0",
                ("Its operand is a value for each partition, (128, 1), not one for each column."),
            ),
            "c": (
                "load the row into all 128 partitions, then nisa.tensor_tensor",
                (
                    "A DMA with a stride of 0 reads the same row for every partition; from then"
                    " on each lane has its own copy."
                ),
            ),
            "d": (
                "nothing: the engines cannot do it",
                "They can, once the row is where each lane can read it.",
            ),
        },
        "96ac08c51af33734",
    ),
    "q2": Question(
        (
            "A kernel computes y = x * a in one instruction and z = y * b in a second "
            "one, with BF16 tiles. How often is z rounded on the way from x?"
        ),
        {
            "a": (
                "once, at the end",
                (
                    "That holds if one instruction does both, such as nisa.tensor_scalar with "
                    "two operators."
                ),
            ),
            "b": (
                "twice",
                ("Each instruction computes in FP32 and rounds when it writes its destination."),
            ),
            "c": ("never, engines compute in FP32", "They do, but a tile in BF16 holds BF16."),
            "d": (
                "four times: both inputs and both results",
                "Inputs are widened to FP32, which loses nothing.",
            ),
        },
        "9620df28b8c37867",
    ),
    "q3": Question(
        (
            "A PSUM tile is allocated before a loop over output blocks and used for all"
            " of them, with nc_matmul in its default mode. What happens in the second "
            "turn?"
        ),
        {
            "a": (
                "the product overwrites, as in the first turn",
                "Only the first product that writes a place of an allocation overwrites it.",
            ),
            "b": (
                "the products of the second block are added to those of the first",
                (
                    "The allocation is still the same, so later products add. Allocate inside "
                    "the loop, one tile for each block."
                ),
            ),
            "c": ("an error: the bank is full", "The tile has the same size; nothing is full."),
            "d": ("the tile is cleared by the copy to SBUF", "A copy reads; it clears nothing."),
        },
        "a01f088680bbcac0",
    ),
    "q4": Question(
        "A kernel is right in the simulator. What is not shown by that?",
        {
            "a": (
                "that its tiles fit into SBUF",
                (
                    "The simulator counts the bytes of each partition, and refuses what does "
                    "not fit."
                ),
            ),
            "b": (
                "that a product lies inside one bank",
                "It checks that, and says where the border is.",
            ),
            "c": (
                "that the compiler accepts its Python",
                (
                    "Kernels are compiled from their Python, and the compiler accepts less than"
                    " the simulator runs; the lint warns of what is known."
                ),
            ),
            "d": (
                "that values are rounded once at each write",
                "They are rounded as the tile's type says.",
            ),
        },
        "abdd47940b5e08fb",
    ),
}
