"""Wrong answers to lab 12 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are the solution with one change, so that the change shows what is tested.
"""

from tests.labs.cells import code_of
from tests.labs.wrong_answers import entries
from utils.labs.lab12.observe import OBSERVERS

RIGHT = {name: code_of("lab12")[f"{name}-code"] for name in OBSERVERS}
GIVEN = code_of("lab12")["ex1-given"].split("\n\n\n")[0].replace("bench_given", "bench")
PARTNERS = {"ex1": "traps", "ex2": "merged"}
_changed, _ = entries.of("lab12", RIGHT)


def _rest(exercise: str) -> str:
    """What stands below the answer in its cell: the second function, if there is one."""
    name = PARTNERS.get(exercise)
    return RIGHT[exercise][RIGHT[exercise].index(f"def {name}") :] if name else ""


def _written(exercise: str, name: str, said: str, body: str) -> tuple:
    """An answer of its own: the lines of its body, with the names that the task gives."""
    arguments = {
        "ex1": "service, lengths, repeats",
        "ex2": "samples, p, level=0.95",
        "ex3": "log",
        "ex4": "arrivals_ms, server",
        "ex5": "reference, candidate, x",
    }[exercise]
    lines = "\n    ".join(body.strip("\n").split("\n"))
    head = f"def {OBSERVERS[exercise].answer}({arguments}):\n    {lines}\n"
    return f"lab12.{exercise}", name, f"{head}\n\n{_rest(exercise)}", said


def _hostile(exercise: str, nothing: str, endless: bool = False) -> list[tuple]:
    """What every exercise has to survive, and what the card says to None."""
    found = [
        _written(exercise, "does nothing", nothing, "return None"),
        _written(exercise, "raises", "ZeroDivisionError: division by zero", "return 1 / 0"),
    ]
    if endless:  # the others are called in the same way
        found.append(
            _written(exercise, "for ever", "the check stopped the answer", "while True:\n    pass")
        )
    return found


# ex1

