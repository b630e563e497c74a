"""Wrong answers to lab 11 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are the solution with one change, so that the change shows what is tested.
"""

from tests.labs.cells import code_of
from tests.labs.wrong_answers import entries
from utils.labs.lab11.observe import OBSERVERS

RIGHT = {name: code_of("lab11")[f"{name}-code"] for name in OBSERVERS}
_changed, _entry = entries.of("lab11", RIGHT)


def _written(exercise: str, name: str, said: str, body: str) -> tuple:
    """An answer that takes whatever it is given, as `it`; exercise 1 wants two more names."""
    exercise_id, name, source, said = _entry(exercise, name, said, body)
    if exercise == "ex1":
        source += "\n\n\nclass LoRALinear(nn.Module):\n    pass\n\n\ndef merge(model):\n    pass\n"
    return exercise_id, name, source, said


A = "nn.Parameter(torch.randn(rank, base.in_features, **like) / math.sqrt(rank))"
B = "nn.Parameter(torch.zeros(base.out_features, rank, **like))"
LIKE = 'like = {"dtype": base.weight.dtype, "device": base.weight.device}'
SCALE = "self.base, self.scale = base, alpha / rank"
OUT = "return self.base(x) + self.scale * (x @ self.a.T @ self.b.T)"
FREEZE = "    model.requires_grad_(False)\n"
NAMED = "isinstance(layer, nn.Linear) and last in names"
MADE = "            if layer not in made:\n                made[layer] ="
ADDED = "layer.base.weight += layer.scale * (layer.b @ layer.a)"
ONCE = (
    "            if layer not in done:\n"
    "                with torch.no_grad():\n"
    f"                    {ADDED}\n"
    "                done.add(layer)\n"
)
BACK = "            setattr(model.get_submodule(parent), last, layer.base)\n"

ROWS = "rows = max(len(sentences) for sentences in batches)"
LENGTH = "length = max(len(ids) for sentences in batches for ids in sentences) - 1"
LOSS2 = "loss = F.cross_entropy(logits.transpose(1, 2), targets.to(device))"
COPY = "        rate.copy_(torch.tensor([value]))\n"
ADAMW = "torch.optim.AdamW(trainable, lr=rate, weight_decay=0.0, capturable=True)"
END2 = "        optimizer.step()\n        torch_xla.sync()\n"
NUMBER = (
    ("lr=rate, weight_decay=0.0, capturable=True", "lr=rates[0], weight_decay=0.0"),
    (COPY, '        optimizer.param_groups[0]["lr"] = value\n'),
    ("    rate = torch.tensor([rates[0]]).to(device)\n", ""),
)
OWN_LENGTH = (
    ("torch.zeros(rows, length,", "torch.zeros(rows, max(map(len, sentences)) - 1,"),
    ("torch.full((rows, length)", "torch.full((rows, max(map(len, sentences)) - 1)"),
)

LOSS3 = 'loss = F.cross_entropy(logits, targets.to(device), reduction="sum") / count'
MEAN3 = "loss = F.cross_entropy(logits, targets.to(device))"
SYNC3 = "            total += loss.detach()\n            torch_xla.sync()\n"
ZERO3 = "        optimizer.zero_grad()\n"
UPDATE3 = "        optimizer.step()\n        torch_xla.sync()\n"
INNER3 = "        for inputs, targets in step:\n"

SEEN = "seen = model.places <= places[:, None]  # [n, context]"
WRITE = "            keys.index_copy_(2, places, k)\n            values.index_copy_(2, places, v)\n"
PICK = "token = likeliest(padded, model.places[:32], cache).index_select(1, last)"
NEXT = "token = likeliest(token, torch.tensor([place]).to(device), cache)"
SYNC4 = "                torch_xla.sync()\n                tokens.append(token)\n"
RANGE = "range(len(prompt), len(prompt) + count - 1)"
RETURN4 = "texts.append(torch.cat(tokens, dim=1)[0].tolist())"
PADDED = "padded = torch.tensor([prompt + [0] * (32 - len(prompt))]).to(device)"
CACHE = (
    '            cache = [[torch.zeros(shape).to(device) for _ in "kv"] for _ in model.layers]\n'
)

