"""Wrong answers to lab 13 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are the solution with one change, so that the change shows what is tested.
"""

from tests.labs.cells import code_of
from tests.labs.wrong_answers import entries
from utils.labs.lab13.observe import OBSERVERS

RIGHT = {name: code_of("lab13")[f"{name}-code"] for name in OBSERVERS}
_changed, _written = entries.of("lab13", RIGHT)


def _hostile(exercise: str, named: str, form: str) -> list[tuple]:
    """What every exercise has to survive. named: the course's own function. form: what the card
    says to an answer of another form.
    """
    return [
        _written(exercise, "does nothing", form, "return None"),
        _written(exercise, "raises", "ZeroDivisionError: division by zero", "return 1 / 0"),
        _written(
            exercise,
            "the course's own",
            f"belongs to the course: write this one yourself, it is lab 13, exercise {exercise[2]}",
            f"from utils import tco\n    return tco.{named}",
        ),
        _written(exercise, "for ever", "the check stopped the answer", "while True:\n        pass"),
    ]


USED = "used = good + "
CHEAPER = 'return "first" if costs[0] < costs[1] else "second"'
SHARE = 'share = side["tokens_per_second"] * side["flop_per_token"] / side["peak_flop_per_second"]'
BILL = 'bill = units * side["price_per_hour"] * side["hours"]'
PER_RESTART = "per_restart = (math.exp(rate * restart) - 1) / rate"
SEGMENT = "segment = failures / rate + failures * per_restart"
FAILURES = "failures = math.exp(rate * (every + write)) - 1"
SEARCHED = '"best": (low + high) / 2'
COSTS = "costs = [cost({**best, name: value}) for value in (low, middle, high)]"
SWING = "max(costs) - min(costs)"
SORTED = "key=lambda pair: (-pair[1], pair[0])"
FLEET = 'math.ceil(peak / (max(kept) * service["highest_load"])) + service["spare_servers"]'
ITEMS = 'service["items_per_second"] * 3600'


def _best(name: str, said: str, value: str) -> tuple:
    return _changed("ex4", name, said, (SEARCHED, f'"best": {value}'))


def _ranked_by(name: str, said: str, measure: str) -> tuple:
    """The right swings in the order of another measure of (name, low, middle, high)."""
    return _changed(
        "ex5",
        name,
        said,
        (
            f"return sorted(swings, {SORTED})",
            "def measure(pair):\n"
            "        name = pair[0]\n"
            "        low, middle, high = ranges[name]\n"
            f"        return {measure}\n\n"
            "    return sorted(swings, key=lambda pair: (-measure(pair), pair[0]))",
        ),
    )


def _elasticity() -> str:
    up, down = ("cost({**best, name: middle * " + f"{factor}" + "})" for factor in (1.001, 0.999))
    return f"abs({up} - {down})"


