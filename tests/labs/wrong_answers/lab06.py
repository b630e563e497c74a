"""Wrong answers to lab 06 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are the solution with one change, so that the change shows what is tested.
"""

from tests.labs.cells import changed, code_of
from tests.labs.wrong_answers import entries
from utils.labs.lab06.observe import OBSERVERS

RIGHT = {name: code_of("lab06")[f"{name}-code"] for name in OBSERVERS}
_changed, _ = entries.of("lab06", RIGHT)


def _written(exercise: str, name: str, said: str, body: str) -> tuple:
    """An answer of its own: the lines of its body, with the names that the task gives."""
    arguments = {
        "ex1": "make, count, workers, ahead",
        "ex2": "load_ms, work_ms, workers, prefetch",
        "ex3": "step, settle, clock, warmup, repeats",
        "ex4": "events",
        "ex5": "record",
    }[exercise]
    lines = "\n    ".join(body.strip("\n").split("\n"))
    return (
        f"lab06.{exercise}",
        name,
        f"def {OBSERVERS[exercise].answer}({arguments}):\n    {lines}\n",
        said,
    )


def _hostile(
    exercise: str, nothing: str, endless: str = "the check stopped the answer"
) -> list[tuple]:
    """What every exercise has to survive, and what the card says to None and to an endless loop."""
    found = [
        _written(exercise, "does nothing", nothing, "return None"),
        _written(exercise, "raises", "ZeroDivisionError: division by zero", "return 1 / 0"),
    ]
    if exercise in ("ex1", "ex3"):  # the others are called as those of other labs, which try it
        found.append(_written(exercise, "for ever", endless, "while True:\n    pass"))
    return found


# ex1

SUBMIT = "begun.extend(pool.submit(make, n) for n in itertools.islice(numbers, 1))\n"
NEXT = "                " + SUBMIT
YIELD = "                yield batch\n"
RESULT = "batch = begun.popleft().result()"
PRODUCER = """
import queue, threading

places = queue.Queue(ahead)
def work():
    for number in range(count):
        places.put(make(number))
    places.put(None)
thread = threading.Thread(target=work)
thread.start()
while (batch := places.get()) is not None:
    yield batch
thread.join()
"""
SHARED = """
import queue, threading

numbers, made, free = queue.Queue(), {{}}, threading.Semaphore({free})
for number in range(count):
    numbers.put(number)
arrived = threading.Condition()
over = threading.Event()
def work():
    while True:
        free.acquire()
        try:
            number = numbers.get_nowait()
        except queue.Empty:
            return
        if over.is_set():
            return
        {make}
        with arrived:
            made[number] = batch
            arrived.notify_all()
threads = [threading.Thread(target=work) for _ in range(workers)]
for thread in threads:
    thread.start()
try:
    for number in range(count):
        with arrived:
            arrived.wait_for(lambda: number in made)
            batch = made.pop(number)
        free.release()
        {give}
finally:
    over.set()
    for _ in threads:
        free.release()
"""
KEEP_ERROR = """try:
            batch = make(number)
        except Exception as error:
            batch = error"""
RAISE_ERROR = """if isinstance(batch, Exception):
            raise batch
        yield batch"""
THREADS = SHARED.format(free="ahead", make=KEEP_ERROR, give=RAISE_ERROR)
"""A right answer without a pool."""

