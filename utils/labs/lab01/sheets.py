"""Data sheets, tables and offers for lab 01, as vendors print them, made from the facts."""

from typing import Any

from utils.chip.hardware import Machine, machine
from utils.facts import figure, figures

Table = dict[str, float]

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
SYSTEMS = (
    "trn1.32xlarge",
    "trn2.48xlarge",
    "trn2-ultraserver",
    "trn3-ultraserver-gen1",
    "trn3-ultraserver-gen2",
)
RELATED: dict[str, tuple[tuple[str, ...], str]] = {
    "array": (("array_side", "array_side", "tensor_clock_ghz"), "core_tflops"),
    "rows": (("partitions",), "array_side"),
    "cores": (("cores", "core_tflops"), "chip_tflops"),
    "chips": (("chips", "chip_tflops"), "system_pflops"),
    "core count": (("cores", "chips"), "system_cores"),
    "memory": (("chips", "hbm_gib"), "system_hbm_gib"),
    "memory share": (("cores", "core_hbm_gib"), "hbm_gib"),
    "bandwidth": (("chips", "hbm_tb_per_s"), "system_hbm_tb_per_s"),
    "ridge": (("ridge_flop_per_byte", "hbm_tb_per_s"), "chip_tflops"),
    "partition": (("partitions", "sbuf_kib_per_partition"), "sbuf_mib_per_core"),
    "SBUF": (("cores", "sbuf_mib_per_core"), "sbuf_mib_per_chip"),
}
"""Rows of a table that are multiplied, and the row that comes out, but for the units."""
MARKETS = ("on_demand", "capacity_block")


def sheet(key: str) -> dict[str, Any]:
    """The data sheet of a chip in the units of its vendor; None is what nobody publishes."""
    chip, instance = machine(key), machine(INSTANCES[key])
    core = core_of(key)
    result = figures(f"{key}.")

    def maybe(name: str, unit: str) -> float | None:
        item = result.get(f"{key}.{name}")
        return None if item is None or item.value is None else item.to(unit)

    dma = chip.dma_bytes_per_s is not None
    return {
        "name": chip.name,
        "chips_per_instance": instance.chips,
        "cores": chip.cores,
        "chip_tflops": _tflops(chip),
        "core_tflops": _tflops(core) if core else {},
        "sparse_tflops": maybe("sparse_rate", "TFLOPS"),
        "hbm_tb_per_s": maybe("hbm.bandwidth", "TB/s"),
        "dma_engines": int(result[f"{key}.dma.count"].number) if dma else None,
        "dma_engines_per_core": int(result[f"{key}.dma.per_core"].number) if dma else None,
        "dma_gb_per_s_per_engine": maybe("dma.rate_per_engine", "GB/s"),
    }


def _tflops(of: Machine) -> dict[str, float]:
    return {dtype: rate / 1e12 for dtype, rate in of.flops.items()}


def core_of(key: str) -> Machine | None:
    """One NeuronCore; None for a chip that has none."""
    return machine(key, "core") if key in TRAINIUM else None


def at_level(key: str, level: str) -> Machine:
    """The machine behind a data sheet: one core, one chip or its whole instance."""
    return machine(INSTANCES[key]) if level == "instance" else machine(key, level)


def table_of(system: str) -> Table:
    """The rows of a system: documented, except what is derived and says so in the task."""
    all_of, accelerator = machine(system), figure(f"{system}.accelerator").value
    key = str(accelerator).lower()
    chip, core = machine(key), machine(key, "core")
    on_chip = f"{key}.on_chip."
    return {
        "array_side": figure(f"{key}.engines.tensor.rows").number,
        "tensor_clock_ghz": figure(f"{key}.engines.tensor.clock").to("GHz"),
        "core_tflops": core.rate("bf16") / 1e12,
        "cores": chip.cores,
        "chip_tflops": chip.rate("bf16") / 1e12,
        "chips": all_of.chips,
        "system_cores": figure(f"{system}.cores").number,
        "system_pflops": figure(f"{system}.peak.bf16").to("PFLOPS"),
        "core_hbm_gib": chip.hbm_bytes / chip.cores / 2**30,
        "hbm_gib": chip.hbm_bytes / 2**30,
        "system_hbm_gib": figure(f"{system}.memory").to("GiB"),
        "hbm_tb_per_s": chip.hbm_bytes_per_s / 1e12,
        "system_hbm_tb_per_s": figure(f"{system}.hbm_bandwidth").to("TB/s"),
        "ridge_flop_per_byte": round(chip.rate("bf16") / chip.hbm_bytes_per_s, 1),
        "partitions": figure(f"{on_chip}partitions").number,
        "sbuf_kib_per_partition": figure(f"{on_chip}sbuf_per_partition").to("KiB"),
        "sbuf_mib_per_core": figure(f"{on_chip}sbuf_per_core").to("MiB"),
        "sbuf_mib_per_chip": figure(f"{on_chip}sbuf_per_chip").to("MiB"),
    }


def offer(name: str) -> dict[str, Any]:
    """An instance as its vendor offers it; None is a price or a network that nobody publishes."""

    def maybe(key: str, unit: str) -> float | None:
        result = figures(f"{name}.").get(f"{name}.{key}")
        return None if result is None or result.value is None else result.to(unit)

    return {
        "name": name,
        "hbm_gib": figure(f"{name}.memory").to("GiB"),
        "network_gbps": maybe("network", "Gbps"),
        **{f"usd_per_hour_{market}": maybe(f"price.{market}", "USD/h") for market in MARKETS},
    }
