"""Arrays of indices in older kernels, `nl.arange` and `nl.mgrid`, and the slices that they mean.

An index such as `i * 128 + i_p`, with `i_p = nl.arange(128)[:, None]`, walks over neighbours: it is
`nl.ds(i * 128, 128)`. One that mixes two walks, or that walks backwards, has no slice.
"""

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Walk:
    """`base + step * arange(size)` along an axis of the result; expressions are source text.

    name: of the array, by which a mask is matched with an index.
    """

    base: str
    size: str
    axis: int
    step: str = "1"
    name: str = ""

    def slice(self, limit: str = "") -> str:
        """The slice of these elements; `limit` is how many of them there are at most.

        >>> Walk("i * 128", "128", 0).slice(), Walk("0", "n", 1).slice("m")
        ('nl.ds(i * 128, 128)', '0:min(n, m)')
        """
        size = f"min({self.size}, {limit})" if limit else self.size
        if self.step != "1":
            return f"{self.base}:{self.base} + {_factor(size)} * {_factor(self.step)}:{self.step}"
        return f"0:{size}" if self.base == "0" else f"nl.ds({self.base}, {size})"


def _factor(text: str) -> str:
    return text if text.replace("_", "").isalnum() else f"({text})"


def _sum(left: str, right: str, sign: str = "+") -> str:
    if left == "0" and sign == "+":
        return right
    if right == "0":
        return left
    right = f"({right})" if sign == "-" and not right.replace("_", "").isalnum() else right
    return f"{left} {sign} {right}"


Walks = dict[str, Walk]


def walks_in(node: ast.expr, full: "Names", target: str) -> dict[str, Walk]:
    """The walks that an assignment makes: `i = nl.arange(n)[:, None]`, `i, j = nl.mgrid[...]`.

    full: gives the full name of an expression, such as "nki.language.arange".
    """
    names = [part.strip() for part in target.strip("()").split(",")]
    match node:
        case ast.Subscript(value=inner, slice=grid) if full(inner) == "nki.language.mgrid":
            parts = grid.elts if isinstance(grid, ast.Tuple) else [grid]
            if len(parts) != len(names) or not all(isinstance(p, ast.Slice) for p in parts):
                return {}
            return {
                name: Walk(_low(part), _extent(part), axis, name=name)
                for axis, (name, part) in enumerate(zip(names, parts, strict=True))
                if isinstance(part, ast.Slice) and part.upper is not None
            }
    walk = of(node, {}, full)
    if walk is None or len(names) != 1:
        return {}
    return {names[0]: Walk(walk.base, walk.size, walk.axis, walk.step, names[0])}


def _low(part: ast.Slice) -> str:
    return ast.unparse(part.lower) if part.lower else "0"


def _extent(part: ast.Slice) -> str:
    assert part.upper is not None
    low = _low(part)
    return ast.unparse(part.upper) if low == "0" else f"{ast.unparse(part.upper)} - ({low})"


def of(node: ast.expr, walks: Walks, full: "Names") -> Walk | None:
    """The walk of an index, or None where it has none, or more than one."""
    match node:
        case ast.Name(id=name):
            return walks.get(name)
        case ast.Subscript(value=ast.Call(args=[*args]) as call, slice=ast.Tuple(elts=parts)):
            if full(call.func) != "nki.language.arange" or not 1 <= len(args) <= 2:
                return None
            at = [place for place, part in enumerate(parts) if isinstance(part, ast.Slice)]
            if len(at) != 1:
                return None
            first, *more = map(ast.unparse, args)
            base, size = (first, f"{more[0]} - ({first})") if more else ("0", first)
            return Walk(base, size, at[0], name=f"{size}@{at[0]}")
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = of(left, walks, full), of(right, walks, full)
            if one is not None and other is not None:
                return _joined(one, other)
            if one is None and other is None:
                return None
            walk, rest = (one, right) if one is not None else (other, left)
            assert walk is not None
            base = (
                _sum(ast.unparse(rest), walk.base) if other else _sum(walk.base, ast.unparse(rest))
            )
            return None if uses(rest, walks, full) else _base(walk, base)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            walk = of(left, walks, full)
            if walk is None or uses(right, walks, full):
                return None
            return _base(walk, _sum(walk.base, ast.unparse(right), "-"))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = of(left, walks, full), of(right, walks, full)
            if (one is None) == (other is None):
                return None
            walk, rest = (one, right) if one is not None else (other, left)
            assert walk is not None
            if uses(rest, walks, full) or walk.step != "1":
                return None
            factor = ast.unparse(rest)
            base = "0" if walk.base == "0" else f"({walk.base}) * {_factor(factor)}"
            return Walk(base, walk.size, walk.axis, factor, walk.name)
    return None


def _joined(one: Walk, other: Walk) -> Walk | None:
    """`128 * i + j` with j below 128 walks over neighbours: both are one walk."""
    outer, inner = (one, other) if one.axis < other.axis else (other, one)
    if inner.step != "1" or outer.step != inner.size or outer.axis == inner.axis:
        return None
    numbers = outer.size.isdigit() and inner.size.isdigit()
    size = str(int(outer.size) * int(inner.size)) if numbers else f"{outer.size} * {inner.size}"
    return Walk(_sum(outer.base, inner.base), size, outer.axis)


def _base(walk: Walk, base: str) -> Walk:
    return Walk(base, walk.size, walk.axis, walk.step, walk.name)


def uses(node: ast.AST, walks: Walks, full: "Names") -> bool:
    """Whether an expression has an array of indices anywhere."""
    return any(
        (isinstance(item, ast.Name) and item.id in walks)
        or (isinstance(item, ast.expr) and full(item) in ARRAYS)
        for item in ast.walk(node)
    )


ARRAYS = ("nki.language.arange", "nki.language.mgrid")


def limits(mask: ast.expr, walks: Walks, full: "Names") -> dict[str, str] | None:
    """How many elements of each walk a mask leaves, by name; None for a mask of another form.

    A mask is `base + i < bound`, or several of them joined by &.
    """
    match mask:
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            one, other = limits(left, walks, full), limits(right, walks, full)
            return None if one is None or other is None else one | other
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() as op], comparators=[bound]):
            walk = of(left, walks, full)
            if walk is None or not walk.name or walk.step != "1" or uses(bound, walks, full):
                return None
            most = ast.unparse(bound) + (" + 1" if isinstance(op, ast.LtE) else "")
            return {walk.name: _sum(most, walk.base, "-")}
        case ast.Compare(left=left, ops=[ast.GtE()], comparators=[ast.Constant(value=0)]):
            walk = of(left, walks, full)  # bound - i >= 0
            if walk is None or walk.step != "-1":
                return None
            return {walk.name: f"{walk.base} + 1"}
    return None


class Names:
    """Full names of expressions, from the imports of a file."""

    def __init__(self, tree: ast.Module) -> None:
        self.modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound = alias.asname or alias.name.split(".")[0]
                    self.modules[bound] = alias.name if alias.asname else bound
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def __call__(self, node: ast.AST) -> str:
        """Such as "nki.language.load", in today's namespace; "" for what no import begins."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.modules:
            return ""
        return ".".join([self.modules[node.id], *reversed(parts)]).removeprefix("neuronxcc.")
