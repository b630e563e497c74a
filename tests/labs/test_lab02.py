"""Lab 02: what it expects is what is measured, right answers pass however they are written, and
nothing an answer returns can break a check."""

import copy
import random
import subprocess
import sys
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import (
    answer_from,
    code_of,
    names_of,
    right_answers,
    verdict_of,
    wrong_entries,
)
from utils.audit import audit, audit_source
from utils.course.catalog import ROOT
from utils.labs import criteria, judge, observe_case, training
from utils.labs.lab02 import classify, findings, problems, train_cuda, truth
from utils.labs.lab02 import judge as judging
from utils.labs.lab02.observe import OBSERVERS, source_of

WRONG = wrong_entries("lab02")


EXERCISES = [f"lab02.{name}" for name in OBSERVERS]


pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab02") | {"copy": copy}


def first_case(exercise_id: str) -> dict:
    return judge(exercise_id).cases(random.Random("first"))[0]


def wrong(name: str) -> str:
    return next(w[2] for w in WRONG if w[1] == name)


def test_hidden_cuda_is_not_found_by_the_audit_and_does_not_win(names: dict) -> None:
    source = right_answers("lab02")["ex2"].replace(
        "torch_xla.device()", '"cpu" or getattr(torch, "cu" + "da")'
    )
    assert audit_source(source, name="answer.py", target="xla").clean()
    assert verdict_of("lab02.ex2", answer_from(source, "lab02.ex2", names), "public").points == 0


def test_one_of_two_fallbacks_wins_something(names: dict) -> None:
    source = wrong("only the bins")
    assert 0 < verdict_of("lab02.ex3", answer_from(source, "lab02.ex3", names), "x").points < 5


def test_a_source_that_is_not_known_is_said(names: dict) -> None:
    own = dict(names)
    exec(right_answers("lab02")["ex2"], own)
    verdict = verdict_of("lab02.ex2", own["train"], "public")
    missed = [criterion for criterion in verdict.criteria if not criterion.passed]
    assert [item.name for item in missed] == ["audit"]
    assert "the source of `train` is not known" in missed[0].message


def test_the_audit_reads_the_cell_as_a_kernel_runs_it() -> None:
    command = (
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "from utils.labs.lab02.observe import source_of\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_cell('import functools\\n\\ndef inner():\\n    pass\\n\\n'\n"
        "    '@functools.wraps(inner)\\ndef train():\\n    pass  # the cell')\n"
        "assert '# the cell' in source_of(shell.user_ns['train'])\n"
    )
    subprocess.run([sys.executable, "-c", command], cwd=ROOT, check=True)
    assert source_of(len) == source_of(object()) == ""


def test_a_second_check_counts_compiles_as_the_first(names: dict) -> None:
    for exercise_id in ("lab02.ex2", "lab02.ex3", "lab02.ex4"):
        answer = names[OBSERVERS[exercise_id.partition(".")[2]].answer]
        case = first_case(exercise_id)
        first, second = (observe_case(exercise_id, answer, case)["facts"] for _ in range(2))
        assert first["compiles"] == second["compiles"] > 0


# What is expected


def outcome(letter: str, device) -> str:
    """The class of a finding by what happens when its function runs on the device."""
    import torch
    from torch.nn import functional

    from utils.xla.meter import Meter

    torch.manual_seed(3)
    model = torch.nn.Linear(6, 3).to(device)
    inputs = [(torch.randn(9, 6).to(device), torch.arange(9).to(device) % 3) for _ in range(4)]
    x, y = inputs[0]
    table = torch.tensor([[1.0] * 6, [-1.0] * 6, [2.0] * 6])
    run = getattr(findings, letter)
    usual = {
        "a": ((model, x), lambda: model(x)),
        "b": ((model, x), lambda: model(x)),
        "c": ((model, x), lambda: model(x).half()),
        "d": (
            (model, inputs),
            lambda: torch.stack([functional.cross_entropy(model(x), y) for x, y in inputs]),
        ),
        "e": ((model, table, device), lambda: model(table[::2].to(device))),
        "f": (
            (model, x, y),
            lambda: (lambda item: torch.where(item > 1.0, item, 0.0).sum())(
                functional.cross_entropy(model(x), y, reduction="none")
            ),
        ),
        "g": ((model, x), lambda: None),
        "h": ((model, x), lambda: model(x)),
        "i": ((device,), None),
        "j": ((model, x), lambda: torch.tanh(model(x)) * 0.5),
    }
    inputs_of, plain = usual[letter]
    benchmark = torch.backends.cudnn.benchmark
    import torch_xla

    try:
        with Meter() as asked:
            result = run(*inputs_of)
            torch_xla.sync()
        again = run(*inputs_of)
    except RuntimeError:
        return "loud"
    finally:
        torch.backends.cudnn.benchmark = benchmark
    if plain is None:
        return "fine" if torch.equal(result.cpu(), again.cpu()) else "silent"
    model.to(device)
    with Meter() as without:
        right = plain()
        torch_xla.sync()
    if isinstance(result, list):
        result = torch.tensor(result, device=device)
    if (result.device.type, result.dtype) != (right.device.type, right.dtype):
        return "silent"
    assert torch.allclose(result.cpu(), right.cpu(), atol=1e-6)
    counts = [(m.executions, m.reads, m.fallbacks) for m in (asked, without)]
    return "fine" if counts[0] == counts[1] else "slow"