RUN = "            service.run(Request(length, number))\n"
WAIT = "            service.wait()\n"
APPEND = "            (samples if number else first).append(service.clock() - start)\n"
NUMBERS = "for number in range(1 + repeats):"
PERCENTILES = "    p50, p99 = np.percentile(samples, [50, 99])\n"
WRONG = [
    *_hostile("ex1", "`bench` returned None: return {'first_s'", endless=True),
    ("lab12.ex1", "as given", f"{GIVEN}\n\n\n{_rest('ex1')}", "the time to hand a request over"),
    _changed("ex1", "no wait", "Call wait() before the clock is read again", (WAIT, "")),
    _changed("ex1", "wait before the call", "the clock is read without a wait() between them",
             (RUN + WAIT, WAIT + RUN)),
    _changed("ex1", "wait after the clock", "the time to hand a request over",
             (WAIT + APPEND, APPEND + WAIT)),
    _changed("ex1", "first among the samples", "the first call of each length is among the samples",
             ("            (samples if number else first).append(service.clock() - start)\n",
              "            samples.append(service.clock() - start)\n"
              "            first += samples[-1:] if not number else []\n"),
             (NUMBERS, "for number in range(repeats):")),
    _changed("ex1", "first kept as well", "the first call of each length is among the samples",
             (APPEND, "            samples.append(service.clock() - start)\n"
                      "            first += samples[-1:] if not number else []\n")),
    _changed("ex1", "one warm-up for all", "each length compiles a program of its own",
             (NUMBERS, "for number in range(repeats + (length == lengths[0])):"),
             ("(samples if number else first)",
              "(samples if number or length != lengths[0] else first)")),
    _changed("ex1", "the same text", "answered from the cache",
             (RUN, RUN.replace("number", "0"))),
    _changed("ex1", "warm-up with a text of the samples", "send a new number each time",
             (RUN, RUN.replace("number", "max(number, 1)"))),
    _changed("ex1", "the slowest dropped", "the slowest samples were dropped",
             (PERCENTILES, "    samples = sorted(samples)[: -len(lengths)]\n" + PERCENTILES)),
    _changed("ex1", "the mean", "this is the mean, for both",
             (PERCENTILES, "    p50 = p99 = np.mean(samples)\n")),
    _changed("ex1", "milliseconds", "these are milliseconds",
             (PERCENTILES, "    p50, p99 = 1e3 * np.percentile(samples, [50, 99])\n")),
    _changed("ex1", "too few", "samples are asked for", (NUMBERS, "for number in range(repeats):")),
    _changed("ex1", "the last length", "the last length only",
             ("    first, samples = [], []\n    for length in lengths:\n",
              "    first = []\n    for length in lengths:\n        samples = []\n")),
    _changed("ex1", "another clock", "was never read: use it, not the time module",
             ("            start = service.clock()\n", "            import time\n"
              "            start = time.perf_counter()\n"),
             (".append(service.clock() - start)", ".append(time.perf_counter() - start)")),
    _changed("ex1", "no first", "first_s is not what the first call of each length took",
             ('"first_s": first', '"first_s": [min(first)] * len(first)')),
    _changed("ex1", "always all traps", "The same was said of every service",
             ("    return found\n", '    return {"asynchronous", "compiles", "remembers"}\n')),
    _changed("ex1", "traps never", "The same was said of every service",
             ("    return found\n", "    return set()\n")),
    ("lab12.ex1", "traps by looking", f"{RIGHT['ex1'][: RIGHT['ex1'].index('def traps')]}"
     "def traps(service, length):\n"
     "    return service.run.__closure__[0].cell_contents._case['traits']\n",
     "did not read the clock: find the traits by what calls take"),
    _changed("ex1", "traps without a text sent twice", "sent no text twice",
             ("seconds(1) < min(usual) / 2", "'remembers' in service.run.__closure__[0]"
              ".cell_contents._case['traits']")),
    _changed("ex1", "a cache that is the compiler", '"remembers" was said of a service that is not',
             ("seconds(1) < min(usual) / 2", "seconds(0) < first / 2")),
    _changed("ex1", "another name", "is no name of the table",
             ('found.add("asynchronous")', 'found.add("lazy")')),
    _changed("ex1", "touches the clock", "AttributeError",
             (RUN + WAIT, RUN + "            service._now = service._idle_at\n")),
    _changed("ex1", "touches the traits", "AttributeError",
             ("    first, samples", '    service._case["traits"] = []\n    first, samples'),
             (WAIT, "")),
    _changed("ex1", "writes the log", "AttributeError",
             ("    return {", "    service.log[:] = ['c', 'r16:1', 'w', 'c'] * 99\n    return {")),
]  # fmt: skip

# ex2