WRONG = [
    *_hostile("ex1", "`load` returned None: yield the batches, or return an iterator",
              "the loop waited for ever"),
    _written("ex1", "the given one", "made in the thread of the training loop",
             "for number in range(count):\n    yield make(number)"),
    _changed("ex1", "next after the step", "before the step and not after it",
             (NEXT + YIELD, YIELD + NEXT)),
    _changed("ex1", "one thread", "One thread is as slow as the loop was",
             ("ThreadPoolExecutor(workers)", "ThreadPoolExecutor(1)")),
    _changed("ex1", "a thread for each place", "`workers` says how many threads there are",
             ("ThreadPoolExecutor(workers)", "ThreadPoolExecutor(ahead + workers)"),
             ("islice(numbers, ahead)", "islice(numbers, ahead + workers)")),
    _changed("ex1", "one too many", "each worker holds one more",
             ("islice(numbers, ahead)", "islice(numbers, ahead + 1)")),
    _written("ex1", "map", "nothing holds the workers back",
             "with ThreadPoolExecutor(workers) as pool:\n"
             "    yield from pool.map(make, range(count))"),
    _written("ex1", "as they are ready", "in the order in which they were ready",
             "from concurrent.futures import FIRST_COMPLETED, wait\n"
             "numbers = iter(range(count))\n"
             "with ThreadPoolExecutor(workers) as pool:\n"
             "    begun = {pool.submit(make, n) for n in itertools.islice(numbers, ahead)}\n"
             "    while begun:\n"
             "        done, begun = wait(begun, return_when=FIRST_COMPLETED)\n"
             "        for each in done:\n"
             "            begun |= {pool.submit(make, n) for n in itertools.islice(numbers, 1)}\n"
             "            yield each.result()"),
    _changed("ex1", "the last are lost", "which are lost at the end",
             ("while begun:", "while len(begun) == ahead:")),
    _changed("ex1", "made anew", "made twice", (RESULT, f"{RESULT}; make(batch[0])")),
    _changed("ex1", "changed batches", "yield what make returned",
             ("yield batch", "yield [number + 1 for number in batch]")),
    _changed("ex1", "futures", "yield what make returned", (RESULT, "batch = begun.popleft()")),
    _changed("ex1", "errors are skipped", "the loop saw nothing of it",
             (RESULT, "future = begun.popleft()"),
             (YIELD, "                if not future.exception():\n"
                     "                    yield future.result()\n")),
    _changed("ex1", "another error", "another error came out",
             (RESULT, "future = begun.popleft()\n"
                      "                if future.exception():\n"
                      "                    raise ValueError('no batch') from None\n"
                      "                batch = future.result()")),
    _changed("ex1", "errors at once", "raise it where its batch would be",
             ("            while begun:\n",
              "            while begun:\n"
              "                for each in begun:\n"
              "                    if each.done():\n"
              "                        each.result()\n"
              "                if count < 100:\n"
              "                    import time; time.sleep(0.002)\n")),
    _written("ex1", "a queue and a thread", "One thread is as slow as the loop was",
             PRODUCER),
    _written("ex1", "threads that die", "the loop saw nothing of it",
             SHARED.format(free="ahead", make="batch = make(number)", give="yield batch")),
    _written("ex1", "threads that stay", "threads are left when the loop breaks off",
             changed(THREADS, ("    over.set()\n    for _ in threads:\n        free.release()",
                               "    pass"))),
    _written("ex1", "a line that nobody fills", "the loop waited for ever",
             "import queue\nplaces = queue.Queue(ahead)\nwhile True:\n    yield places.get()"),
    _written("ex1", "processes", "use threads of this one",
             "import warnings\nwarnings.simplefilter('ignore')  # more workers than cores\n"
             "from torch.utils.data import DataLoader, Dataset\n"
             "class Made(Dataset):\n"
             "    def __len__(self):\n        return count\n"
             "    def __getitem__(self, number):\n        return make(number)\n"
             "yield from DataLoader(Made(), None, num_workers=workers, prefetch_factor=ahead)"),
    _written("ex1", "without end", "some batches came twice",
             "numbers = itertools.cycle(range(count))\n"
             "with ThreadPoolExecutor(workers) as pool:\n"
             "    begun = deque(pool.submit(make, next(numbers)) for _ in range(ahead))\n"
             "    while True:\n"
             "        batch = begun.popleft().result()\n"
             "        begun.append(pool.submit(make, next(numbers)))\n"
             "        yield batch"),
]  # fmt: skip

# ex2

