"""Checks for what waits on the device or compiles again: item, masks, decisions by a tensor."""

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from utils.audit.rules import NAMES
from utils.audit.scopes import Binding, walk, written
from utils.audit.tensor_forms import Made
from utils.audit.tensor_names import TOKENIZER, is_model_name, is_placed, moves_to_host

if TYPE_CHECKING:
    from utils.audit.state import State


MODULE = re.compile(r"(^|[._])(model|module|net|network|encoder|decoder|unet|vae|head)s?$|^$", re.I)
LAYER = re.compile(
    r"(^|[._])(layer|block|pipe|pipeline|embed|embedding|embeddings|embed_tokens|expert|backbone|ln_f|norm)$"
)
# Functions that read a tensor once: to save it, at the end of a program, or in a test.
SAVES = re.compile(
    r"^_?init|reset_parameters|save(?!_results?$)|load_|state_dict|(get|set|restore)_\w*state|checkpoint|export|convert",
    re.I,
)
ENDS = re.compile(r"^test|^main$|(^|_)post_init(_|$)", re.I)
# Methods whose result is a tensor if it is moved afterwards.
RESHAPES = {"squeeze", "flatten", "reshape", "clone", "float", "half", "transpose", "int", "long"}
MASK = re.compile(r"(^|_)masks?$|^(is_)?valid(_\w+)?$|^(padding|non_?pad\w*|selected)$")
# Methods of a mask that give a mask
MASKED = {"any", "all", "squeeze", "unsqueeze", "view", "to", "flatten", "reshape", "expand"}
MASKED |= {"scatter", "gather", "index_select", "roll", "flip", "T", "transpose", "numpy"}
MASKED |= {"expand_as", "repeat", "clone", "detach", "contiguous", "byte", "cuda", "permute", "t"}
LOGGER = re.compile(
    r"(^|[._])(\w*logger|log|logging|loguru|mlflow|swanlab|neptune|comet\w*|clearml|\w*writer|wandb|tensorboard|tb|pbar|progress_bar)$"
)
# Classes whose methods the loader runs on the host.
HOSTED = re.compile(r"(Dataset|Transforms?|Tokenizer|Augmentation)$|Collat(e|or)")
SAMPLE = re.compile(r"^(imgs?|images?|pic|sample|clip|video|frames?|data|results|item|example)$")
PREPARES = re.compile(r"(^|[/_])(transforms?|augment(ation)?s?|preprocess(ing)?)\.py$")
HOST_FILE = re.compile(
    r"(^|[/_])(datasets?|data_?(utils|loaders?|module|sets?|loading)|collat(e|or|ors))\.py$"
)
PLACES = {"torch.randperm", "torch.arange", "numpy.random.permutation", "numpy.arange"}
KEEPS = {"torch.from_numpy", "torch.autograd.Variable", "torch.as_tensor"}
SAME_LENGTH = {"squeeze", "flatten", "view", "reshape", "long", "to", "t", "unique", "type_as"}
SAME_LENGTH |= {"cuda", "detach", "clone", "int", "unsqueeze"}
VOCABULARY = re.compile(
    r"(itos|id\w*2\w+|i2w|ix_?to_?\w+|idx_?to_?\w+|int2\w+|class_names|(^|\.)classes|\w_list)$",
    re.I,
)
SAMPLERS = {"Sampler", "BatchSampler", "DistributedSampler"}
METER = re.compile(r"(^|[._])meter(_|s?$)|_meter", re.I)
STREAMER = re.compile(r"^Text(Iterator)?Streamer$")
SCHEDULER = re.compile(r"(scheduler|plateau)\w*$", re.I)
STOPS = re.compile(r"(ids?|tokens?)$")
SPARSE = re.compile(
    r"([.\w]+\.)*SparseConvTensor$|torch\.(nested\.\w+|sparse\.(Float|Double|Half)?Tensor|sparse_\w+_tensor|sparse\.(mm|addmm|softmax|sum))$"
)
UNPADS = re.compile(r"^_?(unpad_(input|qkv)\w*|upad_input|get_unpad_data)$")
OUTPUT = re.compile(
    r"^(output|generated|gen|pred|predicted|out)\w*_?(ids|tokens|sequences?)$|^(outputs|output)$"
)
FINDS = {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "combinations"}
REDUCES = {"sum", "mean", "max", "min", "norm", "abs", "any", "all", "prod"}
TEST = re.compile(r"^test(_\w+|\d*|[A-Z]\w*)$")
WRITES_OUT = re.compile(
    r"^(\w+_)?(tensor_?(2|to)_?(np|numpy|im|img|image|array|pil|list)|to_?(np|numpy|cpu|host))$",
    re.I,
)
TOKEN_IDS = re.compile(r"^(output|generated|pred)_(ids|tokens)$")
READER = 12  # statements of a function that reads a tensor on the way
SHORT = 6  # statements of a function that only reads a tensor
SUPPRESSES = re.compile(
    r"(^|_)nms(_(cpu|gpu|cuda|rotated|normal|normal_gpu))?$|^non_max(imum)?_suppression"
)


def is_hosted(node: ast.ClassDef) -> bool:
    """A class of samples or of what prepares them, which runs on the host."""
    bases = {written(base).split(".")[-1] for base in node.bases}
    hosted = any(map(HOSTED.search, {node.name, *bases})) or bool(bases & SAMPLERS)
    return (hosted or _transforms(node)) and "Module" not in bases


def _transforms(node: ast.ClassDef) -> bool:
    """A class without forward whose objects are called with a sample: RandomCrop(32)(image)."""
    named = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    if "forward" in named or "__call__" not in named:
        return False
    places = named["__call__"].args.args
    return len(places) > 1 and SAMPLE.search(places[1].arg) is not None


