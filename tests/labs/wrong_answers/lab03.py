"""Wrong answers to lab 03 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are a right answer with one change, so that the change shows what is tested.
"""

from tests.labs.cells import changed

PREDICT = """
def predict(steps):
    return {
        "A": (steps, 1),
        "B": (1, 1),
        "C": (2 * steps, 2),
        "D": (steps, 1),
        "E": (0, 0),
        "F": (steps, 1),
    }
"""

MEAN_LOSSES = """
def mean_losses(step, steps, every):
    means, total = [], 0
    for number in range(1, steps + 1):
        total = total + step()
        torch_xla.sync()
        if number % every == 0:
            means.append(total.item() / every)
            total = 0
    return means
"""

BENCH = """
def bench(fn, sync, clock, warmup, repeats):
    for _ in range(warmup):
        fn()
    sync()
    samples = []
    for _ in range(repeats):
        start = clock()
        fn()
        sync()
        samples.append(clock() - start)
    samples.sort()
    median = samples[math.ceil(0.5 * repeats) - 1]
    p99 = samples[math.ceil(0.99 * repeats) - 1]
    return median, p99
"""

FIXED_LOOP = """
def fixed_loop(model, optimizer, batches):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        xm.optimizer_step(optimizer)
        torch_xla.sync()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()
"""

TRAIN = """
def train(model, batches, lr):
    device = torch_xla.device()
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for x, y in batches:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()
"""

RIGHT = {"ex1": PREDICT, "ex2": MEAN_LOSSES, "ex3": BENCH, "ex4": FIXED_LOOP, "ex5": TRAIN}


def _predict(old: str, new: str) -> str:
    return changed(PREDICT, (old, new))


def _mean(*changes: tuple[str, str]) -> str:
    return changed(MEAN_LOSSES, *changes)


def _bench(*changes: tuple[str, str]) -> str:
    return changed(BENCH, *changes)


def _fixed(*changes: tuple[str, str]) -> str:
    return changed(FIXED_LOOP, *changes)


def _train(*changes: tuple[str, str]) -> str:
    return changed(TRAIN, *changes)


SYNC = "        torch_xla.sync()\n"
STACKED = "torch.stack(losses).tolist()"

ITEM_NO_SYNC = """
def mean_losses(step, steps, every):
    losses = [step().item() for _ in range(steps)]
    return [sum(losses[i : i + every]) / every for i in range(0, steps, every)]
"""

