"""The doctor: every kind of cause is named with its line, what only looks like one is not blamed,
and the counts are the meter's."""

import linecache
import re

import pytest
import torch
import torch_xla
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from utils.course.lesson import fresh_size
from utils.xla.doctor import diagnose
from utils.xla.meter import Meter

pytestmark = pytest.mark.usefixtures("xla_device")


def data(*shape: int, dtype: str = "float32"):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))
    return made.to(getattr(torch, dtype)).to(torch_xla.device())


def on_device(value):
    return torch.tensor(value).to(torch_xla.device())


def compiles(diagnosis) -> list[int]:
    return [step.compiles for step in diagnosis.steps]


def kinds(diagnosis) -> list[tuple[int, str]]:
    return [(cause.step, cause.kind) for cause in diagnosis.causes]


def norm(x, c):
    return torch.nn.functional.layer_norm(x, (8,), eps=c)


def gelu(x, c):
    return torch.nn.functional.gelu(x, approximate=c)


def assigned(x, c):
    y = x * 2.5
    y[c] = 0.25
    return y


def dropout(x, c):
    return torch.nn.functional.dropout(x, c)


def arange(x, c):
    return torch.arange(c, device=x.device) * 2.5 + x[0, 0]


def new_tensor(x, c):
    return x.exp() * torch.tensor(c, device=x.device)


def uploaded(x, c):
    return x.exp() * on_device(c)


def uploaded_element(x, c):
    return x.exp() * on_device([c])


def rows(x, c):
    return x.index_select(0, torch.arange(8, device=x.device) + on_device([c])) * 2.5


def as_view(x, c):
    return x.exp().view(c, -1) * 2.5


# One step, two numbers, and what the doctor says of the second: a part of it, or "" for nothing.
BAKED = {
    "slice start": (lambda x, c: x[c : c + 8] * 2.5, 4, 5, "start of a slice: 4 became 5"),
    "slice stop": (lambda x, c: x[:, :c] * 2.5, 4, 5, "stop of a slice: 4 became 5"),
    "index": (lambda x, c: x[c] * 2.5, 4, 5, "index: 4 became 5"),
    "roll": (lambda x, c: x.roll(c, 0) * 2.5, 4, 5, "a number of roll: 4 became 5"),
    "exponent": (lambda x, c: x**c, 2.5, 3.5, "exponent: 2.5 became 3.5"),
    "eps": (norm, 1e-5, 1e-6, "1e-05 became 1e-06"),
    "special": (lambda x, c: x.exp() * c, 0.5, 1.0, "a number of mul: 0.5 became 1.0"),
    "special zero": (lambda x, c: x.exp() + c, 0.5, 0, "a number of add: 0.5 became 0"),
    "rounded to 1": (lambda x, c: x.exp() * c, 0.5, 0.99999999, "0.5 became 0.99999999"),
    "range": (arange, 8, 9, "a number of arange: 8 became 9"),
    "view": (as_view, 4, 8, "a number of view: 4 became 8"),
    "dimension": (lambda x, c: x.softmax(c), 0, 1, "a number of softmax: 0 became 1"),
    "default": (lambda x, c: x.exp().add(x, alpha=c), 0.5, 1, "a number of add: 0.5 became 1"),
    "option": (gelu, "none", "tanh", "an option of gelu: 'none' became 'tanh'"),
    "assignment": (assigned, 4, 5, "index: 4 became 5"),
    "new tensor": (new_tensor, 0.5, 1.0, "new tensor: 0.5 became 1.0"),
    "uploaded": (uploaded, 0.5, 1.0, "uploaded number: 0.5 became 1.0"),
}
NOT_BAKED = {
    "ordinary multiplier": (lambda x, c: x.exp() * c, 0.5, 0.25),
    "ordinary number and int": (lambda x, c: x.exp() + c, 0.5, 2),
    "clamp": (lambda x, c: x.clamp(max=c), 0.1, 0.2),
    "masked_fill": (lambda x, c: x.masked_fill(x > 0, c), 0.1, 0.2),
    "dropout p": (dropout, 0.1, 0.2),
    "new tensor": (new_tensor, 0.5, 0.25),
    "uploaded": (uploaded, 0.5, 0.25),
    "uploaded element": (uploaded_element, 0.5, 1.0),
    "index tensor": (rows, 4, 1),
}


