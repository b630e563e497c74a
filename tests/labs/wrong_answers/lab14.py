"""Wrong answers to lab 14 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are a right answer with one change, so that the change shows what is tested.
"""

from tests.labs.cells import changed

DECISIONS = """
def decisions():
    return {
        "ferry": {
            "answers": {
                "framework": "torch.compile", "kernels": "none", "shapes": "static",
                "deadline_weeks": 39, "experience": "another accelerator", "region": "us-east-2",
                "capacity": "not asked yet", "gate": "by hand", "managed": "not enough",
            },
            "verdict": "trainium", "because": "clearly cheaper",
        },
        "quarry": {
            "answers": {
                "framework": "vLLM", "kernels": "none", "shapes": "bucketable",
                "deadline_weeks": 20, "experience": "none", "region": "us-west-2",
                "capacity": "Trainium only", "gate": "automatic", "managed": "not tried",
            },
            "verdict": "trainium", "because": "no GPU",
        },
        "theatre": {
            "answers": {
                "framework": "torch.compile", "kernels": "none", "shapes": "static",
                "deadline_weeks": 52, "experience": "Trainium", "region": "any",
                "capacity": "both", "gate": "none", "managed": "not enough",
            },
            "verdict": "neither", "because": "no gate",
        },
        "pharmacy": {
            "answers": {
                "framework": "PyTorch eager", "kernels": "none", "shapes": "bucketable",
                "deadline_weeks": 40, "experience": "another accelerator", "region": "elsewhere",
                "capacity": "not asked yet", "gate": "automatic", "managed": "not enough",
            },
            "verdict": "gpu", "because": "no region",
        },
        "railway": {
            "answers": {
                "framework": "PyTorch eager", "kernels": "known replacements",
                "shapes": "bucketable", "deadline_weeks": 6, "experience": "none",
                "region": "us-east-2", "capacity": "both", "gate": "automatic",
                "managed": "not enough",
            },
            "verdict": "gpu", "because": "deadline",
        },
        "brewery": {
            "answers": {
                "framework": "vLLM", "kernels": "none", "shapes": "bucketable",
                "deadline_weeks": 30, "experience": "Trainium", "region": "us-east-2",
                "capacity": "both", "gate": "automatic", "managed": "not enough",
            },
            "verdict": "either", "because": "no saving shown",
        },
    }  # fmt: skip
"""
FLIPS = """
def flips():
    listed = {
        "ferry": ("capacity", "GPU only", "gpu", 0.129),
        "quarry": ("capacity", "both", "either", -0.121),
        "theatre": ("gate", "automatic", "trainium", None),
        "pharmacy": ("capacity", "both", "trainium", None),
        "railway": ("deadline_weeks", 8.5, "trainium", None),
        "brewery": ("capacity", "Trainium only", "trainium", 0.1),
    }
    names = ("field", "to", "verdict", "saving")
    return {case: dict(zip(names, each, strict=True)) for case, each in listed.items()}
"""
NEAREST_FLIP = """
def nearest_flip(verdict_at, now, low, high):
    here = verdict_at(now)
    step = (high - low) / 100
    inner = {-1: now, 1: now}
    for count in range(1, 102):
        for side in (-1, 1):
            outer = min(max(now + side * count * step, low), high)
            if verdict_at(outer) == here:
                inner[side] = outer
                continue
            same, other = inner[side], outer
            for _ in range(30):
                middle = (same + other) / 2
                if verdict_at(middle) == here:
                    same = middle
                else:
                    other = middle
            return other, verdict_at(other)
    return None
"""
CONTRADICTIONS = """
def contradictions(answers, audit, thresholds):
    def count(*rules):
        return sum(
            each["count"]
            for each in audit["findings"]
            if each["rule"] in rules and each["severity"] != "note"
        )

    own, dynamic = count(*OWN), count(*DYNAMIC)
    found = {"kernels": 1 if own or count(*PACKAGED) else 0, "shapes": 1 if dynamic else 0}
    if own >= thresholds["own_kernels"]:
        found["kernels"] = 2
    if dynamic >= thresholds["dynamic_findings"]:
        found["shapes"] = 2
    used, overruled, doubted = {}, [], []
    for field, scale in SCALES.items():
        said = scale.index(answers[field])
        used[field] = scale[max(said, found[field])]
        if found[field] > said:
            overruled.append(field)
        if said == 2 and found[field] == 0:
            doubted.append(field)
    if audit["unread"]:
        doubted.append("unread")
    return {"used": used, "overruled": overruled, "doubted": doubted}
"""
WORTH_OF_PILOT = """
def worth_of_pilot(draws, price):
    options = ("trainium", "gpu")

    def mean_cost(option, result=None):
        costs = [
            cost
            for cost, each in zip(draws[option], draws["result"], strict=True)
            if result in (None, each)
        ]
        return sum(costs) / len(costs)

    now = min(options, key=mean_cost)
    after, value = {}, 0.0
    for result in set(draws["result"]):
        after[result] = min(options, key=lambda option: mean_cost(option, result))
        share = draws["result"].count(result) / len(draws["result"])
        value += share * (mean_cost(now, result) - mean_cost(after[result], result))
    return {"now": now, "after": after, "value": value, "pilot": value > price}
"""
PLAN = """
def plan():
    steps = [
        {
            "step": "baseline", "weeks": 1, "engineers": 1, "server_weeks": 1, "at_most_weeks": 2,
            "exit": [("spread of three runs", "<=", 0.05),
                     ("servers promised in writing", ">=", 8)],
            "stop": [("spread of three runs", ">=", 0.2)],
        },
        {
            "step": "audit", "weeks": 0.5, "engineers": 1, "server_weeks": 0, "at_most_weeks": 1,
            "exit": [("kernels without replacement", "<=", 0)],
            "stop": [("kernels without replacement", ">=", 1)],
        },
        {
            "step": "port", "weeks": 2, "engineers": 2, "server_weeks": 1, "at_most_weeks": 4,
            "exit": [("graphs after warm-up", "<=", 0), ("operators on the CPU", "<=", 0)],
            "stop": [("graphs after warm-up", ">=", 20)],
        },
        {
            "step": "parity", "weeks": 2, "engineers": 1, "server_weeks": 1, "at_most_weeks": 3,
            "exit": [("values outside tolerance", "<=", 0), ("accepted answers", ">=", 0.9)],
            "stop": [("accepted answers", "<=", 0.8)],
        },
        {
            "step": "measure", "weeks": 1.5, "engineers": 1, "server_weeks": 2, "at_most_weeks": 3,
            "exit": [("throughput over break-even", ">=", 1)],
            "stop": [("throughput over break-even", "<=", 0.8)],
        },
        {
            "step": "sign", "weeks": 1, "engineers": 1, "server_weeks": 0, "at_most_weeks": 2,
            "exit": [("open contract items", "<=", 0), ("votes", ">=", 2)],
            "stop": [("votes", "<=", 1)],
        },
    ]  # fmt: skip
    side = {
        "items": 20_000, "accepted": 0.9, "precision": "BF16", "region": "us-east-2",
        "purchase": "capacity block", "date": "2025-06", "from": "own run", "runs": 3,
        "cold_apart": True,
    }  # fmt: skip
    return {"steps": steps, "benchmark": {"trainium": side, "gpu": dict(side)}}
"""
CHECKLIST = """
def checklist(items, record, today, code):
    by_name = {each["item"]: each for each in items}

    def is_evidence(item, entry):
        age = (date.fromisoformat(today) - date.fromisoformat(entry["date"])).days
        return (
            entry["reads"] == item["reads"]
            and entry["from"] == "measured"
            and (item["on"] == "any" or entry["on"] == "device")
            and entry["code"] == code
            and 0 <= age <= item["days"]
            and entry["value"] is not None
        )

    def meets(item, value):
        ends = value if isinstance(value, list) else [value]
        if item["compare"] == "<=":
            return {end <= item["limit"] for end in ends}
        return {end >= item["limit"] for end in ends}

    def state(name):
        item = by_name[name]
        if any(state(each) != "done" for each in item["after"]):
            return "open"
        good = [each["value"] for each in record if is_evidence(item, each)]
        said = set().union(*(meets(item, value) for value in good))
        if len(said) != 1:
            return "open"
        return "done" if said.pop() else "failed"

    return {name: state(name) for name in by_name}
"""

