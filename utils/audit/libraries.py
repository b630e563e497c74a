"""Checks for packages, extensions, Triton, torch.compile, and ways to train on many devices."""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from utils.audit import legacy, requirements
from utils.audit.cuda_devices import backend
from utils.audit.rules import IMPORTS, NAMES
from utils.audit.scopes import Names, walk, written

if TYPE_CHECKING:
    from utils.audit.state import State
    from utils.audit.tensor_kinds import Tensors

EXTENSION = "torch.utils.cpp_extension."
KERNELS = (".cu", ".cuh")
COMPILES = {"cuda-extension", "cpp-extension", "cuda-package"}
# What DataParallel is made of, and how extensions were built before PyTorch 1.0.
OF_TORCH = (
    (re.compile(r"torch\.utils\.ffi\b"), "cuda-extension"),
    (re.compile(r"torch\.nn\.parallel\.data_parallel\.DataParallel$"), "data-parallel"),
    (
        re.compile(
            r"torch\.nn\.parallel\.((scatter_gather|replicate|parallel_apply|_functions)\.)?"
            r"([sS]catter|scatter_kwargs|[gG]ather|replicate|parallel_apply|Broadcast)$"
        ),
        "data-parallel",
    ),
)
DDP = "DistributedDataParallel"
SHORT = 4  # letters of a package's name that may be a class of a project as well
# A compiled module that says CUDA in its name: alt_cuda_corr, _ext_cuda; a class of a project that
# does, and modules of one that are about Triton or CUDA.
COMPILED = re.compile(
    r"^(?!(is|has|get|set|use|no|to|with)_)\w*_cuda(_\w+)?$|^\w+_cuda\.|^cuda_\w+$|(^|\.)_\w+_sm\d+$"
)
ATTENDS = re.compile(r"(flash|paged)_att(n|ention)(_\w+)?$|fa[34](_\w+)?$")
FLASH = re.compile(r"(use_|enable_)?flash_att(n|ention)\w*$")
BY_XLA = re.compile(r"^(?!torch_)\w+_xla(_\w+)?$")  # what others built on PyTorch/XLA
INDUCTOR = re.compile(r"^(max_autotune\w*|triton\.\w+|coordinate_descent_\w+)$")
EIGHT_BITS = re.compile(r"prepare_model_for_(int8|kbit)_training$")
ENGINE = re.compile(r"(^|_)(trtllm|tensorrt(_llm)?)$", re.I)
WRAPPER = re.compile(r"^C(uda|UDA)[A-Z]\w+$")
TRITON = re.compile(r"(\w+_)?triton(_\w+)?$")
ABOUT_CUDA = re.compile(r"(\w+_)?cuda(_\w+)?$")
# A compiled module of the project itself, by the names that are usual.
OWN = re.compile(r"(^|\.)(_ext|_C|_cuda|_extension|_backend|_custom_ops)(\.|$)")
ASKS = re.compile(r"is_\w*(cuda|gpu)_available$")
KNOWN = {"torch", "numba", "jax", "jaxlib"}
FREE_MODES = {None, "default"}
SCHEDULERS = ("ray.", "submitit.", "modal.", "metaflow.")
ON_GPUS = {"nvcf", "gpu_profile"}  # run on NVIDIA's machines, or ask nvidia-smi
# Functions that are kernels for CUDA by their names, functions of CUDA's runtime, and settings that
# ask for CUDA graphs.
KERNEL = re.compile(
    r"^(?!_*(is|has|get|set|use|to|on|with|num|n|max|move|check|count|list|print|free|find|select|init|setup"
    r"|load|test|wait|clear|empty|log|multi|single|local|per|no|run|create|require\w*|skip\w*)_)\w+_(gpu|cuda)$"
)
RUNTIME = re.compile(r"^cuda[A-Z][A-Za-z]{3,}$")
GRAPHS = re.compile(r"^((use|enable|with)_)?cuda_?graphs?$|^cg$")
# Messages of programs that need CUDA.
STOPS = re.compile(
    r"\b(CUDA|nvcc|GPUs?)\b.*\b(not (be )?(found|located?|available|detected|installed)"
    r"|(is|are) (required|needed|missing)|unavailable)\b"
    r"|\b(no|needs?|requires?|only|without|missing) (a |an |any )?(NVIDIA )?(CUDA|GPUs?)\b"
    r"|not (compiled|built) with (GPU|CUDA)",
    re.S,
)
# Functions that run a command; commands that install; extensions that torch does not build.
RUNS = re.compile(r"(^|_)(run|system|call|check_call|check_output|popen|getoutput|execute)$", re.I)
INSTALLS = re.compile(r"\b(pip[\d.]*|conda|mamba)\s+install\b|^install$")
BUILDS = {"setuptools", "distutils"}
SOURCE = re.compile(r"\w\.cuh?(\.o)?$|^(cudart|cublas|cudnn|nvcc)$|\w_cuda\w*\.c(c|pp)?$")
SLURM = {"gpus_per_node", "gpus_per_task", "slurm_gpus_per_node", "slurm_gres", "gres"}
OFFLOADS = {"enable_model_cpu_offload", "enable_sequential_cpu_offload"}  # of diffusers
RENTS = {"gpu_type_id", "gpu_count"}  # of machines that are rented
GPUS = SLURM | {"num_gpus", "use_gpu", "gpu"}
# Functions that choose between CUDA and the CPU, and where they take a device.
CHOOSES = {
    "whisper.load_model": 1,
    "whisperx.load_model": 1,
    "clip.load": 1,
    "easyocr.Reader": 1,
    "sentence_transformers.SentenceTransformer": 2,
    "transformers.pipeline": 9,
}
# Classes of SageMaker that choose an image by a version of PyTorch, and machines with Neuron.
IMAGES = {"HuggingFace", "HuggingFaceModel", "PyTorch", "PyTorchModel"}
MACHINE = re.compile(r"ml[._](inf|trn)\d")
CARD = re.compile(r"gpu|volta|ampere|hopper|[avh]100", re.I)
TRAINERS = ("lightning", "pytorch_lightning")


