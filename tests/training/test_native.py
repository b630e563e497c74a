"""Native distributed training: collectives as predicted, results as in one process."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from utils.training.native import job as jobs
from utils.training.native import overlap, predicted, ranks, resharded
from utils.training.native.predicted import Layout
from utils.xla import fresh

JOB = jobs.Job()
RANKS = 4
LAYOUTS = {name: predicted.layout(name, RANKS) for name in predicted.PARALLELISMS}

# Of one rank and the job above, written down by hand: blocks of 2 x 2,048 + 96 numbers, a root of
# 24 x 32 + 32 + 32 x 8 + 8; a rank of tensor parallelism has a part of all but the bias of down.
COUNTED = {
    "ddp": {"all-reduce": (4, 4 * (3 * 4192 + 1064))},
    "fsdp": {"all-gather": (7, 4 * (6 * 4192 + 1064)), "reduce-scatter": (4, 3 * 4192 + 1064)},
    "tp": {"all-reduce": (6, 6 * 4 * 32 * 32)},
    "fsdp+tp": {
        "all-gather": (7, 4 * (6 * 2112 + 1064)),
        "all-reduce": (6, 6 * 4 * 16 * 32),
        "reduce-scatter": (4, 2 * (3 * 2112 + 1064)),
    },
}


def several(tasks):
    return [jobs.train(where, job) for where, job in tasks]


@pytest.fixture(scope="module")
def trained():
    """Of each parallelism, and of FSDP with a gather ahead: what every rank reports."""
    tasks = [(where, JOB) for where in LAYOUTS.values()]
    result = ranks.run(several, RANKS, [*tasks, (LAYOUTS["fsdp"], replace(JOB, ahead=1))])
    return dict(zip([*LAYOUTS, "ahead"], zip(*result, strict=True), strict=True))


@pytest.mark.parametrize("name", LAYOUTS)
def test_collectives_are_those_predicted_and_results_those_of_one_process(trained, name):
    expected = predicted.collectives(jobs.shapes(JOB), LAYOUTS[name], JOB.rows, JOB.bucket_bytes)
    assert expected == COUNTED[name]
    for rank, item in enumerate(trained[name]):
        assert item.rank == rank and item.last == expected
        assert item.held_bytes == predicted.held_bytes(jobs.shapes(JOB), LAYOUTS[name])
        assert all(value < 1e-6 for value in item.off.values()), item.off
        assert set(item.off) == {"outputs", "gradients", "updates"}


def test_ddp_sends_one_bucket_first_and_its_hook_sees_the_same_as_the_counter(trained):
    for item in trained["ddp"]:
        assert item.first == {"all-reduce": (1, COUNTED["ddp"]["all-reduce"][1])}
        assert item.buckets == predicted.buckets(jobs.shapes(JOB), JOB.bucket_bytes)
        assert item.last == {"all-reduce": (len(item.buckets), sum(item.buckets))}


def test_fsdp_gathers_early_in_the_backward_pass_and_forward_when_asked(trained):
    def gathered_before(events, text):
        names = [kind for kind, _ in events]
        return names[: names.index(text)].count("all-gather")

    own, ahead = trained["fsdp"][0].events, trained["ahead"][0].events
    assert [gathered_before(own, f"forward {block}") for block in range(3)] == [2, 3, 4]
    assert [gathered_before(ahead, f"forward {block}") for block in range(3)] == [3, 4, 4]
    assert [gathered_before(own, f"backward {block}") for block in (2, 1, 0)] == [6, 7, 7]
    assert jobs.totals(own) == jobs.totals(ahead)


@st.composite
def tasks(draw):
    """A layout on four ranks, and a job that it can divide."""
    where = draw(st.sampled_from([*LAYOUTS.values(), Layout("fsdp+tp", 2, 2)]))
    job = jobs.Job(
        features=draw(st.integers(1, 9)),
        width=draw(st.integers(1, 9)),
        hidden=4 * draw(st.integers(1, 4)),
        blocks=draw(st.integers(1, 4)),
        outputs=draw(st.integers(1, 9)),
        rows=4 * draw(st.integers(1, 3)),
        steps=3,
        bucket_bytes=draw(st.integers(1, 1500)),
    )
    return where, job


def as_predicted(drawn):
    result = ranks.run(several, RANKS, drawn)
    for rank, item in enumerate(result):
        for (where, job), counted in zip(drawn, item, strict=True):
            shapes = jobs.shapes(job)
            expected = predicted.collectives(shapes, where, job.rows, job.bucket_bytes)
            assert counted.last == expected, (where, job)
            held = predicted.held_bytes(shapes, where)
            assert counted.held_bytes <= held, (where, job)
            assert rank or counted.held_bytes == held, (where, job)
            assert all(value < 1e-5 for value in counted.off.values()), (where, job)


@given(st.lists(tasks(), min_size=4, max_size=4))
@settings(max_examples=2, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_drawn_jobs_send_what_is_predicted(drawn):
    as_predicted(drawn)


@pytest.mark.exhaustive
@given(st.lists(tasks(), min_size=12, max_size=12))
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_more_drawn_jobs_send_what_is_predicted(drawn):
    as_predicted(drawn)


def test_a_checkpoint_of_four_ranks_is_loaded_by_two(tmp_path):
    saved = ranks.run(resharded.save, RANKS, LAYOUTS["fsdp+tp"], JOB, tmp_path / "saved")
    loaded = ranks.run(resharded.load, 2, Layout("fsdp", 2), JOB, tmp_path / "saved")
    assert len(set(saved)) == 1
    for before, after in loaded:
        assert before != saved[0] and after == saved[0]


def wrapped(blocks, rows):
    """A step of FSDP2 with or without wrapped blocks: collectives, how far gradients are off, and
    the norm of the gradients on this rank, of all ranks, and of one process.
    """
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    def step(model, part):
        inputs, targets = jobs.batches(JOB)[0]
        torch.nn.functional.mse_loss(model(inputs[part]), targets[part]).backward()
        return [parameter.grad for parameter in model.parameters()]

    mesh = jobs.mesh_of(LAYOUTS["fsdp"])["data"]
    model = jobs.network(JOB)
    for block in model.blocks if blocks else ():
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    with jobs.counting() as counted:
        result = step(model, slice(*rows[dist.get_rank()]))
    expected = step(jobs.network(JOB), slice(None))
    off = max(
        (a.full_tensor() - b).abs().max().item() for a, b in zip(result, expected, strict=True)
    )
    norm = torch.nn.utils.get_total_norm
    norms = norm([a.to_local() for a in result]), norm(result).full_tensor(), norm(expected)
    return jobs.totals(counted.events), off, [element.item() for element in norms]


def wrapped_each(cases):
    return [
        wrapped(blocks, list(zip(borders, borders[1:], strict=False))) for blocks, borders in cases
    ]


def test_the_usual_mistakes_show():
    even, uneven = (0, 8, 16, 24, 32), (0, 14, 20, 26, 32)
    for result in ranks.run(wrapped_each, RANKS, [(True, even), (False, even), (True, uneven)]):
        right, whole, unequal = result
        # Without wrapped blocks everything is gathered at once, and held at once.
        assert [counts["all-gather"][0] for counts, _, _ in result] == [7, 1, 7]
        for _, off, (mine, all_, one) in (right, whole):
            assert off < 1e-6
            assert abs(all_ - one) < 1e-5 < 0.1 < abs(mine - one)  # a norm of shards is none
        assert unequal[1] > 1e-2  # a mean of means of unequal batches


def test_ranks_that_fail_or_wait_are_named():
    def fails():
        import torch.distributed as dist

        if dist.get_rank() == 1:
            raise KeyError("no data")
        dist.barrier()

    with pytest.raises(fresh.Raised, match="rank 1: KeyError: 'no data'"):
        ranks.run(fails, 2)
    with pytest.raises(fresh.Raised, match="fsdp 4 x 1 needs 4 ranks and the launcher started 2"):
        ranks.run(several, 2, [(LAYOUTS["fsdp"], JOB)])
    with pytest.raises(ValueError, match="9 ranks: give a whole number from 1 to 8"):
        ranks.run(several, 9, [])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Layout("zero", 4), "unknown: use ddp, fsdp, tp"),
        (lambda: Layout("tp", 2, 2), "tp on data 2: it has to be 1"),
        (lambda: Layout("fsdp", 1), "fsdp on data 1: it has to be at least 2"),
        (lambda: sent(LAYOUTS["fsdp"], 30), "30 rows over 4 data ranks"),
        (lambda: sent(Layout("tp", 1, 3), 32), r"up.weight \(64, 32\) over 3 model ranks"),
        (lambda: predicted.layout("fsdp+tp", 5), "give an even number"),
        (lambda: overlap.step(0, 1.0, 1.0, 1.0, 1.0, 0), "give at least 1 block"),
    ],
)
def test_what_cannot_be_says_what_is_allowed(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def sent(where, rows):
    return predicted.collectives(jobs.shapes(JOB), where, rows, 1)


@given(st.integers(1, 8), st.lists(st.integers(0, 8), min_size=4, max_size=4), st.integers(0, 3))
def test_a_step_is_never_shorter_than_either_lane_and_early_gathers_never_cost(blocks, times, more):
    forward, backward, gather, scatter = map(float, times)
    steps = [overlap.step(blocks, *map(float, times), ahead) for ahead in range(more + 2)]
    carried = blocks * (2 * gather + scatter)
    for result in steps:
        assert result.step_s >= max(blocks * (forward + backward), carried)
        assert result.step_s == result.waits_s + blocks * (forward + backward)
        for lane in ("compute", "communicate"):
            own = sorted((s.begin_s, s.end_s) for s in result.spans if s.lane == lane)
            assert all(a[1] <= b[0] for a, b in zip(own, own[1:], strict=False))
    assert steps[1].step_s <= steps[0].step_s
    assert steps[0].step_s == pytest.approx(blocks * (forward + backward) + carried)
