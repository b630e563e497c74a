"""Wrong answers to lab 01 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are a right answer with one change, so that the change shows what is tested.
"""

from tests.labs.wrong_answers import entries

GEMM_TIMES = """
def gemm_times(sheet, gemms):
    found = []
    for each in gemms:
        m, k, n, dtype = each["m"], each["k"], each["n"], each["dtype"]
        rate, bandwidth = sheet["chip_tflops"][dtype], sheet["hbm_tb_per_s"]
        if each["on"] == "core":
            rate, bandwidth = sheet["core_tflops"][dtype], bandwidth / sheet["cores"]
        computing = 2 * m * k * n / (rate * 1e12)
        moving = (m * k + k * n + m * n) * BYTES[dtype] / (bandwidth * 1e12)
        bound = "compute" if computing >= moving else "memory"
        found.append((max(computing, moving), bound))
    return found
"""

RIDGE = """
def ridge(sheet, level, memory, dtype):
    core = level == "core"
    tflops = sheet["core_tflops" if core else "chip_tflops"].get(dtype)
    if memory == "hbm":
        bandwidth = sheet["hbm_tb_per_s"] * 1e12 / (sheet["cores"] if core else 1)
    elif sheet["dma_engines"] is None:
        return None
    else:
        engines = sheet["dma_engines_per_core" if core else "dma_engines"]
        bandwidth = engines * sheet["dma_gb_per_s_per_engine"] * 1e9
    return None if tflops is None else tflops * 1e12 / bandwidth
"""

FIT = """
def fit(job):
    width = {"fp32": 4, "bf16": 2, None: 0}
    dtypes = job["dtypes"]
    weights, gradients = width[dtypes["weights"]], width[dtypes["gradients"]]
    optimizer = width[dtypes["master"]] + 2 * width[dtypes["moments"]]
    ways = job["cores"] // job["tensor_parallel"]
    here = job["parameters"] / job["tensor_parallel"]
    state = [
        here * (weights + gradients + optimizer),
        here * (weights + gradients + optimizer / ways),
        here * (weights + (gradients + optimizer) / ways),
        here * (weights + gradients + optimizer) / ways,
    ]
    room = (job["hbm_gib_per_chip"] / job["cores_per_chip"] - job["activation_gib"]) * 2**30
    stage = next((stage for stage, size in enumerate(state) if size <= room), None)
    return {"bytes": state, "stage": stage}
"""

WRONG_ROW = """
def wrong_row(tables):
    relations = [
        (["array_side", "array_side", "tensor_clock_ghz"], "core_tflops", 2e-3, 0.02),
        (["partitions"], "array_side", 1, 0.02),
        (["cores", "core_tflops"], "chip_tflops", 1, 0.08),
        (["chips", "chip_tflops"], "system_pflops", 1e-3, 0.02),
        (["cores", "chips"], "system_cores", 1, 0.02),
        (["chips", "hbm_gib"], "system_hbm_gib", 1, 0.02),
        (["cores", "core_hbm_gib"], "hbm_gib", 1, 0.02),
        (["chips", "hbm_tb_per_s"], "system_hbm_tb_per_s", 1, 0.02),
        (["ridge_flop_per_byte", "hbm_tb_per_s"], "chip_tflops", 1, 0.02),
        (["partitions", "sbuf_kib_per_partition"], "sbuf_mib_per_core", 1 / 1024, 0.02),
        (["cores", "sbuf_mib_per_core"], "sbuf_mib_per_chip", 1, 0.02),
    ]
    for name, table in tables.items():
        failing, holding = [], []
        for factors, product, unit, tolerance in relations:
            expected = unit * math.prod(table[row] for row in factors)
            holds = abs(table[product] - expected) <= tolerance * expected
            (holding if holds else failing).append({*factors, product})
        if failing:
            (row,) = set.intersection(*failing) - set().union(*holding)
            return name, row
    raise ValueError("no table contradicts itself")
"""