WRONG = [
    # ex1
    _changed(
        "ex1",
        "times the utilisation",
        "over the utilisation, not times it",
        ('used / job["utilisation"]', 'used * job["utilisation"]'),
    ),
    _changed(
        "ex1",
        "no idle time",
        "idle time is billed: divide the used hours by the utilisation",
        (' / job["utilisation"]', ""),
    ),
    _changed(
        "ex1",
        "idle time added",
        "do not add 1 minus it",
        ('used / job["utilisation"]', 'used * (2 - job["utilisation"])'),
    ),
    _changed(
        "ex1",
        "failed runs are free",
        "failed runs are paid, too",
        ('job["failed_runs_per_good_run"] * failed', "0"),
    ),
    _changed(
        "ex1",
        "failed runs to their end",
        "a failed run ends early",
        ('job["share_of_failed_run"] * computing', "computing"),
    ),
    _changed(
        "ex1",
        "failed runs do not start",
        "each failed run starts, too",
        ('failed = job["startup_hours"] + ', "failed = "),
    ),
    _changed(
        "ex1",
        "nothing starts",
        "the hours to start are billed",
        ('failed = job["startup_hours"] + ', "failed = "),
        ('good = job["startup_hours"] + ', "good = "),
    ),
    _changed(
        "ex1",
        "minutes for hours",
        "an hour has 3600 seconds",
        (" / 3600", ""),
    ),
    _changed(
        "ex1",
        "one server computes",
        "all servers are paid, and together they are faster",
        (
            'job["tokens_per_second_per_server"] * job["servers"]',
            'job["tokens_per_second_per_server"]',
        ),
    ),
    _changed(
        "ex1",
        "one server is paid",
        "all servers are paid, and together they are faster",
        ('billed * job["servers"]', "billed"),
    ),
    _changed(
        "ex1",
        "one run pays the port",
        "engineering is done once: the good runs share it",
        (' / job["good_runs"]', ""),
    ),
    _changed(
        "ex1",
        "failed runs share the port",
        "only good runs share the engineering",
        (
            'port / job["good_runs"]',
            'port / (job["good_runs"] * (1 + job["failed_runs_per_good_run"]))',
        ),
    ),
    _changed(
        "ex1",
        "one engineer",
        "the pay is of one engineer",
        ('job["engineers"] * ', ""),
    ),
    _changed(
        "ex1",
        "idle engineers",
        "servers and utilisation have no part in it",
        ('port / job["good_runs"]', 'port / job["good_runs"] / job["utilisation"]'),
    ),
    _changed(
        "ex1",
        "total without the port",
        "total: 1.",
        ('"total": compute + engineering', '"total": compute'),
    ),
    _changed(
        "ex1",
        "per billion",
        "this is per billion",
        ('million_tokens = job["billion_tokens"] * 1e3', 'million_tokens = job["billion_tokens"]'),
        ("million_tokens * 1e6", "million_tokens * 1e9"),
    ),
    _changed(
        "ex1",
        "to the cent",
        "this is rounded too far",
        (
            '{"compute": compute, "engineering": engineering, "total": compute + engineering}',
            '{"compute": round(compute, 2), "engineering": round(engineering, 2),'
            ' "total": round(compute + engineering, 2)}',
        ),
    ),
    _changed(
        "ex1",
        "runs multiply the port",
        "more good runs raise the engineering of each",
        (' / job["good_runs"]', ' * job["good_runs"]'),
    ),
    _changed(
        "ex1",
        "a fixed fee",
        "some part is no money, or is not counted",
        ('"total": compute + engineering', '"total": compute + engineering + 1'),
    ),
    _changed(
        "ex1",
        "the total alone",
        "`cost_per_million` returned a float: return {'compute'",
        (
            '{"compute": compute, "engineering": engineering, "total": compute + engineering}',
            "compute + engineering",
        ),
    ),
    _changed(
        "ex1",
        "no total",
        "`cost_per_million` returned a dict of 2 without 'total'",
        (', "total": compute + engineering', ""),
    ),
    _changed("ex1", "not a number", "found nan", ('"compute": compute,', '"compute": math.nan,')),
    _changed(
        "ex1",
        "text",
        "found a str, return a number",
        ('"compute": compute,', '"compute": f"{compute}",'),
    ),
    *_hostile("ex1", "job({})", "`cost_per_million` returned None"),
    # ex2
    _changed(
        "ex2",
        "engineering of one",
        "both options have engineering",
        (' - second["engineering"], two', ", two"),
    ),
    _changed(
        "ex2",
        "upside down",
        "somewhere between they agree",
        ("extra / saved", "saved / extra"),
    ),
    _changed(
        "ex2",
        "any number of runs",
        "fewer than one are none",
        ("at is not None and at >= 1", "at is not None"),
    ),
    _changed(
        "ex2",
        "an MFU over one",
        "is no share",
        ("at is not None and 0 < at <= 1", "at is not None"),
    ),
    _changed(
        "ex2",
        "negative shares",
        "is no share",
        ("at is not None and 0 < at <= 1", "at is not None and at <= 1"),
    ),
    _changed(
        "ex2",
        "parallel lines",
        "ZeroDivisionError",
        ("extra / saved if saved else None", "extra / saved"),
    ),
    _changed(
        "ex2",
        "whole runs",
        "the number of runs is rounded",
        ('{"at": at, "below"', '{"at": math.ceil(at) if what == "runs" else at, "below"'),
    ),
    _changed(
        "ex2",
        "no engineering of its own",
        "the first option has engineering of its own",
        (' - first["engineering"] / task["runs"]', ""),
    ),
    _changed(
        "ex2",
        "no engineering at all",
        "the engineering belongs to the cost of a run, on both sides",
        ('run_cost(task, second) - first["engineering"] / task["runs"]', "two"),
    ),
    _changed(
        "ex2",
        "engineering of one run",
        "there they have to agree",
        (' - first["engineering"] / task["runs"]', ' - first["engineering"]'),
        ("0 < at <= 1", "at"),
        ('{"at": at, "below"', '{"at": min(1, abs(at)) if what != "runs" else at, "below"'),
    ),
    _changed(
        "ex2",
        "the ratio",
        "the value itself is asked for",
        ("one * first[what] / left", "one / left"),
    ),
    _changed(
        "ex2",
        "proportional",
        "a higher value makes it cheaper",
        ("one * first[what] / left", "first[what] * left / one"),
    ),
    _changed(
        "ex2",
        "sides exchanged",
        "it is the other way round: with many runs",
        (
            '"below": cheaper(at * 0.99), "above": cheaper(at * 1.01)',
            '"below": cheaper(at * 1.01), "above": cheaper(at * 0.99)',
        ),
    ),
    _changed(
        "ex2",
        "the first wins later",
        "it is the other way round",
        (
            '"below": cheaper(at * 0.99), "above": cheaper(at * 1.01)',
            '"below": "second", "above": "first"',
        ),
    ),
    _changed(
        "ex2",
        "the same on both sides",
        "at a break-even the cheaper option changes",
        ("cheaper(at * 0.99)", "cheaper(at * 1.01)"),
    ),
    _changed(
        "ex2",
        "never, but who",
        "the costs never agree, and the other option is cheaper",
        (
            '{"at": None, "below": cheaper(1), "above": cheaper(1)}',
            '{"at": None, "below": "second", "above": "second"}',
        ),
    ),
    _changed(
        "ex2",
        "never, and both",
        "name it twice",
        (
            '{"at": None, "below": cheaper(1), "above": cheaper(1)}',
            '{"at": None, "below": "first", "above": "second"}',
        ),
    ),
    _changed(
        "ex2",
        "infinity for never",
        "found inf as 'at'",
        ('{"at": None,', '{"at": math.inf,'),
    ),
    _changed(
        "ex2",
        "engineering taken off again",
        "cost the same with both, apart from rounding: return None",
        (
            "one, two = run_cost(unshared, first), run_cost(unshared, second)",
            "one, two = (run_cost(task, each) - each['engineering'] / task['runs']"
            " for each in (first, second))",
        ),
    ),
    _changed(
        "ex2",
        "so many runs that it hardly matters",
        "cost the same with both, apart from rounding: return None",
        ("extra / saved if saved else None", "extra / saved if saved else 1e300"),
    ),
    _written(
        "ex2",
        "always never",
        "None says never, but with one run the first costs",
        'return {"at": None, "below": "first", "above": "first"}',
    ),
    _changed(
        "ex2",
        "other names",
        "'below' and 'above' are 'first' or 'second'",
        (CHEAPER, CHEAPER.replace('"first"', '"A"').replace('"second"', '"B"')),
    ),
    _changed(
        "ex2",
        "the value alone",
        "`break_even` returned a float: return {'at'",
        (
            'return {"at": at, "below": cheaper(at * 0.99), "above": cheaper(at * 1.01)}',
            "return at",
        ),
    ),
    *_hostile("ex2", "break_even(*it)", "`break_even` returned None"),
    # ex3
    _changed("ex3", "regions", "'region' is missed", ('"region", ', "")),
    _changed("ex3", "purchase", "'purchase' is missed", ('"purchase", ', "")),
    _changed("ex3", "currency", "'currency' is missed", (', "currency")', ")")),
    _changed(
        "ex3",
        "the first side only",
        "is missed",
        ("for side in (first, second):", "for side in (first,):"),
    ),
    _changed(
        "ex3",
        "the day itself",
        "'old price' is no error there: no price was read before it last changed",
        ('side["price_read"] < side', 'side["price_read"] <= side'),
    ),
    _changed(
        "ex3",
        "dates that differ",
        "'old price' is no error there",
        (
            'if side["price_read"] < side["price_last_changed"]:',
            'if first["price_read"] != second["price_read"]:',
        ),
    ),
    _changed(
        "ex3",
        "losses that differ",
        "'quality' is no error there: both have the same target and reach it",
        (
            'side["reached_loss"] > side["target_loss"]',
            'first["reached_loss"] != second["reached_loss"]',
        ),
    ),
    _changed(
        "ex3",
        "targets",
        "'quality' is missed",
        ('first["target_loss"] != second["target_loss"]', "False"),
    ),
    _changed(
        "ex3",
        "nobody looked",
        "TypeError",
        ('side["reached_loss"] is None or ', ""),
    ),
    _changed(
        "ex3",
        "reached for missed",
        "'quality' is no error there",
        ('side["reached_loss"] > side', 'side["reached_loss"] < side'),
    ),
    _changed(
        "ex3",
        "any throughput of others",
        "'vendor claim' is no error there: only what the vendor says",
        ('side["throughput_from"] == "vendor"', 'side["throughput_from"] != "own run"'),
    ),
    _changed(
        "ex3",
        "two names for one peak",
        "'peak' is no error there: nothing runs at 99 %",
        ("elif share >= 0.99:", "if share >= 0.99:"),
    ),
    _changed(
        "ex3",
        "one name for two peaks",
        "'sparse peak' is missed, not 'peak'",
        ('found.add("sparse peak")', 'found.add("peak")'),
    ),
    _changed(
        "ex3",
        "the peak to the last digit",
        "'peak' is missed",
        ("share >= 0.99", "math.isclose(share, 1)"),
    ),
    _changed(
        "ex3",
        "any bit over the peak",
        "'peak' is missed, not 'sparse peak'",
        ("share > 1.01", "share > 1"),
    ),
    _changed(
        "ex3",
        "twice the peak only",
        "'sparse peak' is missed, not 'peak'",
        ("share > 1.01", "share > 1.5"),
    ),
    _changed(
        "ex3",
        "a vendor of the first side only",
        "'vendor claim' is missed",
        ('side["throughput_from"] == "vendor"', 'first["throughput_from"] == "vendor"'),
    ),
    _changed(
        "ex3",
        "the second side's old price only",
        "'old price' is missed",
        ('if side["price_read"] < side', 'if side is second and side["price_read"] < side'),
    ),
    _changed(
        "ex3",
        "the peak of all servers",
        "is missed",
        (SHARE, SHARE + ' / side["servers"]'),
    ),
    _changed(
        "ex3",
        "high MFU is no peak",
        "'peak' is no error there",
        ("share >= 0.99", "share >= 0.8"),
    ),
    _changed(
        "ex3",
        "chips always",
        "'price unit' is no error there: the cost follows",
        ('if side["price_is_per"] == "chip":', "if True:"),
    ),
    _changed(
        "ex3",
        "chips never",
        "'price unit'",
        ('if side["price_is_per"] == "chip":', "if False:"),
    ),
    _changed(
        "ex3",
        "units that differ",
        "'price unit'",
        (
            'abs(side["cost"] + side["credits"] - bill) > 0.01 * bill',
            'first["price_is_per"] != second["price_is_per"]',
        ),
    ),
    _changed(
        "ex3",
        "the bill without servers",
        "'price unit' is no error there",
        (BILL, 'bill = units / side["servers"] * side["price_per_hour"] * side["hours"]'),
    ),
    _changed(
        "ex3",
        "credits not added back",
        "'price unit' is no error there",
        ('side["cost"] + side["credits"] - bill', 'side["cost"] - bill'),
    ),
    _changed(
        "ex3",
        "credits that differ",
        "'credits' is no error there: both have credits, or neither",
        (
            '(first["credits"] == 0) != (second["credits"] == 0)',
            'first["credits"] != second["credits"]',
        ),
    ),
    _changed(
        "ex3",
        "any credits",
        "'credits' is no error there",
        (
            '(first["credits"] == 0) != (second["credits"] == 0)',
            'first["credits"] or second["credits"]',
        ),
    ),
    _changed(
        "ex3",
        "other servers",
        "'work' is no error there: both do the same tokens",
        (
            'first["billion_tokens"] != second["billion_tokens"]',
            'first["servers"] != second["servers"]',
        ),
    ),
    _changed(
        "ex3",
        "names of one's own",
        "is no name of an error: take those of the task",
        ('found.add("old price")', 'found.add("stale")'),
    ),
    _written("ex3", "nothing is wrong", "is missed", "return set()"),
    _written(
        "ex3",
        "everything is wrong",
        "is no error there",
        "return {'region', 'purchase', 'currency', 'old price', 'work', 'quality', 'vendor claim',"
        " 'peak', 'sparse peak', 'price unit', 'credits'}",
    ),
    _changed("ex3", "braces", "no error, set() and not {}", ("return found", "return found or {}")),
    _changed("ex3", "one name", "`errors` returned a str", ("return found", "return str(found)")),
    *_hostile("ex3", "warned(*it)", "`errors` returned None: return a set of names"),
    # ex4
    _changed(
        "ex4",
        "one server fails",
        "any of the servers stops the run",
        ('rate = run["servers"] / run', "rate = 1 / run"),
    ),
    _changed(
        "ex4",
        "no restart",
        "each failure is followed by a restart",
        (PER_RESTART, "per_restart = 0"),
    ),
    _changed(
        "ex4",
        "restarts that cannot fail",
        "a restart may fail itself",
        (PER_RESTART, "per_restart = restart"),
    ),
    _changed(
        "ex4",
        "a restart in each try",
        "not before each try as part of the segment",
        (FAILURES, "failures = math.exp(rate * (every + write + restart)) - 1"),
        (PER_RESTART, "per_restart = 0"),
    ),
    _changed(
        "ex4",
        "one restart in each segment",
        "a restart comes after each failure, not once in each segment",
        (SEGMENT, "segment = failures / rate + per_restart"),
    ),
    _changed(
        "ex4",
        "writing takes no time",
        "writing the checkpoints takes time",
        ("every + write", "every"),
    ),
    _changed(
        "ex4",
        "writing never fails",
        "a failure while the checkpoint is written loses the segment, too",
        (FAILURES, "failures = math.exp(rate * every) - 1"),
        (SEGMENT, SEGMENT + " + write"),
    ),
    _changed(
        "ex4",
        "half a segment, once",
        "the half interval is the first term only",
        (SEGMENT, "segment = (every + write) * (1 + rate * ((every + write) / 2 + restart))"),
    ),
    _changed(
        "ex4",
        "half forgotten",
        "it loses half of it on average, not all",
        (SEGMENT, "segment = (every + write) * (1 + rate * (every + write + restart))"),
    ),
    _changed(
        "ex4",
        "nothing is lost",
        "a failure loses half a segment on average, not nothing",
        (SEGMENT, "segment = (every + write) * (1 + rate * restart)"),
    ),
    _changed(
        "ex4",
        "no failures",
        "no failure is counted",
        (SEGMENT, "segment = every + write"),
    ),
    _changed(
        "ex4",
        "the simulation sees it",
        "which is less than chance explains",
        (SEGMENT, "segment = every + write"),
    ),
    _changed(
        "ex4",
        "minutes to restart",
        "writing and restarting are given in minutes",
        ('run["restart_minutes"] / 60', 'run["restart_minutes"] / 1'),
    ),
    _changed(
        "ex4",
        "hours for money",
        "return money: these are hours",
        (' * run["servers"] * run["price_per_server_hour"]', ""),
    ),
    _changed(
        "ex4",
        "one server is paid",
        "all servers are paid",
        ('hours * run["servers"] *', "hours *"),
    ),
    _changed(
        "ex4",
        "one segment",
        "the run has several segments",
        ('hours = run["work_hours"] / every * segment', "hours = segment"),
    ),
    _changed(
        "ex4",
        "never saved",
        "this saves nothing before the end",
        (
            '"costs": [cost(every) for every in intervals]',
            '"costs": [cost(run["work_hours"]) for every in intervals]',
        ),
    ),
    _best("Young", "that is Young's formula", "math.sqrt(2 * write / rate)"),
    _best(
        "Young without the two", "Young's formula has a 2 under the root", "math.sqrt(write / rate)"
    ),
    _best(
        "Young for one server",
        "any of the servers stops the run",
        'math.sqrt(2 * write * run["hours_between_failures_per_server"])',
    ),
    _best("between failures", "that is the time between failures", "1 / rate"),
    _best("minutes", "return hours: these are minutes", "(low + high) * 30"),
    _best(
        "with writing", "the time to write the checkpoint comes on top", "(low + high) / 2 + write"
    ),
    _best("of those given", "any interval may be chosen", "min(intervals, key=cost)"),
    _best("far too long", "too long for work done again. At", "2 / rate"),
    _best("no number", "found a str as 'best'", '"soon"'),
    _changed(
        "ex4",
        "a cost too few",
        "return {'costs': [3 numbers], 'best': hours}",
        ("for every in intervals]", "for every in intervals[:2]]"),
    ),
    _changed(
        "ex4",
        "not a number",
        "found nan",
        ('"costs": [cost(every)', '"costs": [math.nan * cost(every)'),
    ),
    *_hostile("ex4", "best_interval(1, 1)", "`price_checkpoints` returned None"),
    # ex5
    _ranked_by("by width", "a wide range need not matter: what counts", "high - low"),
    _ranked_by("by relative width", "relative to the best guess either", "(high - low) / middle"),
    _ranked_by("by elasticity", "how far does the input really go", _elasticity()),
    _ranked_by("by the best guess", "moves the cost by", "middle"),
    _changed(
        "ex5",
        "only upward",
        "take its low end as well as its high one",
        (COSTS, COSTS.replace("low, ", "")),
    ),
    _changed(
        "ex5",
        "only downward",
        "take its high end as well as its low one",
        (COSTS, COSTS.replace(", high", "")),
    ),
    _changed(
        "ex5",
        "two ends",
        "the cost may be least inside of a range",
        (COSTS, COSTS.replace("middle, ", "")),
    ),
    _changed(
        "ex5",
        "slope times width",
        "the slope at the best guess does not hold over the whole range",
        (
            SWING,
            "abs(cost({**best, name: middle * (1 + 1e-6)}) - cost({**best, name: middle *"
            " (1 - 1e-6)})) / (2e-6 * middle) * (high - low)",
        ),
    ),
    _changed(
        "ex5",
        "others low",
        "not at their low ends",
        (
            "for name, (_, middle, _) in ranges.items()",
            "for name, (middle, _, _) in ranges.items()",
        ),
        (COSTS, COSTS.replace("middle, ", "")),
    ),
    _changed(
        "ex5",
        "all together",
        "one input moves at a time",
        ("cost({**best, name: value})", "cost({n: e[value] for n, e in ranges.items()})"),
        ("(low, middle, high)]", "(0, 2)]"),
    ),
    _changed(
        "ex5",
        "signed",
        "a swing has no sign",
        (SWING, "costs[2] - costs[0]"),
    ),
    _changed(
        "ex5",
        "shares",
        "a swing is money, not a share of the cost",
        (f"({SWING})" if f"({SWING})" in RIGHT["ex5"] else SWING, f"({SWING}) / cost(best)"),
    ),
    _changed(
        "ex5",
        "half",
        "not half of it",
        (SWING, f"({SWING}) / 2"),
    ),
    _changed(
        "ex5", "smallest first", "the widest swing comes first", ("-pair[1], pair[0]", "pair[1]")
    ),
    _changed(
        "ex5",
        "unsorted",
        "they stand as they came in",
        (f"sorted(swings, {SORTED})", "swings"),
    ),
    _changed(
        "ex5",
        "ties backward",
        "in the order of their names",
        (SORTED, "key=lambda pair: (-pair[1], [-ord(letter) for letter in pair[0]])"),
    ),
    _changed(
        "ex5",
        "ties as they came in",
        "in the order of their names",
        (SORTED, "key=lambda pair: -pair[1]"),
    ),
    _changed(
        "ex5",
        "what moves nothing",
        "'least_servers' is missing: every input whose low is not its high belongs in it, also",
        (
            f"return sorted(swings, {SORTED})",
            f"return sorted(filter(lambda pair: pair[1], swings), {SORTED})",
        ),
    ),
    _changed(
        "ex5",
        "what is not in question",
        "it is not in question, leave it out",
        ("low == high", "False"),
    ),
    _changed(
        "ex5",
        "one direction left out",
        "is missing: every input whose low is not its high",
        ("low == high", "low == middle or middle == high"),
    ),
    _changed(
        "ex5",
        "names alone",
        "`influence` returned a list of",
        ("return sorted", "return list(dict(sorted"),
        (f"{SORTED})", f"{SORTED})))"),
    ),
    _changed(
        "ex5",
        "inputs left out",
        "KeyError",
        ("{**best, name: value}", "{name: value}"),
    ),
    _changed(
        "ex5",
        "the best guess is changed",
        "swings",
        (
            COSTS,
            "costs = [cost(best | {}) for value in (low, middle, high)"
            " if not best.update({name: value})]",
        ),
    ),
    _changed("ex5", "not a number", "found nan", (SWING, f"({SWING}) * math.nan")),
    *_hostile("ex5", "tornado(*it)", "`influence` returned None: return a list of pairs"),
    # ex6
    _changed(
        "ex6",
        "parts of servers",
        "a part of a server cannot be rented",
        ("math.ceil(peak", "(peak"),
    ),
    _changed(
        "ex6",
        "rounded down",
        "too few by the part that was cut off",
        ("math.ceil(peak", "math.floor(peak"),
    ),
    _changed(
        "ex6",
        "no spare",
        "the spare servers come on top",
        (' + service["spare_servers"]', ""),
    ),
    _changed(
        "ex6",
        "for the mean",
        "the fleet has to stand the peak",
        (' * service["peak_to_mean"]', ""),
    ),
    _changed(
        "ex6",
        "no headroom",
        "divide by the highest load",
        (' * service["highest_load"]', ""),
    ),
    _changed(
        "ex6",
        "headroom the wrong way",
        "divide by the highest load",
        (' * service["highest_load"]', ' / service["highest_load"]'),
    ),
    _changed(
        "ex6",
        "any measurement",
        "breaks the target",
        ("max(kept)", 'max(each["items_per_second"] for each in service["measured"])'),
    ),
    _changed(
        "ex6",
        "the smallest batch",
        "the smallest latency is not asked for",
        ("max(kept)", "min(kept)"),
    ),
    _changed(
        "ex6",
        "the largest batch",
        "not the largest batch",
        (
            "max(kept)",
            'max((each["batch"], each["items_per_second"]) for each in service["measured"]'
            ' if each["latency_ms"] <= service["target_ms"])[1]',
        ),
    ),
    _changed(
        "ex6",
        "faster than the target",
        "a latency that is the target keeps it",
        ('each["latency_ms"] <= service', 'each["latency_ms"] < service'),
    ),
    _changed(
        "ex6",
        "the last that keeps it",
        "take the fastest such",
        ("max(kept)", "kept[-1]"),
    ),
    _changed(
        "ex6",
        "items of the peak",
        "the peak buys servers, it serves no more items in all",
        (ITEMS, "peak * 3600"),
    ),
    _changed(
        "ex6",
        "items that could be",
        "the items that are asked for count",
        (ITEMS, "max(kept) * servers * 3600"),
    ),
    _changed(
        "ex6",
        "seconds",
        "an hour has 3600 seconds",
        (" * 3600", ""),
    ),
    _changed("ex6", "per item", "this is per item", (" * 1e6", "")),
    _changed(
        "ex6",
        "spare ones are free",
        "the spare servers are paid, too",
        ("cost = servers *", 'cost = (servers - service["spare_servers"]) *'),
    ),
    _changed(
        "ex6",
        "nothing keeps it",
        "ValueError: max() ",
        ("if not kept:", "if False:"),
    ),
    _changed(
        "ex6",
        "infinity for none",
        "return None for both",
        (
            '{"servers": None, "cost_per_million": None}',
            '{"servers": math.inf, "cost_per_million": math.inf}',
        ),
    ),
    _written(
        "ex6",
        "none everywhere",
        "None is for where none does",
        'return {"servers": None, "cost_per_million": None}',
    ),
    _changed(
        "ex6",
        "rounded",
        "this is rounded too far",
        ('"cost_per_million": cost}', '"cost_per_million": round(cost, 2)}'),
    ),
    _changed(
        "ex6",
        "a pair",
        "`fleet` returned a tuple of 2",
        ('return {"servers": servers, "cost_per_million": cost}', "return servers, cost"),
    ),
    *_hostile("ex6", "service({})", "`fleet` returned None"),
]
