"""The arguments of an operator, by its schema: all of them, and which are numbers."""

from typing import Any

from torch.utils._pytree import tree_flatten


def with_defaults(overload: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """All arguments of an operator: torch leaves out those that have their default."""
    if overload is None:
        return args, kwargs
    schema = overload._schema.arguments
    placed = [entry for entry in schema if not entry.kwarg_only][len(args) :]
    named = {entry.name: entry.default_value for entry in schema if entry.kwarg_only}
    more = []
    for item in placed:
        if not item.has_default_value() or item.name in kwargs:
            break
        more.append(item.default_value)
    return (*args, *more), {**named, **kwargs}


def scalars(overload: Any, args: Any, kwargs: Any) -> tuple[bool, ...]:
    """Which leaves are numbers that may be uploaded: any float, and an int where the operator takes
    a number of any kind or a tensor. Another int is a size, a dimension or a position.
    """
    if overload is None:
        return tuple(isinstance(leaf, int | float) for leaf in tree_flatten((args, kwargs))[0])
    schema = {argument.name: str(argument.type) for argument in overload._schema.arguments}
    named = [*zip(schema, args, strict=False), *kwargs.items()]
    results: list[bool] = []
    for name, value in named:
        number = "number" in schema.get(name, "") or schema.get(name) == "Tensor"
        results += [isinstance(leaf, float) or number for leaf in tree_flatten(value)[0]]
    return tuple(results)