@pytest.mark.parametrize("letter", "abcdefghij")
def test_the_class_of_a_finding_is_what_happens(letter: str) -> None:
    import torch_xla

    assert outcome(letter, torch_xla.device()) == classify.EXPECTED[letter.upper()]


def test_the_audit_finds_one_place_in_each_function() -> None:
    lines = findings.__file__ and open(findings.__file__, encoding="utf-8").read().splitlines()
    result = audit(findings.__file__, target="xla").findings
    holders = []
    for item in result:
        above = [line for line in lines[: item.line] if line.startswith("def ")]
        holders.append(above[-1][4])
    assert holders == list("abcdefghij")


def test_the_script_needs_cuda_and_the_solution_does_not() -> None:
    assert audit(train_cuda.__file__, target="xla").counts["error"] > 5
    assert len(audit(train_cuda.__file__, target="xla").findings) == 15
    code = code_of("lab02")
    assert audit_source(code["ex2-code"], name="answer.py", target="xla").clean()
    assert audit_source(code["ex5-code"], name="answer.py", target="torchneuron").clean()
    needs_xla = audit_source(code["ex5-given"], name="given.py", target="torchneuron")
    rules = {item.rule for item in needs_xla.findings}
    assert {"xla-device", "xla-step", "xla-loader", "xla-launch", "xla-process-group"} <= rules
    assert needs_xla.counts["error"] > 8
    assert train_cuda.MAX_NORM == truth.MAX_NORM


def losses_in_float32(model, batches, lr: float, clip: bool) -> list[float]:
    import torch
    from torch.nn import functional

    optimizer = training.optimizer_of(model, lr)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), truth.MAX_NORM)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_the_limit_is_ten_times_what_rounding_does_to_clipped_losses() -> None:
    rng, farthest = random.Random("tolerance"), 0.0
    for _ in range(60):
        case = training.training_case(rng, rng.choice([4, 5, 6, 7]))
        true = truth.clipped_losses(case)
        ways = [training.draw(case), training.draw(case, spare_features=5)]
        model, batches = training.draw(case)
        ways.append((model, [(x.flip(0), y.flip(0)) for x, y in batches]))
        for model, batches in ways:
            losses = losses_in_float32(model, batches, case["lr"], clip=True)
            farthest = max(farthest, criteria.distance(losses, true))
    assert 0 < farthest <= criteria.TOLERANCE / 10


def test_the_limit_is_ten_times_what_rounding_does_to_masked_losses(names: dict) -> None:
    farthest = 0.0
    for seed in range(40):
        for case in judge("lab02.ex4").cases(random.Random(seed)):
            true = truth.masked_losses(case)
            for inputs, (loss, gradient) in zip(problems.masked_inputs(case), true, strict=True):
                logits = inputs[0].requires_grad_()
                result = names["masked_loss"](logits, *inputs[1:])
                result.backward()
                distance = criteria.distance(logits.grad.flatten().tolist(), gradient)
                farthest = max(farthest, abs(result.item() - loss), distance)
    assert 0 < farthest <= criteria.TOLERANCE / 10


def test_true_losses_are_those_of_autograd() -> None:
    case = training.training_case(random.Random(3), 20)
    for clip, norm in ((True, truth.MAX_NORM), (False, inf)):
        model, batches = training.draw(case)
        double = [(x.double(), y) for x, y in batches]
        losses = losses_in_float32(model.double(), double, case["lr"], clip)
        # PyTorch adds 1e-6 to the norm that it divides by.
        assert truth.clipped_losses(case, norm) == pytest.approx(losses, abs=2e-6)


