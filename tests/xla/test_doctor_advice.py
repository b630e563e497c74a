"""The doctor's advice fits the cause: what an expert would say, and no more than can be told."""

import pytest
import torch
import torch_xla

from utils.course.lesson import fresh_size
from utils.xla.doctor import diagnose

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
