"""The five layouts of lab 07, A to E: what has to be communicated if a two-layer MLP is divided so?

`model` is Sequential(Linear(inputs, hidden), ReLU(), Linear(hidden, outputs)) in float32, and `x`
is float32 [rows, inputs]; the weight of a Linear is [out, in]. What no line marks is on every
device as a whole.
"""

import torch_xla.distributed.spmd as xs


def a(mesh, model, x):
    """One training step on a mesh of 4 by 1."""
    xs.mark_sharding(x, mesh, ("data", None))
    loss = model(x).square().mean()
    loss.backward()
    return loss


def b(mesh, model, x):
    """A forward pass on a mesh of 1 by 4."""
    xs.mark_sharding(model[0].weight, mesh, ("model", None))
    xs.mark_sharding(model[2].weight, mesh, ("model", None))
    return model(x)


def c(mesh, model, x):
    """A forward pass on a mesh of 1 by 4."""
    xs.mark_sharding(x, mesh, (None, "model"))
    xs.mark_sharding(model[0].weight, mesh, (None, "model"))
    xs.mark_sharding(model[2].weight, mesh, ("model", None))
    return model(x)


def d(mesh, model, x):
    """A forward pass on a mesh of 4 by 1."""
    xs.mark_sharding(x, mesh, ("data", None))
    xs.mark_sharding(model[0].weight, mesh, ("data", None))
    xs.mark_sharding(model[2].weight, mesh, ("data", None))
    return model(x)


def e(mesh, model, x):
    """One training step on a mesh of 2 by 2."""
    xs.mark_sharding(x, mesh, ("data", None))
    xs.mark_sharding(model[0].weight, mesh, ("model", None))
    xs.mark_sharding(model[0].bias, mesh, ("model",))
    xs.mark_sharding(model[2].weight, mesh, (None, "model"))
    loss = model(x).square().mean()
    loss.backward()
    return loss


LAYOUTS = {"A": a, "B": b, "C": c, "D": d, "E": e}
MESHES = {"A": (4, 1), "B": (1, 4), "C": (1, 4), "D": (4, 1), "E": (2, 2)}
"""Devices along the axes "data" and "model" of the mesh of each layout."""
