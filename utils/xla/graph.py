"""Look at a recorded graph before it runs: as torch_xla's IR, as XLA's HLO and as StableHLO.

Nothing here executes the graph. Lists of operators are comparable within one version of torch_xla
only. networkx is slow to load and imported where it is used.
"""

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx
    import torch


def ir_text(*tensors: "torch.Tensor") -> str:
    """The IR that is recorded for the tensors: one line per node, in order of dependence."""
    import torch_xla

    # torch_xla has no public function for this; the counters of compiles and executions are not
    # touched by it.
    return torch_xla._XLAC._get_xla_tensors_text(_on_xla(tensors)).strip()


def hlo_text(*tensors: "torch.Tensor") -> str:
    """What is handed to the XLA compiler: HLO before any optimisation."""
    import torch_xla

    return torch_xla._XLAC._get_xla_tensors_hlo(_on_xla(tensors)).strip()


def stablehlo_text(*tensors: "torch.Tensor") -> str:
    """The same graph as StableHLO, the portable form."""
    import torch_xla.core.xla_model as xm

    return xm.get_stablehlo(_on_xla(tensors)).strip()


def operators(text: str) -> Counter[str]:
    """How often each operator occurs in an IR, HLO or StableHLO text.

    >>> operators('''IR {
    ...   %0 = f32[8] xla::device_data(), xla_shape=f32[8]
    ...   %1 = f32[8] aten::mul(%0, %0), xla_shape=f32[8]
    ...   %2 = f32[8] aten::mul(%1, %0), xla_shape=f32[8], ROOT=0
    ... }''')
    Counter({'aten::mul': 2, 'xla::device_data': 1})
    """
    if "stablehlo." in text:
        names = re.findall(r"= (?:call )?@?(stablehlo\.\w+)", text)
    elif text.lstrip().startswith("IR {"):
        names = re.findall(r"^\s*%\d+ = \S+ ([\w:]+)\(", text, flags=re.M)
    else:
        # "(f32[2], f32[3])" is the type of a tuple; any other type has no blank.
        names = re.findall(r"^\s*(?:ROOT )?%\S+ = (?:\([^()]*\)|\S+) ([\w-]+)\(", text, flags=re.M)
    return Counter(names)


def ir_graph(*tensors: "torch.Tensor") -> "networkx.DiGraph":
    """The recorded IR as a directed graph; each node has the attributes `operator` and `shape`."""
    import networkx

    graph = networkx.DiGraph()
    node = r"^\s*%(\d+) = .*? ([\w:]+)\((.*?)\), .*?xla_shape=(\(.*?\)|\w+\[[^]]*\])"
    for number, operator, operands, shape in re.findall(node, ir_text(*tensors), flags=re.M):
        graph.add_node(int(number), operator=operator, shape=shape)
        for operand in re.findall(r"%(\d+)", operands):
            graph.add_edge(int(operand), int(number))
    return graph


def _on_xla(tensors: tuple["torch.Tensor", ...]) -> list["torch.Tensor"]:
    if not tensors:
        raise ValueError("no tensor given: name at least one, such as ir_text(loss)")
    for tensor in tensors:
        if not hasattr(tensor, "device") or tensor.device.type != "xla":
            where = getattr(tensor, "device", type(tensor).__name__)
            raise ValueError(
                "only tensors on the XLA device have a recorded graph, and this one is on"
                f" {where}: move it with .to(torch_xla.device()) before the operations that you"
                " want to see"
            )
    return list(tensors)