def imported(at: "State", node: ast.AST, modules: list[str]) -> None:
    """An import of packages that are bound to CUDA: one finding for each rule."""
    rules = dict.fromkeys(filter(None, (rule_of(at, module) for module in modules)))
    if "cuda-extension" in rules:
        rules.pop("cpp-extension", None)
    for rule in rules:
        _report(at, rule, node)


def rule_of(at: "State | _Other", module: str) -> str:
    """The rule about a module, or about a name in one, by its full name; "" for none."""
    root, last = module.split(".")[0], module.rpartition(".")[2]
    if module.startswith(EXTENSION):
        cuda = "CUDA" in last or "CUDAExtension" in at.names.imported
        builds = last != "BuildExtension" or at.names.imported & {"CUDAExtension", "CppExtension"}
        return ("cuda-extension" if cuda else "cpp-extension") if builds else ""
    if module.startswith("nvidia.dali") or f"{module}.".startswith("numba.cuda."):
        return "cuda-package"
    if module == "torch.utils.cpp_extension":
        return "cpp-extension"
    if BY_XLA.search(root) and root not in at.local:
        return "xla-import"
    if last == "BitsAndBytesConfig" or EIGHT_BITS.match(last):
        return "bitsandbytes"
    if "xformers" in last and root != "xformers":
        return "xformers"
    if ASKS.match(last):
        return "cuda-query"
    if last in ON_GPUS:
        return "gpu-image"
    if root in KNOWN:
        return next((rule for pattern, rule in OF_TORCH if pattern.match(module)), "")
    # Of a project for CUDA its name says so, in the files beside its package as well.
    own = root in at.local and ("_" not in root or root in (at.tensors.folder or "").split("/"))
    rule = "" if own else IMPORTS.get(root, "")
    if not rule and last != root and last.islower() and len(last) > SHORT:
        rule = IMPORTS.get(last, "")  # passed on by a module: from .compat import spconv
    return rule or ("" if at.foreign else _by_name(at, module) or _through(at, module))


class _Other(NamedTuple):
    """What is asked of another file of the tree; as of a State."""

    names: Names
    tensors: "Tensors"
    local: frozenset[str]
    torch: bool = True
    foreign: bool = True  # go no further


