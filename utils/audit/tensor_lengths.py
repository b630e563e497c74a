"""Checks for inputs that keep a length of their own on their way to the device: of a prompt, a
request, a sound or an image.
"""

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from utils.audit.scopes import walk, written
from utils.audit.tensor_names import TOKENIZER, is_model_name, is_placed, moves_to_host
from utils.audit.tensor_values import is_given, reaching

if TYPE_CHECKING:
    from utils.audit.state import State

TOKENS = re.compile(
    r"(^|_)(prompt|input|question|answer|text|context|query|src|source|request|token|caption)_?\w*(ids|tokens)$"
    r"|^(tokens|token_ids|input_ids|ids|phones|phonemes|phone_ids|sequence)$"
)
SO_FAR = re.compile(r"^(output|generated|token)_(ids|tokens)$")  # what a request has by now
# Functions that make a list of numbers of a text
WRITES = re.compile(
    r"(^|_)(text_to_\w+|texts?_to_ids|g2p|to_ids|tokenizer_\w+|tokenize(_\w+)?|encode_(text|prompt))$"
)
IMAGES = re.compile(r"(^|_)(images|imgs|image_list|samples_list)$")
TARGETS = re.compile(r"(^|_)targets?(_list)?$")
TEXTS = re.compile(r"(^|_)(prompts|sentences|texts|utterances|questions)$")
SERVES = re.compile(r"(^|_)predict_fn$")
MADE_OF = {"torch.tensor", "torch.as_tensor", "torch.LongTensor"}
SOUND = re.compile(
    r"(^|\.)(torchaudio|librosa|soundfile|sf|whisper|wavfile)\.(.*\.)?(load|read|load_audio)$|\bload_(audio|wav)$"
)
IMAGE = re.compile(
    r"^(PIL\.Image|Image)\.open$|^cv2\.(imread|imdecode)$|^(imageio|skimage\.io)\.(v2\.)?imread$"
    r"|^torchvision\.io\.(read|decode)_image$|\b(load|read|open)_?([iI]mage|[iI]mg)$"
)
# Functions of a project that leave an image or a sound its own size
THROUGH = re.compile(r"normali[sz]e|aspect|to_?[tT]ensor|^Variable$")
ARRAYS = {"array", "asarray", "ascontiguousarray", "transpose", "cvtColor", "stack"}
KEEPS = {"unsqueeze", "float", "permute", "transpose", "convert", "div", "astype"}
KEEPS |= {"contiguous", "copy", "mean"}
ENCODES = {"encode", "apply_chat_template", "__call__"}
ENCODER = re.compile(r"(^|_)(enc|tok|bpe|sp|sp_model|encoding)$")
LENGTHS = re.compile(r"(lens|lengths)$")


def last_of(node: ast.AST) -> str:
    return getattr(node, "attr", None) or getattr(node, "id", "") or ""


def moved(at: "State", node: ast.Call) -> None:
    """data[:, i : i + n].to(device): the slice is made on the CPU, and is as long at each turn."""
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Subscript):
        if node.func.attr == "cuda" or is_placed(node):
            at.reported.add(node.func.value)


def goes(at: "State", node: ast.Call, name: str) -> None:
    """What goes to the device is as long as a prompt, a request or a sound is."""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if _answers(at, node, method) or _is_asked(at, node):
        at.report("input-length", node.func, "each request has its own length")
        return
    if at.traced and (_tokenizes(node) or name in MADE_OF) and _is_prompt(at, node):
        at.report("input-length", node.func, "as long as what was given, without padding")
        return
    placed = any(item.arg == "device" for item in node.keywords)
    if method in ("to", "cuda") and _of_a_list(at, node.func.value):  # type: ignore[attr-defined]
        at.report("input-length", node.func, "each element of the list has a size of its own")
        return
    if method in ("to", "cuda") and (node.args or placed or method == "cuda"):
        if not moves_to_host(node):
            _own_length(at, node, node.func.value)  # type: ignore[attr-defined]
    elif placed and name in MADE_OF:
        _own_length(at, node, node)


def _answers(at: "State", node: ast.Call, method: str) -> bool:
    """model.chat(tokenizer, text), speech.generate(sentence) in a loop over sentences, and
    model(data) in predict_fn of a service.
    """
    if not node.args:
        return False
    first = node.args[0]
    if method in ("chat", "stream_chat"):
        return is_model_name(last_of(node.func.value))  # type: ignore[attr-defined]
    if method == "generate" and isinstance(first, ast.Name):
        return any(
            item.kind == "loop" and item.node and TEXTS.search(last_of(item.node))
            for item in reaching(at, first)
        )
    serves = bool(at.functions) and SERVES.search(at.functions[-1]) is not None
    serves = serves and isinstance(node.func, ast.Name) and is_model_name(node.func.id)
    return serves and not at.on_cpu(first)


