"""Wrong answers to lab 02 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are a right answer with one change, so that the change shows what is tested.
"""

from tests.labs.cells import changed

CLASSIFY = """
def classify():
    return {
        "A": "loud", "B": "silent", "C": "silent", "D": "slow", "E": "fine",
        "F": "slow", "G": "loud", "H": "fine", "I": "silent", "J": "slow",
    }
"""

TRAIN = """
def train(model, batches, lr, checkpoint):
    device = torch_xla.device()
    model.load_state_dict(torch.load(checkpoint, map_location="cpu"))
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for x, y in batches:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()
"""

HISTOGRAM = """
def histogram(values, edges):
    bins = (values[:, None] > edges).sum(dim=1)
    counts = F.one_hot(bins, num_classes=len(edges) + 1).sum(dim=0)
    return bins, counts
"""

MASKED_LOSS = """
def masked_loss(logits, targets, mask):
    losses = F.cross_entropy(logits, targets, reduction="none")
    return torch.where(mask, losses, 0.0).sum() / mask.sum().clamp(min=1)
"""

MAKE_STEP = """
def make_step(model, lr, device):
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def step(x, y):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        if device.type == "xla":
            torch_xla.sync()
        return loss.detach()

    return step
"""

RIGHT = {"ex1": CLASSIFY, "ex2": TRAIN, "ex3": HISTOGRAM, "ex4": MASKED_LOSS, "ex5": MAKE_STEP}


def _classify(letter: str, kind: str) -> str:
    place = CLASSIFY.index(f'"{letter}": ') + 5
    return f'{CLASSIFY[:place]}"{kind}"{CLASSIFY[CLASSIFY.index(chr(34), place + 1) + 1 :]}'


def _train(*changes: tuple[str, str]) -> str:
    return changed(TRAIN, *changes)


def _histogram(*changes: tuple[str, str]) -> str:
    return changed(HISTOGRAM, *changes)


def _masked(*changes: tuple[str, str]) -> str:
    return changed(MASKED_LOSS, *changes)


def _step(*changes: tuple[str, str]) -> str:
    return changed(MAKE_STEP, *changes)


LOAD = '    model.load_state_dict(torch.load(checkpoint, map_location="cpu"))\n'
OPTIMIZER = "    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)\n"
CLIP = "        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)\n"
SYNC = "        torch_xla.sync()\n"
END = '        if device.type == "xla":\n            torch_xla.sync()\n'
BINS = "(values[:, None] > edges).sum(dim=1)"
COUNTS = "F.one_hot(bins, num_classes=len(edges) + 1).sum(dim=0)"
CLAMP = ".clamp(min=1)"
NAN_OR_MEAN = "return torch.where(mask, losses, 0.0).sum() / mask.sum().clamp(min=1)"

BY_HAND = """        gradients = [weight.grad for weight in model.parameters()]
        norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
        if norm > MAX_NORM:
            for gradient in gradients:
                gradient.mul_(MAX_NORM / norm)
"""

