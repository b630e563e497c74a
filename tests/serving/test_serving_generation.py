"""The bounds of the first token and of each after it, against hand-made numbers."""

import pytest

from utils import serving
from utils.chip import collectives
from utils.chip.hardware import machine
from utils.cost.planner.architecture import architecture
from utils.serving.generation import tensor_parallel

LLAMA = architecture("llama-3.1-8b")
CHIP = machine("trainium2")


def test_one_token_reads_all_weights_and_the_cache():
    step = serving.decode(LLAMA, CHIP, context=1, batch=1)
    # 128,256 rows of tokens are not read; one pair of a key and a value is 32 x 8 x 128 numbers
    weights = 2 * (8030261248 - 128256 * 4096)
    assert step.work.bytes == weights + 2 * 2 * 32 * 8 * 128
    assert step.bound == "memory"
    assert step.seconds == step.work.bytes / CHIP.hbm_bytes_per_s


def test_two_flops_for_each_weight_and_token():
    matrices = 8030261248 - 128256 * 4096 - (2 * 32 + 1) * 4096  # without norms
    step = serving.decode(LLAMA, CHIP, context=1)
    scores = 4 * 32 * 4096
    assert step.work.flops == 2 * matrices + scores


def test_a_long_prompt_is_bound_by_compute_and_a_token_by_memory():
    assert serving.prefill(LLAMA, CHIP, tokens=2048).bound == "compute"
    assert serving.decode(LLAMA, CHIP, context=2048).bound == "memory"


def test_a_batch_shares_the_weights():
    alone = serving.decode(LLAMA, CHIP, 2048)
    eight = serving.decode(LLAMA, CHIP, 2048, batch=8)
    assert eight.work.flops == pytest.approx(8 * alone.work.flops)
    assert alone.work.bytes < eight.work.bytes < 2 * alone.work.bytes


def test_the_largest_batch_fits_and_the_next_does_not():
    batch = serving.largest_batch(LLAMA, CHIP, 4096)
    row = 4096 * 2 * 2 * 32 * 8 * 128
    weights = 2 * LLAMA.parameters
    assert weights + batch * row <= CHIP.hbm_bytes < weights + (batch + 1) * row
    assert serving.largest_batch(architecture("llama-3.1-405b"), CHIP, 1) == 0


def test_a_prefill_of_one_token_moves_what_a_decode_moves():
    first, step = serving.prefill(LLAMA, CHIP, 1), serving.decode(LLAMA, CHIP, 1)
    assert first.work.bytes == step.work.bytes


@pytest.mark.parametrize("wrong", [0, -1])
def test_nothing_is_no_prompt(wrong):
    with pytest.raises(ValueError, match="1 or more"):
        serving.prefill(LLAMA, CHIP, wrong)


def test_each_layer_of_a_divided_model_sums_twice():
    server, fabric = machine("trn2.48xlarge"), collectives.fabric("trn2.48xlarge")
    alone = tensor_parallel(LLAMA, server, fabric, 1, 2048)
    assert (alone.messages, alone.sent_bytes, alone.send_s) == (0, 0, 0)
    assert alone.compute_s == fabric.ranks * serving.decode(LLAMA, server, 2048).seconds
    four = tensor_parallel(LLAMA, server, fabric, 4, 2048, batch=3)
    assert (four.messages, four.message_bytes) == (2 * 32, 3 * 4096 * 2)
    item = collectives.seconds("all-reduce", four.message_bytes, fabric, 4)
    assert four.send_s == pytest.approx(64 * float(item.seconds))
    assert four.sent_bytes == pytest.approx(64 * float(item.bytes_sent_per_rank))
    all_ranks = tensor_parallel(LLAMA, server, fabric, 64, 2048, batch=3)
    assert all_ranks.compute_s == pytest.approx(four.compute_s / 16)
    assert all_ranks.send_s > four.send_s and all_ranks.seconds < four.seconds
    with pytest.raises(ValueError, match="ranks is 1 or more, found 0"):
        tensor_parallel(LLAMA, server, fabric, 0, 2048)