TWIN = """
    device = torch_xla.device()
    twin = tuned.draw(0)
    twin.load_state_dict({k: v.cpu() for k, v in it[0].state_dict().items()})
    trainable = [p for p in twin.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=0.1, weight_decay=0.0)
    losses = []
    for sentences, rate in zip(*it[1:], strict=True):
        optimizer.param_groups[0]["lr"] = rate
        inputs, targets = tuned.padded(sentences, 20)
        optimizer.zero_grad()
        loss = F.cross_entropy(twin(inputs).transpose(1, 2), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.no_grad():
            z = it[0](torch.zeros(3, 15, dtype=torch.long).to("xla")).sum()
        torch_xla.sync()
    with torch.no_grad():
        it[0].load_state_dict({k: v.to(device) for k, v in twin.state_dict().items()})
    return losses"""

AGAIN = """
    model, prompts, count = it
    device, texts = torch_xla.device(), []
    with torch.no_grad():
        for prompt in prompts:
            kept = torch.zeros(1, model.context, model.heads * model.size).to(device)
            ids = torch.tensor([prompt + [0] * (32 - len(prompt))]).to(device)
            places, pick, tokens = model.places[:32], torch.tensor([len(prompt) - 1]).to(device), []
            for place in range(len(prompt), len(prompt) + count):
                kept.index_copy_(1, places, model.embed(ids, places))
                x, seen = kept, model.places <= model.places[:, None]
                for layer in model.layers:
                    q, k, v = layer.project(x)
                    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
                    x = layer.finish(x, attended)
                ids = model.logits(x).argmax(-1).index_select(1, pick)
                torch_xla.sync()
                tokens.append(ids)
                places = pick = torch.tensor([place]).to(device)
            texts.append(torch.cat(tokens, dim=1)[0].tolist())
    return texts"""

FULL = "full = torch.zeros(slots[part].shape)"
FACTOR = (
    '                    if part.endswith("up"):\n'
    '                        full *= adapter["alpha"] / adapter["rank"]\n'
)
COPY5 = "slots[part].copy_(full)"
SWAP = "            if name != loaded:\n"
LOSS5 = "losses.append(F.cross_entropy(logits, ids[:, 1:]).item())"

MERGES = """
def serve(model, adapters, requests):
    losses, slots = [], [each for each in model.parameters() if each.requires_grad]
    with torch.no_grad():
        for slot in slots:
            slot.copy_(torch.zeros(slot.shape))
        for name, ids in requests:
            weights, factor = adapters[name]["weights"], adapters[name]["alpha"]
            for sign in (1, -1):
                for layer in ("mix", "head"):
                    change = weights[f"{layer}.up"] @ weights[f"{layer}.down"]
                    change *= sign * factor / adapters[name]["rank"]
                    model.get_submodule(layer).base.weight.add_(change.to("xla"))
                torch_xla.sync()
                if sign == 1:
                    logits = model(ids.to("xla"))[:, :-1].transpose(1, 2)
                    losses.append(F.cross_entropy(logits, ids[:, 1:].to("xla")).item())
    return losses
"""
LINEAR = "nn.Linear(layer.base.in_features, layer.base.out_features)"
PEFT = """
import importlib


def add_lora(model, names, rank, alpha):
    peft = importlib.import_module("peft")
    config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(names))
    peft.inject_adapter_in_model(config, model)


class LoRALinear(nn.Module):
    pass


def merge(model):
    for name, layer in list(model.named_modules(remove_duplicate=False)):
        if hasattr(layer, "base_layer"):
            parent, _, last = name.rpartition(".")
            layer.merge()
            setattr(model.get_submodule(parent), last, layer.base_layer)
"""

NOTHING = "return None"