def serves_hosted(at: "State", node: ast.ClassDef) -> bool:
    """A class that only a collator or a data set of this file makes objects of."""
    callers = [scope.owner() for scope in at.tensors.uses.makers(node.name)]
    return bool(callers) and all(
        one is not None and isinstance(one.node, ast.ClassDef) and is_hosted(one.node)
        for one in callers
    )


def unit_tests(at: "State") -> frozenset[str]:
    """Functions that test something by asserting it, and functions that only they call."""
    if not any(name.startswith("test") for name in at.names.defined):
        return frozenset()
    tests = {
        function.name
        for function in at.names.scopes
        if isinstance(function, ast.FunctionDef)
        and TEST.match(function.name)
        and any(map(_asserts, walk(function)))
    }
    for _ in range(2):
        for name in at.names.defined - tests:
            calls = at.tensors.uses.calls(name) if tests else []
            callers = {getattr(scope.node, "name", "") for _, scope in calls}
            if callers and callers <= tests:
                tests.add(name)
    return frozenset(tests)


def _asserts(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or (
        isinstance(node, ast.Call) and written(node.func).split(".")[-1].startswith("assert")
    )


def is_traced(at: "State") -> bool:
    """The file is about programs that were traced for Neuron, and moves nothing to a device."""
    bound = (item.target for kept in at.names.module.names.values() for item in kept)
    traced = at.names.imports & NAMES["tracers"] or any(
        one.startswith("optimum.neuron") for one in bound
    )
    if not traced or at.names.imports & {"torch_xla", "neuronx_distributed"}:
        return False
    calls = (one for one in walk(at.names.module.node) if isinstance(one, ast.Call))
    # Who trains needs more than a program that was traced.
    return not any(
        getattr(one.func, "attr", "") in ("cuda", "backward") or is_placed(one) for one in calls
    )


def is_host_file(path: str, imports: set[str]) -> bool:
    """A file of data sets, by its name, or of what prepares samples, by its imports as well.

    >>> is_host_file("data/my_dataset.py", set()), is_host_file("transforms.py", {"numpy"})
    (True, False)
    """
    if PREPARES.search(path):
        return bool(imports & {"cv2", "PIL", "torchvision", "albumentations", "skimage", "librosa"})
    return HOST_FILE.search(path) is not None


def _asks_all(at: "State", test: ast.Call) -> bool:
    """(x > 0).all() or mask.any(), of tensors; of something unknown where no arrays are about."""
    if not isinstance(test.func, ast.Attribute) or test.func.attr not in ("all", "any"):
        return False
    owner = test.func.value
    kind = at.kind(owner)
    if at.on_cpu(owner):
        return False
    return kind in ("tensor", "maybe") or (
        not kind and isinstance(owner, ast.Compare | ast.Name) and only_torch(at)
    )


def on_host(at: "State") -> bool:
    """The code runs on the host anyway: its values cost nothing to read."""
    last = at.functions[-1] if at.functions else ""
    known = at.on_hosts.get((at.hosted, last))
    if known is None:
        known = at.on_hosts[at.hosted, last] = (
            at.host_file
            or at.hosted
            or last in NAMES["host_functions"]
            or "collate" in last
            or not at.unit_tests.isdisjoint(at.functions)
            or (last != "" and last in at.tensors.uses.closures)
        )
    return known


def is_periodic(test: ast.AST) -> bool:
    """The test holds once in a while: `step % 100 == 0`."""
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in walk(test))


def is_device_tensor(at: "State", node: ast.AST) -> bool:
    """Surely a tensor, and not one that is on the CPU anyway."""
    return at.kind(node) == "tensor" and not at.on_cpu(node)


def _by_reduction(at: "State", test: ast.AST) -> bool:
    """x.sum() != 0 in a module, of something unknown where no arrays are about."""
    parts = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    if not (at.steps or at.loops or at.functions) or not only_torch(at):
        return False
    for part in parts:
        match part:
            case ast.Call(func=ast.Attribute(attr=method, value=owner), args=[]) if (
                method in REDUCES and not part.keywords and not at.kind(owner)
            ):
                if isinstance(owner, ast.Attribute | ast.Name | ast.Compare) and not at.on_cpu(
                    owner
                ):
                    return True
    return False


def _reduces(test: ast.AST) -> bool:
    """mask.sum() > 0, of what forward is given."""
    left = test.left if isinstance(test, ast.Compare) else None
    return (
        isinstance(left, ast.Call)
        and isinstance(left.func, ast.Attribute)
        and left.func.attr in REDUCES
    )


def draws(at: "State", call: ast.Call) -> bool:
    """random.random() and the like: a number that Python or numpy draws."""
    module, _, name = at.dotted(call.func).rpartition(".")
    return module in ("random", "numpy.random") and name in NAMES["draws"]


def _chance(at: "State", test: ast.Compare) -> bool:
    """random.random() < 0.5."""
    parts = [test.left, *test.comparators]
    return any(isinstance(one, ast.Call) and draws(at, one) for one in parts)


def _draws(at: "State", test: ast.Call) -> bool:
    """self.survives(), a method or function of this file that draws at random."""
    owner = at.scope.owner()
    last = written(test.func).split(".")[-1]
    homes = [owner, at.names.module] if owner is not None else [at.names.module]
    for home in homes:
        for item in home.names.get(last, ()):
            if isinstance(item.node, ast.FunctionDef) and len(item.node.body) <= SHORT:
                calls = (one for one in walk(item.node) if isinstance(one, ast.Call))
                tensors = ("torch.bernoulli", "torch.rand")
                if any(draws(at, one) or at.dotted(one.func) in tensors for one in calls):
                    return True
    return False


