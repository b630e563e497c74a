"""The hardware figures of one chip or several, filled with what the facts say."""

from collections.abc import Mapping

from utils.chip.hardware import machine
from utils.facts import figure, figures
from utils.show.draw.hardware import Rung, core, memory_ladder
from utils.show.draw.picture import Picture


def neuroncore(chip: str) -> Picture:
    """One core of "trainium1", "trainium2" or "trainium3", with sizes, rates and clocks."""

    def of(key: str, unit: str) -> str:
        return f"{figure(f'{chip}.{key}').to(unit):,.4g} {unit}"

    def count(key: str) -> str:
        return f"{figure(f'{chip}.{key}').number:g}"

    def clock(engine: str) -> str:
        return of(f"engines.{engine}.clock", "GHz")

    partitions = f"{count('on_chip.partitions')} partitions"
    array = f"{count('engines.tensor.rows')} x {count('engines.tensor.columns')} cells"
    words = {
        "HBM": "\n".join(
            (of("hbm.capacity", "GiB"), of("hbm.bandwidth", "GB/s"), f"for {count('cores')} cores")
        ),
        "DMA": f"{count('dma.per_core')} engines\n{of('dma.rate_per_core', 'GB/s')}\nin practice",
        "SBUF": f"{of('on_chip.sbuf_per_core', 'MiB')}:\n{partitions}"
        f"\nof {of('on_chip.sbuf_per_partition', 'KiB')}",
        "PSUM": f"{of('on_chip.psum_per_core', 'MiB')}:\n{partitions}"
        f"\nof {count('on_chip.psum_banks')} banks",
        "Tensor": f"{array}, {clock('tensor')}",
        "Vector": f"{count('engines.vector.lanes')} lanes, {clock('vector')}",
        "Scalar": f"{count('engines.scalar.lanes')} lanes, {clock('scalar')}",
        "GpSimd": f"{count('engines.gpsimd.processors')} processors, {clock('gpsimd')}",
        "Sync": "no data path",
    }
    return core(
        words,
        f"One NeuronCore of {chip.capitalize()} and the HBM it shares. DMA carries data between HBM"
        " and SBUF. The Tensor Engine reads SBUF and writes PSUM; Vector and Scalar reach both,"
        " GpSimd only SBUF. Sync starts transfers.",
    )


def rungs(chip: str, domain: str) -> dict[str, Rung]:
    """What one core finds at each step away from its engines; shared things by its share.

    domain: the instance or UltraServer whose chips NeuronLink joins, such as "trn1.32xlarge".
    NeuronLink counts one direction. Bandwidth of HBM is the lower of the core's share and of what
    its DMA engines reach.
    """
    one, cores = machine(chip, "core"), figure(f"{chip}.cores").number
    cycles = figure(f"{chip}.on_chip.sbuf_latency_cycles")
    wait = None if cycles.value is None else cycles.number / _hertz(chip)
    assert one.dma_bytes_per_s and one.link_bytes_per_s
    there = figures(f"{domain}.") | figures(f"{chip}.link.")
    # The page of the Trn2 UltraServer prints the network of each of its instances.
    network = there.get(f"{domain}.network_of_instances") or there[f"{domain}.network"]
    hop, packet = (
        None if result is None else result.to("s")
        for result in map(there.get, (f"{chip}.link.latency", f"{domain}.network_latency"))
    )

    def on_chip(size: str, bandwidth: str) -> Rung:
        sizes = figure(f"{chip}.on_chip.{size}").to("B")
        return Rung(sizes, figure(f"{chip}.on_chip.{bandwidth}").to("B/s"), wait)

    return {
        "PSUM": on_chip("psum_per_core", "psum_bandwidth"),
        "SBUF": on_chip("sbuf_per_core", "tensor_bandwidth"),
        "HBM, its share": Rung(
            one.hbm_bytes,
            min(one.hbm_bytes_per_s, one.dma_bytes_per_s),
            figure(f"{chip}.dma.latency").to("s"),
        ),
        "other chips,\nNeuronLink": Rung(
            figure(f"{domain}.memory").to("B"), one.link_bytes_per_s / 2 / cores, hop
        ),
        "other servers,\nEFA": Rung(
            None, network.to("B/s") / figure(f"{domain}.cores").number, packet
        ),
    }


def _hertz(chip: str) -> float:
    """The clock of accesses to SBUF, which is the Scalar Engine's."""
    return figure(f"{chip}.engines.scalar.clock").to("Hz")


def ladder(domains: Mapping[str, str]) -> Picture:
    """The memory ladder as one core of each chip sees it.

    Args:
        domains: chip to the instance or UltraServer that NeuronLink joins.
    """
    item = {chip: rungs(chip, domain) for chip, domain in domains.items()}
    names = next(iter(item.values()))
    return memory_ladder(
        {name: {chip.capitalize(): item[chip][name] for chip in domains} for name in names},
        "Size, bandwidth and latency of what the engines of one NeuronCore reach, on logarithmic"
        " axes. The bandwidth of PSUM and SBUF is what the Tensor Engine writes and reads per"
        " cycle, times its clock. That of HBM is the lower of the core's share and the rate of its"
        " DMA engines. That of links and network is for one direction, divided among the cores."
        " Latency is the time until an access or a transfer begins, or the time of one hop.",
    )