WRONG = [
    # ex1
    (
        "lab03.ex1",
        "each run compiles",
        _predict('"A": (steps, 1)', '"A": (steps, steps)'),
        "a known graph is not compiled again",
    ),
    (
        "lab03.ex1",
        "records are executions",
        _predict('"B": (1, 1)', '"B": (steps, 1)'),
        "the executions are wrong: recording runs nothing",
    ),
    (
        "lab03.ex1",
        "a read is only a copy",
        _predict('"C": (2 * steps, 2)', '"C": (steps, 1)'),
        "C: you said 4 executions and 1 compile; the executions are wrong: `.item()` runs a graph"
        " for `total`, and the sync still has `x` to run; the compiles are wrong: a graph that",
    ),
    (
        "lab03.ex1",
        "right for one number of steps only",
        _predict('"C": (2 * steps, 2)', '"C": (steps + 4, 2)'),
        "C: you said 13 executions and 2 compiles; the executions are wrong",
    ),
    (
        "lab03.ex1",
        "every read executes",
        _predict('"D": (steps, 1)', '"D": (2 * steps, 2)'),
        "the read that follows only copies it",
    ),
    (
        "lab03.ex1",
        "a sync runs all that was recorded",
        _predict('"E": (0, 0)', '"E": (steps, 1)'),
        "only a graph that runs is compiled",
    ),
    (
        "lab03.ex1",
        "a read keeps the value",
        _predict('"F": (steps, 1)', '"F": (1, 1)'),
        "`.item()` does not keep what it computes",
    ),
    (
        "lab03.ex1",
        "one missing",
        _predict('        "F": (steps, 1),\n', ""),
        'no prediction yet: add "F": (executions, compiles)',
    ),
    (
        "lab03.ex1",
        "executions only",
        _predict('"E": (0, 0)', '"E": 0'),
        "E: give a pair of whole numbers",
    ),
    (
        "lab03.ex1",
        "half an execution",
        _predict('"E": (0, 0)', '"E": (0.5, 0)'),
        "E: give a pair of whole numbers",
    ),
    (
        "lab03.ex1",
        "each read compiles",
        _predict('"F": (steps, 1)', '"F": (steps, steps)'),
        "F: you said 4 executions and 4 compiles; the compiles are wrong: a known graph",
    ),
    (
        "lab03.ex1",
        "a compile for each step",
        _predict('"B": (1, 1)', '"B": (1, steps)'),
        "the compiler gets each different graph that runs",
    ),
    (
        "lab03.ex1",
        "a list",
        "def predict(steps):\n    return [(steps, 1)] * 6",
        "predict returned a list of 6: return a dict",
    ),
    (
        "lab03.ex1",
        "measures instead of predicting",
        """
def predict(steps):
    found = {}
    for name, snippet in snippets.SNIPPETS.items():
        x = torch.ones(50 + ord(name)).to(torch_xla.device())
        with Meter() as m:
            snippet(x, steps)
        found[name] = (m.executions, m.compiles)
    return found
""",
        "predict ran graphs on the device",
    ),
    # ex2
    (
        "lab03.ex2",
        "read before the sync",
        _mean(("total + step()", "total + step().item()"), ("total.item()", "total")),
        "a step runs in parts, or twice",
    ),
    (
        "lab03.ex2",
        "read in each step after the sync",
        """
def mean_losses(step, steps, every):
    losses = []
    for _ in range(steps):
        loss = step()
        torch_xla.sync()
        losses.append(loss.item())
    return [sum(losses[i : i + every]) / every for i in range(0, steps, every)]
""",
        "each makes the host wait for the device",
    ),
    (
        "lab03.ex2",
        "no sync but the read",
        _mean((SYNC, "")),
        "End each step with torch_xla.sync()",
    ),
    (
        "lab03.ex2",
        "one sync at the end",
        """
def mean_losses(step, steps, every):
    losses = [step() for _ in range(steps)]
    torch_xla.sync()
    return torch.stack(losses).reshape(-1, every).mean(dim=1).tolist()
""",
        "the steps pile up in one graph",
    ),
    (
        "lab03.ex2",
        "item taken for a sync",
        ITEM_NO_SYNC,
        "reading a value computes it but ends no step",
    ),
    (
        "lab03.ex2",
        "item taken for a sync and stopped",
        ITEM_NO_SYNC,
        "the check stopped the answer, because its graphs grow",
    ),
    (
        "lab03.ex2",
        "adds in place to a total on the CPU",
        _mean(
            ("total = [], 0", "total = [], torch.zeros(())"),
            ("total = total + step()", "total += step()"),
        ),
        "measured 3 reads",
    ),
    ("lab03.ex2", "sums", _mean((" / every", "")), "these are sums"),
    (
        "lab03.ex2",
        "last losses",
        _mean(("total + step()", "step()"), (" / every", "")),
        "these are the last losses of the windows",
    ),
    (
        "lab03.ex2",
        "never begins anew",
        _mean((" / every", " / number"), ("            total = 0\n", "")),
        "these are means since the first step",
    ),
    (
        "lab03.ex2",
        "windows shifted by one",
        _mean(("number % every == 0", "number % every == 1 or every == 1")),
        "does each loss count once?",
    ),
    (
        "lab03.ex2",
        "one step too many",
        _mean(("means, total", "step()\n    means, total")),
        "5 training steps began, 4 were asked for",
    ),
    (
        "lab03.ex2",
        "lazy means",
        _mean((".item()", "")),
        "item 0 is a tensor on xla:0: return Python floats",
    ),
    (
        "lab03.ex2",
        "no return",
        _mean(("    return means\n", "")),
        "`mean_losses` returned None: return a list of 2 floats, one per window",
    ),
    (
        "lab03.ex2",
        "not a number",
        _mean(("total = [], 0", 'total = [], float("nan")')),
        "item 0 is nan",
    ),
    (
        "lab03.ex2",
        "made up",
        "def mean_losses(step, steps, every):\n    return [1.0] * (steps // every)",
        "nothing was read from the device",
    ),
    # ex3
    (
        "lab03.ex3",
        "no sync in the sample",
        _bench(("        sync()\n", "")),
        "a call returns before",
    ),
    (
        "lab03.ex3",
        "clock stopped too early",
        _bench(
            (
                "        sync()\n        samples.append(clock() - start)",
                "        samples.append(clock() - start)\n        sync()",
            )
        ),
        "this is the time to enqueue a call",
    ),
    (
        "lab03.ex3",
        "clock stopped too early, in words",
        _bench(
            (
                "        sync()\n        samples.append(clock() - start)",
                "        samples.append(clock() - start)\n        sync()",
            )
        ),
        "stop the clock after the sync, or the sample",
    ),
    (
        "lab03.ex3",
        "one sync for all samples",
        """
def bench(fn, sync, clock, warmup, repeats):
    for _ in range(warmup):
        fn()
    sync()
    start = clock()
    for _ in range(repeats):
        fn()
    sync()
    return ((clock() - start) / repeats,) * 2
""",
        "1 sync for 6 samples",
    ),
    (
        "lab03.ex3",
        "two syncs a sample",
        _bench(("        start = clock()", "        sync()\n        start = clock()")),
        "a further one measures only itself",
    ),
    (
        "lab03.ex3",
        "first sample not idle",
        _bench(("    sync()\n    samples = []", "    samples = []")),
        "still in the queue when the first sample",
    ),
    (
        "lab03.ex3",
        "first sample not idle, so wrong percentiles",
        _bench(("    sync()\n    samples = []", "    samples = []")),
        "the samples were not taken as asked",
    ),
    (
        "lab03.ex3",
        "drains only if there is a warm-up",
        _bench(("        fn()\n    sync()\n", "        fn()\n        sync()\n")),
        "smallest case that fails: warmup = 0",
    ),
    (
        "lab03.ex3",
        "drains inside the first sample",
        _bench(
            ("    sync()\n    samples = []\n", "    samples, start = [], clock()\n    sync()\n"),
            ("        start = clock()\n", ""),
            (
                "samples.append(clock() - start)",
                "samples.append(clock() - start)\n        start = clock()",
            ),
        ),
        "Sync once before the first",
    ),
    (
        "lab03.ex3",
        "no warm-up",
        _bench(("range(warmup)", "range(0)")),
        "`warmup` times without being timed",
    ),
    (
        "lab03.ex3",
        "warm-up among the samples",
        """
def bench(fn, sync, clock, warmup, repeats):
    sync()
    samples = []
    for _ in range(warmup + repeats):
        start = clock()
        fn()
        sync()
        samples.append(clock() - start)
    samples.sort()
    n = len(samples)
    return samples[math.ceil(0.5 * n) - 1], samples[math.ceil(0.99 * n) - 1]
""",
        "the warm-up calls are among the samples",
    ),
    (
        "lab03.ex3",
        "another clock",
        _bench(
            ("        start = clock()", "        start = time.perf_counter()"),
            ("clock() - start", "time.perf_counter() - start"),
        ),
        "you never called the `clock` that is passed in: use clock(), not time.perf_counter()",
    ),
    (
        "lab03.ex3",
        "interpolated median",
        _bench(
            (
                "samples[math.ceil(0.5 * repeats) - 1]",
                "(samples[(repeats - 1) // 2] + samples[repeats // 2]) / 2",
            )
        ),
        "this is the average of two samples",
    ),
    (
        "lab03.ex3",
        "mean",
        _bench(("samples[math.ceil(0.5 * repeats) - 1]", "sum(samples) / repeats")),
        "this is the mean",
    ),
    (
        "lab03.ex3",
        "median one rank too high",
        _bench(("samples[math.ceil(0.5 * repeats) - 1]", "samples[repeats // 2]")),
        "median: this is one rank too high",
    ),
    (
        "lab03.ex3",
        "slowest for p99",
        _bench(("samples[math.ceil(0.99 * repeats) - 1]", "samples[-1]")),
        "this is the slowest sample",
    ),
    (
        "lab03.ex3",
        "p99 one rank too high",
        _bench(("math.ceil(0.99 * repeats) - 1", "int(0.99 * repeats)")),
        "p99: this is one rank too high",
    ),
    (
        "lab03.ex3",
        "interpolated p99",
        _bench(
            (
                "samples[math.ceil(0.99 * repeats) - 1]",
                'float(__import__("numpy").percentile(samples, 99))',
            )
        ),
        "this is between two samples",
    ),
    (
        "lab03.ex3",
        "milliseconds",
        _bench(("return median, p99", "return 1000 * median, 1000 * p99")),
        "sort the samples in seconds",
    ),
    (
        "lab03.ex3",
        "not sorted",
        _bench(("    samples.sort()\n", "")),
        "this is no sample of that rank",
    ),
    (
        "lab03.ex3",
        "one number",
        _bench(("return median, p99", "return p99")),
        "`bench` returned a float: return (median, p99), two floats in seconds",
    ),
    (
        "lab03.ex3",
        "returns nothing",
        _bench(("    return median, p99\n", "")),
        "median: `bench` returned None: return (median, p99), two floats in seconds",
    ),
    (
        "lab03.ex3",
        "text for p99",
        _bench(("return median, p99", "return median, str(p99)")),
        "p99: `bench` returned (a number, a str): return (median, p99), two floats",
    ),
    (
        "lab03.ex3",
        "does nothing",
        "def bench(fn, sync, clock, warmup, repeats):\n    return None",
        "`bench` returned None: return (median, p99), two floats in seconds. Besides, fn was never",
    ),
    (
        "lab03.ex3",
        "makes up two numbers",
        "def bench(fn, sync, clock, warmup, repeats):\n    return 1.0, 2.0",
        "calls of fn: fn was never called",
    ),
    (
        "lab03.ex3",
        "waits for real time to pass",
        _bench(
            (
                "        start = clock()",
                "        start = clock()\n        while clock() < start + 1:\n            pass",
            )
        ),
        "does its loop end?",
    ),
    # ex4
    (
        "lab03.ex4",
        "unchanged",
        "fixed_loop = growing_loop",
        "xm.optimizer_step(optimizer) marks no step",
    ),
    (
        "lab03.ex4",
        "unchanged, graphs",
        "fixed_loop = growing_loop",
        "the steps did not run as graphs of their own",
    ),
    (
        "lab03.ex4",
        "only the losses read",
        _fixed((SYNC, ""), (STACKED, "[loss.item() for loss in losses]")),
        "each graph holds the steps before it again",
    ),
    (
        "lab03.ex4",
        "item taken for a marker",
        _fixed((SYNC, ""), ("loss.detach()", "loss.item()"), (STACKED, "losses")),
        "reading a value computes it but ends no step",
    ),
    (
        "lab03.ex4",
        "one sync after the loop",
        _fixed((SYNC, ""), ("    return", "    torch_xla.sync()\n    return")),
        "the steps pile up in one graph",
    ),
    (
        "lab03.ex4",
        "a read for each loss",
        _fixed((STACKED, "[loss.item() for loss in losses]")),
        "each makes the host wait for the device",
    ),
    (
        "lab03.ex4",
        "read before the sync",
        _fixed(
            (SYNC, ""),
            (
                "        losses.append(loss.detach())",
                "        losses.append(loss.item())\n        torch_xla.sync()",
            ),
            (STACKED, "losses"),
        ),
        "reads only after it",
    ),
    (
        "lab03.ex4",
        "sync every other step",
        _fixed((SYNC, "        if len(losses) % 2:\n            torch_xla.sync()\n")),
        "the steps pile up in one graph",
    ),
    (
        "lab03.ex4",
        "still tensors",
        _fixed((STACKED, "losses")),
        "item 0 is a tensor on xla:0: return Python floats",
    ),
    (
        "lab03.ex4",
        "no zero_grad",
        _fixed(("        optimizer.zero_grad()\n", "")),
        "the fix must not change the training",
    ),
    (
        "lab03.ex4",
        "updates twice",
        _fixed((SYNC, "        optimizer.step()\n" + SYNC)),
        "the fix must not change the training",
    ),
    (
        "lab03.ex4",
        "stops early",
        _fixed(("in batches:", "in batches[1:]:")),
        "3 training steps began, 4 were asked for",
    ),
    # ex5
    (
        "lab03.ex5",
        "never moved",
        "train = train_on_cpu",
        "the model did not run on torch_xla.device()",
    ),
    (
        "lab03.ex5",
        "moved afterwards",
        """
def train(model, batches, lr):
    losses = train_on_cpu(model, batches, lr)
    model.to(torch_xla.device())
    return torch.tensor(losses).to(torch_xla.device()).tolist()
""",
        "on the device         measured 0 of 4 steps",
    ),
    (
        "lab03.ex5",
        "batches not moved",
        _train(("        x, y = x.to(device), y.to(device)\n", "")),
        "Expected XLA tensor",
    ),
    (
        "lab03.ex5",
        "optimizer made before the move",
        _train(
            ("    model.to(device)\n", ""),
            ("momentum=0.9)\n", "momentum=0.9)\n    model.to(device)\n"),
        ),
        "these are the losses of a model that never learns",
    ),
    (
        "lab03.ex5",
        "item in each step",
        _train(("loss.detach()", "loss.item()"), (STACKED, "losses")),
        "each makes the host wait for the device",
    ),
    (
        "lab03.ex5",
        "item before the sync",
        _train(
            (SYNC, ""),
            (
                "losses.append(loss.detach())",
                "losses.append(loss.item())\n        torch_xla.sync()",
            ),
            (STACKED, "losses"),
        ),
        "a step runs in parts, or twice",
    ),
    (
        "lab03.ex5",
        "item and no sync",
        _train((SYNC, ""), ("loss.detach()", "loss.item()"), (STACKED, "losses")),
        "reading a value computes it but ends no step",
    ),
    (
        "lab03.ex5",
        "optimizer made before the move and item before the sync",
        _train(
            ("    model.to(device)\n", ""),
            ("momentum=0.9)\n", "momentum=0.9)\n    model.to(device)\n"),
            (
                "        torch_xla.sync()\n        losses.append(loss.detach())",
                "        losses.append(loss.item())\n        torch_xla.sync()",
            ),
            (STACKED, "losses"),
        ),
        "a step runs in parts, or twice",
    ),
    ("lab03.ex5", "no sync", _train((SYNC, "")), "End each step with torch_xla.sync()"),
    (
        "lab03.ex5",
        "two syncs a step",
        _train(("        optimizer.step()\n", SYNC + "        optimizer.step()\n")),
        "it is synced twice",
    ),
    (
        "lab03.ex5",
        "data moved once only",
        _train(
            (
                "    for x, y in batches:\n        x, y = x.to(device), y.to(device)\n",
                "    x, y = (each.to(device) for each in batches[0])\n    for _ in batches:\n",
            )
        ),
        "each batch once, in order",
    ),
    (
        "lab03.ex5",
        "another optimizer",
        _train((", momentum=0.9", "")),
        "with the same update",
    ),
    (
        "lab03.ex5",
        "indexed on the device",
        _train(
            (
                "    for x, y in batches:\n        x, y = x.to(device), y.to(device)\n",
                "    xs, ys = (torch.stack(each).to(device) for each in zip(*batches))\n"
                "    for i in range(len(batches)):\n        x, y = xs[i], ys[i]\n",
            )
        ),
        "the graph differs from step to step",
    ),
    (
        "lab03.ex5",
        "no return",
        _train(("    return " + STACKED, "")),
        "`train` returned None: return a list of 4 floats, one per batch",
    ),
    (
        "lab03.ex4",
        "does nothing",
        "def fixed_loop(model, optimizer, batches):\n    pass",
        "losses: `fixed_loop` returned None: return a list of 4 floats, one per batch",
    ),
    (
        "lab03.ex5",
        "does nothing",
        "def train(model, batches, lr):\n    pass",
        "losses: `train` returned None: return a list of 4 floats, one per batch",
    ),
    (
        "lab03.ex5",
        "losses made up",
        _train((STACKED, "[1.0] * len(losses)")),
        "nothing was read from the device",
    ),
    (
        "lab03.ex5",
        "trains a copy on the CPU",
        """def train(model, batches, lr):
    from copy import deepcopy

    twin = deepcopy(model)
    twin._forward_pre_hooks.clear()
    losses = train_on_cpu(twin, batches, lr)
    model.to(torch_xla.device())
    with torch.no_grad():
        for x, _ in batches:
            output = model(x.to(torch_xla.device()))
            torch_xla.sync()
    output.cpu()
    return losses
""",
        "the device ran the forward pass only",
    ),
]
