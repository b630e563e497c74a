"""How calls and their arguments are named in a diagnosis."""

from utils.xla.doctor.operators import VIEWS
from utils.xla.doctor.trace import Call

_SLICE = {2: "start", 3: "stop", 4: "step"}
_ARGUMENTS = {
    "select": "index",
    "pow": "exponent",
    "to": "uploaded number",
    "tensor": "new tensor",
}


def argument(call: Call, place: int) -> str:
    """A name for leaf number `place` of the call."""
    if call.name == "slice":
        return f"{_SLICE.get(place, 'dimension')} of a slice"
    if isinstance(call.leaves[place], str):
        return f"an option of {call.name}"
    return _ARGUMENTS.get(call.name, f"a number of {call.name}")


def operators_changed(was: list[Call], now: list[Call]) -> str:
    if was and now:
        return f"other operators: {_names(was)} became {_names(now)}"
    return f"operators added: {_names(now)}" if now else f"operators missing: {_names(was)}"


def inside(call: Call) -> str:
    """Which line of an optimizer, when the user's line is only its `step()`."""
    return f", in {call.library.rpartition('/')[2]}" if call.optimizer else ""


def _names(calls: list[Call]) -> str:
    names = list(dict.fromkeys(call.name for call in calls if call.name not in VIEWS))
    names = names or list(dict.fromkeys(call.name for call in calls))
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