def _through(at: "State | _Other", module: str) -> str:
    """The rule about a compiled module of the project, on which a function, class or module of
    another file stands: it is imported there whatever happens.
    """
    tree, folder = at.tensors.modules, at.tensors.folder
    if tree is None or folder is None or not at.torch:
        return ""
    known = tree.look(module, folder)
    other = known[0] if known is not None else tree.module(module, folder)
    if other is None or other is at.tensors:
        return ""
    there = _Other(other.names, other, at.local)
    for one in other.names.tree.body:
        start = start_of(one) if isinstance(one, ast.ImportFrom) else ""
        for alias in one.names if isinstance(one, ast.Import | ast.ImportFrom) else ():
            name = start + alias.name
            rule = rule_of(there, name) or _by_name(there, name)
            named = rule == "cuda-extension" or (rule in COMPILES and start.startswith("."))
            if not named or _is_source(there, name):
                continue
            bound = alias.asname or alias.name
            if known is None or any(getattr(part, "id", "") == bound for part in walk(known[1])):
                return rule
    return ""


def start_of(node: ast.ImportFrom) -> str:
    """What stands before the names that are imported: "torch.cuda." or "..ops."."""
    return "." * node.level + (f"{node.module}." if node.module else "")


def _by_name(at: "State | _Other", module: str) -> str:
    """The rule about a module of any project by its name; a source file of the tree is no compiled
    module, but one about Triton or CUDA.
    """
    level = len(module) - len(module.lstrip("."))
    for part in module[level:].split(".")[:-1]:
        if ENGINE.search(part):
            return "cuda-package"
        if TRITON.match(part):
            return "triton"
        if ABOUT_CUDA.match(part):
            return "cuda-extension"
        # A folder called kernels is any project's.
        named = part in IMPORTS and part != "kernels" and len(part) > SHORT and at.torch
        named = named and part not in NAMES["not_followed"]
        if named and (level or part != module.split(".")[0]):
            return IMPORTS[part]  # a module of the project about that package
    last = module.rpartition(".")[2]
    if ATTENDS.match(last):
        return "flash-attn"
    if COMPILED.match(last) or COMPILED.match(module[level:]) or WRAPPER.search(last):
        return "cuda-extension"
    if not (at.torch and OWN.search(module)) or _is_source(at, module):
        return ""
    return "cpp-extension"


def _is_source(at: "State | _Other", module: str) -> bool:
    tree, folder = at.tensors.modules, at.tensors.folder or ""
    return tree is not None and any(
        tree.holds(one, folder) for one in (module, module.rpartition(".")[0]) if one.strip(".")
    )


def compiled(at: "State", node: ast.Attribute) -> None:
    """package._C: a compiled module, used as an attribute."""
    if at.torch:
        _report(at, "cpp-extension", node)


def _report(at: "State", rule: str, node: ast.AST) -> None:
    if at.optional:
        at.report(rule, node, "the import may fail: the code says what it does then", "note")
    else:
        at.report(rule, node)


def decorator(at: "State", node: ast.expr) -> None:
    """@triton.jit and @torch.compile."""
    made = node.func if isinstance(node, ast.Call) else node
    name = at.dotted(made)
    if name == "triton.jit" and "triton" not in at.local:
        at.report("triton", made, "a kernel")
    elif name == "torch.compile" and not isinstance(node, ast.Call):
        at.report("compile-default", made, "no backend named")