VALUE = '"value": float(np.percentile(samples, p))'
LOW, HIGH = "low[-1] if low else None", "high[0] if high else None"
WRONG += [
    *_hostile("ex2", "`percentile` returned None: return {'value'"),
    _changed("ex2", "nearest rank", "interpolate linearly",
             (VALUE, '"value": ordered[math.ceil(p / 100 * len(ordered)) - 1]')),
    _changed("ex2", "the mean as value", "this is the mean", (VALUE, '"value": np.mean(samples)')),
    _changed("ex2", "p as a share", "p is a number of percent",
             (VALUE, '"value": np.percentile(samples, p / 100)')),
    _changed("ex2", "not sorted", "sort them",
             (VALUE, '"value": float(np.interp(p / 100 * (len(samples) - 1),'
                     ' range(len(samples)), samples))')),
    _changed("ex2", "one side", "each end may be missed with (1 - level) / 2",
             ("(1 - level) / 2", "1 - level")),
    _changed("ex2", "ranks from 0", "ranks count from 1",
             ("binom.cdf(np.arange(len(ordered))", "binom.cdf(np.arange(len(ordered)) - 1")),
    _changed("ex2", "at most in place of below", "ranks count from 1",
             ("binom.cdf(np.arange(len(ordered))", "binom.cdf(np.arange(len(ordered)) + 1")),
    _changed("ex2", "the upper end short", "the upper end is one sample too low",
             ("if 1 - each <= miss", "if 1 - each - binom.pmf(ordered.index(sample) + 1,"
              " len(ordered), p / 100) <= miss")),
    _changed("ex2", "of the mean", "this is the mean and its standard error",
             (LOW, "np.mean(samples) - 1.959963984540054 * statistics.stdev([*samples, *samples[:1]"
                   " * (len(samples) < 2)]) / math.sqrt(len(samples))"),
             (HIGH, "np.mean(samples) + 1.959963984540054 * statistics.stdev([*samples, *samples["
                    ":1] * (len(samples) < 2)]) / math.sqrt(len(samples))")),
    _changed("ex2", "spread of the samples", "how far these spread, not how sure",
             (LOW, "np.percentile(samples, 100 * miss)"),
             (HIGH, "np.percentile(samples, 100 - 100 * miss)")),
    _changed("ex2", "a normal curve", "a normal curve in place of the binomial",
             ("    low = [", "    off = statistics.NormalDist().inv_cdf(1 - miss) * math.sqrt("
              "len(ordered) * p / 100 * (1 - p / 100))\n    middle = len(ordered) * p / 100\n"
              "    low = ["),
             (LOW, "ordered[math.floor(middle - off) - 1] if middle - off >= 1 else None"),
             (HIGH, "ordered[math.ceil(middle + off) - 1] if math.ceil(middle + off) <= len("
                    "ordered) else None")),
    _changed("ex2", "the range", "the smallest and the largest sample",
             (LOW, "ordered[0]"), (HIGH, "ordered[-1]")),
    _changed("ex2", "the largest for None", "no sample of",
             (HIGH, "high[0] if high else ordered[-1]")),
    _changed("ex2", "the smallest for None", "no sample of",
             (LOW, "low[-1] if low else ordered[0]")),
    _changed("ex2", "None for both", "large enough to bound it",
             (LOW, "low[-1] if low and high else None"),
             (HIGH, "high[0] if low and high else None")),
    _changed("ex2", "infinity for None", "an end is inf",
             (HIGH, "high[0] if high else math.inf")),
    _changed("ex2", "mean of percentiles", "a mean of percentiles is no percentile",
             ("    weighed = sorted(", "    return np.mean([np.percentile(w['samples'], p) for w in"
              " workers if w['samples']])\n    weighed = sorted(")),
    _changed("ex2", "weighed mean", "Weighing the means does not mend it",
             ("    weighed = sorted(", "    full = [w for w in workers if w['samples']]\n"
              "    return np.average([np.percentile(w['samples'], p) for w in full],"
              " weights=[w['requests'] for w in full])\n    weighed = sorted(")),
    _changed("ex2", "pooled", "every sample counts alike here",
             ("    weighed = sorted(", "    return np.percentile([s for w in workers for s in"
              " w['samples']], p)\n    weighed = sorted(")),
    _changed("ex2", "the slowest worker", "the slowest worker",
             ("    weighed = sorted(", "    return max(np.percentile(w['samples'], p) for w in"
              " workers if w['samples'])\n    weighed = sorted(")),
    _changed("ex2", "requests as weights", "not the requests of its worker",
             ('worker["requests"] / len(worker["samples"])', 'worker["requests"]'),
             ('sum(worker["requests"] for worker in workers)', "sum(w for _, w in weighed)")),
    _changed("ex2", "the course's own", "belongs to the course: write this one yourself",
             ("    ordered, miss", "    from utils.serving.bench.quantiles import interval\n"
              "    low, high = interval(samples, p, level)\n    ordered, miss")),
]  # fmt: skip

# ex3

