"""What the checks of lab 11 take from an answer."""

SHUT = (
    "utils.finetune.lora",
    "utils.finetune.decoding",
    "utils.finetune.outside",
    "utils.finetune.weekly",
)
"""What the course has of its own for this lab: closed to every answer."""
