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


# What happens once


def test_a_sum_that_starts_at_zero_and_goes_on_as_a_tensor_is_no_branch():
    total = [0]

    def step(x):
        total[0] += (x * 2.5).sum()
        return total[0]

    result = diagnose(step, [*moved((fresh_size(), 8))] * 3)
    assert [(cause.step, cause.kind) for cause in result.causes] == [(2, "first step")]
    (cause,) = result.causes
    assert "0 became a tensor, as in a sum that starts at 0" in cause.what
    assert "total[0] +=" in cause.where and cause.advice.startswith("nothing, if it happens once")


def test_a_number_that_became_a_tensor_is_no_sum_elsewhere():
    (x,), (other,) = moved((fresh_size(), 8)), moved((8,))
    (cause,) = diagnose(lambda c: x.exp() * c, [0.5, other]).causes
    assert cause.kind == "constant" and cause.what.endswith("0.5 became a tensor")
    assert "sum" not in cause.what and "a number in all" in cause.advice


def dry_causes(tmp_path, text: str, steps: int = 4):
    """(step, kind, line, what) of each cause."""
    (tmp_path / "train.py").write_text(TRAINED + text)
    report = dry_run_script(tmp_path / "train.py", steps=steps)
    return [
        (step["number"], cause["kind"], cause["where"].partition(": ")[2], cause["what"])
        for step in report.steps
        for cause in step["causes"]
    ]


TRAINED = """\
import torch
net = torch.nn.Linear(8, 8).to("cuda")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train(x):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()
"""


def test_what_follows_a_step_is_no_branch_of_the_second(tmp_path):
    text = "mean = torch.ones((), device='cuda')\nfor i in range(5):\n"
    text += "    loss = train(torch.ones(4, 8).to('cuda'))\n    mean = mean * 0.9 + loss\n"
    (cause,) = dry_causes(tmp_path, text)
    assert cause[:3] == (2, "first step", "mean = mean * 0.9 + loss")
    assert "mul, add" in cause[3]


def test_what_only_a_read_after_the_step_asked_for_is_no_cause(tmp_path):
    text = "for i in range(5):\n    x = torch.ones(4 + (i > 0), 8).to('cuda')\n"
    text += "    loss = train(x)\n    print((loss * (i + 0.37)).item())\n"
    causes = [cause for cause in dry_causes(tmp_path, text) if cause[1] != "new"]
    assert [cause[1] for cause in causes] == ["shape"] and "(5, 8)" in causes[0][3]


def test_weights_that_move_in_the_first_step_are_no_state(tmp_path):
    text = "net = torch.nn.Linear(8, 8).to('cuda')\n"
    text += "state = torch.zeros(4, 8, device='cuda')\nfor i in range(5):\n"
    text += "    net.zero_grad()\n    state = net(state.detach() + 0.5)\n"
    text += "    state.sum().backward()\n    with torch.no_grad():\n"
    text += "        [p.sub_(p.grad, alpha=0.1) for p in net.parameters()]\n"
    causes = dry_causes(tmp_path, text, steps=3)
    assert [cause[:3] for cause in causes] == [
        (2, "first step", "state = torch.zeros(4, 8, device='cuda')")
    ]
    assert "zeros" in causes[0][3] and "now it is an input" in causes[0][3]


def test_the_run_with_the_same_operators_explains_more_than_the_first(tmp_path):
    text = "import copy\nmean = copy.deepcopy(net)\nfor i in range(6):\n"
    text += "    train(torch.ones(4, 8).to('cuda'))\n    with torch.no_grad():\n"
    text += "        for a, b in zip(mean.parameters(), net.parameters()):\n"
    text += "            a.mul_(0.0 if i < 2 else 0.9).add_(b, alpha=1.0 if i < 2 else 0.1)\n"
    causes = dry_causes(tmp_path, text, steps=5)
    assert {cause[0] for cause in causes} == {2, 4}
    assert {cause[1] for cause in causes if cause[0] == 4} == {"constant"}


# Where it is


FROZEN = """\
for i in range(5):
    if i == 2:
        net.weight.{switch}
    train(torch.ones(4, 8).to("cuda"))
"""


@pytest.mark.parametrize("switch", ["requires_grad_(False)", "requires_grad = False"])
def test_the_line_that_freezes_a_parameter_is_named(tmp_path, switch):
    (cause,) = dry_causes(tmp_path, FROZEN.format(switch=switch))
    assert cause[:3] == (3, "branch", f"net.weight.{switch}")
    assert "requires_grad has changed" in cause[3] and "operators missing" in cause[3]


