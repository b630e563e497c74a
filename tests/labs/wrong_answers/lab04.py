"""Wrong answers to lab 04 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are a right answer with one change, so that the change shows what is tested.
"""

from tests.labs.cells import changed

NEW_GRAPHS = """
def new_graphs(values):
    different = len(set(values))
    built_in = len({value == 1 for value in values})
    return {
        "A": different,
        "B": len({value > 0.5 for value in values}),
        "C": different,
        "D": built_in,
        "E": different,
        "F": built_in,
        "G": built_in,
        "H": 1,
    }
"""

STEADY_LOOP = """
def steady_loop(model, optimizer, batches, warmup):
    rows = max(len(y) for _, y in batches)
    losses = []
    for (x, y), factor in zip(batches, warmup.tolist(), strict=True):
        spare = rows - len(y)
        x = F.pad(x, (0, 0, 0, spare)).to("xla")
        y = F.pad(y, (0, spare), value=-100).to("xla")
        factor = torch.tensor([factor]).to("xla")
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        (factor * loss).backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()
"""

BUCKETED = """
def bucketed_losses(model, sequences):
    groups = {}
    for place, ids in enumerate(sequences):
        bucket = next(bucket for bucket in (32, 64, 128) if bucket >= len(ids) - 1)
        groups.setdefault(bucket, []).append(place)
    losses = [0.0] * len(sequences)
    for bucket, places in groups.items():
        inputs = torch.zeros(len(places), bucket, dtype=torch.int64)
        targets = torch.full((len(places), bucket), -100)
        for row, place in enumerate(places):
            ids = torch.tensor(sequences[place])
            inputs[row, : len(ids) - 1] = ids[:-1]
            targets[row, : len(ids) - 1] = ids[1:]
        targets = targets.to("xla")
        logits = model(inputs.to("xla")).transpose(1, 2)
        each = F.cross_entropy(logits, targets, reduction="none")
        means = each.sum(dim=1) / (targets >= 0).sum(dim=1)
        for place, mean in zip(places, means.tolist(), strict=True):
            losses[place] = mean
    return losses
"""

CHOOSE = """
def choose_buckets(histogram, most):
    lengths = sorted(histogram)

    @functools.cache
    def best(end, count):
        if end == 0:
            return 0, ()
        if count == 0:
            return math.inf, ()
        bucket, inside, options = lengths[end - 1], 0, []
        for start in reversed(range(end)):
            inside += histogram[lengths[start]]
            tokens, shorter = best(start, count - 1)
            options.append((tokens + bucket * inside, (*shorter, bucket)))
        return min(options)

    return list(best(len(lengths), most)[1])
"""

PLAN = """
def plan(job, seconds):
    graphs = set()
    for steps in job:
        training = "first"
        for kind, rows, length in steps:
            if kind == "train":
                kind, training = training, "train"
            graphs.add((kind, rows, length))
    queues = [[] for _ in job]
    busy = [0.0] * len(job)
    for graph in sorted(graphs, key=seconds.__getitem__, reverse=True):
        worker = busy.index(min(busy))
        queues[worker].append(graph)
        busy[worker] += seconds[graph]
    return queues
"""

RIGHT = {"ex1": NEW_GRAPHS, "ex2": STEADY_LOOP, "ex3": BUCKETED, "ex4": CHOOSE, "ex5": PLAN}


def _graphs(old: str, new: str) -> str:
    return changed(NEW_GRAPHS, (old, new))


def _steady(*changes: tuple[str, str]) -> str:
    return changed(STEADY_LOOP, *changes)


def _bucketed(*changes: tuple[str, str]) -> str:
    return changed(BUCKETED, *changes)


def _choose(*changes: tuple[str, str]) -> str:
    return changed(CHOOSE, *changes)


def _plan(*changes: tuple[str, str]) -> str:
    return changed(PLAN, *changes)