RIGHT = {
    "ex1": DECISIONS,
    "ex2": FLIPS,
    "ex3": NEAREST_FLIP,
    "ex4": CONTRADICTIONS,
    "ex5": WORTH_OF_PILOT,
    "ex6": PLAN,
    "ex7": CHECKLIST,
}

FORMS = [
    (
        "a promise on the phone",
        '"capacity": "not asked yet", "gate": "by hand"',
        '"capacity": "both", "gate": "by hand"',
        "nothing is in writing, for GPUs neither",
    ),
    ("months as weeks", '"deadline_weeks": 39', '"deadline_weeks": 9', "in nine months"),
    (
        "a captain is a script",
        '"gate": "by hand"',
        '"gate": "automatic"',
        "Three captains read the answers",
    ),
    (
        "no experience",
        '"static",\n                "deadline_weeks": 39, "experience": "another accelerator"',
        '"static",\n                "deadline_weeks": 39, "experience": "none"',
        "they once moved a model to another accelerator",
    ),
    (
        "judged by somebody",
        '"gate": "none"',
        '"gate": "by hand"',
        "each was released because it was newer",
    ),
    (
        "packages are none of ours",
        '"kernels": "known replacements"',
        '"kernels": "none"',
        "flash-attn and bitsandbytes",
    ),
    ("any region", '"region": "elsewhere"', '"region": "any"', "The law keeps the data in Milan"),
    (
        "a word of ones own",
        '"gate": "none"',
        '"gate": "shrug"',
        "gate: 'shrug' is no answer; allowed: 'automatic', 'by hand', 'none'",
    ),
    (
        "weeks as a word",
        '"deadline_weeks": 6,',
        '"deadline_weeks": "six",',
        "deadline_weeks: 'six' is no answer",
    ),
    ("true for weeks", '"deadline_weeks": 6,', '"deadline_weeks": True,', "is no answer"),
    (
        "an answer too few",
        '"framework": "PyTorch eager", "kernels": "none", "shapes": "bucketable",',
        '"framework": "PyTorch eager", "kernels": "none",',
        "shapes: no answer; allowed",
    ),
    (
        "an answer too many",
        '"gate": "none",',
        '"gate": "none", "quality": "high",',
        "quality: no such question",
    ),
    (
        "the colleague knows better",
        '"gate": "none",',
        '"gate": "none", "engineers": 7,',
        "engineers: the colleague's answer is 2, yours another",
    ),
    (
        "managed enough",
        '"managed": "not tried"',
        '"managed": "enough"',
        "About hosted models nobody has thought yet",
    ),
]
VERDICTS = [
    ("the money decides", '"verdict": "neither", "because": "no gate"',
     '"verdict": "trainium", "because": "no gate"', "theatre: you say trainium; on your own"),
    ("no verdict", '"verdict": "either"', '"verdict": "maybe"', "maybe is no verdict; there are"),
    ("the largest row", '"because": "no region"', '"because": "clearly cheaper"',
     "without it the verdict would be the same"),
    ("a sentence as the reason", '"because": "deadline"', '"because": "it is too late"',
     "it is too late is no row of the rule"),
    ("a row that does not hold", '"because": "no GPU"', '"because": "cheaper"',
     "the row 'cheaper' does not hold in this case"),
    ("a beta decides", '"because": "no saving shown"', '"because": "beta"',
     "which row cannot be taken away?"),
]  # fmt: skip
DECIDED = [
    *(("lab14.ex1", name, changed(DECISIONS, (old, new)), text)
      for name, old, new, text in (*FORMS, *VERDICTS)),
    ("lab14.ex1", "verdicts without forms",
     "def decisions():\n    return {'ferry': {'verdict': 'trainium', 'because': 'cheaper'}}",
     '"answers" is None: make it a dict of the nine answers'),
    ("lab14.ex1", "a list", "def decisions():\n    return ['trainium'] * 6",
     "`decisions` returned a list of 6"),
    ("lab14.ex1", "a case is missing", changed(DECISIONS, ('"railway": {', '"train": {')),
     'no case "railway": add it'),
    ("lab14.ex1", "a verdict follows from a wrong form",
     changed(DECISIONS, ('"gate": "none"', '"gate": "automatic"'),
             ('"verdict": "neither"', '"verdict": "trainium"')),
     "one of them is not the text's"),
]  # fmt: skip