@pytest.mark.parametrize("name", BAKED)
def test_a_baked_number_is_named_with_its_line(name: str) -> None:
    step, was, now, what = BAKED[name]
    x = data(8 * fresh_size(), 8)
    result = diagnose(step, [(x, was), (x, was), (x, now), (x, was)])
    assert compiles(result) == [1, 0, 1, 0]
    assert kinds(result) == [(3, "constant")]
    (cause,) = result.causes
    assert what in cause.what
    assert re.match(r"test_doctor\.py:\d+: \S", cause.where)
    assert cause.advice


@pytest.mark.parametrize("name", NOT_BAKED)
def test_an_ordinary_number_is_not_blamed(name: str) -> None:
    step, was, now = NOT_BAKED[name]
    x = data(fresh_size(), 8)
    result = diagnose(step, [(x, was), (x, now), (x, was)])
    assert compiles(result) == [1, 0, 0] and result.causes == ()


@pytest.mark.parametrize("name", NOT_BAKED)
def test_an_ordinary_number_is_not_blamed_for_a_shape(name: str) -> None:
    step, was, now = NOT_BAKED[name]
    n = fresh_size() + 1000
    result = diagnose(step, [(data(n, 8), was), (data(n + 2000, 8), now)])
    assert compiles(result) == [1, 1] and kinds(result) == [(2, "shape")]


def test_numbers_that_become_equal_are_named() -> None:
    x = data(fresh_size(), 8)
    result = diagnose(
        lambda x, a, b: x.exp() * a * b, [(x, 2.5, 3.5), (x, 4.5, 5.5), (x, 4.5, 4.5)]
    )
    assert compiles(result) == [1, 0, 1]
    assert kinds(result) == [(3, "constant")] and "became equal" in result.causes[0].what


def test_other_data_of_the_same_shape_is_no_cause() -> None:
    n = fresh_size()
    result = diagnose(lambda x: x.exp().sum(0), [data(n, 8), data(n, 8) * 3, data(n, 8) + 1])
    assert compiles(result) == [1, 0, 0] and result.causes == ()


def test_the_last_short_batch_is_named_with_its_argument() -> None:
    n = fresh_size()
    result = diagnose(lambda x, y: (x - y) * 2.5, [(data(k, 8), data(k, 8)) for k in (n, n, 13)])
    assert kinds(result) == [(3, "shape")]
    assert result.causes[0].what == f"input x: ({n}, 8) became (13, 8)"
    assert "drop_last=True" in result.causes[0].advice


def test_a_dtype_is_named() -> None:
    n = fresh_size()
    result = diagnose(
        lambda batch: batch["ids"] * 2, [{"ids": data(n, 8)}, {"ids": data(n, 8, dtype="bfloat16")}]
    )
    assert kinds(result) == [(2, "dtype")]
    assert result.causes[0].what == "input batch['ids']: float32 became bfloat16"


def test_a_tensor_that_is_no_argument_is_named() -> None:
    n = fresh_size()
    kept = [data(n, 8), data(n + 1, 8)]
    result = diagnose(lambda place: kept[place].exp() * 2.5, [0, 1])
    assert kinds(result) == [(2, "shape")] and "a tensor in exp" in result.causes[0].what


def test_two_causes_at_once_are_both_named() -> None:
    n = fresh_size()

    def step(x, stop):
        return (x * 2.5)[:, :stop].exp()

    result = diagnose(step, [(data(n, 40), 10), (data(n + 7, 40), 30)])
    assert compiles(result) == [1, 1] and kinds(result) == [(2, "shape"), (2, "constant")]


