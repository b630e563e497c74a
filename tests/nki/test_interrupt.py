"""Threads that are told to end, and what that leaves behind: nothing that stops a profiler."""

import subprocess
import sys

import pytest

from utils.course.catalog import ROOT

BEGIN = """
import sys, threading
from utils.nki.interrupt import interrupt, settle

def profiled():
    count = 0
    def look(*_):
        nonlocal count
        count += 1
    def one():
        return 1
    sys.setprofile(look)
    one()
    sys.setprofile(None)
    return count
"""

BLOCKED = """
gate = threading.Event()
thread = threading.Thread(target=gate.wait, daemon=True)
thread.start()
interrupt(thread, SystemExit)
settle()
assert profiled() and thread.is_alive()
gate.set()
thread.join(20)
assert not thread.is_alive()
"""

RUNNING = """
def spin():
    while True:
        pass

thread = threading.Thread(target=spin, daemon=True)
thread.start()
interrupt(thread, SystemExit)
settle()
thread.join(20)
assert profiled() and not thread.is_alive()
"""

LAB_06 = """
from utils.labs.lab06.threads import gather_threads

with gather_threads() as started:
    threading.Thread(target=threading.Event().wait).start()
    assert started.left() == 1
assert profiled()
"""

CORES = """
import numpy as np
from utils.nki import kernels
from utils.nki.simulator import launch
import nki.isa as nisa, nki.language as nl

def kernel(x):
    if nl.program_id(0) == 0:
        raise ValueError("core 0 fails")
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return x

for _ in range(20):
    try:
        launch.simulate(kernel)[2](np.ones((4, 4), np.float32))
    except Exception as error:
        pass
assert profiled()
"""


@pytest.mark.parametrize("program", [BLOCKED, RUNNING, LAB_06, CORES], ids=range(4))
def test_a_profiler_works_after_threads_were_told_to_end(program: str) -> None:
    # In CPython 3.11 the call under the profiler never ended: in a process that can be killed.
    words, more = [sys.executable, "-c", BEGIN + program], {"capture_output": True, "text": True}
    done = subprocess.run(words, cwd=ROOT, timeout=60, **more)
    assert done.returncode == 0, done.stderr
