"""Traces: what is captured here, and what is read of a file made by hand."""

import gzip
import json
import time

import pytest
import torch

from utils.training import traces
from utils.training.loading import Stored


def event(name, begin_ms, duration_ms, tid=1, **arguments) -> dict:
    return {
        "ph": "X", "pid": 7, "tid": tid, "name": name, "ts": begin_ms * 1e3,
        "dur": duration_ms * 1e3, "args": arguments,
    }  # fmt: skip


THREADS = {
    1: "python", 2: "tf_XLAPjRtCpuClient/5", 3: "tf_XLAEigen/6", 4: "tf_pytorchxla/8",
    5: "tf_xla-cpu-codegen/9",
}  # fmt: skip


def trace_of(folder, *events) -> traces.Trace:
    named = [
        {"ph": "M", "pid": 7, "tid": tid, "name": "thread_name", "args": {"name": name}}
        for tid, name in THREADS.items()
    ]
    path = folder / "vm.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [*named, *events, {}]}).encode()))
    return traces.read(path)


def test_the_innermost_event_with_a_kind_says_what_a_thread_does(tmp_path) -> None:
    trace = trace_of(
        tmp_path,
        event("course.capture", 10, 100, kind="trace"),
        event("forward", 10, 30, kind="trace"),
        event("PjRtComputationClient::TransferToDevice", 15, 5),
        event("StepMarker", 45, 50),
        event("SyncTensorsGraph", 46, 48),
        event("TensorCollectionBarrier", 47, 3),
        event("XLAGraphExecutor::Compile", 50, 40),
        event("Wait for donation holds", 90, 2),
        event("PjRtCpuClient::Compile", 52, 30),
        event("ThunkExecutor::Execute", 95, 10, tid=2),
        event("dot.1", 100, 8, tid=3),
        event("cpu_loader.next", 10, 70, tid=4),
        event("TaskDispatcher::dispatch", 60, 20, tid=5),
    )
    assert trace.length_ms == 100
    assert trace.totals() == pytest.approx(
        {"compile": 40, "trace": 25 + 5, "other": 20, "transfer": 5, "wait": 3 + 2}
    )
    assert trace.totals("device") == {"other": 87, "execute": 13}
    assert trace.totals("loader") == {"data": 70, "other": 30}
    assert trace.share("compiler", "compile") == 0.2
    assert trace.share("nobody", "wait") == 0
    own = trace.segments[trace.segments["lane"] == "host"]
    assert (own["begin_ms"].to_numpy()[1:] >= own["end_ms"].to_numpy()[:-1]).all()


def test_a_read_is_a_wait_while_the_device_is_busy(tmp_path) -> None:
    trace = trace_of(
        tmp_path,
        event("course.capture", 0, 50),
        event("PjRtComputationClient::TransferFromDevice", 10, 30),
        event("ThunkExecutor::Execute", 5, 25, tid=2),
        event("D2H Dispatch", 32, 4, tid=2),
    )
    assert trace.totals() == {"wait": 20, "other": 20, "transfer": 10}
    assert trace.totals("device") == {"execute": 25, "other": 21, "transfer": 4}


def test_a_file_that_somebody_else_captured_has_a_host_too(tmp_path) -> None:
    trace = trace_of(tmp_path, event("StepMarker", 3, 4), event("dot.1", 8, 2, tid=2))
    assert trace.totals() == {"trace": 4, "other": 3}


def test_a_thread_that_bears_the_number_of_an_ended_loader_is_told_from_it(tmp_path) -> None:
    trace = trace_of(
        tmp_path,
        event("course.capture", 0, 50),
        event("cpu_loader.next", 0, 10, tid=5),
        event("FusionCompiler::Compile", 20, 10, tid=5),
    )
    assert trace.totals("loader") == {"other": 40, "data": 10}
    assert trace.totals("compiler") == {"other": 40, "compile": 10}


