"""Fewer bits for weights and cache: exact bytes, bounded errors; what vLLM has of it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving.test_engine import serve, traffic
from tests.serving.test_engine_llama import MODEL, one_thread  # noqa: F401  (for every test)
from utils.facts import fact
from utils.serving import quantised, vllm
from utils.serving.engine import Engine, Settings, runner

pytestmark = pytest.mark.usefixtures("xla_device")  # before any backward on the CPU
ROWS = st.lists(st.floats(-1e4, 1e4, width=32), min_size=4, max_size=4)


@settings(max_examples=60)
@given(st.lists(ROWS, min_size=1, max_size=3), st.sampled_from(["int8", "int4", "e4m3"]))
def test_a_row_is_off_by_half_a_step_of_its_largest_value_at_most(rows, fmt):
    x = torch.tensor(rows)
    off = (quantised.round_trip(x, fmt) - x).abs()
    largest = x.abs().amax(-1, keepdim=True)
    step = 1 / 16 if fmt == "e4m3" else 0.5 / quantised.LEVELS[fmt]
    assert bool((off <= largest * step * 1.001 + 1e-30).all())


def test_only_matrices_are_rounded_and_counted():
    rounded = quantised.with_weights(MODEL, "int8")
    changed = {
        name
        for (name, old), new in zip(MODEL.named_parameters(), rounded.parameters(), strict=True)
        if not torch.equal(old, new)
    }
    # Seven matrices in each of two layers, and the head.
    assert len(changed) == 15 and not any("norm" in name or "embed" in name for name in changed)
    values = 2 * (16 * 16 * 2 + 16 * 8 * 2 + 3 * 16 * 24) + 16 * 5
    rows = 2 * (16 + 8 + 8 + 16 + 24 + 24 + 16) + 5
    assert quantised.weight_bytes(MODEL) == 8 * values
    assert quantised.weight_bytes(MODEL, "int8") == values + 4 * rows
    assert quantised.weight_bytes(MODEL, "int4") == values // 2 + 4 * rows
    with pytest.raises(ValueError, match="no format 'int3': there are int8, int4, fp32"):
        quantised.round_trip(torch.zeros(1), "int3")


def quantising(shapes: Settings) -> Engine:
    return Engine(runner.Runner(MODEL, shapes, cache=runner.QuantisedCells))


@settings(max_examples=6)
@given(traffic(16))
def test_a_quantised_cache_gives_the_same_tokens_for_every_schedule(plan):
    # Not those of an exact cache, but those of the same requests served one by one.
    sequences, _ = serve(plan, quantising)
    for sequence in sequences:
        if sequence.finish != "cancelled":
            alone = quantising(Settings(plan.shapes.context, slots=1))
            again = alone.submit(sequence.request)
            alone.run()
            assert again.generated == sequence.generated


def test_a_quantised_cache_is_near_the_exact_one_and_as_small_as_it_says():
    shapes = Settings(16, slots=1, block_size=4, buckets=(8,))
    exact, small = (
        runner.Runner(MODEL, shapes, cache=kind) for kind in (None, runner.QuantisedCells)
    )
    cells = 2 * 2 * 20 * 2  # keys and values, layers, places, heads
    assert (exact.cache_bytes, small.cache_bytes) == (cells * 4 * 8, cells * (4 + 8))
    logits = [item.prefill([1, 2, 3, 4, 0, 1], 0, [1, 2]) for item in (exact, small)]
    assert 0 < abs(logits[0] - logits[1]).max() < 0.05 * np.ptp(logits[0])


def test_each_part_of_the_table_has_a_state_with_a_source():
    parts = vllm.parts()
    assert [part.section for part in parts] == sorted(part.section for part in parts)
    for part in parts:
        assert part.state.split(":")[0].split(";")[0].split(",")[0] in vllm.STATES
        assert part.options and part.facts and all(fact(key).source for key in part.facts)
    table = vllm.Parts()._repr_markdown_()
    assert table.count("](https://") == sum(len(part.facts) for part in parts)
    assert all(part.part in table and part.part in repr(vllm.Parts()) for part in parts)