def called(at: "State", node: ast.Call, name: str) -> None:
    """A call that compiles, builds an extension, or trains on many devices."""
    last = name.split(".")[-1]
    called_as = last or getattr(node.func, "attr", "")
    given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if name == "torch.compile":
        _compile(at, node, given)
    elif name.startswith(EXTENSION):
        _extension(at, node, last)
    elif name in NAMES["data_parallel"]:
        at.report("data-parallel", node.func)
    elif "DataParallel" in last and "device_ids" in given and not name.startswith("torch."):
        at.report("data-parallel", node.func, "by its name")
    elif last == DDP and name.startswith("torch."):
        ids = given.get("device_ids") or (node.args[1] if len(node.args) > 1 else None)
        if ids is not None and not isinstance(ids, ast.Constant):
            at.report("ddp-device-ids", node.func)
        elif "gradient_as_bucket_view" not in given:
            at.report("plain-ddp", node.func)
    elif last in ("init_process_group", "new_group") and node.args:
        if isinstance(node.args[0], ast.Constant | ast.IfExp | ast.BoolOp):
            backend(at, node.args[0])
    elif name in ("importlib.import_module", "__import__") and node.args:
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            imported(at, node, [node.args[0].value])
    elif last in ("load_ext", "load_extension") and node.args and OWN.search(_text(node.args[0])):
        at.report("cpp-extension", node.func)
    elif name.startswith("torch.ops."):
        _operator(at, node, name)
    elif name.split(".")[0] in TRAINERS and last in ("Trainer", "Fabric"):
        _trainer(at, given.get("accelerator"))
        if _text(given.get("accelerator", ast.Constant("auto"))) == "auto" and not {
            "gpus",
            "tpu_cores",
            None,
        } & {item.arg for item in node.keywords}:
            at.report("cuda-fallback", node.func, "Lightning chooses among devices it knows")
        if not _is(given.get("tpu_cores"), None) and "tpu_cores" in given:
            legacy.report(at, "xla-device", given["tpu_cores"])
        gpus = given.get("gpus")
        if gpus is not None and not (isinstance(gpus, ast.Constant) and gpus.value in (None, 0)):
            at.report("gpu-trainer", gpus)
        if "distributed_backend" in given:  # what strategy was called, for GPUs and TPUs only
            at.report("gpu-trainer", given["distributed_backend"], "named strategy since")
        if _is(given.get("benchmark"), True):
            at.report("backend-flags", given["benchmark"], "it sets cudnn.benchmark")
    elif name.startswith("torch.optim.") and "fused" in given:
        if _is(given["fused"], True):
            at.report("fused-optimizer", given["fused"])
        elif isinstance(given["fused"], ast.Compare | ast.BoolOp | ast.Call):
            at.report("fused-optimizer", given["fused"], "where this is true")
    elif name in ("setuptools.setup", "distutils.core.setup", "setup"):
        _setup(at, given)
    elif name in CHOOSES and not _places(node, CHOOSES[name]):
        at.report("cuda-fallback", node.func, "without a device it takes CUDA or the CPU")
    elif name in ("accelerate.dispatch_model", "accelerate.load_checkpoint_and_dispatch"):
        note = "it places parts of the model by the numbers of GPUs"
        at.report("cuda-device", node.func, note, "note")
    elif "override_neuron_config" in given:
        at.report("vllm-nxd", given["override_neuron_config"])
    elif (
        last in ("LLM", "EngineArgs", "AsyncEngineArgs") and _text(given.get("device")) == "neuron"
    ):
        at.report("vllm-nxd", given["device"])
    elif name.startswith(SCHEDULERS) or called_as in ("update_parameters", "ScalingConfig"):
        for word in GPUS & given.keys():
            if getattr(given[word], "value", 1):
                at.report("gpu-image", given[word], "a resource that is asked for")
    _by_names(at, node, name, last, given)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "pin_memory" and not node.args:
        at.report("pin-memory", node.func)


def settings(at: "State", node: ast.Dict) -> None:
    """DeepSpeed's settings: {"zero_optimization": {"stage": 2}}; Slurm's: {"gpus_per_node": 8}."""
    for key, value in zip(node.keys, node.values, strict=True):
        name = getattr(key, "value", "")
        if name == "zero_optimization":
            at.report("deepspeed", node)
        elif at.torch and isinstance(name, str) and INDUCTOR.match(name):
            at.report("compile-backend", key or node, "an option of Inductor")
        elif name in SLURM | {"num_gpus"} and getattr(value, "value", True):
            at.report("gpu-image", key or node, "a resource that is asked for")


def _places(node: ast.Call, position: int) -> bool:
    """The call says on which device, by a keyword or at this position."""
    words = {item.arg for item in node.keywords}
    return len(node.args) > position or bool(words & {"device", "device_map", "gpu", None})


