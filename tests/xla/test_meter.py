"""The meter's counts are exact, whatever ran before, and every misuse is said in words."""

import pytest
import torch
import torch_xla
import torch_xla.core.xla_model as xm
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.xla.meter import Meter, Reading, settle

DEVICE = torch_xla.device()


def matrix(size: int = 16) -> torch.Tensor:
    return torch.ones(size, size).to(DEVICE)


def test_recording_executes_nothing_and_stays_pending():
    a = matrix()
    with Meter() as m:
        t = (a @ a).sum()
    assert (m.executions, m.compiles, m.reads) == (0, 0, 0)
    with Meter() as m:  # entering the block ran what was pending
        assert t.item() == 16**3
    assert (m.executions, m.reads) == (0, 1)


def test_work_pending_before_the_block_is_not_counted():
    a = matrix()
    t = (a * 3).sum()
    with Meter() as m:
        torch_xla.sync()
    assert (m.executions, m.step_markers) == (0, 1)
    assert t.item() == 3 * 16**2


@given(st.integers(0, 12), st.sampled_from(["before", "after", "never"]))
@settings(max_examples=20)
def test_every_step_and_every_read_is_counted(steps, read):
    x = matrix(4)
    with Meter() as m:
        for _ in range(steps):
            x = x * 0.5 + 1
            if read == "before":
                x.sum().item()
            torch_xla.sync()
            if read == "after":
                x[0, 0].item()
    reads = 0 if read == "never" else steps
    # Indexing after the sync records a new, tiny graph, which the read has to run.
    assert (m.executions, m.step_markers, m.reads) == (steps + reads, steps, reads)
    assert len(m.graph_nodes) == m.executions


def test_compiles_are_counted_once_for_equal_graphs():
    a = torch.ones(3, 1117).to(DEVICE)  # a shape that no other test uses
    readings = []
    for _ in range(2):
        with Meter() as m:
            t = torch.exp(a * 0.37).sum()
            torch_xla.sync()
        del t
        readings.append(m.reading)
    assert [r.compiles for r in readings] == [1, 0]
    assert [r.executions for r in readings] == [1, 1]
    assert readings[0].compile_seconds > 0
    assert readings[0].graph_nodes == readings[1].graph_nodes


def test_fallbacks_and_transfers_are_named():
    a = matrix()
    with Meter() as m:
        (a > 0).nonzero()
    assert m.fallbacks == (("aten::nonzero", 1),)
    with Meter() as m:
        torch.ones(7, 7).to(DEVICE)
    assert (m.writes, m.executions) == (1, 0)
    assert "aten::nonzero x1" in str(Reading(0, 0, 0, 0, 0, (("aten::nonzero", 1),), (), 0.0))


def test_so_far_counts_within_the_block():
    a = matrix()
    with Meter() as m:
        counts = []
        for _ in range(4):
            a = a + 1
            torch_xla.sync()
            counts.append(m.so_far().executions)
    assert counts == [1, 2, 3, 4]


def test_eager_and_compiled_functions_are_counted():
    from torch_xla.experimental import eager_mode

    a = matrix()
    eager_mode(True)
    try:
        with Meter() as m:
            torch.sin(a) + torch.cos(a)
    finally:
        eager_mode(False)
    assert m.executions == 3
    compiled = torch_xla.compile(lambda x: torch.sin(x) + 1)
    with Meter() as m:
        kept = compiled(a)
    assert (m.executions, m.step_markers) == (1, 2)
    del kept


def test_openxla_graphs_are_counted_after_their_first_call():
    compiled = torch.compile(lambda x: torch.cos(x) * 2, backend="openxla")
    a = matrix()
    with pytest.raises(RuntimeError, match="counters of torch_xla were cleared.*call it before"):
        with Meter():
            compiled(a)
    with Meter() as m:
        compiled(a)
    assert m.executions == 1


def test_cleared_counters_are_noticed_whatever_follows():
    import torch_xla.debug.metrics as metrics

    a = matrix()
    cases = [(metrics.clear_all, 0), (metrics.clear_all, 30), (metrics.clear_counters, 30)]
    for clear, steps in [*cases, (metrics.clear_metrics, 0)]:
        a = train_steps(a, 3)
        with pytest.raises(RuntimeError, match="were cleared inside the Meter block"):
            with Meter():
                clear()
                a = train_steps(a, steps)


def train_steps(a: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        a = a * 0.5 + 1
        torch_xla.sync()
    return a


def test_more_executions_than_torch_xla_keeps_samples():
    a = matrix(2)
    with Meter() as m:
        a = train_steps(a, 1500)
    assert m.executions == 1500
    assert len(m.graph_nodes) == 1024 and len(set(m.graph_nodes)) == 1


def test_an_interrupt_at_the_start_does_not_lock_the_meter(monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("utils.xla.meter._Snapshot.__init__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            with Meter():
                pass
    with Meter() as m:
        pass
    assert m.executions == 0


def test_misuse_is_said():
    with pytest.raises(RuntimeError, match="must not be nested|is open already"):
        with Meter():
            with Meter():
                pass
    with Meter() as m:
        with pytest.raises(RuntimeError, match="after its with-block has ended"):
            _ = m.executions
    with pytest.raises(AttributeError, match="executions"):
        _ = m.execution
    assert repr(Meter()) == "Meter (nothing counted)"


def test_an_error_in_the_block_closes_the_meter():
    with pytest.raises(ZeroDivisionError):
        with Meter():
            _ = 1 / 0
    with Meter() as m:
        pass
    assert m.executions == 0


def test_settle_waits_for_the_device():
    a = torch.randn(400, 400).to(DEVICE)
    for _ in range(20):
        a = torch.tanh(a @ a)
    settle()
    with Meter() as m:
        xm.wait_device_ops()
    assert m.executions == 0