CHOOSE = """
def choose(job, offers):
    gib = 2**30
    needed = job["parameters"] * job["bytes_per_parameter"] + job["activation_gib"] * gib
    rejected, prices, ask = {}, {}, []
    for offer in offers:
        name, price = offer["name"], offer[f"usd_per_hour_{job['market']}"]
        if needed > offer["hbm_gib"] * gib:
            rejected[name] = "memory"
        elif offer["network_gbps"] < 8 * job["network_gb_per_s"]:
            rejected[name] = "network"
        elif price is None:
            ask.append(name)
        else:
            prices[name] = price
    best = min(prices, key=prices.get, default=None)
    return {"instance": best, "usd_per_hour": prices.get(best), "ask": ask, "rejected": rejected}
"""

ALL_REDUCE_SECONDS = """
def all_reduce_seconds(elements, dtype, fabric):
    left = elements * BYTES[dtype]
    one_way = fabric["link_gb_per_s"] * 1e9 / 2
    latency = fabric["latency_us"] * 1e-6
    if fabric["kind"] == "switched":
        (chips,) = fabric["sizes"]
        return 2 * (latency + (chips - 1) / chips * left / one_way)
    seconds = 0.0
    for chips in fabric["sizes"]:
        left /= chips
        seconds += 2 * (chips - 1) * (latency + left / (one_way / len(fabric["sizes"])))
    return seconds
"""

RIGHT = {
    "ex1": GEMM_TIMES,
    "ex2": RIDGE,
    "ex3": FIT,
    "ex4": WRONG_ROW,
    "ex5": CHOOSE,
    "ex6": ALL_REDUCE_SECONDS,
}
_changed, _ = entries.of("lab01", RIGHT)


def _returns(exercise: str, name: str, said: str, value: str) -> tuple:
    """An answer that returns a constant."""
    signature = RIGHT[exercise].strip().partition("\n")[0]
    return f"lab01.{exercise}", name, f"{signature}\n    return {value}", said


CORE_GEMM = 'rate, bandwidth = sheet["core_tflops"][dtype], bandwidth / sheet["cores"]'
MAXIMUM = "max(computing, moving), bound"
STATE_1 = "here * (weights + gradients + optimizer / ways)"
STATE_2 = "here * (weights + (gradients + optimizer) / ways)"
OPTIMIZER = 'width[dtypes["master"]] + 2 * width[dtypes["moments"]]'
LOCATED = "set.intersection(*failing) - set().union(*holding)"
ROOM = '(job["hbm_gib_per_chip"] / job["cores_per_chip"] - job["activation_gib"]) * 2**30'
BY_PRICE = "elif price is None:\n            ask.append(name)"
NETWORK = 'offer["network_gbps"] < 8 * job["network_gb_per_s"]'
ONE_WAY = 'fabric["link_gb_per_s"] * 1e9 / 2'
AXIS = '2 * (chips - 1) * (latency + left / (one_way / len(fabric["sizes"])))'

