"""The inputs of a scenario as a form: in groups, each with its range and where it comes from, and
what a visitor types as a value.
"""

import html
import re
from collections import Counter
from collections.abc import Mapping
from urllib.parse import parse_qsl

from utils.cost.tco.fields import FIELDS, GROUPS, Field, InputError
from utils.cost.tco.inputs import Input
from utils.cost.tco.scenario import Scenario, field_name, from_query, scenario, scenarios, to_query
from utils.facts import figure, figures
from utils.show.report.words import label as option_label
from utils.show.report.words import large, plural, shortened

TITLES: Mapping[str, str] = {"people": "Engineering and operations"}
LEAST, MOST = 1e-15, 1e24
"""Beyond these sizes nothing is meant that the model is about, and products overflow."""
LONGEST_FAULT = 300
_TYPED = re.compile(r"([-+]?[\d.]+(?:e[-+]?\d+)?)(%|[a-z]+(?:/[a-z]+)*)?", re.IGNORECASE)


def sections(shown: Scenario) -> dict[str, dict[Field, list[str]]]:
    """Title of a group to its fields to the paths that they have in this scenario."""
    found: dict[str, dict[Field, list[str]]] = {}
    for group in GROUPS:
        fields: dict[Field, list[str]] = {}
        for path in shown.inputs:
            if (field := FIELDS[field_name(path)]).group == group:
                fields.setdefault(field, []).append(path)
        if fields:
            found[TITLES.get(group, group.capitalize())] = fields
    return found


def title(field: Field) -> str:
    """HTML over the boxes of a field: what it is, and its name in formulas and messages."""
    more = f"; {field.about}" if field.about else ""
    return f"<p><b>{field.label}</b> <small>{field.name}{more}</small></p>"


def label(shown: Scenario, path: str) -> str:
    """What stands over the box of an input: whose it is, and its unit."""
    unit, counted = shown.inputs[path].unit, plural(shown.unit)
    words = {"1": "number", "units": counted, "ratio": "share", "1/s": f"{counted} per second"}
    words = words.get(unit, f"per {unit[2:]}" if unit.startswith("1/") else unit)
    return f"{option_label(path.rpartition('.')[0])}, {words}" if "." in path else words


def detail(shown: Scenario, path: str) -> str:
    """HTML under the box: what is allowed, the range, and the source or the word assumption."""
    each, field = shown.inputs[path], shown.field(path)
    parts = [large(each.value, 4)] if abs(each.value) >= 1e6 else []
    if each.low < each.high:
        parts.append(f"range {large(each.low, 4)} to {large(each.high, 4)}")
    parts.append("allowed " + field.allowed.rpartition(" (")[0])
    text = html.escape(" \N{MIDDLE DOT} ".join(parts)) + "<br>" + _source(each)
    changed = each.value != scenario(shown.name).inputs[path].value
    return f"<p class='tco-changed'>{text}</p>" if changed else f"<p>{text}</p>"


def _source(each: Input) -> str:
    """The status, and what it rests on: a link to the source, or the note of an assumption."""
    date = f" ({each.date})" if each.date else ""
    if each.source in figures():
        known = figure(each.source)
        address, words = known.source, known.page
    else:
        address, words = each.source, each.source
    if address.startswith("https://"):
        link = f"<a href='{html.escape(address)}' target='_blank' rel='noopener noreferrer'>"
        return f"<b>{each.status}</b>: {link}{html.escape(words)}</a>{date}"
    rest = ": " + html.escape(each.source or each.note) if each.source or each.note else ""
    return f"<b>{each.status}</b>{rest}{date}"


def typed(shown: Scenario, path: str, text: str) -> float:
    """What a visitor typed, as a number in the input's unit.

    Separators are allowed, and another unit of the same kind: "1,000", "35 %", "2 days". Raises
    InputError that names the input, what was typed and what is allowed.
    """
    field, each = shown.field(path), shown.inputs[path]
    found = _TYPED.fullmatch(re.sub(r"[,_\s\u202f]", "", text.strip()))
    try:
        value, unit = float(found[1]), found[2] or ""
    except (TypeError, ValueError):
        raise InputError(path, repr(text), field.allowed, "Give a number") from None
    if unit == "%" and each.unit == "ratio":
        value /= 100
    elif unit:
        try:
            given = Input(value, value, value, unit, note="typed").fitted(field, shown.currency)
        except InputError as error:
            raise InputError(path, repr(text), field.allowed, f"Give {error.allowed}") from None
        value = given.value
    field.check(value, path)
    return _sane(shown, path, value)


def _sane(shown: Scenario, path: str, value: float) -> float:
    """The value, if costs can be computed and written with it. Raises InputError."""
    if value and not LEAST <= abs(value) <= MOST:
        allowed = f"{shown.field(path).allowed}, and no size beyond {LEAST:g} and {MOST:g}"
        raise InputError(path, f"{value:g}", allowed)
    return value


def changes_of(shown: Scenario) -> dict[str, float]:
    """The values that differ from the worked scenario of the same name."""
    base = scenario(shown.name).inputs
    return {p: each.value for p, each in shown.inputs.items() if each.value != base[p].value}


def opened(query: str) -> tuple[Scenario, str]:
    """The scenario that a link holds, and what is wrong with the link, if anything.

    A link with a fault opens the scenario that it names, or the first one, without its changes.
    """
    try:
        for name, many in Counter(name for name, _ in parse_qsl(query.lstrip("?"))).items():
            if many > 1:
                raise InputError(shortened(name, 40), f"given {many} times", "once")
        shown = from_query(query)
        for path, value in changes_of(shown).items():
            _sane(shown, path, value)
        return shown, ""
    except InputError as error:
        found = re.search(r"(?:^|[?&])scenario=([\w-]+)", query)
        name = found[1] if found and found[1] in scenarios() else next(iter(scenarios()))
        return scenario(name), refused(error)


def refused(error: InputError) -> str:
    """What is wrong with a link."""
    return f"The link cannot be used as it is: {shortened(str(error), LONGEST_FAULT)}."


def link(shown: Scenario) -> str:
    """The query of a link to what is shown.

    >>> link(scenario("lora-13b"))
    'scenario=lora-13b'
    """
    return to_query(shown)
