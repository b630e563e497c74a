"""A scenario: the same work on several platforms, with every input and where it comes from.

Inputs have paths: "work" is shared by all options, "trainium.mfu" belongs to one. A scenario is
never changed; `with_values` gives another one.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, urlencode

from utils.cost.tco.cost import Cost, Number
from utils.cost.tco.fields import FIELDS, Field, InputError, field_of, nearest
from utils.cost.tco.inputs import Input, parse, price_of, quote
from utils.cost.tco.job import job
from utils.cost.tco.service import service
from utils.facts import figure, figures
from utils.facts.records import content

HOURS_PER_WEEK = 7 * 24

MODELS = {"job": job, "service": service}


@dataclass(frozen=True)
class Context:
    """What has to be equal before two costs may be compared.

    platform: such as "trainium" or "gpu". instance: as EC2 names it. purchase: the way of buying,
    of AWS one of `inputs.PURCHASES`. precision: format of the arithmetic. quality: how it is known
    that the results are as good; empty if nobody has looked.
    """

    platform: str
    instance: str
    region: str
    purchase: str
    precision: str
    quality: str


@dataclass(frozen=True)
class Option:
    """One way to do the work: its context, and the inputs that are its own, by field."""

    context: Context
    inputs: Mapping[str, Input]


@dataclass(frozen=True)
class Scenario:
    """The same work, several options.

    kind: "job" or "service". unit: what `work` or `demand` counts, such as "token". shared: field
    to input, the same for all options. options: name to option; the first two are compared. None
    of the mappings can be changed: the worked scenarios are the same for everybody. due_weeks:
    weeks from the decision until the first result is needed; None where there is no deadline.

    Raises: InputError, on an input that is missing, unknown, given twice, of a wrong unit or
        currency, or outside of what is allowed.
    """

    name: str
    title: str
    about: str
    kind: str
    unit: str
    shared: Mapping[str, Input]
    options: Mapping[str, Option]
    currency: str = "USD"
    due_weeks: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in MODELS:
            raise InputError("kind", repr(self.kind), "one of " + ", ".join(MODELS))
        if not re.fullmatch("[A-Z]{3}", self.currency):
            raise InputError("currency", repr(self.currency), "three capitals, such as EUR")
        if len(self.options) < 1:
            raise InputError("options", "none", "one or more")
        shared = self._fit(self.shared, "")
        object.__setattr__(self, "shared", shared)
        options = {}
        for name, item in self.options.items():
            own = self._fit(item.inputs, f"{name}.")
            if twice := sorted(own.keys() & shared.keys()):
                raise InputError(f"{name}.{twice[0]}", "an input that is shared too",
                                 "one or the other")  # fmt: skip
            options[name] = dataclasses.replace(item, inputs=own)
        object.__setattr__(self, "options", MappingProxyType(options))
        for name in self.options:
            try:
                self.cost(name)
            except InputError as error:
                fields = (f"{name}.{entry}" for entry in error.field.split(", "))
                raise error.renamed(", ".join(fields)) from None

    def _fit(self, inputs: Mapping[str, Input], prefix: str) -> Mapping[str, Input]:
        return MappingProxyType(
            {
                name: _name(prefix + name, item.fitted, field_of(name), self.currency)
                for name, item in inputs.items()
            }
        )

    @cached_property
    def inputs(self) -> Mapping[str, Input]:
        """Path to input: the shared ones, then those of each option, in the order of the fields."""
        results = dict(self.shared)
        for name, item in self.options.items():
            results |= {f"{name}.{field}": own for field, own in item.inputs.items()}
        order = list(FIELDS)
        ranked = sorted(results.items(), key=lambda it: order.index(field_name(it[0])))
        return MappingProxyType(dict(ranked))

    def inputs_of(self, option: str) -> dict[str, Input]:
        """Field to input of one option, with the shared ones. Raises InputError."""
        if option not in self.options:
            raise InputError("option", repr(option), "one of " + ", ".join(self.options))
        return {**self.shared, **self.options[option].inputs}

    def field(self, path: str) -> Field:
        """The field that a path of this scenario is of. Raises InputError with the nearest, or with
        every option's where only the option is missing.
        """
        if path not in self.inputs:
            whose = [input_ for input_ in self.inputs if field_name(input_) == path]
            allowed = "one of " + ", ".join(whose) if whose else nearest(path, self.inputs)
            raise InputError("input", repr(path), allowed)
        return field_of(field_name(path))

    def cost(self, option: str, changes: Mapping[str, Number] | None = None) -> Cost:
        """The cost of an option, with other values for some paths: numbers, or arrays of draws.

        Raises: InputError.
        """
        values: dict[str, Number] = {n: item.value for n, item in self.inputs_of(option).items()}
        for path, value in (changes or {}).items():
            field = self.field(path)
            field.check(value, path)
            if path == f"{option}.{field.name}" or path in self.shared:
                values[field.name] = value
        return MODELS[self.kind](values)

    def weeks_to_result(self, option: str, changes: Mapping[str, Number] | None = None) -> Number:
        """Weeks from the decision to the first result of a job: the port or set-up, then one run.

        >>> pretrain = scenario("pretrain-70b")
        >>> print(f"{pretrain.weeks_to_result('trainium'):.1f} of {pretrain.due_weeks} weeks")
        17.2 of 24 weeks

        Raises: InputError, of a service too: it has no end.
        """
        if self.kind != "job":
            raise InputError("kind", repr(self.kind), "'job'", "A service has no end")
        weeks = (changes or {}).get(f"{option}.weeks", self.inputs_of(option)["weeks"].value)
        return weeks + self.cost(option, changes).hours / HOURS_PER_WEEK

    def with_values(self, changes: Mapping[str, float]) -> "Scenario":
        """The same with other values; ranges move along in proportion. Raises InputError."""
        moved = {}
        for path, value in changes.items():
            field = self.field(path)
            moved[path] = _name(path, self.inputs[path].at, value, field)
        return self.with_inputs(moved)

    def with_inputs(self, changes: Mapping[str, Input]) -> "Scenario":
        """The same with other inputs, in any unit of the right kind. Raises InputError."""
        for path in changes:
            self.field(path)
        options = {
            name: dataclasses.replace(
                item, inputs={f: changes.get(f"{name}.{f}", own) for f, own in item.inputs.items()}
            )
            for name, item in self.options.items()
        }
        shared = {field: changes.get(field, item) for field, item in self.shared.items()}
        return dataclasses.replace(self, shared=shared, options=options)

    def with_instance(self, option: str, instance: str, purchase: str) -> "Scenario":
        """The same with another instance or another way to buy it, at its published price; MFU and
        number of servers stay.

        >>> scenario("pretrain-70b").with_instance("gpu", "p6-b200.48xlarge", "on_demand").options[
        ...     "gpu"].inputs["price"].value
        113.9328

        Raises: InputError if that has no published price, if the instance's peak in the option's
            precision is not published, or if the throughput was measured on another instance.
        """
        inputs = self.inputs_of(option)
        was = self.options[option].context
        if (instance, purchase) == (was.instance, was.purchase):
            return self
        new = {"price": price_of(instance, purchase)}
        if instance != was.instance:
            if "mfu" not in inputs:
                raise InputError("instance", instance, was.instance,
                                 "Its throughput was measured on this instance alone")  # fmt: skip
            peak = f"{instance}.peak.{was.precision}"
            if peak not in figures():
                raise InputError("instance", instance, f"one with a peak in {was.precision}")
            new["peak"] = quote(peak)
        if "billing_step" in inputs:
            # Beyond 14 days Capacity Blocks are sold in whole weeks; on demand is billed as used.
            days = self.cost(option, {f"{option}.billing_step": 0.0}).hours / 24
            long = days > figure("capacity_block.step_change").number
            new["billing_step"] = (
                quote("capacity_block.step_long" if long else "capacity_block.step")
                if purchase == "capacity_block"
                else Input(0.0, 0.0, 0.0, "h", note="billed by the second")
            )
        region = "us-east-1" if purchase == "on_demand" else was.region
        context = dataclasses.replace(was, instance=instance, purchase=purchase, region=region)
        own = {**self.options[option].inputs, **new}
        options = {**self.options, option: Option(context, own)}
        return dataclasses.replace(self, options=options)

    def in_currency(self, currency: str, rate: float) -> "Scenario":
        """All money in another currency, at `rate` of it for one of this scenario's."""
        if not rate > 0:
            raise InputError("rate", f"{rate:g}", "more than 0")

        def moved(inputs: Mapping[str, Input]) -> dict[str, Input]:
            return {
                name: item.scaled(rate, currency + item.unit[3:]) if item.currency else item
                for name, item in inputs.items()
            }

        options = {
            n: dataclasses.replace(o, inputs=moved(o.inputs)) for n, o in self.options.items()
        }
        return dataclasses.replace(
            self, currency=currency, shared=moved(self.shared), options=options
        )


