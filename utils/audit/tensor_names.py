"""What names say: of tensors, models and loaders, and of functions of torch."""

import ast
import re
from functools import cache

from utils.audit.rules import NAMES
from utils.audit.scopes import written
from utils.audit.tensor_forms import BATCH, LOADER, MAYBE, MODULE, TENSOR, UNKNOWN, Value

SPACES = {"functional", "linalg", "fft", "special"}
LOADER_NAME = re.compile(r"(loader|dataloader|(^|_)dl|(?<!num_)(?<!n_)batches|data_iter)$", re.I)
MODEL_NAME = re.compile(
    r"((^|_)(model|module|net|network|unet|vae|criterion|encoder|decoder|discriminator|critic"
    r"|actor|policy|backbone|loss_(fn|func))|\wLoss)$"
)
LOSS_NAME = re.compile(r"(^|_)(loss|losses|norm|grad_norm|logits?|acc|accuracy)$")
TEXT_NAME = re.compile(
    r"(^|_)(path|file|filename|name|text|caption|key|url|info|meta|image_id|img_id|title|prompt|shape|dtype"
    r"|device)s?$|^num_"
)
TEXT_METHODS = {"strip", "lower", "upper", "startswith", "endswith", "replace", "join", "rstrip"}
TEXT_METHODS |= {"astype", "tobytes", "to_numpy"}
# What a function with such a name returns is no result of a model: get_model, is_loss.
VERB = re.compile(
    r"^_*(is|has|get|set|build|create|make|load|init|setup|prepare|wrap|save|compile|find|check|add"
    r"|list|count|remove|register|freeze|clone|copy|move|replace|merge|quantize|train|test|log|print|eval"
    r"|evaluate|validate|run)_"
)
DEVICE = re.compile(r"(^|[._])(device|dev|DEV|DEVICE|rank|gpu)$")
# Functions whose results are numbers by custom, whatever they were given.
RUNS = re.compile(r"^(eval|evaluate|validate|validation|test|train|run)(_|$)")
ASKS = re.compile(r"^(is|has|get|set)(_|$)")
COUNTS = {"range", "trange", "len"}
# Parameters of forward that are numbers or switches, and what works on the CPU before a model does.
NUMBER_NAME = re.compile(
    r"(^|_)(size|sizes|len|length|num|n|step|mode|idx|index|dim|scale|return|use|is|output|layer"
    r"|epoch|h|w|b|k|shape|args|kwargs|config|cache|names?|training|flag|type|start_?pos|offset"
    r"|cur_?len|past_len\w*|seqlen|i|j)s?(_|$)(?<!lens)(?<!lengths)"
)
TOKENIZER = re.compile(r"(tokenizer|processor|feature_extractor|collator)$", re.I)
PASSED_ON = {"list", "tuple", "iter", "reversed", "sorted", "tqdm", "deepcopy", "copy", "islice"}
PASSED_ON |= {"log_every", "track"}
# Keys under which a batch holds numbers or texts, no tensors
COUNT_KEY = re.compile(r"(^|_)(size|sizes|num|count|counts|names?|paths?)(_|$)")
MODULE_METHODS = {"to", "cuda", "eval", "train", "half", "float", "double", "bfloat16", "module"}
SEVERAL = {"chunk", "split", "unbind", "tensor_split", "meshgrid", "broadcast_tensors", "grad"}
SEVERAL |= {"hsplit", "vsplit", "dsplit", "unsafe_chunk", "unsafe_split"}
RECURRENT = {"LSTM", "GRU", "RNN", "MultiheadAttention", "LSTMCell"}
ON_HOST = {
    "int",
    "float",
    "str",
    "bool",
    "bytes",
    "ndarray",
    "Path",
    "device",
    "dtype",
    "DataFrame",
}
ON_HOST |= {"Namespace", "Logger", "Callable", "Image", "complex", "Size", "Optimizer"}
MAPPINGS = {"Dict", "dict", "Mapping", "OrderedDict", "MutableMapping", "defaultdict"}
LISTS = {
    "List",
    "list",
    "Sequence",
    "Iterable",
    "Iterator",
    "Generator",
    "set",
    "Set",
    "Collection",
}


@cache
def is_model_name(name: str) -> bool:
    """A model, by its name: what it returns when it is called is a tensor.

    >>> is_model_name("teacher_model"), is_model_name("get_model"), is_model_name("BCELoss")
    (True, False, True)
    """
    return MODEL_NAME.search(name) is not None and VERB.search(name) is None


@cache
def named(name: str) -> Value:
    """What a name alone says."""
    if name in NAMES["sure_names"]:
        return TENSOR
    if name in NAMES["tensor_names"]:
        return MAYBE
    if LOADER_NAME.search(name):
        return LOADER
    if name == "batch":
        return BATCH
    return MODULE if is_model_name(name) else UNKNOWN


def takes_dim(node: ast.Call) -> bool:
    """x.mean(dim=1), x.flatten(start_dim=1): arrays take an axis."""
    return (
        any(item.arg in ("dim", "keepdim", "start_dim") for item in node.keywords)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr[:1].islower()
        and node.func.attr in NAMES["dim_methods"]
    )


def moves_to_host(node: ast.Call) -> bool:
    """x.cpu(), x.to("cpu"), x.to(device="cpu")."""
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "cpu":
        return not node.args
    if node.func.attr != "to":
        return False
    given = [*node.args[:1], *(item.value for item in node.keywords if item.arg == "device")]
    for place in given:
        if isinstance(place, ast.Call) and written(place.func).endswith("device") and place.args:
            place = place.args[0]
        if isinstance(place, ast.Constant) and place.value == "cpu":
            return True
    return False


def is_placed(node: ast.Call) -> bool:
    """x.to(device), x.to(args.device), x.to("cuda"), x.to(x.device, torch.long)."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "to":
        return False
    given = [*node.args[:1], *(item.value for item in node.keywords if item.arg == "device")]
    return any(
        DEVICE.search(written(one)) or isinstance(getattr(one, "value", None), str) for one in given
    )


def is_tensor_function(name: str) -> bool:
    """The full name of a torch function whose result is a tensor.

    >>> is_tensor_function("torch.nn.functional.relu"), is_tensor_function("torch.no_grad")
    (True, False)
    """
    parts = name.split(".")
    last = parts[-1]
    if last.startswith(("is_", "are_", "has_", "set_", "get_", "_")) or not last[:1].islower():
        return False
    if len(parts) == 2:
        return last not in NAMES["not_tensor_functions"]
    return (
        parts[-2] in SPACES
        and parts[1] in {"nn", *SPACES}
        and last not in NAMES["not_tensor_functions"]
    )