NO_PADDING = (
    ("        x = F.pad(x, (0, 0, 0, spare)).to", "        x = x.to"),
    ("        y = F.pad(y, (0, spare), value=-100).to", "        y = y.to"),
)
INDEXED = (
    (
        "(x, y), factor in zip(batches, warmup.tolist(), strict=True)",
        "k, (x, y) in enumerate(batches)",
    ),
    ('        factor = torch.tensor([factor]).to("xla")\n', ""),
    ("(factor * loss)", "(warmup[k] * loss)"),
)
LONGEST_FIRST = "sorted(graphs, key=seconds.__getitem__, reverse=True)"

WRONG = [
    # ex1
    (
        "lab04.ex1",
        "a shape is an input",
        _graphs('"A": different', '"A": 1'),
        "A: you said 1 compile: a graph is made for fixed shapes",
    ),
    (
        "lab04.ex1",
        "each run compiles",
        _graphs('"A": different', '"A": len(values)'),
        "a value that comes back brings back a graph that is known already",
    ),
    (
        "lab04.ex1",
        "each value a dtype",
        _graphs('"B": len({value > 0.5 for value in values})', '"B": different'),
        "Python decides which branch is recorded",
    ),
    (
        "lab04.ex1",
        "both branches recorded",
        _graphs('"B": len({value > 0.5 for value in values})', '"B": 2'),
        "how many branches do these values take?",
    ),
    (
        "lab04.ex1",
        "equal shapes are equal graphs",
        _graphs('"C": different', '"C": 1'),
        "all slices have the same shape",
    ),
    (
        "lab04.ex1",
        "each multiplier baked in",
        _graphs('"D": built_in', '"D": different'),
        "an ordinary number is handed to the graph as an input",
    ),
    (
        "lab04.ex1",
        "no multiplier is special",
        _graphs('"D": built_in', '"D": 1'),
        "D: you said 1 compile: an ordinary number",
    ),
    (
        "lab04.ex1",
        "the exponent is an input",
        _graphs('"E": different', '"E": built_in'),
        "is the exponent an input of the graph",
    ),
    (
        "lab04.ex1",
        "each rate of dropout baked in",
        _graphs('"F": built_in', '"F": different'),
        "F: you said 3 compiles: measure it",
    ),
    (
        "lab04.ex1",
        "each learning rate compiles",
        _graphs('"G": built_in', '"G": different'),
        "the optimizer multiplies the gradient by it",
    ),
    (
        "lab04.ex1",
        "moved data is baked in",
        _graphs('"H": 1', '"H": different'),
        "a tensor that was moved to the device is data",
    ),
    (
        "lab04.ex1",
        "the tensor is special like the number",
        _graphs('"H": 1', '"H": built_in'),
        "a graph is not made for its content",
    ),
    (
        "lab04.ex1",
        "one missing",
        _graphs('        "H": 1,\n', ""),
        'no prediction yet: add "H": compiles',
    ),
    (
        "lab04.ex1",
        "yes or no",
        _graphs('"H": 1', '"H": False'),
        "H: give a whole number",
    ),
    (
        "lab04.ex1",
        "a list",
        "def new_graphs(values):\n    return [1] * 8",
        "new_graphs returned a list of 8: return a dict",
    ),
    (
        "lab04.ex1",
        "numbers of the public check",
        """
def new_graphs(values):
    return {"A": 3, "B": 1, "C": 3, "D": 1, "E": 3, "F": 1, "G": 1, "H": 1}
""",
        "smallest case that fails: values = [0.75, 0.5, 0.75, 1.0",
    ),
    (
        "lab04.ex1",
        "measures in place of a formula",
        """
def new_graphs(values):
    found = {}
    for name, edit in edits.EDITS.items():
        x = torch.ones(16, 50 + ord(name)).to("xla")
        with Meter() as m:
            edits.run(edit, x, values)
        found[name] = m.compiles
    return found
""",
        "new_graphs ran graphs on the device",
    ),
    # ex2
    (
        "lab04.ex2",
        "the given loop",
        """
def steady_loop(model, optimizer, batches, warmup):
    return stormy_loop(model, optimizer, batches, warmup)
""",
        "batches of 4 shapes enter the model, and each is a graph",
    ),
    (
        "lab04.ex2",
        "only the batches padded",
        _steady(*INDEXED),
        "a Python number that chooses a place",
    ),
    (
        "lab04.ex2",
        "only the index removed",
        _steady(*NO_PADDING),
        "It is not the only thing that differs",
    ),
    (
        "lab04.ex2",
        "padded rows count as class 0",
        _steady((", value=-100", "")),
        "a padded row must not count",
    ),
    (
        "lab04.ex2",
        "mean over all rows",
        _steady(("model(x), y)", 'model(x), y, reduction="sum") / rows')),
        "nor in the number of rows that it is divided by",
    ),
    (
        "lab04.ex2",
        "incomplete batches left out",
        _steady(
            ("        spare =", "        if len(y) < rows:\n            continue\n        spare =")
        ),
        "`steady_loop` returned a list of 1: return a list of 4 floats, one per batch",
    ),
    (
        "lab04.ex2",
        "cut to the smallest batch",
        _steady(("max(len(y)", "min(len(y)")),
        "rows were dropped: every sample has to enter the model",
    ),
    (
        "lab04.ex2",
        "the first batch taken for the largest",
        _steady(("max(len(y) for _, y in batches)", "len(batches[0][1])")),
        "rows were dropped: every sample has to enter the model",
    ),
    (
        "lab04.ex2",
        "padded to a hundred",
        _steady(("max(len(y) for _, y in batches)", "100")),
        "more rows than needed",
    ),
    (
        "lab04.ex2",
        "warm-up forgotten",
        _steady(("(factor * loss)", "loss")),
        "these are losses without the warm-up",
    ),
    (
        "lab04.ex2",
        "no update",
        _steady(("        optimizer.step()\n", "")),
        "these are the losses of a model that never learns",
    ),
    (
        "lab04.ex2",
        "returns the scaled losses",
        _steady(
            (
                "        (factor * loss).backward()",
                "        loss = factor * loss\n        loss.backward()",
            )
        ),
        "item 0 is a list of 1: return Python floats",
    ),
    (
        "lab04.ex2",
        "item in each step before the sync",
        _steady(
            ("loss.detach()", "loss.item()"),
            ("torch.stack(losses).tolist()", "losses"),
            ("        torch_xla.sync()\n        losses", "        losses"),
            ("loss.item())", "loss.item())\n        torch_xla.sync()"),
        ),
        "a step runs in parts, or twice",
    ),
    (
        "lab04.ex2",
        "no sync",
        _steady(("        torch_xla.sync()\n", "")),
        "End each step with torch_xla.sync()",
    ),
    (
        "lab04.ex2",
        "on the CPU",
        """
def steady_loop(model, optimizer, batches, warmup):
    model.cpu()
    optimizer = torch.optim.SGD(model.parameters(), lr=optimizer.param_groups[0]["lr"])
    losses = []
    for (x, y), factor in zip(batches, warmup.tolist()):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        (factor * loss).backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
""",
        "every step belongs on torch_xla.device(), whole",
    ),
    (
        "lab04.ex2",
        "does nothing",
        "def steady_loop(model, optimizer, batches, warmup):\n    return None",
        "`steady_loop` returned None: return a list of 4 floats, one per batch",
    ),
    # ex3
    (
        "lab04.ex3",
        "no padding",
        "def bucketed_losses(model, sequences):\n    return losses_one_by_one(model, sequences)",
        "each shape that enters the model is a graph",
    ),
    (
        "lab04.ex3",
        "one bucket for all",
        _bucketed(("(32, 64, 128)", "(128,)")),
        "a short sentence belongs into a shorter bucket",
    ),
    (
        "lab04.ex3",
        "four buckets",
        _bucketed(("(32, 64, 128)", "(32, 48, 80, 128)")),
        "measured 4",
    ),
    (
        "lab04.ex3",
        "padding counts in the divisor",
        _bucketed(("each.sum(dim=1) / (targets >= 0).sum(dim=1)", "each.mean(dim=1)")),
        "only real targets count",
    ),
    (
        "lab04.ex3",
        "targets of 0",
        _bucketed(("bucket), -100)", "bucket), 0)")),
        "its targets must not count",
    ),
    (
        "lab04.ex3",
        "sums",
        _bucketed((" / (targets >= 0).sum(dim=1)", "")),
        "neither in the sum nor in the number it is divided by",
    ),
    (
        "lab04.ex3",
        "one mean for a batch",
        _bucketed(
            (
                "each.sum(dim=1) / (targets >= 0).sum(dim=1)",
                "(each.sum() / (targets >= 0).sum()).expand(len(places))",
            )
        ),
        "neither in the sum nor in the number it is divided by",
    ),
    (
        "lab04.ex3",
        "padding on the left",
        _bucketed(
            ("inputs[row, : len(ids) - 1]", "inputs[row, bucket - len(ids) + 1 :]"),
            ("targets[row, : len(ids) - 1]", "targets[row, bucket - len(ids) + 1 :]"),
        ),
        "padding goes to the right",
    ),
    (
        "lab04.ex3",
        "targets not shifted",
        _bucketed(("= ids[1:]", "= ids[:-1]")),
        "off by",
    ),
    (
        "lab04.ex3",
        "in the order of the buckets",
        _bucketed(
            ("losses = [0.0] * len(sequences)", "losses = []"),
            ("losses[place] = mean", "losses.append(mean)"),
        ),
        "the losses are right, but they are not in the order of the sentences",
    ),
    (
        "lab04.ex3",
        "padded on the device",
        """
def bucketed_losses(model, sequences):
    losses = []
    for ids in sequences:
        bucket = next(bucket for bucket in (32, 64, 128) if bucket >= len(ids) - 1)
        ids = torch.tensor(ids).to("xla")
        spare = bucket - len(ids) + 1
        logits = model(F.pad(ids[:-1], (0, spare))[None])[0]
        losses.append(F.cross_entropy(logits, F.pad(ids[1:], (0, spare), value=-100)).item())
    return losses
""",
        "pad on the CPU, before .to",
    ),
    (
        "lab04.ex3",
        "one graph of everything",
        """
def bucketed_losses(model, sequences):
    losses = []
    for ids in sequences:
        ids = torch.tensor([ids]).to("xla")
        losses.append(F.cross_entropy(model(ids[:, :-1])[0], ids[0, 1:]))
    return torch.stack(losses).tolist()
""",
        "each shape that enters the model is a graph",
    ),
    (
        "lab04.ex3",
        "batches in the order given",
        """
def bucketed_losses(model, sequences):
    losses = []
    for four in (sequences[:4], sequences[4:8], sequences[8:]):
        longest = max(len(ids) - 1 for ids in four)
        inputs, targets = torch.zeros(4, longest, dtype=torch.int64), torch.full((4, longest), -100)
        for row, ids in enumerate(four):
            inputs[row, : len(ids) - 1] = torch.tensor(ids[:-1])
            targets[row, : len(ids) - 1] = torch.tensor(ids[1:])
        targets = targets.to("xla")
        logits = model(inputs.to("xla")).transpose(1, 2)
        each = F.cross_entropy(logits, targets, reduction="none")
        losses += (each.sum(dim=1) / (targets >= 0).sum(dim=1)).tolist()
    return losses
""",
        "a short sentence belongs into a shorter bucket",
    ),
    (
        "lab04.ex3",
        "rows without a sentence",
        _bucketed(
            ("torch.zeros(len(places), bucket", "torch.zeros(len(sequences), bucket"),
            ("torch.full((len(places), bucket)", "torch.full((len(sequences), bucket)"),
            ("zip(places, means.tolist(), strict=True)", "zip(places, means.tolist())"),
        ),
        "a batch needs no row that holds no sentence",
    ),
    (
        "lab04.ex3",
        "cut to 32",
        _bucketed(
            ("in (32, 64, 128) if bucket >= len(ids) - 1", "in (32,)"),
            ("torch.tensor(sequences[place])", "torch.tensor(sequences[place][:33])"),
        ),
        "tokens are missing",
    ),
    (
        "lab04.ex3",
        "lazy losses",
        _bucketed(("means.tolist()", "means")),
        "item 0 is a tensor on xla:0: return Python floats",
    ),
    (
        "lab04.ex3",
        "on the CPU",
        """
def bucketed_losses(model, sequences):
    model.cpu()
    ids = [torch.tensor(each) for each in sequences]
    return [F.cross_entropy(model(each[None, :-1])[0], each[1:]).item() for each in ids]
""",
        "every sentence belongs through the model on torch_xla.device()",
    ),
    (
        "lab04.ex3",
        "does nothing",
        "def bucketed_losses(model, sequences):\n    return []",
        "`bucketed_losses` returned a list of 0: return a list of 12 floats, one per sentence",
    ),
    # ex4
    (
        "lab04.ex4",
        "the longest only",
        "def choose_buckets(histogram, most):\n    return [max(histogram)]",
        "far from the best",
    ),
    (
        "lab04.ex4",
        "every length",
        "def choose_buckets(histogram, most):\n    return list(histogram)",
        "4 buckets: each is a compile, and 2 are paid",
    ),
    (
        "lab04.ex4",
        "the most frequent lengths",
        """
def choose_buckets(histogram, most):
    return sorted(histogram, key=histogram.get)[-most:]
""",
        "the longest sequence fits in no bucket",
    ),
    (
        "lab04.ex4",
        "quantiles",
        """
def choose_buckets(histogram, most):
    every = sorted(length for length, count in histogram.items() for _ in range(count))
    return [every[-(-(k + 1) * len(every) // most) - 1] for k in range(most)]
""",
        "smallest case that fails: histogram = {",
    ),
    (
        "lab04.ex4",
        "quantiles of the lengths",
        """
def choose_buckets(histogram, most):
    lengths = sorted(histogram)
    most = min(most, len(lengths))
    return [lengths[-(-(k + 1) * len(lengths) // most) - 1] for k in range(most)]
""",
        "not yet",
    ),
    (
        "lab04.ex4",
        "equal distances",
        """
def choose_buckets(histogram, most):
    return [-(-(k + 1) * max(histogram) // most) for k in range(most)]
""",
        "where there are many sequences a bucket should lie close above them",
    ),
    (
        "lab04.ex4",
        "one after the other",
        """
def choose_buckets(histogram, most):
    buckets = [max(histogram)]
    while len(buckets) < most:
        buckets.append(min(histogram, key=lambda b: padded_tokens(histogram, [*buckets, b])))
    return buckets
""",
        "a good guess, but another choice needs fewer tokens",
    ),
    (
        "lab04.ex4",
        "lengths taken as sorted",
        _choose(("sorted(histogram)", "list(histogram)")),
        "not yet",
    ),
    (
        "lab04.ex4",
        "counts forgotten",
        _choose(("inside += histogram[lengths[start]]", "inside += 1")),
        "not yet",
    ),
    (
        "lab04.ex4",
        "no bucket from the shortest on",
        _choose(("reversed(range(end))", "reversed(range(1, end))")),
        "ValueError: min() ",
    ),
    (
        "lab04.ex4",
        "one bucket too many",
        _choose(("best(len(lengths), most)", "best(len(lengths), most + 1)")),
        "3 buckets: each is a compile, and 2 are paid",
    ),
    (
        "lab04.ex4",
        "all combinations",
        """
def choose_buckets(histogram, most):
    from itertools import combinations

    *shorter, longest = sorted(histogram)
    choices = (
        [*few, longest]
        for count in range(min(most, len(histogram)))
        for few in combinations(shorter, count)
    )
    return min(choices, key=lambda buckets: padded_tokens(histogram, buckets))
""",
        "the check stopped the answer after some seconds",
    ),
    (
        "lab04.ex4",
        "the tokens too",
        _choose(("list(best(len(lengths), most)[1])", "best(len(lengths), most)")),
        "a tuple of 2 is among the buckets: return whole numbers",
    ),
    (
        "lab04.ex4",
        "does nothing",
        "def choose_buckets(histogram, most):\n    return None",
        "`choose_buckets` returned None: return a list of lengths",
    ),
    # ex5
    (
        "lab04.ex5",
        "all of the table",
        _plan((LONGEST_FIRST, "sorted(seconds, key=seconds.get, reverse=True)")),
        "is not needed",
    ),
    (
        "lab04.ex5",
        "no first step",
        _plan(('training = "first"', 'training = "train"')),
        "the first training step of a worker is a graph of its own",
    ),
    (
        "lab04.ex5",
        "the first step of the job only",
        _plan(
            (
                '    for steps in job:\n        training = "first"\n',
                '    training = "first"\n    for steps in job:\n',
            )
        ),
        "of the shape that this worker begins with",
    ),
    (
        "lab04.ex5",
        "the first step is trained again",
        _plan(
            (
                '                kind, training = training, "train"',
                '                graphs.add(("train", rows, length))\n'
                '                kind, training = training, "train"',
            )
        ),
        "it runs as the first step of a worker only, which is another graph",
    ),
    (
        "lab04.ex5",
        "an evaluation taken for the first step",
        _plan(
            (
                'if kind == "train":\n                kind, training = training, "train"',
                'if training == "first":\n                kind, training = training, "train"',
            )
        ),
        "the first training step of a worker is a graph of its own",
    ),
    (
        "lab04.ex5",
        "no evaluation",
        _plan(
            ("            graphs.add", '            if kind != "eval":\n                graphs.add')
        ),
        "an evaluation is a graph too",
    ),
    (
        "lab04.ex5",
        "the last batch forgotten",
        _plan(("in steps:", "in [s for s in steps if s[0] == 'eval' or s[1] * s[2] == 8192]:")),
        "is a graph like any other",
    ),
    (
        "lab04.ex5",
        "dealt out in turn",
        _plan(("busy.index(min(busy))", "sum(map(len, queues)) % len(job)")),
        "one worker still compiles while others are done",
    ),
    (
        "lab04.ex5",
        "in the order of the table",
        _plan((LONGEST_FIRST, "[graph for graph in seconds if graph in graphs]")),
        "Which graph would you rather not have left for the end?",
    ),
    (
        "lab04.ex5",
        "shortest first",
        _plan((", reverse=True", "")),
        "Which graph would you rather not have left for the end?",
    ),
    (
        "lab04.ex5",
        "one worker does it all",
        _plan(("busy.index(min(busy))", "0")),
        "one worker still compiles while others are done",
    ),
    (
        "lab04.ex5",
        "each its own",
        """
def plan(job, seconds):
    queues = []
    for steps in job:
        training, queue = "first", []
        for kind, rows, length in steps:
            if kind == "train":
                kind, training = training, "train"
            if (kind, rows, length) not in queue:
                queue.append((kind, rows, length))
        queues.append(queue)
    return queues
""",
        "a graph is compiled twice: the workers share what they have compiled",
    ),
    (
        "lab04.ex5",
        "one queue too few",
        _plan(("for _ in job]", "for _ in job[1:]]"), ("* len(job)", "* (len(job) - 1)")),
        "`plan` returned 1 queue: return one for each of the 2 workers",
    ),
    (
        "lab04.ex5",
        "one list",
        _plan(("    return queues", "    return [graph for queue in queues for graph in queue]")),
        "queues: return one for each of the 2 workers",
    ),
    (
        "lab04.ex5",
        "pairs with seconds",
        _plan((".append(graph)", ".append((graph, seconds[graph]))")),
        "a tuple of 2 is in a queue: a graph is (kind, rows, length)",
    ),
    (
        "lab04.ex5",
        "empty queues",
        "def plan(job, seconds):\n    return [[] for _ in job]",
        "is compiled while the job waits",
    ),
    (
        "lab04.ex5",
        "does nothing",
        "def plan(job, seconds):\n    return None",
        "`plan` returned None: return a list of queues, each a list of graphs",
    ),
    (
        "lab04.ex2",
        "filled up with rows of its own",
        _steady(
            ("F.pad(x, (0, 0, 0, spare))", "x[torch.arange(rows) % len(y)]"),
            ("F.pad(y, (0, spare), value=-100)", "y[torch.arange(rows) % len(y)]"),
        ),
        "a padded row must not count",
    ),
    (
        "lab04.ex2",
        "padded to a power of two",
        _steady(("rows = max(len(y) for _, y in batches)", "rows = 32")),
        "more rows than needed: pad to the largest batch",
    ),
    (
        "lab04.ex2",
        "gradients of all steps so far",
        _steady(("        optimizer.zero_grad()\n", "")),
        "the gradients of earlier steps are still there",
    ),
    (
        "lab04.ex3",
        "row after row read",
        _bucketed(("means.tolist()", "[means[k].item() for k in range(len(places))]")),
        "A Python number that cuts or takes a row of a tensor on the device",
    ),
    (
        "lab04.ex4",
        "the search of the course",
        """
from utils.xla.buckets import best_buckets

def choose_buckets(histogram, most):
    return best_buckets([length for length in histogram for _ in range(histogram[length])], most)
""",
        "best_buckets is the course's search: write one of your own",
    ),
    (
        "lab04.ex4",
        "the least useful left out",
        """
def choose_buckets(histogram, most):
    buckets = sorted(histogram)
    while len(buckets) > most:
        rest = [[b for b in buckets if b != gone] for gone in buckets[:-1]]
        buckets = min(rest, key=lambda few: padded_tokens(histogram, few))
    return buckets
""",
        "To move one bucket changes what the others are worth",
    ),
    (
        "lab04.ex4",
        "halves of the longest",
        """
def choose_buckets(histogram, most):
    return [max(max(histogram) >> k, 1) for k in range(most)]
""",
        "where there are many sequences a bucket should lie close above them",
    ),
    (
        "lab04.ex5",
        "an evaluation begins the training again",
        _plan(
            (
                '                kind, training = training, "train"\n',
                '                kind, training = training, "train"\n'
                "            else:\n"
                '                training = "first"\n',
            )
        ),
        "an evaluation in between begins the training again",
    ),
    (
        "lab04.ex5",
        "a first step for each shape",
        """
def plan(job, seconds):
    graphs = set()
    for steps in job:
        seen = set()
        for step in steps:
            new = step[0] == "train" and step not in seen
            graphs.add(("first", *step[1:]) if new else step)
            seen.add(step)
    return [sorted(graphs)] + [[] for _ in job[1:]]
""",
        "neither another shape nor an evaluation in between",
    ),
    (
        "lab04.ex5",
        "the same number of graphs for each",
        _plan(("busy[worker] += seconds[graph]", "busy[worker] += 1")),
        "one worker still compiles while others are done",
    ),
    (
        "lab04.ex4",
        "more buckets than lengths",
        """
def choose_buckets(histogram, most):
    buckets = [max(histogram)]
    while len(buckets) < most:
        left = [length for length in histogram if length not in buckets]
        buckets.append(min(left, key=lambda each: padded_tokens(histogram, [*buckets, each])))
    return buckets
""",
        "this happened for histogram",
    ),
    (
        "lab04.ex2",
        "losses from the CPU beside work on the device",
        """
import copy

def steady_loop(model, optimizer, batches, warmup):
    mine = copy.deepcopy(model).cpu()
    own = torch.optim.SGD(mine.parameters(), lr=optimizer.param_groups[0]["lr"])
    rows, losses = max(len(y) for _, y in batches), []
    for factor, (x, y) in zip(warmup.tolist(), batches):
        optimizer.zero_grad()
        out = model(torch.ones(rows, x.shape[1]).to("xla"))
        (torch.tensor([factor]).to("xla") * out.sum()).backward()
        optimizer.step()
        torch_xla.sync()
        own.zero_grad()
        loss = F.cross_entropy(mine(x), y)
        (factor * loss).backward()
        own.step()
        losses.append(loss.item())
    return losses
""",
        "they are not those of the model on the device",
    ),
    (
        "lab04.ex3",
        "losses from the CPU beside work on the device",
        """
import copy

def bucketed_losses(model, sequences):
    mine, losses = copy.deepcopy(model).cpu(), []
    for ids in map(torch.tensor, sequences):
        bucket = next(bucket for bucket in (32, 64, 128) if bucket >= len(ids) - 1)
        model(torch.zeros(1, bucket, dtype=torch.int64).to("xla")).sum().item()
        losses.append(F.cross_entropy(mine(ids[None, :-1])[0], ids[1:]).item())
    return losses
""",
        "they are not of what entered the model on the device",
    ),
]