CHANGES = [
    ("another workload", '("capacity", "GPU only", "gpu"', '("architecture", "other", "either"',
     "with another architecture it is another workload"),
    ("another framework", '("capacity", "GPU only", "gpu"', '("framework", "TensorFlow", "gpu"',
     "with another framework it is another workload"),
    ("against the law", '("capacity", "both", "trainium"', '("region", "us-east-2", "trainium"',
     "where the data lie is not open"),
    ("true of every case", '("capacity", "GPU only", "gpu"',
     '("capacity", "none to be had", "neither"', "nobody could choose any machine"),
    ("no gate for anybody", '("capacity", "Trainium only", "trainium"',
     '("gate", "none", "neither"', "nobody could choose any machine"),
    ("far beyond", '("deadline_weeks", 8.5', '("deadline_weeks", 52', "but so does less"),
    ("not far enough", '("deadline_weeks", 8.5', '("deadline_weeks", 8',
     "the verdict is still gpu"),
    ("it does not flip", '("capacity", "Trainium only", "trainium"', '("engineers", 5, "trainium"',
     "the verdict is still either"),
    ("no change at all", '("gate", "automatic"', '("gate", "none"', "is 'none' already"),
    ("another verdict follows", '("gate", "automatic", "trainium"', '("gate", "automatic", "gpu"',
     "the verdict is not gpu: decide again"),
    ("no answer of the form", '("gate", "automatic"', '("jury", "yes"',
     "jury is no answer of the form"),
    ("no allowed value", '("gate", "automatic"', '("gate", "jury"', "'jury' is no answer"),
    ("equal costs", '0.129', '0.0', "at equal costs the chance is even"),
    ("the distance", '0.129', '-0.061', "that is how far the saving moves"),
    ("in per cent", '"trainium", 0.1)', '"trainium", 10)', "as a fraction, not in per cent"),
    ("the farther side", '"trainium", 0.1)', '"trainium", -0.1)',
     "the other side is nearer"),
    ("a price for a veto", '8.5, "trainium", None', '8.5, "trainium", 0.5',
     "as the veto 'deadline' asks for no price"),
    ("a guess", '-0.121', '-0.3', "the verdict does not change there"),
    ("a word as the saving", '-0.121', '"a lot"', "give a number, or None"),
]  # fmt: skip
FLIPPED = [
    *(("lab14.ex2", name, changed(FLIPS, (old, new)), text)
      for name, old, new, text in CHANGES),
    ("lab14.ex2", "no price where votes decide",
     changed(FLIPS, ('"either", -0.121)', '"either", None)')),
     "quarry: there is a saving at which"),
    ("lab14.ex2", "no saving at all",
     changed(FLIPS, ('names = ("field", "to", "verdict", "saving")',
                     'names = ("field", "to", "verdict")'), ("strict=True", "strict=False")),
     'no "saving": give the middle saving'),
    ("lab14.ex2", "a case is missing", changed(FLIPS, ('"quarry": (', '"hole": (')),
     'no case "quarry"'),
    ("lab14.ex2", "a list", "def flips():\n    return []", "`flips` returned a list of 0"),
]  # fmt: skip