def _by_names(
    at: "State", node: ast.Call, name: str, last: str, given: dict[str, ast.expr]
) -> None:
    """Calls and settings whose names say what they need."""
    last = last or getattr(node.func, "attr", "")
    own = last in at.names.defined or last in at.flagged
    if at.torch and KERNEL.match(last) and not own and not name.startswith("torch."):
        at.report("cuda-extension", node.func, "a kernel for CUDA by its name", "warning")
    elif RUNTIME.match(last):
        at.report("cuda-package", node.func, "a function of CUDA's runtime")
    if last.endswith("TrainingArguments") and _is(given.get("fp16"), True):
        at.report("cuda-autocast", given["fp16"], "float16 asks for CUDA", "error")
    for word in ("sources_cuda", "cuda_sources", "extra_cuda_cflags"):
        if word in given and (word != "cuda_sources" or not name.startswith(EXTENSION)):
            at.report("cuda-extension", given[word], "sources in CUDA, or how they are built")
    if "xformers" in last and not own and "xformers" not in name.split(".")[0]:
        at.report("xformers", node.func, "it turns to xformers by its name", "note")
    if last == "local_named_parameters":
        legacy.report(at, "nxd-training", node.func, "a method of its models")
    if last == "replay" and any(one.endswith("CUDAGraph") for one in _full(at)):
        at.report("cuda-api", node.func, "a CUDA graph")
    if last in OFFLOADS:
        at.report("cuda-device", node.func, "parts are brought to a GPU, unless a device is named")
    for word, value in given.items():
        if GRAPHS.match(word) and _is(value, True):
            at.report("cuda-api", value, "CUDA graphs")
    if last.endswith("TrainingArguments") and not _is(given.get("deepspeed"), None):
        if "deepspeed" in given:
            at.report("deepspeed", given["deepspeed"])
    version = given.get("pytorch_version", given.get("framework_version"))
    if last in IMAGES and version is not None:
        if any(MACHINE.match(_text(one)) for one in walk(at.names.tree)):
            legacy.report(at, "neuron-image", version, "it chooses the image")
    for bits in ("load_in_4bit", "load_in_8bit"):
        if bits in given and not isinstance(given[bits], ast.Constant) and last != "add_argument":
            at.report("bitsandbytes", given[bits], "where this is true", "note")
    for word in RENTS & given.keys():
        at.report("gpu-image", given[word], "a resource that is asked for")
    root = written(node.func).split(".")[0]
    if at.torch and "." in written(node.func) and COMPILED.match(root) and root not in at.flagged:
        at.report("cuda-extension", node.func, "a kernel for CUDA by its name", "warning")
    if last == "GradScalerKwargs":
        at.report("grad-scaler", node.func, "its settings")
    if _is(given.get("torchscript"), True):
        at.report("torchscript", given["torchscript"])
    if name == "torch.load" and len(node.args) == 1:
        if not {"map_location", None} & {item.arg for item in node.keywords}:
            at.report("load-location", node.func)
    if RUNS.search(last or written(node.func)):
        texts = [one for one in walk(node) if INSTALLS.search(_text(one))]
        for rule in requirements.in_command(" ".join(map(_text, walk(node)))) if texts else ():
            at.report(rule, texts[0], "an installation")


def _full(at: "State") -> Iterator[str]:
    """The names with a dot that the file reads."""
    return (written(one) for one in walk(at.names.tree) if isinstance(one, ast.Attribute))


def assigned(at: "State", target: ast.expr, value: ast.expr) -> None:
    """model, optimizer = torch.load(file); config.enable_cuda_graph = True"""
    named = written(target).split(".")[-1]
    if GRAPHS.match(named) and _is(value, True):
        at.report("cuda-api", target, "CUDA graphs")
    elif FLASH.match(named) and _is(value, True):
        at.report("flash-attn", target)
    match target:
        case ast.Subscript(slice=ast.Constant(value=str(key))) if key.startswith("slurm_"):
            if key in SLURM or CARD.search(_text(value)):
                at.report("gpu-image", target, "a resource that is asked for")


def sources(at: "State", node: ast.Constant) -> None:
    """Sources in CUDA and its runtime in a file that builds extensions by other means than those of
    torch, which are found by their names.
    """
    if builds(at) and SOURCE.search(str(node.value)):
        with at.having(guard=None):  # what is asked here is where it is built
            at.report("cuda-extension", node, "a source, the compiler or the runtime of CUDA")