def test_numbers_that_follow_from_a_shape_are_not_blamed() -> None:
    n = fresh_size()

    def step(x):
        length = x.shape[1]
        places = torch.arange(length, device=x.device)
        mask = torch.ones(length, length, device=x.device).tril()
        halves = x[:, : length // 2].reshape(-1)
        return (x * places) @ mask, halves * 2.5, x[:, 1:] - x[:, :-1], x.mean()

    result = diagnose(step, [data(n, 12), data(n, 16)])
    assert kinds(result) == [(2, "shape")]


def test_a_python_branch_is_named() -> None:
    def step(x, sign):
        if sign:
            return x.exp()
        return x.sin()

    x = data(fresh_size(), 8)
    result = diagnose(step, [(x, True), (x, False), (x, True)])
    assert compiles(result) == [1, 1, 0] and kinds(result) == [(2, "branch")]
    assert "exp became sin" in result.causes[0].what and "return x.sin()" in result.causes[0].where


def test_an_if_on_a_value_is_a_read_and_a_branch() -> None:
    def step(x):
        if x.sum() > 0:
            return x.exp()
        return x.sin()

    x = data(fresh_size(), 8).abs()
    result = diagnose(step, [x, -x, x])
    assert compiles(result) == [2, 1, 0] and [item.reads for item in result.steps] == [1, 1, 1]
    assert kinds(result) == [(1, "read"), (2, "branch")]
    assert "if x.sum() > 0" in result.causes[0].where


def test_item_is_a_read_even_without_a_recompile() -> None:
    n = fresh_size()
    result = diagnose(lambda x: x.exp() * x.sum().item(), [data(n, 8), data(n, 8) * 3])
    assert compiles(result) == [2, 0] and kinds(result) == [(1, "read")]


def test_a_length_that_was_read_from_the_device_is_data_dependent() -> None:
    def step(x):
        positive = int((x > 0).sum())
        return x.flatten()[:positive] * 2.5

    x = data(fresh_size(), 8)
    result = diagnose(step, [x, x + 1])
    assert compiles(result) == [2, 1] and kinds(result) == [(1, "read"), (2, "data-dependent")]
    assert "a value read from the device" in result.causes[1].what
    assert "int((x > 0).sum())" in result.causes[1].what and "[:positive]" in result.causes[1].where


def test_one_step_marker_more_is_named_with_its_line() -> None:
    def step(x, marker):
        y = x * 2.5
        if marker:
            torch_xla.sync()
        return y.exp()

    x = data(fresh_size(), 8)
    result = diagnose(step, [(x, False), (x, True)])
    assert compiles(result) == [1, 2] and kinds(result) == [(2, "kept")]
    assert "step markers in the step: 0 became 1" in result.causes[0].what
    assert "torch_xla.sync()" in result.causes[0].where


def test_a_branch_in_training_is_one_cause_with_its_backward() -> None:
    n = fresh_size()
    model = torch.nn.Linear(n, 3).to(torch_xla.device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0137)

    def step(x, squared):
        optimizer.zero_grad()
        y = model(x)
        loss = y.square().mean() if squared else y.sin().mean()
        loss.backward()
        optimizer.step()
        return loss

    batches = [(data(16, n), item) for item in (True, True, False, True)]
    result = diagnose(step, batches, warmup=2)
    assert compiles(result) == [0, 0, 1, 0] and kinds(result) == [(3, "branch")]
    result = diagnose(step, [(data(9, n), True), (data(9, n), False)])
    assert compiles(result) == [1, 1] and kinds(result) == [(2, "branch")]


def test_state_made_by_hand_in_the_first_step_is_named_as_such() -> None:
    state = {}

    def step(x):
        if "mean" not in state:
            state["mean"] = torch.zeros(8, device=x.device)
        state["mean"] = state["mean"] * 0.9 + x.mean(0) * 0.1
        return state["mean"].sum()

    n = fresh_size()
    result = diagnose(step, [data(n, 8)] * 3)
    assert compiles(result) == [1, 1, 0] and kinds(result) == [(2, "first step")]


def test_a_read_after_the_marker_runs_nothing_twice() -> None:
    def step(x):
        loss = x.exp().sum()
        torch_xla.sync()
        return loss.item()

    n = fresh_size()
    result = diagnose(step, [data(n, 8), data(n, 8) * 2])
    assert compiles(result) == [1, 0] and result.causes == ()
    assert [(item.executions, item.reads) for item in result.steps] == [(1, 1), (1, 1)]


def test_a_boolean_mask_is_data_dependent() -> None:
    x = data(fresh_size(), 8)
    result = diagnose(lambda x: x[x > 0] * 1.5, [x, x + 1, x - 1])
    assert compiles(result) == [2, 1, 1]
    assert kinds(result) == [(1, "fallback"), (2, "data-dependent"), (3, "data-dependent")]
    assert result.steps[1].fallbacks == (("aten::nonzero", 1),)
    assert "torch.where" in result.causes[1].advice


def test_an_assignment_by_mask_is_data_dependent() -> None:
    def step(x):
        x = x.clone()
        x[x > 0.5] = 0.5
        return x

    x = data(fresh_size(), 8)
    result = diagnose(step, [x, x + 1])
    assert compiles(result) == [2, 1] and kinds(result)[1:] == [(2, "data-dependent")]
    assert "masked_fill" in result.causes[1].advice and "x[x > 0.5] = 0.5" in result.causes[1].where


def test_where_is_not_data_dependent() -> None:
    x = data(fresh_size(), 8)
    result = diagnose(lambda x: torch.where(x > 0, x, 0) * 1.5, [x, x + 1, x - 1])
    assert compiles(result) == [1, 0, 0] and result.causes == ()


def test_one_result_more_is_named() -> None:
    kept = []

    def step(x, keep):
        y = x * 2.5
        if keep:
            kept.append(y)
        return y.sin()

    x = data(fresh_size(), 8)
    result = diagnose(step, [(x, False), (x, True)])
    assert compiles(result) == [1, 1] and kinds(result) == [(2, "kept")]
    assert "1 became 2" in result.causes[0].what


def test_gradients_switched_off_are_named() -> None:
    weight = data(8).requires_grad_()

    def step(x, on):
        with torch.set_grad_enabled(on):
            return (x * weight).exp().sum()

    x = data(fresh_size(), 8)
    result = diagnose(step, [(x, True), (x, False)])
    assert kinds(result) == [(2, "kept")] and "gradients are off" in result.causes[0].what


# Training


def training(make, width: int, marker: bool = False):
    torch.manual_seed(0)
    model = torch.nn.Linear(width, 3).to(torch_xla.device())
    optimizer = make(model.parameters())

    def step(x, lr=None):
        if lr is not None:
            optimizer.param_groups[0]["lr"] = lr
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if marker:
            torch_xla.sync()
        return loss

    return step, model


STATEFUL = ("Adam", "AdamW", "Adadelta", "RMSprop", "Adamax", "NAdam")


@pytest.mark.parametrize("name", [*STATEFUL, "SGD", "Adagrad"])
def test_the_first_step_of_an_optimizer_is_named_as_such(name: str) -> None:
    n = fresh_size()
    step, _ = training(lambda p: getattr(torch.optim, name)(p, lr=0.0137), n)
    result = diagnose(step, [data(16, n)] * 4)
    if name in STATEFUL:
        assert compiles(result) == [1, 1, 0, 0] and kinds(result) == [(2, "first step")]
        assert "optimizer.step()" in result.causes[0].where
    else:
        assert compiles(result) == [1, 0, 0, 0] and result.causes == ()


def test_zeroed_gradients_are_a_first_step_too() -> None:
    n = fresh_size()
    model = torch.nn.Linear(n, 3).to(torch_xla.device())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0137)

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    result = diagnose(step, [data(16, n)] * 3)
    assert compiles(result) == [1, 1, 0] and kinds(result) == [(2, "first step")]


