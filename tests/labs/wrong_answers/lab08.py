"""Wrong answers to lab 08 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are the solution with one change, so that the change shows what is tested.
"""

from tests.labs.cells import code_of
from tests.labs.wrong_answers import entries
from utils.labs.lab08.observe import OBSERVERS

RIGHT = {name: code_of("lab08")[f"{name}-code"] for name in OBSERVERS}
_changed, _ = entries.of("lab08", RIGHT)


def _written(exercise: str, name: str, said: str, body: str, partner: str = "pass") -> tuple:
    """An answer that takes whatever it is given, as `it`; partner: the body of the other function
    of the cell.
    """
    other = {"ex1": "save", "ex2": "write"}.get(exercise)
    first = f"def {other}(*it):\n    {partner}\n\n\n" if other else ""
    source = f"{first}def {OBSERVERS[exercise].answer}(*it):\n    {body}"
    return f"lab08.{exercise}", name, source, said


OPTIMIZER = '    run.optimizer.load_state_dict(state["optimizer"])\n'
SCHEDULER = '    run.scheduler.load_state_dict(state["scheduler"])\n'
DEVICE = '    xm.set_rng_state(state["device"])\n'
EXISTS = "    if not path.exists():\n        return\n"
PART = 'part = path.with_name(path.name + ".part")'
RENAME = "    os.replace(part, path)\n"
BEGIN_SAVE = "    kind, keys, *rest = np.random.get_state()\n"

CONTENT = 'content = b"%d\\n" % step + data'
STORED = "file.write(hashlib.sha256(content).digest() + content)"
ASIDE = 'part = folder / "checkpoint.part"'
IN_PLACE = '    os.replace(part, folder / f"checkpoint-{step}")\n'
FSYNC = "        os.fsync(file.fileno())\n"
OLD = (
    "    for old in stored_steps(folder)[:-keep]:\n"
    '        os.remove(folder / f"checkpoint-{old}")\n'
)
COMPARED = "hashlib.sha256(content).digest() == digest"
SPLIT = "digest, content = found[:32], found[32:]"
NONE_WHOLE = (
    "    if steps:\n"
    '        raise ValueError(f"{len(steps)} checkpoints in {folder.name}, and none is whole")\n'
)
FIRST_ONLY = "    for step in reversed(steps):\n"

HOURS = "min((k / 10_000 / rate for k in range(1, 10_000)), key=lost_share)"
RATE = """rate = fleet["interruptions_per_day"] / 24 + sum(
        group["number"] / group["hours_between_failures_of_one"] for group in fleet["groups"]
    )"""
LOST = 'lost_share(hours) * 24 * fleet["price_per_hour"]'

TARGET = 'np.empty(want["shape"], index[name]["dtype"])'
COPIES = (
    "            if filled[there].all():\n"
    "                continue  # a copy of what is here already\n"
)
NOTHING = (
    "            if any(first >= last for first, last, _, _ in spans):\n"
    "                continue  # nothing of it is wanted\n"
)
GAP = (
    "        if not filled.all():\n"
    '            raise ValueError(f"{name}: {filled.size - filled.sum()} elements are in'
    ' no file")\n'
)
WHOLE = (
    "        full = np.{made}\n"
    '        for piece in index[name]["pieces"]:\n'
    '            at = tuple(slice(a, a + n) for a, n in zip(piece["start"], piece["shape"]))\n'
    '            full[at] {put} read(piece["file"], name)\n'
)
CUT = (
    '        at = tuple(slice(a, a + n) for a, n in zip(want["start"], want["shape"]))\n'
    "        result[name] = full[at]\n"
)


def _resharded(name: str, said: str, body: str) -> tuple:
    """An answer whose body fills `result[name]` for each `name` and `want`."""
    source = (
        "def reshard(index, wanted, read):\n"
        "    result = {}\n"
        "    for name, want in wanted.items():\n"
        f"{body}"
        "    return result\n"
    )
    return "lab08.ex4", name, source, said


def _interval(name: str, said: str, hours: str) -> tuple:
    return _changed("ex3", name, said, (HOURS, hours))


