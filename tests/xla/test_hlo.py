"""Costs of graphs: against formulas, torch's own counter, and convolutions of ones."""

import pytest
import torch
import torch_xla
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from utils.chip import roofline
from utils.xla import graph, hlo, networks

DEVICE = torch_xla.device()
FEW = settings(max_examples=30)
SIZE = st.integers(1, 9)


def on_device(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype).to(DEVICE)


def cost_of(*tensors) -> hlo.Cost:
    return hlo.cost(graph.hlo_text(*tensors))


def by_torch(run) -> int:
    """What torch.utils.flop_counter counts on the CPU: matrix products and convolutions."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def step(model, x, device):
    """Forward and backward; returns all that has to be computed."""
    out = model(x)
    out.float().square().mean().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    return [out, *(gradient for gradient in gradients if gradient is not None)]


class Attention(torch.nn.Module):
    def forward(self, x):
        q, k, v = x.unbind(0)
        return functional.scaled_dot_product_attention(q, k, v)


MODELS = {
    "mlp": (networks.mlp, lambda: torch.ones(16, 32)),
    "gpt": (lambda: networks.TinyGPT(50), lambda: torch.zeros(2, 16, dtype=torch.long)),
    "attention": (Attention, lambda: torch.ones(3, 2, 4, 16, 8)),
    "embedding": (lambda: torch.nn.Embedding(50, 8), lambda: torch.zeros(5, dtype=torch.long)),
    "strides": (lambda: torch.nn.Conv2d(3, 4, 3, stride=2), lambda: torch.ones(2, 3, 9, 9)),
    "groups": (lambda: torch.nn.Conv1d(4, 8, 3, groups=2), lambda: torch.ones(2, 4, 10)),
}


@pytest.mark.parametrize("name", MODELS)
def test_matrix_flops_of_a_forward_pass_are_those_of_torchs_counter(name):
    make, data = MODELS[name]
    model, x = make(), data()
    expected = by_torch(lambda: model(x))
    assert cost_of(model.to(DEVICE)(x.to(DEVICE))).matrix_flops == expected


# Attention alone has nothing to train; torch's counter takes the weights' gradient of a grouped
# convolution as if it had no groups.
@pytest.mark.parametrize(
    "name", [model for model in MODELS if model not in ("attention", "groups")]
)
def test_matrix_flops_of_a_backward_pass_too(name):
    make, data = MODELS[name]
    model, x = make().to(DEVICE), data().to(DEVICE)
    result = cost_of(*step(model, x, DEVICE)).matrix_flops
    model, x = make(), data()
    assert result == by_torch(lambda: step(model, x, "cpu"))


@FEW
@given(batch=SIZE, m=SIZE, k=SIZE, n=SIZE)
def test_a_batched_product_has_two_flops_for_each_product(batch, m, k, n):
    cost = cost_of(on_device(batch, m, k) @ on_device(batch, k, n))
    assert cost.flops == cost.by_operator["dot"].flops == 2 * batch * m * k * n
    assert cost.bytes_fused == 4 * batch * (m * k + k * n + m * n)
    assert cost.uncounted == {}


@FEW
@given(data=st.data())
def test_a_convolution_counts_products_of_values_and_not_of_padding(data):
    draw = data.draw
    size, kernel = draw(st.integers(3, 9)), draw(st.integers(1, 3))
    options = {
        "stride": draw(st.integers(1, 3)),
        "padding": draw(st.integers(0, kernel - 1)),
        "groups": draw(st.sampled_from([1, 2])),
    }
    transposed = draw(st.booleans())
    if not transposed:
        options["dilation"] = draw(st.integers(1, 1 + (size > 2 * kernel)))
    convolve = functional.conv_transpose1d if transposed else functional.conv1d
    x, w = torch.ones(2, 4, size), torch.ones(4, 4 // options["groups"], kernel)
    # Every product of two ones adds one to the sum of the result.
    products = convolve(x, w, **options).sum()
    result = cost_of(convolve(x.to(DEVICE), w.to(DEVICE), **options))
    assert result.by_operator["convolution"].flops == 2 * products


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_all_three_products_of_a_convolution_cost_the_same(groups):
    x, w = on_device(2, 4, 8, 8).requires_grad_(), on_device(4, 4 // groups, 3, 3).requires_grad_()
    result = functional.conv2d(x, w, padding=1, stride=2, groups=groups)
    forward = cost_of(result).matrix_flops
    result.backward(torch.ones_like(result))
    assert cost_of(x.grad).matrix_flops == cost_of(w.grad).matrix_flops == forward


def test_padding_is_all_that_torchs_counter_has_more():
    model, x = networks.cnn(), torch.ones(2, 3, 8, 8)
    more = by_torch(lambda: model(x)) / cost_of(model.to(DEVICE)(x.to(DEVICE))).matrix_flops
    assert 1 < more < 2


@FEW
@given(m=SIZE, k=SIZE, n=SIZE)
def test_the_formula_of_a_product_is_what_its_graph_costs(m, k, n):
    work, cost = roofline.gemm(m, k, n, "fp32"), cost_of(on_device(m, k) @ on_device(k, n))
    assert (cost.flops, cost.bytes_fused) == (work.flops, work.bytes)


@FEW
@given(batch=SIZE, heads=SIZE, length=st.integers(2, 9), width=SIZE)
def test_the_formula_of_attention_is_what_its_graph_costs(batch, heads, length, width):
    q, k, v = (on_device(batch, heads, length, width) for _ in range(3))
    cost = cost_of(functional.scaled_dot_product_attention(q, k, v))
    fused = roofline.attention(batch, heads, length, width, "fp32")
    apart = roofline.attention(batch, heads, length, width, "fp32", fused=False)
    assert cost.matrix_flops == fused.flops
    scale = 4  # the root of the width may be an input
    assert fused.bytes <= cost.bytes_fused <= fused.bytes + 2 * scale
    assert cost.bytes_unfused > apart.bytes
    assert cost.transcendentals == batch * heads * length * length


@FEW
@given(rows=st.integers(20, 40), tokens=SIZE, width=SIZE)
def test_an_embedding_moves_its_rows_and_not_the_table(rows, tokens, width):
    ids = on_device(tokens, dtype=torch.int32)
    cost = cost_of(functional.embedding(ids, on_device(rows, width)))
    work = roofline.embedding(tokens, width, "fp32")
    assert (cost.flops, cost.bytes_fused) == (0, work.bytes) == (work.flops, work.bytes)
    assert cost.by_operator["gather"].bytes >= work.bytes


def test_elementwise_operators_sums_and_transcendentals():
    x = on_device(4, 8)
    scaled = cost_of(x * x.exp())
    assert (scaled.flops, scaled.transcendentals) == (32, 32)
    assert scaled.bytes_fused == roofline.elementwise(32, "fp32").bytes
    assert cost_of(x.sum()).flops == 31 == cost_of(x.max()).flops
    assert cost_of(x.sum(0)).flops == 3 * 8
    assert cost_of(x.cumsum(0)).flops == (1 + 2 + 3) * 8
    assert cost_of(x.t().reshape(2, 16)).flops == 0
    integers = on_device(4, 8, dtype=torch.int32)
    assert cost_of(integers + integers, integers * integers).flops == 0


def test_bytes_follow_the_dtype_of_each_value():
    x = on_device(4, 8, dtype=torch.bfloat16)
    assert cost_of(x + x).bytes_fused == 2 * 2 * 32
    assert cost_of(x.float()).bytes_unfused == (2 + 4) * 32
    assert cost_of(x > 0).bytes_fused == (2 + 1) * 32


def test_every_operator_on_its_own_reads_and_writes_memory():
    x, y = on_device(4, 8), on_device(4, 8)
    one, two = cost_of(x * y), cost_of((x * y) * y)
    assert one.bytes_unfused == 3 * 128 == one.bytes_fused
    assert two.bytes_unfused == 6 * 128
    assert two.bytes_fused == 3 * 128


def test_of_an_input_only_the_parts_that_are_taken_are_read():
    x = on_device(10, 6)
    assert cost_of(x[1:3, 2:] * x[1:3, 2:]).bytes_fused == 2 * 4 * (2 * 4)
    assert cost_of(x[0].exp(), x[4].exp()).bytes_fused == 2 * 4 * (2 * 6)
    assert cost_of(x[0].exp(), x.exp()).bytes_fused == 4 * (60 + 6 + 60)
    assert cost_of(x[0] * x[0], x).bytes_fused == 4 * (6 + 6), "x itself is there already"


def test_scatter_touches_what_it_adds_to():
    table, rows = on_device(100, 8), on_device(3, 8)
    ids = on_device(3, dtype=torch.long)
    cost = cost_of(table.index_add(0, ids, rows)).by_operator["scatter"]
    assert cost.flops == rows.numel()
    assert cost.bytes < 4 * table.numel()


def test_pooling_and_its_gradient_compare_and_add():
    x = on_device(1, 1, 4, 4).requires_grad_()
    pooled = functional.max_pool2d(x, 2)
    assert cost_of(pooled).by_operator["reduce-window"].flops == 4 * 3
    pooled.sum().backward()
    assert cost_of(x.grad).by_operator["select-and-scatter"].flops >= 4


def test_what_cannot_be_counted_is_named():
    x = on_device(4, 8)
    assert cost_of(x.sort().values).uncounted == {"sort": 1}
    assert cost_of(torch.rand(4, device=DEVICE)).uncounted == {"rng-bit-generator": 1}
    assert cost_of(x.int() @ x.t().int()).uncounted == {"dot of s32": 1}
    assert cost_of(x @ x.t()).uncounted == {}


def text(*lines: str) -> str:
    return "\n".join(
        [
            "HloModule m",
            "%add (a: f32[], b: f32[]) -> f32[] {",
            "  %a = f32[] parameter(0)",
            "  %b = f32[] parameter(1)",
            "  ROOT %c = f32[] add(%a, %b)",
            "}",
            "%body (s: f32[8]) -> f32[8] {",
            "  %s = f32[8]{0} parameter(0)",
            "  ROOT %m = f32[8]{0} multiply(f32[8]{0} %s, f32[8]{0} %s)",
            "}",
            "%none (s: f32[8]) -> f32[8] {",
            "  ROOT %n = f32[8]{0} parameter(0)",
            "}",
            "%test (s: f32[8]) -> pred[] {",
            "  %s.1 = f32[8]{0} parameter(0)",
            "  ROOT %t = pred[] constant(true)",
            "}",
            "ENTRY %main (p: f32[8], i: s32[2]) -> f32[8] {",
            '  %p = f32[8]{0:T(8)} parameter(0), metadata={op_name="x(y"}',
            "  %i = s32[2]{0} parameter(1)",
            *lines,
            "}",
        ]
    )


@pytest.mark.parametrize(
    ("line", "flops", "uncounted"),
    [
        ("while(%p), condition=%test, body=%body", 8, {"while": 1}),
        (
            'while(%p), condition=%test, body=%body, backend_config={"known_trip_count":{"n":"5"}}',
            40,
            {},
        ),
        ("call(%p), to_apply=%body", 8, {}),
        ("fusion(%p), kind=kLoop, calls=%body", 8, {}),
        ("conditional(%i, %p, %p), branch_computations={%body, %none}", 8, {"conditional": 1}),
        ('custom-call(%p), custom_call_target="AwsNeuronErf"', 0, {"custom-call": 1}),
        ("all-reduce(%p), replica_groups={{0,1}}, to_apply=%add", 0, {"all-reduce": 1}),
        ("map(%p, %p), dimensions={0}, to_apply=%add", 8, {}),
        ("batch-norm-training(%p, %p, %p), epsilon=1e-05, feature_index=0", 56, {}),
        ("opcode-of-tomorrow(%p)", 0, {"opcode-of-tomorrow": 1}),
        ('negate(%p), metadata={op_name="calls=%body"}', 8, {}),
    ],
)
def test_operators_that_torch_xla_seldom_writes(line, flops, uncounted):
    cost = hlo.cost(text(f"  ROOT %r = f32[8]{{0}} {line}"))
    assert (cost.flops, cost.uncounted) == (flops, uncounted)
    assert cost.bytes_fused == 64 + 8 * ("%i" in line)
    if line.startswith("fusion"):
        assert cost.bytes_unfused == 64


def test_complex_numbers_are_named_and_not_counted_as_real_ones():
    cost = hlo.cost(text("  %z = c64[8]{0} complex(%p, %p)", "  ROOT %w = c64[8]{0} add(%z, %z)"))
    assert cost.flops == 0
    assert cost.uncounted == {"complex": 1, "add of c64": 1}
    assert cost.bytes_fused == 32 + 64


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("f8e4m3fn", 8), ("s4", 4), ("pred", 8), ("bf16", 16), ("f64", 64), ("c128", 128)],
)
def test_bytes_of_types_come_from_their_bits(dtype, size):
    assert hlo.cost(text(f"  ROOT %r = {dtype}[8]{{0}} convert(%p)")).bytes_fused == 32 + size


def test_a_dynamic_size_counts_as_its_upper_limit():
    assert hlo.cost(text("  ROOT %r = f32[<=4,2]{1,0} opcode(%p)")).bytes_fused == 32 + 32


@pytest.mark.parametrize("show", [graph.ir_text, graph.stablehlo_text])
def test_other_texts_are_refused_with_what_to_give_instead(show):
    with pytest.raises(ValueError, match="hlo_text"):
        hlo.cost(show(on_device(3) * 2))


def test_what_nothing_depends_on_is_not_counted():
    cost = hlo.cost(text("  %dead = f32[8]{0} negate(%p)", "  ROOT %r = f32[8]{0} abs(%p)"))
    assert cost.flops == 8
    assert cost.bytes_unfused == cost.bytes_fused == 64


def test_of_a_table_never_more_than_all_of_it_is_read():
    ids = on_device(50, dtype=torch.int32)
    cost = cost_of(functional.embedding(ids, on_device(3, 8)))
    assert cost.bytes_fused == 4 * (50 + 3 * 8 + 50 * 8)


def test_an_update_in_place_touches_what_it_replaces():
    line = "  ROOT %r = f32[8]{0} dynamic-update-slice(%p, %u, %s)"
    cost = hlo.cost(text("  %u = f32[2]{0} slice(%p)", "  %s = s32[] constant(1)", line))
    assert cost.by_operator["dynamic-update-slice"].bytes == 2 * 8 + 4


def test_norms_cost_about_what_their_written_out_form_costs():
    x, scale = on_device(16, 64).requires_grad_(), on_device(64).requires_grad_()

    def written_out(x):
        away = x - x.mean(-1, keepdim=True)
        spread = (away * away).mean(-1, keepdim=True)
        return away * torch.rsqrt(spread + 1e-5) * scale

    flops = []
    for norm in (lambda x: functional.layer_norm(x, (64,), scale), written_out):
        out = norm(x)
        gradients = torch.autograd.grad(out, (x, scale), torch.ones_like(out))
        flops.append((cost_of(out).flops, cost_of(*gradients).flops))
    (forward, backward), (forward_out, backward_out) = flops
    # batch-norm-training always scales and shifts, here by 1 and 0.
    assert forward - forward_out == pytest.approx(2 * 16 * 64, rel=0.05)
    assert backward == pytest.approx(backward_out, rel=0.2)


def test_indices_are_read_whole():
    assert hlo.cost(text("  ROOT %r = f32[2]{0} gather(%p, %i)")).bytes_fused == 8 + 8 + 8
    assert hlo.cost(text("  ROOT %r = f32[2]{0} gather(%p, %p)")).bytes_fused == 32 + 8


def test_what_a_combiner_hides_is_named_too():
    line = "  ROOT %r = f32[] reduce(%p, %z), dimensions={0}, to_apply=%odd"
    odd = "%odd (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
    odd += '  ROOT %c = f32[] custom-call(%a), custom_call_target="odd"\n}\n'
    cost = hlo.cost(odd + text("  %z = f32[] constant(0)", line))
    assert (cost.flops, cost.uncounted) == (0, {"custom-call": 1})


def test_comments_between_operands_are_no_part_of_their_names():
    cost = hlo.cost(text("  ROOT %r = f32[8]{0} add(%p, /*index=1*/%p)"))
    assert (cost.flops, cost.bytes_unfused) == (8, 96)


def test_an_operand_that_is_nowhere_is_an_error():
    with pytest.raises(ValueError, match="'gone'"):
        hlo.cost(text("  ROOT %r = f32[8]{0} negate(%gone)"))


def test_the_parts_add_up():
    cost = cost_of(networks.mlp().to(DEVICE)(on_device(4, 32)))
    assert cost.flops == sum(item.flops for item in cost.by_operator.values())
    assert list(cost.by_operator)[0] == "dot"
    assert 0 < cost.matrix_flops < cost.flops
    assert 0 < cost.bytes_fused < cost.bytes_unfused
