"""A second opinion: a tiny Llama of transformers, made from its configuration alone, and adapters
of peft. Nothing is downloaded.

Both libraries are imported inside the functions: together they take seconds.
"""

import os
import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING

from utils.xla import fresh

if TYPE_CHECKING:
    from peft import PeftModel
    from torch import Tensor
    from transformers import LlamaForCausalLM

QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
ENVIRONMENT = fresh.FAST | QUIET
"""For `utils.xla.fresh`: short compiles, no network, no advice on stderr."""

_MODULES = ("transformers.models.llama.modeling_llama", "peft")


def prepare() -> None:
    """Have the server of `utils.xla.fresh` import both libraries, now and once: a process that it
    forks later has them. Without it each process imports them itself."""
    os.environ.update(QUIET)
    fresh.start(*_MODULES)


def tiny_llama(
    layers: int = 1, seed: int = 0, context: int = 128, vocabulary: int = 64
) -> "LlamaForCausalLM":
    """A Llama of `layers` layers: width 32, 4 heads of queries and 2 of keys; random."""
    os.environ.update(QUIET)
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=32, intermediate_size=64, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=context,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def with_peft(
    model: "LlamaForCausalLM", targets: Collection[str], rank: int, alpha: float
) -> "PeftModel":
    """The model with adapters of peft, without dropout."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=rank, lora_alpha=alpha, target_modules=list(targets), lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )  # fmt: skip
    with warnings.catch_warnings():
        # peft 0.21 asks transformers 5.23 for an attribute by its old name.
        warnings.simplefilter("ignore", FutureWarning)
        return get_peft_model(model, config)


def from_peft(model: "PeftModel") -> "dict[str, Tensor]":
    """The adapter of a peft model under the names of `utils.training.finetune.lora`."""
    names = {".lora_A.default.weight": ".a", ".lora_B.default.weight": ".b"}
    results = {}
    for name, parameter in model.named_parameters():
        for theirs, ours in names.items():
            if name.endswith(theirs):
                plain = name.removeprefix("base_model.model.").removesuffix(theirs)
                results[plain + ours] = parameter.detach().cpu().clone()
    return results