def field_name(path: str) -> str:
    """The field of a path: of "trainium.mfu", "mfu"."""
    return path.rsplit(".", 1)[-1]


def _name(path: str, function: Any, *arguments: Any) -> Any:
    """Call it; an InputError names the path instead of the field."""
    try:
        return function(*arguments)
    except InputError as error:
        raise error.renamed(path) from None


@cache
def scenarios() -> Mapping[str, Scenario]:
    """The worked scenarios of the course, by name, from `utils/facts/data/tco_scenarios.yaml`."""
    entries = content("tco_scenarios.yaml")
    return MappingProxyType({name: read(name, entry) for name, entry in entries.items()})


def scenario(name: str) -> Scenario:
    """A worked scenario. Raises InputError with the names that there are."""
    if name not in scenarios():
        raise InputError("scenario", repr(name), "one of " + ", ".join(scenarios()))
    return scenarios()[name]


def read(name: str, entry: Mapping[str, Any]) -> Scenario:
    """A scenario as written in the file. Raises InputError."""
    options = {
        key: Option(
            Context(**item["context"]),
            {field: parse(given, f"{key}.{field}") for field, given in item["inputs"].items()},
        )
        for key, item in entry["options"].items()
    }
    shared = {field: parse(given, field) for field, given in entry["shared"].items()}
    plain = {
        k: entry[k]
        for k in ("title", "about", "kind", "unit", "currency", "due_weeks")
        if k in entry
    }
    return Scenario(name=name, shared=shared, options=options, **plain)


