"""Machines are what the facts say, in SI units."""

import copy
import pickle

import pytest

from utils.chip.hardware import core_sum, machine
from utils.facts import Unknown, figure

TRAINIUM = ("trainium1", "trainium2", "trainium3")
CHIPS = (*TRAINIUM, "inferentia2", "a100", "h100", "h200", "b200", "b300")
INSTANCES = (
    "trn1.2xlarge",
    "trn1.32xlarge",
    "trn2.48xlarge",
    "trn2-ultraserver",
    "trn3-ultraserver-gen1",
    "trn3-ultraserver-gen2",
    "inf2.48xlarge",
)


@pytest.mark.parametrize("key", CHIPS)
def test_a_chip_has_the_rates_and_sizes_of_its_page(key):
    chip = machine(key)
    assert (chip.level, chip.chips) == ("chip", 1)
    assert chip.flops["bf16"] == figure(f"{key}.rate.bf16").to("FLOPS") > 1e13
    memory = "capacity" if f"{key}.hbm.capacity" in chip.keys else "reported"
    assert chip.hbm_bytes == figure(f"{key}.hbm.{memory}").to("B") > 1e10
    assert chip.hbm_bytes_per_s == figure(f"{key}.hbm.bandwidth").to("B/s") > 1e11
    assert all(figure(item) for item in chip.keys)
    assert f"{key}.rate.bf16" in chip.keys
    assert "int8" not in chip.flops, "operations on integers are no FLOPs"


def test_a_gpu_has_the_memory_that_its_board_reports():
    """80 GB on a sheet are 79.6 GiB on the board, and not 74.5."""
    assert machine("h100").hbm_bytes == 81559 * 2**20
    assert all("capacity" not in key for key in machine("h100").keys)


@pytest.mark.parametrize("key", TRAINIUM)
def test_a_core_has_its_own_rates_and_its_share_of_the_memory(key):
    chip, core = machine(key), machine(key, "core")
    assert core.flops["bf16"] == figure(f"{key}.core_rate.bf16").to("FLOPS")
    assert core.hbm_bytes * chip.cores == chip.hbm_bytes
    assert core.hbm_bytes_per_s * chip.cores == pytest.approx(chip.hbm_bytes_per_s)
    assert core.dma_bytes_per_s * chip.cores == pytest.approx(chip.dma_bytes_per_s)
    assert core.dma_bytes_per_s == pytest.approx(figure(f"{key}.dma.rate_per_core").to("B/s"))
    assert (core.cores, core.name) == (1, f"{chip.name}, one NeuronCore")


@pytest.mark.parametrize("key", INSTANCES)
def test_an_instance_is_the_sum_of_its_chips_and_near_its_own_page(key):
    result = machine(key)
    assert result.chips == figure(f"{key}.accelerators").number
    assert result.cores == figure(f"{key}.cores").number
    assert result.hbm_bytes == figure(f"{key}.memory").to("B")
    assert result.hbm_bytes_per_s == pytest.approx(
        figure(f"{key}.hbm_bandwidth").to("B/s"), rel=0.01
    )
    for dtype in ("bf16", "fp32"):
        assert result.flops[dtype] == pytest.approx(
            figure(f"{key}.peak.{dtype}").to("FLOPS"), rel=0.01
        )


def test_the_links_of_an_instance_may_differ_from_those_of_the_chip():
    assert machine("trn1n.32xlarge").link_bytes_per_s == 2 * machine("trainium1").link_bytes_per_s
    assert machine("trn2.48xlarge").link_bytes_per_s < machine("trainium2").link_bytes_per_s


def test_a_gpu_counts_as_one_core_and_has_no_dma_engines_of_ours():
    gpu = machine("h100")
    assert (gpu.cores, gpu.dma_bytes_per_s, gpu.name) == (1, None, "H100")
    assert machine("p5.48xlarge").cores == 8


@pytest.mark.parametrize(
    ("key", "dtype"),
    [
        ("trainium1", "bf16"),
        ("trainium1", "fp32"),
        ("trainium2", "bf16"),
        ("trainium2", "fp8"),
        ("trainium3", "bf16"),
        ("trainium3", "mxfp8"),
    ],
)
def test_documented_core_rates_are_clock_times_array_within_a_hundredth(key, dtype):
    assert abs(core_sum(key, dtype).clock_excess) < 0.01


@pytest.mark.parametrize("key", ["trainium2", "trainium3"])
def test_fp32_rates_of_a_core_are_rounded_to_two_digits(key):
    result = core_sum(key, "fp32")
    assert result.core_flops == round(result.clock_flops, -12)


def test_chips_claim_more_than_the_sum_of_their_cores_where_they_do():
    results = {key: core_sum(key, "bf16") for key in TRAINIUM}
    assert all(0.03 < entry.chip_excess < 0.07 for entry in results.values())
    for key, item in results.items():
        assert item.sum_flops == pytest.approx(figure(f"{key}.core_sum.bf16").to("FLOPS"))
    assert abs(core_sum("trainium3", "mxfp8").chip_excess) < 0.01
    assert core_sum("trainium2", "tf32").clock_excess is None


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda: machine("trainium9"), ValueError, "trainium2"),
        (lambda: machine("trainium9", "instance"), ValueError, "no chip or instance"),
        (lambda: machine("trn2.48xlarge", "core"), ValueError, "Trainium2"),
        (lambda: machine("trainium2", "rack"), ValueError, "'core'"),
        (lambda: machine("trainium2", "instance"), ValueError, "'core'"),
        (lambda: machine("h100", "core"), ValueError, "no NeuronCores"),
        (lambda: machine("trainium4"), Unknown, "trainium4.hbm.capacity"),
        (lambda: machine("p4d.24xlarge"), Unknown, "A100 40 GB"),
        (lambda: machine("trainium1").rate("mxfp8"), Unknown, "bf16"),
        (lambda: core_sum("trainium2", "mxfp8"), Unknown, "fp8"),
    ],
)
def test_what_is_missing_is_named_with_what_there_is(ask, error, says):
    with pytest.raises(error, match=says):
        ask()


def test_a_machine_can_be_stored_copied_and_used_as_a_key():
    chip = machine("trainium2")
    assert pickle.loads(pickle.dumps(chip)) == copy.deepcopy(chip) == chip
    assert {chip: 1}[machine("trainium2")] == 1
