"""Memory of one training step of the course's TinyGPT, as XLA's CPU compiler places it: float32,
AdamW, gradients freed before the step ends.

The state is counted exactly. Activations are those that the backward pass needs, and four habits of
this compiler that can be read in its report; none of them is a property of Trainium:
- of GELU it keeps the error function besides input and result, of the softmax a second copy (the
  one in which rows without any key are zero);
- LayerNorm is written as a batch norm over all tokens, so with a divided batch each device gathers
  the normalised tokens of all devices, and keeps them;
- the rows of the matrix that makes queries, keys and values together do not end where heads end, so
  tensor ranks gather them, and each computes all scores;
- a gathered weight (FSDP) is kept from the forward to the backward pass, not gathered twice.
What cannot be foreseen is the compiler's order of work: how many gradients live at the highest
point, between none and all of them (half is taken), and whether the backward pass has by then freed
the first activations. On ten programs for one, two and four devices the total was between 2 % below
and 6 % above the compiler's own report. Of seven that were tried afterwards six were within 3 %;
the last, with a vocabulary of 64 times its width, was foreseen 14 % too large: where logits are
nearly all there is, fewer of their copies live at once.
"""

from dataclasses import dataclass

from utils.planner.architecture import Architecture

VALUE = 4
INDEX = 8
"""Bytes of a value in float32, and of a token's number in int64."""
LAYOUTS = ("one", "data", "fsdp", "tensor")


@dataclass(frozen=True)
class CompiledStep:
    """Bytes on one device. state: weights and both moments of AdamW. batch: numbers of tokens and
    places. The rest is temporary; gradients: half of them.
    """

    state: int
    batch: int
    gradients: int
    gathered: int
    activations: int
    logits: int

    @property
    def temporaries(self) -> int:
        return self.gradients + self.gathered + self.activations + self.logits

    @property
    def total(self) -> int:
        return self.state + self.batch + self.temporaries


def tiny_gpt(vocabulary: int, width: int, heads: int, layers: int, context: int) -> Architecture:
    """The sizes of `utils.networks.TinyGPT` with these arguments."""
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
        and the vocabulary.

    >>> step = compiled_step(tiny_gpt(512, 64, 4, 2, 64), batch=8, length=64)
    >>> step.state == 12 * tiny_gpt(512, 64, 4, 2, 64).parameters
    True

    Raises ValueError for an unknown layout, or sizes that the devices do not divide.
    """
    a, n = architecture, devices
    if layout not in LAYOUTS or (layout == "one") != (n == 1):
        raise ValueError(f"layout is one of {', '.join(LAYOUTS)}, with 1 device the first")
    divided = {"one": (), "data": (batch,), "fsdp": (batch, a.width, a.vocabulary, a.positions),
               "tensor": (a.width, a.vocabulary, a.feed_forward)}[layout]  # fmt: skip
    if any(size % n for size in divided):
        raise ValueError(f"{layout} over {n} devices: {divided} must be multiples of {n}")
    here = parameters_on(a, layout, n)
    batches = n if layout in ("data", "fsdp") else 1
    tokens = batch // batches * length
    parts = n if layout == "tensor" else 1
    normalised = a.width * batches
    layer = 2 * a.width + 2 * normalised  # norms: inputs, results
    layer += 3 * a.width + a.width // parts + 2 * a.heads * length  # q, k, v, result, scores twice
    layer += 3 * a.feed_forward // parts  # before GELU, its error function, after
    ends = 2 * a.width + normalised  # the last norm, and the gradient that comes back to it
    return CompiledStep(
        state=3 * VALUE * here,
        batch=INDEX * (batch // batches * length + a.positions),
        gradients=VALUE * here // 2,
        gathered=VALUE * a.parameters if layout == "fsdp" else 0,
        activations=VALUE * tokens * (a.layers * layer + ends),
        logits=4 * VALUE * tokens * a.vocabulary // parts,
    )


def parameters_on(architecture: Architecture, layout: str, devices: int) -> int:
    """Parameters that one device holds, exactly; sizes are multiples of the devices."""
    a = architecture
    if layout == "fsdp":
        return a.parameters // devices
    if layout != "tensor":
        return a.parameters
    matrices = (4 * a.width + 2 * a.feed_forward) * a.width
    divided = a.layers * (matrices + 3 * a.width + a.feed_forward) + 2 * a.vocabulary * a.width
    return a.parameters - divided + divided // devices