TAKES = "(usual if took is None else took)"
START = "max(due, free[slot])"
RETURNED = '"open_ms": latencies,'
WRONG += [
    *_hostile("ex3", "`open_loop` returned None: return {'open_ms'"),
    _changed("ex3", "only the sent", "never sent are missing: their users wait, too",
             (RETURNED, '"open_ms": sent,')),
    _changed("ex3", "the sent of all", "never sent are missing: their users wait, too",
             (RETURNED, '"open_ms": [a for a, b in zip(latencies, log["took_ms"]) if b],')),
    _changed("ex3", "no queue", "nothing waits here", (START, "due")),
    _changed("ex3", "unsent are nothing", "taken to need nothing", (TAKES, "(took or 0)")),
    _changed("ex3", "the mean for None", "taken to need the mean",
             ("statistics.median(sent)", "statistics.fmean(sent)")),
    _changed("ex3", "the longest for None", "as much as the longest",
             ("statistics.median(sent)", "max(sent)")),
    _changed("ex3", "one slot", "a request starts as soon as any of them is free",
             ('[0.0] * log["slots"]', "[0.0]")),
    _changed("ex3", "slots for all", "there are only so many slots",
             ('[0.0] * log["slots"]', '[0.0] * len(log["due_ms"])')),
    _changed("ex3", "in turn", "not the next in turn",
             ("free.index(min(free))", 'len(latencies) % log["slots"]')),
    _changed("ex3", "the wait", "this is the wait alone",
             ("latencies.append(free[slot] - due)",
              f"latencies.append(free[slot] - due - {TAKES})")),
    _changed("ex3", "moments", "these are the moments of the answers",
             ("latencies.append(free[slot] - due)", "latencies.append(free[slot])")),
    _changed("ex3", "waits are not passed on", "a wait is passed on",
             (f"        free[slot] = {START} + {TAKES}\n        latencies.append(free[slot] - due)",
              f"        latencies.append(max(free[slot] - due, 0) + {TAKES})\n"
              f"        free[slot] = due + {TAKES}")),
    _changed("ex3", "a histogram's repair", "this is the repair of a histogram",
             ("    return {", '    gap = log["due_ms"][1] - log["due_ms"][0]\n    latencies = []\n'
              "    for each in sent:\n        while each > 0:\n            latencies.append(each)\n"
              "            each -= gap\n    return {")),
    _changed("ex3", "seconds", "these are seconds",
             (RETURNED, '"open_ms": [each / 1000 for each in latencies],')),
    _changed("ex3", "sorted", "in another order", (RETURNED, '"open_ms": sorted(latencies),')),
    _changed("ex3", "the closed p99 for both", "this is what the closed loop saw",
             ("np.percentile(latencies, 99)", "np.percentile(sent, 99)")),
    _changed("ex3", "the open p99 for both", "this is the percentile of the open loop",
             ("np.percentile(sent, 99)", "np.percentile(latencies, 99)")),
    _changed("ex3", "zeros in the closed loop", "a request that was never sent is no zero",
             ("np.percentile(sent, 99)",
              'np.percentile([each or 0 for each in log["took_ms"]], 99)')),
    _changed("ex3", "the longest", "this is the longest: p99 is asked for",
             ("np.percentile(latencies, 99)", "max(latencies)")),
    _changed("ex3", "no list", "open_ms is a float: return a list",
             (RETURNED, '"open_ms": latencies[0],')),
    _changed("ex3", "the course's own", "belongs to the course: write this one yourself",
             ("    sent = [", "    from utils.serving.omission import corrected\n"
              "    corrected([1.0, 2.0], 0.5)\n    sent = [")),
]  # fmt: skip

# ex4