@given(st.integers(0, 10**9))
@settings(max_examples=50, deadline=None)
def test_wrong_losses_are_far_from_right_ones(seed: int) -> None:
    for case in judge("lab02.ex2").cases(random.Random(seed)):
        right = truth.clipped_losses(case)
        others = [
            truth.clipped_losses({**case, "lr": 0.0}),
            truth.clipped_losses(case, inf),
            truth.clipped_losses(case, weights_of=problems.other_weights(case)),
        ]
        for other in others:
            assert criteria.distance(right, other) > judging.FAR * criteria.TOLERANCE


@given(st.integers(0, 10**9))
@settings(max_examples=50, deadline=None)
def test_wrong_histograms_and_masks_differ_from_right_ones(seed: int) -> None:
    for case in judge("lab02.ex3").cases(random.Random(seed)):
        right, above = truth.histograms(case), truth.histograms(case, right=True)
        assert right != above and len(right) == case["calls"]
        assert all(sum(counts) == case["values"] for _, counts in right)
    rows = [case["kept"] for case in judge("lab02.ex4").cases(random.Random(seed))]
    assert all(len(set(kept)) == len(kept) >= 3 for kept in rows) and 0 in rows[-1]


@given(st.integers(0, 10**9))
@settings(max_examples=50, deadline=None)
def test_cases_come_smallest_first(seed: int) -> None:
    for exercise_id in EXERCISES[:4] if seed % 10 else EXERCISES:
        cases = judge(exercise_id).cases(random.Random(seed))
        sizes = [case.get("steps") or case.get("values") or case.get("rows") for case in cases]
        assert sizes == [None] or len(cases) == 2 and sizes == sorted(set(sizes))


def trained_in_turn(case: dict, mixed: bool) -> list[list[float]]:
    """What two right processes lose, both computed here."""
    import torch
    from torch.nn import functional

    model, parts = problems.shared_training(case)
    models = [model, copy.deepcopy(model)]
    optimizers = [training.optimizer_of(element, case["lr"]) for element in models]
    losses: list[list[float]] = [[], []]
    for batches in zip(*parts, strict=True):
        for rank, (x, y) in enumerate(batches):
            optimizers[rank].zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
                loss = functional.cross_entropy(models[rank](x), y)
            loss.backward()
            losses[rank].append(loss.item())
        for pair in zip(*(element.parameters() for element in models), strict=True):
            mean = (pair[0].grad + pair[1].grad) / 2
            for weight in pair:
                weight.grad.copy_(mean)
        for element, optimizer in zip(models, optimizers, strict=True):
            torch.nn.utils.clip_grad_norm_(element.parameters(), truth.MAX_NORM)
            optimizer.step()
    return losses


def farthest_of(losses: list[list[float]], true: list[list[float]]) -> float:
    return max(criteria.distance(*both) for both in zip(losses, true, strict=True))


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(3, 60), marks=pytest.mark.exhaustive)]
)
def test_the_limit_in_bfloat16_is_twice_the_spread(seeds: range) -> None:
    spread = exact = 0.0
    for seed in seeds:
        for case in judge("lab02.ex5").cases(random.Random(seed)):
            true = truth.shared_losses(case)
            exact = max(exact, farthest_of(trained_in_turn(case, mixed=False), true))
            spread = max(spread, farthest_of(trained_in_turn(case, mixed=True), true))
    assert exact < criteria.TOLERANCE
    assert criteria.TOLERANCE < spread <= judging.BF16_TOLERANCE / 2


def test_one_process_of_two_is_a_training_alone() -> None:
    case = training.training_case(random.Random(5), 6)
    model, parts = problems.shared_training(case)
    alone = losses_in_float32(model, parts[1], case["lr"], clip=True)
    assert truth.shared_losses(case, share="own")[1] == pytest.approx(alone, abs=1e-5)


def test_what_is_computed_from_neuron_is_on_neuron() -> None:
    command = (
        "import torch\n"
        "from utils.labs.lab02.machines import _neuron\n"
        "backends = []\n"
        "with _neuron(backends) as is_there:\n"
        "    here, there = torch.ones(2, 3), torch.ones(2, 3).to('neuron:0')\n"
        "    layer = torch.nn.Linear(3, 1)\n"
        "    assert not is_there(here) and is_there(there) and is_there(here @ there.T)\n"
        "    assert not is_there(layer.weight) and is_there(layer.to('neuron').weight)\n"
        "    assert is_there(torch.stack([there, there])) and not is_there(here + 1)\n"
        "    with torch.autocast('cpu', dtype=torch.bfloat16):\n"
        "        assert layer(there).dtype == torch.float32\n"
        "    with torch.autocast('neuron', dtype=torch.bfloat16):\n"
        "        assert layer(there).dtype == torch.bfloat16\n"
    )
    subprocess.run([sys.executable, "-c", command], cwd=ROOT, check=True)