def test_an_optimizer_that_changes_its_mind_later_took_a_branch() -> None:
    n = fresh_size()
    step, _ = training(lambda p: torch.optim.RAdam(p, lr=0.0137), n)
    result = diagnose(step, [data(16, n)] * 7)
    assert compiles(result) == [1, 1, 0, 0, 0, 1, 0]
    assert kinds(result) == [(2, "first step"), (6, "branch")]
    assert "radam.py" in result.causes[1].what


def test_a_warm_up_takes_the_first_step_out_of_the_way() -> None:
    n = fresh_size()
    step, _ = training(lambda p: torch.optim.AdamW(p, lr=0.0137), n)
    result = diagnose(step, [data(16, n), data(16, n), data(9, n)], warmup=2)
    assert compiles(result) == [0, 0, 1] and kinds(result) == [(3, "shape")]


def test_a_learning_rate_is_not_blamed_for_what_a_batch_does() -> None:
    n = fresh_size()
    step, _ = training(lambda p: torch.optim.SGD(p, lr=0.1), n)
    batches = [(data(16, n), 0.1), (data(16, n), 0.09), (data(5, n), 0.08)]
    result = diagnose(step, batches)
    assert compiles(result) == [1, 0, 1] and kinds(result) == [(3, "shape")]


def test_a_learning_rate_of_one_is_a_constant() -> None:
    n = fresh_size()
    step, _ = training(lambda p: torch.optim.SGD(p, lr=0.1), n)
    result = diagnose(step, [(data(16, n), lr) for lr in (0.5, 0.25, 1.0)])
    assert compiles(result) == [1, 0, 1] and {kind for _, kind in kinds(result)} == {"constant"}
    assert "-0.25 became -1" in result.causes[0].what and "sgd.py" in result.causes[0].what