NEAREST = [
    ("lab14.ex3", "halving between the ends", """
def nearest_flip(verdict_at, now, low, high):
    same, other = low, high
    if verdict_at(low) == verdict_at(high):
        return None
    for _ in range(60):
        middle = (same + other) / 2
        if verdict_at(middle) == verdict_at(low):
            same = middle
        else:
            other = middle
    return other, verdict_at(other)
""", "is what holds now: give the verdict beyond"),
    ("lab14.ex3", "only upwards",
     changed(NEAREST_FLIP, ("for side in (-1, 1):", "for side in (1,):")),
     "a step wider than"),
    ("lab14.ex3", "upwards first", """
def nearest_flip(verdict_at, now, low, high):
    here, step = verdict_at(now), (high - low) / 100
    for side in (1, -1):
        value = now
        while low <= value + side * step <= high:
            value += side * step
            if verdict_at(value) != here:
                same, other = value - side * step, value
                for _ in range(40):
                    middle = (same + other) / 2
                    if verdict_at(middle) == here:
                        same = middle
                    else:
                        other = middle
                return other, verdict_at(other)
    return None
""", "which flip is the nearest to now"),
    ("lab14.ex3", "from low", """
def nearest_flip(verdict_at, now, low, high):
    here, step = verdict_at(now), (high - low) / 100
    values = [low + k * step for k in range(101)]
    for value in values:
        if verdict_at(min(value, high)) != here:
            return value, verdict_at(value)
    return None
""", "halve the step until it is within"),
    ("lab14.ex3", "a coarse step",
     changed(NEAREST_FLIP, ("/ 100", "/ 8"), ("range(1, 102)", "range(1, 9)")),
     "a step wider than"),
    ("lab14.ex3", "a step as the result", changed(NEAREST_FLIP, ("range(30)", "range(0)")),
     "halve the step until it is within"),
    ("lab14.ex3", "the last value that agrees",
     changed(NEAREST_FLIP, ("return other, verdict_at(other)", "return same, verdict_at(other)")),
     "nothing has changed yet"),
    ("lab14.ex3", "the verdict of now",
     changed(NEAREST_FLIP, ("return other, verdict_at(other)", "return other, here")),
     "is what holds now: give the verdict beyond the flip"),
    ("lab14.ex3", "an end where nothing flips",
     changed(NEAREST_FLIP, ("    return None", "    return high, here")),
     "no value changes this verdict: return None"),
    ("lab14.ex3", "a million steps", """
def nearest_flip(verdict_at, now, low, high):
    here = verdict_at(now)
    for count in range(1, 1_000_001):
        for side in (-1, 1):
            value = now + side * count * (high - low) / 1e6
            if low <= value <= high and verdict_at(value) != here:
                return value, verdict_at(value)
    return None
""", "more than 500 calls"),
    ("lab14.ex3", "beyond what is allowed",
     changed(NEAREST_FLIP, ("min(max(now + side * count * step, low), high)",
                            "now + side * count * step")), "ValueError: value:"),
    ("lab14.ex3", "only the value",
     changed(NEAREST_FLIP, ("return other, verdict_at(other)", "return other")),
     "return a pair, (value, verdict), or None"),
    ("lab14.ex3", "nothing ever flips",
     "def nearest_flip(verdict_at, now, low, high):\n    return None",
     "None for every rule"),
    ("lab14.ex3", "an absolute step",
     changed(NEAREST_FLIP, ("step = (high - low) / 100", "step = 0.01")), "a step wider than"),
    ("lab14.ex3", "for ever", changed(NEAREST_FLIP, ("    here = verdict_at(now)",
     "    while True:\n        pass\n    here = verdict_at(now)")), "stopped the answer after"),
    ("lab14.ex3", "a look at the edges", """
def nearest_flip(verdict_at, now, low, high):
    edges = verdict_at._rule["edges"]
    return min(edges, key=lambda edge: abs(edge - now)) if edges else None
""", "has no attribute '_rule'"),
    ("lab14.ex3", "the course's own", """
def nearest_flip(verdict_at, now, low, high):
    from utils.cost.decision.flips import _nearest

    points = [low + k * (high - low) / 100 for k in range(101)]
    return next(_nearest(verdict_at, now, verdict_at(now), points, False), None)
""", "belongs to the course: write this one yourself"),
]  # fmt: skip

