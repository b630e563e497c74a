"""Memory of one training step of the course's TinyGPT, as XLA's CPU compiler places it: float32,
AdamW, gradients freed before the step ends.

The state is counted exactly. What is temporary is most where the backward pass begins and has freed
nothing yet. Then live:
- the activations that the backward pass needs, with habits of this compiler that can be read in its
  report: of GELU it keeps the error function besides input and result, of the softmax a second copy
  (the one in which rows without any key are zero); LayerNorm is written as a batch norm over all
  tokens, so with a divided batch each device gathers the normalised tokens of all and keeps them;
  rows of the matrix that makes queries, keys and values do not end where heads end, so tensor ranks
  gather them, and each computes all scores;
- logits three times: themselves, their exponentials, and the targets as their gradient; or, if that
  is more, a moment later the gradient inside the last perceptron, or that of the last scores when
  what the perceptron kept is gone;
- a copy of every weight, since the update overwrites it before its last reader is done, and zeros
  to which the gradients of both tables of embeddings are added;
- gathered weights (FSDP), of all but those tables, from the forward to the backward pass.
None of this is a property of Trainium. On 22 programs drawn at random, with vocabularies of up to
128 times the width, 20 were within 7 % of the compiler's own report and half within 4 %. The other
two, 10 and 12 % below what was foreseen, had 128 tokens on each of four devices: there the compiler
gathers again what is taken as kept here. With fewer still it fuses more than this knows.
"""

from dataclasses import dataclass

from utils.cost.planner.architecture import Architecture

VALUE = 4
INDEX = 8
"""Bytes of a value in float32, and of a token's number in int64."""
LAYOUTS = ("one", "data", "fsdp", "tensor", "both")


@dataclass(frozen=True)
class CompiledStep:
    """Bytes on one device. state: weights and both moments of AdamW. batch: numbers of tokens and
    places. The rest is temporary; copies: of weights, and zeros for gradients of tables; gathered:
    weights; passing: what comes and goes at the highest point.
    """

    state: int
    batch: int
    copies: int
    gathered: int
    activations: int
    passing: int

    @property
    def temporaries(self) -> int:
        """Bytes at the highest point, beside state and batch."""
        return self.copies + self.gathered + self.activations + self.passing

    @property
    def total(self) -> int:
        """Bytes of one device at the highest point."""
        return self.state + self.batch + self.temporaries


def tiny_gpt(vocabulary: int, width: int, heads: int, layers: int, context: int) -> Architecture:
    """The sizes of `utils.xla.networks.TinyGPT` with these arguments."""
    return Architecture(
        "TinyGPT", layers, width, heads, heads, 4 * width, vocabulary,
        gated=False, biases=True, norm_vectors=2, positions=context,
    )  # fmt: skip


def compiled_step(
    architecture: Architecture, batch: int, length: int, layout: str = "one", devices: int = 1
) -> CompiledStep:
    """What a step of `tiny_gpt(...)` needs on one device.

    layout: "one" device; "data": the batch is divided; "fsdp": the batch, and every parameter along
        its first dimension; "tensor": columns of the first matrix of a pair, rows of the second,
        and the vocabulary; "both": the batch over half of the devices, and over pairs as "tensor".

    >>> step = compiled_step(tiny_gpt(512, 64, 4, 2, 64), batch=8, length=64)
    >>> step.state == 12 * tiny_gpt(512, 64, 4, 2, 64).parameters
    True

    Raises ValueError for an unknown layout, or sizes that the devices do not divide.
    """
    a, n = architecture, devices
    if layout not in LAYOUTS or (layout == "one") != (n == 1) or (layout == "both" and n % 2):
        raise ValueError(
            f"layout is one of {', '.join(LAYOUTS)}, with 1 device the first, and an even number"
            f" of devices for the last; found {layout!r} with {n}"
        )
    parts = {"tensor": n, "both": 2}.get(layout, 1)
    batches = n // parts
    shards = n if layout == "fsdp" else parts
    divided = {"batch": (batch, batches), "width": (a.width, shards),
               "vocabulary": (a.vocabulary, shards), "feed_forward": (a.feed_forward, parts),
               "positions": (a.positions, n if layout == "fsdp" else 1)}  # fmt: skip
    for name, (size, by) in divided.items():
        if size % by:
            raise ValueError(f"{layout} over {n} devices: {name} {size} must be a multiple of {by}")
    here = parameters_on(a, layout, shards)
    tokens = batch // batches * length
    normalised, inside, scores = a.width * batches, a.feed_forward // parts, a.heads * length
    layer = 2 * a.width + 2 * normalised  # norms: inputs, results
    layer += 3 * a.width + a.width // parts + 2 * scores  # q, k, v, result, scores twice
    layer += 3 * inside  # before GELU, its error function, after
    ends = 2 * a.width + normalised  # the last norm, and the gradient that comes back to it
    tables = (a.vocabulary // shards + a.positions) * a.width
    whole_tables = (a.vocabulary + a.positions) * a.width
    return CompiledStep(
        state=3 * VALUE * here,
        batch=INDEX * (batch // batches * length + a.positions),
        copies=VALUE * (here + tables),
        gathered=VALUE * (a.parameters - whole_tables) if layout == "fsdp" else 0,
        activations=VALUE * tokens * (a.layers * layer + ends),
        passing=VALUE * tokens * max(3 * a.vocabulary // parts, inside, scores - 3 * inside),
    )


def parameters_on(architecture: Architecture, layout: str, shards: int) -> int:
    """Parameters that one device holds, exactly; shards: devices that divide them between them."""
    a = architecture
    if layout == "fsdp":
        return a.parameters // shards
    matrices = (4 * a.width + 2 * a.feed_forward) * a.width
    divided = a.layers * (matrices + 3 * a.width + a.feed_forward) + 2 * a.vocabulary * a.width
    return a.parameters - divided + divided // shards