def test_a_learning_rate_whose_decay_meets_another_number_is_found() -> None:
    """1 - 0.1 * 0.01 is AdamW's second beta, and equal numbers share one input."""
    n = fresh_size()
    step, _ = training(lambda p: torch.optim.AdamW(p, lr=0.1), n)
    result = diagnose(step, [(data(16, n), lr) for lr in (0.1, 0.1, 0.1, 0.05)])
    assert compiles(result) == [1, 1, 0, 1]
    assert kinds(result) == [(2, "first step"), (4, "constant")]
    assert "equal" in result.causes[1].what and "0.999" in result.causes[1].what


@pytest.mark.parametrize("marker", [False, True])
def test_numbers_and_graphs_are_those_of_a_run_without_the_doctor(marker: bool) -> None:
    n = fresh_size()
    batches = [data(16, n) for _ in range(4)]

    def fresh_step():
        torch.manual_seed(0)
        weight = torch.nn.Linear(n, 3).to(torch_xla.device())
        optimizer = torch.optim.AdamW(weight.parameters(), lr=0.0137)
        losses = []

        def step(x):
            optimizer.zero_grad()
            loss = torch.nn.functional.dropout(weight(x), 0.3).square().mean()
            loss.backward()
            optimizer.step()
            if marker:
                torch_xla.sync()
            losses.append(loss.detach())
            return loss

        torch_xla.sync()
        torch_xla.manual_seed(5)
        return step, losses

    plain, expected = fresh_step()
    for x in batches:
        plain(x)
        if not marker:
            torch_xla.sync()
    watched, losses = fresh_step()
    result = diagnose(watched, batches)
    assert compiles(result) == [0, 0, 0, 0], "the same graphs"
    assert torch.stack(losses).tolist() == torch.stack(expected).tolist(), "the same numbers"
    with Meter() as meter:
        watched(batches[0])
        torch_xla.sync()
    assert meter.compiles == 0