CODE = [
    ("an answer made easier", "scale[max(said, found[field])]", "scale[found[field]]",
     "what an audit does not find proves nothing"),
    ("the answer stays", "scale[max(said, found[field])]", "answers[field]",
     "it overrules the answer"),
    ("notes count", ' and each["severity"] != "note"', "", "notes do not count"),
    ("errors only", 'each["severity"] != "note"', 'each["severity"] == "error"',
     "a warning counts as an error does"),
    ("entries are counted", 'each["count"]\n', "1\n", "add the counts, not the entries"),
    ("packages as ones own", "own, dynamic = count(*OWN)", "own, dynamic = count(*OWN, *PACKAGED)",
     "kernels of packages are none of one's own"),
    ("more than the threshold", 'own >= thresholds', "own > thresholds",
     "as many as the threshold says are many already"),
    ("thresholds of the example", 'thresholds["own_kernels"]', "3", "kernels: "),
    ("what is equal is overruled", "if found[field] > said:", "if found[field] >= said:",
     "overruled is only an answer"),
    ("nothing is overruled", "            overruled.append(field)", "            pass",
     "it is overruled, name it"),
    ("every easier finding is doubted", "said == 2 and found[field] == 0", "said > found[field]",
     "in doubt is only the hardest answer"),
    ("no doubt", "said == 2 and found[field] == 0", "False",
     "the hardest answer, and nothing found"),
    ("unread files are nothing", 'if audit["unread"]:', "if False:",
     "nobody knows what is in them"),
    ("unread always", 'if audit["unread"]:', 'if "unread" in audit:', "every file was read"),
    ("doubts as words", '"doubted": doubted}', '"doubted": ", ".join(doubted)}',
     "doubted is a str: return a list"),
    ("indices in place of words", "used[field] = scale[max(said, found[field])]",
     "used[field] = max(said, found[field])", "is no answer; allowed: "),
]  # fmt: skip
CODED = [
    *(("lab14.ex4", name, changed(CONTRADICTIONS, (old, new)), text)
      for name, old, new, text in CODE),
    ("lab14.ex4", "the largest entry",
     changed(CONTRADICTIONS, ("return sum(", "return max(("),
             ('!= "note"\n        )', '!= "note"\n        ), default=0)')),
     "the counts of several entries"),
    ("lab14.ex4", "a tuple", "def contradictions(answers, audit, thresholds):\n    return (1, 2)",
     "`contradictions` returned a tuple of 2"),
]  # fmt: skip

VALUE = """        value += share * (mean_cost(now, result) - mean_cost(after[result], result))
"""
PILOTS = [
    ("the difference of the means", '    return {"now": now',
     '    value = abs(mean_cost("gpu") - mean_cost("trainium"))\n    return {"now": now',
     "what does choosing later change?"),
    ("everything is known", '    return {"now": now',
     '    value = mean_cost(now) - sum(map(min, draws["gpu"], draws["trainium"]))'
     ' / len(draws["gpu"])\n    return {"now": now', "which takes knowing everything"),
    ("results weighed alike", 'draws["result"].count(result) / len(draws["result"])',
     '1 / len(set(draws["result"]))', "weigh each by its share of the draws"),
    ("results alike, as costs", '    return {"now": now',
     '    best = [mean_cost(after[each], each) for each in after]\n'
     '    value = mean_cost(now) - sum(best) / len(best)\n    return {"now": now',
     "weigh each by its share of the draws"),
    ("the best case", VALUE,
     "        value = max(value, mean_cost(now, result) - mean_cost(after[result], result))\n",
     "that is the best case"),
    ("always something", VALUE,
     '        value += share * abs(mean_cost("gpu", result) - mean_cost("trainium", result))\n',
     "a result that leaves the choice as it is saves nothing"),
    ("never a choice", "min(options, key=lambda option: mean_cost(option, result))", "now",
     "take the option whose mean cost over its draws is less"),
    ("the price is taken off", '"value": value,', '"value": value - price,',
     "the price is compared with the value, not taken off it"),
    ("the sum of all draws", '"value": value,', '"value": value * len(draws["result"]),',
     "the mean is asked for"),
    ("what is paid", VALUE, "        value += share * mean_cost(after[result], result)\n",
     "that is what one pays after the pilot"),
    ("the sign", '"value": value,', '"value": -value,', "the sign"),
    ("the median", "return sum(costs) / len(costs)",
     "return sorted(costs)[len(costs) // 2]", "mean cost"),
    ("the dearer one now", "now = min(options", "now = max(options",
     "without a pilot one takes the option whose mean cost"),
    ("always a pilot", '"pilot": value > price', '"pilot": True', "pilot: "),
    ("the price turned round", "value > price", "value < price", "pilot: "),
    ("a sentence", '"pilot": value > price', '"pilot": "yes"', "it is True or False"),
    ("rounded", '"value": value,', '"value": round(value),', "rounded too far"),
]  # fmt: skip
MORE_OFTEN = """
def worth_of_pilot(draws, price):
    options = ("trainium", "gpu")
    rows = list(zip(draws["trainium"], draws["gpu"], draws["result"], strict=True))

    def cheaper(some):
        return {choice}

    def mean_cost(option, some):
        return sum(row[options.index(option)] for row in some) / len(some)

    now, after, value = cheaper(rows), {{}}, 0.0
    for result in set(draws["result"]):
        some = [row for row in rows if row[2] == result]
        after[result] = cheaper(some)
        saved = mean_cost(now, some) - mean_cost(after[result], some)
        value += len(some) / len(rows) * saved
    return {{"now": now, "after": after, "value": value, "pilot": value > price}}
"""
PRICED = [
    ("lab14.ex5", "what is cheaper more often",
     MORE_OFTEN.format(choice="options[2 * sum(row[0] < row[1] for row in some) < len(some)]"),
     "whose mean cost over"),
    ("lab14.ex5", "chosen by the medians, valued by the means", MORE_OFTEN.format(
        choice="min(options, key=lambda each: sorted(row[options.index(each)] for row in some)"
        "[len(some) // 2])"), "whose mean cost over"),
    *(("lab14.ex5", name, changed(WORTH_OF_PILOT, (old, new)), text)
      for name, old, new, text in PILOTS),
    ("lab14.ex5", "one number", "def worth_of_pilot(draws, price):\n    return 0.0",
     "`worth_of_pilot` returned a float"),
    ("lab14.ex5", "one choice for all results",
     changed(WORTH_OF_PILOT, ('"after": after', '"after": now')), "no choice for the result"),
]  # fmt: skip

