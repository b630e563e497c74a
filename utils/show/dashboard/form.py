"""The inputs of a scenario as a form: in groups, each with its range and where it comes from, and
what a visitor types as a value.
"""

import re
from collections import Counter
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from utils.cost.tco.fields import FIELDS, GROUPS, Field, InputError
from utils.cost.tco.inputs import Input, price_of
from utils.cost.tco.scenario import (
    Scenario,
    field_name,
    from_query,
    offers,
    original,
    scenario,
    scenarios,
    to_query,
)
from utils.cost.tco.uncertainty import SHAPES
from utils.show.dashboard.parts import part
from utils.show.report.estimates import describe
from utils.show.report.wording import PURCHASES, large, plural, shorten
from utils.show.report.wording import label as option_label

TITLES: Mapping[str, str] = {"people": "Engineering and operations"}
LEAST, MOST = 1e-15, 1e24
"""Beyond these sizes nothing is meant that the model is about, and products overflow."""
LONGEST_FAULT = 300
_TYPED = re.compile(r"([-+]?[\d.]+(?:e[-+]?\d+)?)(%|[a-z]+(?:/[a-z]+)*)?", re.IGNORECASE)


def sections(shown: Scenario) -> dict[str, dict[Field, list[str]]]:
    """Title of a group to its fields to the paths that they have in this scenario."""
    results: dict[str, dict[Field, list[str]]] = {}
    for group in GROUPS:
        fields: dict[Field, list[str]] = {}
        for path in shown.inputs:
            if (field := FIELDS[field_name(path)]).group == group:
                fields.setdefault(field, []).append(path)
        if fields:
            results[TITLES.get(group, group.capitalize())] = fields
    return results


def title(field: Field) -> str:
    """HTML over the boxes of a field: what it is, and its name in formulas and messages."""
    return part("field", field.label, field.name, field.about)


def label(shown: Scenario, path: str) -> str:
    """What stands over the box of an input: whose it is, and its unit."""
    unit, counted = shown.inputs[path].unit, plural(shown.unit)
    known = {"1": "number", "units": counted, "ratio": "share", "1/s": f"{counted} per second"}
    words = known.get(unit, f"per {unit[2:]}" if unit.startswith("1/") else unit)
    return f"{option_label(path.rpartition('.')[0])}, {words}" if "." in path else words


def detail(shown: Scenario, path: str) -> str:
    """HTML under the box: what is allowed, the range, and the source or the word assumption."""
    item, field = shown.inputs[path], shown.field(path)
    parts = [large(item.value, 4)] if abs(item.value) >= 1e6 else []
    if item.low < item.high:
        parts.append(f"range {large(item.low, 4)} to {large(item.high, 4)}")
    parts.append("allowed " + field.allowed.rpartition(" (")[0])
    changed = item.value != original(shown).inputs[path].value
    known = describe(shown, path, item)
    text, note = " \N{MIDDLE DOT} ".join(parts), item.source or item.note
    return part("detail", text, changed, item.status, known.page, known.address, note, item.date)


def parse(shown: Scenario, path: str, text: str) -> float:
    """What a visitor typed, as a number in the input's unit.

    Separators are allowed, and another unit of the same kind: "1,000", "35 %", "2 days". Raises
    InputError that names the input, what was typed and what is allowed.
    """
    field, item = shown.field(path), shown.inputs[path]
    result = _TYPED.fullmatch(re.sub(r"[,_\s\u202f]", "", text.strip()))
    try:
        if not result:
            raise ValueError
        value, unit = float(result[1]), result[2] or ""
    except ValueError:
        raise InputError(path, repr(text), field.allowed, "Give a number") from None
    if unit == "%" and item.unit == "ratio":
        value /= 100
    elif unit:
        try:
            same = Input(value, value, value, unit, note="typed").fitted(field, shown.currency)
        except InputError as error:
            raise InputError(path, repr(text), field.allowed, f"Give {error.allowed}") from None
        value = same.value
    field.check(value, path)
    return _sane(shown, path, value)


def _sane(shown: Scenario, path: str, value: float) -> float:
    """The value, if costs can be computed and written with it. Raises InputError."""
    if value and not LEAST <= abs(value) <= MOST:
        allowed = f"{shown.field(path).allowed}, and no size beyond {LEAST:g} and {MOST:g}"
        raise InputError(path, f"{value:g}", allowed)
    return value


def changes_of(shown: Scenario) -> dict[str, float]:
    """The values that differ from the worked scenario of the same name and instances."""
    base = original(shown).inputs
    return {p: item.value for p, item in shown.inputs.items() if item.value != base[p].value}


def machines(shown: Scenario, option: str) -> list[tuple[str, tuple[str, str]]]:
    """(words, (instance, way of buying)) of every published price that an option may take: of all
    instances where its speed is a share of the peak, else of its own.
    """
    context = shown.options[option].context
    own = (context.instance, context.purchase)
    share = "mfu" in shown.inputs_of(option)
    pairs = [it for it in offers(context.platform) if share or it[0] == context.instance]
    results = [
        (f"{where}, {PURCHASES[how]}, USD {price_of(where, how).value:,.2f} an hour", (where, how))
        for where, how in pairs
    ]
    return results if own in pairs else [(f"{own[0]}, {own[1]}", own), *results]


def open_link(query: str) -> tuple[Scenario, str, str]:
    """The scenario that a link holds, how draws are made, and what is wrong with the link, if
    anything.

    A link with a fault opens the scenario that it names, or the first one, without its changes.
    """
    try:
        for name, many in Counter(name for name, _ in parse_qsl(query.lstrip("?"))).items():
            if many > 1:
                raise InputError(shorten(name, 40), f"given {many} times", "once")
        pairs = parse_qsl(query.lstrip("?"), keep_blank_values=True)
        shape = dict(pairs).get("draws", SHAPES[0])
        if shape not in SHAPES:
            raise InputError("draws", repr(shorten(shape, 40)), "one of " + ", ".join(SHAPES))
        shown = from_query(urlencode([pair for pair in pairs if pair[0] != "draws"]))
        for path, value in changes_of(shown).items():
            _sane(shown, path, value)
        return shown, shape, ""
    except InputError as error:
        result = re.search(r"(?:^|[?&])scenario=([\w-]+)", query)
        name = result[1] if result and result[1] in scenarios() else next(iter(scenarios()))
        return scenario(name), SHAPES[0], refusal(error)


def refusal(error: InputError) -> str:
    """What is wrong with a link."""
    return f"The link cannot be used as it is: {shorten(str(error), LONGEST_FAULT)}."


def link(shown: Scenario, shape: str = SHAPES[0]) -> str:
    """The query of a link to what is shown.

    >>> link(scenario("lora-13b")), link(scenario("lora-13b"), "uniform")
    ('scenario=lora-13b', 'scenario=lora-13b&draws=uniform')
    """
    return to_query(shown) + (f"&draws={shape}" if shape != SHAPES[0] else "")


def number(value: float) -> str:
    """A value as a box holds it, with separators. One that somebody wrote keeps its digits; one
    that was computed, and has too many, is rounded to four.

    >>> number(1234567.5), number(0.35), number(2e13), number(1e-5), number(8 / 29)
    ('1,234,567.5', '0.35', '20,000,000,000,000', '1e-05', '0.2759')
    """
    written = float(value).is_integer() or float(f"{value:.9g}") == value
    if not written:
        value = float(f"{value:.4g}")
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        text = f"{value:,.12f}"
        return text.rstrip("0").rstrip(".")
    return f"{value:.9g}"
