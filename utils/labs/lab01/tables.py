"""The cases and the judgement of the wrong specification, exercise 4 of lab 01.

A table says the same things in several ways, so that one wrong row contradicts others. Each row
that may be wrong stands in another set of relations than every other row: it can be named.
"""

import math
import random

from utils.course.misconceptions import says
from utils.facts import figure, figures
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged
from utils.labs.lab01.sheets import RELATED, SYSTEMS, Table, table_of

SAYS = says("lab01")

IMAGINED = "imagined"

UNITS = {"core_tflops": 2e-3, "system_pflops": 1e-3, "sbuf_mib_per_core": 1 / 1024}
TOLERANCES = {
    "rows": 0.0,
    "core count": 0.0,
    "cores": 0.08,
    **dict.fromkeys(("memory", "memory share", "partition", "SBUF"), 0.005),
}
RELATIONS: dict[str, tuple[tuple[str, ...], str, float, float]] = {
    name: (factors, product, UNITS.get(product, 1.0), TOLERANCES.get(name, 0.02))
    for name, (factors, product) in RELATED.items()
}
"""Name to (factors, product, unit factor, tolerance): product = factors x unit factor."""


def holds(table: Table, relation: str) -> bool:
    """Whether the product in a table agrees with its factors, within the relation's tolerance."""
    factors, product, unit, tolerance = RELATIONS[relation]
    expected = unit * math.prod(table[row] for row in factors)
    return abs(table[product] - expected) <= tolerance * abs(expected) + 1e-9


def breaches(table: Table) -> set[str]:
    """The names of the relations that a table contradicts."""
    return {name for name in RELATIONS if not holds(table, name)}


def relations_of(row: str) -> set[str]:
    """The names of the relations that a row is part of."""
    return {name for name, (f, product, *_) in RELATIONS.items() if row in (*f, product)}


def imagined_table(rng: random.Random) -> Table:
    """A system that nobody makes, in which everything agrees."""
    side, cores = rng.choice((96, 160, 192, 256)), rng.choice((6, 10, 12, 16))
    chips = rng.choice((24, 36, 96))
    clock, share = rng.randint(60, 140) / 40, 2 * rng.randint(5, 15)
    core = round(2e-3 * side * side * clock, 1)
    chip, bandwidth = round(core * cores * rng.uniform(1.0, 1.06)), rng.randint(60, 120) / 10
    sbuf = rng.choice((20, 36, 40, 48))
    return {
        "array_side": side,
        "tensor_clock_ghz": clock,
        "core_tflops": core,
        "cores": cores,
        "chip_tflops": chip,
        "chips": chips,
        "system_cores": cores * chips,
        "system_pflops": round(chip * chips / 1e3, 2),
        "core_hbm_gib": share,
        "hbm_gib": share * cores,
        "system_hbm_gib": share * cores * chips,
        "hbm_tb_per_s": bandwidth,
        "system_hbm_tb_per_s": round(bandwidth * chips, 1),
        "ridge_flop_per_byte": round(chip / bandwidth, 1),
        "partitions": side,
        "sbuf_kib_per_partition": sbuf * 1024 / side,
        "sbuf_mib_per_core": sbuf,
        "sbuf_mib_per_chip": sbuf * cores,
    }