def test_files_that_are_no_trace_are_named(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no \*.trace.json.gz"):
        traces.read(tmp_path)
    damaged = bytearray(gzip.compress(b'{"traceEvents": []}' * 20))
    damaged[20] ^= 0xFF
    others = (b"{}", b"no", b"[]", b'{"traceEvents": null}', b'{"traceEvents": [{"ph": "X"}]}')
    files = [gzip.compress(other) for other in others]
    for content in (b"", b"{}", gzip.compress(b"xx")[:-9], bytes(damaged), *files):
        (tmp_path / "bad.trace.json.gz").write_bytes(content)
        with pytest.raises(ValueError, match="bad.trace.json.gz is no trace"):
            traces.read(tmp_path)
    (tmp_path / "bad.trace.json.gz").unlink()
    with pytest.raises(FileNotFoundError, match="there is no .*bad.trace.json.gz: give"):
        traces.read(tmp_path / "bad.trace.json.gz")
    with pytest.raises(ValueError, match="no event that took time"):
        trace_of(tmp_path)


@pytest.fixture(scope="module")
def captured() -> traces.Trace:
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.debug.profiler as xp
    from torch_xla.distributed.parallel_loader import MpDeviceLoader

    device = torch_xla.device()
    weights = (torch.randn(397, 397) * 0.05).to(device)
    host = Stored(4, lambda index: torch.randn(397, 397), load_s=0.005)

    def steps(batches) -> list:
        kept = []
        for batch in batches:
            with xp.Trace("forward"):
                y = batch
                for _ in range(8):
                    y = torch.tanh(y @ weights)
            kept.append(y)
        return kept

    with traces.Capture() as capture:
        kept = steps(traces.spans(MpDeviceLoader(host, device)))
        with traces.span("the end", "wait"):
            xm.wait_device_ops()
        with traces.span("load", "data"):
            time.sleep(0.02)
        kept[0].cpu()
    return capture.trace


def test_a_capture_has_the_steps_and_the_work(captured) -> None:
    assert captured.count("forward") == 4
    assert captured.count("next batch") == 5
    assert captured.count("StepMarker") == 4 + 2  # MpDeviceLoader's own
    assert captured.count("XLAGraphExecutor::Compile") == 1
    assert set(captured.segments["lane"]) >= {"host", "device", "loader", "uploader"}
    assert set(captured.segments["kind"]) <= set(traces.KINDS)
    assert set(captured.events["kind"]) <= {*traces.KINDS, "", "read"}


def test_recording_is_on_the_host_and_work_on_the_device(captured) -> None:
    """The span "forward" is recording; what it recorded runs on other threads."""
    assert captured.totals("device")["execute"] > 0
    assert "execute" not in captured.totals("host")
    assert captured.totals("host")["data"] >= 20
    assert captured.milliseconds("forward") < captured.totals("device")["execute"]


def test_spans_may_hold_a_step_marker_and_scopes_may_not() -> None:
    import torch_xla
    import torch_xla.debug.profiler as xp

    with traces.span("a step"):
        torch_xla.sync()
    with pytest.raises(RuntimeError, match="scope to be empty"), xp.Trace("a step"):
        torch_xla.sync()
    with pytest.raises(ValueError, match="'sleep' is none of trace, compile"):
        traces.span("x", "sleep")


def test_one_capture_at_a_time() -> None:
    with traces.Capture() as first:
        with pytest.raises(RuntimeError, match="End the block of the other"), traces.Capture():
            pass
        with pytest.raises(RuntimeError, match="End the block of the other"), first:
            pass
    assert first.trace.count("course.capture") == 1


def test_a_capture_ends_also_when_its_block_fails(tmp_path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), traces.Capture(tmp_path) as capture:
            with pytest.raises(RuntimeError, match="after its with-block"):
                _ = capture.trace
            1 / 0  # noqa: B018
    assert len(list(tmp_path.rglob("*.trace.json.gz"))) >= 1
