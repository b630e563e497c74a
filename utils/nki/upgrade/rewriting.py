"""The rewrites of `upgrade`, one transformer of LibCST, which keeps format and comments.

An instruction of older kernels returns its result; today the kernel allocates the tile, in the
shape and type of its operands. What the transformer is not sure of it leaves to `remains`.
"""

import ast
from collections.abc import Sequence
from typing import TypeAlias

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor
from libcst.metadata import MetadataWrapper, PositionProvider

from utils.nki.simulator.instructions import nisa
from utils.nki.simulator.table import TABLE
from utils.nki.upgrade import Edit
from utils.nki.upgrade.indices import Names, Walk, limits, of, uses, walks_in

assert nisa, "importing it fills TABLE"
LANGUAGE, ISA = "nki.language.", "nki.isa."
RANGES = {f"{LANGUAGE}{name}" for name in ("affine_range", "sequential_range", "static_range")}
OPERATORS = {
    cst.Add: "add", cst.Subtract: "subtract", cst.Multiply: "multiply", cst.Divide: "divide",
    cst.Power: "power",
}  # fmt: skip
NO_TILES = set(
    "ds arange mgrid affine_range sequential_range static_range program_id num_programs par_dim "
    "store device_print dynamic_range".split()
)
"""Functions of nki.language whose result is no tile."""
LIKE = {
    "activation": "data", "activation_reduce": "data", "tensor_copy": "src", "dropout": "data",
    "tensor_tensor": "data1", "tensor_scalar": "data", "scalar_tensor_tensor": "data",
    "tensor_tensor_scan": "data0", "reciprocal": "data", "affine_select": "on_true_tile",
    "range_select": "on_true_tile", "nc_stream_shuffle": "src", "tensor_scalar_reduce": "data",
}  # fmt: skip
"""The operand whose shape and type the result of an instruction had."""
REDUCED = {"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add"}
DECORATORS = {"nki.baremetal", "nki.benchmark", "nki.profile", "nki.trace", "torch_neuronx.nki_jit"}
AUGMENTED = {cst.AddAssign: "add", cst.SubtractAssign: "subtract", cst.MultiplyAssign: "multiply"}
RENAMED = {"is_moving_zero": "is_moving_onezero", "use_gpsimd_dma": "dma_engine"}
OF_PRODUCTS = ("stationary", "moving", "data")
TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
OLD = ("neuronxcc.nki.language", "neuronxcc.nki.isa", "neuronxcc.nki.typing")
DROPPED = {"psumAccumulateFlag", "mask", "lazy_initialization"}
Statement: TypeAlias = (
    cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel
)


def rewrite(text: str) -> tuple[str, list[Edit]]:
    """The rewritten source, and what was done. Raises: ValueError for what is no Python."""
    try:
        module, tree = cst.parse_module(text), ast.parse(text)
    except (cst.ParserSyntaxError, SyntaxError, ValueError) as problem:
        raise ValueError(f"no Python: {problem}") from None
    if not any("nki" in name for name in Names(tree).modules.values()):
        return text, []
    context = CodemodContext()
    kept: set[str] = set()
    sums: set[str] = set()
    while True:  # arrays of indices stay where one use has no slice
        rewriter = _Rewriter(Names(tree), kept, sums)
        result = MetadataWrapper(module, unsafe_skip_copy=True).visit(rewriter)
        left = {item.id for item in ast.walk(ast.parse(result.code))
                if isinstance(item, ast.Name) and item.id in rewriter.removed}  # fmt: skip
        more = (rewriter.unsliced | left) - kept, rewriter.sums - sums
        if not any(more):
            break
        kept, sums = kept | more[0], sums | more[1]
    if not rewriter.edits:
        return text, []
    for name, alias in (("nki.isa", "nisa"), ("nki.language", "nl")):
        bound = any(full.endswith(name) for full in rewriter.full.modules.values())
        if not bound and f"{alias}." in result.code:
            AddImportsVisitor.add_needed_import(context, name, asname=alias)
    result = AddImportsVisitor(context).transform_module(result)
    return result.code, sorted(set(rewriter.edits), key=lambda e: (e.line, e.rule, e.what))


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node).strip()


def _tree(node: cst.CSTNode | str) -> ast.expr:
    text = node if isinstance(node, str) else _code(node)
    return ast.parse(f"({text})", mode="eval").body


