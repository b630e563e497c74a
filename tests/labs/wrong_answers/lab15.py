"""Wrong answers to lab 15 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
For the capstone some are right glue with a part of an earlier lab that is wrong.
"""

from tests.labs.cells import changed, code_of
from tests.labs.wrong_answers import entries
from utils.course import earlier
from utils.course.earlier import Earlier, Problem
from utils.labs.lab15.observe import OBSERVERS

RIGHT = {name: code_of("lab15")[f"{name}-code"] for name in OBSERVERS}
_changed, _written = entries.of("lab15", RIGHT)


def with_part(mine: Earlier, exercise_id: str, *changes: tuple[str, str]) -> Earlier:
    """Earlier answers in which the one to an exercise has been changed."""
    wanted = next(each for each in earlier.WANTED["lab15"] if each.id == exercise_id)
    cells = code_of(wanted.lab)
    cells[wanted.cell] = changed(cells[wanted.cell], *changes)
    found = earlier.functions_of(wanted, list(cells.items()))
    if isinstance(found, Problem):
        return Earlier(dict(mine.functions), [*mine.problems, found])
    return Earlier({**mine.functions, **found}, list(mine.problems))


def _part(name: str, said: str, exercise_id: str, *changes: tuple[str, str]) -> tuple:
    """Right glue, and an earlier answer that is wrong."""
    source = (
        f"{RIGHT['ex4']}\n\nfrom tests.labs.wrong_answers import lab15 as wrong\n"
        f"mine = wrong.with_part(mine, {exercise_id!r}, *{list(changes)!r})\n"
    )
    return "lab15.ex4", name, source, said


MOVE = "    model.to(device.torch)\n"
MADE = "    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)\n"
BLOCK = "        with device.autocast(mixed):\n            loss = F.cross_entropy(model(x), y)\n"
MARK = "        device.mark_step()\n"
WAIT = "    device.wait()\n"
CLIP = "        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)\n"

KEYS = {
    "device": ("replace", "torchneuron-device"),
    "step marker": ("drop", "torchneuron-eager"),
    "mixed precision": ("replace", "torchneuron-autocast"),
    "process group": ("replace", "torchneuron-distributed"),
    "buckets": ("unchanged", "torchneuron-compile"),
    "cache": ("replace", "neuron-cache-torchneuron"),
    "fallbacks": ("elsewhere", "torchneuron-fallback"),
    "accelerator": ("unchanged", "torchneuron-accelerator"),
}


def _pair(name: str, verdict: str, key: str) -> tuple[str, str]:
    """The right line for a snippet, and another one."""
    return (
        f'"{name}": ("{KEYS[name][0]}", "{KEYS[name][1]}")',
        f'"{name}": ("{verdict}", "{key}")',
    )


ADD = "    mine.add_lora(model, task.names, task.rank, task.alpha)\n"
TO = '    model.to("xla")\n'
RESUME = "    mine.resume(path, run)\n"
COUNT = "        run.step += 1\n"
SAVE = "        if run.step % task.save_every == 0:\n            mine.save(path, run)\n"
MERGE = "    mine.merge(run.model)\n"
FOUND = "return {name for name, wrong in found.items() if wrong}"

