"""What the answers of lab 07 do and return, as plain values. Judges nothing.

What needs four devices, or ranks that may wait for ever, runs in a process of its own.
"""

from typing import Any

from utils.labs import Answer, Facts, Observer, apart, invoke
from utils.labs.lab07 import mlp, ranks
from utils.labs.plain import describe, entries, maybe, number, pair, text, to_list
from utils.xla import fresh, spmd

_LAYOUTS = "ABCDE"
_MOST = 20
"""Items that are kept: more is wrong in any case."""


def observe_annotated(answer: Answer, case: Facts) -> Facts:
    """Collectives, shards and the error of the output, from a process with four devices."""
    return apart.run_apart(
        spmd.run, _annotate, answer, case["sizes"], tuple(case["mesh"]), devices=mlp.DEVICES
    )


def _annotate(answer: Answer, sizes: mlp.Sizes, shape: mlp.Shape) -> Facts:
    """Runs where there are four devices."""
    import torch_xla

    mesh, model, x = mlp.build(sizes, shape)
    right = mlp.reference(model, x)
    answer(mesh, model, x)
    with spmd.Compiled() as program:
        y = model(x)
        torch_xla.sync()
    try:
        result = program.collectives
    except RuntimeError:
        raise RuntimeError("model(x) computes nothing any more: annotate only marks") from None
    off = (y.detach().cpu().double() - right).abs().max() / right.abs().max()
    return {
        "collectives": [[one.kind, one.bytes, list(one.shapes[0])] for one in result],
        "difference": _finite(float(off)),
        "shards": {
            "x": mlp.shard_shape(x),
            "first": mlp.shard_shape(model[0].weight),
            "second": mlp.shard_shape(model[2].weight),
        },
    }


def _finite(value: float) -> float | None:
    result = number(value)
    return None if isinstance(result, str) else result


def observe_predict(answer: Answer, case: Facts) -> Facts:
    """What the answer predicts for each layout; in the compiled case what XLA makes of it, too."""
    sizes = case["sizes"]
    order = ("rows", "inputs", "hidden", "outputs")
    shut = ("utils.xla.fresh", "utils.xla.spmd", "utils.labs.lab07.mlp")
    (response,) = invoke.responses(
        "lab07.ex2", answer, [tuple(sizes[name] for name in order)], shut
    )
    compiled = None
    if case["compiled"]:
        # Afterwards: what a prediction is compared with must not be there to be read.
        from utils.labs.lab07 import layouts  # late: it imports torch_xla

        pairs = [(layouts.LAYOUTS[name], layouts.MESHES[name]) for name in _LAYOUTS]
        compiled = dict(zip(_LAYOUTS, mlp.compile_all(pairs, sizes), strict=True))
    predicted = None
    if isinstance(response, dict):
        predicted = {name: _kinds(response.get(name)) for name in _LAYOUTS}
    return {"kind": describe(response), "predicted": predicted, "compiled": compiled}


def _kinds(response: Any) -> Any:
    """A dict of kinds of collectives to pairs; None, or what else it is."""
    if not isinstance(response, dict):
        return None if response is None else describe(response)
    return {text(kind): pair(value) for kind, value in list(response.items())[:_MOST]}


def observe_average(answer: Answer, case: Facts) -> Facts:
    """The averaged gradients of all ranks, which run in a process of their own."""
    return apart.run_apart(fresh.run, ranks.average_on_ranks, answer, case)


def observe_plans(answer: Answer, case: Facts) -> Facts:
    """For each question what fits, the chosen layout, and the seconds of its step."""
    calls = [(question["model"], question["cluster"]) for question in case["questions"]]
    results = []
    for response in invoke.responses("lab07.ex4", answer, calls, ("utils.cost.planner",)):
        given = entries(response, "fits", "layout", "step_s")
        if isinstance(given, dict):
            layout = given["layout"]
            if layout is not None:
                layout = entries(layout, "data", "tensor", "pipeline")
            if isinstance(layout, dict):
                layout = {axis: number(size) for axis, size in layout.items()}
            step_s = maybe(given["step_s"], _MOST)
            given = {"fits": number(given["fits"]), "layout": layout, "step_s": step_s}
        results.append(given)
    return {"response": results}


def observe_curves(answer: Answer, case: Facts) -> Facts:
    """The cause and the number for each curve, or what the answer returned instead."""
    results = []
    for response in invoke.responses(
        "lab07.ex5", answer, [(curve,) for curve in case["curves"]], ()
    ):
        given = entries(response, "cause", "number")
        if isinstance(given, dict):
            value = number(to_list(given["number"], _MOST))
            given = {"cause": text(given["cause"]), "number": value}
        results.append(given)
    return {"response": results}


def observe_native(answer: Answer, case: Facts) -> Facts:
    """What four gloo ranks do with the answer, in a process that forks them."""
    from utils.labs.lab07 import native  # late: it imports torch

    return apart.run_apart(fresh.run, native.train_steps, answer, case, seconds=40.0)


OBSERVERS = {
    "ex1": Observer("annotate", observe_annotated, apart=True),
    "ex2": Observer("predict", observe_predict),
    "ex3": Observer("average_gradients", observe_average, apart=True),
    "ex4": Observer("choose", observe_plans),
    "ex5": Observer("explain", observe_curves),
    "ex6": Observer("step", observe_native, apart=True),
}