def _parts(tree: ast.expr) -> list[ast.expr]:
    """The parts of an index."""
    assert isinstance(tree, ast.Subscript)
    return tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]


class _Rewriter(cst.CSTTransformer):
    """walks: arrays of indices by name. tiles, psum: names of tiles. blocks: how many block
    dimensions a tensor had. kept: arrays of indices that are used where no slice will do."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, full: Names, kept: set[str], sums: set[str]) -> None:
        super().__init__()
        self.full, self.kept, self.known_sums = full, kept, sums
        self.removed: set[str] = set()
        self.sums: set[str] = set()
        self.unsliced: set[str] = set()
        self.walks: dict[str, Walk] = {}
        self.tiles: set[str] = set()
        self.psum: set[str] = set()
        self.blocks: dict[str, int] = {}
        self.limits: list[dict[str, str]] = []
        self.partial: dict[str, tuple[list[str], list[str]]] = {}
        self.edits: list[Edit] = []
        self.temporaries = 0
        self.depth = 0
        self.line = 1

    # ---- small things ------------------------------------------------------------------------

    def edit(self, node: cst.CSTNode, rule: str, what: str) -> None:
        """Note what was done at a node of the source before."""
        try:
            self.line = self.get_metadata(PositionProvider, node).start.line
        except KeyError:  # a node of our own: at the last one of the source
            pass
        self.edits.append(Edit(self.line, rule, what))

    def name(self, node: cst.CSTNode | str) -> str:
        """The full name of an expression, in today's namespace."""
        try:
            return self.full(_tree(node))
        except SyntaxError:
            return ""

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.depth += 1
        if self.depth == 1:
            self.walks, self.blocks = {}, {}
            self.tiles, self.psum = set(), set()

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        self.depth -= 1
        return updated_node

    # ---- imports and decorators --------------------------------------------------------------

    def leave_ImportAlias(
        self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias
    ) -> cst.ImportAlias:
        name = _code(updated_node.name)
        if name == "neuronxcc.nki" or name in OLD:
            self.edit(original_node, "namespace", "neuronxcc.nki is nki")
            short = name.removeprefix("neuronxcc.")
            if short == "nki" and updated_node.asname and _code(updated_node.asname.name) == "nki":
                return updated_node.with_changes(name=cst.Name("nki"), asname=None)
            return updated_node.with_changes(name=cst.parse_expression(short))
        return updated_node

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.Import:
        module = _code(updated_node.module) if updated_node.module else ""
        if module == "neuronxcc" and not isinstance(updated_node.names, cst.ImportStar):
            aliases = [alias for alias in updated_node.names if _code(alias.name) == "nki"]
            if len(aliases) == len(updated_node.names):
                self.edit(original_node, "namespace", "neuronxcc.nki is nki")
                return cst.Import(names=[aliases[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
        if module == "neuronxcc.nki" or module in OLD:
            self.edit(original_node, "namespace", "neuronxcc.nki is nki")
            new = cst.parse_expression(module.removeprefix("neuronxcc."))
            return updated_node.with_changes(module=new)
        return updated_node

    def leave_Decorator(
        self, original_node: cst.Decorator, updated_node: cst.Decorator
    ) -> cst.Decorator | cst.RemovalSentinel:
        inner = updated_node.decorator
        call = inner if isinstance(inner, cst.Call) else None
        name = self.name(call.func if call else inner)
        if name.startswith("nki.compiler."):
            self.edit(original_node, "decorator", f"{name} is gone; the compiler keeps the order")
            return cst.RemoveFromParent()
        if name in DECORATORS:
            if name == "nki.trace" or self.depth > 1:
                self.edit(original_node, "decorator", f"functions of a kernel need no {name}")
                return cst.RemoveFromParent()
            self.edit(original_node, "decorator", f"{name} is nki.jit")
            return updated_node.with_changes(decorator=cst.parse_expression("nki.jit"))
        if name == "nki.jit" and call is not None:
            left = [arg for arg in call.args if arg.keyword is None or arg.keyword.value not in
                    ("mode", "platform_target", "kernel_return", "show_compiler_tb")]  # fmt: skip
            if len(left) < len(call.args):
                self.edit(original_node, "decorator", "nki.jit without mode and target")
                new = call.with_changes(args=_commas(left)) if left else call.func
                return updated_node.with_changes(decorator=new)
        return updated_node

    # ---- expressions -------------------------------------------------------------------------

    def visit_Call(self, node: cst.Call) -> None:
        results: dict[str, str] = {}
        if self.name(node.func) in (f"{LANGUAGE}load", f"{LANGUAGE}store"):
            mask = next((arg for arg in node.args if _keyword(arg) == "mask"), None)
            if mask is not None and _code(mask.value) != "None":
                results = limits(_tree(mask.value), self.walks, self.full) or {"": ""}
        self.limits.append(results)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        result = self.limits.pop()
        name = self.name(updated_node.func)
        if name in RANGES:
            self.edit(original_node, "range", f"{name.rpartition('.')[2]} is range")
            return updated_node.with_changes(func=cst.Name("range"))
        if name in (f"{LANGUAGE}load", f"{LANGUAGE}store") and result:
            return self._mask(original_node, updated_node, name, result)
        if name.startswith((ISA, LANGUAGE)):
            updated_node = self._arguments(original_node, updated_node, name)
        if isinstance(updated_node.func, cst.Attribute) and not name:
            owner, method = updated_node.func.value, updated_node.func.attr.value
            if method == "broadcast_to" and self._is_tile(owner):
                self.edit(original_node, "broadcast", "nl.broadcast_to(tile, shape)")
                args = [cst.Arg(owner), *updated_node.args]
                return cst.Call(cst.parse_expression(f"{self._nl()}.broadcast_to"), _commas(args))
        return updated_node

    def _nl(self) -> str:
        return next((k for k, v in self.full.modules.items() if v.endswith("nki.language")), "nl")

    def _nisa(self) -> str:
        return next((k for k, v in self.full.modules.items() if v.endswith("nki.isa")), "nisa")

    def _arguments(self, node: cst.Call, call: cst.Call, name: str) -> cst.Call:
        """Renamed and dropped arguments, operators of NumPy, memories by name."""
        args: list[cst.Arg] = []
        for arg in call.args:
            keyword, value = _keyword(arg), arg.value
            moves = name.endswith((".load", ".store")) and _code(value) != "None"
            if keyword in DROPPED and not moves:
                self.edit(node, "argument", f"{keyword}= is gone; the whole tile is computed")
                continue
            if keyword == "is_transpose" and _code(value) != "False":
                self.edit(node, "argument", "a product with an identity transposes by itself")
                continue
            if keyword in RENAMED and name.startswith(ISA):
                new = RENAMED[keyword]
                self.edit(node, "argument", f"{keyword}= is {new}=")
                if keyword == "use_gpsimd_dma":
                    kind = "gpsimd_dma" if _code(value) == "True" else "dma"
                    value = cst.parse_expression(f"{self._nisa()}.dma_engine.{kind}")
                arg = arg.with_changes(keyword=cst.Name(new), value=value)
            elif name.startswith(ISA) and self._is_operator(value):
                short = self.name(value).rpartition(".")[2]
                self.edit(node, "operator", f"{short} is nl.{REDUCED.get(short, short)}")
                op = f"{self._nl()}.{REDUCED.get(short, short)}"
                arg = arg.with_changes(value=cst.parse_expression(op))
            elif keyword == "buffer" and isinstance(value, cst.SimpleString):
                self.edit(node, "memory", f"buffer={_code(value)} is an object of nl")
                memory = f"{self._nl()}.{_code(value).strip(chr(34) + chr(39))}"
                arg = arg.with_changes(value=cst.parse_expression(memory))
            args.append(arg)
        if name in (f"{LANGUAGE}ndarray", f"{LANGUAGE}zeros", f"{LANGUAGE}ones", f"{LANGUAGE}full"):
            args = [self._shape(node, arg, place) for place, arg in enumerate(args)]
        return call.with_changes(args=_commas(args))

    def _is_operator(self, value: cst.BaseExpression) -> bool:
        """A function of NumPy, or one of nl that is no operator, where an operator is wanted."""
        module, _, short = self.name(value).rpartition(".")
        return module == "numpy" or (module == "nki.language" and short in REDUCED)

    def _shape(self, node: cst.Call, arg: cst.Arg, place: int) -> cst.Arg:
        """`nl.par_dim(n)` in front is n: the first dimension is the partition."""
        if _keyword(arg) != "shape" and (place or arg.keyword is not None):
            return arg
        if not isinstance(arg.value, cst.Tuple):
            return arg
        elements = list(arg.value.elements)
        first = elements[0].value if elements else None
        if isinstance(first, cst.Call) and self.name(first.func) == f"{LANGUAGE}par_dim":
            self.edit(node, "par_dim", "the first dimension is the partition")
            elements[0] = elements[0].with_changes(value=first.args[0].value)
            return arg.with_changes(value=arg.value.with_changes(elements=elements))
        return arg

    def _mask(
        self, node: cst.Call, call: cst.Call, name: str, result: dict[str, str]
    ) -> cst.BaseExpression:
        """A load or store whose slices are shorter in the last tile."""
        if "" in result:
            return call
        access = call.args[0].value
        original = node.args[0].value
        walks = self._walks_of(original)
        if not walks or not isinstance(access, cst.Subscript) or self._has_arrays(access):
            return call
        left = [arg for arg in call.args if _keyword(arg) != "mask"]
        full = [walk.size for walk in walks]
        part = [Walk("0", w.size, w.axis).slice(result.get(w.name, "")) for w in walks]
        self.edit(node, "mask", "the last tile is cut by its slice")
        if name.endswith("store"):
            value = left[1]
            inner = value.value
            left[1] = value.with_changes(value=cst.parse_expression(_cut(inner, full, part)))
            return call.with_changes(args=_commas(left))
        new = call.with_changes(args=_commas(left))
        self.partial[_code(new)] = (full, part)
        return new

    def _has_arrays(self, node: cst.CSTNode) -> bool:
        return uses(_tree(node), self.walks, self.full)

    def _walks_of(self, node: cst.BaseExpression) -> list[Walk]:
        if not isinstance(node, cst.Subscript):
            return []
        results = [of(part, self.walks, self.full) for part in _parts(_tree(node))]
        return [walk for walk in results if walk is not None]

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        tree = _tree(original_node)
        if not isinstance(tree, ast.Subscript):
            return updated_node
        parts = _parts(tree)
        if self.full(tree.value) in ("nki.language.mgrid",) or of(tree, {}, self.full):
            return updated_node  # it makes an array of indices
        text = [ast.unparse(part) for part in parts]
        changed = False
        if any(uses(part, self.walks, self.full) for part in parts):
            results = [of(part, self.walks, self.full) for part in parts]
            axes = [walk.axis for walk in results if walk is not None]
            whole = all(
                walk is not None or not uses(part, self.walks, self.full)
                for walk, part in zip(results, parts, strict=True)
            )
            named = {item.id for part in parts for item in ast.walk(part)
                     if isinstance(item, ast.Name) and item.id in self.walks}  # fmt: skip
            if not whole or axes != sorted(set(axes)) or named & self.kept:
                self.unsliced |= named
                return updated_node
            limit = next((item for item in reversed(self.limits) if item), {})
            text = [
                old if walk is None else walk.slice(limit.get(walk.name, ""))
                for walk, old in zip(results, text, strict=True)
            ]
            self.edit(original_node, "indices", "arrays of indices are slices")
            changed = True
        owner = _code(updated_node.value)
        outer = self.blocks.get(owner, 0)
        if outer and len(text) >= outer:
            head, rest = text[:outer], text[outer:]
            self.edit(original_node, "blocks", "a list of tiles, indexed first")
            owner += "".join(f"[{part}]" for part in head)
            rest = [] if rest == ["..."] else rest
            return cst.parse_expression(f"{owner}[{', '.join(rest)}]" if rest else owner)
        if not changed:
            return updated_node
        return cst.parse_expression(f"{owner}[{', '.join(text)}]")

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        op = OPERATORS.get(type(updated_node.operator))
        left, right = updated_node.left, updated_node.right
        if op is None or not (self._is_tile(left) or self._is_tile(right)):
            return updated_node
        nl = self._nl()
        self.edit(original_node, "operator", f"tiles have no operators: {nl}.{op}")
        if op == "divide" and _code(left) in ("1", "1.0"):
            return cst.parse_expression(f"{nl}.reciprocal({_code(right)})")
        if op == "divide" and not self._is_tile(right):
            return cst.parse_expression(f"{nl}.multiply({_code(left)}, 1.0 / ({_code(right)}))")
        return cst.parse_expression(f"{nl}.{op}({_code(left)}, {_code(right)})")

    def _is_tile(self, node: cst.BaseExpression) -> bool:
        while isinstance(node, cst.Subscript):
            node = node.value
        if isinstance(node, cst.Name):
            return node.value in self.tiles
        if isinstance(node, cst.Call):
            name = self.name(node.func)
            short = name.rpartition(".")[2]
            return name.startswith(ISA) or (name.startswith(LANGUAGE) and short not in NO_TILES)
        return False

    # ---- statements --------------------------------------------------------------------------

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Statement:
        if len(updated_node.body) != 1:
            return updated_node
        small, before = updated_node.body[0], original_node.body[0]
        target = ""
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            target = _code(small.targets[0].target)
            assert isinstance(before, cst.Assign)
            walks = walks_in(_tree(before.value), self.full, target)
            if walks:
                self.walks |= walks
                if walks.keys() & self.kept:
                    return original_node
                self.removed |= walks.keys()
                self.edit(original_node, "indices", f"{target} is written as slices")
                return cst.RemoveFromParent()
            walk = of(_tree(before.value), self.walks, self.full)
            named = {
                item.id for item in ast.walk(_tree(before.value)) if isinstance(item, ast.Name)
            }
            if walk is not None and target.isidentifier() and not {target, *named} & self.kept:
                self.walks[target] = Walk(walk.base, walk.size, walk.axis, walk.step, walk.name)
                self.removed.add(target)
                self.edit(original_node, "indices", f"{target} is written as slices")
                return cst.RemoveFromParent()
        lines = self._statement(original_node, small, target)
        if lines is None:
            return updated_node
        made_ = [cst.parse_statement(line) for line in lines]
        made_[0] = made_[0].with_changes(leading_lines=updated_node.leading_lines)
        made_[-1] = made_[-1].with_changes(trailing_whitespace=updated_node.trailing_whitespace)
        return cst.FlattenSentinel(made_)

    def _statement(
        self, node: cst.CSTNode, small: cst.BaseSmallStatement, target: str
    ) -> list[str] | None:
        """The statements that stand for one, or None where it stays."""
        lines: list[str] = []
        if isinstance(small, cst.AugAssign):
            return self._add(node, small)
        if isinstance(small, cst.Assign) and target:
            value = small.value
            name = self.name(value.func) if isinstance(value, cst.Call) else ""
            moved = self._moved(node, small, value, name)
            if moved is not None:
                return moved
            blocks = self._blocking_reason(node, value, target)
            if blocks is not None:
                return [f"{target} = {blocks}"]
            partial = isinstance(value, cst.Call) and _code(value) in self.partial
            if partial and target.isidentifier():
                assert isinstance(value, cst.Call)
                full, part = self.partial[_code(value)]
                self.tiles.add(target)
                nl = self._nl()
                source = _code(value.args[0].value)
                dtype = next((_code(a.value) for a in value.args if _keyword(a) == "dtype"), "")
                owner = source.partition("[")[0]
                return [
                    f"{target} = {nl}.ndarray(({', '.join(full)},), "
                    f"dtype={dtype or owner + '.dtype'}, buffer={nl}.sbuf)",
                    f"{self._nisa()}.dma_copy(dst={target}[{', '.join(part)}], src={source})",
                ]
            if isinstance(value, cst.Call) and self._returns(value):
                place = target.removesuffix("[...]")
                owner = place.partition("[")[0]
                in_psum = name.removeprefix(ISA) in ("nc_matmul", "nc_transpose")
                if in_psum and not target.isidentifier() and owner not in self.psum:
                    held = self._temporary()
                    if self._issue(node, value, held, lines, True) is None:
                        return None
                    return [*lines, f"{self._nisa()}.tensor_copy(dst={place}, src={held})"]
                made_ = self._issue(node, value, place, lines, target.isidentifier())
                if made_ is not None:
                    return lines
                return None
            new = self._hoist(node, value, lines)
            self._kind(target, value, name)
            if target in self.known_sums and name == f"{LANGUAGE}zeros" and "psum" in _code(value):
                assert isinstance(value, cst.Call)
                self.edit(node, "accumulate", "the first product overwrites, so nothing is zeroed")
                empty = cst.parse_expression(f"{self._nl()}.ndarray")
                return [f"{target} = {_code(value.with_changes(func=empty))}"]
            return [*lines, f"{target} = {_code(new)}"] if lines else None
        if isinstance(small, cst.Expr | cst.Return) and small.value is not None:
            new = self._hoist(node, small.value, lines)
            if isinstance(small, cst.Expr) and isinstance(new, cst.Name) and lines:
                return lines  # an instruction whose result nobody took
            word = "return " if isinstance(small, cst.Return) else ""
            return [*lines, f"{word}{_code(new)}"] if lines else None
        return None

    def _moved(
        self, node: cst.CSTNode, small: cst.Assign, value: cst.BaseExpression, name: str
    ) -> list[str] | None:
        """`tile[...] = nl.load(x)` and `tile[...] = nl.copy(y)` write to the tile that is there."""
        into = small.targets[0].target
        known = {f"{LANGUAGE}load": "dma_copy", f"{LANGUAGE}copy": "tensor_copy"}
        if name not in known or not isinstance(value, cst.Call):
            return None
        if not isinstance(into, cst.Subscript):
            return None
        lines: list[str] = []
        source = self._operand(node, value.args[0].value, lines)
        place = _code(into).removesuffix("[...]")
        if _code(value) in self.partial:
            place = _cut(into, *self.partial[_code(value)])
        elif "mask" in {_keyword(arg) for arg in value.args}:
            return None
        self.edit(node, "dst", f"nisa.{known[name]} writes to the tile")
        return [*lines, f"{self._nisa()}.{known[name]}(dst={place}, src={source})"]

    def _kind(self, target: str, value: cst.BaseExpression, name: str) -> None:
        """Remember what a name holds."""
        if not target.isidentifier():
            return
        text = _code(value)
        if name.startswith(LANGUAGE) and isinstance(value, cst.Call):
            if "psum" in text:
                self.psum.add(target)
            if "hbm" not in text and name.rpartition(".")[2] not in NO_TILES:
                self.tiles.add(target)
            return
        if self._is_tile(value):
            self.tiles.add(target)

    def _blocking_reason(
        self, node: cst.CSTNode, value: cst.BaseExpression, target: str
    ) -> str | None:
        """A tensor with block dimensions, as a list of tiles."""
        if not isinstance(value, cst.Call) or not value.args or not target.isidentifier():
            return None
        if self.name(value.func).removeprefix(LANGUAGE) not in ("ndarray", "zeros", "ones", "full"):
            return None
        first = value.args[0]
        shape = first.value
        if not isinstance(shape, cst.Tuple):
            return None
        sizes = [element.value for element in shape.elements]
        at = next((i for i, size in enumerate(sizes) if isinstance(size, cst.Call)
                   and self.name(size.func) == f"{LANGUAGE}par_dim"), 0)  # fmt: skip
        if not at:
            return None
        partition = sizes[at]
        assert isinstance(partition, cst.Call)
        inner = ", ".join([_code(partition.args[0].value), *map(_code, sizes[at + 1 :])])
        tile = _code(value.with_changes(args=_commas([
            first.with_changes(value=cst.parse_expression(f"({inner})")), *value.args[1:]
        ])))  # fmt: skip
        if target in self.known_sums and "psum" in tile:
            tile = tile.replace(".zeros(", ".ndarray(", 1)
        for size in reversed(sizes[:at]):
            tile = f"[{tile} for _ in range({_code(size)})]"
        self.blocks[target] = at
        if "psum" in tile:
            self.psum.add(target)
        self.edit(node, "blocks", "block dimensions are a list of tiles")
        return tile

    def _add(self, node: cst.CSTNode, small: cst.AugAssign) -> list[str] | None:
        target = _code(small.target).removesuffix("[...]")
        value, lines = small.value, list[str]()
        owner = target.partition("[")[0]
        nisa_, nl = self._nisa(), self._nl()
        if isinstance(value, cst.Call) and isinstance(small.operator, cst.AddAssign):
            name = self.name(value.func)
            places = ("stationary", "moving") if name.startswith(ISA) else ("x", "y")
            named = {
                _keyword(arg) or (*places, "", "")[place]: arg.value
                for place, arg in enumerate(value.args)
            }
            turned = _code(named.get("transpose_x", cst.Name("no"))) == "True"
            is_product = name == f"{ISA}nc_matmul" or (name == f"{LANGUAGE}matmul" and turned)
            operands = (
                [self._operand(node, named[place], lines) for place in places]
                if is_product and set(places) <= named.keys()
                else []
            )
            if operands:
                self.sums.add(owner)
                self.edit(node, "accumulate", "a product is added in PSUM by the instruction")
                words = f"dst={target}, stationary={operands[0]}, moving={operands[1]}"
                return [*lines, f"{nisa_}.nc_matmul({words})"]
        op = AUGMENTED.get(type(small.operator))
        if op is None or owner not in self.tiles | set(self.blocks):
            return None
        self.edit(node, "operator", f"tiles have no operators: tensor_tensor with {nl}.{op}")
        if self._is_tile(value):
            other = self._operand(node, value, lines)
            words = f"dst={target}, data1={target}, data2={other}, op={nl}.{op}"
            return [*lines, f"{nisa_}.tensor_tensor({words})"]
        words = f"dst={target}, data={target}, op0={nl}.{op}, operand0={_code(value)}"
        return [f"{nisa_}.tensor_scalar({words})"]

    # ---- instructions that returned their result ---------------------------------------------

    def _returns(self, call: cst.Call) -> bool:
        """Whether it is an instruction without the tile it writes."""
        name = self.name(call.func)
        spec = TABLE.get(name.removeprefix(ISA)) if name.startswith(ISA) else None
        if spec is None or not spec.outputs or spec.outputs[0] != spec.names[0]:
            return False
        given = {_keyword(arg) for arg in call.args} - {""}
        placed = set(spec.names[: sum(arg.keyword is None for arg in call.args)])
        new = spec.required <= given | placed and given <= {*spec.names, "name"}
        return "dst" not in given and not new

    def _hoist(
        self, node: cst.CSTNode, value: cst.BaseExpression, lines: list[str]
    ) -> cst.BaseExpression:
        """An expression whose instructions stand in statements of their own before it."""
        rewriter = self

        class Hoist(cst.CSTTransformer):
            """Innermost calls first."""

            def leave_Call(
                self, original_node: cst.Call, updated_node: cst.Call
            ) -> cst.BaseExpression:
                if not rewriter._returns(updated_node):
                    return updated_node
                name = rewriter._temporary()
                if rewriter._issue(node, updated_node, name, lines, True) is None:
                    return updated_node
                return cst.Name(name)

        return value.visit(Hoist())  # type: ignore[return-value]

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"tile_{self.temporaries}"

    def _operand(self, node: cst.CSTNode, value: cst.BaseExpression, lines: list[str]) -> str:
        """The source of an operand that has a shape and a name."""
        value = self._hoist(node, value, lines)
        if isinstance(value, cst.Call):
            name = self._temporary()
            lines.append(f"{name} = {_code(value)}")
            self.tiles.add(name)
            return name
        return _code(value)

    def _issue(
        self, node: cst.CSTNode, call: cst.Call, dst: str, lines: list[str], allocates: bool
    ) -> str | None:
        """Append the allocation of `dst`, if asked, and the instruction; None where the shape of
        the result is not known."""
        short = self.name(call.func).removeprefix(ISA)
        spec = TABLE[short]
        own = list[str]()
        given: dict[str, str] = {}
        args: list[cst.Arg] = []
        for place, arg in enumerate(call.args):
            keyword = _keyword(arg) or (
                spec.names[place + 1] if place + 1 < len(spec.names) else ""
            )
            value = arg.value
            if isinstance(value, cst.Call) and self._is_tile(value):
                value = cst.parse_expression(self._operand(node, value, own))
                arg = arg.with_changes(value=value)
            if self._from_psum(short, keyword, value, given):
                arg = arg.with_changes(value=cst.parse_expression(self._copy(value, own)))
            given[keyword] = _code(arg.value)
            if keyword and arg.keyword is None:
                arg = arg.with_changes(keyword=cst.Name(keyword), equal=TIGHT)
            args.append(arg)
        if short == "memset" and "shape" not in given:
            names = ["shape", "value", "dtype"]
            given = {_keyword(arg) or names[place]: _code(arg.value)
                     for place, arg in enumerate(call.args)}  # fmt: skip
        shape, dtype, buffer = self._result(short, given)
        if allocates and not shape:
            return None
        nl = self._nl()
        self.edit(node, "dst", f"nisa.{short} writes to a tile that the kernel allocates")
        lines += own
        if allocates:
            kind = given.get("dtype") or dtype
            lines.append(f"{dst} = {nl}.ndarray({shape}, dtype={kind}, buffer={nl}.{buffer})")
            self.tiles.add(dst)
            if buffer == "psum":
                self.psum.add(dst)
        if short == "memset":
            lines.append(f"{_code(call.func)}(dst={dst}, value={given.get('value', '0')})")
            return dst
        rest = [arg for arg in args if _keyword(arg) != "dtype"]
        first = cst.Arg(cst.parse_expression(dst), keyword=cst.Name("dst"), equal=TIGHT)
        lines.append(_code(call.with_changes(args=_commas([first, *rest]))))
        return dst

    def _from_psum(
        self, short: str, keyword: str, value: cst.BaseExpression, given: dict[str, str]
    ) -> bool:
        """Whether an operand lies in PSUM and may not: of a product, and the second of two."""
        owner = _code(value).partition("[")[0]
        if owner not in self.psum:
            return False
        other = given.get("data1", "").partition("[")[0]
        second = short == "tensor_tensor" and keyword == "data2" and other in self.psum
        return second or (short in ("nc_matmul", "nc_transpose") and keyword in OF_PRODUCTS)

    def _copy(self, value: cst.BaseExpression, lines: list[str]) -> str:
        """A copy in SBUF, by statements before this one."""
        held, text, nl = self._temporary(), _code(value), self._nl()
        lines.append(f"{held} = {nl}.ndarray({text}.shape, dtype={text}.dtype, buffer={nl}.sbuf)")
        lines.append(f"{self._nisa()}.tensor_copy(dst={held}, src={text})")
        return held

    def _result(self, short: str, given: dict[str, str]) -> tuple[str, str, str]:
        """Shape, type and memory of what an instruction returned; "" for a shape not known."""
        like = given.get(LIKE.get(short, ""), "")
        if like:
            return f"{like}.shape", f"{like}.dtype", "sbuf"
        nl = self._nl()
        data = given.get("data", "")
        if short == "nc_matmul" and {"stationary", "moving"} <= given.keys():
            one, other = given["stationary"], given["moving"]
            return f"({one}.shape[1], {other}.shape[1])", f"{nl}.float32", "psum"
        if short == "nc_transpose" and data:
            return f"({data}.shape[1], {data}.shape[0])", f"{data}.dtype", "psum"
        if short == "tensor_reduce" and data:
            if given.get("axis", "").strip("()[], ") in ("1", "-1"):
                return f"({data}.shape[0], 1)", f"{data}.dtype", "sbuf"
        if short == "memset" and "shape" in given:
            return given["shape"], f"{nl}.float32", "sbuf"
        if short == "bn_stats" and data:
            return f"({data}.shape[0], 6)", f"{nl}.float32", "sbuf"
        if short == "bn_aggr" and data:
            return f"({data}.shape[0], 2)", f"{nl}.float32", "sbuf"
        if short == "max8" and given.get("src"):
            return f"({given['src']}.shape[0], 8)", f"{given['src']}.dtype", "sbuf"
        return "", "", ""


def _cut(tile: cst.BaseExpression, sizes: list[str], part: list[str]) -> str:
    """The part of a tile, which may be written as a slice of its whole size."""
    whole = [f"0:{size}" for size in sizes]
    written = [_code(item.slice) for item in tile.slice] if isinstance(tile, cst.Subscript) else []
    if isinstance(tile, cst.Subscript) and written == whole:
        return f"{_code(tile.value)}[{', '.join(part)}]"
    return f"{_code(tile)}[{', '.join(part)}]"


def _keyword(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword is not None else ""


def _commas(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Arguments with a comma between any two, and those of the source where they were."""
    made_ = []
    for place, arg in enumerate(args):
        if place == len(args) - 1:
            made_.append(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT))
        elif isinstance(arg.comma, cst.Comma):
            made_.append(arg)
        else:
            made_.append(
                arg.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
            )
    return made_
