"""What the checks of lab 11 run with."""

SHUT = (
    "utils.finetune.lora",
    "utils.finetune.decoding",
    "utils.finetune.outside",
    "utils.finetune.weekly",
)
"""What the course has of its own for this lab: closed to every answer."""

FAST = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    " --xla_cpu_parallel_codegen_split_count=1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
"""Environment of a process that compiles fast: what is counted in it does not depend on how well
the compiler optimises.
"""