def called(at: "State", node: ast.Call, name: str) -> None:
    """A call that waits for a value, or whose result has a shape that depends on values."""
    if not at.torch or on_host(at):
        return
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in ("all", "any", "max", "min"):
        if node.keywords or any(function.startswith("test") for function in at.functions):
            pass  # by a key or with a default: of a dictionary or a list; a test reads on purpose
        elif len(node.args) == 1 and _elements(at, node.args[0]) and not at.on_cpu(node.args[0]):
            at.report("tensor-control-flow", node, f"{name}() of Python reads each element")
        elif len(node.args) > 1 and any(is_device_tensor(at, one) for one in node.args):
            at.report("tensor-control-flow", node, f"{name}() of Python compares tensors")
    _reads(at, node, name, method)
    if method == "item" and not node.keywords and len(node.args) <= 1:
        _item(at, node)
    elif name in NAMES["conversions"] and len(node.args) == 1:
        if is_device_tensor(at, node.args[0]) or _is_reduced(at, node.args[0]):
            waits(at, node.func, f"{name}() of a tensor waits as .item() does")
    elif SUPPRESSES.search(name.split(".")[-1]) and not (node.args and at.on_cpu(node.args[0])):
        at.report("data-dependent-shape", node.func, "as many boxes are kept as there are")
    elif name.startswith("torch.") and node.args and at.on_cpu(node.args[0]):
        return
    elif (
        name.startswith("torch.")
        and name.split(".")[-1] in NAMES["shape_functions"]
        and name.count(".") == 1
    ):
        at.report("data-dependent-shape", node.func)
    elif SPARSE.match(name) or method in ("to_sparse", "coalesce"):
        at.report(
            "data-dependent-shape", node.func, "a sparse tensor holds as many elements as there are"
        )
    elif name.startswith("torch.distributed.") and "object" in name.split(".")[-1]:
        if (at.steps or at.loops) and not _on_cpu(node):
            at.report("data-dependent-shape", node.func, "as long as the pickled objects")
    elif UNPADS.search(method or name.split(".")[-1]):
        at.report("data-dependent-shape", node.func, "as many tokens as are no padding")
    elif name == "torch.optim.LBFGS":
        at.report("tensor-control-flow", node.func, "its line search decides by values")
    elif name == "torch.where" and len(node.args) == 1 and not node.keywords:
        at.report("data-dependent-shape", node.func, "torch.where with one argument is nonzero")
    elif name in ("torch.nn.functional.one_hot",) and len(node.args) == 1:
        if not any(keyword.arg == "num_classes" for keyword in node.keywords):
            at.report("data-dependent-shape", node.func, "without num_classes it reads the maximum")
    elif method in NAMES["shape_functions"] and name.split(".")[0] not in at.names.imports:
        _method(at, node, method)


def _is_metered(at: "State", node: ast.Call) -> bool:
    """top1.update(prec1[0], x.size(0)), losses.update(loss.data[0], n): one element, and of how
    many.
    """
    match node.args:
        case [ast.Subscript(slice=ast.Constant(value=0), value=owner), _]:
            return bool(at.steps or at.loops) and at.kind(owner) != "host" and not at.on_cpu(owner)
    return False


def _is_reduced(at: "State", node: ast.AST) -> bool:
    """state.get("x").abs().mean() where no arrays are about: a chain that only tensors have."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                attr="mean" | "sum" | "norm" | "max" | "min",
                value=ast.Call(func=ast.Attribute(attr="abs" | "norm" | "float")) as inner,
            ),
            args=[],
        ):
            return only_torch(at) and at.kind(inner) != "host" and not at.on_cpu(inner)
    return False


def _elements(at: "State", node: ast.expr) -> bool:
    """Python's all, any, max and min go through a tensor, or a list of tensors."""
    match node:
        case ast.GeneratorExp(elt=ast.UnaryOp(op=ast.Not(), operand=one)):
            inner = at.names.comprehension(node, node.generators, at.scope)
            with at.having(scope=inner):
                return is_device_tensor(at, one)  # any(not torch.isfinite(g).all() for g in grads)
    return at.kind(node) == "tensor" or at.tensors.element(node, at.scope) == "tensor"