PLANS = [
    ("no capacity", ',\n                     ("servers promised in writing", ">=", 8)]', "]",
     "a port to machines that nobody has promised"),
    ("capacity for one server", '"servers promised in writing", ">=", 8',
     '"servers promised in writing", ">=", 1', "the work needs at least 8 servers"),
    ("a feeling", '("graphs after warm-up", "<=", 0), ', '("confidence", ">=", 0.9), ',
     "how sure one feels ends no step"),
    ("a peak", '("throughput over break-even", ">=", 1)', '("peak over peak", ">=", 1)',
     "a peak is what no workload reaches"),
    ("a laptop", '("operators on the CPU", "<=", 0)', '("seconds on the CPU", "<=", 60)',
     "a laptop's time says nothing about Trainium"),
    ("lines", '("operators on the CPU", "<=", 0)', '("lines changed", "<=", 500)',
     "nothing about whether the step is done"),
    ("one graph is no harm", '"graphs after warm-up", "<=", 0', '"graphs after warm-up", "<=", 1',
     "compiled anew in production"),
    ("the wrong way round", '("throughput over break-even", ">=", 1)',
     '("throughput over break-even", "<=", 1)', "then a worse result would end it"),
    ("half is enough", '"throughput over break-even", ">=", 1',
     '"throughput over break-even", ">=", 0.5', "below 1 the port costs more than it saves"),
    ("no captains", ', ("accepted answers", ">=", 0.9)]', "]", "captains judge by hand here"),
    ("a word as the limit", '"spread of three runs", "<=", 0.05',
     '"spread of three runs", "<=", "small"', "only a number can be met or missed"),
    ("a quantity of ones own", '("operators on the CPU", "<=", 0)', '("beauty", ">=", 1)',
     "'beauty' is no quantity of the table"),
    ("no stop", '"stop": [("votes", "<=", 1)]', '"stop": []', "becomes a project"),
    ("a stop that the exit meets", '"stop": [("throughput over break-even", "<=", 0.8)]',
     '"stop": [("throughput over break-even", "<=", 1.2)]', "both ends and stops it"),
    ("a stop beside the point", '"stop": [("throughput over break-even", "<=", 0.8)]',
     '"stop": [("graphs after warm-up", ">=", 5)]', "no stop looks at what ends it"),
    ("it may take for ever", '"server_weeks": 2, "at_most_weeks": 3',
     '"server_weeks": 2, "at_most_weeks": 9', "at most twice as many"),
    ("nobody has time to port", '"step": "port", "weeks": 2', '"step": "port", "weeks": 1',
     "it is estimated at"),
    ("a third engineer", '"weeks": 2, "engineers": 2', '"weeks": 2, "engineers": 3',
     "there are 2"),
    ("all eight servers", '"weeks": 1.5, "engineers": 1, "server_weeks": 2',
     '"weeks": 1.5, "engineers": 1, "server_weeks": 12', "such a pilot is not worth its price"),
    ("a device without a device", '"weeks": 1.5, "engineers": 1, "server_weeks": 2',
     '"weeks": 1.5, "engineers": 1, "server_weeks": 0',
     "throughput is measured on the machine that is to be bought"),
    ("nobody works", '"step": "sign", "weeks": 1, "engineers": 1',
     '"step": "sign", "weeks": 1, "engineers": 0', "nobody works on it"),
    ("no time", '"step": "audit", "weeks": 0.5', '"step": "audit", "weeks": 0',
     "every step takes some time"),
    ("a step is missing", '"step": "audit"', '"step": "baseline"', "the step 'audit' is missing"),
    ("a step of ones own", '"step": "audit"', '"step": "kick-off"', "kick-off is no step"),
    ("figures of the vendor", '"from": "own run"', '"from": "vendor claim"',
     "a peak or a claim of others is not this work"),
    ("one run", '"runs": 3', '"runs": 1', "1 runs: one shows no spread"),
    ("cold and warm together", '"cold_apart": True', '"cold_apart": False',
     "compilation belongs to it alone"),
    ("another precision", '"gpu": dict(side)', '"gpu": {**side, "precision": "FP8"}',
     "compare the same"),
    ("less work", '"gpu": dict(side)', '"gpu": {**side, "items": 5_000}', "compare the same"),
    ("one side", ', "gpu": dict(side)', "", "\"benchmark\" has no 'gpu'"),
    ("faster and worse", '"accepted": 0.9,', '"accepted": 0.5,',
     "speed counts at a quality that is accepted"),
    ("a stop that never happens", '("spread of three runs", ">=", 0.2)',
     '("spread of three runs", ">=", 1e9)', "does not occur, so nothing hangs on it"),
    ("votes as every stop", '("accepted answers", "<=", 0.8)', '("votes", "<=", -1)',
     "parity: no stop looks at what ends it"),
    ("a stop if all goes well", '"stop": [("graphs after warm-up", ">=", 20)]',
     '"stop": [("votes", ">=", 2)]', "then a better result would stop it"),
    ("an exit that never comes", '("operators on the CPU", "<=", 0)',
     '("operators on the CPU", "<=", -5)', "does not occur, so nothing hangs on it"),
    ("an exit twice, once out of reach", '("throughput over break-even", ">=", 1)]',
     '("throughput over break-even", ">=", 1), ("throughput over break-even", ">=", 99)]',
     "sensible is 1 to 3"),
    ("an exit that two ends close", '("operators on the CPU", "<=", 0)',
     '("operators on the CPU", "<=", 0), ("operators on the CPU", ">=", 1)',
     "then a worse result would end it"),
    ("a step of a second", '"weeks": 1.5, "engineers": 1,', '"weeks": 1e-6, "engineers": 1,',
     "every step takes some time"),
    ("a server for a second", '"weeks": 1.5, "engineers": 1, "server_weeks": 2',
     '"weeks": 1.5, "engineers": 1, "server_weeks": 1e-9',
     "throughput is measured on the machine that is to be bought"),
    ("hardly anybody", '"step": "sign", "weeks": 1, "engineers": 1',
     '"step": "sign", "weeks": 1, "engineers": 1e-9', "nobody works on it"),
    ("true for a number of items", '"items": 20_000', '"items": True', "how many are worked on"),
    ("true for a share", '"accepted": 0.9,', '"accepted": True,', "it is a share, such as 0.9"),
    ("a share in per cent", '"accepted": 0.9,', '"accepted": 92,', "it is a share, such as 0.9"),
    ("a word for a format", '"BF16"', '"good"', "name the format"),
    ("where it is cheaper", '"region": "us-east-2"', '"region": "us-west-2"',
     "the data must stay in us-east-2"),
    ("a word for a purchase", '"capacity block"', '"fair"', "say how, such as"),
    ("lists for a purchase", '"capacity block"', '["block"]', "say how, such as"),
    ("some day", '"2025-06"', '"recently"', "which prices and versions"),
    ("two days", '"gpu": dict(side)', '"gpu": {**side, "date": date(2024, 1, 1)}',
     "compare the same"),
    ("a term is missing", '"region": "us-east-2",\n', "\n", "'region' is missing"),
]  # fmt: skip
LATE = changed(
    PLAN,
    ('"weeks": 2, "engineers": 2, "server_weeks": 1, "at_most_weeks": 4',
     '"weeks": 6, "engineers": 1, "server_weeks": 1, "at_most_weeks": 12'),
)  # fmt: skip
PLANNED = [
    *(("lab14.ex6", name, changed(PLAN, (old, new)), text)
      for name, old, new, text in PLANS),
    ("lab14.ex6", "speed before parity",
     changed(PLAN, ("    side = {", "    steps[3:5] = steps[4], steps[3]\n    side = {")),
     "the speed of wrong results is worth nothing"),
    ("lab14.ex6", "capacity last",
     changed(PLAN, (',\n                     ("servers promised in writing", ">=", 8)]', "]"),
             ('("open contract items", "<=", 0), ',
              '("open contract items", "<=", 0), ("servers promised in writing", ">=", 8), ')),
     "so ask first"),
    ("lab14.ex6", "port before audit",
     changed(PLAN, ("    side = {", "    steps[1:3] = steps[2], steps[1]\n    side = {")),
     "what the audit finds decides what has to be ported"),
    ("lab14.ex6", "no time is left for production", LATE, "production needs"),
    ("lab14.ex6", "only the steps",
     changed(PLAN, ('{"steps": steps, "benchmark"', '{"plan": steps, "benchmark"')),
     '"steps" is None: make it a list of six steps'),
    ("lab14.ex6", "prose", "def plan():\n    return 'first we port, then we measure'",
     "`plan` returned a str"),
    ("lab14.ex6", "exit as a sentence",
     changed(PLAN, ('"exit": [("kernels without replacement", "<=", 0)]',
                    '"exit": "all kernels have a replacement"')),
     "make it a list of triples"),
]  # fmt: skip