BEGIN = "begin = max(ordered, free)"
WRONG += [
    *_hostile("ex2", "`predict_waits` returned None: return a list of numbers"),
    _written("ex2", "the course's own", "belongs to the course: write this one yourself",
             "from utils.training.loading import predict\n"
             "return predict(load_ms, work_ms, workers=workers, prefetch=prefetch).waits.waits_s"),
    _written("ex2", "nothing is waited for", "no batch is waited for, it says",
             "return [0] * len(load_ms)"),
    _written("ex2", "always without workers", "this is a loop without workers",
             "return list(load_ms)"),
    _written("ex2", "load less work", "the load that is not hidden",
             "return [load - work for load, work in zip(load_ms, [0, *work_ms])]"),
    _changed("ex2", "no bound", "a batch is ordered only when batch",
             ("taken[number - ahead] if number >= ahead else 0", "0")),
    _changed("ex2", "prefetch in all", "`prefetch` is for each worker",
             ("workers * prefetch", "prefetch")),
    _changed("ex2", "whoever is free", "batch i belongs to worker i modulo `workers`",
             ("free = ends[number - workers] if number >= workers else 0",
              "free = sorted([0] * workers + ends)[-workers]")),
    _changed("ex2", "ordered after the work", "before the loop works on it",
             ("taken[number - ahead] if number >= ahead else 0",
              "taken[number - ahead] + work_ms[number - ahead] if number >= ahead else 0")),
    _changed("ex2", "waits delay nothing", "a wait delays all that comes after it",
             ("asked = taken[-1] + work", "asked = asked + work")),
    _changed("ex2", "one worker for all", "this is one worker",
             ("ends[number - workers] if number >= workers else 0",
              "ends[-1] if number else 0")),
    _changed("ex2", "workers when there are none", "with 0 workers the loop loads each batch",
             ("    ahead = workers * prefetch",
              "    workers = max(workers, 1)\n    ahead = workers * prefetch")),
    _changed("ex2", "the first is free", "the first batch is waited for, too",
             ("return waits", "return [0, *waits[1:]]")),
    _changed("ex2", "seconds", "return milliseconds",
             ("return waits", "return [each / 1000 for each in waits]")),
    _changed("ex2", "the total", "return a list", ("return waits", "return sum(waits)")),
    _changed("ex2", "one less", "one wait per batch", ("return waits", "return waits[1:]")),
    _changed("ex2", "text", "return numbers, in milliseconds",
             ("return waits", "return [str(each) for each in waits]")),
]  # fmt: skip

# ex3

TIMED = "        result = step()  # noqa: F841  held until it is computed\n        settle()\n"
SETTLED = "    settle()\n    first"
MEDIAN = "statistics.median([timed() for _ in range(repeats)])"
WRONG += [
    *_hostile("ex3", "step was never called"),
    _changed("ex3", "no wait", "this is the time to record a step",
             (TIMED, "        result = step()\n")),
    _changed("ex3", "dropped", "some steps never ran", ("result = step()", "step()")),
    _changed("ex3", "read and settled", "some steps ran twice",
             (TIMED, "        result = step()\n        result.item()\n        settle()\n")),
    _changed("ex3", "read in place of settled", "a read is no wait for the step",
             (TIMED, "        result = step()\n        result.item()\n")),
    _changed("ex3", "busy at first", "Settle, then start the clock", (SETTLED, "    first")),
    _changed("ex3", "no first", "step is called once for the first",
             ("first = timed()", "first = 0.0")),
    _changed("ex3", "the first among the samples", "the first call is among the samples",
             (MEDIAN, "statistics.median([first, *(timed() for _ in range(repeats))])")),
    _changed("ex3", "the warm-up among the samples", "the warm-up calls are among the samples",
             ("    for _ in range(warmup):\n        timed()\n",
              "    early = [timed() for _ in range(warmup)]\n"),
             (MEDIAN, "statistics.median(early + [timed() for _ in range(repeats)])")),
    _changed("ex3", "no warm-up", "step is called once for the first",
             ("range(warmup)", "range(0)")),
    _changed("ex3", "the mean", "this is the mean", ("statistics.median", "statistics.fmean")),
    _changed("ex3", "the fastest", "this is the fastest sample", ("statistics.median", "min")),
    _changed("ex3", "the lower one", "one of the two samples in the middle",
             ("statistics.median", "statistics.median_low")),
    _changed("ex3", "milliseconds", "these are milliseconds", (MEDIAN, f"1000 * {MEDIAN}")),
    _changed("ex3", "another clock", "was never read: use clock()",
             ("start = clock()", "start = time.perf_counter()"),
             ("return clock() - start", "return time.perf_counter() - start")),
    _changed("ex3", "all are kept", "every result is kept to the end",
             ("    def timed()", "    kept = []\n\n    def timed()"),
             ("        settle()\n        return", "        kept.append(result)\n"
              "        settle()\n        return")),
    _changed("ex3", "the second is the first", "step is called once for the first",
             ("first = timed()", "timed()\n    first = timed()")),
    _changed("ex3", "a pair", "`bench` returned a tuple of 2",
             ('return {"first_s": first, "median_s": ' + MEDIAN + "}",
              f"return first, {MEDIAN}")),
    _written("ex3", "one loop for all", "the samples are not one step from settle to settle each",
             "settle()\nstart = clock()\nresult = step()\nsettle()\nfirst = clock() - start\n"
             "for _ in range(warmup):\n    result = step()\n    settle()\n"
             "start = clock()\nfor _ in range(repeats):\n    result = step()\n"
             "settle()\nreturn {'first_s': first, 'median_s': (clock() - start) / repeats}"),
]  # fmt: skip