WRONG = [
    # ex1
    _changed(
        "ex1", "additions forgotten", "an addition: 2mkn FLOP", ("2 * m * k * n", "m * k * n")
    ),
    _changed(
        "ex1",
        "a core as its chip",
        "one core was given the rate and the bandwidth of the whole chip",
        (CORE_GEMM, "pass"),
    ),
    _changed(
        "ex1",
        "all of the bandwidth for a core",
        "one core has its share of the chip's bandwidth, not all of it",
        (', bandwidth / sheet["cores"]', ", bandwidth"),
    ),
    _changed(
        "ex1",
        "the chip's rate for a core",
        "one core does not compute at the rate of the whole chip",
        ('sheet["core_tflops"][dtype], bandwidth', "rate, bandwidth"),
    ),
    _changed(
        "ex1",
        "the chip's rate shared out",
        "a core computes at its documented rate, which is not the chip's shared out",
        ('sheet["core_tflops"][dtype], bandwidth', 'rate / sheet["cores"], bandwidth'),
    ),
    _changed(
        "ex1",
        "the sparse rate",
        "the matrices are dense: the sparse rate does not hold for them",
        (
            "computing = 2 * m * k * n / (rate * 1e12)",
            'sparse = (each["on"] == "chip" and sheet["sparse_tflops"]) or rate\n'
            "        computing = 2 * m * k * n / (sparse * 1e12)",
        ),
    ),
    _changed(
        "ex1",
        "the product is not written",
        "the product is written to memory",
        (" + m * n) *", ") *"),
    ),
    _changed("ex1", "values for bytes", "elements times the width", (" * BYTES[dtype]", "")),
    _changed("ex1", "two bytes each", "bf16 has 2 bytes, but not", ("BYTES[dtype]", "2")),
    _changed("ex1", "four bytes each", "fp32 has 4 bytes, but not", ("BYTES[dtype]", "4")),
    _changed(
        "ex1",
        "both times added",
        "the longer of the two counts, not the sum",
        (MAXIMUM, "computing + moving, bound"),
    ),
    _changed("ex1", "the shorter", "not the shorter", (MAXIMUM, "min(computing, moving), bound")),
    _changed("ex1", "compute only", "moving may take longer", (MAXIMUM, "computing, bound")),
    _changed("ex1", "memory only", "computing may take longer", (MAXIMUM, "moving, bound")),
    _changed(
        "ex1",
        "the bound turned round",
        "all six are the wrong way round",
        ("computing >= moving", "computing < moving"),
    ),
    _changed(
        "ex1",
        "always compute",
        "the six do not all have the same bound",
        ('"compute" if computing >= moving else "memory"', '"compute"'),
    ),
    _changed(
        "ex1",
        "the bf16 rate for all",
        "each dtype has its own rate: this one is that of bf16",
        ('["chip_tflops"][dtype]', '["chip_tflops"]["bf16"]'),
        ('["core_tflops"][dtype]', '["core_tflops"]["bf16"]'),
    ),
    _changed(
        "ex1",
        "tebibytes",
        "T is 10^12 here, a tebi would be 2^40",
        ("(bandwidth * 1e12)", "(bandwidth * 2**40)"),
    ),
    _changed(
        "ex1",
        "microseconds",
        "these are microseconds",
        (MAXIMUM, "1e6 * max(computing, moving), bound"),
    ),
    _changed(
        "ex1",
        "the seconds alone",
        "return a list of six pairs",
        ("(max(computing, moving), bound)", "max(computing, moving)"),
    ),
    _changed(
        "ex1",
        "the bound before the seconds",
        'each pair is (seconds, "compute" or "memory"), in this order',
        (MAXIMUM, "bound, max(computing, moving)"),
    ),
    _changed("ex1", "capital letters", "as written here: found 'Memory'", ('"memory"', '"Memory"')),
    _changed(
        "ex1",
        "no powers of ten",
        "T is 10^12: rate and bandwidth are given in units of that",
        ("(rate * 1e12)", "rate"),
        ("(bandwidth * 1e12)", "bandwidth"),
    ),
    _changed("ex1", "bits", "TB/s are bytes, not bits", ("BYTES[dtype] /", "BYTES[dtype] * 8 /")),
    _changed(
        "ex1",
        "chips for cores",
        "a core has one of `cores` shares",
        ('/ sheet["cores"]', '/ sheet["chips_per_instance"]'),
    ),
    _changed(
        "ex1",
        "rounded",
        "this is rounded too far: return the number as it comes out",
        (MAXIMUM, "round(max(computing, moving), 6), bound"),
    ),
    _returns(
        "ex1", "does nothing", "`gemm_times` returned None: return a list of six pairs", "None"
    ),
    (
        "lab01.ex1",
        "the roofline of the course",
        """
from utils.chip.roofline import gemm

def gemm_times(sheet, gemms):
    return [gemm(each["m"], each["k"], each["n"]) for each in gemms]
""",
        "gemm belongs to the course: write this one yourself, it is lab 01, exercise 1",
    ),
    # ex2
    _changed(
        "ex2",
        "turned round",
        "that is bytes per FLOP",
        ("tflops * 1e12 / bandwidth", "bandwidth / (tflops * 1e12)"),
    ),
    _changed(
        "ex2",
        "all of the bandwidth for a core",
        "one core has its share of the chip's bandwidth, not all of it",
        (' / (sheet["cores"] if core else 1)', ""),
        ('"dma_engines_per_core" if core else "dma_engines"', '"dma_engines"'),
    ),
    _changed(
        "ex2",
        "the chip's rate for a core",
        "one core computes at its own rate, not at the chip's",
        ('sheet["core_tflops" if core else "chip_tflops"]', 'sheet["chip_tflops"]'),
    ),
    _changed(
        "ex2",
        "the chip's rate shared out",
        "a core has its documented rate, which is not the chip's shared out",
        (
            "tflops * 1e12 /",
            'sheet["chip_tflops"][dtype] / (sheet["cores"] if core else 1) * 1e12 /',
        ),
    ),
    _changed(
        "ex2",
        "one engine",
        "one engine moves that: how many engines does this level have?",
        ('engines * sheet["dma_gb', 'sheet["dma_gb'),
    ),
    _changed(
        "ex2",
        "a core's engines for a chip",
        "a chip has the engines of all its cores",
        (
            'sheet["dma_engines_per_core" if core else "dma_engines"]',
            'sheet["dma_engines_per_core"]',
        ),
    ),
    _changed(
        "ex2",
        "HBM for the engines",
        "the DMA engines move it: theirs is another rate than HBM's",
        (
            'bandwidth = engines * sheet["dma_gb_per_s_per_engine"] * 1e9',
            'bandwidth = sheet["hbm_tb_per_s"] * 1e12 / (sheet["cores"] if core else 1)',
        ),
    ),
    _changed(
        "ex2",
        "TB for GB",
        "a factor of a thousand is lost",
        ('_engine"] * 1e9', '_engine"] * 1e12'),
    ),
    _changed(
        "ex2",
        "per value",
        "FLOP per byte, not per value",
        ("tflops * 1e12 / bandwidth", "tflops * 1e12 * BYTES[dtype] / bandwidth"),
    ),
    _changed(
        "ex2",
        "sixteen chips of FLOP",
        "chips multiply FLOP per second and bytes per second alike",
        (
            "    return None if",
            '    if level == "instance":\n'
            '        bandwidth /= sheet["chips_per_instance"]\n'
            "    return None if",
        ),
    ),
    _changed(
        "ex2",
        "the bf16 rate for all",
        "each dtype has its own rate: this one is that of bf16",
        (".get(dtype)", '["bf16"]'),
    ),
    _changed(
        "ex2",
        "the sparse rate",
        "the ridge is that of the dense rate",
        (
            "    return None if",
            '    tflops = tflops and (sheet["sparse_tflops"] or tflops)\n    return None if',
        ),
    ),
    _changed(
        "ex2",
        "tebibytes",
        "T is 10^12 here, a tebi would be 2^40",
        ('"hbm_tb_per_s"] * 1e12', '"hbm_tb_per_s"] * 2**40'),
    ),
    _changed(
        "ex2",
        "0 for what is unknown",
        "Return None, which says so; 0 would be a claim",
        ("return None if tflops is None else", "return 0 if tflops is None else"),
    ),
    _changed(
        "ex2",
        "no powers of ten",
        "the powers of ten do not cancel",
        ("tflops * 1e12 / bandwidth", "tflops / bandwidth"),
    ),
    _changed(
        "ex2",
        "whole numbers",
        "this is rounded too far: return the number as it comes out",
        ("tflops * 1e12 / bandwidth", "int(tflops * 1e12 / bandwidth)"),
    ),
    _changed(
        "ex2",
        "half for each direction",
        "an engine moves what the sheet says: nothing is to be halved",
        ('_engine"] * 1e9', '_engine"] * 1e9 / 2'),
    ),
    _changed("ex2", "gibibytes", "a gibi would be 2^30", ('_engine"] * 1e9', '_engine"] * 2**30')),
    _changed(
        "ex2", "bits", "bytes per second, not bits", ('_engine"] * 1e9', '_engine"] * 1e9 / 8')
    ),
    _changed("ex2", "no look for None", "KeyError", (".get(dtype)", "[dtype]")),
    _returns("ex2", "does nothing", "only what nobody publishes is unknown", "None"),
    # ex3
    _changed("ex3", "one moment", "Adam has two moments", ("+ 2 * width", "+ width")),
    _changed("ex3", "no optimizer", "the optimizer's state is forgotten", (OPTIMIZER, "0")),
    _changed(
        "ex3",
        "no master copy",
        "beside the master copy if there is one",
        ('width[dtypes["master"]] + 2', "2"),
    ),
    _changed(
        "ex3",
        "moments as the weights",
        "each has its own dtype",
        ('width[dtypes["moments"]]', "weights"),
    ),
    _changed(
        "ex3",
        "gradients as the weights",
        "the gradients have a dtype of their own",
        ('width[dtypes["gradients"]]', 'width[dtypes["weights"]]'),
    ),
    _changed(
        "ex3",
        "tensor parallelism forgotten",
        "tensor parallelism shares everything, at every stage",
        ('job["parameters"] / job["tensor_parallel"]', 'job["parameters"]'),
    ),
    _changed(
        "ex3",
        "shared among all cores",
        "ZeRO shares among the data-parallel ways only",
        ('job["cores"] // job["tensor_parallel"]', 'job["cores"]'),
    ),
    _changed(
        "ex3",
        "shared among chips",
        "shared among cores, not among chips",
        (
            'job["cores"] // job["tensor_parallel"]',
            'job["cores"] / job["cores_per_chip"] / job["tensor_parallel"]',
        ),
    ),
    _changed(
        "ex3",
        "stage 2 gives the optimizer back",
        "each stage adds a part to what the stages before it share",
        (STATE_2, "here * (weights + optimizer + gradients / ways)"),
    ),
    _changed(
        "ex3",
        "stage 1 shares the gradients",
        "stage 1 shares the optimizer's state",
        (STATE_1, "here * (weights + optimizer + gradients / ways)"),
    ),
    _changed(
        "ex3",
        "stage 3 keeps the weights",
        "stage 3 shares the weights, too",
        ("here * (weights + gradients + optimizer) / ways", STATE_2),
    ),
    _changed(
        "ex3",
        "GB for GiB",
        "GiB are 2^30 bytes: with 10^9 there seems to be less room than there is",
        ("* 2**30", "* 1e9"),
    ),
    _changed(
        "ex3",
        "the chip's memory for a core",
        "a core has its share of the chip's memory, not all of it",
        (' / job["cores_per_chip"] -', " -"),
    ),
    _changed(
        "ex3",
        "no activations",
        "the activations need room, too",
        (' - job["activation_gib"])', ")"),
    ),
    _changed(
        "ex3",
        "always stage 3",
        "the lowest stage that fits is asked for",
        ("for stage, size in enumerate(state)", "for stage, size in [(3, state[3])]"),
    ),
    _changed(
        "ex3",
        "gibibytes",
        "return bytes: these are GiB",
        ('{"bytes": state', '{"bytes": [s / 2**30 for s in state]'),
    ),
    _changed(
        "ex3",
        "the optimizer not split by tensor parallelism",
        "tensor parallelism shares everything, at every stage",
        (f"{OPTIMIZER}\n", f'({OPTIMIZER}) * job["tensor_parallel"]\n'),
    ),
    _changed(
        "ex3",
        "on all cores",
        "the bytes on one core are asked for, not on all of them",
        ('{"bytes": state', '{"bytes": [s * job["cores"] for s in state]'),
    ),
    _changed(
        "ex3",
        "the recipe mixed for all",
        "these are the bytes of the recipe mixed",
        ('width[dtypes["weights"]], width[dtypes["gradients"]]', "2, 2"),
        (OPTIMIZER, "12"),
    ),
    _changed(
        "ex3",
        "the activations in GB",
        "all of their GiB, of 2^30 bytes",
        (ROOM, ROOM.replace('job["activation_gib"]', 'job["activation_gib"] * 1e9 / 2**30')),
    ),
    _changed("ex3", "no stage", "there is no entry 'stage'", (', "stage": stage', "")),
    _changed(
        "ex3",
        "the stage alone",
        "`fit` returned an int",
        ('{"bytes": state, "stage": stage}', "stage or 0"),
    ),
    _returns("ex3", "does nothing", "`fit` returned None: return {'bytes': [four numbers]", "None"),
    # ex4
    _changed(
        "ex4",
        "no tolerance for cores",
        "its rows agree: documented rates are rounded",
        ('"chip_tflops", 1, 0.08', '"chip_tflops", 1, 0.01'),
        (LOCATED, "sorted(set().union(*failing))[:1]"),
    ),
    _changed(
        "ex4",
        "too much tolerance",
        "ValueError: no table contradicts itself",
        ('"system_hbm_gib", 1, 0.02', '"system_hbm_gib", 1, 0.1'),
        (
            '"hbm_gib", 1, 0.02),\n        (["chips", "hbm_tb',
            '"hbm_gib", 1, 0.1),\n        (["chips", "hbm_tb',
        ),
        ('"system_hbm_tb_per_s", 1, 0.02', '"system_hbm_tb_per_s", 1, 0.1'),
    ),
    _changed(
        "ex4",
        "the product of the first failing relation",
        "not yet",
        (LOCATED, "{[p for f, p, *_ in relations if {*f, p} in failing][0]}"),
    ),
    _changed(
        "ex4",
        "a row of the last failing relation",
        "not yet",
        (LOCATED, "sorted(failing[-1])[:1]"),
    ),
    _changed(
        "ex4", "nobody is acquitted", "not yet", (LOCATED, "sorted(set.intersection(*failing))[:1]")
    ),
    _changed(
        "ex4",
        "only those who are acquitted nowhere",
        "not yet",
        (LOCATED, "sorted(set().union(*failing) - set().union(*holding))[-1:]"),
    ),
    _changed(
        "ex4",
        "the factor 2 forgotten",
        "its rows agree",
        ("2e-3", "1e-3"),
        (LOCATED, "['core_tflops']"),
    ),
    _changed(
        "ex4",
        "rows and table exchanged",
        "there is no table of that name",
        ("return name, row", "return row, name"),
    ),
    _changed("ex4", "the row alone", "return a pair", ("return name, row", "return row")),
    _changed(
        "ex4", "the first table", "its rows agree", ("return name, row", "return min(tables), row")
    ),
    _returns("ex4", "the likeliest", "not yet", '("trn2.48xlarge", "core_tflops")'),
    _returns("ex4", "does nothing", "`wrong_row` returned None: return a pair", "None"),
    (
        "lab01.ex4",
        "looked up",
        """
def wrong_row(tables):
    from utils.chip.hardware import core_sum

    return "trn2.48xlarge", core_sum("trainium2", "bf16")
""",
        "core_sum belongs to the course: write this one yourself, it is lab 01, exercise 4",
    ),
    # ex5
    _changed(
        "ex5",
        "None as 0",
        "its price is not known: None is not 0",
        (BY_PRICE, "elif False:\n            pass"),
        ("prices[name] = price\n", "prices[name] = price or 0\n"),
    ),
    _changed(
        "ex5",
        "unknown prices left out",
        "with no known price in this market",
        ("ask.append(name)", "pass"),
    ),
    _changed(
        "ex5",
        "unknown prices rejected",
        "an unknown price is no reason",
        ("ask.append(name)", 'rejected[name] = "price"'),
    ),
    _changed(
        "ex5",
        "the other market's price",
        "a price of the other one is not to be had there",
        (
            "offer[f\"usd_per_hour_{job['market']}\"]",
            'offer["usd_per_hour_on_demand"] or offer["usd_per_hour_capacity_block"]',
        ),
    ),
    _changed("ex5", "GB for GiB", "GiB are 2^30 bytes on both sides", ("gib = 2**30", "gib = 1e9")),
    _changed("ex5", "bits for bytes", "8 bits are a byte", (NETWORK, NETWORK.replace("8 * ", ""))),
    _changed(
        "ex5", "bytes for bits", "8 bits are a byte", (NETWORK, NETWORK.replace("8 *", "0.125 *"))
    ),
    _changed(
        "ex5", "no activations", "the activations need room", (' + job["activation_gib"] * gib', "")
    ),
    _changed(
        "ex5",
        "no network",
        "8 bits are a byte",
        (NETWORK, "False"),
    ),
    _changed(
        "ex5", "the dearest", "another one that fits costs less", ("min(prices", "max(prices")
    ),
    _changed(
        "ex5",
        "the smallest that fits",
        "another one that fits costs less by the hour, as a whole instance",
        ("key=prices.get", 'key=lambda n: [o["hbm_gib"] for o in offers if o["name"] == n]'),
    ),
    _changed(
        "ex5",
        "everybody is asked",
        "ask only where it could matter",
        ("prices[name] = price\n", "prices[name] = price\n            ask.append(name)\n"),
    ),
    _changed(
        "ex5",
        "no price",
        "usd_per_hour is the price of that instance",
        ("prices.get(best)", "None"),
    ),
    _changed(
        "ex5",
        "a reason in other words",
        "found 'HBM' as a reason",
        ('rejected[name] = "memory"', 'rejected[name] = "HBM"'),
    ),
    _changed(
        "ex5",
        "all names with a reason or None",
        "name only offers that do not fit",
        (
            '"rejected": rejected',
            '"rejected": {o["name"]: rejected.get(o["name"]) for o in offers}',
        ),
    ),
    _changed(
        "ex5",
        "the cheapest per GiB",
        "another one that fits costs less by the hour, as a whole instance",
        ("prices, ask = {}, {}, []", "prices, ask, size = {}, {}, [], {}"),
        ("prices[name] = price\n", 'prices[name], size[name] = price, offer["hbm_gib"]\n'),
        ("key=prices.get", "key=lambda n: prices[n] / size[n]"),
    ),
    _changed("ex5", "text to ask", "with a str as 'ask'", ('"ask": ask', '"ask": ", ".join(ask)')),
    _changed(
        "ex5",
        "the network first",
        "and that is asked first",
        (
            "        if needed > offer",
            f'        if {NETWORK}:\n            rejected[name] = "network"\n'
            "        elif needed > offer",
        ),
        (
            f'elif {NETWORK}:\n            rejected[name] = "network"\n        elif price',
            "elif price",
        ),
    ),
    _changed("ex5", "no default", "ValueError: min() ", (", default=None", "")),
    _changed(
        "ex5",
        "the name alone",
        "`choose` returned a str: return",
        (
            'return {"instance": best, "usd_per_hour": prices.get(best), "ask": ask,',
            "return str(best) or {",
        ),
    ),
    _returns("ex5", "does nothing", "`choose` returned None: return {'instance'", "None"),
    # ex6
    _changed(
        "ex6",
        "both directions",
        "vendors print both directions together",
        (ONE_WAY, ONE_WAY.replace(" / 2", "")),
    ),
    _changed(
        "ex6",
        "no latency",
        "the latency of each step is forgotten",
        ('fabric["latency_us"] * 1e-6', "0"),
    ),
    _changed(
        "ex6",
        "latency once",
        "the latency comes with each step, not once",
        ("seconds = 0.0", "seconds = latency"),
        (AXIS, AXIS.replace("latency + ", "")),
        (
            "2 * (latency + (chips - 1) / chips * left / one_way)",
            "latency + 2 * (chips - 1) / chips * left / one_way",
        ),
    ),
    _changed("ex6", "milliseconds", "µs are 10^−6 seconds", ("* 1e-6", "* 1e-3")),
    _changed(
        "ex6",
        "half of it",
        "that is a reduce-scatter",
        (AXIS, AXIS.replace("2 * ", "")),
        ("2 * (latency", "(latency"),
    ),
    _changed(
        "ex6",
        "n steps",
        "n − 1 steps or pieces, not n",
        (AXIS, AXIS.replace("(chips - 1)", "chips")),
    ),
    _changed(
        "ex6", "n pieces", "n − 1 steps or pieces, not n", ("(chips - 1) / chips * left", "left")
    ),
    _changed(
        "ex6",
        "a torus as one ring",
        "not one long ring runs",
        ('for chips in fabric["sizes"]:', 'for chips in [math.prod(fabric["sizes"])]:'),
        (' / len(fabric["sizes"])', ""),
    ),
    _changed(
        "ex6",
        "all links on each axis",
        "each axis has its share of the chip's links",
        (' / len(fabric["sizes"])', ""),
    ),
    _changed(
        "ex6",
        "all of it on each axis",
        "the first axis leaves each chip a part of S",
        ("        left /= chips\n", ""),
        ("left / (one_way", "left / chips / (one_way"),
    ),
    _changed(
        "ex6",
        "all of it in each step",
        "a chip sends one piece, S/n, not the whole of S",
        (
            "        left /= chips\n",
            "        left = left if fabric['kind'] == 'ring' else left / chips\n",
        ),
    ),
    _changed(
        "ex6", "a switch as a ring", "two steps, not 2(n − 1)", ('== "switched"', '== "none"')
    ),
    _changed("ex6", "bits", "GB/s are bytes, not bits", (ONE_WAY, ONE_WAY.replace("/ 2", "/ 16"))),
    _changed("ex6", "gibibytes", "GiB would be 2^30", ("1e9", "2**30")),
    _changed(
        "ex6",
        "two bytes each",
        "half of that; and fp32 has 4 bytes",
        ("BYTES[dtype]", "2"),
    ),
    _changed(
        "ex6",
        "twice in place of half",
        "a chip sends half of what vendors print for both directions, not twice",
        (ONE_WAY, ONE_WAY.replace("/ 2", "* 2")),
    ),
    _changed(
        "ex6",
        "one link of two",
        "a chip sends half of what vendors print, over all its links at once",
        (ONE_WAY, ONE_WAY.replace("/ 2", "/ 4")),
    ),
    _changed(
        "ex6",
        "a byte for each number",
        "a chip sends half of that; and bf16 has 2 bytes",
        ("elements * BYTES[dtype]", "elements"),
    ),
    _changed("ex6", "latency in seconds", "µs are 10^−6 seconds", (" * 1e-6", "")),
    _changed("ex6", "latency alone", "the bytes take time, too", (AXIS, AXIS.replace("left", "0"))),
    _changed(
        "ex6",
        "a latency to send and one to receive",
        "a step pays the latency once",
        ("* 1e-6", "* 2e-6"),
    ),
    _changed(
        "ex6",
        "all axes at once",
        "one axis is at work after the other: their times add up",
        (f"seconds += {AXIS}", f"seconds = max(seconds, {AXIS})"),
    ),
    _returns("ex6", "does nothing", "found None, return a number", "None"),
    (
        "lab01.ex6",
        "the topology of the course",
        """
def all_reduce_seconds(elements, dtype, fabric):
    from utils.chip import topology

    return topology.all_reduce_seconds(elements, topology.ring(4), 1e9, 1e-6)
""",
        "belongs to the course: write this one yourself, it is lab 01, exercise 6",
    ),
    (
        "lab01.ex6",
        "for ever",
        """
def all_reduce_seconds(elements, dtype, fabric):
    while True:
        pass
""",
        "the check stopped the answer after some seconds",
    ),
]
