"""Exercise 2, checkpoints that survive: cases, and what has to be found after each harm."""

import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, tally

SAYS = says("lab08")

KILLS = ("bytes", "bytes", "bytes", "rename", "remove", "again")


def storage_cases(rng: random.Random) -> list[Facts]:
    """One folder, whose files are cut, changed, killed, left without room and without power."""
    one = rng.choice([8, 9, 90, 98])
    steps = [one, 10 ** len(str(one)), 10 ** len(str(one)) * rng.randint(2, 9)]
    cuts = [0.0, 1.0, *sorted(rng.random() for _ in range(10))]
    flips = [(place + rng.random()) / 40 for place in range(40)]
    harms: list[Facts] = [{"kind": "cut", "share": round(cut, 4)} for cut in cuts]
    harms += [{"kind": "flip", "share": round(e, 4), "bit": rng.randrange(8)} for e in flips]
    for kind in ("swap", "zeros"):
        harms += [{"kind": kind, "share": round(rng.uniform(0.1, 0.9), 4)} for _ in range(3)]
    harms.append({"kind": "longer"})
    shares = iter([0.0, round(rng.uniform(0.2, 0.6), 2), round(rng.uniform(0.6, 0.99), 2), 0.5])
    kills: list[Facts] = [{"at": at, "last": steps[0], "new": steps[1]} for at in KILLS]
    for kill in kills:
        if kill["at"] in ("bytes", "again"):
            kill["share"] = next(shares)
        if kill["at"] == "again":
            kill["new"] = kill["last"]  # the same step is saved twice after a resume
    return [
        {
            "seed": rng.randrange(10**6),
            "bytes": rng.randint(2000, 4000),
            "steps": steps,
            "harms": harms,
            "kills": kills,
            "full": round(rng.uniform(0.1, 0.9), 2),
        }
    ]


def storage_words(case: Facts) -> str:
    """What a card says of a case."""
    return (
        f"steps {', '.join(map(str, case['steps']))}, {case['bytes']} bytes and more each,"
        f" {len(case['harms'])} ways to damage the newest, {len(case['kills'])} kills"
    )


def judge_storage(case: Facts, facts: Facts) -> list[Criterion]:
    """Six criteria: newest, damaged, killed, full disk, power cut, and room."""
    plain = _judge_plain(case, facts["plain"])
    judged = [
        plain,
        _judge_damage(case, facts["damage"]),
        _judge_killed(case, facts["killed"]),
        _judge_full(case, facts["full"]),
        _judge_power(case, facts["power"]),
        _judge_kept(facts["kept"]),
    ]
    if facts["plain"][1]["response"].get("right"):
        return judged
    # An answer that finds nothing loses nothing either.
    return [plain, *(not_judged(item) for item in judged[1:])]


def words_of(response: Facts) -> str:
    """What `latest` said, for a message."""
    if "raised" in response:
        return f"`latest` raised {response['raised']}"
    if "other" in response:
        return f"`latest` returned {response['other']}, not (step, data)"
    if response["step"] is None:
        return "`latest` returned None"
    wrong = "" if response["right"] else ", with data that were never written after it"
    return SAYS["a-checksum-that-nobody-compares"].format(step=response["step"], wrong=wrong)


_PLAIN = {
    "empty": "in an empty folder",
    "one": "after the first write",
    "two": "after the second write",
    "times": "with times of the files that do not tell their order (a copied folder)",
    "foreign": "with files and a folder of somebody else in it",
    "three": "after the third write",
}
_FILES = {"spared": SAYS["tidies-up"], "outside": SAYS["a-temporary-file-elsewhere"]}
_NEWEST = {
    "two": SAYS["sorted-as-text"],
    "three": SAYS["sorted-as-text"],
    "times": SAYS["the-latest-time"],
    "foreign": "look only at files whose names `write` makes",
}


def _judge_plain(case: Facts, rows: list[Facts]) -> Criterion:
    """Whether the newest of whole checkpoints is found."""
    one, two, three = case["steps"]
    right = {"empty": None, "one": one, "two": two, "times": two, "foreign": two, "three": three}
    good, message = 0, ""
    for row in rows:
        what, response = row["what"], row["response"]
        if what in _FILES:
            passed, text = not response["files"], _FILES[what]
        else:
            passed = response.get("step", 0) == right[what] and response.get("right", True)
            wanted = (
                SAYS["does-nothing"].format(value=right[what]) if right[what] else "return None"
            )
            text = f"{_PLAIN[what]} {words_of(response)}: {_NEWEST.get(what, wanted)}"
        good += passed
        message = message or ("" if passed else text)
    return tally("newest", 2, good, len(rows), message)