MEAN = """
size = server["max_batch"]
each = server["base_ms"] / size + server["per_request_ms"]
load = each * len(arrivals_ms) / (arrivals_ms[-1] - arrivals_ms[0])
servers = math.ceil({load})
if server["base_ms"] + server["per_request_ms"] > server["target_ms"]:
    servers = None
return {{"servers": servers, "p99_ms": servers and server["target_ms"],
        "servers_after_loss": servers and servers + 1}}
"""
LOST = "            if which == 0 and free[0] > lost_at:"
AFTER = 'smallest(server["lost_at_ms"])'
P99 = "float(np.percentile(latencies, 99))"
NONE = """    if server["base_ms"] + server["per_request_ms"] > server["target_ms"]:
        return {"servers": None, "p99_ms": None, "servers_after_loss": None}
"""
WRONG += [
    *_hostile("ex4", "`fleet` returned None: return {'servers'"),
    _written("ex4", "by the mean", "the mean load fits on so few", MEAN.format(load="load")),
    _written("ex4", "with headroom", "A share of headroom does not know the bursts either",
             MEAN.format(load="load / 0.7")),
    _changed("ex4", "the mean latency", "this is the mean",
             (P99, "float(np.mean(latencies))")),
    _changed("ex4", "p95", "this keeps p95 within the target",
             (P99, "float(np.percentile(latencies, 95))")),
    _changed("ex4", "every request", "this is the longest latency",
             (P99, "max(latencies)")),
    _changed("ex4", "no batches", "this is without batches",
             ('server["max_batch"]]', "1]")),
    _changed("ex4", "no waiting", "a latency counts from the arrival",
             ("free[which] - arrived for", "free[which] - start for")),
    _changed("ex4", "one too many", "this is one too many",
             ("        return servers\n", "        return servers + 1\n")),
    _changed("ex4", "one spare", "one spare server is a guess", (AFTER, "servers + 1")),
    _changed("ex4", "the same", "the loss costs more here", (AFTER, "servers")),
    _changed("ex4", "drained", "not answered but queues again",
             ("            if which == 0 and free[0] > lost_at:\n"
              "                for _, arrived in batch:\n"
              "                    bisect.insort(queue, (lost_at, arrived))\n"
              "            else:\n                latencies += [",
              "            if True:\n                latencies += [")),
    _changed("ex4", "the target for p99", "this is the target", ('"p99_ms": p99(servers)',
                                                              '"p99_ms": server["target_ms"]')),
    _changed("ex4", "seconds", "these are seconds: return ms", ('"p99_ms": p99(servers)',
                                                              '"p99_ms": p99(servers) / 1e3')),
    _changed("ex4", "without end", "the check stopped the answer", (NONE, "")),
    _changed("ex4", "a number for None", "no number of servers helps, so return None",
             ('return {"servers": None, "p99_ms": None, "servers_after_loss": None}',
              'return {"servers": 1, "p99_ms": 1.0, "servers_after_loss": 1}')),
    _changed("ex4", "always None", "None is for where one request alone takes longer",
             ('> server["target_ms"]:\n        return {', '> 0:\n        return {')),
    _changed("ex4", "the course's own", "belongs to the course: write this one yourself",
             ("    servers = smallest()\n", "    from utils.serving.fleet import smallest_fleet\n"
              "    smallest_fleet(arrivals_ms, lambda n: n, 99, 1e3)\n    servers = smallest()\n")),
]  # fmt: skip

# ex5

