"""Adapters, decoding and memory: held to peft, to transformers and to exact algebra."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from utils.chip.hardware import machine
from utils.chip.training_memory import activation_bytes, training_bytes
from utils.cost.planner import architecture, architectures
from utils.course.catalog import ROOT
from utils.training.finetune import arithmetic, decoding, lora, outside, weekly
from utils.training.finetune.weekly import Week
from utils.xla import fresh
from utils.xla.networks import TinyGPT

TARGETS = ("q_proj", "v_proj")
LLAMA = architecture("llama-2-7b")
pytestmark = pytest.mark.usefixtures("xla_device")  # before any backward on the CPU


def gpt(context: int = 48) -> TinyGPT:
    torch.manual_seed(3)
    return TinyGPT(20, width=16, heads=2, layers=2, context=context)


# Adapters


@settings(max_examples=30)
@given(
    st.integers(1, 6), st.integers(1, 9), st.integers(1, 9), st.floats(0.5, 32), st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
def test_a_merged_layer_computes_what_the_adapted_one_did(rank, inputs, outputs, alpha, bias, seed):
    torch.manual_seed(seed)
    layer = lora.LoRALinear(nn.Linear(inputs, outputs, bias, dtype=torch.float64), rank, alpha)
    x = torch.randn(5, inputs, dtype=torch.float64)
    assert torch.equal(layer(x), layer.base(x))  # b is zero at first
    layer.b.data.normal_()
    assert not torch.equal(layer(x), layer.base(x))
    assert torch.allclose(layer.merged()(x), layer(x), rtol=1e-10, atol=1e-10)
    by_hand = layer.base.weight + alpha / rank * layer.b @ layer.a
    assert torch.allclose(layer.merged().weight, by_hand, rtol=1e-10, atol=1e-10)


def test_only_the_adapters_are_trained_and_the_base_stays() -> None:
    model = gpt()
    plain = {name: item.clone() for name, item in model.state_dict().items()}
    names = lora.add(model, ("qkv", "down"), rank=2, alpha=4)
    assert names == ("blocks.0.qkv", "blocks.0.down", "blocks.1.qkv", "blocks.1.down")
    counts = lora.parameters(model)
    assert counts.trainable == 2 * 2 * ((16 + 48) + (64 + 16))
    optimizer = torch.optim.AdamW(lora.trainable(model), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randint(0, 20, (2, 8))).square().mean().backward()
        optimizer.step()
    after = {name.replace(".base", ""): item for name, item in model.state_dict().items()}
    assert all(torch.equal(after[name], item) for name, item in plain.items())
    frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
    assert frozen and all(item.grad is None for item in frozen)
    moments = 2 * 4 * counts.trainable
    assert lora.optimizer_bytes(optimizer) == moments + 4 * len(lora.trainable(model))
    assert lora.merge(model) == 4 and lora.merge(model) == 0
    assert set(model.state_dict()) == set(plain)


def test_an_adapter_can_be_stored_and_loaded_and_errors_say_what_to_do() -> None:
    first, second = gpt(), gpt()
    for model in (first, second):
        lora.add(model, ("up",), rank=3, alpha=6)
    for item in lora.trainable(first):
        item.data.normal_()
    lora.load(second, lora.adapter(first))
    ids = torch.randint(0, 20, (2, 8))
    assert torch.equal(first(ids), second(ids))
    other = gpt()
    lora.add(other, ("up",), rank=2, alpha=6)
    with pytest.raises(ValueError, match=r"\(3, 16\) in the adapter and \(2, 16\) in the model"):
        lora.load(other, lora.adapter(first))
    with pytest.raises(ValueError, match="no linear layer is called 'query'; there are down, head"):
        lora.add(gpt(), ("query",), rank=2, alpha=6)
    with pytest.raises(ValueError, match="rank is 0"):
        lora.LoRALinear(nn.Linear(2, 2), 0, 1.0)


def test_peft_computes_trains_and_merges_the_same() -> None:
    """The outside case: peft's LoRA on a Llama of transformers, to the bit."""
    theirs = outside.with_peft(outside.tiny_llama(), TARGETS, rank=4, alpha=6)
    torch.manual_seed(1)
    for item in lora.trainable(theirs):
        item.data.normal_(0, 0.1)
    ours = outside.tiny_llama()
    lora.add(ours, TARGETS, rank=4, alpha=6)
    lora.load(ours, outside.from_peft(theirs))
    assert lora.parameters(ours) == lora.parameters(theirs)
    ids = torch.randint(0, 64, (2, 12))
    for model in (ours, theirs):
        optimizer = torch.optim.AdamW(lora.trainable(model), lr=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
    assert torch.equal(ours(ids).logits, theirs(ids).logits)
    mine, stored = lora.adapter(ours), outside.from_peft(theirs)
    assert mine.keys() == stored.keys()
    assert all(torch.equal(mine[name], stored[name]) for name in mine)
    lora.merge(ours)
    plain = theirs.merge_and_unload().state_dict()
    assert all(
        torch.allclose(entry, plain[name], atol=1e-7) for name, entry in ours.state_dict().items()
    )


def test_libraries_imported_before_the_fork_leave_the_devices_alone() -> None:
    """In a process of its own: this one's server runs already, and has not imported them."""
    code = (
        "import sys; from utils.xla import fresh; from utils.training.finetune import outside\n"
        "def found():\n"
        "    import torch_xla.runtime as xr\n"
        "    return 'peft' in sys.modules, xr.global_runtime_device_count()\n"
        "outside.prepare()\n"
        "print(fresh.run(found, environment={'CPU_NUM_DEVICES': '3'}, seconds=300))"
    )
    message = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert message.stdout.strip() == "(True, 3)", message.stderr


def backward_on_the_cpu_then_on_xla(device_first: bool) -> bool:
    import torch_xla

    if device_first:
        torch_xla.device()
    torch.ones(2, requires_grad=True).sum().backward()
    x = torch.ones(2).to(torch_xla.device()).requires_grad_()
    x.sum().backward()
    return x.grad.cpu().tolist() == [1, 1]


def test_a_first_backward_on_the_cpu_needs_the_device_before_it() -> None:
    """Why the lesson's processes ask for the device first: torch makes its queues only once."""
    assert fresh.run(backward_on_the_cpu_then_on_xla, True, seconds=300)
    with pytest.raises(fresh.Raised, match="device_ready_queues_"):
        fresh.run(backward_on_the_cpu_then_on_xla, False, seconds=300)


# Decoding


@settings(max_examples=8)
@given(st.lists(st.integers(0, 19), min_size=1, max_size=16), st.integers(1, 8))
def test_all_ways_to_decode_write_the_same(prompt: list[int], count: int) -> None:
    model = gpt()
    wanted = decoding.repeated(model, prompt, count)
    assert torch.equal(decoding.growing(model, prompt, count), wanted)
    assert torch.equal(decoding.fixed(model, prompt, count, (4, 8, 16), 48), wanted)


def test_logits_of_the_cache_are_those_of_the_model() -> None:
    model = gpt()
    ids = torch.randint(0, 20, (3, 9))
    cache = decoding.empty(model, 3, 12)
    with torch.no_grad():
        wanted = model(ids)
        results = [decoding.advance(model, cache, ids[:, :4], torch.tensor([0]))]
        results += [
            decoding.advance(model, cache, ids[:, place : place + 1], torch.tensor([place]))
            for place in range(4, 9)
        ]
    assert torch.allclose(torch.cat(results, 1), wanted, atol=1e-5)
    assert cache.bytes == 2 * 2 * 3 * 12 * 16 * 4


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: decoding.fixed(gpt(), [1] * 8, 12, (8,), 16), "a cache for 20, and this one has"),
        (lambda: decoding.fixed(gpt(), [1] * 9, 2, (8,), 16), "no bucket holds a sequence of 9"),
        (lambda: decoding.empty(gpt(), 1, 49), "capacity is 1 to 48"),
        (lambda: arithmetic.adapter_parameters(LLAMA, 8, ("qkv",)), "no target 'qkv'; there are q"),
        (lambda: arithmetic.adapter_parameters(LLAMA, 0, ("q_proj",)), "rank is 0"),
        (lambda: arithmetic.usable(machine("trainium1"), 1.0), "reserve is a share"),
        (lambda: arithmetic.cache_bytes(LLAMA, 0, 8), "rows and capacity"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def graphs_of_decoding() -> list[int]:
    import torch_xla

    from utils.xla.meter import Meter

    model, counts = gpt(96).to(torch_xla.device()), []
    for prompt, count in (([1, 2], 5), ([3, 4, 5], 64), ([1] * 6, 5)):
        with Meter() as m:
            decoding.fixed(model, prompt, count, (4, 8), 96)
        counts.append(m.compiles)
    return counts


def test_64_tokens_take_one_graph_and_each_bucket_one() -> None:
    assert fresh.run(graphs_of_decoding, environment=fresh.FAST, seconds=300) == [2, 0, 1]


# Weeks


def test_two_weeks_ask_for_the_same_graphs_in_processes_of_their_own(tmp_path: Path) -> None:
    week = Week(steps=2)
    weeks = (week, replace(week, base=5, start=6, data=7, lr=0.011), replace(week, rank=2))
    one, two, other = (
        fresh.run(weekly.run, item, tmp_path / str(i), environment=fresh.FAST, seconds=300)
        for i, item in enumerate(weeks)
    )
    assert one.compiles == two.compiles == (1, 1)
    assert one.keys == two.keys and len(one.keys) == 2 and one.adapter != two.adapter
    assert not set(one.keys) & set(other.keys)
    later = fresh.run(weekly.run, weeks[1], tmp_path / "0", environment=fresh.FAST, seconds=300)
    assert later.misses == 0 and later.hits + later.failures == 2


def test_data_is_free_and_shapes_are_not() -> None:
    week = Week(steps=2)
    pairs = {
        "text": (week, replace(week, data=7)),
        "rank": (week, replace(week, rank=3, alpha=6.0)),
        "scale 1": (week, replace(week, alpha=4.0)),
    }
    result = fresh.run(weekly.changes, pairs, environment=fresh.FAST, seconds=300)
    assert result == {"text": 0, "rank": 2, "scale 1": 2}


# Memory


@settings(max_examples=30)
@given(st.sampled_from([n for n in architectures() if n.startswith("llama")]), st.integers(1, 256))
def test_adapters_grow_with_the_rank_and_stay_small(name: str, rank: int) -> None:
    a = architecture(name)
    every = arithmetic.ATTENTION + arithmetic.PERCEPTRON
    parts = sum(arithmetic.adapter_parameters(a, rank, (target,)) for target in every)
    assert arithmetic.adapter_parameters(a, rank, every) == parts
    assert parts == rank * arithmetic.adapter_parameters(a, 1, every)
    matrices = sum(math.prod(shape) for shape in arithmetic.shapes(a).values())
    assert matrices == a.matrices_on(1)


def test_published_counts_of_trainable_parameters() -> None:
    """What peft prints for Llama 2 7B, rank 8 on q and v: 4,194,304 of 6,742,609,920 in all."""
    a = architecture("llama-2-7b")
    added = arithmetic.adapter_parameters(a, 8, ("q_proj", "v_proj"))
    assert (added, a.parameters + added) == (4_194_304, 6_742_609_920)


def test_the_arithmetic_of_adapters_is_that_of_a_real_llama() -> None:
    from utils.cost.planner import Architecture

    model = outside.tiny_llama(layers=2)
    a = Architecture("tiny", 2, 32, 4, 2, 64, 64)
    assert a.parameters == sum(parameter.numel() for parameter in model.parameters())
    every = arithmetic.ATTENTION + arithmetic.PERCEPTRON
    lora.add(model, every, rank=3, alpha=6)
    assert lora.parameters(model).trainable == arithmetic.adapter_parameters(a, 3, every)


@settings(max_examples=10)
@given(st.integers(64, 32768), st.integers(1, 8), st.integers(1, 64))
def test_adapters_need_less_and_who_holds_a_replica_has_the_room(length, rows, rank) -> None:
    a = LLAMA
    small, large = arithmetic.lora(a, length, rows, rank), arithmetic.full(a, length, rows)
    assert small.total < large.total and small.activations == large.activations
    assert small.frozen == 2 * a.parameters
    for need in (small, large):
        for chip in ("trainium1", "trainium2", "trainium3"):
            count = arithmetic.cores(need, chip)
            item = arithmetic.usable(machine(chip, "core"))
            assert count * item >= need.total and (count == 1 or count / 2 * item < need.total)
            name = arithmetic.smallest_instance(need, chip)
            if name:
                assert arithmetic.usable(machine(name)) >= need.total


def test_what_the_lesson_says_of_7b_on_one_core_and_of_the_adapters_of_13b() -> None:
    """The room that is left on a core of Trainium1 is less than one layer needs in backward."""
    a, b = architecture("llama-2-7b"), architecture("llama-2-13b")
    left = arithmetic.usable(machine("trainium1", "core")) - arithmetic.lora(a, 2048).total
    layer = activation_bytes(1, 1, 2048, a.width, a.heads, "selective")
    assert 0 < left < layer and round(left / 1e9, 1) == round(layer / 1e9, 1) == 0.3
    every = arithmetic.adapter_parameters(b, 16, arithmetic.ATTENTION + arithmetic.PERCEPTRON)
    assert round(training_bytes(every).total / 1e9, 2) == 1.0
