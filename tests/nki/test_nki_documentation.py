"""What `help` shows of an instruction follows from its row of the table."""

import inspect

import nki.collectives as ncc
import nki.isa as nisa
import pytest

from utils.nki.simulator.table import TABLE, Spec, sentence

ROWS = [pytest.param(spec, id=name) for name, spec in TABLE.items()]


@pytest.mark.parametrize("spec", ROWS)
def test_every_row_says_all_that_the_table_knows(spec: Spec):
    text = spec.document()
    message = " ".join(text.split())
    assert text.startswith(f"{spec.name}(")
    assert sentence(spec.body) in message
    operands = text.partition("Operands:\n")[2].partition("\n\n")[0]
    for name, operand in spec.operands.items():
        assert f"    {name} " in operands
        assert all(dtype in operands for dtype in operand.dtypes)
    for name in spec.rules:
        assert sentence(name) and f"    {sentence(name)}\n" in text, f"a rule without words: {name}"
    assert sentence(spec.cost) and f"Cost: {sentence(spec.cost)}" in text
    assert f"Source: {spec.cost_source}" in text
    assert f"Since NKI {spec.since}: {spec.page}" in text
    assert "Runs on: ." not in text and "None." not in text and "<" not in text


@pytest.mark.parametrize("spec", ROWS)
def test_help_shows_it(spec: Spec):
    function = getattr({"isa": nisa, "collectives": ncc}[spec.space], spec.name)
    shown = inspect.getdoc(function)
    assert shown and spec.document().endswith(shown)
    assert list(inspect.signature(function).parameters) == [*spec.names, "name"]


def test_made_rules_name_their_operands():
    text = nisa.tensor_tensor.spec.document()
    assert "At most one of data1 and data2 lies in PSUM." in text
    assert "dst, in SBUF" not in text and "dst    written, in SBUF or PSUM" in text
    assert "the Scalar Engine or the GpSimd Engine" in nisa.tensor_copy.spec.document()
    text = nisa.tensor_scalar.spec.document()
    assert "read, in SBUF or PSUM, one value for each partition, or a number" in text
    assert "Exists from Trainium3 (gen4) on." in nisa.quantize_mx.spec.document()
    assert "read, in shared HBM" in nisa.core_barrier.spec.document()