WRONG = [
    # ex1
    (
        "lab02.ex1",
        "cuda is a no-op",
        _classify("A", "silent"),
        "A: you said silent; the line needs",
    ),
    ("lab02.ex1", "asking raises", _classify("B", "loud"), "where does the model run then?"),
    ("lab02.ex1", "losses look right", _classify("C", "fine"), "look at the dtype of what comes"),
    ("lab02.ex1", "a read is free", _classify("D", "fine"), "What does the host do in each step"),
    ("lab02.ex1", "by its rule", _classify("E", "slow"), "where does `table` lie when it is"),
    ("lab02.ex1", "a mask is fine", _classify("F", "fine"), "What is the shape of `loss[...]`"),
    ("lab02.ex1", "the constructor is silent", _classify("G", "silent"), "call its step with"),
    ("lab02.ex1", "the flag misleads", _classify("H", "silent"), "Who reads the flag?"),
    ("lab02.ex1", "a seed is a seed", _classify("I", "fine"), "call it twice with the same seed"),
    ("lab02.ex1", "an if is fine", _classify("J", "fine"), "Who decides the `if`"),
    ("lab02.ex1", "unknown word", _classify("J", "bad"), "bad is no class: choose one of loud"),
    (
        "lab02.ex1",
        "a list",
        'def classify():\n    return ["loud"] * 10\n',
        "classify returned a list of 10: return a dict",
    ),
    # ex2
    (
        "lab02.ex2",
        "the script as it is",
        "from utils.labs.lab02.train_cuda import train\n",
        "Error",
    ),
    (
        "lab02.ex2",
        "stayed on the cpu",
        _train(("device = torch_xla.device()", 'device = torch.device("cpu")')),
        "the model did not run on torch_xla.device()",
    ),
    (
        "lab02.ex2",
        "cuda if available",
        _train(
            (
                "device = torch_xla.device()",
                'device = "cuda" if torch.cuda.is_available() else "cpu"',
            )
        ),
        "the model did not run on torch_xla.device()",
    ),
    (
        "lab02.ex2",
        "optimizer before the move",
        _train((OPTIMIZER, ""), ("    model.to(device)\n", OPTIMIZER + "    model.to(device)\n")),
        "a model that never learns: on XLA, `model.to` makes new parameters",
    ),
    (
        "lab02.ex2",
        "checkpoint forgotten",
        _train((LOAD, "")),
        "the losses of the weights that `model` came with",
    ),
    (
        "lab02.ex2",
        "loaded onto the device",
        _train(('map_location="cpu"', "map_location=device")),
        "RuntimeError: don't know how to restore data location",
    ),
    ("lab02.ex2", "no clipping", _train((CLIP, "")), "these are the losses without clipping"),
    (
        "lab02.ex2",
        "autocast for cuda left in",
        _train(
            (
                "        loss = F.cross_entropy(model(x), y)\n",
                '        with torch.autocast("cuda", dtype=torch.float16):\n'
                "            loss = F.cross_entropy(model(x), y)\n",
            )
        ),
        "audit: line 11 of the cell: Autocast for CUDA",
    ),
    (
        "lab02.ex2",
        "bfloat16",
        _train(
            (
                "        loss = F.cross_entropy(model(x), y)\n",
                '        with torch.autocast("xla", dtype=torch.bfloat16):\n'
                "            loss = F.cross_entropy(model(x), y)\n",
            )
        ),
        "the right training, but in fewer digits",
    ),
    (
        "lab02.ex2",
        "cuda seed left in",
        _train(("    losses = []\n", "    torch.cuda.manual_seed_all(0)\n    losses = []\n")),
        "Seeds CUDA generators only",
    ),
    (
        "lab02.ex2",
        "read in each step",
        _train(
            ("losses.append(loss.detach())", "losses.append(loss.item())"),
            ("torch.stack(losses).tolist()", "losses"),
        ),
        "each makes the host wait for the device",
    ),
    (
        "lab02.ex2",
        "read in each step, no sync",
        _train(
            (SYNC, ""),
            ("losses.append(loss.detach())", "losses.append(loss.item())"),
            ("torch.stack(losses).tolist()", "losses"),
        ),
        "reading a value computes it but ends no step",
    ),
    (
        "lab02.ex2",
        "trained on the cpu, shown to the device",
        """
def train(model, batches, lr, checkpoint):
    twin = nn.Sequential(*model)
    twin.load_state_dict(torch.load(checkpoint, map_location="cpu"))
    weights = [each.detach().clone().requires_grad_() for each in twin.parameters()]
    names = [name for name, _ in twin.named_parameters()]
    optimizer = torch.optim.SGD(weights, lr=lr, momentum=0.9)
    model.to(torch_xla.device())
    losses = []
    for x, y in batches:
        output = model(x.to(torch_xla.device()))
        torch_xla.sync()
        optimizer.zero_grad()
        own = torch.func.functional_call(twin, dict(zip(names, weights)), (x,))
        loss = F.cross_entropy(own, y)
        loss.backward()
        nn.utils.clip_grad_norm_(weights, MAX_NORM)
        optimizer.step()
        losses.append(loss.item())
    output.sum().item()
    return losses
""",
        "backward and the update belong there",
    ),
    (
        "lab02.ex2",
        "no map_location",
        _train((', map_location="cpu"', "")),
        "Attempting to deserialize object on a CUDA device",
    ),
    (
        "lab02.ex2",
        "gradients add up",
        _train(("        optimizer.zero_grad()\n", "")),
        "where is zero_grad?",
    ),
    (
        "lab02.ex2",
        "no momentum",
        _train((", momentum=0.9", "")),
        "these are the losses without momentum",
    ),
    (
        "lab02.ex2",
        "clipped after the update",
        _train((CLIP, ""), (SYNC, CLIP + SYNC)),
        "after backward and before the update",
    ),
    (
        "lab02.ex2",
        "each value clipped",
        _train(("clip_grad_norm_", "clip_grad_value_")),
        "limit the norm of all gradients together",
    ),
    (
        "lab02.ex2",
        "losses read one by one",
        _train(("torch.stack(losses).tolist()", "[each.item() for each in losses]")),
        "bring them together there, and read once",
    ),
    (
        "lab02.ex2",
        "losses as tensors",
        _train(("torch.stack(losses).tolist()", "losses")),
        "item 0 is a tensor on xla:0: return Python floats",
    ),
    (
        "lab02.ex2",
        "optimizer step of xm without its barrier",
        _train((SYNC, ""), ("optimizer.step()", "xm.optimizer_step(optimizer)")),
        "the steps pile up in one graph",
    ),
    (
        "lab02.ex2",
        "no sync",
        _train((SYNC, "")),
        "the steps pile up in one graph",
    ),
    (
        "lab02.ex2",
        "two syncs",
        _train(("        loss.backward()\n", "        loss.backward()\n" + SYNC)),
        "a step runs in parts, or twice",
    ),
    (
        "lab02.ex2",
        "batch left behind",
        _train(("x, y = x.to(device), y.to(device)", "pass")),
        "Error",
    ),
    (
        "lab02.ex2",
        "fused",
        _train(("momentum=0.9)", "momentum=0.9, fused=True)")),
        "RuntimeError",
    ),
    (
        "lab02.ex2",
        "returns nothing",
        _train(("return torch.stack(losses).tolist()", "losses")),
        "`train` returned None: return a list of",
    ),
    # ex3
    (
        "lab02.ex3",
        "as it was given",
        "def histogram(values, edges):\n    return histogram_on_host(values, edges)\n",
        "aten::bincount, aten::bucketize.Tensor ran on the host",
    ),
    (
        "lab02.ex3",
        "searchsorted",
        _histogram((BINS, "torch.searchsorted(edges, values)")),
        "aten::searchsorted.Tensor ran on the host",
    ),
    (
        "lab02.ex3",
        "only the bins",
        _histogram((COUNTS, "torch.bincount(bins, minlength=len(edges) + 1)")),
        "aten::bincount ran on the host",
    ),
    (
        "lab02.ex3",
        "histc",
        _histogram((COUNTS, "torch.histc(bins.float(), len(edges) + 1, 0, len(edges)).long()")),
        "aten::histc ran on the host",
    ),
    (
        "lab02.ex3",
        "greater or equal",
        _histogram((">", ">=")),
        "a value on an edge belongs to the bin below that edge",
    ),
    (
        "lab02.ex3",
        "one hot without classes",
        _histogram((", num_classes=len(edges) + 1", "")),
        "there is one bin more than there are edges",
    ),
    (
        "lab02.ex3",
        "a bin too few",
        _histogram(
            (COUNTS, "(bins[:, None] == torch.arange(len(edges), device=bins.device)).sum(0)")
        ),
        "there is one bin more than there are edges",
    ),
    (
        "lab02.ex3",
        "on the host",
        """
def histogram(values, edges):
    bins, counts = histogram_on_host(values.cpu(), edges.cpu())
    return bins.to(values.device), counts.to(values.device)
""",
        "this was computed on the host",
    ),
    (
        "lab02.ex3",
        "left on the host",
        "def histogram(values, edges):\n    return histogram_on_host(values.cpu(), edges.cpu())\n",
        "this was computed on the host",
    ),
    (
        "lab02.ex3",
        "a tensor made on the cpu",
        _histogram((COUNTS, "(bins[:, None] == torch.arange(len(edges) + 1)).sum(0)")),
        "Error",
    ),
    (
        "lab02.ex3",
        "bins as floats",
        _histogram((BINS, BINS + ".float()"), ("one_hot(bins,", "one_hot(bins.long(),")),
        "the numbers are right, but the function above returns int64",
    ),
    (
        "lab02.ex3",
        "edges read",
        """
def histogram(values, edges):
    bins = sum((values > edge).long() for edge in edges.tolist())
    return bins, F.one_hot(bins, len(edges) + 1).sum(0)
""",
        "or from numbers that were read",
    ),
    (
        "lab02.ex3",
        "numpy",
        """
def histogram(values, edges):
    import numpy

    bins = numpy.digitize(values.cpu().numpy(), edges.cpu().numpy(), right=True)
    bins = torch.tensor(bins).to(values.device)
    return bins, F.one_hot(bins, len(edges) + 1).sum(0)
""",
        "values leave the device, and the host waits for them",
    ),
    (
        "lab02.ex3",
        "a loop over the bins",
        _histogram(
            (COUNTS, "torch.stack([(bins == k).sum() for k in range(int(bins.max()) + 1)])")
        ),
        "values leave the device, and the host waits for them",
    ),
    (
        "lab02.ex3",
        "bins alone",
        _histogram(("return bins, counts", "return bins")),
        "`histogram` returned a tensor on xla:0: return (bins, counts), two tensors",
    ),
    # ex4
    (
        "lab02.ex4",
        "as it was given",
        "def masked_loss(logits, targets, mask):\n"
        "    return loss_of_picked_rows(logits, targets, mask)\n",
        "aten::nonzero ran on the host",
    ),
    (
        "lab02.ex4",
        "masked select",
        _masked((NAN_OR_MEAN, "return losses.masked_select(mask).mean()")),
        "aten::masked_select",
    ),
    (
        "lab02.ex4",
        "rows set to zero by their mask",
        _masked(
            ("    return", "    losses = losses.clone()\n    losses[~mask] = 0.0\n    return"),
            ("torch.where(mask, losses, 0.0)", "losses"),
        ),
        "losses: judged once no operator runs on the host",
    ),
    (
        "lab02.ex4",
        "no floor",
        _masked((CLAMP, "")),
        "the loss of no row is 0.0",
    ),
    (
        "lab02.ex4",
        "mean over all rows",
        _masked((".sum() / mask.sum().clamp(min=1)", ".mean()")),
        "each sum is divided by the same number",
    ),
    (
        "lab02.ex4",
        "a sum",
        _masked((" / mask.sum().clamp(min=1)", "")),
        "these are sums: divide by the number of rows with True",
    ),
    (
        "lab02.ex4",
        "the mask is ignored",
        _masked((NAN_OR_MEAN, "return losses.mean()")),
        "over no other row",
    ),
    (
        "lab02.ex4",
        "the number is read",
        _masked(("mask.sum().clamp(min=1)", "max(int(mask.sum()), 1)")),
        "a value that is needed on the host runs the graph before the call is over",
    ),
    (
        "lab02.ex4",
        "if any",
        _masked(
            (
                "    losses =",
                "    if not mask.any():\n        return logits.sum() * 0.0\n    losses =",
            ),
            (CLAMP, ""),
        ),
        "one execution a call",
    ),
    (
        "lab02.ex4",
        "ignore index with its own mean",
        "def masked_loss(logits, targets, mask):\n"
        "    return F.cross_entropy(logits, targets.masked_fill(~mask, -100))\n",
        "the loss of no row is 0.0",
    ),
    (
        "lab02.ex4",
        "losses of all rows",
        _masked((NAN_OR_MEAN, "return torch.where(mask, losses, 0.0)")),
        ", dimensions: 1: return a scalar tensor",
    ),
    (
        "lab02.ex4",
        "detached",
        _masked(("cross_entropy(logits,", "cross_entropy(logits.detach(),")),
        "no gradient reached the logits",
    ),
    (
        "lab02.ex4",
        "a number",
        _masked((".clamp(min=1)", ".clamp(min=1).item()"), ("/ mask", "/ mask")),
        "a value that is needed on the host",
    ),
    (
        "lab02.ex4",
        "on the host",
        "def masked_loss(logits, targets, mask):\n"
        "    return loss_of_picked_rows(logits.cpu(), targets.cpu(), mask.cpu())\n",
        "this was computed on the host",
    ),
    # ex5
    (
        "lab02.ex5",
        "only for the cpu",
        "def make_step(model, lr, device):\n    return make_step_for_cpu(model, lr)\n",
        "the model did not run on the device that was passed in",
    ),
    (
        "lab02.ex5",
        "the if kept",
        _step((CLIP, BY_HAND)),
        "A value is read by `if`",
    ),
    (
        "lab02.ex5",
        "sync without asking",
        _step((END, SYNC)),
        "call torch_xla only if device.type is xla",
    ),
    (
        "lab02.ex5",
        "optimizer step of xm without asking",
        _step((END, ""), ("optimizer.step()", "xm.optimizer_step(optimizer, barrier=True)")),
        "call torch_xla only if device.type is xla",
    ),
    (
        "lab02.ex5",
        "compared with a str",
        _step(('device.type == "xla"', 'device == "xla"')),
        "a step has to end with torch_xla.sync(): ask device.type",
    ),
    (
        "lab02.ex5",
        "no sync",
        _step((END, "")),
        "On XLA, and only there, a step has to end with torch_xla.sync()",
    ),
    (
        "lab02.ex5",
        "always xla",
        _step(
            ("    model.to(device)\n", "    device = torch_xla.device()\n    model.to(device)\n")
        ),
        "ask `device` what to do, name no device",
    ),
    (
        "lab02.ex5",
        "loss as a number",
        _step(("return loss.detach()", "return loss.item()")),
        "reads: each makes the host wait for the device",
    ),
    (
        "lab02.ex5",
        "optimizer before the move",
        _step((OPTIMIZER, ""), ("    model.to(device)\n", OPTIMIZER + "    model.to(device)\n")),
        "losses on xla: these are the losses of a model that never learns",
    ),
    ("lab02.ex5", "no clipping", _step((CLIP, "")), "these are the losses without clipping"),
    (
        "lab02.ex5",
        "no zero grad",
        _step(("        optimizer.zero_grad()\n", "")),
        "where is zero_grad?",
    ),
    (
        "lab02.ex5",
        "returns no loss",
        _step(("        return loss.detach()\n", "")),
        "`step` returned None: return the loss of the step",
    ),
    (
        "lab02.ex5",
        "returns no step",
        _step(("    return step\n", "")),
        "`make_step` returned None: return the function `step`",
    ),
]
