"""What the answers of lab 03 do, as counts and plain values. Judges nothing."""

from typing import Any

from utils.labs import Answer, Facts, Observer, training
from utils.labs.lab03.fake import FakeDevice
from utils.labs.plain import describe, numbers, pair
from utils.labs.watch import Steps, counts, launches, numbers_of, unused


def measure_snippets(steps: int) -> dict[str, list[int]]:
    """Executions and compiles of each snippet, as in a fresh process."""
    import torch
    import torch_xla

    from utils.labs.lab03.snippets import SNIPPETS
    from utils.xla.meter import Meter

    measured = {}
    for name, snippet in SNIPPETS.items():
        x = torch.ones(1000 + next(unused)).to(torch_xla.device())
        with Meter() as meter:
            snippet(x, steps)
        measured[name] = [meter.reading.executions, meter.reading.compiles]
    return measured


def observe_predict(answer: Answer, case: Facts) -> Facts:
    """The predicted and the measured executions and compiles of each snippet."""
    from utils.xla.meter import settle

    settle()
    before = launches()
    response = answer(case["steps"])
    settle()
    launched = launches() - before
    # Measured afterwards: what a prediction is compared with must not be there to be read.
    measured = measure_snippets(case["steps"])
    given = response if isinstance(response, dict) else {}
    return {
        "kind": describe(response),
        "predicted": {name: pair(given[name]) for name in measured if name in given},
        "measured": measured,
        "launches": launched,
    }


def _on_device(case: Facts) -> tuple[Any, Any, list[Any]]:
    """The model, its optimizer and the batches of a case, on the XLA device."""
    import torch_xla

    device = torch_xla.device()
    model, batches = training.draw(case)
    model.to(device)
    optimizer = training.optimizer_of(model, case["lr"])
    return model, optimizer, [(x.to(device), y.to(device)) for x, y in batches]


def observe_mean_losses(answer: Answer, case: Facts) -> Facts:
    """The mean losses that were returned, and what the training cost the device."""
    from utils.xla.meter import Meter

    model, optimizer, on_device = _on_device(case)
    with Meter() as meter:
        seen = Steps()

        def step() -> Any:
            batch = on_device[seen.started % len(on_device)]
            seen.begin()
            return training.train_step(model, optimizer, batch)

        returned = numbers_of(answer, step, case["steps"], case["every"])
        facts = seen.facts()
    return {**facts, **counts(meter.reading), "returned": returned}


def observe_bench(answer: Answer, case: Facts) -> Facts:
    """What `bench` asked of a fake device, and the numbers that it returned."""
    device = FakeDevice(case)
    returned = answer(device.fn, device.sync, device.clock, case["warmup"], case["repeats"])
    return {"log": device.log, "returned": numbers(returned)}


def observe_fixed_loop(answer: Answer, case: Facts) -> Facts:
    """The losses of a mended loop, and what it cost the device."""
    from utils.xla.meter import Meter

    model, optimizer, on_device = _on_device(case)
    with Meter() as meter:
        seen = Steps()
        model.register_forward_pre_hook(lambda *_: seen.begin())
        returned = numbers_of(answer, model, optimizer, on_device)
        facts = seen.facts()
    return {**facts, **counts(meter.reading), "returned": returned}


def observe_train(answer: Answer, case: Facts) -> Facts:
    """The losses of a training, what it cost, and in how many steps all was on the device."""
    from utils.xla.meter import Meter

    model, batches = training.draw(case, spare_features=next(unused))
    on_device = 0
    with Meter() as meter:
        seen = Steps()

        def look(module: Any, inputs: tuple[Any, ...]) -> None:
            nonlocal on_device
            seen.begin()
            places = {input_.device.type for input_ in (*inputs, *module.parameters())}
            on_device += places == {"xla"}

        model.register_forward_pre_hook(look)
        returned = numbers_of(answer, model, batches, case["lr"])
        facts = seen.facts()
    return {**facts, **counts(meter.reading), "on_device": on_device, "returned": returned}


OBSERVERS = {
    "ex1": Observer("predict", observe_predict),
    "ex2": Observer("mean_losses", observe_mean_losses),
    "ex3": Observer("bench", observe_bench),
    "ex4": Observer("fixed_loop", observe_fixed_loop),
    "ex5": Observer("train", observe_train),
}
