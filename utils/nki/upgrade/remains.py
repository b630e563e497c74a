"""What of an upgraded source still has an old form: found by name, said as by the simulator."""

import ast
from collections.abc import Iterator

from utils.nki.simulator import surface
from utils.nki.simulator.table import TABLE
from utils.nki.upgrade import Remark
from utils.nki.upgrade.indices import Names

GUIDE = surface.BASE + "migration/index.html"


def remarks(text: str) -> list[Remark]:
    """Each old form that is left, by line. Raises: SyntaxError."""
    tree = ast.parse(text)
    full = Names(tree)
    results = {(r.line, r.what): r for node in ast.walk(tree) for r in _at(node, full)}
    return [results[key] for key in sorted(results)]


def _at(node: ast.AST, full: Names) -> Iterator[Remark]:
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Attribute):
        name = full(node)
        old = surface.leftovers().get(name)
        if old is not None:
            yield _leftover(line, name, old)
        elif name.startswith("nki.") and _unknown(name):
            yield Remark(line, f"{name} is no name of NKI {surface.api()}", _near(name), GUIDE)
    elif isinstance(node, ast.Call):
        yield from _call(node, line, full)
    elif isinstance(node, ast.Subscript) and full(node.value) == "" and _arrays(node, full):
        yield Remark(
            line,
            f"`{ast.unparse(node)[:80]}` is indexed by arrays that are no slices",
            "write the access as tensor.ap(pattern=[[step, count], ...], offset=...)",
            surface.BASE + "deep-dives/nki-aps.html",
        )
    elif isinstance(node, ast.Import | ast.ImportFrom) and "neuronxcc" in ast.unparse(node):
        yield Remark(
            line, f"`{ast.unparse(node)}` has no place in today's packages",
            "look for it in nkilib, or write it out", GUIDE,
        )  # fmt: skip


def _call(node: ast.Call, line: int, full: Names) -> Iterator[Remark]:
    name = full(node.func)
    given = {item.arg for item in node.keywords if not _is_object(item)}
    for argument in sorted(filter(None, given)):
        module = name.rpartition(".")[0]
        for key in (f"{name}({argument}=)", f"{module}.*({argument}=)", f"*({argument}=)"):
            old = surface.leftovers().get(key)
            if old is not None and name.startswith("nki."):
                yield _leftover(line, f"{argument}= of {name}", old)
                break
    spec = TABLE.get(name.removeprefix("nki.isa.")) if name.startswith("nki.isa.") else None
    if spec is not None and not given & {None} and not any(map(_is_starred, node.args)):
        missing = spec.required - set(spec.names[: len(node.args)]) - given
        if missing & set(spec.outputs):
            yield _leftover(line, f"{name} without dst", surface.leftovers()["nki.isa.*()"])
    if name == "nki.language.program_id" and node.args:
        axis = node.args[0]
        if isinstance(axis, ast.Constant) and axis.value:
            yield Remark(
                line, f"{ast.unparse(node)} asks for a second dimension of the grid",
                "a kernel runs on one core or two; loop over the rest inside of it", GUIDE,
            )  # fmt: skip


def _is_object(item: ast.keyword) -> bool:
    """buffer=nl.sbuf is the new form, buffer="sbuf" the old one."""
    return item.arg == "buffer" and not isinstance(item.value, ast.Constant)


def _is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _arrays(node: ast.Subscript, full: Names) -> bool:
    return any(
        isinstance(item, ast.expr) and full(item) in ("nki.language.arange", "nki.language.mgrid")
        for item in ast.walk(node.slice)
    )


def _leftover(line: int, text: str, old: surface.Leftover) -> Remark:
    fix = " ".join(old.new.split())
    return Remark(line, f"{text} is gone since NKI {old.gone}: {old.why}", f"now: {fix}", GUIDE)


def _unknown(name: str) -> bool:
    module, _, short = name.rpartition(".")
    return module in surface.modules() and short not in surface.versions(module)


def _near(name: str) -> str:
    module, _, short = name.rpartition(".")
    return f"look among the names of {module}: {surface.BASE}api/{module}.html"
