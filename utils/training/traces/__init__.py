"""Profiler traces: capture one in this process, and read where the time of each thread went.

torch_xla writes a trace as `*.trace.json.gz`, in Chrome's trace event format, next to XLA's own
`*.xplane.pb`. Python's json and pandas read the first; readers of the second (xprof, jaxlib) are
packages of tens of megabytes, for the same events.
"""

from utils.training.traces.capture import Capture, span, spans
from utils.training.traces.reading import KINDS, Trace, read

__all__ = ["KINDS", "Capture", "Trace", "read", "span", "spans"]
