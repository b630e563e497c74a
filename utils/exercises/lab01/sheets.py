"""Data sheets for lab 01, as vendors print them, made from the facts: for the judge alone."""

from typing import Any

from utils.facts import figures
from utils.hardware import Machine, machine

DTYPE_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
INSTANCES = {
    "trainium1": "trn1.32xlarge",
    "trainium2": "trn2.48xlarge",
    "trainium3": "trn3-ultraserver-gen2",
    "h100": "p5.48xlarge",
    "h200": "p5en.48xlarge",
    "b200": "p6-b200.48xlarge",
}
TRAINIUM = ("trainium1", "trainium2", "trainium3")
GPUS = ("h100", "h200", "b200")


def sheet(key: str) -> dict[str, Any]:
    """The data sheet of a chip in the units of its vendor; None is what nobody publishes."""
    chip, instance = machine(key), machine(INSTANCES[key])
    core = core_of(key)
    found = figures(f"{key}.")

    def maybe(name: str, unit: str) -> float | None:
        each = found.get(f"{key}.{name}")
        return None if each is None or each.value is None else each.to(unit)

    dma = chip.dma_bytes_per_s is not None
    return {
        "name": chip.name,
        "chips_per_instance": instance.chips,
        "cores": chip.cores,
        "chip_tflops": _tflops(chip),
        "core_tflops": _tflops(core) if core else {},
        "sparse_tflops": maybe("sparse_rate", "TFLOPS"),
        "hbm_tb_per_s": maybe("hbm.bandwidth", "TB/s"),
        "dma_engines": int(found[f"{key}.dma.count"].number) if dma else None,
        "dma_engines_per_core": int(found[f"{key}.dma.per_core"].number) if dma else None,
        "dma_gb_per_s_per_engine": maybe("dma.rate_per_engine", "GB/s"),
    }


def _tflops(of: Machine) -> dict[str, float]:
    return {dtype: rate / 1e12 for dtype, rate in of.flops.items()}


def core_of(key: str) -> Machine | None:
    """One NeuronCore; None for a chip that has none."""
    return machine(key, "core") if key in TRAINIUM else None


def at_level(key: str, level: str) -> Machine:
    return machine(INSTANCES[key]) if level == "instance" else machine(key, level)
