"""Graph inspection shows what torch_xla recorded and runs nothing."""

import pytest
import torch
import torch_xla

from utils.show import draw
from utils.xla import graph
from utils.xla.meter import Meter

DEVICE = torch_xla.device()


@pytest.fixture
def recorded():
    x, w = torch.ones(4, 8).to(DEVICE), torch.ones(8, 3).to(DEVICE)
    torch_xla.sync()
    return torch.relu(x @ w - 1).sum()


def test_texts_name_the_operators_and_run_nothing(recorded):
    with Meter():
        pass  # settled
    x = torch.ones(4, 8).to(DEVICE)
    with Meter() as m:
        t = torch.relu(x * 2).sum()
        counts = [
            graph.operators(show(t))
            for show in (graph.ir_text, graph.hlo_text, graph.stablehlo_text)
        ]
    assert (m.executions, m.compiles) == (0, 0)
    ir, hlo, stablehlo = counts
    assert ir["aten::relu"] == ir["aten::mul"] == ir["aten::sum"] == 1
    assert hlo["maximum"] == hlo["reduce"] == 1
    assert stablehlo["stablehlo.maximum"] == stablehlo["stablehlo.reduce"] == 1


def test_ir_graph_has_the_nodes_and_edges_of_the_text(recorded):
    drawn = graph.ir_graph(recorded)
    assert len(drawn) == graph.ir_text(recorded).count(" = ")
    operators = [drawn.nodes[n]["operator"] for n in drawn]
    assert operators.count("aten::mm") == 1
    (matmul,) = (n for n in drawn if drawn.nodes[n]["operator"] == "aten::mm")
    assert drawn.nodes[matmul]["shape"] == "f32[4,3]"
    assert drawn.in_degree(matmul) == 2
    assert sum(drawn.out_degree(n) == 0 for n in drawn) == 1


def test_multi_output_nodes_are_parsed():
    values, _ = torch.ones(4, 8).to(DEVICE).topk(2)
    drawn = graph.ir_graph(values)
    assert len(drawn) == graph.ir_text(values).count(" = ")
    assert any(data["shape"].startswith("(") for _, data in drawn.nodes(data=True))


@pytest.mark.parametrize("wrong", [torch.ones(2), "loss"])
def test_only_xla_tensors_have_a_graph(wrong):
    with pytest.raises(ValueError, match="only tensors on the XLA device.*torch_xla.device"):
        graph.ir_text(wrong)
    with pytest.raises(ValueError, match="no tensor given"):
        graph.hlo_text()


def test_a_picture_is_a_small_png_with_its_caption(recorded, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda item, **_: shown.append(item))
    picture = draw.graph(graph.ir_graph(recorded), "Eight nodes.")
    picture._ipython_display_()
    assert picture.png.startswith(b"\x89PNG") and len(picture.png) < 40_000
    assert shown[0] == {"image/png": picture.png, "text/plain": "Figure. Eight nodes."}
    assert shown[1].data == "*Figure.* Eight nodes."


def test_figures_are_reproducible():
    def pictures():
        yield draw.bars({"a": [1, 2], "b": [0, 3]}, ["x", "y"], "count", "c")
        yield draw.lines(
            {"p": {"one": [1, 2]}, "q": {"two": [2, 1], "three": [0, 0]}}, [1, 2], "x", "c"
        )
        yield draw.timeline({"recorded": [1, 1], "read": [0, 2]}, "step", "c")

    assert [p.png for p in pictures()] == [p.png for p in pictures()]


def test_a_graph_too_large_to_read_is_refused(recorded):
    x = torch.ones(2).to(DEVICE)
    for _ in range(45):
        x = x + 1
    with pytest.raises(ValueError, match="1 to 40 can be drawn"):
        draw.graph(graph.ir_graph(x), "c")


def test_a_layer_of_pytorch_has_as_many_products_in_hlo_as_on_the_cpu():
    """A model that nobody here wrote, counted by another instrument: PyTorch's dispatcher."""
    from torch.utils._python_dispatch import TorchDispatchMode

    products = []

    class CountProducts(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function.overloadpacket._qualified_op_name in MATRIX_PRODUCTS:
                products.append(function)
            return function(*args, **(kwargs or {}))

    # In training mode PyTorch takes no fused path of its own for the whole layer.
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    x = torch.randn(3, 5, 16)
    with CountProducts(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        layer(x)
    y = layer.to(DEVICE)(x.to(DEVICE))
    assert len(products) == 6  # query, key and value in one; scores; mix; output; two of the MLP
    assert graph.operators(graph.hlo_text(y))["dot"] == len(products)


MATRIX_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