def _harm(what: Facts) -> str:
    kind, share = what["kind"], what.get("share", 0)
    texts = {
        "cut": f"cut to {share:.0%} of its bytes" if share < 1 else "cut by its last byte",
        "flip": f"with one bit flipped at {share:.0%} of its bytes",
        "zeros": f"with 64 zeros at {share:.0%} of its bytes",
        "swap": f"with two bytes exchanged at {share:.0%} of its bytes",
        "longer": "with 40 bytes too many",
    }
    return texts[kind]


_DAMAGE = {
    "cut": SAYS["a-checksum-of-the-beginning"],
    "flip": SAYS["the-length-for-a-checksum"],
    "zeros": "store a checksum of all of it, and compare it before anything else is read",
    "swap": SAYS["a-sum-of-the-bytes"],
    "longer": "what follows the data is not a part of them",
}


def _judge_damage(case: Facts, rows: list[Facts]) -> Criterion:
    """Whether a whole checkpoint is found although the newest is damaged."""
    good, message, stored = 0, "", case["steps"][:2]
    for row in rows:
        what, response = row["what"], row["response"]
        if what["kind"] == "all":
            passed = bool(response.get("value"))
            text = SAYS["begins-anew"].format(shown=words_of(response))
        else:
            passed = response.get("step") in stored and response.get("right", False)
            text = f"the newest {_harm(what)}: {words_of(response)}. "
            if "raised" in response or response.get("step", 0) is None:
                text += SAYS["gives-up"].format(value=stored[0])
            else:
                text += _DAMAGE[what["kind"]][0].upper() + _DAMAGE[what["kind"]][1:]
        good += passed
        message = message or ("" if passed else text)
    total = max(len(rows), len(case["harms"]) + 1)
    message = message or "the second write changed no file in the folder"
    return tally("damaged", 3, good, total, message)


def _moment(kill: Facts) -> str:
    share = f"{kill.get('share', 0):.0%}"
    return {
        "bytes": f"killed at {share} of the bytes",
        "again": SAYS["in-place-2"].format(share=share),
        "rename": "killed before the rename",
        "remove": "killed before the first file is removed",
    }[kill["at"]]


def _judge_killed(case: Facts, rows: list[Facts]) -> Criterion:
    """Whether a kill within `write` leaves the one before, and the next write works."""
    good, message = 0, ""
    for kill, row in zip(case["kills"], rows, strict=True):
        response, again = row["response"], row["again"]
        kept = response.get("step") in (kill["last"], kill["new"]) and response.get("right", False)
        after = again.get("step") == kill["new"] + 1 and again.get("right", False)
        if not kept:
            text = SAYS["room-first"].format(
                new=kill["new"], moment=_moment(kill), shown=words_of(response), last=kill["last"]
            )
        elif "raised" in again:
            text = SAYS["stumbles-over-what-is-left"].format(
                moment=_moment(kill), raised=again["raised"]
            )
            text += " the killed one left"
        else:
            text = f"{_moment(kill)}, then one more write: {words_of(again)}"
        good += kept and after
        message = message or ("" if kept and after else text)
    return tally("killed", 3, good, len(rows), message)


_SURVIVED = {True: "survived", False: "not survived"}


def _judge_full(case: Facts, seen: Facts) -> Criterion:
    one, _, three = case["steps"]
    response, again = seen["response"], seen["again"]
    if not seen["raised"]:
        message = SAYS["swallows-the-error"]
    elif response.get("step") != one or not response.get("right"):
        message = f"{words_of(response)}, and step {one} had been written: remove older ones last"
    else:
        message = f"with room again, after one more write: {words_of(again)}"
    passed = bool(
        seen["raised"]
        and response.get("step") == one
        and response.get("right")
        and again.get("step") == three
        and again.get("right")
    )
    return criterion("full disk", 1, passed, _SURVIVED[passed], _SURVIVED[True], message)


def _judge_power(case: Facts, seen: Facts) -> Criterion:
    response, two = seen["response"], case["steps"][1]
    passed = response.get("step") == two and response.get("right", False)
    message = SAYS["never-forced-to-the-disk"].format(two=two, shown=words_of(response))
    return criterion("power cut", 1, passed, _SURVIVED[passed], _SURVIVED[True], message)


def _judge_kept(kept: list[int]) -> Criterion:
    """Whether older checkpoints are removed."""
    name, weight = "room", 1
    if not kept:
        return not_judged(criterion(name, weight, False, "", "", ""))
    result, wanted = kept
    message = SAYS["keeps-all"]
    passed = result <= 1.25 * wanted + 1024
    measured = f"{result / wanted:.2g} times the bytes"
    return criterion(name, weight, passed, measured, "about 1", message)
