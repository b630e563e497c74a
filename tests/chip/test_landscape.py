"""Chips of other vendors stand beside Trainium, with what their vendors say."""

import pytest

from utils.chip.hardware import machine
from utils.chip.landscape import CHIPS, landscape
from utils.facts import figures

OTHERS = CHIPS[CHIPS.index("mi300x") :]


def test_every_chip_of_the_list_has_a_row_with_rates_and_memory() -> None:
    rows = {row[0]: row for row in landscape().rows()}
    assert tuple(rows) == CHIPS
    assert all("-" not in row[1:2] + row[3:5] for row in rows.values())
    assert rows["trainium3"][2] == "2,517" and rows["trainium3"][6] == "~1,000"
    assert "-" in rows["tpu-v5p"] and repr(landscape()).count("\n") == len(CHIPS)


@pytest.mark.parametrize("chip", OTHERS)
def test_what_is_said_of_another_vendors_chip_is_dense_and_its_vendors(chip: str) -> None:
    quoted = figures(f"{chip}.").values()
    assert {item.status for item in quoted} <= {"primary", "vendor-claim"}
    assert machine(chip).flops["fp8"] / machine(chip).flops["bf16"] == pytest.approx(
        2, rel=1e-3
    ) or (machine(chip).flops["fp8"] == machine(chip).flops["bf16"])


def test_the_table_names_the_pages_that_it_was_read_from() -> None:
    text = landscape("mi300x")._repr_markdown_()
    assert "[amd-cdna3-white-paper](https://www.amd.com/" in text and "192 GB" in text