WRONG = [
    # ex1
    _changed("ex1", "the optimizer before the move", "makes new parameters", (MADE, ""),
             (MOVE, MADE + MOVE)),
    _changed("ex1", "no step marker", "device.mark_step() is never called", (MARK, "")),
    _changed("ex1", "marked before the update", "after optimizer.step(), once",
             (MARK, ""), ("        optimizer.step()\n", MARK + "        optimizer.step()\n")),
    _changed("ex1", "marked once after the loop", "device.mark_step() ran 1 time for",
             (MARK, ""), (WAIT, "    device.mark_step()\n" + WAIT)),
    _changed("ex1", "waits in each step", "stops the device each time",
             (WAIT, ""), (MARK, MARK + "        device.wait()\n")),
    _changed("ex1", "never waits", "torch.cuda.synchronize()", (WAIT, "")),
    _changed("ex1", "reads in each step", "keep loss.detach()",
             ("losses.append(loss.detach())", "losses.append(loss.item())"),
             ("return torch.stack(losses).tolist()", "return losses")),
    _changed("ex1", "no clipping", "losses without clipping", (CLIP, "")),
    _changed("ex1", "no autocast", "nothing ran in device.autocast()",
             ("with device.autocast(mixed):", "if True:")),
    _changed("ex1", "backward in autocast", "backward comes after it",
             ("        loss.backward()\n", ""), (BLOCK, BLOCK + "            loss.backward()\n")),
    _changed("ex1", "autocast in the first step", "of every step",
             ("device.autocast(mixed)", "device.autocast(mixed and not losses)")),
    _changed("ex1", "the update in autocast", "the update is in none",
             ("        optimizer.step()\n",
              "        with device.autocast(mixed):\n            optimizer.step()\n")),
    _changed("ex1", "asks for the kind", "names xla",
             (MARK, '        if device.kind == "xla":\n            torch_xla.sync()\n')),
    _changed("ex1", "autocast by name", "names cuda", ("with device.autocast(mixed):",
             'with device.autocast(mixed), torch.autocast("cuda", enabled=False):')),
    _changed("ex1", "stays on the cpu", "move the model and each batch to device.torch",
             (MOVE, ""), ("x, y = x.to(device.torch), y.to(device.torch)", "pass")),
    _written("ex1", "returns nothing", "returned None", "pass"),
    # ex2
    _changed("ex2", "the marker becomes a wait", "you said replace; when does eager mode",
             _pair("step marker", "replace", "torchneuron-eager")),
    _changed("ex2", "any shape is free", "does a new shape still cost a compile?",
             _pair("buckets", "drop", "torchneuron-eager")),
    _changed("ex2", "no cache", "are compiled graphs still kept",
             _pair("cache", "drop", "torchneuron-eager")),
    _changed("ex2", "the cache of XLA", "does not say why",
             _pair("cache", "replace", "neuron-cache-location")),
    _changed("ex2", "no fallbacks", "may operators still run on the host",
             _pair("fallbacks", "drop", "torchneuron-fallback")),
    _changed("ex2", "a vendor in torch.accelerator", "which vendor does the line name?",
             _pair("accelerator", "replace", "torchneuron-device")),
    _changed("ex2", "autocast stays", "names a backend",
             _pair("mixed precision", "unchanged", "torchneuron-autocast")),
    _changed("ex2", "a verdict of its own", "is no verdict: choose unchanged, drop",
             _pair("device", "changed", "torchneuron-device")),
    _changed("ex2", "a statement of its own", "none of the statements shown",
             _pair("device", "replace", "the documentation")),
    _changed("ex2", "the order of the cell", "you said",
             ("[known[name] for name in names]", "list(known.values())")),
    _written("ex2", "a dict", "return a list of 8 pairs", "return {}"),
    # ex3
    _changed("ex3", "minutes as hours", "at most 60",
             ("int(clock[1]) > 60 * plan", "int(clock[1]) > plan")),
    _changed("ex3", "any clock", "UserData is to start with",
             ("clock is None or int(clock[1]) > 60 * plan[\"hours\"]", "clock is None")),
    _changed("ex3", "one tag is enough", "the instance and the volume need the tag",
             ('not {"instance", "volume"} <= tagged', "not tagged")),
    _changed("ex3", "any star", "look for a * as the whole Action",
             ("return whole or (everywhere and \"ec2:RunInstances\" in actions)",
              "return everywhere")),
    _changed("ex3", "stars in actions only", "RunInstances on *",
             ('whole or (everywhere and "ec2:RunInstances" in actions)', "whole")),
    _changed("ex3", "no disk in the cost", "+ disk_usd again",
             (' + cost["disk_usd"]', "")),
    _changed("ex3", "instances for vCPUs", "EC2 counts vCPUs",
             ('vcpus = cost["instances"] * facts["vcpu"][plan["instance"]]', "vcpus = 8")),
    _changed("ex3", "the whole name", "part of the instance's name before the dot",
             ('plan["instance"].split(".")[0]', 'plan["instance"]')),
    _changed("ex3", "stopped is fine", "InstanceInitiatedShutdownBehavior make of",
             ('!= "terminate"', 'not in ("terminate", "stop")')),
    _changed("ex3", "names all", "names the same for every plan", (FOUND, "return set(found)")),
    _written("ex3", "the two of the example", "names the same for every plan",
             'return {"disk", "quota"}'),
    _written("ex3", "a text", "return a set of names", 'return "cost"'),
    # ex4, the glue
    _changed("ex4", "no adapters", "never calls `mine.add_lora`", (ADD, "")),
    _changed("ex4", "an optimizer of everything", "make it last",
             ("torch.optim.AdamW(adapters", "torch.optim.AdamW(model.parameters()")),
    _changed("ex4", "the optimizer before the move", "make it last",
             (TO, ""), ("    scheduler, batches", TO + "    scheduler, batches")),
    _changed("ex4", "never resumes", "never calls `mine.resume`", (RESUME, "")),
    _changed("ex4", "saved before it is counted", "when run.step is counted up",
             (COUNT, ""), (SAVE, SAVE + COUNT)),
    _changed("ex4", "never saves", "was called after steps []", (SAVE, "")),
    _changed("ex4", "another order in each life", "resume",
             (RESUME, RESUME + "    run.batches = task.batches()\n")),
    _changed("ex4", "padding learned", "Is the padding masked",
             ('targets.to("xla"))', 'targets.clamp(min=0).to("xla"))')),
    _changed("ex4", "a length for each batch", "so that all have one shape",
             ("padded(run.batches.next(), task.longest)",
              "(lambda s: padded(s, max(map(len, s)) - 1))(run.batches.next())")),
    _changed("ex4", "another rank", "other names, rank or alpha than the task's",
             ("task.rank, task.alpha)", "task.rank + 1, task.alpha)")),
    _changed("ex4", "adapters in a copy", "from one call of `mine.add_lora`",
             (ADD, ADD.replace("(model", "(task.model()"))),
    _changed("ex4", "climbs", "the adapters end elsewhere",
             ("loss.backward()", "(-loss).backward()")),
    _changed("ex4", "no schedule", "the adapters end elsewhere",
             ("run.scheduler.step()", "pass")),
    _changed("ex4", "SGD", "the adapters end elsewhere", ("optim.AdamW", "optim.SGD")),
    _changed("ex4", "gradients add up", "the adapters end elsewhere",
             ("run.optimizer.zero_grad()", "pass")),
    _changed("ex4", "never merges", "evaluate, merge, evaluate again", (MERGE, "")),
    _changed("ex4", "a step without a result", "let the step return its result",
             ("lambda: run.model(ids)", "lambda: None")),
    # ex4, the parts
    _part("lab 04 counts the padding", "`bucketed_losses` (lab 04, exercise 3) gives", "lab04.ex3",
          ("/ (targets >= 0).sum(dim=1)", "/ bucket")),
    _part("lab 06 does not settle", "`bench` (lab 06, exercise 3) is not exact", "lab06.ex3",
          ("        settle()\n        return clock() - start", "        return clock() - start")),
    _part("lab 06 drops the result", "`bench` (lab 06, exercise 3) is not exact", "lab06.ex3",
          ("        result = step()  # noqa: F841  held until it is computed\n",
           "        step()\n")),
    _part("lab 08 forgets the optimizer", "(lab 08, exercise 1) do not bring back AdamW's moments",
          "lab08.ex1", ('    run.optimizer.load_state_dict(state["optimizer"])\n', "")),
    _part("lab 08 makes an optimizer", "`resume` (lab 08, exercise 1) raised ValueError",
          "lab08.ex1", ('    run.optimizer.load_state_dict(state["optimizer"])\n',
          "    run.optimizer = torch.optim.AdamW(run.model.parameters(), lr=0.02)\n"
          '    run.optimizer.load_state_dict(state["optimizer"])\n')),
    _part("lab 08 trains everything again", "(lab 08, exercise 1) the optimizer no longer holds",
          "lab08.ex1", ('    run.step = state["step"]\n',
          '    run.step = state["step"]\n    run.model.requires_grad_(True)\n')),
    _part("lab 08 forgets the cuts", "do not bring back torch's random state on the host",
          "lab08.ex1", ('    torch.set_rng_state(state["torch"])\n', "")),
    _part("lab 11 without the factor in merge", "`merge` (lab 11, exercise 1) changes the model",
          "lab11.ex1", ("layer.scale * (layer.b @ layer.a)", "layer.b @ layer.a")),
    _part("lab 11 without the factor", "the factor alpha / rank is missing", "lab11.ex1",
          ("self.scale = base, alpha / rank", "self.scale = base, 1.0")),
    _part("lab 11 freezes nothing", "freeze everything but the two factors", "lab11.ex1",
          ("    model.requires_grad_(False)\n", "")),
]  # fmt: skip
