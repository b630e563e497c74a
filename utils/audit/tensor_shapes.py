"""Checks for shapes, sizes and number formats: tensors that grow, sizes read from tensors, Python
numbers that change at each step, float64, complex numbers, Fourier transforms, wide integers.
"""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from utils.audit.rules import NAMES
from utils.audit.scopes import Binding, parameters, walk, written
from utils.audit.tensor_kinds import default_of
from utils.audit.tensor_lengths import LENGTHS, MADE_OF, all_kept, goes, last_of
from utils.audit.tensor_names import COUNTS, LOADER_NAME, TOKENIZER, is_model_name, moves_to_host
from utils.audit.tensor_values import (
    counts_found,
    draws,
    is_found,
    is_given,
    on_host,
    only_torch,
    reaching,
    waits,
)

if TYPE_CHECKING:
    from utils.audit.state import State

GROWS = {"torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack"}
SIZED = {
    "new",
    "new_zeros",
    "new_ones",
    "new_empty",
    "new_full",
    "expand",
    "repeat",
    "view",
    "narrow",
}
SIZED |= {"reshape", "resize_"}
MADE = {"full", "zeros", "ones", "empty", "FloatTensor", "LongTensor", "IntTensor", "BoolTensor"}
SIZED_BY = {"full", "empty", "zeros", "ones", "rand", "randn", "arange", "eye", "randperm"}
PICKS = {"torch.index_select", "torch.gather", "torch.take"}
DOUBLE = {"torch.float64", "torch.double", "torch.DoubleTensor"}
WIDE = 2**31
WIDE_ARRAYS = re.compile(r"^numpy\.(linspace|random\.(rand|randn|normal|uniform|random))$")
TRANSFORMED = re.compile(
    r"^whisper\.(audio\.)?log_mel_spectrogram$|torchaudio\.(transforms\.(\w*Spectrogram|MFCC|GriffinLim)|functional\.(inverse_)?spectrogram)$"
)
DEPTH = 6
PAST = re.compile(r"(^|_)(past|cache|cached|prev|previous|history)(_|$|k|v)", re.I)
POSITION = re.compile(
    r"(^|_)(start_?pos|prev_len\w*|position|pos|offset|step|timestep|cur_?len|cache_len|past_len\w*|seqlen_offset)$"
)
PICKED = re.compile(r"(^|_)(idx|index)$")
NEXT = re.compile(r"(^|_)(next|new)_(token|id|word|tok|input_id)s?(_id|_ids|s)?$")
COLLATOR = re.compile(r"DataCollator(With|For(?!LanguageModeling|PermutationL))\w+$")
TRIED = re.compile(r"(^|_)(sizes|size_list|lengths|lens|seq_?lens)$")
LOSS = re.compile(r"(^|_)loss(es)?$")
PADDED = re.compile(r"^max_\w*len(gth)?$")
SETS = re.compile(r"data|loader|set$|source$|model|layer|param", re.I)
COUNT = re.compile(r"^(num|n|total_num)_\w+$")
EACH = re.compile(r"step|^iter|_iter$|warmup")  # what changes at each step, and not each epoch
STEPS = {"add_", "sub_", "addcdiv_", "addcmul_"}  # how an optimizer changes a parameter
RATE = re.compile(r"(^|_)lr$|step_?size|bias_correction")
MIXES = re.compile(r"^(mixup|cutmix)(_(fn|data|batch|func|function))?$", re.I)
DROPS = 9  # where a DataLoader takes drop_last by position
# Arguments of generate() of transformers
GENERATES = {"max_new_tokens", "use_cache", "do_sample", "generation_config"}
COUNTED = re.compile(
    r"(^|_)(mem_(start|end)|start_?pos|seq_?len_offset|sequence_len_offset|current_(length|pos|len)|cur_(len|pos)"
    r"|cache_len|past_len\w*|prefix_len|num_computed_tokens|total_token_num|max_len_in_batch)$"
)
MOVES = re.compile(r"^(start|end|cur|current|prev|last)_(idx|index|pos|position|loc)$")
GATHERED = re.compile(r"^(all|generated|output|input)_\w*(ids|tokens)$")
RETURNED = re.compile(r"^(max|total)_(returned|seq|output|sequence)_(tokens|len|length)$")
REQUESTED = re.compile(r"(min|max|longest|total)_(prompt|request|context|seq)_len(gth)?$")
PLACE = re.compile(
    r"^(pos|offset|(start|cur|current|cache)_pos|past(_\w+)?_len(gth)?|(cache|kv)_len(gth)?)$"
)
CACHE = re.compile(r"(^|[._])(past_key_values?|layer_past|kv_cache)$")
KEYS_AND_VALUES = 2  # what update() of a cache is given, before the number of the layer
PROMPT = re.compile(
    r"^(idx|ids|input_ids|tokens|context|x|(\w+_)?inputs)$|prompt|^input_(tokens|seq)$"
)
REQUESTS = re.compile(r"(^|_)(requests|prompts|sentences|texts|utterances)$")
DECODES = re.compile(
    r"(^|_)(generate|decode|beam_search|greedy\w*|sample\w*|sampling|rollout)(_|$)"
)
ROUNDS = {"int", "max", "min", "round", "ceil", "floor"}
TURN = re.compile(r"^(i+|it|idx|n|(\w+_)?(step|iter|iteration|idx|index|i|id))$")
# Numbers of turns that are the same at each step: samples of a batch, parts of a model
FIXED = re.compile(
    r"batch_?size|^(bs|bsz|b|n_?batch|num_images|depth|groups)$"
    r"|(^|_)(num|n)_?\w*(class|head|layer|level|scale|stage|block|expert|codebook|quantizer|group|channel|joint)(e?s)?$",
    re.I,
)
SCHEDULE = re.compile(
    r"(schedule|anneal|warm|ramp|decay|_lr$|get_lr|weight|coef|alpha|beta|temperature|progress)",
    re.I,
)
PASSES = {"tqdm", "reversed", "list", "trange", "sorted", "track", "progress_bar"}
PACKS = {"pack_padded_sequence", "pad_packed_sequence", "pack_sequence", "pad_sequence"}
LONGEST = re.compile(r"^max_?(len|length|seq_?len|size)\w*$|longest")
LENGTH = re.compile(r"(^|_)(len|length)$")
ACCEPTED = re.compile(r"(^|_)(n_|num_)?accept(ed)?_?(len|length|num|count|tokens)?$")
STEP = re.compile(
    r"((train|val|test|eval)\w*_|_?training_|decode_|generate_|model_)step$|(train|eval)_batch$"
)


def is_step_function(name: str) -> bool:
    """A function that runs once at each step, by its name.

    >>> is_step_function("training_step"), is_step_function("step_size")
    (True, False)
    """
    return STEP.match(name) is not None


def is_step_loop(node: ast.For | ast.AsyncFor | ast.While, functions: list[str]) -> bool:
    """A loop over batches or tokens: a model is called or trained within it, or the function says
    that it decodes.
    """
    if not isinstance(node, ast.While) and last_of(_inner(node.iter)) != "":
        over = last_of(_inner(node.iter))
        if LOADER_NAME.search(over) or REQUESTS.search(over):
            return True
    if isinstance(node, ast.While) and functions and DECODES.search(functions[-1]):
        return True
    own = {last_of(one) for one in walk(getattr(node, "target", node.body[0]))}
    for statement in node.body:
        for item in walk(statement):
            if isinstance(item, ast.Call):
                last = last_of(item.func)
                if last == "step" and "env" in written(item.func):
                    return True
                given = {last_of(one) for one in item.args} | {
                    last_of(one.value) for one in item.keywords
                }
                if last not in COUNTS and any(map(is_model_name, given - own)):
                    return True
                if last in NAMES["step_calls"] or (is_model_name(last) and last not in own):
                    return True
    return False


def _inner(node: ast.AST) -> ast.AST:
    """loader in enumerate(tqdm(loader))."""
    while isinstance(node, ast.Call) and node.args and last_of(node.func) not in COUNTS:
        node = node.args[0]
    return node