def offers(platform: str) -> list[tuple[str, str]]:
    """(instance, way of buying) of every published price of "trainium" or "gpu", whose peak in
    BF16 is known.

    >>> len(offers("trainium")), ("p5en.48xlarge", "capacity_block") in offers("gpu")
    (6, True)
    """
    pairs = (key.split(".price.") for key, item in figures().items()
             if ".price." in key and item.value is not None)  # fmt: skip
    return [
        (instance, purchase)
        for instance, purchase in pairs
        if f"{instance}.peak.bf16" in figures()
        and instance.startswith("trn" if platform == "trainium" else "p")
    ]


def original(shown: Scenario) -> Scenario:
    """The worked scenario of that name on the same instances, bought in the same way."""
    base = scenario(shown.name)
    for name, option in shown.options.items():
        base = base.with_instance(name, option.context.instance, option.context.purchase)
    return base


def to_query(changed: Scenario) -> str:
    """A link's query that holds a scenario: its name, other instances and ways to buy them, and
    every value that differs from the file.

    >>> to_query(scenario("lora-13b").with_values({"runs": 10}))
    'scenario=lora-13b&runs=10'

    Raises: InputError if its money is in another currency than the file's: a link holds no rate.
    """
    file = scenario(changed.name)
    base = file if changed.currency != file.currency else original(changed)
    if changed.currency != base.currency:
        raise InputError("currency", changed.currency, base.currency, "A link holds no rate")
    pairs = [("scenario", changed.name)]
    for name, option in changed.options.items():
        was = file.options[name].context
        if option.context != was:
            pairs += [(f"{name}.instance", option.context.instance),
                      (f"{name}.purchase", option.context.purchase)]  # fmt: skip
    for path, item in changed.inputs.items():
        if item.value != base.inputs[path].value:
            pairs.append((path, f"{item.value:.12g}"))
    return urlencode(pairs)


def from_query(query: str) -> Scenario:
    """The scenario of a link. Raises InputError, on a name or a value that is none."""
    pairs = dict(parse_qsl(query.lstrip("?"), keep_blank_values=True))
    chosen = scenario(pairs.pop("scenario", next(iter(scenarios()))))
    for name, option in chosen.options.items():
        instance = pairs.pop(f"{name}.instance", option.context.instance)
        purchase = pairs.pop(f"{name}.purchase", option.context.purchase)
        chosen = chosen.with_instance(name, instance, purchase)
    changes = {}
    for path, text in pairs.items():
        field = chosen.field(path)
        try:
            changes[path] = float(text)
        except ValueError:
            raise InputError(path, repr(text), field.allowed, "Give a number") from None
    return chosen.with_values(changes)