def builds(at: "State") -> bool:
    """The file builds extensions, and not by CUDAExtension."""
    if at.names.imported & {"CUDAExtension", "load", "load_inline"}:
        return False
    return bool(at.names.imports & BUILDS) or "create_extension" in at.names.imported


def raised(at: "State", node: ast.Raise) -> None:
    """raise RuntimeError("CUDA is required"): the program stops, whatever it asked before."""
    made = node.exc.args[:1] if isinstance(node.exc, ast.Call) else []
    texts = [_text(one) for part in made for one in walk(part)]
    if STOPS.search(" ".join(texts)) and at.guard is None and not at.foreign:
        at.report("cuda-required", node, "its message says so")
        at.reported.update(one for part in made for one in walk(part))


def _text(node: ast.AST | None) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _is(node: ast.AST | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _compile(at: "State", node: ast.Call, given: dict[str, ast.expr]) -> None:
    backend = given.get("backend")
    if backend is None:
        if not _is(given.get("disable"), True):
            at.report("compile-default", node.func, "no backend named")
    elif isinstance(backend, ast.Constant) and backend.value == "openxla":
        legacy.report(at, "xla-import", node.func, "the backend openxla")
    elif isinstance(backend, ast.Attribute) and any(
        _text(one) == "inductor" for one in walk(at.names.tree)
    ):
        at.report("compile-backend", backend, "where it is one for GPUs", "note")
    elif isinstance(backend, ast.Constant) and backend.value not in NAMES["portable_backends"]:
        at.report("compile-backend", node.func, f"backend {backend.value!s}")
    mode = given.get("mode")
    if isinstance(mode, ast.Constant) and mode.value not in FREE_MODES:
        at.report("compile-mode", mode)
    if _is(given.get("dynamic"), True):
        at.report("compile-mode", given["dynamic"])


def _extension(at: "State", node: ast.Call, last: str) -> None:
    if last == "CUDAExtension":
        at.report("cuda-extension", node.func)
        if at.functions:  # make_cuda_ext("ops", ["a.cu"])
            at.flagged[at.functions[-1]] = "cuda-extension"
            at.wrappers.add(at.functions[-1])
    elif last == "CppExtension":
        at.report("cpp-extension", node.func)
    elif last in ("load", "load_inline"):
        at.report(built(node), node.func)


def built(node: ast.Call) -> str:
    """The rule about torch.utils.cpp_extension.load(...), by its sources."""
    strings = [item.value for item in walk(node) if isinstance(item, ast.Constant)]
    cuda = any(isinstance(string, str) and string.endswith(KERNELS) for string in strings)
    sources = [item.value for item in node.keywords if item.arg == "cuda_sources"]
    cuda = cuda or any(not _is(source, None) for source in sources)
    return "cuda-extension" if cuda else "cpp-extension"


def _operator(at: "State", node: ast.Call, name: str) -> None:
    space = name.split(".")[2]
    if space == "load_library":
        at.report("cpp-extension", node.func)
    elif space not in NAMES["own_operators"] and (space[:1] != "_" or space.startswith("_C")):
        at.report("cpp-extension", node.func, f"an operator of {space}", "note")


def _trainer(at: "State", kind: ast.AST | None) -> None:
    match kind:
        case ast.Constant(value="gpu" | "cuda"):
            at.report("gpu-trainer", kind)
        case ast.Constant(value="tpu"):
            legacy.report(at, "xla-device", kind)
        case ast.IfExp():
            at.choice(kind, lambda part: _trainer(at, part))


def _setup(at: "State", given: dict[str, ast.expr]) -> None:
    """The requirements in setup(install_requires=[...], extras_require={...})."""
    for key in ("install_requires", "setup_requires", "extras_require"):
        value: ast.AST | None = given.get(key)
        if isinstance(value, ast.Name):
            kept = at.scope.bindings(value.id)
            value = kept[0].node if len(kept) == 1 else None
        for item in walk(value) if isinstance(value, ast.AST) else ():
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                rule = requirements.rule_of(item.value)
                if rule and key == "extras_require":
                    at.report(rule, item, "an optional extra", "note")
                elif rule:
                    at.report(rule, item)
