"""The doctor's advice fits the cause: what an expert would say, and no more than can be told."""

import pytest
import torch
import torch_xla

from utils.course.lesson import fresh_size
from utils.xla.doctor import diagnose
from utils.xla.dryrun import dry_run_script

pytestmark = pytest.mark.usefixtures("xla_device")

LAST = "drop_last=True"


def moved(*shapes):
    return [torch.zeros(shape).to(torch_xla.device()) for shape in shapes]


def lengths(step, *runs):
    """What is advised for the tensor that has changed last."""
    causes = diagnose(step, list(runs)).causes
    return [cause.advice for cause in causes if cause.kind == "shape"][-1]


def summed(*shapes):
    return sum(tensor.exp().sum() * 2.5 for tensor in moved(*shapes))


def test_a_shorter_batch_after_equal_ones_is_the_last():
    n = fresh_size()
    tip = lengths(summed, *[((k, 8), (k,)) for k in (n, n, n - 3)])
    assert tip == f"pad the batch to {n} rows and mask the rest, or drop it: {LAST}"


def test_the_last_of_the_batches_that_one_step_accumulates_is_the_last():
    n = fresh_size()
    tip = lengths(summed, *[((n, 8), (k, 8)) for k in (n, n, n - 3)])
    assert f"{n} rows" in tip and "if it is" not in tip


def test_after_one_batch_only_it_cannot_be_told():
    n = fresh_size()
    tip = lengths(summed, *[((k, 8), (k,)) for k in (n, n - 3)])
    assert tip.startswith("if it is a loader's last batch") and "bucket lengths" in tip


@pytest.mark.parametrize(
    "boxes", [[3, 1], [3, 3, 1], [3, 1, 2], [3, 5, 3, 2]], ids=lambda boxes: str(boxes)
)
def test_what_is_in_a_batch_is_not_its_last(boxes):
    n = fresh_size()
    tip = lengths(summed, *[((2, 3, n, n), (k, 4), (k,)) for k in boxes])
    assert LAST not in tip and "bucket lengths" in tip


def test_several_lengths_in_one_step_are_no_last_batch():
    n = fresh_size()
    tip = lengths(summed, *[((a + n, 4), (b + n, 4)) for a, b in [(3, 3), (3, 3), (1, 2)]])
    assert LAST not in tip


def test_sentences_whose_length_changes_are_no_last_batch():
    n = fresh_size()
    tip = lengths(lambda k: summed((k,)), *[n + k for k in (5, 7, 4)])
    assert LAST not in tip


def asserted(x):
    assert (x.exp() > 0).all()
    return x * 2.5


def decided(x):
    if (x.exp() > 0).all():
        return x * 2.5
    return x


def numbered(x):
    return x.sin() * x.exp().sum().item()


@pytest.mark.parametrize(
    ("step", "says"),
    [(asserted, "drop the assert"), (decided, "torch.where"), (numbered, "after the step marker")],
)
def test_the_advice_for_a_read_fits_what_is_read(step, says):
    (cause,) = diagnose(step, moved((fresh_size(), 8))).causes
    assert cause.kind == "read" and says in cause.advice
    assert ("assert" in cause.advice) is (step is asserted)


READS = """\
import torch
x, y = torch.ones(3, 5, device="cuda"), torch.ones(3, 5, device="cuda")
weight = torch.ones(5, 5, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(2):
    assert (x >= 0).all() and (y * 2.5 >= 0.5).all()
    if (x.sin() < 3).all() and (y.sin() * 2.5 < 3).all():
        values = [row.sum().item() for row in x @ weight]
    (x @ weight).sum().backward()
    optimizer.step()
"""


def test_the_advice_for_a_second_read_of_a_line_fits_what_is_read(tmp_path):
    (tmp_path / "reads.py").write_text(READS)
    report = dry_run_script(tmp_path / "reads.py", steps=2)
    causes = [cause for cause in report.steps[0]["causes"] if cause["kind"] == "reads"]
    tips = {cause["where"].split(":")[1]: cause["write"] for cause in causes}
    assert set(tips) == {"6", "7", "8"}
    assert "drop the assert" in tips["6"] and ".cpu()" not in tips["6"]
    assert "join the conditions" in tips["7"] and ".cpu()" in tips["8"]