# ex4

COVER = "covering = {kind for kind, first, last in spans if first <= here and there <= last}"
FILTER = 'if each["name"] in examples.KINDS'
RETURN = 'return {**shares, "bottleneck": max(shares, key=shares.get)}'
SUMS = """
timed = [each for each in events if each["ph"] == "X"]
steps = [each for each in timed if each["name"] == "step"]
begin = min(each["ts"] for each in steps)
end = max(each["ts"] + each["dur"] for each in steps)
shares = dict.fromkeys(examples.ORDER, 0.0)
for each in timed:
    if each["name"] in examples.KINDS:
        shares[examples.KINDS[each["name"]]] += {length}
{over}
return {{**shares, "bottleneck": max(shares, key=shares.get)}}
"""
CLIPPED = 'max(0.0, min(each["ts"] + each["dur"], end) - max(each["ts"], begin))'
OVER = "shares = {kind: value / (end - begin) for kind, value in shares.items()}"
OVER_SUM = "shares = {kind: value / sum(shares.values()) for kind, value in shares.items()}"
WRONG += [
    *_hostile("ex4", "`read_profile` returned None: return a dict"),
    _written("ex4", "sums", "a moment counts once", SUMS.format(length='each["dur"]', over=OVER)),
    _written("ex4", "sums within the time", "a moment counts once",
             SUMS.format(length=CLIPPED, over=OVER)),
    _written("ex4", "shares of the sum", "a moment counts once",
             SUMS.format(length=CLIPPED, over=OVER_SUM)),
    _changed("ex4", "each kind alone", "a moment that several kinds cover",
             ("                break\n", "")),
    _changed("ex4", "from behind", "a moment that several kinds cover",
             ("for kind in examples.ORDER:", "for kind in reversed(examples.ORDER):")),
    _changed("ex4", "the device last", "a moment that several kinds cover",
             ("for kind in examples.ORDER:",
              "for kind in [*examples.ORDER[1:], examples.ORDER[0]]:")),
    _changed("ex4", "the whole file", "before the first step and after the last one",
             ('steps = [each for each in timed if each["name"] == "step"]', "steps = timed")),
    _changed("ex4", "shares of what is covered", "with moments that no event of the table covers",
             (RETURN, "shares = {kind: each / sum(shares.values()) for kind, each in"
                      " shares.items()}\n    " + RETURN)),
    _changed("ex4", "the host only", "the device executes in threads of its own",
             (FILTER, FILTER + ' and each["tid"] == steps[0]["tid"]')),
    _changed("ex4", "one thread of the device", "the device has two threads",
             (FILTER, FILTER + ' and each["tid"] in (steps[0]["tid"], min(e["tid"] for e in timed'
              ' if e["name"] == "ThunkExecutor::Execute"))')),
    _changed("ex4", "percent", "these are percent",
             (RETURN, "shares = {kind: 100 * each for kind, each in shares.items()}\n    "
              + RETURN)),
    _changed("ex4", "microseconds", "these are microseconds", (" / (end - begin)", "")),
    _changed("ex4", "the smallest", "is not the largest share",
             ("max(shares, key", "min(shares, key")),
    _changed("ex4", "a share for a name", "return one of execute",
             ("max(shares, key=shares.get)", "max(shares.values())")),
    _changed("ex4", "always the device", "the device stands still for longer",
             ("max(shares, key=shares.get)", '"execute"')),
    _changed("ex4", "no bottleneck", "without 'bottleneck'",
             ('{**shares, "bottleneck": max(shares, key=shares.get)}', "shares")),
    _changed("ex4", "text", "return a number",
             (RETURN, "largest = max(shares, key=shares.get)\n"
                      "    return {**{kind: f'{each:.1%}' for kind, each in shares.items()},"
                      ' "bottleneck": largest}')),
]  # fmt: skip

