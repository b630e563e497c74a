"""What the checks of lab 11 take from an answer."""

SHUT = (
    "utils.training.finetune.lora",
    "utils.training.finetune.decoding",
    "utils.training.finetune.outside",
    "utils.training.finetune.weekly",
)
"""What the course has of its own for this lab: closed to every answer."""
