"""What the schema of an operator says of its arguments."""

from typing import Any

from torch.utils._pytree import tree_flatten


def with_defaults(overload: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """All arguments of an operator: torch leaves out those that have their default."""
    if overload is None:
        return args, kwargs
    schema = overload._schema.arguments
    placed = [each for each in schema if not each.kwarg_only][len(args) :]
    named = {each.name: each.default_value for each in schema if each.kwarg_only}
    more = []
    for each in placed:
        if not each.has_default_value() or each.name in kwargs:
            break
        more.append(each.default_value)
    return (*args, *more), {**named, **kwargs}


def scalars(overload: Any, args: Any, kwargs: Any) -> tuple[bool, ...]:
    """Which leaves are numbers that may be uploaded: any float, and an int where the operator takes
    a number of any kind or a tensor. Another int is a size, a dimension or a position.
    """
    if overload is None:
        return tuple(isinstance(leaf, int | float) for leaf in tree_flatten((args, kwargs))[0])
    schema = {argument.name: str(argument.type) for argument in overload._schema.arguments}
    named = [*zip(schema, args, strict=False), *kwargs.items()]
    found: list[bool] = []
    for name, value in named:
        number = "number" in schema.get(name, "") or schema.get(name) == "Tensor"
        found += [isinstance(leaf, float) or number for leaf in tree_flatten(value)[0]]
    return tuple(found)