WRONG = [
    # ex1
    _changed("ex1", "no optimizer", "AdamW's moments (run.optimizer): as in a new process",
             (OPTIMIZER, "")),
    _changed("ex1", "no scheduler", "the learning rate's schedule (run.scheduler)",
             (SCHEDULER, "")),
    _changed("ex1", "no steps", "run.step is 0 after `resume`, and",
             ('    run.step = state["step"]\n', "")),
    _changed("ex1", "another order", "the order of the rows in this epoch (run.batches.order): as",
             ('    run.batches.order = state["order"]\n', "")),
    _changed("ex1", "the epoch from its start", "the position in the epoch (run.batches.position)",
             ('state["position"]', "0")),
    _changed("ex1", "orders that come again", "the generator of the next orders",
             ('    run.batches.generator.set_state(state["generator"])\n', "")),
    _changed("ex1", "no NumPy", "NumPy's random state: as in a new process",
             ('    np.random.set_state(state["numpy"])\n', "")),
    _changed("ex1", "the host only", "the random state of the XLA device: as in a new process",
             (DEVICE, "")),
    _changed("ex1", "a sync after the state", "is that of 1 sync later: every torch_xla.sync()",
             (DEVICE, DEVICE + "    torch_xla.sync()\n")),
    _changed("ex1", "a sync in save",
             "`save` changes the random state of the XLA device: the training is then another one."
             " A torch_xla.sync() does that",
             (BEGIN_SAVE, "    torch_xla.sync()\n" + BEGIN_SAVE)),
    _changed("ex1", "moved to the host", "`save` leaves the model on the host",
             (BEGIN_SAVE, "    run.model.cpu()\n" + BEGIN_SAVE)),
    _changed("ex1", "an array", "weights_only=True refuses, such as a NumPy array",
             ("keys.tolist()", "keys")),
    _changed("ex1", "seeded anew", "`save` changes torch's random state on the host",
             (BEGIN_SAVE, "    torch.manual_seed(run.step)\n" + BEGIN_SAVE)),
    _changed("ex1", "in place", "after a kill within the bytes of a save `resume` finds no whole",
             (PART, "part = path"), (RENAME, "")),
    _changed("ex1", "the old one removed first",
             "after a kill between writing and renaming the training goes on from step 0",
             (RENAME, "    path.unlink(missing_ok=True)\n" + RENAME)),
    _changed("ex1", "a file of its own", "left the run as it starts, at step 0",
             (PART, 'path = Path("mine.ckpt")\n    ' + PART),
             (EXISTS, '    path = Path("mine.ckpt")\n' + EXISTS)),
    _changed("ex1", "needs a file", "FileNotFoundError", (EXISTS, "")),
    _changed("ex1", "a tensor of steps", "run.step is a tensor on cpu after `resume`",
             ('run.step = state["step"]', 'run.step = torch.tensor(state["step"])')),
    _changed("ex1", "done again", "`resume` trained",
             ('    run.step = state["step"]\n',
              '    while run.step < state["step"]:\n        run.train_step()\n')),
    _written("ex1", "does nothing", "left the run as it starts, at step 0", "pass"),
    _written("ex1", "the course's own", "belongs to the course: write this one yourself",
             "from utils.training.checkpoint import latest\n    return latest(it[0].parent)",
             "from utils.training.checkpoint import save\n    save(it[0].parent, 1, {})"),
    _written("ex1", "for ever", "the check stopped the answer", "while True:\n        pass"),
    # ex2
    _changed("ex2", "in place", "of the bytes when written once more",
             (ASIDE, 'part = folder / f"checkpoint-{step}"'), (IN_PLACE, "")),
    _changed("ex2", "never forced to the disk", "what is not forced to the disk is lost",
             (FSYNC, "")),
    _changed("ex2", "forced before it is flushed", "what is not forced to the disk is lost",
             ("        file.flush()\n", "")),
    _changed("ex2", "the length for a checksum", "The length is right and loading would not notice",
             (STORED, 'file.write(b"%032d" % len(content) + content)'),
             (COMPARED, "len(content) == int(digest or -1)")),
    _changed("ex2", "a sum of the bytes", "A sum of the bytes is the same in any order",
             (STORED, 'file.write(b"%032d" % sum(content) + content)'),
             (COMPARED, 'b"%032d" % sum(content) == digest')),
    _changed("ex2", "a checksum of the beginning", "checksum of all of it",
             (STORED, "file.write(hashlib.sha256(content[:1000]).digest() + content)"),
             (COMPARED, "hashlib.sha256(content[:1000]).digest() == digest")),
    _changed("ex2", "a checksum without the step", "store a checksum of all of it, the step too",
             (CONTENT, 'content = step.to_bytes(8, "big") + data'),
             (STORED, "file.write(hashlib.sha256(data).digest() + content)"),
             (COMPARED, "hashlib.sha256(content[8:]).digest() == digest"),
             ('            number, _, data = content.partition(b"\\n")\n'
              "            return int(number), data\n",
              '            return int.from_bytes(content[:8], "big"), content[8:]\n')),
    _changed("ex2", "a checksum that nobody compares", "`latest`",
             (COMPARED, "digest")),
    _changed("ex2", "loads it to see", "checksum of all of it",
             (f"        if {COMPARED}:\n",
              '        try:\n            import pickle\n'
              '            whole = pickle.loads(content.partition(b"\\n")[2])\n'
              "        except Exception:\n            whole = None\n        if whole:\n")),
    _changed("ex2", "gives up", "is whole: when one fails, go on to the next older",
             (FIRST_ONLY, "    for step in steps[-1:]:\n")),
    _changed("ex2", "begins anew", "to begin anew would lose the run without a word",
             (NONE_WHOLE, "")),
    _changed("ex2", "sorted as text", "as text, 9 comes after 10",
             ("return sorted(int(name[1]) for name in names if name)",
              "return [int(x) for x in sorted(name[1] for name in names if name)]")),
    _changed("ex2", "the latest time", "not of the latest time",
             (FIRST_ONLY, "    for step in sorted(steps, key=lambda n: -(folder /"
                          ' f"checkpoint-{n}").stat().st_mtime):\n')),
    _changed("ex2", "room first", "had been written",
             (OLD, ""), (f"    {CONTENT}\n", OLD.replace("[:-keep]", "") + f"    {CONTENT}\n")),
    _changed("ex2", "keeps all", "keep the newest `keep` checkpoints", (OLD, "")),
    _changed("ex2", "stumbles over what is left", "the next `write` raises FileExistsError",
             ('open(part, "wb")', 'open(part, "xb")')),
    _changed("ex2", "swallows the error", "`write` came back as if all were well",
             ("def write(", "def stored("),
             ("def latest(",
              "def write(*it):\n    try:\n        stored(*it)\n    except OSError:\n"
              "        pass\n\n\ndef latest(")),
    _changed("ex2", "a temporary file elsewhere", "writes a file outside of the folder",
             (ASIDE, 'part = Path("checkpoint.part").absolute()')),
    _changed("ex2", "tidies up", "`write` removed files that it had not made",
             (OLD, OLD + '    (folder / "notes.txt").unlink(missing_ok=True)\n')),
    _written("ex2", "does nothing", "`latest` returned None: return (step, data) of step",
             "return None"),
    _written("ex2", "the course's own", "belongs to the course: write this one yourself",
             "from utils.training.checkpoint import latest\n    return latest(it[0])",
             "from utils.training.checkpoint import files\n    files.write(it[0] / 'a', it[2])"),
    _written("ex2", "for ever", "the check stopped the answer", "while True:\n        pass"),
    # ex3
    _interval("Young", "that is Young's formula", "math.sqrt(2 * write / rate)"),
    _interval("Young without the 2", "has a 2 under the root", "math.sqrt(write / rate)"),
    _interval("Young less the writing", "that is Young's formula",
              "math.sqrt(2 * write / rate) - write"),
    _interval("a rule of thumb", "look for the interval at which the fewest hours are lost", "1.0"),
    _interval("as long as a failure takes", "that is the time between failures", "1 / rate"),
    _interval("the writing on top", "the time to write the checkpoint comes on top",
              HOURS + " + write"),
    _interval("minutes", "return hours: these are minutes", "60 * " + HOURS),
    _changed("ex3", "servers only", "add the rates of all groups",
             (RATE, 'rate = fleet["groups"][0]["number"]'
                    ' / fleet["groups"][0]["hours_between_failures_of_one"]')),
    _changed("ex3", "one of each", "add the rates of all groups",
             ('group["number"] / group', "1 / group")),
    _changed("ex3", "no interruptions", "the interruptions end the run, too",
             ('fleet["interruptions_per_day"] / 24 + ', "")),
    _changed("ex3", "interruptions by the hour", "interruptions come per day",
             ('fleet["interruptions_per_day"] / 24', 'fleet["interruptions_per_day"]')),
    _changed("ex3", "one writer", "all writers write at the same time",
             ('(fleet["writers"] * fleet["bytes_per_second_per_writer"])',
              'fleet["bytes_per_second_per_writer"]')),
    _changed("ex3", "the restart in the interval", "it does not move the best one",
             (HOURS, "math.sqrt(2 * write * (1 / rate + restart))")),
    _changed("ex3", "no restart", "a failure costs the restart, too",
             ("restarts = failures * (math.exp(rate * restart) - 1)", "restarts = 0.0")),
    _changed("ex3", "a restart that never fails", "within the restart the fleet may fail again",
             ("(math.exp(rate * restart) - 1)", "rate * restart")),
    _changed("ex3", "half an interval is lost", "the half interval is the first term only",
             (LOST, "(write / hours + rate * (hours / 2 + restart)) * 24"
                    ' * fleet["price_per_hour"]')),
    _changed("ex3", "over the work", "1 minus work over expected hours",
             (LOST, '(1 / (1 - lost_share(hours)) - 1) * 24 * fleet["price_per_hour"]')),
    _changed("ex3", "hours for money", "return money: these are hours",
             (LOST, "lost_share(hours) * 24")),
    _changed("ex3", "one number", "`choose_interval` returned a float",
             (f'return {{"hours": hours, "lost_per_day": {LOST}}}', "return hours")),
    _written("ex3", "does nothing", "`choose_interval` returned None", "return None"),
    _written("ex3", "raises", "ZeroDivisionError: division by zero", "return 1 / 0"),
    _written("ex3", "the course's own", "belongs to the course: write this one yourself",
             "from utils.cost.tco import failures\n    return failures.best_interval(1.0, 1.0)"),
    _written("ex3", "for ever", "the check stopped the answer", "while True:\n        pass"),
    # ex4
    _resharded("joined in the order of the list", "`start` says where a piece lies",
               '        parts = [read(p["file"], name).ravel() for p in index[name]["pieces"]]\n'
               '        shape = index[name]["shape"]\n'
               "        full = np.concatenate(parts)[: math.prod(shape)].reshape(shape)\n" + CUT),
    _resharded("everything is read", "The index tells which pieces overlap",
               '        full = np.empty(index[name]["shape"], index[name]["dtype"])\n'
               '        filled = np.zeros(index[name]["shape"], bool)\n'
               '        for piece in index[name]["pieces"]:\n'
               "            at = tuple(slice(a, a + n) for a, n in"
               ' zip(piece["start"], piece["shape"]))\n'
               "            if not filled[at].all():\n"
               '                full[at] = read(piece["file"], name)\n'
               "                filled[at] = True\n" + CUT
               + "        if not filled[at].all():\n            raise ValueError(name)\n"),
    _resharded("copies are added", "elements are wrong",
               WHOLE.format(made='zeros(index[name]["shape"], index[name]["dtype"])', put="+=")
               + CUT),
    _changed("ex4", "every copy is read", "one copy of it is enough", (COPIES, "")),
    _changed("ex4", "float64", "the elements are float64, saved were",
             (TARGET, 'np.empty(want["shape"])')),
    _changed("ex4", "no moments", "layer0.exp_avg [",
             ("        result[name] = target\n",
              '        if "exp_avg" not in name:\n            result[name] = target\n')),
    _changed("ex4", "moments from zero", "the moments are cut as the weight is",
             ("        result[name] = target\n",
              '        result[name] = target * 0 if "exp_avg" in name else target\n')),
    _changed("ex4", "whatever was in memory", "whatever was in memory, or zeros, would be trained",
             (GAP, "")),
    _changed("ex4", "zeros for what is lost", "whatever was in memory, or zeros, would be trained",
             (TARGET, 'np.zeros(want["shape"], index[name]["dtype"])'), (GAP, "")),
    _changed("ex4", "rows only", "could not broadcast input array",
             ("here = tuple(slice(first - a, last - a) for first, last, a, _ in spans)",
              "here = tuple(slice(first - a, last - a) for first, last, a, _ in spans)[:1]")),
    _changed("ex4", "starts of the piece for those of the rank", "elements are wrong",
             ("there = tuple(slice(first - b, last - b)", "there = tuple(slice(first - b, last)"),
             ("= read(piece[\"file\"], name)[here]",
              "= np.resize(read(piece[\"file\"], name)[here], target[there].shape)")),
    _changed("ex4", "the whole for each", "wanted is",
             ("        result[name] = target\n",
              '        full = np.zeros(index[name]["shape"], index[name]["dtype"])\n'
              "        result[name] = full\n")),
    _changed("ex4", "lists", "found a list of",
             ("result[name] = target", "result[name] = target.tolist()")),
    _changed("ex4", "read again for each row", "A file was read twice for the same tensor",
             ("            filled[there] = True\n",
              '            filled[there] = True\n            read(piece["file"], name)\n')),
    _written("ex4", "does nothing", "`reshard` returned None: return a dict", "return None"),
    _written("ex4", "raises", "ZeroDivisionError: division by zero", "return 1 / 0"),
    _written("ex4", "for ever", "the check stopped the answer", "while True:\n        pass"),
]  # fmt: skip