WRONG = [
    # ex1
    _changed("ex1", "both at zero", "if both matrices begin at zero",
             (A, "nn.Parameter(torch.zeros(rank, base.in_features, **like))")),
    _changed("ex1", "both at random", "begin with one of its two matrices at zero",
             (B, "nn.Parameter(torch.randn(base.out_features, rank, **like))")),
    _changed("ex1", "no scale", "multiply it by alpha / rank",
             ("alpha / rank\n        self.a", "1.0\n        self.a")),
    _changed("ex1", "alpha as the scale", "the factor is alpha: divide by the rank",
             (SCALE, "self.base, self.scale = base, alpha")),
    _changed("ex1", "upside down", "upside down",
             (SCALE, "self.base, self.scale = base, rank / alpha")),
    _changed("ex1", "rank-stabilised", "alpha / sqrt(rank), of rank-stabilised LoRA",
             (SCALE, "self.base, self.scale = base, alpha / math.sqrt(rank)")),
    _changed("ex1", "nothing frozen", "freeze all that was there", (FREEZE, "")),
    _changed("ex1", "the biases train", "still trains: freeze all that was there",
             (FREEZE, "    for name, each in model.named_parameters():\n"
                      '        each.requires_grad_(name.endswith("bias"))\n')),
    _changed("ex1", "by a part of the name", "compare the last part of the full name",
             ("last in names", "any(each in last for each in names)")),
    _changed("ex1", "by the end of the name", "compare the last part of the full name",
             (NAMED, "isinstance(layer, nn.Linear) and last.endswith(tuple(names))")),
    _changed("ex1", "an integer factor", "not by alpha / rank",
             (SCALE, SCALE.replace("/", "//"))),
    _changed("ex1", "rows that are alike", "are alike at the start",
             (A, A.replace("randn", "ones"))),
    _changed("ex1", "merged where gradients are on", "non-leaf",
             ("                with torch.no_grad():\n", "                if True:\n")),
    _changed("ex1", "all linear layers", "was replaced too",
             (NAMED, "isinstance(layer, nn.Linear)")),
    _changed("ex1", "a shared layer twice", "were one layer, and now are two",
             (MADE, "            if True:\n                made[layer] =")),
    _changed("ex1", "one place of a shared layer", "named_modules(remove_duplicate=False) lists",
             ("    made = {}\n    for name, layer in list(model.named_modules"
              "(remove_duplicate=False)):",
              "    made = {}\n    for name, layer in list(model.named_modules()):")),
    _changed("ex1", "a bias in the adapter", "r · (in + out) parameters, and no bias",
             (B, B + "\n        self.c = nn.Parameter(torch.zeros(base.out_features, **like))"),
             (OUT, OUT + " + self.c")),
    _changed("ex1", "the bias twice", "the adapter changes the output before it has learnt",
             (OUT, OUT + " + (0 if self.base.bias is None else self.base.bias)")),
    _changed("ex1", "no bias", "the adapter changes the output before it has learnt",
             (OUT, "return x @ (self.base.weight + self.scale * self.b @ self.a).T")),
    _changed("ex1", "on the CPU", "XLA",
             (LIKE, 'like = {"device": "cpu"}')),
    _changed("ex1", "plain tensors", "0 parameters",
             (A, "torch.randn(rank, base.in_features, **like)"),
             (B, "torch.zeros(base.out_features, rank, **like)")),
    _changed("ex1", "merged without the scale", "the output is another one than before merge",
             (ADDED, "layer.base.weight += layer.b @ layer.a")),
    _changed("ex1", "merged twice", "a layer in two places is merged once",
             (ONCE, f"            with torch.no_grad():\n                {ADDED}\n")),
    _changed("ex1", "merged and left", "is no plain nn.Linear after merge", (BACK, "")),
    _changed("ex1", "merged with a bias of its own", "a bias appears where none was",
             (BACK, f"            made = {LINEAR}\n"
                    "            made.weight = layer.base.weight\n"
                    "            bias = layer.base.bias\n"
                    "            made.bias = nn.Parameter(torch.zeros_like(made.bias)"
                    " if bias is None else bias)\n"
                    "            made.to(layer.base.weight.device)\n"
                    "            layer.base = done_as.setdefault(layer, made)\n" + BACK),
             ("    done = set()\n", "    done, done_as = set(), {}\n")),
    _changed("ex1", "merge does not subtract", "the output is another one than before merge",
             (ADDED, "pass")),
    _changed("ex1", "hooks", "is no LoRALinear after add_lora: put one in its place",
             ("            setattr(model.get_submodule(parent), last, made[layer])\n",
              "            extra = made[layer]\n            layer.register_forward_hook("
              "lambda m, i, o, e=extra: o + e.scale * (i[0] @ e.a.T @ e.b.T))\n")),
    _written("ex1", "does nothing", "is no LoRALinear after add_lora", NOTHING),
    ("lab11.ex1", "peft", PEFT, "layers of peft are in the model"),
    _written("ex1", "the course's own", "belongs to the course: write this one yourself",
             "from utils.training.finetune import lora\n    lora.add(*it)"),
    ("lab11.ex1", "one of three", "def add_lora(*it):\n    pass", "`LoRALinear` is not defined"),
    # ex2
    _changed("ex2", "each its own length", "one number of sentences and one length for all",
             *OWN_LENGTH),
    _changed("ex2", "the last batch is short", "batches of 2 shapes enter the model",
             ("torch.zeros(rows, length,", "torch.zeros(len(sentences), length,"),
             ("torch.full((rows, length)", "torch.full((len(sentences), length)")),
    _changed("ex2", "a rate as a number", "a learning rate of exactly 0, as a number",
             *NUMBER),
    _changed("ex2", "a rate without a dimension", "torch.tensor([rate])",
             ("torch.tensor([rates[0]])", "torch.tensor(rates[0])"),
             ("torch.tensor([value])", "torch.tensor(value)")),
    _changed("ex2", "the given loop", "one number of sentences and one length for all",
             *OWN_LENGTH, *NUMBER),
    _changed("ex2", "rows of the first batch", "IndexError", (ROWS, "rows = len(batches[0])")),
    _changed("ex2", "padding counts", "padding counts neither in the sum",
             ("torch.full((rows, length), -100)",
              "torch.zeros(rows, length, dtype=torch.int64)")),
    _changed("ex2", "divided by all places", "nor in the number it is divided by",
             ("targets.to(device))", 'targets.to(device), reduction="sum") / (rows * length)')),
    _changed("ex2", "mean of the sentences", "the mean is over the tokens that a sentence has",
             (LOSS2, "each = F.cross_entropy(logits.transpose(1, 2), targets.to(device),"
                     ' reduction="none").sum(1)\n        real = (targets >= 0).sum(1)\n'
                     "        loss = (each / real.clamp(min=1).to(device)).sum()"
                     " / torch.tensor([float(len(sentences))]).to(device)"),
             ("losses.append(loss.detach())", "losses.append(loss.detach()[0])")),
    _changed("ex2", "the rate of the first step", "the learning rate never leaves",
             (COPY, "        rate.copy_(torch.tensor([rates[1]]))\n")),
    _changed("ex2", "the rate afterwards", "the learning rate of the step before",
             (COPY, ""), (END2, END2 + COPY)),
    _changed("ex2", "weight decay", "One AdamW for all steps, with weight_decay=0.0",
             ("weight_decay=0.0, ", "weight_decay=0.5, ")),
    _changed("ex2", "no update", "a model that never learns",
             (END2, "        torch_xla.sync()\n")),
    _changed("ex2", "no sync", "the steps pile up in one graph",
             (END2, "        optimizer.step()\n")),
    _changed("ex2", "SGD", "the first loss is right, and not what comes later",
             (ADAMW, "torch.optim.SGD(trainable, lr=0.1)"), (COPY, "")),
    _changed("ex2", "the base trains", "the base has moved: only the adapters train",
             ("trainable = [each for each in model.parameters() if each.requires_grad]",
              "trainable = list(model.requires_grad_(True).parameters())")),
    _changed("ex2", "on the CPU", "every step belongs on torch_xla.device()", *NUMBER,
             ("device = torch_xla.device()", 'device = "cpu"\n    model = model.to("cpu")')),
    _changed("ex2", "a copy is trained", "through the model that is given",
             ("device = torch_xla.device()",
              "import copy\n    device = torch_xla.device()\n    model = copy.deepcopy(model)")),
    _changed("ex2", "sentences are cut", "sentences were dropped or cut",
             (LENGTH, "length = 4"),
             ("inputs[row, : len(ids) - 1] = torch.tensor(ids[:-1])",
              "ids = ids[: length + 1]\n            inputs[row, : len(ids) - 1] ="
              " torch.tensor(ids[:-1])")),
    _changed("ex2", "padded to a hundred", "more than needed: no batch is larger than",
             (LENGTH, "length = 100")),
    _changed("ex2", "tensors come back", "return Python floats",
             ("torch.stack(losses).tolist()", "losses")),
    _changed("ex2", "compiled by dynamo", "the counters of torch_xla were cleared",
             ("    losses = []\n",
              '    model = torch.compile(model, backend="openxla")\n    losses = []\n')),
    _changed("ex2", "clears the counters", "the counters of torch_xla were cleared",
             ("    losses = []\n",
              "    losses = []\n    import torch_xla.debug.metrics as metrics\n"
              "    metrics.clear_all()\n")),
    _written("ex2", "a twin on the host", "every step belongs on torch_xla.device()", TWIN),
    _written("ex2", "does nothing", "`fine_tune` returned None: return a list of", NOTHING),
    _written("ex2", "the course's own", "belongs to the course: write this one yourself",
             "from utils.training.finetune import weekly\n    weekly.run(it)"),
    # ex3
    _changed("ex3", "mean of means", "this is the mean of the means of the micro-batches",
             (LOSS3, 'loss = F.cross_entropy(logits, targets.to(device), reduction="sum")'
                     " / max(int((targets != -100).sum()), 1) / len(step)")),
    _changed("ex3", "the default mean", "this is the mean of the means of the micro-batches",
             (LOSS3, MEAN3 + " / len(step)")),
    _changed("ex3", "the means added up", "with the gradients of means, added up",
             (LOSS3, 'loss = F.cross_entropy(logits, targets.to(device), reduction="sum")'
                     " / max(int((targets != -100).sum()), 1)")),
    _changed("ex3", "no division", "this is a sum: divide by the tokens of the whole step",
             (" / count", "")),
    _changed("ex3", "padding counts", "padding is counted",
             ("int((targets != -100).sum())", "targets.numel()")),
    _changed("ex3", "never zeroed", "the gradients of earlier steps are still there",
             (ZERO3, "")),
    _changed("ex3", "zeroed in each", "the gradients of a step differ",
             (ZERO3, ""), (INNER3, INNER3 + "            optimizer.zero_grad()\n")),
    _changed("ex3", "an update after each", "after the last of them",
             (SYNC3, SYNC3.replace("torch_xla.sync()", "optimizer.step()\n            torch_xla"
                                                       ".sync()")),
             (UPDATE3, "")),
    _changed("ex3", "no update", "a model that never learns", (UPDATE3, "")),
    _changed("ex3", "one sync a step", "the steps pile up in one graph",
             (SYNC3, "            total += loss.detach()\n")),
    _changed("ex3", "all at once", "each goes through the model by itself",
             (INNER3, "        step = [tuple(torch.cat(each) for each in zip(*step))]\n" + INNER3)),
    _changed("ex3", "only real tokens", "A mask that picks the real tokens makes a shape",
             (LOSS3, "here = (targets != -100).to(device)\n"
                     "            loss = F.cross_entropy(logits.transpose(1, 2)[here],"
                     ' targets.to(device)[here], reduction="sum") / count')),
    _changed("ex3", "cut to the longest of each", "shape",
             (INNER3, INNER3 + "            most = int((targets != -100).sum(1).max())\n"
                               "            inputs, targets = inputs[:, :most], targets[:, :most]\n"
                               )),
    _changed("ex3", "on the CPU", "every step belongs on torch_xla.device()",
             ("device = torch_xla.device()", 'device = "cpu"\n    model.to("cpu")')),
    _written("ex3", "does nothing", "`accumulate` returned None: return a list of", NOTHING),
    _written("ex3", "raises", "ZeroDivisionError: division by zero", "return 1 / 0"),
    # ex4
    _written("ex4", "without a cache", "tokens go through the model again that were there",
             "return write_again(*it)"),
    _written("ex4", "all tokens through the layers again",
             "tokens go through the model again that were there", AGAIN),
    _changed("ex4", "read and no sync", "a token that is read runs its graph, and ends none",
             (SYNC4, "                token.tolist()\n                tokens.append(token)\n")),
    _changed("ex4", "padded and again", "tokens go through the model again that were there before",
             (PADDED, "ids = prompt + [0] * (model.context - len(prompt))"),
             (PICK, "last = torch.tensor([len(prompt) - 1]).to(device)\n"
                    "            token = model(torch.tensor([ids]).to(device)).argmax(-1)"
                    ".index_select(1, last)"),
             (NEXT, "ids[place] = int(token)\n                last = torch.tensor([place])"
                    ".to(device)\n                token = model(torch.tensor([ids]).to(device))"
                    ".argmax(-1).index_select(1, last)")),
    _changed("ex4", "the cache grows", "The length of a cache that grows",
             (WRITE, "            keys = torch.cat([keys, k], 2)\n"
                     "            values = torch.cat([values, v], 2)\n"
                     "            layer_cache[:] = [keys, values]\n"),
             ("for layer, (keys, values) in zip(model.layers, cache, strict=True):",
              "for layer, layer_cache in zip(model.layers, cache, strict=True):\n"
              "            keys, values = layer_cache"),
             ("shape = 1, model.heads, model.context, model.size",
              "shape = 1, model.heads, 0, model.size"),
             (PADDED, "padded = torch.tensor([prompt]).to(device)"),
             ("model.places[:32], cache", "model.places[: len(prompt)], cache"),
             (SEEN, "seen = torch.ones(len(places), int(places[-1]) + 1, dtype=bool)"
                    ".tril(int(places[0])).to(device)")),
    _changed("ex4", "a place as a number", "a place given as a Python number",
             ("cache: list[list[Tensor]])", "cache: list[list[Tensor]], at: int)"),
             (WRITE, "            keys[:, :, at : at + k.shape[2]] = k\n"
                     "            values[:, :, at : at + k.shape[2]] = v\n"),
             (PICK, PICK.replace("cache)", "cache, 0)")),
             (NEXT, NEXT.replace("cache)", "cache, place)"))),
    _changed("ex4", "a place that is read", "to read a value in between runs what is pending",
             (WRITE, "            at = int(places[0])\n"
                     "            keys[:, :, at : at + k.shape[2]] = k\n"
                     "            values[:, :, at : at + k.shape[2]] = v\n")),
    _changed("ex4", "each prompt its own length", "the length of a prompt",
             (PADDED, "padded = torch.tensor([prompt]).to(device)"),
             ("model.places[:32], cache", "model.places[: len(prompt)], cache")),
    _changed("ex4", "the last place of the padding", "not at the last place of its padding",
             ("torch.tensor([len(prompt) - 1])", "torch.tensor([31])")),
    _changed("ex4", "one place late", "after n ids the next one stands at place n",
             (RANGE, "range(len(prompt) + 1, len(prompt) + count)")),
    _changed("ex4", "sees everything", "first id is another one",
             (SEEN, "seen = torch.ones(len(places), model.context, dtype=bool).to(device)")),
    _changed("ex4", "not its own place", "another one",
             ("model.places <= places[:, None]", "model.places < places[:, None].clamp(min=1)")),
    _changed("ex4", "nothing is kept", "with the keys and values of all of them",
             (WRITE, "            keys = keys.index_copy(2, places, k)\n"
                     "            values = values.index_copy(2, places, v)\n")),
    _changed("ex4", "one token less", "where 8 new ones are asked for",
             (RANGE, "range(len(prompt), len(prompt) + count - 2)")),
    _changed("ex4", "with the prompt", "return the new ids only, without the prompt",
             (RETURN4, "texts.append(prompt + torch.cat(tokens, dim=1)[0].tolist())")),
    _changed("ex4", "without the first", "the first new id is missing",
             ("            tokens = [token]\n", "            tokens = []\n"),
             (RANGE, "range(len(prompt), len(prompt) + count)")),
    _changed("ex4", "no sync", "the tokens pile up in one graph",
             (SYNC4, "                tokens.append(token)\n")),
    _changed("ex4", "the prompt token by token", "a prompt goes in at once, not token by token",
             (PICK, "for place, each in enumerate(prompt):\n"
                    "                token = likeliest(torch.tensor([[each]]).to(device),"
                    " torch.tensor([place]).to(device), cache)\n"
                    "                torch_xla.sync()")),
    _changed("ex4", "tensors come back", "a tensor on",
             (RETURN4, "texts.append(torch.cat(tokens, dim=1)[0])")),
    _changed("ex4", "on the CPU", "belong through the given model on torch_xla.device()",
             ("device = torch_xla.device()", 'device = "cpu"\n    model.to("cpu")')),
    _written("ex4", "does nothing", "`generate` returned None: return a list of 2 lists", NOTHING),
    _written("ex4", "the course's own", "belongs to the course: write this one yourself",
             "from utils.training.finetune import decoding\n    decoding.fixed(it[0], it[1][0], it[2])"),
    # ex5
    _changed("ex5", "no factor", "the factor alpha / rank of each adapter is missing",
             (FACTOR, "")),
    _changed("ex5", "an integer factor", "each request wants the mean loss",
             ('adapter["alpha"] / adapter["rank"]', 'adapter["alpha"] // adapter["rank"]')),
    _changed("ex5", "the factor twice", "each request wants the mean loss",
             ('if part.endswith("up")', "if True")),
    _changed("ex5", "what is left over", "rows of the adapter before are still there",
             (FULL, "full = slots[part].cpu()"),
             (FACTOR + "                    " + COPY5,
              '                    if part.endswith("up"):\n'
              '                        full[:, : tensor.shape[1]] *= adapter["alpha"]'
              ' / adapter["rank"]\n                    ' + COPY5)),
    _changed("ex5", "never loaded", "these are the losses of the base alone",
             (COPY5, "slots[part].copy_(full * 0)")),
    _changed("ex5", "the first adapter for all", "with the weights of its own adapter",
             (SWAP, "            if loaded is None:\n")),
    _changed("ex5", "slots of its own rank", "the slots keep their shape only if",
             (FULL, "full = torch.zeros(tensor.shape)"),
             (COPY5, "slots[part].data = full.to(device)")),
    _changed("ex5", "filled on the device", "work on the weights on the device is a graph",
             ("full[: tensor.shape[0], : tensor.shape[1]] = tensor\n", "pass\n"),
             (FACTOR + "                    " + COPY5,
              "                    slots[part].zero_()\n"
              '                    if part.endswith("up"):\n'
              '                        tensor = tensor * (adapter["alpha"] / adapter["rank"])\n'
              "                    slots[part][: tensor.shape[0], : tensor.shape[1]] ="
              " tensor.to(device)")),
    _changed("ex5", "new parameters", "the model has other parameters than before",
             (COPY5, 'layer, _, own = part.partition(".")\n                    '
                     "setattr(getattr(model, layer), own, nn.Parameter(full.to(device)))")),
    _changed("ex5", "the adapters are changed", "the adapters that were given have changed",
             (FACTOR, FACTOR + "                    tensor.zero_()\n"
                               "                    loaded = None\n"
                               '                    if name == "south": tensor.add_(1.0)\n'),
             (SWAP, "            if True:\n"),
             ("adapter, loaded = adapters[name], name",
              "adapter, loaded = {**adapters[name], \"weights\": "
              "{k: kept[name][k].clone() for k in kept[name]}}, name"),
             ("    losses, loaded = [], None\n",
              "    losses, loaded = [], None\n    kept = {n: {k: v.clone() for k, v in"
              ' each["weights"].items()} for n, each in adapters.items()}\n'
              "    for each in adapters.values():\n"
              '        for v in each["weights"].values():\n            v.zero_()\n')),
    _changed("ex5", "a copy for each", "a copy of the model per adapter",
             ("    device = torch_xla.device()\n",
              "    import copy\n    device = torch_xla.device()\n"
              "    model = copy.deepcopy(model)\n")),
    ("lab11.ex5", "merged into the base", MERGES, "the base has changed"),
    _changed("ex5", "on the CPU", "went through the given model on",
             ("device = torch_xla.device()", 'device = "cpu"\n    model.to("cpu")')),
    _changed("ex5", "the last place as well", "each request wants the mean loss of ids[:, 1:]",
             (LOSS5, "losses.append(F.cross_entropy(logits, ids[:, :-1]).item())")),
    _written("ex5", "does nothing", "`serve` returned None: return a list of 3 floats", NOTHING),
    _written("ex5", "the course's own", "belongs to the course: write this one yourself",
             "from utils.training.finetune import lora\n    return lora.load(it[0], {})"),
]  # fmt: skip
