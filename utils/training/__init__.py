"""What a training run is made of, beyond its model: data, precision, checkpoints, fine-tuning.

- `precision`: the same GPT trained in several number formats
- `loading`, `traces`, `symptoms`: a loop that waits, its profile, and what a slow run shows
- `checkpoint`, `coldstart`, `fleet`: exact resume, starts with a compile cache, many hosts
- `finetune`: LoRA with graphs that stay
- `native`: one job with DDP, FSDP2 and DTensor on gloo ranks, predicted and counted

May import: facts, course, chip, cost, xla. Used by: serving, show, labs, cli, lessons 04 to 08,
11.
"""