def errors(system: str, table: Table) -> dict[str, dict[str, float]]:
    """Row to mistakes that somebody may well make there: what it is, and the wrong value."""
    core, chip = table["core_tflops"], table["chip_tflops"]
    results = {
        "tensor_clock_ghz": {"half the clock": table["tensor_clock_ghz"] / 2},
        "core_tflops": {"a multiply-add as one": core / 2, "the chip's rate": chip},
        "chip_tflops": {"a core's rate": core, "twice, as for FP8": 2 * chip},
        "system_pflops": {
            "a chip's rate": chip / 1e3,
            "of four such systems": 4 * table["system_pflops"],
        },
        "system_cores": {"logical cores of two": table["system_cores"] / 2},
        "core_hbm_gib": {"of two cores": 2 * table["core_hbm_gib"]},
        "hbm_gib": {"GB called GiB": round(table["hbm_gib"] * 2**30 / 1e9, 1)},
        "system_hbm_gib": {
            "GB called GiB": round(table["system_hbm_gib"] * 2**30 / 1e9),
            "GiB of a chip": table["hbm_gib"],
        },
        "hbm_tb_per_s": {
            "TiB called TB": round(table["hbm_tb_per_s"] * 1e12 / 2**40, 2),
            "bits": 8 * table["hbm_tb_per_s"],
        },
        "system_hbm_tb_per_s": {"of four such systems": 4 * table["system_hbm_tb_per_s"]},
        "ridge_flop_per_byte": {
            "byte per FLOP": round(1e3 / table["ridge_flop_per_byte"]) / 1e3,
            "of FP8": 2 * table["ridge_flop_per_byte"],
        },
        "sbuf_kib_per_partition": {"less by an eighth": table["sbuf_kib_per_partition"] * 7 / 8},
        "sbuf_mib_per_core": {"of the chip": table["sbuf_mib_per_chip"]},
        "sbuf_mib_per_chip": {"of a core": table["sbuf_mib_per_core"]},
    }
    if system != IMAGINED:
        key = str(figure(f"{system}.accelerator").value).lower()
        vector = figure(f"{key}.engines.vector.clock").to("GHz")
        results["tensor_clock_ghz"]["the vector engine's"] = vector
        sparse = figures(f"{key}.").get(f"{key}.sparse_rate")
        if sparse is not None and sparse.value is not None:
            results["chip_tflops"]["the sparse rate"] = sparse.to("TFLOPS")
    return results


def table_cases(rng: random.Random) -> list[Facts]:
    """One table of four is wrong, each time in another row; once by GB for GiB."""
    others = [row for row in errors(SYSTEMS[0], table_of(SYSTEMS[0])) if row != "hbm_gib"]
    rows = ["hbm_gib", *rng.sample(others, 7)]
    rng.shuffle(rows)
    return [_case(rng, row, imagined=place % 2 == 1) for place, row in enumerate(rows)]


def _case(rng: random.Random, row: str, imagined: bool) -> Facts:
    tables = {name: table_of(name) for name in rng.sample(SYSTEMS, 3 if imagined else 4)}
    if imagined:
        tables[IMAGINED] = imagined_table(rng)
    wrong = IMAGINED if imagined and rng.random() < 0.7 else rng.choice(list(tables))
    kinds = errors(wrong, tables[wrong])[row]
    kind = rng.choice(list(kinds))
    tables[wrong] = {**tables[wrong], row: kinds[kind]}
    names = rng.sample(list(tables), len(tables))
    return {"tables": {name: tables[name] for name in names}}


def wrong_in(case: Facts) -> tuple[str, str]:
    """The table that contradicts itself, and the row that all failing relations have in common and
    no other has. Not kept in the case: what runs an answer sees that.
    """
    (name,) = (name for name, table in case["tables"].items() if breaches(table))
    table = case["tables"][name]
    (row,) = (row for row in table if relations_of(row) == breaches(table))
    return name, row


def table_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"tables of {', '.join(case['tables'])}"


def judge_wrong_row(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: the table that contradicts itself, and its wrong row."""
    table, row = wrong_in(case)
    said_table, said_row = facts["table"], facts["row"]
    right_table = said_table == table
    message, second = "", ""
    if said_table is None:
        message = SAYS["the-row-alone"].format(kind=facts["kind"])
    elif not right_table:
        is_name = said_table in case["tables"]
        message = SAYS["no-tolerance-for-cores" if is_name else "rows-and-table-exchanged"]
    elif said_row != row:
        second = _about_row(case["tables"][table], row, said_row)
    shown = "done" if right_table else "other"
    first = criterion("table", 2, right_table, shown, "the one that contradicts itself", message)
    result = right_table and said_row == row
    last = criterion("row", 4, result, "done" if result else "other", "the wrong one", second)
    return [first, last if right_table else not_judged(last)]


def _about_row(table: Table, row: str, response: str) -> str:
    if response not in table:
        return "there is no row of that name: return one of the names of the table's rows"
    contradicted = breaches(table)
    if not relations_of(response) & contradicted:
        return "all that this row takes part in agrees: look for what does not"
    if relations_of(response) - contradicted:
        return (
            "this row is in a relation that fails, but in another that holds: it is the row that"
            " every failing relation has and no holding one"
        )
    return "more relations fail than this row is part of: which row do they have in common?"
