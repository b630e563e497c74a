"""A run that is killed anywhere, and resumed from what is left, is the run that was not."""

import random
import shutil
from pathlib import Path

import pytest

from utils.training import checkpoint
from utils.training.checkpoint import MOMENTS, PARTS, Kill, Plan
from utils.xla import fresh

PLAN = Plan()


def life(run: Path, kill: Kill | None, plan: Plan, background: bool, without: tuple[str, ...]):
    before_step = kill.arm() if kill else lambda step: None
    return checkpoint.train(run, plan, without, before_step, background)


def train(run, kill=None, plan=PLAN, background=False, without=()):
    """The outcome, or None if the run was killed."""
    try:
        return fresh.run(life, run, kill, plan, background, without, environment=fresh.FAST)
    except fresh.Died as died:
        assert died.cause == "SIGKILL" and kill is not None
        return None


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train(tmp_path_factory.mktemp("uninterrupted"))


def same(outcome, expected) -> bool:
    """Equal to the bit: weights, every loss, and the texts of every step."""
    return (outcome.weights, outcome.losses, outcome.order) == (
        expected.weights, expected.losses, expected.order
    )  # fmt: skip


@pytest.mark.parametrize("number", [8, pytest.param(20, marks=pytest.mark.exhaustive)])
def test_random_kills_lose_and_alter_nothing(tmp_path, uninterrupted, number) -> None:
    """Every moment comes at least once, in an order that is drawn."""
    chance = random.Random(number)
    left = [Kill(moment, 1) for moment in MOMENTS]
    left += [Kill(chance.choice(list(MOMENTS)), chance.randint(1, 2)) for _ in range(number - 6)]
    chance.shuffle(left)
    died, resumed, life = [], [], 0
    while left:
        # One life after another, each with several deaths, until it reaches its end.
        life += 1
        run, background = tmp_path / str(life), chance.random() < 0.4
        outcome = None
        while not outcome:
            kill = left.pop() if left else None
            outcome = train(run, kill, background=background)
            if kill and not outcome:
                died.append(kill)
            elif kill:
                left.insert(0, kill)  # its moment did not come: it gets a life of its own
        assert same(outcome, uninterrupted), (life, died)
        assert outcome.refused == (), "a kill leaves no file that is torn"
        resumed.append(outcome.resumed_at)
        halves = [path for path in run.iterdir() if path.suffix == ".part"]
        assert not halves or outcome.resumed_at == 12
    assert len(died) == number and {kill.moment for kill in died} == set(MOMENTS), died
    assert max(resumed) > 0


def saves_three(run: Path, kill: Kill) -> None:
    before_step = kill.arm()
    for step in range(3):
        before_step(step)
        checkpoint.save(run, step, {"step": step}, keep=2)


@pytest.mark.parametrize("moment", MOMENTS)
def test_each_moment_leaves_what_it_says(tmp_path, moment) -> None:
    with pytest.raises(fresh.Died) as died:
        fresh.run(saves_three, tmp_path, Kill(moment, 1 if moment == "unlink" else 3))
    assert died.value.cause == "SIGKILL"
    halves = [path for path in tmp_path.iterdir() if path.suffix == ".part"]
    safe = moment in ("renamed", "unlink")
    assert checkpoint.steps(tmp_path) == ([0, 1, 2] if safe else [0, 1])
    assert len(halves) == (moment in ("write", "fsync", "replace"))
    result = checkpoint.latest(tmp_path)
    assert (result.state, result.refused) == ({"step": 2 if safe else 1}, ())


@pytest.mark.parametrize(
    ("plan", "background"), [(Plan(every=5), False), (Plan(every=1, keep=1), True)]
)
def test_saving_alters_nothing(tmp_path, uninterrupted, plan, background) -> None:
    assert same(train(tmp_path, plan=plan, background=background), uninterrupted)


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Path:
    """What is left of a run that was killed after 8 of 12 steps: a checkpoint after 6."""
    run = tmp_path_factory.mktemp("killed")
    assert train(run, Kill("step", 9)) is None
    return run


def test_there_is_something_to_leave_out(tmp_path, killed, uninterrupted) -> None:
    run = shutil.copytree(killed, tmp_path / "run")
    result = checkpoint.latest(run)
    assert set(result.state) == {*PARTS, "record"}
    outcome = train(run)
    assert outcome.resumed_at == 6 and same(outcome, uninterrupted)


FIRST_OTHER_LOSS = {
    "weights": 6, "optimizer": 7, "schedule": 8, "data": 6, "python": 6, "numpy": 6, "torch": 6,
    "device": 6,
}  # fmt: skip


def test_a_part_that_is_not_known_cannot_be_left_out(tmp_path) -> None:
    with pytest.raises(ValueError, match="'wieghts'. is no part .*: known are weights, optimizer"):
        checkpoint.train(tmp_path, PLAN, ("wieghts",))


@pytest.mark.parametrize("part", PARTS)
def test_each_part_that_is_missing_alters_the_run(tmp_path, killed, uninterrupted, part) -> None:
    outcome = train(shutil.copytree(killed, tmp_path / "run"), without=(part,))
    assert outcome.weights != uninterrupted.weights
    if part == "step":
        assert len(outcome.losses) == 18, "six steps too many"
        assert outcome.losses[:7] == uninterrupted.losses[:7]
        return
    pairs = zip(outcome.losses, uninterrupted.losses, strict=True)
    differs = [number for number, (ours, theirs) in enumerate(pairs) if ours != theirs]
    assert differs[0] == FIRST_OTHER_LOSS[part]
    assert (outcome.order == uninterrupted.order) == (part != "data")
    if part == "data":
        assert outcome.order[6:] == uninterrupted.order[:6], "the same texts again"


def test_a_damaged_newest_one_costs_steps_and_nothing_else(tmp_path, killed, uninterrupted) -> None:
    run = shutil.copytree(killed, tmp_path / "run")
    newest = checkpoint.path_of(run, 6)
    newest.write_bytes(newest.read_bytes()[:-1])
    outcome = train(run)
    assert outcome.resumed_at == 3 and same(outcome, uninterrupted)
    assert len(outcome.refused) == 1 and "is torn" in outcome.refused[0]
    assert (run / "step-00000006.ckpt.bad").exists()


def killed_in_a_plain_save(path: Path) -> None:
    import torch

    torch.save({"weights": torch.zeros(1000)}, path)
    checkpoint.kills.kill_at_byte(2000)
    torch.save({"weights": torch.ones(1000)}, path)


def test_a_plain_save_over_the_old_file_loses_both(tmp_path: Path) -> None:
    import torch

    with pytest.raises(fresh.Died) as died:
        fresh.run(killed_in_a_plain_save, tmp_path / "x.pt")
    assert died.value.cause == "SIGXFSZ"
    assert (tmp_path / "x.pt").stat().st_size == 2000
    with pytest.raises(RuntimeError):
        torch.load(tmp_path / "x.pt", weights_only=True)