def _is_asked(at: "State", node: ast.Call) -> bool:
    """infer(model, tokenizer, prompt), in a loop over prompts."""
    names = [last_of(one) for one in node.args]
    if not at.loops or not any(name.endswith("tokenizer") for name in names):
        return False
    return any(
        item.kind == "loop"
        for one in node.args
        for name in walk(one)
        if isinstance(name, ast.Name)
        for item in reaching(at, name)
    )


def _of_a_list(at: "State", node: ast.AST) -> bool:
    """image of [image.to(device) for image in images], v of {k: v.to(device) for k, v in t.items()}
    in a list of targets: what a detector is given, image by image.
    """
    if not isinstance(node, ast.Name) or not at.steps:
        return False
    kept = at.scope.names.get(node.id, ())
    if len(kept) != 1 or kept[0].kind != "loop":
        return False
    over = kept[0].node
    if isinstance(at.scope.node, ast.DictComp):
        outer = at.scope.parent
        match over:
            case ast.Call(func=ast.Attribute(attr="items", value=ast.Name(target))):
                return (
                    outer is not None
                    and isinstance(outer.node, ast.ListComp | ast.GeneratorExp)
                    and any(
                        TARGETS.search(last_of(item.node))
                        for item in outer.names.get(target, ())
                        if item.node
                    )
                )
        return False
    of_images = over is not None and IMAGES.search(last_of(over)) is not None
    return of_images and isinstance(at.scope.node, ast.ListComp | ast.GeneratorExp)


def _own_length(at: "State", node: ast.Call, moved: ast.AST) -> None:
    if at.on_cpu(node):
        return
    if _is_read(at, moved, SOUND):
        at.report("input-length", node.func, "each sound has its own length")
    elif _is_read(at, moved, IMAGE):
        at.report("input-length", node.func, "each image has its own size")
    elif _is_prompt(at, moved):
        at.report(
            "input-length",
            _tokenized(at, moved) or node.func,
            "as long as what was given, without padding",
        )