def test_a_library_model_with_sequences_of_other_lengths() -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).to(torch_xla.device())
    n = fresh_size()
    result = diagnose(lambda x: layer(x).sum(), [data(2, k, 16) for k in (n, n, n + 300)])
    assert compiles(result) == [1, 0, 1] and kinds(result) == [(3, "shape")]
    assert "layer(x)" in result.causes[0].where


# What it is given, and what it shows


def test_a_result_that_nobody_keeps_is_told() -> None:
    def step(x):
        x.exp()

    result = diagnose(step, [data(fresh_size(), 8)])
    assert kinds(result) == [(1, "nothing ran")] and "keeps" in result.causes[0].what
    assert "return loss" in result.causes[0].advice


def test_batches_on_the_cpu_are_told() -> None:
    result = diagnose(lambda x: x * 2.5, [torch.ones(3)])
    assert kinds(result) == [(1, "nothing ran")] and "on the CPU" in result.causes[0].what


def test_a_list_is_one_argument_for_a_step_that_takes_one() -> None:
    x = data(fresh_size(), 8)
    result = diagnose(lambda batch: batch[0] * batch[1], [[x, x], [x, x]])
    assert compiles(result) == [1, 0]


@pytest.mark.parametrize(
    ("step", "batches", "error", "says"),
    [
        (3, [1], TypeError, "step is int"),
        (len, [], ValueError, "no batches"),
        (len, "abc", TypeError, "batches is one str"),
        (len, 7, TypeError, "batches is one int"),
        (len, range(1000), ValueError, "more than 64"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(step, batches, error, says) -> None:
    with pytest.raises(error, match=says):
        diagnose(step, batches)


def test_one_tensor_is_not_a_list_of_batches() -> None:
    with pytest.raises(TypeError, match="batches is one Tensor"):
        diagnose(lambda x: x, data(3, 8))
    with pytest.raises(ValueError, match="warmup is -1"):
        diagnose(lambda x: x, [data(3, 8)], warmup=-1)


def test_an_error_of_the_step_is_passed_on_and_leaves_nothing_switched_on() -> None:
    marker = torch_xla._XLAC._xla_step_marker
    x = data(fresh_size(), 8)

    def step(x, fails):
        y = x.exp()
        if fails:
            raise KeyError("lost")
        return y

    with pytest.raises(KeyError, match="lost") as caught:
        diagnose(step, [(x, False), (x, True)])
    assert caught.value.__notes__ == ["diagnose: the step raised this for batch 2"]
    assert _get_current_dispatch_mode_stack() == []
    assert torch_xla._XLAC._xla_step_marker is marker
    with Meter():
        pass


def test_it_is_not_used_inside_a_meter_or_inside_itself() -> None:
    x = data(fresh_size(), 8)
    with Meter(), pytest.raises(RuntimeError, match="open already"):
        diagnose(lambda x: x, [x])
    with pytest.raises(RuntimeError, match="open already"):
        diagnose(lambda x: diagnose(lambda y: y, [x]), [x])


def test_the_report_reads_well_as_text_and_as_a_table() -> None:
    x = data(fresh_size(), 8)
    result = diagnose(lambda x, c: x[:, :c] * 2.5, [(x, 4), (x, 5)])
    text = repr(result)
    assert text.splitlines()[0] == "2 steps, 1 compiled in the first, 1 after it"
    assert "step 2, constant: stop of a slice: 4 became 5" in text
    assert result.of(2) == result.causes and result.of(1) == ()
    html = result._repr_html_()
    assert html.count("<caption") == 2 and 'scope="col"' in html


def test_a_line_of_a_notebook_cell_is_shown_with_its_source() -> None:
    source = "def step(x, n):\n    y = x[:, :n]\n    return y * 2.5\n"
    name = "/somewhere/ipykernel_123/456.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict = {}
    exec(compile(source, name, "exec"), space)
    x = data(fresh_size(), 8)
    result = diagnose(space["step"], [(x, 4), (x, 5)])
    assert result.causes[0].where == "cell line 2: y = x[:, :n]"