def test_a_line_that_freezes_in_every_step_is_not_blamed():
    (x,) = moved((fresh_size(), 8))
    weight = moved((8, 8))[0].requires_grad_()

    def step(more):
        weight.requires_grad_(False)
        weight.requires_grad_(True)
        (x @ weight).sum().backward()
        result = torch.autograd.grad((x @ weight).sin().sum(), weight) if more else 0
        weight.grad = None
        return result

    causes = diagnose(step, [False, False, True]).causes
    assert "requires_grad has" not in str(causes) and causes[-1].kind == "branch"


def test_the_line_of_a_result_that_is_kept_is_named():
    kept = []

    def step(x, keep):
        y = x * 2.5
        if keep:
            kept.append(y.exp())
        else:
            y.exp()
        return y.sin()

    (x,) = moved((fresh_size(), 8))
    (cause,) = diagnose(step, [(x, False), (x, True)]).causes
    assert cause.kind == "kept" and "kept.append(y.exp())" in cause.where
    assert "1 became 2, with exp" in cause.what


def test_steps_of_two_optimizers_are_no_first_step(tmp_path):
    text = "for i in range(3):\n    train(torch.ones(4, 8).to('cuda'))\n"
    text += "    critic(torch.ones(4, 8).to('cuda').sin())\n"
    other = TRAINED.replace("train", "critic").replace("square", "exp").replace("net", "judge")
    (cause,) = dry_causes(tmp_path, other.replace("optimizer", "second") + text)
    assert cause[:2] == (2, "branch") and "shares nothing" in cause[3]


# What to write


def test_a_moving_stop_and_a_moving_start_are_two_things():
    (x,) = moved((40, fresh_size()))
    runs = [(x, 0, 8), (x, 0, 9), (x, 1, 9)]
    tips = [cause.advice for cause in diagnose(lambda x, a, b: x[a:b] * 2.5, runs).causes]
    assert "index_select" not in tips[0] and "bucket lengths" in tips[0]
    assert "index_select" in tips[1]


def test_a_dropout_that_is_off_is_no_choice_for_where():
    (x,) = moved((fresh_size(), 8))
    (cause,) = diagnose(lambda p: torch.nn.functional.dropout(x * 2.5, p), [0.5, 0.0]).causes
    assert cause.kind == "branch" and "eval()" in cause.advice and "where" not in cause.advice


DECODED = """\
with torch.no_grad():
    cache = torch.ones(1, 8).to("cuda")
    for i in range(4):
        cache = torch.cat([cache, net(cache[-1:])])
        print(cache.sum().item())
"""


def test_a_loop_that_reads_at_each_turn_is_told_what_grows(tmp_path):
    causes = dry_causes(tmp_path, DECODED)
    assert {cause[1] for cause in causes} == {"shape"}
    assert "(1, 8) became (2, 8)" in causes[0][3] and "torch.cat" in causes[0][2]


def test_a_conversion_in_some_steps_is_a_dtype(tmp_path):
    text = "for i in range(4):\n    x = torch.ones(4, 8).to('cuda')\n"
    text += "    train(x.bfloat16().float() if i == 2 else x)\n"
    assert {cause[:2] for cause in dry_causes(tmp_path, text)} == {(3, "dtype")}


def test_what_differs_from_a_run_that_is_less_alike_is_not_the_cause(tmp_path):
    text = "scaler = torch.amp.GradScaler('cuda')\nfor i in range(4):\n"
    text += "    loss = net(torch.ones(4, 8).to('cuda')).square().mean()\n"
    text += "    optimizer.zero_grad()\n    scaler.scale(loss).backward()\n"
    text += "    scaler.step(optimizer)\n    scaler.update()\n"
    kinds = {(step, kind) for step, kind, *_ in dry_causes(tmp_path, text) if step > 2}
    assert (3, "first step") not in kinds


def test_what_backward_does_for_another_shape_is_no_cause(tmp_path):
    text = "for n in (3, 3, 1, 2):\n    x = torch.ones(4, 8).to('cuda')\n"
    text += "    boxes = torch.ones(n, 8).to('cuda')\n"
    text += "    loss = (net(x)[:1] - boxes).square().sum()\n"
    text += "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    causes = dry_causes(tmp_path, text)
    assert {cause[:3] for cause in causes} == {
        (step, "shape", "boxes = torch.ones(n, 8).to('cuda')") for step in (3, 4)
    }