def _tokenized(at: "State", node: ast.AST, depth: int = 4) -> ast.AST | None:
    """The call of the tokenizer, where it stands in a line of its own."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name) and depth:
        kept = [item.node for item in reaching(at, node) if isinstance(item.node, ast.Call)]
        return _tokenized(at, kept[0], depth - 1) if len(kept) == 1 else None
    return node.func if isinstance(node, ast.Call) and _tokenizes(node) else None


def all_kept(at: "State", name: ast.Name, test: Callable[[ast.AST], bool]) -> bool:
    """Whether the name holds something, and all that it may hold here passes."""
    kept = reaching(at, name)
    return bool(kept) and all(item.node is not None and test(item.node) for item in kept)


def _is_prompt(at: "State", node: ast.AST, depth: int = 6) -> bool:
    """Tensors of a tokenizer that was not asked to pad, or of a list of its own length."""
    if depth == 0:
        return False
    match node:
        case ast.Name():
            return all_kept(at, node, lambda kept: _is_prompt(at, kept, depth - 1))
        case ast.Subscript() | ast.Attribute(attr="input_ids" | "attention_mask"):
            return _is_prompt(at, node.value, depth - 1)
        case ast.Call(func=ast.Attribute(attr="items" | "unsqueeze" | "long" | "view", value=one)):
            return _is_prompt(at, one, depth - 1)
        case ast.Call():
            if at.dotted(node.func) in MADE_OF:
                return bool(node.args) and _as_long_as_given(at, node.args[0])
            given = {item.arg: item.value for item in node.keywords}
            return (
                _tokenizes(node)
                and not _is_fixed(at, node)
                and getattr(given.get("return_tensors"), "value", None) == "pt"
                and not given.keys() & {"padding", "pad_to_multiple_of", None}
            )
    return False


def _is_fixed(at: "State", node: ast.Call) -> bool:
    """tokenizer([self.prompt] * n): a text of the object, the same at each call."""
    text: ast.AST | None = node.args[0] if node.args else None
    if isinstance(text, ast.Name):
        kept = reaching(at, text)
        text = kept[0].node if len(kept) == 1 and kept[0].kind == "value" else None
    if isinstance(text, ast.BinOp):
        text = text.left
    if isinstance(text, ast.List) and len(text.elts) == 1:
        text = text.elts[0]
    return isinstance(text, ast.Attribute) and written(text.value) == "self"


def _tokenizes(node: ast.Call) -> bool:
    """tokenizer(text), tokenizer.encode(text), processor.apply_chat_template(messages)."""
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in ENCODES:
        function = function.value
        if node.func.attr == "encode":  # type: ignore[attr-defined]
            tensors = any(item.arg == "return_tensors" for item in node.keywords)
            if tensors or ENCODER.search(last_of(function)):
                return True
    return (
        TOKENIZER.search(last_of(function)) is not None
        or WRITES.search(last_of(function)) is not None
    )


def _as_long_as_given(at: "State", node: ast.AST, depth: int = 6) -> bool:
    """tokenizer.encode(text), and a list that a loop over requests fills by what they hold."""
    if depth == 0:
        return False
    match node:
        case ast.List(elts=[one]) | ast.Starred(value=one) | ast.ListComp(elt=one):
            return _as_long_as_given(at, one, depth - 1)
        case ast.BinOp(op=ast.Add()):
            return any(_as_long_as_given(at, one, depth - 1) for one in (node.left, node.right))
        case ast.Subscript(value=owner, slice=ast.Constant(value="input_ids")):
            return _as_long_as_given(at, owner, depth - 1)
        case ast.Attribute(attr="input_ids" | "ids", value=owner):
            return _as_long_as_given(at, owner, depth - 1)
        case ast.Call():
            given = {item.arg: item.value for item in node.keywords}
            if last_of(node.func) in ("list", "tuple") and len(node.args) == 1:
                return _as_long_as_given(at, node.args[0], depth - 1)
            match node:
                case ast.Call(func=ast.Name("sum"), args=[_, ast.List(elts=[])]):
                    return True  # lists of requests, one behind the other
            fixed = getattr(given.get("padding"), "value", None) == "max_length"
            return _tokenizes(node) and not fixed
        case ast.Attribute() if SO_FAR.search(node.attr):
            return at.kind(node) != "tensor"
        case ast.Name():
            kept = reaching(at, node)
            home = at.scope.find(node.id)
            if home is not None and node.id in home.added:
                return any(isinstance(one, ast.Starred) for one in home.added[node.id])
            if any(_is_list_of_numbers(item.node) for item in kept):
                return True
            if TOKENS.search(node.id) and at.kind(node) != "tensor":
                if all(item.kind in ("parameter", "loop", "part") for item in kept):
                    return True  # a list of tokens that a caller gives
            return bool(kept) and all(
                item.kind == "value"
                and item.node is not None
                and _as_long_as_given(at, item.node, depth - 1)
                for item in kept
            )
    return False


def _is_list_of_numbers(node: ast.AST | None) -> bool:
    """A parameter that is annotated as List[int] or List[List[int]]."""
    if not isinstance(node, ast.arg) or LENGTHS.search(node.arg):
        return False
    kind = node.annotation
    while isinstance(kind, ast.Subscript) and last_of(kind.value) in ("List", "list", "Sequence"):
        kind = kind.slice
        if isinstance(kind, ast.Name) and kind.id == "int":
            return True
    return False


def _is_read(at: "State", node: ast.AST, reads: re.Pattern[str], depth: int = 16) -> bool:
    """What a library of sounds or images reads, by its size, and the same by another name."""
    if depth == 0:
        return False
    match node:
        case ast.Name():
            own = [item.node for item in reaching(at, node) if not isinstance(item.node, ast.arg)]
            if not own:
                return all_kept(at, node, lambda kept: _is_read(at, kept, reads, depth - 1))
            return all(one is not None and _is_read(at, one, reads, depth - 1) for one in own)
        case ast.BinOp(left=one) | ast.Subscript(value=one):
            return _is_read(at, one, reads, depth - 1)
        case ast.arg():
            return is_given(at, node, lambda one: _is_read(at, one, reads, depth // 2))
        case ast.Call():
            if reads.search(at.dotted(node.func) or written(node.func)):
                return True
            if last_of(node.func) in ("resample", "from_numpy", "tensor", "FloatTensor", *ARRAYS):
                return any(_is_read(at, one, reads, depth - 1) for one in node.args)
            if THROUGH.search(last_of(node.func)) and node.args:
                return _is_read(at, node.args[0], reads, depth - 1)
            if isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS:
                return _is_read(at, node.func.value, reads, depth - 1)
            return _gives_read(at, node, reads, depth - 1)
    return False


def _gives_read(at: "State", node: ast.Call, reads: re.Pattern[str], depth: int) -> bool:
    """A function of this file whose only end gives back what a library read."""
    result = at.tensors.defined(node.func, at.scope) if isinstance(node.func, ast.Name) else None
    if result is None or result[0] is not at.tensors or not isinstance(result[1], ast.FunctionDef):
        return False
    ends = [one.value for one in walk(result[1]) if isinstance(one, ast.Return) and one.value]
    with at.having(scope=at.names.scopes[result[1]]):
        return len(ends) == 1 and _is_read(at, ends[0], reads, depth)