def _reads(at: "State", node: ast.Call, name: str, method: str) -> None:
    """What brings a tensor to the host: x.cpu(), x.tolist(), print(x), np.asarray(x)."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if not at.steps and _reads_once(at):
        return
    if owner is not None and moves_to_host(node):
        if node not in at.reported and _moved(at, owner):
            waits(at, node.func, f".{method}() waits as .item() does")
    elif method in ("tolist", "numpy") and owner is not None and not node.args:
        if method == "numpy" and (_is_moved(at) or not (at.steps or at.kind(owner) == "tensor")):
            return  # of a tensor on a device it raises, so that this one is on the CPU
        kind = at.kind(owner)
        wanted = kind in ("tensor", "maybe", "batch") or (
            not kind
            and (
                (method == "numpy" and not at.names.imports & {"tensorflow", "jax"})
                or (only_torch(at) and isinstance(owner, ast.Name))
            )
        )
        if wanted and not at.on_cpu(owner) and not _is_fetched(owner):
            waits(at, node.func, f".{method}() waits as .item() does")
    elif name == "str" and node not in at.reported and (at.steps or at.loops):
        if len(node.args) == 1 and is_device_tensor(at, node.args[0]):
            waits(
                at, node.func, "the text holds the value of a tensor, which waits as .item() does"
            )
    elif (
        method in ("decode", "batch_decode", "ids_to_text")
        and owner is not None
        and at.kind(owner) != "tensor"
    ):
        # A streamer or criterion is called at each token; a text decoded once is no hazard.
        often = at.loops or at.steps or at.functions[-1:] == ["__call__"]
        if (often and node.args) and (
            TOKENIZER.search(written(owner))
            or _is_own_text(at, owner)
            or TOKEN_IDS.search(written(node.args[0]))
        ):
            last = _unsliced(node.args[0])
            named = OUTPUT.search(written(last).split(".")[-1]) is not None
            named = named and at.kind(node.args[0]) in ("", "maybe") and not _is_annotated(at, last)
            if is_device_tensor(at, node.args[0]) or (named and not at.on_cpu(node.args[0])):
                waits(at, node.func, "a tokenizer reads the tensor, and waits as .item() does")
    elif (at.steps or at.loops) and _helps_to_read(at, node):
        waits(at, node.func, "the function reads the tensor, and waits as .item() does")
    elif method == "add" and owner is not None and METER.search(written(owner)):
        if node.args and (at.steps or at.loops) and not at.on_cpu(node.args[0]):
            if at.kind(node.args[0]) in ("tensor", "maybe") or written(node.args[0]).endswith(
                ".data"
            ):
                waits(at, node.func, "a meter takes the value, and waits as .item() does")
    elif method == "add_batch" and (at.steps or at.loops):
        waits(at, node.func, "the metric takes the values, and waits as .item() does")
    elif method == "update" and _is_metered(at, node):
        waits(at, node.args[0], "a meter takes the value, and waits as .item() does")
    elif STREAMER.search(name.split(".")[-1]):
        at.report("host-read", node.func, "it reads each token as it comes", "note")
    elif method == "step" and owner is not None and len(node.args) == 1:
        if SCHEDULER.search(written(owner)) and is_device_tensor(at, node.args[0]):
            waits(at, node.func, "the scheduler reads the value, and waits as .item() does")
    elif name.split(".")[-1] == "save_image":
        first = node.args[0] if node.args else ast.Constant(0)
        own = name.startswith("torchvision.") and at.kind(first) != "host"
        often = at.loops or at.steps
        if (own or at.kind(first) == "tensor") and often and not at.on_cpu(first):
            waits(at, node.func, "it writes the values of a tensor, and waits as .item() does")
    elif owner is not None and (method == "get_scale" or _reads_scaler(method, owner)):
        if at.steps or at.loops or at.epochs:
            waits(at, node.func, "the scale of a gradient scaler is a tensor on the device")
    elif not name.startswith(("torch.", "math.", "numpy.", "tl.")) and (
        ((method or name) in NAMES["writes"] and not _is_of_library(at, name))
        or (owner is not None and _is_logger(owner))
    ):
        if method in ("log", "log_dict") and owner is not None and written(owner) == "self":
            _shows_bar(at, node)
            return  # else Lightning keeps the tensor until it logs
        for arg in [*node.args, *(item.value for item in node.keywords)]:
            if any(is_device_tensor(at, part) for part in _show(arg) if not _is_fetched(part)):
                at.reported.add(arg)
                shown = next(part for part in _show(arg) if is_device_tensor(at, part))
                waits(at, shown, "writing a tensor waits as .item() does")
                return
    elif name in ("math.isfinite", "math.isnan") and at.steps and _is_some_loss(at, node):
        waits(at, node.func, "it takes the value of a tensor, and waits as .item() does")
    elif name.startswith("numpy.") and _is_moved(at):
        return
    elif name.split(".")[0] in ("numpy", "math") or name == "range":
        if any(is_device_tensor(at, one) and not _is_parameter(at, one) for one in node.args):
            waits(at, node.func, "it takes the values of a tensor, and waits as .item() does")
    elif name in ("torch.full", "torch.full_like") and len(node.args) > 1:
        if is_device_tensor(at, node.args[1]):
            waits(
                at, node.func, "it is filled with the value of a tensor, and waits as .item() does"
            )
    elif name in ("torch.tensor", "torch.as_tensor") and node.args and not _on_cpu(node):
        if at.tensors.element(node.args[0], at.scope) == "tensor":
            if not isinstance(node.args[0], ast.List | ast.Tuple) and not at.on_cpu(node.args[0]):
                waits(at, node.func, "made of a list of tensors, it reads each of them")


def _shows_bar(at: "State", node: ast.Call) -> None:
    """self.log("loss", loss, prog_bar=True) in a step: Lightning reads it for its bar."""
    given = {item.arg: getattr(item.value, "value", None) for item in node.keywords}
    if at.steps and given.get("prog_bar") is True and len(node.args) > 1:
        if at.kind(node.args[1]) != "host" and not at.on_cpu(node.args[1]):
            at.report("host-read", node.func, "a progress bar reads it at each step")


def _is_own_text(at: "State", owner: ast.AST) -> bool:
    """An object of a class of the tree that is no module, and so decodes texts."""
    made = at.tensors.value(owner, at.scope)
    return isinstance(made, Made) and not made.tensors.derives(made.node)


def framed(at: "State", node: ast.Dict) -> None:
    """{"loss": loss, "log": {"psnr": psnr}} of a step of Lightning, which reads what it shows."""
    if at.steps != "function" or not at.names.imports & NAMES["loggers_of_steps"]:
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if getattr(key, "value", "") in ("log", "progress_bar") and at.kind(value) != "host":
            waits(at, value, "the framework reads what it logs or shows")


def _is_annotated(at: "State", node: ast.AST) -> bool:
    """A parameter that is said to be something, of which the inference knows no tensor."""
    kept = at.scope.bindings(node.id) if isinstance(node, ast.Name) else []
    return any(getattr(item.node, "annotation", None) is not None for item in kept)


def _unsliced(node: ast.AST) -> ast.AST:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _helps_to_read(at: "State", node: ast.Call) -> bool:
    """to_numpy(x), a short function of the tree that reads what it is given."""
    if len(node.args) != 1 or at.on_cpu(node.args[0]):
        return False
    kind = at.kind(node.args[0])
    result = at.tensors.defined(node.func, at.scope)
    if result is None and WRITES_OUT.search(written(node.func).split(".")[-1]):
        return kind in ("tensor", "maybe")
    function = result[1] if result is not None and kind == "tensor" else None
    if not isinstance(function, ast.FunctionDef) or len(function.body) > READER:
        return False
    given = [arg.arg for arg in function.args.args]
    for one in walk(function):
        if isinstance(one, ast.Attribute) and one.attr in ("item", "cpu", "tolist"):
            if written(one.value).split(".")[0] in given or _is_detached(one.value):
                return True
    return False


def _is_moved(at: "State") -> bool:
    """The file moves tensors between the CPU and a device, and so knows where they are."""
    if at.moved is None:
        calls = (one for one in walk(at.names.module.node) if isinstance(one, ast.Call))
        at.moved = any(
            getattr(one.func, "attr", "") in ("cuda", "cpu") or is_placed(one) for one in calls
        )
    return at.moved


def _on_cpu(node: ast.Call) -> bool:
    """device="cpu" is written there."""
    places = [item.value for item in node.keywords if item.arg == "device"]
    return any(isinstance(place, ast.Constant) and place.value == "cpu" for place in places)


def _reads_scaler(method: str, owner: ast.expr) -> bool:
    return method == "state_dict" and written(owner).lower().endswith("scaler")


def _is_parameter(at: "State", node: ast.AST) -> bool:
    """A parameter without an annotation: it may be an array as well."""
    kept = at.scope.bindings(node.id) if isinstance(node, ast.Name) else []
    return any(isinstance(item.node, ast.arg) and item.node.annotation is None for item in kept)


def _moved(at: "State", owner: ast.expr) -> bool:
    """What is moved to the host is a tensor of the device: not a model, not there already."""
    kind = at.kind(owner)
    text = written(owner)
    if kind in ("host", "module") or text == "self" or at.on_cpu(owner):
        return False
    if kind != "tensor" and LAYER.search(text):
        return False
    if kind == "tensor" or (kind == "maybe" and not text) or _is_detached(owner):
        return True
    if at.loops and isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute):
        if owner.func.attr in RESHAPES:
            return True
    modules = MODULE.search(text) or any(map(is_model_name, text.split(".")))
    return (bool(at.steps) and not kind) or not modules


def _is_some_loss(at: "State", node: ast.Call) -> bool:
    """math.isfinite(loss_value), where loss_value = sum(losses.values()) of some function's."""
    given = node.args[0] if node.args else None
    if not isinstance(given, ast.Name) or "loss" not in given.id:
        return False
    kept = reaching(at, given)
    sums = [item.node for item in kept if isinstance(item.node, ast.Call)]
    return at.kind(given) in ("", "tensor", "maybe", "many") and any(
        written(one.func) == "sum" and not at.on_cpu(given) for one in sums
    )