# ex5

BEFORE = 'record["counters"][warmup]'
GROWN = "last[name] - before.get(name, 0)"
WRONG += [
    *_hostile("ex5", "`diagnose` returned None: return a dict"),
    _written("ex5", "always recompiles", "The same was said of every record",
             'return {"cause": "recompiles", "number": 1.0}'),
    _written("ex5", "always healthy", "The same was said of every record",
             'return {"cause": "healthy", "number": None}'),
    _changed("ex5", "counters as they stand", "counters count since the process began",
             (GROWN, "last[name]")),
    _changed("ex5", "since the start", "the first three steps are warm-up",
             (BEFORE, 'record["counters"][0]')),
    _changed("ex5", "no default", "KeyError", (GROWN, "last[name] - before[name]")),
    _changed("ex5", "rates over all steps", "this is per step of all",
             ("sum(on_host) / steps", "sum(on_host) / (steps + 3)")),
    _changed("ex5", "reads are fallbacks", "it is no operator that the device lacks",
             (' and name != read]', "]")),
    _changed("ex5", "compiles first", "is what follows",
             ('        "fallback": sum(on_host) / steps,\n', ""),
             ('        "reads"', '        "fallback": sum(on_host) / steps,\n        "reads"')),
    _changed("ex5", "the marker last", "nothing ends a step",
             ('if grown.get("MarkStep", 0) < steps:', "if False:"),
             ('return {"cause": "healthy"', 'if grown.get("MarkStep", 0) < steps:\n'
              '        nodes = [each for ran in record["graph_nodes"][warmup:] for each in ran]\n'
              '        return {"cause": "no marker", "number": nodes[-1] / nodes[0]}\n'
              '    return {"cause": "healthy"')),
    _changed("ex5", "totals", "this is the total: give it per step",
             ('return {"cause": cause, "number": number}',
              'return {"cause": cause, "number": number * (steps if cause != "starved" else 1)}')),
    _changed("ex5", "wait over work", "this is the wait over the work",
             ("waited / (waited + worked)", "waited / worked")),
    _changed("ex5", "the first waits", "starved: the first three steps are warm-up",
             ("sum(record[name][warmup:])", "sum(record[name])")),
    _changed("ex5", "any at all", "more than 0.25 would be a fault", ("> 0.25", "> 0")),
    _changed("ex5", "first over last", "last over first", ("nodes[-1] / nodes[0]",
                                                         "nodes[0] / nodes[-1]")),
    _changed("ex5", "a number for health", "give None", ('"number": None', '"number": 0.0')),
    _changed("ex5", "names of its own", "which is no cause of the table",
             ('"starved": waited', '"slow loader": waited')),
    _changed("ex5", "no number", "without 'number'",
             ('return {"cause": cause, "number": number}', 'return {"cause": cause}')),
]  # fmt: skip
