"""Sizes of a transformer, whole and on one of the ranks that share a layer."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from utils.facts.records import content

CASES = "plan_cases.yaml"


@dataclass(frozen=True)
class Architecture:
    """A decoder with attention and a perceptron in each layer, or a mixture of experts.

    width: of the hidden states. heads, key_value_heads: of queries, and of keys and values (fewer
        when queries share them). feed_forward: width inside the perceptron.
    gated: three matrices there instead of two. biases: in every linear layer but the head.
    norm_vectors: 1 (RMSNorm) or 2 (LayerNorm). positions: rows of a table of positions, 0 without.
    tied: the head uses the table of tokens. dropout: masks are kept for the backward pass.
    head_size: values of a head; 0 if the heads share the width.
    experts: perceptrons of a layer; a router sends each token to `active_experts` of them.
    others: parameters of a layer beside all these (sinks, norms of queries and keys).

    Raises ValueError for a width or heads that cannot be divided, and for experts out of range.

    >>> architecture("llama-3.1-8b").parameters
    8030261248
    """

    name: str
    layers: int
    width: int
    heads: int
    key_value_heads: int
    feed_forward: int
    vocabulary: int
    gated: bool = True
    biases: bool = False
    norm_vectors: int = 1
    positions: int = 0
    tied: bool = False
    dropout: bool = False
    head_size: int = 0
    experts: int = 1
    active_experts: int = 1
    others: int = 0

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in SIZES}
        wrong = [name for name, size in sizes.items() if size < 1]
        if wrong:
            raise ValueError(f"{self.name}: {wrong[0]} is {sizes[wrong[0]]}, allowed is 1 or more")
        if not 1 <= self.active_experts <= self.experts or min(self.head_size, self.others) < 0:
            raise ValueError(
                f"{self.name}: {self.active_experts} active of {self.experts} experts, head_size"
                f" {self.head_size}, others {self.others}: allowed are 1 to experts, and 0 or more"
            )
        for large, small in (("width", "heads"), ("heads", "key_value_heads")):
            if sizes[large] % sizes[small] and not (large == "width" and self.head_size):
                raise ValueError(
                    f"{self.name}: {large} {sizes[large]} is not a multiple of {small}"
                    f" {sizes[small]}: change one of them"
                )

    @property
    def head_width(self) -> int:
        """Values of one head."""
        return self.head_size or self.width // self.heads

    @property
    def router(self) -> int:
        """Parameters that choose among experts; none without them."""
        return (self.experts > 1) * self.experts * (self.width + self.biases)

    @property
    def layer_parameters(self) -> int:
        """Of one layer."""
        return int(self.layer_on(1))

    @property
    def head_parameters(self) -> int:
        """Of the head; none if it is tied to the embedding."""
        return 0 if self.tied else self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """All of them, exactly."""
        ends = (self.vocabulary + self.positions + self.norm_vectors) * self.width
        return self.layers * self.layer_parameters + ends + self.head_parameters

    @property
    def active_parameters(self) -> int:
        """Of those, the ones that a token uses: all but the experts that it is not sent to."""
        idle = self.experts - self.active_experts
        return self.parameters - self.layers * idle * int(self.expert_on(1))

    def matrices_on(self, tensor: Any, load: Any = 1) -> Any:
        """Elements of the matrices of a layer that a token passes on one of `tensor` ranks, an int
        or an array. load: rows of its experts, by the mean of all ranks.

        Keys and values with fewer heads than ranks are held several times.
        """
        keys = -(-self.key_value_heads // tensor)
        attention = 2 * (self.heads / tensor + keys) * self.head_width
        rows = self.active_experts * load * (2 + self.gated) * self.feed_forward / tensor
        router = (self.experts > 1) * self.experts
        return self.width * (attention + rows + router)

    def expert_on(self, tensor: Any) -> Any:
        """Parameters of one perceptron on one of `tensor` ranks."""
        inside = self.feed_forward / tensor
        biases = self.biases * ((1 + self.gated) * inside + self.width)
        return self.width * (2 + self.gated) * inside + biases

    def shared_on(self, tensor: Any) -> Any:
        """Parameters of a layer beside its perceptrons on one of `tensor` ranks: the router, norms,
        and biases that are added after a sum over the ranks, are on each.
        """
        keys = -(-self.key_value_heads // tensor)
        matrices = self.width * 2 * (self.heads / tensor + keys) * self.head_width
        biases = self.biases * ((self.heads / tensor + 2 * keys) * self.head_width + self.width)
        norms = 2 * self.norm_vectors * self.width
        return matrices + biases + norms + self.router + self.others

    def layer_on(self, tensor: Any, expert: Any = 1) -> Any:
        """Parameters of a layer on one of `tensor` ranks, and of `expert` that divide experts."""
        return self.shared_on(tensor) + self.experts / expert * self.expert_on(tensor)

    def vocabulary_on(self, tensor: Any) -> Any:
        """Rows of the table of tokens on one of `tensor` ranks; the last may be padding."""
        return -(-self.vocabulary // tensor)

    def layer_flops(self, length: int, tensor: Any = 1, load: Any = 1) -> tuple[Any, Any]:
        """Forward, for one token on one of `tensor` ranks: (matrix products with weights, with each
        other). Of the scores all are counted, as is usual, though a causal mask leaves half.
        """
        scores = 4 * length * self.heads * self.head_width / tensor
        return 2 * self.matrices_on(tensor, load), scores

    def flops_per_token(self, length: int) -> float:
        """Of training, without recomputation: three times the forward pass, head included.

        Chowdhery et al., "PaLM", JMLR 24 (2023), appendix B, with the parameters of matrices only.
        """
        products, scores = self.layer_flops(length)
        return 3 * (self.layers * (products + scores) + 2 * self.vocabulary * self.width)


SIZES = ("layers", "width", "heads", "key_value_heads", "feed_forward", "vocabulary")


@cache
def case_file() -> Mapping[str, Any]:
    """What `plan_cases.yaml` holds, read once; see its comments."""
    return content(CASES)


def _known() -> Mapping[str, Any]:
    return case_file()["architectures"]


def architectures() -> tuple[str, ...]:
    """Names of the architectures with published sizes."""
    return tuple(_known())


def architecture(name: str) -> Architecture:
    """One of `architectures()`. Raises ValueError with those that there are."""
    if name not in _known():
        raise ValueError(f"no architecture {name!r}; there are {', '.join(_known())}")
    fields = {k: v for k, v in _known()[name].items() if k in Architecture.__dataclass_fields__}
    return Architecture(name=name, **fields)


def published_parameters(name: str) -> tuple[float, str]:
    """(parameters as published, address of the page that says so)."""
    read = case_file()
    entry = read["architectures"][name]
    return entry["published_parameters"], read["sources"][entry["source"]]["url"]