def counters(node: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    """Names that hold another number at each turn of the loop."""
    names = {name for item in node.body for name in _add_to(item)}
    if isinstance(node, ast.While):
        return names
    element = node.iter
    match node.target:  # of what was enumerated before
        case ast.Tuple(elts=[ast.Name(first), _]) if isinstance(element, ast.Name):
            names |= {first} if TURN.match(first) else set()
    while isinstance(element, ast.Call) and element.args and last_of(element.func) in PASSES:
        element = element.args[0]
    if isinstance(element, ast.Call):
        function = last_of(element.func)
        if function in ("range", "trange") and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif function == "enumerate" and isinstance(node.target, ast.Tuple):
            names.add(last_of(node.target.elts[0]))
    return names


def _add_to(node: ast.stmt) -> Iterator[str]:
    """weight of `weight += 0.01` and of `weight = weight * 0.9`."""
    match node:
        case ast.AugAssign(target=ast.Name(name), value=ast.Constant(value=int() | float())):
            yield name
        case ast.Assign(
            targets=[ast.Name(name)],
            value=ast.BinOp(left=ast.Name(left), right=ast.Constant(value=int() | float())),
        ) if name == left:
            yield name
        case ast.With():
            for item in node.body:
                yield from _add_to(item)


def assigned(at: "State", target: ast.expr, value: ast.expr) -> None:
    """x = torch.cat([x, y]) in a loop over steps; self.k = torch.cat([self.k, new]) anywhere."""
    if not at.torch:
        return
    match target, value:
        case ast.Subscript(slice=ast.Constant(value="drop_last")), ast.Constant(value=False):
            at.report("input-length", target, "the last batch holds what is left", "note")
        case ast.Subscript(slice=ast.Constant(value="lr")), _ if at.loops:
            function = getattr(at.scope.node, "args", None)
            given = [arg.arg for arg in parameters(function)] if function else []
            if at.steps or any(map(EACH.search, [*map(last_of, walk(value)), *given])):
                at.report("python-number", target, "the rate of a step is a number in the graph")
    if isinstance(target, ast.Subscript) and not on_host(at):
        if _pads(at, target, value):
            at.report("input-length", target, "as long as what is padded here")
        elif isinstance(value, ast.Call) and value.args and (at.steps or at.loops):
            _fills(at, target, value)
    if not isinstance(value, ast.Call) or not value.args:
        return
    name = at.dotted(value.func)
    if (
        name == "min"
        and at.loops
        and not on_host(at)
        and any(_is_left(at, one) for one in value.args)
    ):
        at.report("input-length", value.func, "the last part holds what is left")
        return
    if name == "max" and any("collat" in one.lower() or DECODES.search(one) for one in _within(at)):
        if _longest(at, value) and not _sizes(at, target):
            at.report("data-dependent-shape", value.func, "as long as the longest of the batch")
    elif name in ("numpy.max", "numpy.amax") and LONGEST.search(last_of(target)):
        if LENGTHS.search(last_of(value.args[0])):
            at.report("data-dependent-shape", value.func, "as long as the longest of the batch")
    if on_host(at):
        return
    stays = isinstance(target, ast.Attribute | ast.Subscript) and _kept(target)
    if name == "torch.nn.functional.pad" and at.steps == "loop":
        if _same(target, value.args[0]) and not at.on_cpu(value.args[0]):
            at.report("growing-cat", value.func)
    if name in GROWS and isinstance(target, ast.Name) and target.id in at.until:
        at.report("growing-cat", value.func, "the loop ends when it is long enough")
        return
    if name not in GROWS or not (at.steps == "loop" or stays):
        return
    parts = value.args[0]
    if isinstance(parts, ast.List | ast.Tuple) and parts.elts and not at.on_cpu(parts.elts[0]):
        if sum(ast.dump(part).count(_dumped(target)) for part in parts.elts) == 1:
            if any(_same(target, part) and _stays(at, part, value) for part in parts.elts):
                at.report("growing-cat", value.func)


def _is_left(at: "State", node: ast.AST) -> bool:
    """total - i of min(size, total - i), in a loop over i: at the end less is left."""
    match node:
        case ast.BinOp(op=ast.Sub(), right=ast.Name() as turn):
            return any(
                item.kind == "loop"
                and isinstance(item.node, ast.Call)
                and last_of(item.node.func) in ("range", "trange")
                for item in reaching(at, turn)
            )
    return False


def grown(test: ast.AST) -> set[str]:
    """prefix of `while prefix.shape[1] < total`, what a loop makes longer.

    >>> grown(ast.parse("len(ids) < 9 or x.size(1) < n", mode="eval").body) == {"ids", "x"}
    True
    """
    sized = (_sized(one) for one in walk(test))
    return {one.id for one in sized if isinstance(one, ast.Name)}


def _sized(node: ast.AST | None) -> ast.AST | None:
    """What the number is the length of: x of x.shape[-1], x.size(1), x.size()[-1] and len(x)."""
    match node:
        case (
            ast.Call(func=ast.Name("len"), args=[one])
            | ast.Call(func=ast.Attribute(attr="size", value=one), args=[_])
            | ast.Subscript(value=ast.Attribute(attr="shape", value=one))
            | ast.Subscript(value=ast.Call(func=ast.Attribute(attr="size", value=one), args=[]))
        ):
            return one
    return None


def _pads(at: "State", target: ast.Subscript, value: ast.expr) -> bool:
    """padded[:, : x.shape[-1]] = x, on the device."""
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    for part in parts:
        size = _sized(part.upper) if isinstance(part, ast.Slice) and not part.lower else None
        if isinstance(size, ast.Name) and isinstance(value, ast.Name) and size.id == value.id:
            return at.kind(target.value) == "tensor" and not at.on_cpu(target.value)
    return False


def _fills(at: "State", target: ast.Subscript, value: ast.expr) -> None:
    """losses[k] = loss, where losses = torch.zeros(n): a copy from the device at each turn."""
    if isinstance(target.value, ast.Name) and at.kind(value) in ("tensor", "maybe"):
        if not at.on_cpu(value) and all_kept(
            at, target.value, lambda kept: _is_made_here(at, kept)
        ):
            waits(at, value, "it is copied to a tensor of the CPU, and waits as .item() does")


def _is_made_here(at: "State", node: ast.AST) -> bool:
    """torch.zeros(n), without a device."""
    return isinstance(node, ast.Call) and at.on_cpu(node) and at.kind(node) == "tensor"


def _within(at: "State") -> list[str]:
    """The names of the functions and the class that this stands in."""
    owner = at.scope.owner()
    return [*at.functions, getattr(owner.node, "name", "") if owner is not None else ""]


def _sizes(at: "State", target: ast.expr) -> bool:
    """A tensor is made of that size, which is where it is said."""
    return any(
        isinstance(one, ast.Call)
        and last_of(one.func) in MADE | {"arange"}
        and any(written(part) == written(target) for part in walk(one))
        for one in walk(at.scope.node)
    )


def _kept(target: ast.expr) -> bool:
    """self.keys or self.keys[layer]: what an object keeps from call to call."""
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return isinstance(target, ast.Name) and target.id == "self"


def _stays(at: "State", part: ast.expr, value: ast.expr) -> bool:
    """What is joined is what the turn before made, not what this turn made anew."""
    if not isinstance(part, ast.Name):
        return True
    return any(item.node is value for item in reaching(at, part))


def _same(target: ast.expr, part: ast.expr) -> bool:
    return ast.dump(part) == _dumped(target)


def _dumped(target: ast.expr) -> str:
    return ast.dump(target).replace("Store()", "Load()")


def _gathers(at: "State", node: ast.Call) -> bool:
    """torch.cat(seen) in a loop over steps that adds to the list at each turn and never empties
    it.
    """
    given = node.args[0] if node.args else None
    if not isinstance(given, ast.Name) or at.on_cpu(given):
        return False
    added = at.scope.added.get(given.id, ())
    lines = {getattr(one, "lineno", 0) or one.value.lineno for one in added}  # type: ignore[attr-defined]
    anew = [
        item.start[0]
        for item in at.scope.names.get(given.id, ())
        if not isinstance(item.node, ast.AugAssign)
    ]
    return any(
        first <= node.lineno <= last
        and any(first <= line <= last for line in lines)
        and not any(header <= line <= last for line in anew)
        for first, last, header in at.scope.loops
    )


def _is_past(at: "State", node: ast.AST, depth: int = 3) -> bool:
    """past_key, layer_past[0], and key of `key, value = layer_past`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if PAST.search(last_of(node)):
        return True
    if depth and isinstance(node, ast.Name):
        kept = reaching(at, node)
        return bool(kept) and all(
            item.kind in ("value", "part", "loop")
            and isinstance(item.node, ast.Name | ast.Attribute | ast.Subscript)
            and _is_past(at, item.node, depth - 1)
            for item in kept
        )
    return False


def _root(node: ast.AST) -> ast.AST:
    """next_token of next_token[None].unsqueeze(0)."""
    while isinstance(node, ast.Subscript | ast.Call):
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute):
            break
        node = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
    return node


def _appends(at: "State", node: ast.Call) -> bool:
    """torch.cat([past_key, key]) in a function: what was kept grows with every call."""
    parts = node.args[0] if node.args else None
    if not at.functions or not isinstance(parts, ast.List | ast.Tuple) or len(parts.elts) != 2:
        return False
    first, second = parts.elts
    if NEXT.search(written(_root(second)).split(".")[-1]) and isinstance(first, ast.Name):
        # the next token, in a function that is called for each
        known = at.kind(first) in ("tensor", "maybe") or GATHERED.search(first.id) is not None
        return known and not at.on_cpu(first)
    if isinstance(second, ast.Subscript) and isinstance(first, ast.Subscript):
        if written(first.value) == written(second.value):
            return False
    return _is_past(at, first) and not at.on_cpu(first)


def called(at: "State", node: ast.Call, name: str) -> None:
    """Sizes that are read from tensors, and number formats."""
    if not at.torch:
        return
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    _format(at, node, name, method)
    _padded(at, node, name, method)
    if on_host(at):
        return
    goes(at, node, name)
    if name in GROWS and node.args and _ranges(node.args[0]):
        at.report("data-dependent-shape", node.func, "each range has its own length")
    if name in GROWS and at.steps != "loop" and _appends(at, node):
        at.report("growing-cat", node.func, "what is kept from call to call")
    _caches(at, node, method)
    if method == "conj" and not node.args and at.kind(node.func.value) != "host":  # type: ignore[attr-defined]
        at.report("complex-numbers", node.func)
    if method in STEPS and _is_rate(node):
        at.report("python-number", node.func, "the rate of a step is a number in the graph")
    if at.steps and node.args and MIXES.search(last_of(node.func)) and not at.on_cpu(node.args[0]):
        at.report("python-number", node.func, "it mixes by a number that is drawn at each step")
    if at.steps == "loop" and (name in GROWS or name == "torch.stack") and _gathers(at, node):
        at.report("growing-cat", node.func, "of a list that each turn adds to")
    sizes: list[ast.expr] = []
    if name.startswith("torch.") and name.count(".") == 1:
        last = name.split(".")[1]
        if last in SIZED_BY:
            sizes = list(node.args[:1] if last == "full" else node.args)
            filled = last == "full" and len(node.args) > 1 and not at.on_cpu(node)
            if filled and (_changes(at, node.args[1]) or _was_read(at, node.args[1])):
                at.report("python-number", node.args[1])
        if (
            name in MADE_OF
            and node.args
            and any(
                isinstance(one, ast.Attribute) and one.attr == "data_ptr"
                for one in walk(node.args[0])
            )
        ):
            at.report("int64-range", node.func, "addresses need 64 bits")
        if name in MADE_OF and node.args and not at.on_cpu(node):
            if any(_changes(at, one) for one in _repeated(node.args[0])):
                at.report("python-number", node.args[0])
        if last == "arange" and any(
            _counts(at, one) or _positions(at, one) or _past(at, one) for one in node.args
        ):
            at.report("python-number", node.func, "each length is a shape of its own")
    elif name in ("torch.nn.functional.pad", "torch.nn.functional.interpolate"):
        sizes = [*node.args[1:2], *(item.value for item in node.keywords if item.arg == "size")]
    elif method in SIZED and name.split(".")[0] not in at.names.imported and not _own(node):
        sizes = list(node.args[:1] if method == "new_full" else node.args)
    elif name == "torch.narrow":
        sizes = node.args[2:]
    if name == "torch.nn.functional.pad" and any(
        _to_longest(at, one) for size in sizes for one in getattr(size, "elts", [])
    ):
        at.report("input-length", node.func, "as long as the longest of the batch")
        return
    if name == "torch.topk" or (method == "topk" and not name.startswith("torch.")):
        sizes = [*node.args[int(name == "torch.topk") :][:1]]
        sizes += [item.value for item in node.keywords if item.arg == "k"]
    sizes += [one for size in sizes if isinstance(size, ast.Tuple | ast.List) for one in size.elts]
    if at.steps == "loop" and not name.startswith("torch."):
        sizes += [item.value for item in node.keywords if LENGTH.search(item.arg or "")]
    if name.startswith("torch.") and any(_of_prompt(at, size) for size in sizes):
        at.report("input-length", node.func, "as long as the prompt and what is added to it")
    elif any(_is_rest(at, one) for size in sizes for one in walk(size)):
        at.report("input-length", node.func, "the last batch holds what is left")
    elif name.startswith("torch.") and any(_tried(at, size) for size in sizes):
        if not at.on_cpu(node):
            at.report("input-length", node.func, "each turn of the loop has a size of its own")
    elif any(_random(at, size) for size in sizes):
        at.report("data-dependent-shape", node.func, "a size is drawn at random")
    elif any(from_values(at, size) or counts_found(at, size) for size in sizes):
        at.report("data-dependent-shape", node.func, "a size is read from a tensor")
    if method in ("index_select", "gather", "take", "take_along_dim") or name in PICKS:
        if any(is_found(at, one) for one in node.args):
            at.report("data-dependent-shape", node.func, "as many elements as were found")
    elif name in ("torch.randint", "numpy.random.permutation"):
        sizes = [item.value for item in node.keywords if item.arg == "size"] + node.args[:1]
        parts = [part for size in sizes for part in getattr(size, "elts", [size])]
        if any(_is_counted(at, part) for part in parts):
            at.report("data-dependent-shape", node.func, "as many as were found")
    if method == "narrow" or name == "torch.narrow":
        start = node.args[1 + (name == "torch.narrow") :][:1]
        length = node.args[2 + (name == "torch.narrow") :][:1]
        if any(_kept_place(at, one) for one in start + length):
            at.report("python-number", node.func, "each length is a graph of its own")
        elif start and (_positions(at, start[0]) or _counts(at, start[0])):
            at.report("python-number", node.func, "each place is a graph of its own")
    if method == "split" or name == "torch.split":
        lengths = node.args[1:2] if name == "torch.split" else node.args[:1]
        there = node.args[0] if name == "torch.split" else getattr(node.func, "value", node)
        if lengths and _is_listed(at, lengths[0]) and not at.on_cpu(there):
            at.report("data-dependent-shape", node.func, "each list of sizes is a graph of its own")
    repeats = node.args[1:2] if name == "torch.repeat_interleave" else node.args[:1]
    if method == "repeat_interleave" or name == "torch.repeat_interleave":
        given = {keyword.arg for keyword in node.keywords}
        if repeats and at.kind(repeats[0]) == "tensor" and "output_size" not in given:
            at.report("data-dependent-shape", node.func, "without output_size it reads the sum")


def _to_longest(at: "State", node: ast.AST) -> bool:
    """max_length - len(x), how much is added to each of a batch."""
    match node:
        case ast.BinOp(op=ast.Sub(), left=ast.Name(name) as longest, right=right):
            asked = _sized(right) is not None and LONGEST.search(name)
            kept = [item for item in reaching(at, longest) if item.kind == "value"]
            # A constant is one length for all.
            return bool(asked) and any(isinstance(item.node, ast.Call) for item in kept)
    return False


def _is_rest(at: "State", node: ast.AST) -> bool:
    """size of `for size in sizes`, where sizes = [batch] * times + [rest]."""
    for item in reaching(at, node) if isinstance(node, ast.Name) and at.loops else ():
        over = _passed(item.node) if item.kind == "loop" else None
        for made in reaching(at, over) if isinstance(over, ast.Name) else ():
            match made.node:
                case ast.BinOp(left=ast.BinOp(op=ast.Mult()), op=ast.Add(), right=ast.List()):
                    return True
    return False


def _is_rate(node: ast.Call) -> bool:
    """p.addcdiv_(average, root, value=-step_size), p.add_(g, alpha=-group["lr"])."""
    given = [item.value for item in node.keywords if item.arg in ("alpha", "value")]
    return any(
        RATE.search(last_of(one) or str(getattr(one, "value", "")))
        for value in given
        for one in walk(value)
    )


def _tried(at: "State", node: ast.AST) -> bool:
    """size of `for size in (8, 16, 32)` and of `for size in sizes`."""
    return isinstance(node, ast.Name) and any(
        item.kind == "loop"
        and (
            (isinstance(item.node, ast.Name | ast.Attribute) and TRIED.search(last_of(item.node)))
            or (
                isinstance(item.node, ast.List | ast.Tuple)
                and len(item.node.elts) > 1
                and all(isinstance(one, ast.Constant) for one in item.node.elts)
            )
        )
        for item in reaching(at, node)
    )


def _of_prompt(at: "State", node: ast.AST) -> bool:
    """max_returned_tokens, a parameter, or idx.size(1) + n, in a function that decodes."""
    if not (at.functions and DECODES.search(at.functions[-1])):
        return False
    for one in walk(node):
        kept = at.scope.names.get(one.id, ()) if isinstance(one, ast.Name) else ()
        if len(kept) == 1 and kept[0].kind == "parameter" and RETURNED.search(one.id):  # type: ignore[attr-defined]
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            if any(map(_is_length_of, (one, *(item.node for item in kept)))):
                return True
    return False


def _is_length_of(node: ast.AST | None) -> bool:
    """ids.size(1), prompt.shape[-1], len(tokens)."""
    one = _sized(node)
    while isinstance(one, ast.Subscript):  # ids[0], inputs["input_ids"]
        key = getattr(one.slice, "value", None)
        if isinstance(key, str):
            return PROMPT.search(key) is not None
        one = one.value
    return one is not None and PROMPT.search(last_of(one)) is not None


def _is_counted(at: "State", node: ast.AST | None, depth: int = 9) -> bool:
    """Computed from how many were found: min(n, len(found)), a - found.numel()."""
    if node is None or depth <= 0:
        return False
    if counts_found(at, node) or (at.kind(node) == "tensor" and not at.on_cpu(node)):
        return True
    match node:
        case ast.BinOp():
            return any(_is_counted(at, one, depth - 1) for one in (node.left, node.right))
        case ast.Call(func=ast.Name("min" | "max" | "int")):
            return any(_is_counted(at, one, depth - 1) for one in node.args)
        case ast.Name():
            return at.kind(node) != "tensor" and any(
                (item.kind == "value" and _is_counted(at, item.node, depth - 1))
                or (
                    isinstance(item.node, ast.arg)
                    and is_given(at, item.node, lambda one: _is_counted(at, one, depth - 2))
                )
                for item in reaching(at, node)
            )
    return False


def _as_requests(at: "State", node: ast.AST, depth: int = 6) -> bool:
    """max(len(one) for one in prompts), or computed from it."""
    if depth == 0:
        return False
    match node:
        case ast.Name(name):
            kept = [item for item in reaching(at, node) if item.kind in ("value", "parameter")]
            if REQUESTED.match(name) and kept:
                return not any(isinstance(item.node, ast.Constant) for item in kept)
            return any(item.node and _as_requests(at, item.node, depth - 1) for item in kept)
        case ast.BinOp():
            return any(_as_requests(at, one, depth - 1) for one in (node.left, node.right))
        case ast.Tuple() | ast.List():
            return any(_as_requests(at, one, depth - 1) for one in node.elts)
        case ast.Call(func=ast.Name("max" | "min")):
            return any(_is_length(one) or _as_requests(at, one, depth - 1) for one in node.args)
    return False


def _is_length(node: ast.AST) -> bool:
    """len(one) for one in prompts"""
    elt = getattr(node, "elt", None)
    return isinstance(elt, ast.Call) and isinstance(elt.func, ast.Name) and elt.func.id == "len"


def _ranges(node: ast.AST) -> bool:
    """[torch.arange(start, start + n) for start, n in zip(starts, lengths)]."""
    if not isinstance(node, ast.ListComp | ast.GeneratorExp) or not isinstance(node.elt, ast.Call):
        return False
    own = {last_of(one) for item in node.generators for one in walk(item.target)} - {""}
    used = {last_of(one) for part in node.elt.args for one in walk(part)}
    return last_of(node.elt.func) == "arange" and bool(own & used)


def _caches(at: "State", node: ast.Call, method: str) -> None:
    """generate() of transformers, and a model that is given what it kept at the turn before: keys
    and values grow with each token.
    """
    given = {item.arg: item.value for item in node.keywords}
    if at.names.imports & NAMES["static_caches"] or "cache_implementation" in given:
        return
    if method == "generate" and ("transformers" in at.names.imports or given.keys() & GENERATES):
        owner = node.func.value  # type: ignore[attr-defined]
        once = getattr(given.get("max_new_tokens"), "value", 0) == 1
        if at.tensors.defined(node.func, at.scope) is None and not (once or _is_own(owner)):
            at.report("growing-cat", node.func, "keys and values grow with each token")
    elif last_of(node.func) == "Thread" and last_of(given.get("target", node)) == "generate":
        at.report("growing-cat", node.func, "keys and values grow with each token")
    elif at.steps == "loop" and isinstance(given.get("past_key_values"), ast.Name | ast.Attribute):
        at.report("growing-cat", node.func, "keys and values grow at each turn")
    elif at.functions[-1:] != ["forward"] and _keeps_cache(at, given.get("past_key_values")):
        at.report("growing-cat", node.func, "keys and values grow at each call")
    elif last_of(node.func) == "DynamicCache" and "transformers" in at.names.imports:
        at.report("growing-cat", node.func, "its keys and values grow with each token")
    elif method == "update" and CACHE.search(written(node.func).rpartition(".")[0]):
        if len(node.args) > KEYS_AND_VALUES:
            at.report("growing-cat", node.func, "keys and values grow, unless the cache is static")


def _keeps_cache(at: "State", node: ast.AST | None) -> bool:
    """self.cache, of `self.cache = outputs.past_key_values`."""
    text = written(node) if isinstance(node, ast.Attribute) else ""
    return any(
        isinstance(value, ast.Attribute) and value.attr == "past_key_values"
        for value, _ in at.names.attributes.get(text, ())
    )


def _is_own(owner: ast.AST) -> bool:
    """self or super(): the program's own loop, read where it is defined."""
    return written(owner) == "self" or (
        isinstance(owner, ast.Call) and last_of(owner.func) == "super"
    )


def _own(node: ast.Call) -> bool:
    """self.reshape(x): a method of the program that is named as a tensor's is."""
    return isinstance(node.func, ast.Attribute) and written(node.func.value) == "self"


def _counts(at: "State", node: ast.AST, depth: int = 3) -> bool:
    """A number of a loop over steps, or computed from one."""
    for item in walk(node):
        if not isinstance(item, ast.Name) or at.kind(item) in ("tensor", "maybe"):
            continue
        if item.id in at.counters:
            return True
        if depth and at.counters and at.scope.find(item.id) is at.scope:
            for one in reaching(at, item):
                if one.kind == "value" and one.node is not None:
                    if _is_number(at, one.node) and _counts(at, one.node, depth - 1):
                        return True
    return False


def _is_number(at: "State", node: ast.AST) -> bool:
    """A sum, or what a function returns that computes numbers: min(1.0, step / total)."""
    if isinstance(node, ast.BinOp):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = at.dotted(node.func)
    return (
        name in ("min", "max", "int", "float", "round", "pow")
        or name.startswith(("math.", "numpy."))
        or SCHEDULE.search(last_of(node.func)) is not None
    ) and at.kind(node) not in ("tensor", "maybe")


def _given_counter(at: "State", node: ast.AST) -> bool:
    """A parameter for which a loop over steps gives the number of its turn."""
    home = at.scope
    kept = home.names.get(node.id, ()) if isinstance(node, ast.Name) else ()
    if len(kept) != 1 or not isinstance(kept[0].node, ast.arg) or home.kind != "function":
        return False
    for given, scope in at.tensors.given_at_calls(kept[0].node, home):
        caller = getattr(scope.node, "name", "")
        if not isinstance(given, ast.Name) or not scope.loops or caller == "forward":
            continue
        for loop in walk(scope.node):
            if isinstance(loop, ast.For | ast.While) and given.id in counters(loop):
                inside = loop.lineno <= given.lineno <= (loop.end_lineno or 0)
                if inside and is_step_loop(loop, [caller]):
                    return True
    return False


def _changed(at: "State", node: ast.AST) -> bool:
    """self.scale, a number that a method changes: self.scale *= 2."""
    owner = at.scope.owner()
    if isinstance(node, ast.UnaryOp):
        return _changed(at, node.operand)
    if isinstance(node, ast.BinOp):  # 2 ** self.scale
        return _changed(at, node.left) or _changed(at, node.right)
    if isinstance(node, ast.Call) and at.dotted(node.func).startswith(("math.", "float")):
        return any(_changed(at, one) for one in node.args)
    if isinstance(node, ast.Subscript):  # state["step"]
        return ast.unparse(node) in at.names.counted
    if not isinstance(node, ast.Attribute):
        return False
    if written(node.value) != "self" or owner is None:
        return written(node) in at.names.counted
    if (owner, node.attr) in at.names.changed:
        return True
    for item in owner.names.get(node.attr, ()):
        match item.node:
            case ast.FunctionDef(body=[*_, ast.Return(value=ast.Attribute() as value)]):
                if item.node.decorator_list and (owner, value.attr) in at.names.changed:
                    return True
    return False


def _drawn(at: "State", node: ast.AST, depth: int = 3) -> bool:
    """A number that Python or numpy drew at random: lam of mixup."""
    match node:
        case ast.Call(func=ast.Name("float" | "int" | "max" | "min"), args=[*parts]) if depth:
            return any(_drawn(at, one, depth - 1) for one in parts)
        case ast.Call():
            shaped = {"size"} & {item.arg for item in node.keywords}
            return draws(at, node) and not shaped
        case ast.IfExp() if depth:
            return any(_drawn(at, one, depth - 1) for one in (node.body, node.orelse))
        case ast.BinOp() if depth:
            return any(_drawn(at, one, depth - 1) for one in (node.left, node.right))
        case ast.Name() if depth:
            return any(
                item.kind == "value" and item.node is not None and _drawn(at, item.node, depth - 1)
                for item in reaching(at, node)
            )
    return False


def _repeated(node: ast.expr) -> list[ast.expr]:
    """step of [step] * 8, of [step] and of step itself."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        node = node.left if isinstance(node.left, ast.List) else node.right
    if isinstance(node, ast.List):
        return node.elts[:1] if len(node.elts) == 1 else []
    return [node] if isinstance(node, ast.Name) else []


def _changes(at: "State", node: ast.AST) -> bool:
    """What a tensor is filled with is the number of a turn, or an element that is picked by one."""
    if _counts(at, node):
        return True
    if isinstance(node, ast.Subscript):
        picked = node.slice
        if isinstance(picked, ast.Name) and PICKED.search(picked.id):
            return True
        return any(_by_turn(at, item) for item in walk(picked))
    return _by_turn(at, node) and at.kind(node) != "tensor"


def _was_read(at: "State", node: ast.AST) -> bool:
    """What a tensor is filled with was read from one."""
    return at.kind(node) != "tensor" and from_values(at, node)


def _by_turn(at: "State", node: ast.AST) -> bool:
    kept = reaching(at, node) if isinstance(node, ast.Name) and at.loops else []
    return any(item.kind == "loop" or _counted(item) for item in kept)


def _counted(item: Binding) -> bool:
    return item.kind == "count"


def _past(at: "State", node: ast.AST) -> bool:
    """The length of what is kept from call to call: past[0].size(-2), which grows."""
    for item in walk(node):
        if not isinstance(item, ast.Name):
            continue
        for one in reaching(at, item):
            added = one.node.value if isinstance(one.node, ast.AugAssign) else one.node
            match added:
                case ast.Call(func=ast.Attribute(attr="size", value=kept)):
                    pass
                case ast.Subscript(value=ast.Attribute(attr="shape", value=kept)):
                    pass
                case _:
                    continue
            if _is_past(at, kept):
                return True
    return False


def _random(at: "State", node: ast.AST, depth: int = 16) -> bool:
    """A number that Python drew at random, which is another at each step."""
    if depth == 0:
        return False
    match node:
        case ast.Call():
            if draws(at, node):
                return True
            return last_of(node.func) in ROUNDS and any(
                _random(at, one, depth - 1) for one in node.args
            )
        case ast.BinOp():
            return any(_random(at, one, depth - 1) for one in (node.left, node.right))
        case ast.Tuple() | ast.List():
            return any(_random(at, one, depth - 1) for one in node.elts)
        case ast.ListComp():
            return _random(at, node.elt, depth - 1)
        case ast.Name():
            kept = at.scope.bindings(node.id)
            return bool(kept) and all(
                item.kind == "value" and item.node is not None and _random(at, item.node, depth - 1)
                for item in kept
            )
    return False


def _padded(at: "State", node: ast.Call, name: str, method: str) -> None:
    """Batches that are as long as the longest of their samples, in the loader as well."""
    last = name.split(".")[-1]
    given = {item.arg: item.value for item in node.keywords}
    if name.startswith("torch.") and last in PACKS and "total_length" not in given:
        at.report("data-dependent-shape", node.func, "as long as the longest of the batch")
        return
    owner = written(node.func.value).split(".")[-1] if method else ""  # type: ignore[attr-defined]
    pads = COLLATOR.match(last) or (method == "pad" and TOKENIZER.search(owner))
    if pads and "pad_to_multiple_of" not in given:
        if getattr(given.get("padding"), "value", "") != "max_length":
            at.report("data-dependent-shape", node.func, "as long as the longest of the batch")
        return
    chained = method == "batched" and isinstance(node.func.value, ast.Call)  # type: ignore[attr-defined]
    if chained and at.names.imports & NAMES["stream_loaders"] and len(node.args) == 1:
        if "partial" not in given:
            at.report("input-length", node.func, "the last batch holds what is left", "note")
        return
    kept = given.get("drop_last")
    if _is_false(at, kept):
        if last != "DataLoader" and isinstance(given["drop_last"], ast.Constant) and at.functions:
            at.report(
                "input-length", given["drop_last"], "the last batch holds what is left", "note"
            )
        del given["drop_last"]
    if last == "DataLoader":
        _collated(at, given.get("collate_fn"))
    if last == "DataLoader" and not given.keys() & {"drop_last", "batch_sampler", None}:
        size = given.get("batch_size") or (node.args[1] if len(node.args) > 1 else ast.Constant(1))
        whole = _draws_a_number(at, given.get("sampler"))
        if getattr(size, "value", 2) not in (None, 1) and len(node.args) < DROPS and not whole:
            at.report(
                "input-length", kept or node.func, "the last batch holds what is left", "note"
            )
        return
    if "return_tensors" in given and not given.keys() & {"pad_to_multiple_of", None}:
        if getattr(given.get("padding"), "value", None) in (True, "longest"):
            at.report("input-length", node.func, "as long as the longest of the batch")
        return
    if last.endswith("TrainingArguments") and not given.keys() & {"dataloader_drop_last", None}:
        at.report("input-length", node.func, "the last batch holds what is left", "note")
        return
    if last in ("tuple", "list") and _keeps_sizes(at, node):
        at.report("data-dependent-shape", node.func, "each sample keeps a size of its own")
        return
    if last in (*MADE, "arange") and name.startswith("torch."):
        sizes = node.args[:1] if last == "full" else node.args
        if any(_longest(at, size) for size in sizes):
            at.report("data-dependent-shape", node.func, "as long as the longest of the batch")
        elif not on_host(at) and not ("device" in given and at.on_cpu(node)):
            # Without a device it is filled on the CPU first, and goes there as it is.
            if any(_as_requests(at, one) for one in [*sizes, given.get("size")] if one):
                at.report("input-length", node.func, "as long as the requests make it")


def _collated(at: "State", node: ast.expr | None) -> None:
    """collate_fn=TextCollator(tokenizer), of another file: texts of a batch, each of its length."""
    if not isinstance(node, ast.Call) or COLLATOR.match(last_of(node.func)):
        return
    given = [*node.args, *(item.value for item in node.keywords)]
    texts = any(TOKENIZER.search(last_of(one)) for one in given)
    if texts and at.tensors.defined(node.func, at.scope) is None:
        at.report("input-length", node, "as long as the longest of the batch", "note")


def _is_false(at: "State", node: ast.AST | None) -> bool:
    """False, a parameter that is False by default, or settings.get("drop_last", False)."""
    match node:
        case ast.Call(func=ast.Attribute(attr="get"), args=[_, default]):
            return getattr(default, "value", True) is False
    kept = at.scope.bindings(node.id) if isinstance(node, ast.Name) else []
    if len(kept) == 1 and isinstance(kept[0].node, ast.arg):
        node = default_of(at.scope.node, kept[0].node)
    return isinstance(node, ast.Constant) and node.value is False


def _draws_a_number(at: "State", node: ast.AST | None) -> bool:
    """A RandomSampler that is told how many samples to draw: whole batches, as a rule."""
    kept = at.scope.bindings(node.id) if isinstance(node, ast.Name) else []
    for made in [node, *(item.node for item in kept)]:
        if isinstance(made, ast.Call) and last_of(made.func).endswith("RandomSampler"):
            return len(made.args) > 2 or any(item.arg == "num_samples" for item in made.keywords)
    return False


def _keeps_sizes(at: "State", node: ast.Call) -> bool:
    """tuple(zip(*batch)) of a collate function: samples that are not made one tensor."""
    collates = any("collat" in one.lower() for one in _within(at))
    match node.args:
        case [ast.Call(func=ast.Name("zip"), args=[ast.Starred()])]:
            if isinstance(at.scope.node, ast.Lambda):
                return at.scope.node.body is node
            ends = (one for one in walk(at.scope.node) if isinstance(one, ast.Return))
            return collates and any(one.value is node for one in ends)
    return False


def _longest(at: "State", node: ast.AST, depth: int = 6) -> bool:
    """max(len(sample) for sample in batch), max(lengths)."""
    if depth == 0:
        return False
    match node:
        case ast.Call(func=ast.Name("max"), args=[ast.ListComp() | ast.GeneratorExp() as item]):
            sized = item.elt
            if isinstance(sized, ast.Call) and last_of(sized.func) in ("len", "size"):
                return True
            return isinstance(sized, ast.Subscript) and last_of(sized.value) == "shape"
        case ast.Call(func=ast.Name("max"), args=[ast.Name() | ast.Attribute() as item]):
            collates = any("collat" in one.lower() for one in _within(at))
            lengths = LENGTHS.search(last_of(item)) or TRIED.search(last_of(item))
            return lengths is not None and (collates or at.kind(item) != "tensor")
        case ast.Call(func=ast.Name("min" | "int")):
            return any(_longest(at, one, depth - 1) for one in node.args)
        case ast.Tuple() | ast.List():
            return any(_longest(at, one, depth - 1) for one in node.elts)
        case ast.BinOp():
            return any(_longest(at, one, depth - 1) for one in (node.left, node.right))
        case ast.Name():
            kept = at.scope.bindings(node.id)
            if PADDED.match(node.id) and any("collat" in one.lower() for one in _within(at)):
                # input_lengths[0] of samples that are sorted, and rounded up
                return not any(isinstance(one.node, ast.Constant | ast.arg) for one in kept)
            return (
                len(kept) == 1
                and kept[0].node is not None
                and kept[0].kind == "value"
                and (_longest(at, kept[0].node, depth - 1))
            )
    return False


def _read_list(at: "State", name: str) -> bool:
    """The name holds [x.item() for x in xs]."""
    return any(
        isinstance(item.node, ast.ListComp)
        and isinstance(item.node.elt, ast.Call)
        and last_of(item.node.elt.func) in ("item", "tolist")
        for item in at.scope.bindings(name)
    )


def _is_listed(at: "State", node: ast.expr) -> bool:
    """A list that a comprehension made: of the sizes of what is at hand."""
    if isinstance(node, ast.Name):
        kept = at.scope.bindings(node.id)
        if len(kept) == 1 and isinstance(kept[0].node, ast.ListComp):
            return True
        if any(
            isinstance(one.node, ast.Call) and last_of(one.node.func) == "tolist" for one in kept
        ):
            return True
    return isinstance(node, ast.ListComp) or LENGTHS.search(last_of(node)) is not None


def _format(at: "State", node: ast.Call, name: str, method: str) -> None:
    if on_host(at) and at.functions[-1:] != ["__init__"]:
        return
    if any(
        isinstance(made, ast.Call) and TRANSFORMED.search(at.dotted(made.func))
        for made, _ in at.names.attributes.get(written(node.func), ())
    ):
        at.report("fft", node.func)
        return
    if (
        name.startswith(("torch.fft", "torch.stft", "torch.istft", "torch.rfft", "torch.irfft"))
        or (
            not name.startswith("torch.")
            and method in ("stft", "istft", "rfft", "irfft")
            and at.kind(node.func.value) == "tensor"  # type: ignore[attr-defined]
        )
        or TRANSFORMED.search(name)
    ):
        if not name.endswith(("freq", "shift")) and (
            TRANSFORMED.search(name) or not _starts_on_cpu(at, node, name)
        ):
            at.report("fft", node.func)
        return
    if name in NAMES["complex_functions"]:
        at.report("complex-numbers", node.func)
        return
    if method == "double" and not node.args and at.kind(node.func) != "host":
        if not at.on_cpu(node.func) and not name.startswith("torch."):
            at.report("float64", node.func)
    if method == "register_buffer" or name in (
        "torch.nn.Parameter",
        "torch.nn.parameter.Parameter",
    ):
        for kept in node.args[int(method == "register_buffer") :][:1]:
            typed = [item.value for item in getattr(kept, "keywords", ()) if item.arg == "dtype"]
            if _is_wide_array(at, kept) or any(at.dotted(one) in DOUBLE for one in typed):
                at.report("float64", node.func, "it goes to the device with its module")
    if method == "float" and not node.args and _moved_array(at, node.func.value):  # type: ignore[attr-defined]
        at.report("float64", node.func, "an array of numpy is cast after its move to the device")
    if method in ("to", "cuda") and not moves_to_host(node) and not _names_dtype(at, node):
        if _is_wide_array(at, node.func.value):  # type: ignore[attr-defined]
            at.report("float64", node.func, "arrays of numpy are float64")
    kinds = [item.value for item in node.keywords if item.arg in ("dtype", "torch_dtype")]
    if method in ("to", "type") or name == "torch.set_default_dtype":
        kinds += node.args
    if name == "torch.set_default_tensor_type" and node.args:
        kind_of = node.args[0]
        if "DoubleTensor" in (last_of(kind_of) or str(getattr(kind_of, "value", ""))):
            at.report("float64", node.func)
    for kind in kinds:
        if isinstance(kind, ast.Attribute | ast.Name):
            full = at.dotted(kind)
            if full in DOUBLE and not at.on_cpu(node):
                at.report("float64", kind)
            elif full in NAMES["complex_types"]:
                at.report("complex-numbers", kind)
    if name == "torch.iinfo" and node.args:
        if at.dotted(node.args[0]) in ("torch.int64", "torch.long"):
            at.report("int64-range", node.func)
    elif name.startswith("torch.") and "seed" not in name and not at.on_cpu(node):
        for part in node.args:
            if _wide(part):
                at.report("int64-range", part)


def _moved_array(at: "State", node: ast.AST) -> bool:
    """torch.from_numpy(table).to(device)[steps], of a parameter."""
    while isinstance(node, ast.Subscript):
        node = node.value
    match node:
        case ast.Call(func=ast.Attribute(attr="to" | "cuda", value=ast.Call(args=[one]) as made)):
            plain = at.dotted(made.func) == "torch.from_numpy" and not _names_dtype(at, node)
            return plain and isinstance(one, ast.Name | ast.Attribute)
    return False


def _names_dtype(at: "State", node: ast.Call) -> bool:
    """x.to(device, torch.float32), x.to(dtype=torch.float32)."""
    given = [*node.args, *(item.value for item in node.keywords if item.arg == "dtype")]
    return any(at.dotted(one).startswith("torch.") for one in given) or any(
        item.arg == "dtype" for item in node.keywords
    )


def _is_wide_array(at: "State", node: ast.AST, depth: int = 4) -> bool:
    """torch.from_numpy(x.astype(np.float64)), torch.from_numpy(np.linspace(0, 1))."""
    match node:
        case ast.Name() if depth:
            return all_kept(at, node, lambda kept: _is_wide_array(at, kept, depth - 1))
        case ast.Call(func=ast.Attribute(attr="astype"), args=[kind, *_]):
            words = ("numpy.float64", "numpy.double", "float", "float64", "double")
            return (at.dotted(kind) or getattr(kind, "value", "")) in words
        case ast.Call(func=ast.Attribute(attr="unsqueeze" | "reshape" | "view", value=one)):
            return _is_wide_array(at, one, depth - 1)
        case ast.Call():
            name = at.dotted(node.func)
            if name in ("torch.from_numpy", "torch.as_tensor") and len(node.args) == 1:
                return not node.keywords and _is_wide_array(at, node.args[0], depth - 1)
            typed = any(item.arg == "dtype" for item in node.keywords)
            return WIDE_ARRAYS.search(name) is not None and not typed
    return False


def _starts_on_cpu(at: "State", node: ast.Call, name: str) -> bool:
    """The first argument of a function of torch, or the owner of a method, is on the CPU."""
    if name.startswith("torch.") or not isinstance(node.func, ast.Attribute):
        return bool(node.args) and at.on_cpu(node.args[0])
    return at.on_cpu(node.func.value)


def _wide(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=int(number)):
            return abs(number) >= WIDE
        case ast.UnaryOp():
            return _wide(node.operand)
        case ast.BinOp(op=ast.LShift() | ast.Pow(), left=ast.Constant(value=int(left))):
            right = getattr(node.right, "value", 0)
            return left > 0 and isinstance(right, int) and right >= 31
        case ast.BinOp(op=ast.Sub() | ast.Add()):
            return _wide(node.left)
    return False


def imagined(at: "State", node: ast.Attribute) -> None:
    """z.imag of a tensor."""
    if at.torch and not on_host(at) and at.kind(node.value) != "host" and not at.on_cpu(node.value):
        if at.kind(node.value) == "tensor" or not at.names.imports & NAMES["array_libraries"]:
            at.report("complex-numbers", node)


def computed(at: "State", left: ast.expr, right: ast.expr) -> None:
    """A tensor and a wide integer, or a Python number that changes at each step."""
    if not at.torch or on_host(at):
        return
    for one, other in ((left, right), (right, left)):
        if isinstance(one, ast.Constant) and isinstance(one.value, complex):
            plain = not at.kind(other) and only_torch(at)
            if (at.kind(other) == "tensor" or plain) and not at.on_cpu(other):
                at.report("complex-numbers", one)
        if _wide(one) and at.kind(other) == "tensor" and not at.on_cpu(other):
            at.report("int64-range", one)
        if isinstance(one, ast.Constant) or at.kind(other) != "tensor" or at.on_cpu(other):
            continue
        if at.kind(one) in ("tensor", "maybe", "module"):
            continue
        if (
            (isinstance(one, ast.Name | ast.BinOp) and _counts(at, one))
            or (
                isinstance(one, ast.Subscript)
                and (at.kind(one.value) in ("host", "many") or SCHEDULE.search(written(one.value)))
                and _counts(at, one.slice)
            )
            or (isinstance(one, ast.Name) and at.steps == "function" and _positions(at, one))
            or _given_counter(at, one)
            or _changed(at, one)
            or _drawn(at, one)
            or _turned(at, one)
        ):
            at.report("python-number", one)


def divided(at: "State", loss: ast.expr, count: ast.expr) -> None:
    """loss / num_pairs of a batch, a number that a function of the batch counted."""
    if not at.torch or not at.functions or on_host(at):
        return
    named = isinstance(loss, ast.Name | ast.BinOp) and any(
        isinstance(one, ast.Name) and LOSS.search(one.id) for one in walk(loss)
    )
    if named and not isinstance(count, ast.Constant) and _counts_batch(at, count):
        at.report("python-number", count, "as many as the batch holds")


def _counts_batch(at: "State", node: ast.AST, depth: int = 6) -> bool:
    """max(len(pairs), 1) of a parameter, or the second of `loss, num_pairs = count(batch)`."""
    match node:
        case ast.Call(func=ast.Name("len"), args=[ast.Name() as one]):
            if SETS.search(one.id):
                return False  # as many at each step
            kept = at.scope.bindings(one.id)
            return bool(kept) and all(
                item.kind == "parameter" and at.kind(one) not in ("host", "module") for item in kept
            )
        case ast.Call(func=ast.Name("max" | "float"), args=args) if depth:
            return any(_counts_batch(at, one, depth - 1) for one in args)
        case ast.BinOp() if depth:
            return any(_counts_batch(at, one, depth - 1) for one in (node.left, node.right))
        case ast.Name(name) if depth and at.kind(node) not in ("tensor", "maybe"):
            return any(
                (item.kind == "part" and isinstance(item.node, ast.Call) and COUNT.match(name))
                or (
                    item.kind == "value"
                    and item.node is not None
                    and item.node is not node
                    and _counts_batch(at, item.node, depth - 1)
                )
                for item in reaching(at, node)
            )
    return False


def compared(at: "State", node: ast.Compare) -> None:
    """scores > threshold, a number that was read from the device: each is a constant of a graph."""
    if not at.torch or on_host(at) or at.traced or len(node.comparators) != 1:
        return
    for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        if isinstance(one, ast.Name) and at.kind(other) == "tensor" and not at.on_cpu(other):
            if at.kind(one) not in ("tensor", "maybe") and from_values(at, one):
                at.report("python-number", one, "a number that was read from a tensor")


def _cuts(at: "State", node: ast.Subscript) -> None:
    """[one[:least] for one in masks] of a collator, where least is how many a batch keeps."""
    if not isinstance(at.scope.node, ast.ListComp) or not isinstance(node.slice, ast.Slice):
        return
    end = node.slice.upper
    for item in at.scope.bindings(end.id) if isinstance(end, ast.Name) else ():
        match item.node:
            case ast.Call(func=ast.Name("min" | "max"), args=args):
                if any(isinstance(one, ast.Call) and last_of(one.func) == "len" for one in args):
                    at.report("input-length", node, "as many as the samples of a batch keep")
                    return


def sliced(at: "State", node: ast.Subscript) -> None:
    """x[:n] where n is read from a tensor, or is another number at each step."""
    if not at.torch:
        return
    if on_host(at) or node in at.reported:
        _cuts(at, node)
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    kind = at.kind(node.value)
    if kind == "tensor" and not at.on_cpu(node.value):
        for part in parts:
            if (isinstance(part, ast.Name | ast.BinOp) and _counts(at, part)) or (
                _given_counter(at, part) or _changed(at, part)
            ):
                at.report("python-number", node, "each index is a graph of its own")
                return
            if isinstance(part, ast.Name) and at.kind(part) != "tensor" and from_values(at, part):
                at.report("python-number", node, "an index that was read, each a graph of its own")
                return
    for part in parts:
        if not isinstance(part, ast.Slice):
            continue
        if _is_behind_prompt(at, node.value, part):
            at.report("input-length", node, "what was generated, as long as it became")
            return
        if kind == "tensor" and _is_chunk(at, part) and not at.on_cpu(node.value):
            at.report("input-length", node, "the last chunk is shorter")
            return
        for end in filter(None, (part.lower, part.upper)):
            placed = _kept_place(at, end) or _is_place(at, end)
            if kind != "host" and placed and not at.on_cpu(node.value):
                at.report("python-number", node, "each place of the slice is a graph of its own")
                return
            own = kind == "tensor" or (not kind and len(parts) > 1)
            if own and part.lower is None and _is_own_length(at, end) and not at.on_cpu(node.value):
                at.report("input-length", node, "each has its own length")
                return
            if kind == "tensor" and None in (part.lower, part.upper) and _is_told(at, end):
                at.report("input-length", node, "as many as a batch of requests holds")
                return
            if kind != "host" and _is_accepted(at, end) and not at.on_cpu(node.value):
                at.report("data-dependent-shape", node, "as long as what was accepted")
                return
            if from_values(at, end) and at.kind(node.value) != "host" and not at.on_cpu(node.value):
                at.report("data-dependent-shape", node, "the end of a slice is read from a tensor")
                return
            kept = not kind and at.functions[-1:] == ["forward"] and _positions(at, end)
            if (kind != "tensor" and not kept) or at.on_cpu(node.value):
                continue
            if (
                _counts(at, end)
                or _given_counter(at, end)
                or _changed(at, end)
                or _picks(at, end)
                or _past(at, end)
                or (
                    part.step is None
                    and (_positions(at, end) or (part.lower is None and _turn(at, end)))
                )
            ):
                opened = part.lower is None or part.upper is None
                rule = "input-length" if opened else "python-number"
                at.report(rule, node, "each length of the slice is a shape of its own")
                return
            if not at.loops and part.lower is None and _is_tallied(at, end):
                at.report("data-dependent-shape", node, "the end of a slice is how many were kept")
                return
            if _is_counted(at, end) or any(
                counts_found(at, one) for one in walk(end) if not isinstance(one, ast.Name)
            ):
                at.report("data-dependent-shape", node, "the end of a slice is how many were found")
                return
            if _each_length(at, end):
                at.report("data-dependent-shape", node, "each row has its own length")
                return
            if _random(at, end) and None in (part.lower, part.upper):
                at.report("data-dependent-shape", node, "the end of a slice is drawn at random")
                return


def _is_told(at: "State", node: ast.AST) -> bool:
    """metadata.num_prefill_tokens, of a parameter of forward: how a batch is made up."""
    match node:
        case ast.Attribute(value=ast.Name(owner)) if at.functions[-1:] == ["forward"]:
            kept = at.scope.bindings(owner)
            given = bool(kept) and all(item.kind == "parameter" for item in kept)
            return given and owner not in ("self", "args") and owner not in NAMES["settings"]
    return False


def _is_own_length(at: "State", node: ast.AST) -> bool:
    """length of `for x, length in zip(xs, lengths)`."""
    if not isinstance(node, ast.Name) or not LENGTH.search(node.id):
        return False
    return any(
        item.kind == "loop" and isinstance(item.node, ast.Call) and last_of(item.node.func) == "zip"
        for item in reaching(at, node)
    )


def _is_tallied(at: "State", node: ast.AST) -> bool:
    """count, of `count += 1` in a while loop."""
    names = {node.id} if isinstance(node, ast.Name) else set()
    return any(
        isinstance(loop, ast.While) and names & {name for one in loop.body for name in _add_to(one)}
        for loop in walk(at.scope.node)
    )


def _is_accepted(at: "State", node: ast.AST) -> bool:
    """accept_length of speculative decoding, a parameter: another at each step."""
    return only_torch(at) and any(
        isinstance(one, ast.Name)
        and ACCEPTED.search(one.id) is not None
        and all(item.kind == "parameter" for item in at.scope.bindings(one.id))
        for one in walk(node)
    )


def _each_length(at: "State", node: ast.AST) -> bool:
    """len(request.ids) in a loop over requests."""
    match node:
        case ast.Call(func=ast.Name("len"), args=[one]) if at.loops and at.kind(one) != "tensor":
            return any(
                item.kind == "loop"
                for name in walk(one)
                if isinstance(name, ast.Name)
                for item in reaching(at, name)
            )
    return False


def _turn(at: "State", node: ast.AST) -> bool:
    """The number of a turn of a loop over a range, beside what only settings and sizes are."""
    if not at.loops or at.functions[-1:] == ["forward"]:
        return False
    for item in walk(node):
        if isinstance(item, ast.Name):
            for one in reaching(at, item):
                if one.kind == "loop" and isinstance(one.node, ast.Call):
                    if last_of(one.node.func) in ("range", "trange") and len(one.node.args) > 1:
                        return True
    return False


def _turned(at: "State", node: ast.AST, depth: int = 3) -> bool:
    """A number of a turn of a loop over a range, or computed from one. A loop in forward is part
    of one graph, as often as not.
    """
    if not (at.loops and depth and at.functions) or at.functions[-1] == "forward":
        return False
    match node:
        case ast.BinOp():
            return any(_turned(at, one, depth) for one in (node.left, node.right))
        case ast.Call(func=ast.Name("min" | "max" | "int" | "float")):
            return any(_turned(at, one, depth) for one in node.args)
        case ast.Name():
            return at.kind(node) not in ("tensor", "maybe") and any(
                _goes_through_range(item)
                or _adds_one(item)
                or (item.kind == "value" and item.node and _turned(at, item.node, depth - 1))
                for item in reaching(at, node)
            )
    return False


def _picks(at: "State", node: ast.AST) -> bool:
    """An index that changes by turns; in a module the loop may as well be part of one graph."""
    owner = at.scope.owner()
    made = owner.node if owner is not None else None
    inside = isinstance(made, ast.ClassDef) and at.tensors.derives(made)
    return not inside and _turned(at, node)


def _adds_one(item: Binding) -> bool:
    """count += 1."""
    match item.node:
        case ast.AugAssign(op=ast.Add(), value=ast.Constant(value=int())):
            return True
    return False


def _goes_through_range(item: Binding) -> bool:
    """A loop over a range; not over the samples of a batch, which are as many each time."""
    over = _passed(item.node) if item.kind == "loop" else None
    if not isinstance(over, ast.Call) or last_of(over.func) not in ("range", "trange"):
        return False
    return not all(isinstance(one, ast.Constant) or FIXED.search(last_of(one)) for one in over.args)


def _passed(node: ast.AST | None) -> ast.AST | None:
    """range(n) of tqdm(range(n))."""
    while isinstance(node, ast.Call) and node.args and last_of(node.func) in PASSES - {"trange"}:
        node = node.args[0]
    return node


def _is_behind_prompt(at: "State", owner: ast.AST, part: ast.Slice) -> bool:
    """output_ids[:, prompt.shape[1] :], of what generate() gave."""
    if part.upper is not None or not _is_length_of(part.lower) or at.on_cpu(owner):
        return False
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    kept = reaching(at, owner) if isinstance(owner, ast.Name) else []
    return any(
        isinstance(one.node, ast.Call) and last_of(one.node.func) == "generate" for one in kept
    )


def _is_chunk(at: "State", part: ast.Slice) -> bool:
    """x[i : i + size], in `for i in range(0, len(x), size)`."""
    match part:
        case ast.Slice(
            lower=ast.Name() as start, upper=ast.BinOp(left=ast.Name(again), op=ast.Add()) as end
        ) if start.id == again:
            pass
        case _:
            return False
    for item in reaching(at, start):
        over = _passed(item.node) if item.kind == "loop" else None
        if isinstance(over, ast.Call) and last_of(over.func) == "range" and len(over.args) == 3:
            return ast.dump(over.args[2]) == ast.dump(end.right)
    return False


def _positions(at: "State", node: ast.AST) -> bool:
    """start_pos, a parameter: the place in a sequence that is decoded, another at each step."""
    forward = at.functions[-1:] == ["forward"]
    for item in walk(node):
        if isinstance(item, ast.Name) and (
            POSITION.search(item.id) or (forward and PICKED.search(item.id))
        ):
            kept = at.scope.bindings(item.id)
            if kept and all(one.kind == "parameter" for one in kept):
                return at.kind(item) != "tensor"
    return False


def _kept_place(at: "State", node: ast.AST) -> bool:
    """cache.current_length, a place that another object counts; self.start_idx."""
    for one in walk(node):
        if not isinstance(one, ast.Attribute) or at.kind(one) == "tensor":
            continue
        owner = written(one.value)
        moves = only_torch(at) and MOVES.search(one.attr) is not None
        counts = COUNTED.search(one.attr) is not None and (
            owner not in ("self", "cls", "") or one.attr.startswith("cur")
        )
        if (moves or counts) and owner.split(".")[-1].lower() not in NAMES["settings"]:
            return True
    return False


def _is_place(at: "State", node: ast.AST) -> bool:
    """offset of x[offset : offset + n], which was computed: where the sequence stands by now."""
    for one in walk(node):
        if isinstance(one, ast.Name) and PLACE.match(one.id) and at.kind(one) != "tensor":
            kept = reaching(at, one)
            if kept and all(item.kind in ("value", "parameter") for item in kept):
                return not any(isinstance(item.node, ast.Constant) for item in kept)
    return False


def _is_brought(at: "State", node: ast.AST) -> bool:
    """x of `x = y.cpu()`: on the CPU now, and its value is still one that the device computed."""
    kept = reaching(at, node) if isinstance(node, ast.Name) else []
    return any(
        isinstance(item.node, ast.Call)
        and moves_to_host(item.node)
        and not at.on_cpu(item.node.func.value)  # type: ignore[attr-defined]
        for item in kept
    )


def from_values(at: "State", node: ast.AST | None, depth: int = DEPTH) -> bool:
    """The number comes from the values of a tensor: x.item(), int(x.max()), lengths[i]."""
    if node is None or depth <= 0:
        return False
    match node:
        case ast.Constant() | ast.Slice():
            return False
        case ast.Tuple() | ast.List():
            return any(from_values(at, part, depth - 1) for part in node.elts)
        case ast.BinOp():
            return any(from_values(at, part, depth - 1) for part in (node.left, node.right))
        case ast.UnaryOp():
            return from_values(at, node.operand, depth - 1)
        case ast.Starred():
            return False
        case ast.Call():
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
                owner = node.func.value
                there = at.on_cpu(owner) and not _is_brought(at, owner)
                return not node.args and at.kind(owner) != "host" and not there
            if last_of(node.func) in ("int", "max", "min", "round", "sum") and node.args:
                if at.kind(node) == "tensor":
                    return not at.on_cpu(node)
                if at.tensors.element(node.args[0], at.scope) == "tensor":
                    return not at.on_cpu(node.args[0])
                if isinstance(node.args[0], ast.Name) and _read_list(at, node.args[0].id):
                    return True
                if _values(at, node.args[0]):
                    return True
                return any(from_values(at, part, depth - 1) for part in node.args)
            if _returns_values(at, node, depth):
                return True
        case ast.Subscript() if _values(at, node.value):
            return True
        case ast.Name():
            for item in reaching(at, node):
                if item.node is node:
                    continue
                if item.kind == "value" and from_values(at, item.node, depth - 1):
                    return True
                if item.kind == "loop" and item.node is not None:
                    if _values(at, _loop_source(item.node, item.path)):
                        return True
                if isinstance(item.node, ast.arg) and is_given(
                    at,
                    item.node,
                    lambda one: at.kind(one) != "tensor" and from_values(at, one, depth - 2),
                ):
                    return True
    return at.kind(node) == "tensor" and not at.on_cpu(node)


def _values(at: "State", node: ast.AST, depth: int = 3) -> bool:
    """A list of numbers that were read from a tensor of the device: lengths.tolist()."""
    match node:
        case ast.Call(func=ast.Attribute(attr="tolist", value=owner)):
            there = at.on_cpu(owner) and not _is_brought(at, owner)
            plain = not at.kind(owner) and only_torch(at)
            return (plain or at.kind(owner) in ("tensor", "maybe")) and not there
        case ast.Call(func=ast.Name("list" | "sorted" | "reversed"), args=[one]) if depth:
            return _values(at, one, depth - 1)
        case ast.Name() if depth:
            return any(
                item.kind == "value" and item.node is not None and _values(at, item.node, depth - 1)
                for item in reaching(at, node)
            )
    return False


def _loop_source(node: ast.AST, path: tuple[int, ...]) -> ast.AST:
    """What a target of a loop goes through: one of the arguments of zip."""
    if isinstance(node, ast.Call) and last_of(node.func) == "zip" and path:
        return node.args[path[0]] if 0 <= path[0] < len(node.args) else node
    return node


def _returns_values(at: "State", node: ast.Call, depth: int) -> bool:
    """The function of the tree returns a number that it reads from a tensor."""
    if at.kind(node) == "tensor":
        return False
    result = at.tensors.defined(node.func, at.scope)
    if result is None or not isinstance(result[1], ast.FunctionDef):
        return False
    tensors, function = result
    scope = tensors.names.scopes.get(function)
    if scope is None:
        return False
    ends = [item.value for item in walk(function) if isinstance(item, ast.Return) and item.value]
    with at.having(scope=scope, tensors=tensors, names=tensors.names):
        return (
            len(ends) == 1 and at.kind(ends[0]) != "tensor" and from_values(at, ends[0], depth - 1)
        )
