"""Wrong answers to lab 07 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are the solution with one change, so that the change shows what is tested.
"""

from tests.labs.cells import code_of
from tests.labs.wrong_answers import entries
from utils.labs.lab07.observe import OBSERVERS

RIGHT = {name: code_of("lab07")[f"{name}-code"] for name in OBSERVERS}
_changed, _written = entries.of("lab07", RIGHT)


def _marked(name: str, said: str, *marks: tuple[str, str]) -> tuple:
    """An answer to exercise 1 with these marks: what is marked, and along what."""
    lines = [f"xs.mark_sharding({what}, mesh, {spec})" for what, spec in marks]
    source = "def annotate(mesh, model, x):\n    " + "\n    ".join(lines)
    return "lab07.ex1", name, source, said


X, FIRST, SECOND = "x", "model[0].weight", "model[2].weight"
BY_OUTPUTS, BY_INPUTS = '("model", None)', '(None, "model")'
ROWS = '("data", None)'
EARLY = "averages = []"
CHOICE = "fitting.append("
LOST = 'return {"cause": cause, "number": lost[cause] / last["step_s"]}'
EFFICIENCY = 'last["claimed_speedup"] / (last["chips"] / first["chips"])'

WRONG = [
    # ex1
    _written("ex1", "does nothing", "model[0].weight is whole on every device", "return None"),
    _marked("data parallel", "model[0].weight is whole on every device", (X, ROWS)),
    _marked(
        "both by outputs",
        "are gathered. Divide it along what it sums over",
        (X, ROWS),
        (FIRST, BY_OUTPUTS),
        (SECOND, BY_OUTPUTS),
    ),
    _marked(
        "rows then columns",
        "divided along its inputs, so each device has partial sums of all hidden values",
        (X, ROWS),
        (FIRST, BY_INPUTS),
        (SECOND, BY_OUTPUTS),
    ),
    _marked(
        "both by inputs",
        "the first result does not lie as the second needs it",
        (X, ROWS),
        (FIRST, BY_INPUTS),
        (SECOND, BY_INPUTS),
    ),
    _marked(
        "the second weight left whole",
        "model[2].weight is whole on every device",
        (X, ROWS),
        (FIRST, BY_OUTPUTS),
    ),
    _marked(
        "the first weight left whole",
        "model[0].weight is whole on every device",
        (X, ROWS),
        (SECOND, BY_INPUTS),
    ),
    _marked(
        "all rows on every device",
        "mark x along the axis 'data'",
        (FIRST, BY_OUTPUTS),
        (SECOND, BY_INPUTS),
    ),
    _marked(
        "x along model",
        "x has to lie along 'data' or be whole",
        (X, BY_OUTPUTS),
        (FIRST, BY_OUTPUTS),
        (SECOND, BY_INPUTS),
    ),
    _marked(
        "features of x divided",
        "x is divided along its features",
        (X, BY_INPUTS),
        (FIRST, BY_OUTPUTS),
        (SECOND, BY_INPUTS),
    ),
    _marked(
        "both axes for a weight",
        "devices with other rows need the same weights",
        (X, ROWS),
        (FIRST, '(("data", "model"), None)'),
        (SECOND, '(None, ("data", "model"))'),
    ),
    _marked(
        "along data",
        "whole on every device",
        (X, ROWS),
        (FIRST, ROWS),
        (SECOND, '(None, "data")'),
    ),
    _marked("too few entries", "AssertionError", (FIRST, '("model",)')),
    _marked(
        "an axis that is not there", "(line 2: xs.mark_sharding(", (FIRST, '("columns", None)')
    ),
    _changed(
        "ex1",
        "another model",
        "something else was changed",
        (
            'xs.mark_sharding(x, mesh, ("data", None))',
            'model[0].bias.data.add_(1.0)\n    xs.mark_sharding(x, mesh, ("data", None))',
        ),
    ),
    _changed(
        "ex1",
        "an output from before",
        "model(x) computes nothing any more: annotate only marks",
        (
            'xs.mark_sharding(x, mesh, ("data", None))',
            "before = model(x).detach().cpu()\n    model.forward = lambda x: before",
        ),
    ),
    _written("ex1", "raises", "ZeroDivisionError: division by zero (line 2: ", "return 1 / 0"),
    _written(
        "ex1",
        "ends its process",
        "the answer ended its process (exit 3)",
        "import os\n    os._exit(3)",
    ),
    _written("ex1", "for ever", "the check stopped the answer after", "while True:\n        pass"),
    # ex2
    _written("ex2", "does nothing", "`predict` returned None", "return None"),
    _written("ex2", "empty", 'no prediction yet: add "A"', "return {}"),
    _written("ex2", "nothing is sent", "all need their sum", 'return {n: {} for n in "ABCDE"}'),
    _changed(
        "ex2", "no loss", "the loss is a mean over all rows", ("(parameters + 1)", "parameters")
    ),
    _changed(
        "ex2",
        "no loss in the number",
        "Each gets a collective of its own",
        ("(5, 4 * (parameters + 1))", "(4, 4 * parameters)"),
    ),
    _changed(
        "ex2",
        "no biases",
        "biases have gradients, too",
        ("(5, 4 * (parameters + 1))", "(5, 4 * (first + second + 1))"),
    ),
    _changed(
        "ex2",
        "fused",
        "Each gets a collective of its own",
        ("(5, 4 * (parameters + 1))", "(1, 4 * (parameters + 1))"),
    ),
    _changed(
        "ex2",
        "elements",
        "an element of float32 has 4 bytes",
        ("4 * (parameters + 1)", "parameters + 1"),
    ),
    _changed(
        "ex2",
        "a ring",
        "how it travels is another matter",
        ("(5, 4 * (parameters + 1))", "(5, 1.5 * 4 * (parameters + 1))"),
    ),
    _changed(
        "ex2",
        "gradients of each row",
        "whatever the number of rows",
        ("(5, 4 * (parameters + 1))", "(5, 4 * rows * outputs)"),
    ),
    _changed(
        "ex2",
        "a sum of columns",
        "a sum or all of them side by side?",
        ('"B": {"all-gather"', '"B": {"all-reduce"'),
    ),
    _changed(
        "ex2",
        "a share of a gather",
        "what a device puts in is a quarter",
        ('"B": {"all-gather": (1, 4 * rows * hidden)}', '"B": {"all-gather": (1, rows * hidden)}'),
    ),
    _changed(
        "ex2",
        "outputs gathered",
        "the hidden values are needed, not the outputs",
        (
            '"B": {"all-gather": (1, 4 * rows * hidden)}',
            '"B": {"all-gather": (1, 4 * rows * outputs)}',
        ),
    ),
    _changed(
        "ex2",
        "parts gathered",
        "what it has are parts of a sum",
        ('"C": {"all-reduce"', '"C": {"all-gather"'),
    ),
    _changed(
        "ex2",
        "inputs reduced",
        "it is the hidden values that are summed",
        (
            '"C": {"all-reduce": (1, 4 * rows * hidden)}',
            '"C": {"all-reduce": (1, 4 * rows * inputs)}',
        ),
    ),
    _changed(
        "ex2",
        "one weight",
        "a collective for each tensor that is divided",
        ("(2, 4 * (first + second))", "(1, 4 * first)"),
    ),
    _changed(
        "ex2",
        "biases gathered",
        "the biases are not marked",
        ("4 * (first + second))", "4 * parameters)"),
    ),
    _changed(
        "ex2",
        "nothing in D",
        "what a device lacks for its own rows",
        ('{"all-gather": (2, 4 * (first + second))}', "{}"),
    ),
    _changed(
        "ex2",
        "all rows",
        "a group of 'model' has half of the rows",
        ("rows / 2 * outputs", "rows * outputs"),
    ),
    _changed(
        "ex2",
        "whole gradients",
        "and so are its gradients",
        ("+ halved + 1", "+ parameters + 1"),
    ),
    _changed(
        "ex2",
        "half a bias",
        "the bias of the second layer is not marked",
        ("(first + hidden + second) / 2 + outputs", "parameters / 2"),
    ),
    _changed(
        "ex2",
        "no forward pass",
        "one in the forward pass",
        ("(6, 4 * (rows / 2 * outputs + halved + 1))", "(5, 4 * (halved + 1))"),
    ),
    _changed(
        "ex2",
        "a number",
        "return a pair of numbers, (number, bytes)",
        ('"C": {"all-reduce": (1, 4 * rows * hidden)}', '"C": {"all-reduce": 4 * rows * hidden}'),
    ),
    _written("ex2", "raises", "ZeroDivisionError: division by zero", "return 1 / 0"),
    _written(
        "ex2",
        "compiles",
        "belongs to the course: write this one yourself, it is lab 07, exercise 2",
        "from utils.labs.lab07 import layouts, mlp\n"
        "    return mlp.compiled([(layouts.a, (4, 1))], {})",
    ),
    _written("ex2", "for ever", "the check stopped the answer", "while True:\n        pass"),
    # ex3
    _written("ex3", "does nothing", "`average_gradients` returned None", "return None"),
    _changed(
        "ex3",
        "the mean over ranks",
        "ranks with more samples count more",
        ("float(samples)", "1.0"),
        ("parameter.grad.float() * samples", "parameter.grad.float()"),
    ),
    _changed(
        "ex3",
        "the mean over ranks that have samples",
        "ranks with more samples count more",
        ("float(samples)", "float(samples > 0)"),
        ("parameter.grad.float() * samples", "parameter.grad.float()"),
    ),
    _changed(
        "ex3",
        "a sum over ranks",
        "this is a sum over ranks",
        ("/ total", ""),
        ("parameter.grad.float() * samples", "parameter.grad.float()"),
    ),
    _changed("ex3", "a sum over samples", "this is a sum over samples", ("/ total", "")),
    _changed(
        "ex3",
        "divided by the ranks",
        "divided by the ranks",
        ("float(samples)", "1.0"),
    ),
    _changed(
        "ex3",
        "its own gradients",
        "return those of all ranks",
        ("all_reduce(weighted) / total", "(all_reduce(weighted), weighted / max(samples, 1))[1]"),
    ),
    _changed(
        "ex3",
        "leaves early",
        "has no samples and left: it has to bring zeros",
        (
            "    total =",
            "    if not samples:\n"
            "        return [torch.zeros_like(each) for each in parameters]\n"
            "    total =",
        ),
    ),
    _changed(
        "ex3",
        "skips what has no gradient",
        "has no samples and left",
        (
            "    weighted = torch.zeros(parameter.shape)\n",
            "    if parameter.grad is None:\n"
            "            averages.append(torch.zeros(parameter.shape))\n"
            "            continue\n"
            "        weighted = 0\n",
        ),
    ),
    _changed(
        "ex3",
        "nothing reduced",
        "no rank called all_reduce",
        ("all_reduce(torch.tensor(float(samples)))", "samples or 1"),
        ("all_reduce(weighted) / total", "weighted / total"),
    ),
    _changed(
        "ex3",
        "None taken for a gradient",
        "AttributeError: 'NoneType' object has no attribute",
        ("if parameter.grad is not None:", "if True:"),
    ),
    _changed(
        "ex3",
        "summed in bfloat16",
        "the sum was rounded to bfloat16 at every addition",
        ("torch.zeros(parameter.shape)", "torch.zeros_like(parameter)"),
        ("parameter.grad.float() * samples", "parameter.grad * samples"),
        (
            "averages.append(all_reduce(weighted) / total)",
            "averages.append(all_reduce(weighted).float() / total)",
        ),
    ),
    _changed(
        "ex3",
        "float32 after the sum",
        "the sum was rounded to bfloat16 at every addition",
        ("torch.zeros(parameter.shape)", "torch.zeros_like(parameter)"),
        ("parameter.grad.float() * samples", "parameter.grad * samples"),
        ("all_reduce(weighted) / total", "(all_reduce(weighted) / total).float()"),
    ),
    _changed(
        "ex3",
        "formats differ",
        "all ranks bring the same shapes and formats",
        ("torch.zeros(parameter.shape)", "torch.zeros_like(parameter)"),
        ("parameter.grad.float() * samples", "parameter.grad.float() * samples"),
    ),
    _changed(
        "ex3",
        "a reduce too many",
        "one for each parameter and one for the samples are enough",
        (
            "averages.append(",
            "total = all_reduce(torch.tensor(float(samples)))\n        averages.append(",
        ),
    ),
    _changed(
        "ex3",
        "a number",
        "all_reduce takes a tensor, not a float",
        ("torch.tensor(float(samples))", "float(samples)"),
    ),
    _changed(
        "ex3",
        "one tensor",
        "return a list of 4 float32 tensors",
        ("return averages", "return torch.cat([each.flatten() for each in averages])"),
    ),
    _changed(
        "ex3",
        "0 by 0",
        "returned nan",
        (
            "all_reduce(weighted) / total",
            "all_reduce(weighted) / total * (1 if samples else math.nan)",
        ),
    ),
    _written("ex3", "raises", "ZeroDivisionError: division by zero (line 2: ", "return 1 / 0"),
    _written("ex3", "for ever", "the check stopped the answer after", "while True:\n        pass"),
    # ex4
    _written("ex4", "does nothing", "`choose` returned None", "return None"),
    _written("ex4", "empty", "without 'fits'", "return {}"),
    _written(
        "ex4",
        "none everywhere",
        "layouts are not those that fit",
        'return {"fits": 0, "layout": None, "step_s": None}',
    ),
    _changed(
        "ex4",
        "across servers",
        "tensor divides chips_per_server",
        (' or cluster["chips_per_server"] % tensor', ""),
    ),
    _changed("ex4", "parts of layers", "pipeline divides layers", ("layers % pipeline or ", "")),
    _changed(
        "ex4",
        "no memory",
        "these are all that the rules allow",
        ('memory > cluster["memory_gb"] * 1e9', "False"),
    ),
    _changed(
        "ex4",
        "parameters whole",
        "of which tensor and pipeline each divide the number",
        ("16 * held", "16 * parameters"),
    ),
    _changed(
        "ex4",
        "parameters divided by all",
        "data does not divide them",
        ("16 * held", "16 * held / data"),
    ),
    _changed("ex4", "weights alone", "the weights alone do not train", ("16 * held", "2 * held")),
    _changed(
        "ex4",
        "no activations",
        "activations take memory, too",
        (" + layer * stage * min(pipeline, mine)", ""),
    ),
    _changed(
        "ex4",
        "activations of all layers",
        "activations of its own layers only",
        ("layer * stage * min", "layer * layers * min"),
    ),
    _changed(
        "ex4", "no bubble", "a pipeline fills and drains", (" * (mine + pipeline - 1) / mine", "")
    ),
    _changed(
        "ex4",
        "a bubble over stages",
        "stretches by (m + p - 1) / m",
        ("(mine + pipeline - 1) / mine", "(mine + pipeline - 1) / pipeline"),
    ),
    _changed(
        "ex4", "forward only", "6 FLOP a parameter and token", ("6 * parameters", "2 * parameters")
    ),
    _changed("ex4", "one chip computes", "all chips compute", ("(chips * cluster", "(cluster")),
    _changed("ex4", "there and not back", "there and back", ("2 * (ranks - 1)", "(ranks - 1)")),
    _changed(
        "ex4",
        "gradients of all parameters",
        "the gradients of its own parameters only",
        ("reduce_s(2 * held, data", "reduce_s(2 * parameters, data"),
    ),
    _changed(
        "ex4",
        "gradients inside",
        "their gradients go at the rate between",
        ('cluster["between_gb_per_s"]', 'cluster["inside_gb_per_s"]'),
    ),
    _changed(
        "ex4",
        "no gradients",
        "the gradients are reduced, too",
        ('step_s += reduce_s(2 * held, data, cluster["between_gb_per_s"])', "pass"),
    ),
    _changed(
        "ex4",
        "no layers",
        "the all-reduces of the layers are missing",
        ("(compute + 4 * one * stage * mine)", "compute"),
    ),
    _changed(
        "ex4", "the slowest", "another one that fits is faster", ("min(fitting", "max(fitting")
    ),
    _changed(
        "ex4",
        "the first that fits",
        "another one that fits is faster",
        (
            "min(fitting, key=lambda pair: pair[0], default=(None, None))",
            "(fitting or [(None, None)])[0]",
        ),
    ),
    _changed(
        "ex4",
        "a tuple",
        "`choose` returned a tuple of 3",
        (
            'return {"fits": len(fitting), "layout": layout, "step_s": step_s}',
            "return len(fitting), layout, step_s",
        ),
    ),
    _changed("ex4", "nothing fits", "min() ", (", default=(None, None)", "")),
    _changed(
        "ex4",
        "milliseconds",
        "are not what the formulas give",
        ('"step_s": step_s}', '"step_s": step_s and 1e3 * step_s}'),
    ),
    _written("ex4", "raises", "ZeroDivisionError: division by zero", "return 1 / 0"),
    _written("ex4", "for ever", "the check stopped the answer", "while True:\n        pass"),
    # ex5
    _written("ex5", "does nothing", "`explain` returned None", "return None"),
    _written("ex5", "empty", "without 'cause'", "return {}"),
    _written(
        "ex5",
        "communication everywhere",
        "is not the cause",
        'return {"cause": "communication", "number": 0.5}',
    ),
    _written(
        "ex5",
        "a name of its own",
        "is no name of a cause",
        'return {"cause": "network", "number": 0.5}',
    ),
    _changed(
        "ex5",
        "every growing batch",
        "a batch may grow, if it takes no more samples",
        ('curve["claim"] == "step" and ', ""),
    ),
    _changed(
        "ex5",
        "claims believed",
        "the claim is about one step, and samples_per_step goes from",
        ('if curve["claim"] == "step" and', "if False and"),
    ),
    _changed(
        "ex5",
        "samples believed",
        "the claim is about training, and samples_to_target goes from",
        ('if curve["claim"] == "training" and', "if False and"),
    ),
    _changed(
        "ex5",
        "first rows believed",
        "compare with the same program",
        ("if fair[0] > 1.1 * fair[1]:", "if False:"),
    ),
    _changed(
        "ex5",
        "any first row",
        "that is no unfair first row",
        ("fair[0] > 1.1 * fair[1]", "fair[0] != fair[1]"),
    ),
    _changed(
        "ex5",
        "seconds compared",
        "that is no unfair first row",
        ('r["compute_s"] * r["chips"] / r', 'r["compute_s"] / r'),
    ),
    _changed(
        "ex5",
        "always something",
        "that is 0.9 of it or more",
        ("if efficiency >= 0.9:", "if False:"),
    ),
    _changed(
        "ex5",
        "over all chips",
        "that is 0.9 of it or more",
        (EFFICIENCY, 'last["claimed_speedup"] / last["chips"]'),
    ),
    _changed(
        "ex5",
        "the slowest chip",
        "loses most to something else",
        ('last["slowest_compute_s"] - last["compute_s"]', 'last["slowest_compute_s"]'),
    ),
    _changed("ex5", "the least", "loses most to something else", ("cause = max(", "cause = min(")),
    _changed(
        "ex5",
        "seconds",
        "these are seconds: which share of the step is it?",
        (LOST, 'return {"cause": cause, "number": lost[cause]}'),
    ),
    _changed(
        "ex5",
        "percent",
        "a share, not a percentage",
        (LOST, 'return {"cause": cause, "number": 100 * lost[cause] / last["step_s"]}'),
    ),
    _changed(
        "ex5",
        "of the compute",
        "a share of the step, not of the compute",
        (LOST, 'return {"cause": cause, "number": lost[cause] / last["compute_s"]}'),
    ),
    _changed(
        "ex5",
        "the lost efficiency",
        "that is the lost efficiency",
        (LOST, 'return {"cause": cause, "number": 1 - efficiency}'),
    ),
    _changed(
        "ex5",
        "the claim itself",
        "it counts samples, not the way to the target",
        ('"number": times[0] / times[1]', '"number": last["claimed_speedup"]'),
    ),
    _changed(
        "ex5",
        "the inverse",
        "that is its inverse",
        ('"number": times[0] / times[1]', '"number": times[1] / times[0]'),
    ),
    _changed(
        "ex5",
        "samples more",
        "what is left of the speed-up?",
        (
            '"number": times[0] / times[1]',
            '"number": last["samples_to_target"] / first["samples_to_target"]',
        ),
    ),
    _changed(
        "ex5",
        "a fair claim",
        "that is the speed-up against a fair first row",
        ('"number": fair[0] / fair[1]', '"number": last["claimed_speedup"] * fair[1] / fair[0]'),
    ),
    _changed(
        "ex5",
        "steps compared",
        "how many times as much work has it?",
        ('"number": grown', '"number": first["step_s"] / last["step_s"]'),
    ),
    _changed(
        "ex5", "no number", "found None, return a number", ('"number": grown', '"number": None')
    ),
    _changed(
        "ex5",
        "a pair",
        "`explain` returned a tuple of 2",
        (LOST, 'return cause, lost[cause] / last["step_s"]'),
    ),
    _written("ex5", "raises", "ZeroDivisionError: division by zero", "return 1 / 0"),
    _written("ex5", "for ever", "the check stopped the answer", "while True:\n        pass"),
]