INPUT = "        x = y  # the reference's own: a fault is not passed on\n"
TEST = "(candidate.alone(name, x) - exact).abs().max() > 10 * noise"
KL = "(logs.exp() * (logs - others)).sum(-1).mean().item()"
LARGEST = "(first - second).abs().max().item()"
TOP = "(first.argmax(-1) == second.argmax(-1)).double().mean().item()"
WRONG += [
    *_hostile("ex5", "`report` returned None: return {'max_difference'"),
    _changed("ex5", "a fixed limit of 1e-5", "all that differs is rounding",
             (TEST, "(candidate.alone(name, x) - y).abs().max() > 1e-5")),
    _changed("ex5", "a fixed limit of 1e-3", "A limit that is wide enough for the noisiest module",
             (TEST, "(candidate.alone(name, x) - y).abs().max() > 2e-3")),
    _changed("ex5", "the largest difference", "inherits it",
             (f"        if {TEST}:\n            wrong = name\n", ""),
             ("    return {\n", "    at, seen = x0, candidate.outputs(x0)\n    off = {}\n"
              "    for name, module in reference.named_children():\n        at = module(at)\n"
              "        off[name] = (seen[name] - at).abs().max()\n"
              "    wrong = max(off, key=off.get)\n    return {\n"),
             ("    wrong = None\n", "    wrong, x0 = None, x\n")),
    _changed("ex5", "the first that differs", "differs by rounding alone",
             (f"        if {TEST}:\n", "        if wrong is None and not torch.equal("
              "candidate.alone(name, x), y):\n")),
    _changed("ex5", "allclose", "all that differs is rounding",
             (f"if {TEST}:", "if not torch.allclose(candidate.alone(name, x), y, 1e-5, 1e-6):")),
    _changed("ex5", "the candidate's input", "inherits it",
             (INPUT, "        x = candidate.alone(name, x)\n"),
             ("y, exact = module(x), copy", "y, exact = module(true), copy"),
             (".double()(x.double())", ".double()(true.double())"),
             ("    wrong = None\n", "    wrong, true = None, x\n"),
             ("            wrong = name\n", "            wrong = name\n        true = y\n")),
    _changed("ex5", "always None", "None was returned", ('"module": wrong', '"module": None')),
    _changed("ex5", "always the norm", "all that differs is rounding",
             ('"module": wrong', '"module": "norm"')),
    _changed("ex5", "the number of the module", "is no module: the names are",
             ('"module": wrong', '"module": wrong and "layer 3"')),
    _changed("ex5", "a mean", "this is the mean of the differences",
             (LARGEST, "(first - second).abs().mean().item()")),
    _changed("ex5", "with signs", "take the largest absolute one",
             (LARGEST, "min((first - second).max(), (second - first).max()).item()")),
    _changed("ex5", "of the probabilities", "of the probabilities, not of the logits",
             (LARGEST, "(logs.exp() - others.exp()).abs().max().item()")),
    _changed("ex5", "the other way round", "this is the other direction",
             (KL, "(others.exp() * (others - logs)).sum(-1).mean().item()")),
    _changed("ex5", "a sum", "this is the sum over the rows",
             (KL, "(logs.exp() * (logs - others)).sum().item()")),
    _changed("ex5", "mean of all", "sum over the classes",
             (KL, "(logs.exp() * (logs - others)).mean().item()")),
    _changed("ex5", "KL of float32", "compute in float64",
             (KL, "(lambda a, b: (a.exp() * (a - b)).sum(-1).mean().item())(first.float()"
                  ".log_softmax(-1), second.float().log_softmax(-1))")),
    _changed("ex5", "bits", "use the natural logarithm", (KL, KL + " / math.log(2)")),
    _changed("ex5", "a count", "this is a count",
             (TOP, "(first.argmax(-1) == second.argmax(-1)).sum().item()")),
    _changed("ex5", "percent", "this is percent", (TOP, "100 * " + TOP)),
    _changed("ex5", "those that differ", "the share of rows that differ",
             (TOP, "(first.argmax(-1) != second.argmax(-1)).double().mean().item()")),
    _changed("ex5", "looks behind", "has no attribute",
             ("    wrong = None\n", "    for cell in candidate.alone.__closure__:\n"
              "        hidden = cell.cell_contents\n        hidden.named_children()\n"
              "    wrong = None\n")),
    _changed("ex5", "an input that listens", "give a tensor",
             ("    wrong = None\n", "    candidate.alone('head', torch.nn.Parameter(x))\n"
              "    wrong = None\n")),
    _changed("ex5", "the course's own", "belongs to the course: write this one yourself",
             ("    wrong = None\n", "    from utils.serving.bench.agreement import fidelity\n"
              "    fidelity(first, second)\n    wrong = None\n")),
]  # fmt: skip