LISTS = [
    ("done unless something fails", "        if len(said) != 1:\n            return \"open\"\n",
     "        if not said:\n            return \"done\"\n", "and nothing is recorded of it"),
    ("no evidence is a failure", "        if len(said) != 1:\n            return \"open\"\n",
     "        if len(said) != 1:\n            return \"failed\"\n", "nothing is recorded of it"),
    ("claims count", '            and entry["from"] == "measured"\n', "", "not measured"),
    ("only vendors are refused", '== "measured"', '!= "vendor claim"', "not measured"),
    ("a laptop will do", '            and (item["on"] == "any" or entry["on"] == "device")\n', "",
     "it was measured on a laptop"),
    ("device for everything", '(item["on"] == "any" or entry["on"] == "device")',
     'entry["on"] == item["on"]', "good evidence"),
    ("any machine but a laptop", 'entry["on"] == "device")', 'entry["on"] != "laptop")',
     "it was measured on a GPU server"),
    ("any version", '            and entry["code"] == code\n', "", "another version of the code"),
    ("never stale", '0 <= age <= item["days"]', "0 <= age", "days old"),
    ("one age for all", 'age <= item["days"]', "age <= 30", "it is done"),
    ("the last day is too old", '<= item["days"]', '< item["days"]', "it still counts"),
    ("the future is fresh", '0 <= age <= item["days"]', 'age <= item["days"]',
     "its date lies in the future"),
    ("any age either way", '0 <= age <= item["days"]', 'abs(age) <= item["days"]',
     "its date lies in the future"),
    ("the middle of an interval", "ends = value if isinstance(value, list) else [value]",
     "ends = [sum(value) / 2] if isinstance(value, list) else [value]",
     "its interval lies on both sides of the limit"),
    ("the best end", "ends = value if isinstance(value, list) else [value]",
     'ends = [value] if not isinstance(value, list) else [(min if item["compare"] == "<=" else max)'
     "(value)]", "its interval lies on both sides of the limit"),
    ("strictly better", "end <= item", "end < item", "done"),
    ("every limit is an upper one", 'item["compare"] == "<="', "True", "done"),
    ("one good entry is enough", '        if len(said) != 1:\n            return "open"\n',
     '        if True in said:\n            return "done"\n        if not said:\n'
     '            return "open"\n', "its interval lies on both sides"),
    ("one bad entry is enough", '        if len(said) != 1:\n            return "open"\n',
     '        if False in said:\n            return "failed"\n        if not said:\n'
     '            return "open"\n', "said to be failed"),
    ("nothing comes before", 'if any(state(each) != "done" for each in item["after"]):',
     "if False:", "comes before it and is not done"),
    ("failed only stops", 'state(each) != "done"', 'state(each) == "failed"',
     "comes before it and is not done"),
    ("a word of ones own", 'return "done" if said.pop() else "failed"',
     'return "ok" if said.pop() else "failed"', "ok is no state"),
]  # fmt: skip
LISTED = [
    *(("lab14.ex7", name, changed(CHECKLIST, (old, new)), text) for name, old, new, text in LISTS),
    ("lab14.ex7", "the last entry only",
     changed(CHECKLIST, ("set().union(*(meets(item, value) for value in good))",
                         "set() if not good else meets(item, good[-1])")),
     "contradict each other"),
    ("lab14.ex7", "all entries, good or bad", changed(
        CHECKLIST, ("good = [each", "good = [] and [each"),
        ("        said = set()", "        good = [e[\"value\"] for e in record if e[\"reads\"]"
         " == item[\"reads\"] and e[\"value\"] is not None]\n        said = set()")),
     "by an entry that is no evidence"),
    ("lab14.ex7", "only what comes directly before", """
def checklist(items, record, today, code):
    def alone(item):
        values = []
        for entry in record:
            age = (date.fromisoformat(today) - date.fromisoformat(entry["date"])).days
            fits = item["on"] == "any" or entry["on"] == "device"
            value = entry["value"]
            if entry["reads"] == item["reads"] and entry["from"] == "measured" and fits:
                if entry["code"] == code and 0 <= age <= item["days"] and value is not None:
                    values += value if isinstance(value, list) else [value]
        low = item["compare"] == "<="
        said = {value <= item["limit"] if low else value >= item["limit"] for value in values}
        return "open" if len(said) != 1 else "done" if said.pop() else "failed"

    own = {item["item"]: alone(item) for item in items}
    return {
        item["item"]: own[item["item"]]
        if all(own[each] == "done" for each in item["after"])
        else "open"
        for item in items
    }
""", "comes before it and is not done"),
    ("lab14.ex7", "all open", "def checklist(items, record, today, code):\n"
     "    return {each['item']: 'open' for each in items}", "good evidence"),
    ("lab14.ex7", "all done", "def checklist(items, record, today, code):\n"
     "    return {each['item']: 'done' for each in items}", "nothing is recorded of it"),
    ("lab14.ex7", "a list", "def checklist(items, record, today, code):\n    return ['open'] * 7",
     "`checklist` returned a list of 7"),
]  # fmt: skip

WRONG = [*DECIDED, *FLIPPED, *NEAREST, *CODED, *PRICED, *PLANNED, *LISTED]