def _is_of_library(at: "State", name: str) -> bool:
    """torchaudio.info(path): a function of some library that is named as a logger's method is."""
    root = name.split(".")[0]
    return "." in name and root in at.names.imports and LOGGER.search(root) is None


def _is_logger(node: ast.AST) -> bool:
    return LOGGER.search(written(node)) is not None


def _is_detached(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "detach"
    )


def _is_fetched(node: ast.AST) -> bool:
    """x.cpu() is there already; the wait was counted."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("cpu", "item"):
            return True
        node = node.func.value
    return False


def _show(node: ast.AST) -> list[ast.expr]:
    """The values that an argument shows: of an f-string, of "{}".format(x), of a dictionary."""
    match node:
        case ast.JoinedStr():
            return [
                item.value
                for item in node.values
                if isinstance(item, ast.FormattedValue) and not _is_text_format(item)
            ]
        case ast.Call(func=ast.Attribute(attr="format")):
            return [*node.args, *(item.value for item in node.keywords)]
        case ast.BinOp(op=ast.Mod()):
            if not is_text(node.left):
                return [node]
            return node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        case ast.Dict():
            return list(node.values)
        case ast.Call(func=ast.Name("dict" | "str")):
            return [*node.args, *(item.value for item in node.keywords)]
    return [] if isinstance(node, ast.Constant | ast.List | ast.Tuple | ast.Starred) else [node]  # type: ignore[list-item]


def _is_text_format(item: ast.FormattedValue) -> bool:
    """f"{word:25s}": a text, or it would raise."""
    parts = item.format_spec.values if isinstance(item.format_spec, ast.JoinedStr) else []
    return bool(parts) and str(getattr(parts[-1], "value", "")).endswith("s")


def is_text(node: ast.expr) -> bool:
    """A text that is written there, "%s" or "%s" * 2 + "%d"."""
    return any(isinstance(getattr(one, "value", 0), str) for one in walk(node))


def formatted(at: "State", node: ast.expr) -> None:
    """f"{loss:.3f}" or "%.3f" % loss in a loop, wherever the text goes."""
    if not at.torch or on_host(at) or node in at.reported:
        return
    if any(is_device_tensor(at, part) for part in _show(node)):
        waits(at, node, "the text holds the value of a tensor, which waits as .item() does")


def _is_collected(at: "State", node: ast.AST) -> bool:
    """torch.stack(losses).tolist(): what a loop kept on the device is read once, as it should."""
    for call in walk(node):
        if isinstance(call, ast.Call) and at.dotted(call.func) in ("torch.stack", "torch.cat"):
            kept = call.args[0] if call.args else None
            if isinstance(kept, ast.Name):
                home = at.scope.find(kept.id)
                given = all(item.kind == "parameter" for item in at.scope.bindings(kept.id))
                return home is not None and (given or kept.id in home.added)
    return False


def _reads_once(at: "State") -> bool:
    if any(SAVES.search(function) for function in at.functions):
        return True
    plain = at.scope.parent is not None and at.scope.parent.kind == "module"
    if at.functions and plain and _by_makers(at, at.functions[-1]):
        return True
    return not (at.loops or at.epochs) and ENDS.search("".join(at.functions[-1:])) is not None


def _is_result(at: "State", node: ast.AST) -> bool:
    """What a loop over steps of the same function made is read behind it, once."""
    line = getattr(node, "lineno", 0)
    trains = any(
        isinstance(one, ast.Call) and getattr(one.func, "attr", "") == "backward"
        for one in walk(at.scope.node)
    )
    # A loop within a step gathers gradients: what is behind it is read at each step.
    return not trains and any(
        isinstance(loop, ast.For | ast.While)
        and (loop.end_lineno or line) < line
        and at.is_step_loop(loop)
        for loop in walk(at.scope.node)
    )


def _is_handed_over(at: "State", node: ast.AST) -> bool:
    """return x.cpu().numpy(): the result of a whole call leaves the device, as it must."""
    whole = isinstance(node, ast.Attribute) and node.attr in ("cpu", "numpy", "to")
    function = at.scope.node
    if not whole or at.steps or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    repeats = any(
        isinstance(loop, ast.For | ast.While | ast.ListComp | ast.GeneratorExp)
        and any(one is call for one in walk(loop))
        for call, scope in at.tensors.uses.calls(function.name)
        for loop in walk(scope.node)
    )
    return not repeats and _gives_back(function.body, getattr(node, "lineno", 0))


def _gives_back(body: list[ast.stmt], line: int) -> bool:
    """The statement at a line returns what it makes, or a later one returns its name."""
    for place, one in enumerate(body):
        if not one.lineno <= line <= (one.end_lineno or line):
            continue
        if isinstance(one, ast.If | ast.With | ast.Try):
            return _gives_back(one.body, line) or _gives_back(getattr(one, "orelse", []), line)
        if not isinstance(one, ast.Return | ast.Assign) or isinstance(one.value, ast.Dict):
            return False
        made = {n.id for n in walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return isinstance(one, ast.Return) or any(
            isinstance(end, ast.Return)
            and any(isinstance(name, ast.Name) and name.id in made for name in walk(end))
            for end in body[place + 1 :]
        )
    return False


def _by_makers(at: "State", function: str, depth: int = 4) -> bool:
    """All calls of the function in this file are made when something is made: in __init__."""
    calls = at.tensors.uses.calls(function) if depth else []
    makers = ("__init__", "post_init", "__post_init__")
    callers = [getattr(scope.node, "name", "") for _, scope in calls]
    return bool(callers) and all(
        name in makers or (name != function and _by_makers(at, name, depth - 1)) for name in callers
    )


def _item(at: "State", node: ast.Call) -> None:
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value
    if written(owner) == "self" or at.kind(owner) == "host" or at.on_cpu(owner):
        return
    if node.args and not isinstance(node.args[0], ast.Constant | ast.Name):
        return
    if node.args and isinstance(getattr(node.args[0], "value", 0), str):
        return
    waits(at, node.func, "")


def waits(at: "State", node: ast.AST, note: str) -> None:
    if at.traced:
        return  # a program that was traced for Neuron takes tensors of the CPU and returns them
    if not (at.loops or at.epochs):
        once = at.once or _reads_once(at) or _is_collected(at, node) or _is_result(at, node)
        if at.functions and not once and not _is_handed_over(at, node):
            at.report("host-read", node, note)
        return
    often = f"{note}; " if note else ""
    if at.periodic:
        at.report("item-in-loop", node, f"{often}once in some steps only", "note")
    elif not at.epochs:
        at.report("item-in-loop", node, note)


def _method(at: "State", node: ast.Call, method: str) -> None:
    """x.nonzero() of a tensor; of something unknown only where no arrays are about."""
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value
    if at.on_cpu(owner):
        return
    kind = at.kind(owner)
    keywords = {keyword.arg for keyword in node.keywords}
    unknown = not kind and (
        not at.names.imports & NAMES["array_libraries"]
        or bool(keywords & {"as_tuple", "return_inverse", "sorted"})
    )
    if unknown and method in ("unique", "bincount") and not node.args and not keywords:
        unknown = False
    if kind in ("tensor", "maybe", "batch") or unknown:
        at.report("data-dependent-shape", node.func)


def indexed(at: "State", node: ast.Subscript) -> None:
    """x[x > 0], x[mask], x[~mask] where the mask was computed from tensors; x[places] where the
    places were looked for.
    """
    if not at.torch or on_host(at) or at.on_cpu(node.value):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    surely = at.kind(node.value) == "tensor"
    for part in parts:
        if is_mask(at, part, surely) and (surely or not at.on_cpu(part)):
            at.report("boolean-mask", node)
            return
    if VOCABULARY.search(written(node.value)) and is_device_tensor(at, node.slice):
        if at.kind(node.value) != "tensor":
            waits(at, node, "an element of a list is looked up, which waits as .item() does")
    elif _is_list(at, node.value) and is_device_tensor(at, node.slice):
        waits(at, node, "an element of a list is looked up, which waits as .item() does")
    if at.loops and any(_is_picked(at, one) for one in parts) and not at.on_cpu(node.value):
        waits(at, node, "an index that is a tensor without dimensions is read, as .item() does")
        return
    if any(_is_element(at, one) for one in parts):
        waits(at, node, "an index that is an element of a tensor is read, as .item() does")
    if at.kind(node.value) in ("tensor", "maybe", ""):
        if any(isinstance(one, ast.Name) and is_found(at, one) for one in parts):
            at.report("data-dependent-shape", node, "as many elements as were found")


def _is_list(at: "State", node: ast.AST) -> bool:
    """A name that holds lists only: groups = []."""
    kept = reaching(at, node) if isinstance(node, ast.Name) else []
    return bool(kept) and all(isinstance(one.node, ast.List | ast.ListComp) for one in kept)


def _is_picked(at: "State", node: ast.AST) -> bool:
    """best, of `best = torch.argmax(x)`; row, of `row, column = places[i]`."""
    for item in reaching(at, node) if isinstance(node, ast.Name) else ():
        match item.node:
            case ast.Call(func=ast.Attribute(attr="argmax" | "argmin") as made, args=args):
                of_torch = at.dotted(made).startswith("torch.")
                whole = len(args) == int(of_torch) and not item.node.keywords
                if whole and (of_torch or is_device_tensor(at, made.value)):
                    return not at.on_cpu(item.node)
            case ast.Subscript(value=ast.Name() as places) if item.kind == "part":
                return is_found(at, places)
    return False


def _is_element(at: "State", node: ast.AST) -> bool:
    """y[i] of a tensor of numbers, in `for i in range(len(y))`."""
    match node:
        case ast.Subscript(value=ast.Name(name) as kept, slice=ast.Name() as turn):
            counted = f"len({name})"
            return is_device_tensor(at, kept) and any(
                item.kind == "loop"
                and isinstance(item.node, ast.Call)
                and any(ast.unparse(one) == counted for one in item.node.args)
                for item in reaching(at, turn)
            )
    return False


def is_found(at: "State", node: ast.AST | None, depth: int = 12) -> bool:
    """As many elements as nonzero, where, unique, a mask or a suppression of boxes found."""
    if depth == 0:
        return False
    match node:
        case ast.Name():
            kept = reaching(at, node)
            if len(kept) == 1 and isinstance(kept[0].node, ast.arg):
                return is_given(
                    at,
                    kept[0].node,
                    lambda given: (
                        isinstance(given, ast.Name | ast.Subscript)
                        and is_found(at, given, depth // 3)
                    ),
                )
            return bool(kept) and all(
                item.kind in ("value", "part") and is_found(at, item.node, depth - 1)
                for item in kept
            )
        case ast.Call():
            name = at.dotted(node.func)
            last = node.func.attr if isinstance(node.func, ast.Attribute) else name.split(".")[-1]
            if last in FINDS or SUPPRESSES.search(last):
                return name.split(".")[0] not in NAMES["host_modules"] and not at.on_cpu(node)
            if name in ("torch.cat", "torch.stack") and node.args:
                joined = node.args[0]
                return isinstance(joined, ast.List | ast.Tuple) and any(
                    is_found(at, one, depth - 1) for one in joined.elts
                )
            if name == "torch.where":
                return len(node.args) == 1 and not at.on_cpu(node)
            if name in PLACES and node.args:
                return counts_found(at, node.args[0])
            if name in KEEPS and node.args:
                return is_found(at, node.args[0], depth - 1)
            if last in SAME_LENGTH:
                if isinstance(node.func, ast.Attribute):
                    return is_found(at, node.func.value, depth - 1)
        case ast.Attribute(attr="data"):
            return is_found(at, node.value, depth - 1)
        case ast.Subscript():
            if isinstance(node.slice, ast.Name | ast.Subscript):
                if is_found(at, node.slice, depth - 1):
                    return True
            if is_found(at, node.value, depth - 1):
                return isinstance(node.slice, ast.Tuple | ast.Slice) or not isinstance(
                    node.value, ast.Name
                )
            surely = at.kind(node.value) == "tensor"
            return surely and not at.on_cpu(node.value) and is_mask(at, node.slice, surely)
    return False


def is_given(at: "State", arg: ast.arg, test: Callable[[ast.expr], bool]) -> bool:
    """A call in this file gives the parameter something that passes."""
    home = at.scope.find(arg.arg)
    if home is None or home.kind != "function":
        return False
    for given, scope in at.tensors.given_at_calls(arg, home):
        with at.having(scope=scope):
            if test(given):
                return True
    return False


def counts_found(at: "State", node: ast.AST) -> bool:
    """len(x), x.numel(), x.shape[0], x.size(0) of what was found."""
    match node:
        case ast.Name():
            kept = reaching(at, node)
            return (
                len(kept) == 1
                and kept[0].kind == "value"
                and (
                    isinstance(kept[0].node, ast.Call | ast.Subscript)
                    and counts_found(at, kept[0].node)
                )
            )
        case ast.Call(func=ast.Name("len"), args=[item]):
            return is_found(at, item)
        case ast.Call(func=ast.Attribute(attr="numel" | "size" | "nelement", value=item)):
            return is_found(at, item) or _shrinks(at, item)
        case ast.Subscript(value=ast.Attribute(attr="shape") as shape):
            return is_found(at, shape.value)
    return False


def _shrinks(at: "State", node: ast.AST) -> bool:
    """x of `x = x[mask]` in a loop: as many elements as the turn before left."""
    kept = reaching(at, node) if at.loops and isinstance(node, ast.Name) else []
    return any(
        isinstance(item.node, ast.Subscript)
        and written(item.node.value) == written(node)
        and is_mask(at, item.node.slice, True)
        for item in kept
    )


def _is_computed(at: "State", item: Binding) -> bool:
    """None, or computed from tensors; not what an unknown function or a model returned."""
    if item.kind != "value" or item.path:
        return False
    if isinstance(item.node, ast.Call):
        method = item.node.func
        surely = isinstance(method, ast.Attribute) and at.kind(method.value) == "tensor"
        return surely or at.dotted(method).startswith("torch.")
    return isinstance(item.node, ast.BinOp | ast.Compare | ast.UnaryOp | ast.Constant)


def reaching(at: "State", node: ast.Name) -> list[Binding]:
    """The ways in which a name may have got its value here."""
    home = at.scope.find(node.id)
    if home is None:
        return []
    if home is at.scope:
        return home.reaching(node.id, (node.lineno, node.col_offset))
    return home.names[node.id]


def is_mask(at: "State", node: ast.AST, surely: bool, depth: int = 6) -> bool:
    """A boolean tensor, by how it was made; `surely` a tensor is what it is to index."""
    if depth == 0:
        return False
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        if surely and isinstance(node.operand, ast.Name) and at.kind(node.operand) != "host":
            return True  # nothing but a mask is inverted to index with it
        return is_mask(at, node.operand, surely, depth - 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
        return any(is_mask(at, item, surely, depth - 1) for item in (node.left, node.right))
    if isinstance(node, ast.Compare):
        kind = at.kind(node)
        if kind in ("tensor", "maybe", "batch"):
            return True
        return not kind and (surely or only_torch(at)) and not _plain(node)
    if isinstance(node, ast.Attribute):
        if MASK.search(node.attr) and at.kind(node) != "host":
            return surely or only_torch(at)
        return False
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and is_mask(at, node.value, surely, depth - 1)
    if isinstance(node, ast.Call):
        made = {keyword.arg: keyword.value for keyword in node.keywords}.get("dtype")
        if made is not None and at.dotted(made) == "torch.bool" and at.kind(node) == "tensor":
            return True
        name = at.dotted(node.func)
        if name in KEEPS and node.args and isinstance(node.args[0], ast.Compare):
            return True  # torch.from_numpy(names == name)
        if name.startswith("torch."):
            return name.split(".")[-1] in NAMES["mask_functions"]
        if isinstance(node.func, ast.Attribute):
            method, owner = node.func.attr, node.func.value
            if method in NAMES["mask_methods"]:
                if method == "bool" and at.kind(owner) != "host" and (surely or only_torch(at)):
                    return True
                return at.kind(owner) in ("tensor", "maybe") or at.kind(node) == "tensor"
            if method.rstrip("_") in MASKED:
                if any(at.dotted(one) == "torch.bool" for one in node.args):
                    return True
                return is_mask(at, owner, surely, depth - 1)
        return False
    if isinstance(node, ast.Name):
        kept = reaching(at, node)
        named = MASK.search(node.id) is not None and at.kind(node) != "host"
        if kept and all(item.kind == "parameter" for item in kept):
            return named and (surely or only_torch(at))
        if any(
            item.kind == "value"
            and isinstance(
                item.node, ast.Compare | ast.UnaryOp | ast.BinOp | ast.Call | ast.Subscript
            )
            and is_mask(at, item.node, surely, depth - 1)
            for item in kept
        ):
            return True
        return named and bool(kept) and at.kind(node) in ("tensor", "maybe") and surely
    return False


def only_torch(at: "State") -> bool:
    """The file is about torch, and no library of arrays is about whose masks look the same."""
    return not at.names.imports & NAMES["array_libraries"]


def _plain(node: ast.Compare) -> bool:
    """i == 0, x is None, "a" in b: the value is True or False and indexes a list."""
    return any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)


def _decides(at: "State", test: ast.AST, note: str = "") -> None:
    """A finding; once in each epoch it costs little."""
    at.report("tensor-control-flow", test, note, "note" if at.epochs else "")


def decision(at: "State", test: ast.AST) -> None:
    """An if, while, assert or conditional expression whose test needs the value of a tensor."""
    if not at.torch or on_host(at) or at.traced:
        return
    if isinstance(test, ast.Compare | ast.Call) and at.on_cpu(test):
        return
    match test:
        case ast.BoolOp():
            for value in test.values:
                decision(at, value)
        case ast.UnaryOp(op=ast.Not()):
            decision(at, test.operand)
        case ast.Compare(ops=[ast.In() | ast.NotIn()]):
            # Of a tensor among numbers; a tensor in a set is looked up by what it is.
            right = test.comparators[0]
            listed = isinstance(right, ast.List | ast.Tuple | ast.Set) or at.kind(right) == "tensor"
            if isinstance(right, ast.Name):
                listed = listed or any(
                    isinstance(item.node, ast.List | ast.ListComp) for item in reaching(at, right)
                )
            if written(right).split(".")[-1] in NAMES["model_outputs"] and is_device_tensor(
                at, right
            ):
                _decides(at, test)  # a number among the elements of a tensor
                return
            ends = listed and at.loops and "eos_token" in ast.unparse(right)
            if ends and isinstance(test.left, ast.Subscript) and not at.on_cpu(test.left):
                _decides(at, test)
            elif (listed or STOPS.search(written(right))) and is_device_tensor(at, test.left):
                _decides(at, test)
        case ast.Compare(comparators=[ast.Attribute(attr="shape")]):
            pass  # by a shape, which the host knows
        case ast.Compare() | ast.Subscript():
            given = at.kind(test) == "maybe" and at.steps == "function" and _reduces(test)
            if (at.kind(test) == "tensor" or given or _by_reduction(at, test)) and not at.on_cpu(
                test
            ):
                _decides(at, test)
            elif isinstance(test, ast.Compare) and at.steps and _chance(at, test):
                at.report("python-number", test, "drawn at random: each way is a graph of its own")
            elif counts_found(at, test.left if isinstance(test, ast.Compare) else test):
                _decides(at, test, "by how many were found")
        case ast.Name() if counts_found(at, test):
            _decides(at, test, "by how many were found")
        case ast.Name():
            home = at.scope.find(test.id)
            if home is not None and test.id not in home.losses and at.kind(test) == "tensor":
                if all(_is_computed(at, item) for item in reaching(at, test)):
                    if not at.on_cpu(test):
                        _decides(at, test)
        case ast.Call() if at.steps and _draws(at, test):
            at.report("python-number", test, "drawn at random: each way is a graph of its own")
        case ast.Call():
            name = at.dotted(test.func)
            if (
                name.startswith("torch.")
                and name.split(".")[-1] in NAMES["answers"]
                and name.count(".") == 1
            ):
                _decides(at, test)
            elif at.kind(test) == "tensor" or _asks_all(at, test):
                _decides(at, test)
            elif counts_found(at, test):
                _decides(at, test, "by how many were found")
            elif name == "bool" and test.args and at.kind(test.args[0]) == "tensor":
                _decides(at, test)
